"""A query on a DataFrame whose columns the user declares: a plan that is built without one question to Spark.

In a query function of a pipeline, whatever makes Spark analyze a DataFrame is an error: its columns, whether it is a
stream, `mapInArrow`. A table function over the DataFrame is none of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.call import Call
from kleene.errors import UnsupportedError, printable
from kleene.options import SparkOptions
from kleene.spark.declared import declared_columns
from kleene.spark.hashing import key_hash
from kleene.spark.reads import Reads, events_read, keys_of, spark_order
from kleene.spark.schema import arrow_schema
from kleene.spark.source import session_zone
from kleene.spark.table_function import function_of, table_task
from kleene.spark.tasks.table import TableTask, check_column

BUCKETS = 256
"""Spark's partitions of the table: each holds many keys, since each costs some milliseconds."""


def matches_as_declared(call: Call, events: DataFrame | Mapping[str, DataFrame], schema: Any) -> DataFrame:
    """The matches, lazily. What is known of the DataFrame without a question is checked against the schema."""
    if isinstance(events, Mapping):
        raise UnsupportedError(
            "schema declares the columns of one DataFrame, but a dict was given",
            hint="Put the inputs together first, with a column that tells the type: a.unionByName(b, True).",
        )
    _check_options(call)
    _refuse_streams(events)
    columns = declared_columns(schema, call, session_zone(events))
    task = table_task(call, columns, pushdown=call.spark is None or call.spark.pushdown)
    _refuse_computed_keys(task)
    if _is_classic(events):
        found = arrow_schema(events.schema, session_zone(events), task.arriving.names)
        for column in task.arriving:
            check_column(found, column, "the DataFrame")
    return _matches(events, task)


def _matches(events: DataFrame, task: TableTask) -> DataFrame:
    table = events_read(events, task.reads).asTable()
    split = table.partitionBy(_bucket(task.reads)) if task.reads.key else table.withSinglePartition()
    found: DataFrame = function_of(task)(split.orderBy(*spark_order(task.reads)))
    return found


def _bucket(reads: Reads) -> Any:
    return F.pmod(key_hash(keys_of(reads)), F.lit(BUCKETS))


def _check_options(call: Call) -> None:
    if call.stream is not None:
        raise UnsupportedError("stream is for streams, but schema is for tables", hint="Leave stream out.")
    if call.timeouts:
        raise UnsupportedError(
            "a run is out of time by the last event of all, which a table function does not see",
            hint="Leave schema out.",
        )
    if call.is_compressed:
        raise UnsupportedError("compressed output needs the layout of a job", hint="Leave schema out.")
    if call.spark is not None and call.spark != SparkOptions(pushdown=call.spark.pushdown):
        raise UnsupportedError(
            "schema was given, so the query runs as a table function, which has one layout only",
            hint="Leave schema out, or leave the layout out of spark.",
        )


def _refuse_computed_keys(task: TableTask) -> None:
    query = task.plan.query
    if isinstance(query, AnalyzedRowPattern) and query.computed:
        raise UnsupportedError(
            f"the key '{printable(query.computed[0][0])}' is an expression, but with schema, keys must be columns",
            hint="Add it to the DataFrame as a column, declare it in the schema, and name it in the query.",
        )


def _refuse_streams(frame: DataFrame) -> None:
    if frame.isStreaming if _is_classic(frame) else _reads_stream(getattr(frame, "_plan", None)):
        raise UnsupportedError(
            "the DataFrame is a stream, but schema was given: a table function keeps nothing between micro-batches, so "
            "it would miss matches",
            hint="In a pipeline, make it a materialized view, which reads a table: spark.read.table(…). "
            "Elsewhere leave schema out.",
        )


def _reads_stream(plan: Any) -> bool:
    """Whether a plan of Spark Connect says so by itself. PySpark has no other way to ask without an analysis."""
    if plan is None or getattr(plan, "_is_streaming", False) is True:
        return plan is not None
    further = [getattr(plan, name, None) for name in ("_child", "_input", "left", "right")]
    return any(_reads_stream(child) for child in further)


def _is_classic(frame: DataFrame) -> bool:
    """A classic DataFrame knows its columns already."""
    return not type(frame).__module__.startswith("pyspark.sql.connect")

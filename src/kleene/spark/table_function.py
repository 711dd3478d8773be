"""A query and the declared columns of a table to a table function of Spark, without asking Spark for anything.

The function works in plain SQL once it is registered, and on DataFrames by `DataFrame.asTable`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.analyze import analyze
from kleene.analysis.row_pattern import analyze_row_pattern, is_row_pattern, warn
from kleene.call import Call
from kleene.engine.attributes_by_type import schema_of_table
from kleene.engine.column_types import attributes_of
from kleene.engine.inputs import check_order_columns, checked_type_column
from kleene.engine.run import result_schema
from kleene.errors import UnsupportedError, printable
from kleene.schema import EventSchema
from kleene.spark.declared import declared_columns
from kleene.spark.foreign import refuse_foreign
from kleene.spark.job import output_of_events, reads_of_events, reads_of_rows, row_order
from kleene.spark.names import distinctly_named
from kleene.spark.output import Output
from kleene.spark.schema import spark_schema
from kleene.spark.source import columns_with_keys
from kleene.spark.tasks.table import TableMatcher, TableTask


def table_function(call: Call, schema: Any) -> Any:
    """The table function of the query for tables that have such columns; pyspark's `UserDefinedTableFunction`."""
    return function_of(table_task(call, declared_columns(schema, call)))


def table_task(call: Call, columns: pa.Schema, pushdown: bool = False) -> TableTask:
    """What the function does; an error if the query does not fit the columns."""
    if is_row_pattern(call.definition):
        return _task_on_rows(call, columns)
    check_order_columns(call.order, columns.names, "the schema")
    type_column = checked_type_column(columns, call.type_column)
    schema = schema_of_table(columns, type_column, call.order.columns, call.schema)
    plan = call.plan(analyze(call.definition, schema, call.order.order_by))
    if plan.pipeline is not None:
        warn(plan.pipeline.warnings)
    reads = reads_of_events(plan, columns, call.order, pushdown)
    return TableTask(plan=plan, reads=reads, output=output_of_events(call, plan, reads), arriving=reads.columns)


def _task_on_rows(call: Call, columns: pa.Schema) -> TableTask:
    refuse_foreign(call.definition)
    query = analyze_row_pattern(call.definition, EventSchema(attributes_of(columns)))
    plan = call.plan(query)
    read, wider = columns_with_keys(columns, query)
    result, shown_names = distinctly_named(result_schema(plan, wider))
    for name in shown_names.values():
        raise UnsupportedError(
            f"the result would have the column '{printable(name)}' twice, which a table function cannot give",
            hint="Name each column once in PARTITION BY and ORDER BY.",
        )
    output, reads = Output(result=result), reads_of_rows(query, wider)
    if call.match_order:
        output = output.with_row_order(row_order(reads), wider)
    return TableTask(plan=plan, reads=reads, output=output, arriving=read)


def function_of(task: TableTask) -> Any:
    if not hasattr(F, "arrow_udtf"):
        raise UnsupportedError(
            "table functions on Arrow came with PySpark 4.1, but an older one is installed",
            hint="Install a newer one: pip install 'pyspark[sql]>=4.1,<5'",
        )
    return F.arrow_udtf(_handler(task), returnType=spark_schema(task.output.result))


def _handler(task: TableTask) -> type:
    """The class that Spark makes an instance of for each of its partitions.

    It is made here and has no name to be found by, so that it travels by value; so does `shared`, empty.
    """
    shared = TableMatcher(task)

    class MatchFunction:
        def __init__(self) -> None:
            self._matcher = shared.start()

        # Generators: Spark would wrap what a plain method raises, and ours is to be the first line.
        def eval(self, events: pa.RecordBatch) -> Iterator[pa.Table]:
            yield from self._matcher.feed(events)

        def terminate(self) -> Iterator[pa.Table]:
            yield from self._matcher.finish()

    return MatchFunction

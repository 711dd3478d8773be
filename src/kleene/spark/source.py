"""Spark DataFrames of events, one or several by event type, to one DataFrame and what is known of its columns.

For a row pattern, the DataFrame it reads to a plan and a frame that has all its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.row_pattern import AnalyzedRowPattern, analyze_row_pattern, check_measure_names
from kleene.analysis.value_types import type_of
from kleene.call import Call
from kleene.engine.events import TYPE_OF_EVENT
from kleene.engine.inputs import (
    OrderKey,
    attributes_of,
    check_input_names,
    check_names,
    check_order_columns,
    checked_type_column,
    schema_of_inputs,
    unified_schema,
)
from kleene.engine.needs import columns_read
from kleene.engine.output import arrow_type
from kleene.engine.rows import with_computed_keys
from kleene.errors import SchemaError, listed
from kleene.plan.plan import Plan
from kleene.schema import Schema
from kleene.spark.foreign import Prepared, prepare_foreign
from kleene.spark.names import plain_names, plain_schema, quoted_column
from kleene.spark.output import MATCH_ORDER
from kleene.spark.schema import arrow_schema, spark_schema, spark_type
from kleene.spark.tasks.task import table_of


@dataclass(frozen=True, slots=True)
class SparkInput:
    """One DataFrame of all events, and what is known of its columns."""

    frame: DataFrame
    columns: pa.Schema
    schema: Schema


def read_frames(events: DataFrame | Mapping[str, DataFrame], order: OrderKey, type_column: str | None) -> SparkInput:
    if isinstance(events, Mapping):
        return _read_inputs(events, order)
    check_frame_names(events, "the input")
    columns = arrow_schema(events.schema, session_zone(events))
    check_order_columns(order, columns.names, "the input")
    return SparkInput(events, columns, Schema(attributes_of(columns), checked_type_column(columns, type_column)))


def _read_inputs(frames: Mapping[str, DataFrame], order: OrderKey) -> SparkInput:
    """Several inputs by event type as one DataFrame: all columns of all of them, and the type of each event."""
    schemas: dict[str, pa.Schema] = {}
    check_input_names(frames)
    for name, frame in frames.items():
        check_frame_names(frame, f"input '{name}'")
        schemas[name] = arrow_schema(frame.schema, session_zone(frame))
        check_order_columns(order, frame.columns, f"input '{name}'")
    unified = unified_schema(schemas)
    if frames:
        _check_case(unified.names, "the inputs", next(iter(frames.values())))
    parts = [_as_unified(frame, name, schemas[name], unified) for name, frame in frames.items()]
    together = parts[0]
    for part in parts[1:]:
        together = together.union(part)
    columns = unified.append(pa.field(TYPE_OF_EVENT, pa.string()))
    shown = {name: _as_shown(schema) for name, schema in schemas.items()}
    return SparkInput(together, columns, schema_of_inputs(shown, _as_shown(unified)))


def check_frame_names(frame: DataFrame, what: str) -> None:
    names = [column for column in frame.columns if column != MATCH_ORDER]
    check_names(names, what)
    ours = next((name for name in names if name.startswith("__kleene_")), None)
    if ours is not None:
        raise SchemaError(f"{what} has a column '{ours}', a name that Kleene uses", hint="Rename it.")
    _check_case(names, what, frame)


def _check_case(names: list[str], what: str, frame: DataFrame) -> None:
    if frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        folded = [name.lower() for name in names]
        twice = [name for name in names if folded.count(name.lower()) > 1] if len(set(folded)) < len(folded) else []
        if twice:
            raise SchemaError(
                f"columns of {what} that Spark takes for one: {listed(twice)}",
                hint="Rename one of them, or set spark.sql.caseSensitive to true.",
            )


def _as_shown(schema: pa.Schema) -> pa.Schema:
    return pa.schema([column for column in schema if column.name != MATCH_ORDER])


def _as_unified(frame: DataFrame, name: str, schema: pa.Schema, unified: pa.Schema) -> DataFrame:
    columns = [
        (quoted_column(field.name) if field.name in schema.names else F.lit(None))
        .cast(spark_type(field.type))
        .alias(field.name)
        for field in unified
    ]
    return frame.select(*columns, F.lit(name).alias(TYPE_OF_EVENT))


def session_zone(frame: DataFrame) -> str:
    return frame.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"


# --- row patterns ----------------------------------------------------------------------------------------------------


def prepare_rows(call: Call, events: DataFrame | Mapping[str, DataFrame]) -> tuple[Prepared, pa.Schema, Plan]:
    """What Spark computes beforehand, the columns there are then, and the plan."""
    if isinstance(events, Mapping):
        raise SchemaError("a row pattern reads one table, and a dict was given", hint="Give the DataFrame itself.")
    check_frame_names(events, "the input")
    definition = call.definition
    prepared = prepare_foreign(definition, events)
    zone = session_zone(events)
    columns = arrow_schema(prepared.frame.schema, zone)
    query = analyze_row_pattern(
        prepared.definition, Schema(attributes_of(columns)), prepared.hidden, prepared.key_names
    )
    check_measure_names(definition, Schema(attributes_of(arrow_schema(events.schema, zone))), query.partition_by)
    return prepared, columns, call.plan(query)


def with_keys(frame: DataFrame, columns: pa.Schema, query: AnalyzedRowPattern) -> tuple[DataFrame, pa.Schema]:
    """The columns that the query reads, and the keys that are expressions.

    Kleene computes these, so that they mean on Spark what they mean in process.
    """
    names = columns_read(query, columns.names, [column.name for column in query.order_by])
    columns = pa.schema([columns.field(name) for name in names])
    if not query.computed:
        return frame, columns
    wider = pa.schema([*columns, *(pa.field(name, arrow_type(type_of(key))) for name, key in query.computed)])
    plain = frame.select(*map(quoted_column, names)).toDF(*plain_names(names))
    found = plain.mapInArrow(partial(_with_computed_keys, query, columns), spark_schema(plain_schema(wider)))
    return found.toDF(*wider.names), wider


def _with_computed_keys(
    query: AnalyzedRowPattern, columns: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The batches with the keys that are expressions, in a Spark task."""
    for batch in batches:
        keys = with_computed_keys(query, table_of(batch, columns))
        table = pa.Table.from_batches([batch])
        for name, _ in query.computed:
            table = table.append_column(name, keys.column(name))
        yield from table.rename_columns(plain_names(table.column_names)).to_batches()

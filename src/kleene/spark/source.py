"""Spark DataFrames of events, one or several by event type, to one DataFrame and what is known of its columns.

For a row pattern, the DataFrame it reads to a plan and a frame that has all its columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.conversions import type_of
from kleene.analysis.row_pattern import AnalyzedRowPattern, analyze_row_pattern, check_measure_names
from kleene.call import Call
from kleene.engine.attributes_by_type import refuse_for_inputs, schema_of_table, types_without
from kleene.engine.column_types import attributes_of
from kleene.engine.events import TYPE_OF_EVENT
from kleene.engine.inputs import (
    Mentioned,
    OrderKey,
    check_input_names,
    check_names,
    check_order_columns,
    checked_type_column,
    mentioned_names,
)
from kleene.engine.needs import columns_read
from kleene.engine.output import arrow_type
from kleene.engine.rows import with_computed_keys
from kleene.engine.several import schema_of_inputs, unified_schema
from kleene.errors import SchemaError, listed, printable
from kleene.ir.query import QueryDefinition
from kleene.options.schema import Schema
from kleene.plan.plan import Plan
from kleene.schema import EventSchema
from kleene.spark.double_quotes import with_strings
from kleene.spark.foreign import Prepared, prepare_foreign
from kleene.spark.names import plain_names, plain_schema, quoted_column
from kleene.spark.output import MATCH_ORDER
from kleene.spark.schema import arrow_schema, spark_schema, spark_type
from kleene.spark.tasks.task import table_of


@dataclass(frozen=True, slots=True)
class SparkInput:
    """One DataFrame of all events, what is known of its columns, and which of them put the events in order."""

    frame: DataFrame
    columns: pa.Schema
    schema: EventSchema
    order: OrderKey
    time_name: str | None = None  # what the user calls the time, if the column is called otherwise


def read_frames(
    events: DataFrame | Mapping[str, DataFrame],
    order: OrderKey,
    type_column: str | None,
    definition: QueryDefinition,
    nested: frozenset[str] = frozenset(),
    given: Schema | None = None,
) -> SparkInput:
    """The events of a SASE query.

    nested: columns that were made for parts of others.
    given: which attributes the events of each type in a table have.
    """
    used = mentioned_names(definition, order, type_column)
    if isinstance(events, Mapping):
        refuse_for_inputs(given)
        return _read_inputs(events, order, used, nested)
    frame = with_unique_names(events, "the input", used)
    columns = arrow_schema(frame.schema, session_zone(frame), used)
    check_order_columns(order, columns.names, "the input", hidden=nested)
    known_type = checked_type_column(columns, type_column)
    found = schema_of_table(columns, known_type, order.columns, given, nested)
    return SparkInput(_with_own_attributes(frame, columns, found), columns, found, order)


def _with_own_attributes(frame: DataFrame, columns: pa.Schema, schema: EventSchema) -> DataFrame:
    """The frame, with NULL for each attribute that the type of an event lacks."""
    if schema.by_type is None or schema.type_column is None:
        return frame
    event_type = quoted_column(schema.type_column)
    masked = {}
    for name in columns.names:
        lacking = types_without(schema, name)
        if lacking:
            # An event without a type keeps its values: it is of none of these types.
            masked[name] = F.when(~event_type.isin(lacking) | event_type.isNull(), quoted_column(name))
    return frame.withColumns(masked) if masked else frame


def _read_inputs(
    frames: Mapping[str, DataFrame], order: OrderKey, used: Mentioned | None, nested: frozenset[str]
) -> SparkInput:
    """Several inputs by event type as one DataFrame: all columns of all of them, and the type of each event."""
    schemas: dict[str, pa.Schema] = {}
    check_input_names(frames)
    frames = {name: with_unique_names(frame, f"input '{printable(name)}'", used) for name, frame in frames.items()}
    for name, frame in frames.items():
        schemas[name] = arrow_schema(frame.schema, session_zone(frame), used)
        check_order_columns(order, frame.columns, f"input '{name}'")
    unified = unified_schema(schemas, used)
    if frames:
        check_told_apart(unified.names, next(iter(frames.values())))
    parts = [_as_unified(frame, name, schemas[name], unified) for name, frame in frames.items()]
    together = parts[0]
    for part in parts[1:]:
        together = together.union(part)
    columns = unified.append(pa.field(TYPE_OF_EVENT, pa.string()))
    shown = {name: _as_shown(schema) for name, schema in schemas.items()}
    return SparkInput(together, columns, schema_of_inputs(shown, _as_shown(unified), nested), order)


def with_unique_names(frame: DataFrame, what: str, used: Mentioned | None) -> DataFrame:
    """The frame without columns that Spark cannot tell apart; an error if the query uses one of them."""
    names = [column for column in frame.columns if column != MATCH_ORDER]
    check_names(names, what)
    ours = next((name for name in names if name.startswith("__kleene_")), None)
    if ours is not None:
        raise SchemaError(f"{what} has a column '{ours}', a name that Kleene uses", hint="Rename it.")
    alike = _alike(names, frame)
    if any(used is None or name in used for name in alike):
        if len(set(alike)) == 1:
            raise SchemaError(f"{what} has two columns '{printable(alike[0])}'", hint="Rename one of them.")
        raise _too_alike(alike, what)
    return frame.drop(*dict.fromkeys(alike)) if alike else frame


def check_told_apart(names: list[str], frame: DataFrame) -> None:
    """An error if the session of the frame cannot tell columns of several inputs apart."""
    twice = _alike(names, frame)
    if twice:
        raise _too_alike(twice, "the inputs")


def _alike(names: list[str], frame: DataFrame) -> list[str]:
    """The columns that share a name, which for Spark they may do if they differ in case."""
    is_exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    count = Counter(name if is_exact else name.lower() for name in names)
    return [name for name in names if count[name if is_exact else name.lower()] > 1]


def _too_alike(names: list[str], what: str) -> SchemaError:
    return SchemaError(
        f"Spark cannot tell these columns of {what} apart: {listed(names)}",
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


def prepare_rows(
    call: Call, events: DataFrame | Mapping[str, DataFrame], nested: frozenset[str] = frozenset()
) -> tuple[Prepared, pa.Schema, Plan]:
    """What Spark computes beforehand, the columns there are then, and the plan. `nested` are parts of columns."""
    if isinstance(events, Mapping):
        raise SchemaError("a row pattern reads one table, but a dict was given", hint="Give the DataFrame itself.")
    definition = with_strings(call.definition, events)
    used = mentioned_names(definition, OrderKey(()))
    events = with_unique_names(events, "the input", used)
    prepared = prepare_foreign(definition, events)
    zone = session_zone(events)
    if used is not None:
        used = replace(used, exact=used.exact.union(prepared.hidden))
    columns = arrow_schema(prepared.frame.schema, zone, used)
    query = analyze_row_pattern(
        prepared.definition, EventSchema(attributes_of(columns)), [*prepared.hidden, *nested], prepared.key_names
    )
    check_measure_names(
        definition, EventSchema(attributes_of(arrow_schema(events.schema, zone, used))), query.partition_by
    )
    return prepared, columns, call.plan(query)


def with_keys(frame: DataFrame, columns: pa.Schema, query: AnalyzedRowPattern) -> tuple[DataFrame, pa.Schema]:
    """The columns that the query reads, and the keys that are expressions.

    Kleene computes these, so that they mean on Spark what they mean in process.
    """
    columns, wider = columns_with_keys(columns, query)
    if not query.computed:
        return frame, columns
    plain = frame.select(*map(quoted_column, columns.names)).toDF(*plain_names(columns.names))
    found = plain.mapInArrow(partial(_with_computed_keys, query, columns), spark_schema(plain_schema(wider)))
    return found.toDF(*wider.names), wider


def columns_with_keys(columns: pa.Schema, query: AnalyzedRowPattern) -> tuple[pa.Schema, pa.Schema]:
    """The columns that the query reads, and these with the keys that are expressions."""
    # Where the query gives no order, all columns do.
    order = [column.name for column in query.order_by] or [
        name for name in columns.names if not pa.types.is_null(columns.field(name).type)
    ]
    names = columns_read(query, columns.names, order)
    read = pa.schema([columns.field(name) for name in names])
    return read, pa.schema([*read, *(pa.field(name, arrow_type(type_of(key))) for name, key in query.computed)])


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

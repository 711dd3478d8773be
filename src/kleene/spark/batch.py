"""Spark DataFrames of events to a Spark DataFrame of matches.

The events are split by the key of the query where it has one, else they form one stream; they are sorted within Spark
partitions, and one `mapInArrow` pass matches all keys of a Spark partition. DataFrame API only, so that Spark Connect
works. Nothing runs until the result is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.analyze import analyze
from kleene.analysis.row_pattern import (
    AnalyzedRowPattern,
    SortColumn,
    analyze_row_pattern,
    check_measure_names,
    is_row_pattern,
    warn,
)
from kleene.analysis.value_types import type_of
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
from kleene.engine.output import arrow_type
from kleene.engine.run import result_schema
from kleene.errors import SchemaError, listed
from kleene.ir.query import QueryDefinition
from kleene.plan.plan import ByKey, Plan, make_plan
from kleene.schema import Schema
from kleene.spark.foreign import Prepared, prepare_foreign
from kleene.spark.match_order import MATCH_ORDER, match_order_type
from kleene.spark.names import plain_names, quoted_column
from kleene.spark.schema import arrow_schema, has_map, spark_schema, spark_type
from kleene.spark.worker import NO_ORDER_KEY, KeyAdder, Matcher

__all__ = ["MATCH_ORDER", "match", "match_rows", "plan_of"]

SHOWN_MATCH_ORDER = "match_order"


@dataclass(frozen=True, slots=True)
class SparkInput:
    """One DataFrame of all events, and what is known of its columns."""

    frame: DataFrame
    columns: pa.Schema
    schema: Schema


def match(
    definition: QueryDefinition,
    events: DataFrame | Mapping[str, DataFrame],
    order: OrderKey,
    type_column: str | None,
    options: Mapping[str, Any],
    *,
    match_order: bool = False,
    with_times: bool = False,
) -> DataFrame:
    """The matches, lazily. For composition the result carries its order in a column that is not an attribute."""
    source = _read(events, order, type_column)
    plan = make_plan(analyze(definition, source.schema, order.order_by), **options)
    warn(() if plan.pipeline is None else plan.pipeline.warnings)
    key = plan.split.columns if isinstance(plan.split, ByKey) else ()
    sort_columns = _sort_columns(source.columns, order)
    result = result_schema(plan, source.columns, with_times)
    carried = None
    if match_order:
        carried = tuple(name for name in sort_columns if not has_map(source.columns.field(name).type))
        name = MATCH_ORDER if with_times else SHOWN_MATCH_ORDER
        result = result.append(pa.field(name, match_order_type(source.columns, carried)))
    # A key that the query did not say forms no partitions: its engine sees one stream, which must be in order.
    # Time is enough: sorting is stable, and each key is in order already.
    mixed_by = order.order_by[:1] if isinstance(plan.split, ByKey) and plan.split.is_implied else ()
    matcher = Matcher(plan, source.columns, key, order.order_by, carried, result, with_times, mixed_by)
    frame = _keyed(source.frame, source.columns, key, order.order_by, drop_missing_keys=True)
    frame = frame.sortWithinPartitions(
        *_sorting(source.columns, key, [SortColumn(name, False, None) for name in sort_columns])
    )
    return _with_plain_names(frame, source.columns.names).mapInArrow(matcher, spark_schema(result))


def match_rows(
    definition: QueryDefinition, events: DataFrame | Mapping[str, DataFrame], options: Mapping[str, Any]
) -> DataFrame:
    """The matches of a row pattern, or of the regular-expression operator, lazily."""
    prepared, columns, plan = prepare_rows(definition, events, options)
    query = plan.query
    assert isinstance(query, AnalyzedRowPattern)
    frame = prepared.frame
    if query.computed:
        # Keys are computed by Kleene, so that they mean on Spark what they mean in process.
        wider = pa.schema([*columns, *(pa.field(name, arrow_type(type_of(key))) for name, key in query.computed)])
        plain = frame.select(*(quoted_column(name) for name in columns.names)).toDF(*plain_names(columns.names))
        with_keys = plain.mapInArrow(KeyAdder(query, columns), spark_schema(_renamed(wider)))
        frame, columns = with_keys.toDF(*wider.names), wider
    strict = tuple(column.name for column in query.order_by if column.nulls_first is None)
    frame = _keyed(frame, columns, query.partition_by, strict, drop_missing_keys=False)
    ties = [SortColumn(name, False, False) for name in _sort_columns(columns, OrderKey(()))]
    frame = frame.sortWithinPartitions(*_sorting(columns, query.partition_by, [*query.order_by, *ties]))
    result = result_schema(plan, columns)
    matcher = Matcher(plan, columns, query.partition_by, strict, None, result, False)
    found = _with_plain_names(frame, columns.names).mapInArrow(matcher, spark_schema(result))
    return prepared.finished(found)


def prepare_rows(
    definition: QueryDefinition, events: DataFrame | Mapping[str, DataFrame], options: Mapping[str, Any]
) -> tuple[Prepared, pa.Schema, Plan]:
    """What Spark computes beforehand, the columns there are then, and the plan."""
    if isinstance(events, Mapping):
        raise SchemaError("a row pattern reads one table, and a dict was given", hint="Give the DataFrame itself.")
    _check_names(events, "the input")
    prepared = prepare_foreign(definition, events)
    columns = arrow_schema(prepared.frame.schema, _zone(events))
    schema = Schema(attributes_of(columns))
    query = analyze_row_pattern(prepared.definition, schema, prepared.hidden, prepared.key_names)
    check_measure_names(
        definition, Schema(attributes_of(arrow_schema(events.schema, _zone(events)))), query.partition_by
    )
    return prepared, columns, make_plan(query, **options)


def plan_of(
    definition: QueryDefinition,
    events: DataFrame | Mapping[str, DataFrame],
    order: OrderKey,
    type_column: str | None,
    options: Mapping[str, Any],
) -> Plan:
    """The plan for the events, of which only the schema is looked at."""
    if is_row_pattern(definition):
        return prepare_rows(definition, events, options)[2]
    return make_plan(analyze(definition, _read(events, order, type_column).schema, order.order_by), **options)


def _with_plain_names(frame: DataFrame, names: list[str]) -> DataFrame:
    """The columns in that order, and the flag of those without an order key."""
    columns = frame.select(*(quoted_column(name) for name in [*names, NO_ORDER_KEY]))
    return columns.toDF(*plain_names(names), NO_ORDER_KEY)


def _renamed(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_name(name) for field, name in zip(schema, plain_names(schema.names), strict=True)])


def _read(events: DataFrame | Mapping[str, DataFrame], order: OrderKey, type_column: str | None) -> SparkInput:
    if isinstance(events, Mapping):
        return _read_inputs(events, order)
    zone = _zone(events)
    _check_names(events, "the input")
    columns = arrow_schema(events.schema, zone)
    check_order_columns(order, columns.names, "the input")
    return SparkInput(events, columns, Schema(attributes_of(columns), checked_type_column(columns, type_column)))


def _read_inputs(frames: Mapping[str, DataFrame], order: OrderKey) -> SparkInput:
    """Several inputs by event type as one DataFrame: all columns of all of them, and the type of each event."""
    schemas: dict[str, pa.Schema] = {}
    check_input_names(frames)
    for name, frame in frames.items():
        _check_names(frame, f"input '{name}'")
        schemas[name] = arrow_schema(frame.schema, _zone(frame))
        check_order_columns(order, frame.columns, f"input '{name}'")
    unified = unified_schema(schemas)
    parts = [_as_unified(frame, name, schemas[name], unified) for name, frame in frames.items()]
    together = parts[0]
    for part in parts[1:]:
        together = together.union(part)
    columns = unified.append(pa.field(TYPE_OF_EVENT, pa.string()))
    attributes = pa.schema([column for column in unified if column.name != MATCH_ORDER])
    shown = {name: _without(schema, MATCH_ORDER) for name, schema in schemas.items()}
    return SparkInput(together, columns, schema_of_inputs(shown, attributes))


def _check_names(frame: DataFrame, what: str) -> None:
    names = [column for column in frame.columns if column != MATCH_ORDER]
    check_names(names, what)
    if frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        folded = [name.lower() for name in names]
        twice = [name for name in names if folded.count(name.lower()) > 1] if len(set(folded)) < len(folded) else []
        if twice:
            raise SchemaError(
                f"{what} has columns that Spark takes for one: {listed(twice)}",
                hint="Rename one of them, or set spark.sql.caseSensitive to true.",
            )


def _without(schema: pa.Schema, name: str) -> pa.Schema:
    return pa.schema([column for column in schema if column.name != name])


def _as_unified(frame: DataFrame, name: str, schema: pa.Schema, unified: pa.Schema) -> DataFrame:
    columns = [
        (quoted_column(field.name) if field.name in schema.names else F.lit(None))
        .cast(spark_type(field.type))
        .alias(field.name)
        for field in unified
    ]
    return frame.select(*columns, F.lit(name).alias(TYPE_OF_EVENT))


def _zone(frame: DataFrame) -> str:
    return frame.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"


def _sort_columns(columns: pa.Schema, order: OrderKey) -> tuple[str, ...]:
    """The order key, the tie-break, and then every other column, since Spark's input has no order of its own."""
    return tuple(dict.fromkeys([*order.columns, *columns.names]))


def _keyed(
    frame: DataFrame, columns: pa.Schema, key: tuple[str, ...], order_by: tuple[str, ...], drop_missing_keys: bool
) -> DataFrame:
    """The events of a key together in one Spark partition; without a key, all of them.

    Events without a place in the order go to one Spark partition too, and will come first there, so that one task can
    count them all before it raises the error.
    """
    types = {column.name: column.type for column in columns}
    unordered = _any(_is_missing(name, types[name]) for name in order_by)
    frame = frame.withColumn(NO_ORDER_KEY, unordered)
    if not key:
        return frame.repartition(1)
    flag = F.col(NO_ORDER_KEY)
    if drop_missing_keys:
        frame = frame.where(flag | ~_any(_is_missing(name, types[name]) for name in key))
    keys = [_normal(name, types[name]) for name in key]
    return frame.repartition(F.when(flag, F.lit(0).cast("long")).otherwise(F.xxhash64(*keys)))


def _sorting(columns: pa.Schema, key: tuple[str, ...], order: Iterable[SortColumn]) -> list[Column]:
    """What to sort a Spark partition by: events without an order key first, then by key, then in the order wanted."""
    types = {column.name: column.type for column in columns}
    by = [F.col(NO_ORDER_KEY).desc(), *(_normal(name, types[name]).asc_nulls_last() for name in key)]
    for item in order:
        column = _normal(item.name, types[item.name])
        if item.descending:
            by.append(column.desc_nulls_first() if item.nulls_first else column.desc_nulls_last())
        else:
            by.append(column.asc_nulls_first() if item.nulls_first else column.asc_nulls_last())
    return by


def _any(conditions: Iterable[Column]) -> Column:
    found = F.lit(False)
    for condition in conditions:
        found = found | condition
    return found


def _is_missing(name: str, type_: pa.DataType) -> Column:
    column = quoted_column(name)
    return column.isNull() | F.isnan(column) if pa.types.is_floating(type_) else column.isNull()


def _normal(name: str, type_: pa.DataType) -> Column:
    """The column for comparing: -0.0 and 0.0 are one value, and adding zero makes them one; maps have no order."""
    if pa.types.is_floating(type_):
        return quoted_column(name) + F.lit(0.0)
    return F.to_json(quoted_column(name)) if has_map(type_) else quoted_column(name)

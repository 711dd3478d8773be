"""Spark DataFrames of events, one or several by event type, to one DataFrame and what is known of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

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
from kleene.errors import SchemaError, listed
from kleene.schema import Schema
from kleene.spark.names import quoted_column
from kleene.spark.output import MATCH_ORDER
from kleene.spark.schema import arrow_schema, spark_type


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
    attributes = pa.schema([column for column in unified if column.name != MATCH_ORDER])
    shown = {name: _without(schema, MATCH_ORDER) for name, schema in schemas.items()}
    return SparkInput(together, columns, schema_of_inputs(shown, attributes))


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


def session_zone(frame: DataFrame) -> str:
    return frame.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"

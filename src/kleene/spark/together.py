"""Streams that one query of a program reads together to one DataFrame: what `engine/together.py` does to tables.

A DataFrame has no order, so columns that no stream has say it: the time; whether the event is primitive, or of which
query; the order key and the tie-break of primitive events, and their place in FROM; the place of each composite event
in the output of its query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.analyzed import MATCH_END
from kleene.call import Call
from kleene.engine.events import TYPE_OF_EVENT
from kleene.engine.inputs import OrderKey
from kleene.engine.several import TYPE_FIELD
from kleene.engine.together import (
    KIND_FIELD,
    ORDER_OF_MATCHES,
    TIME_OF_EVENT,
    ReadStream,
    Together,
    kind_of_stream,
    kind_of_type,
    schema_together,
    unified_attributes,
    unified_order,
    unified_time,
    within,
)
from kleene.spark.names import quoted_column
from kleene.spark.nested import with_nested
from kleene.spark.output import MATCH_ORDER
from kleene.spark.schema import spark_type
from kleene.spark.source import SparkInput, check_told_apart, read_frames

_RANK = pa.field("__kleene_rank", pa.int32())
_PLACE = pa.field("__kleene_place", pa.int32())
Frames = DataFrame | Mapping[str, DataFrame]


@dataclass(frozen=True, slots=True)
class _Opened:
    """A stream by itself, with the column that holds the order of its events if they are matches."""

    stream: ReadStream
    input: SparkInput
    match_order: pa.Field | None

    @property
    def columns(self) -> pa.Schema:
        return pa.schema([field for field in self.input.columns if field.name != MATCH_ORDER])


def read_together(
    events: Together, matches: Mapping[str, DataFrame], call: Call, clocked: Callable[[Frames], Frames]
) -> SparkInput:
    """The events of all streams; the call's order is that of primitive ones.

    matches: the streams that queries make.
    clocked: gives the others a watermark, if they want one.
    """
    opened = [
        _matches(stream, matches[stream.name], call) if stream.is_composite else _events(stream, call, clocked)
        for stream in events.by_time
    ]
    columns = {one.stream.name: one.columns for one in opened}
    time = unified_time(call.order, columns, events)
    keys = unified_order(call.order, columns, events)[1:]  # the first of them is the time
    unified = unified_attributes(columns, call.definition, events)
    orders = [one.match_order for one in opened if one.match_order is not None]
    schema = schema_together({one.stream.name: one.input.schema for one in opened}, unified, time)
    kinds = [] if schema.kind_column is None else [KIND_FIELD]
    every = pa.schema([*unified, TYPE_FIELD, *kinds, time, _RANK, *keys, _PLACE, *orders])
    named = [name for name, _ in schema.by_type or ()]
    parts = [_selected(one, place, every, keys, call.order, named) for place, one in enumerate(opened)]
    check_told_apart(unified.names, parts[0])
    order = OrderKey((TIME_OF_EVENT,), tuple(field.name for field in (_RANK, *keys, _PLACE, *orders)))
    is_timed = any(not stream.is_composite for stream in events.streams)
    time_name = call.order.order_by[0] if is_timed else MATCH_END
    return SparkInput(reduce(lambda one, other: one.union(other), parts), every, schema, order, time_name)


def _matches(stream: ReadStream, frame: DataFrame, call: Call) -> _Opened:
    wider, nested = with_nested({stream.name: frame}, call.definition, ORDER_OF_MATCHES)
    found = read_frames(wider, ORDER_OF_MATCHES, None, call.definition, nested)
    return _Opened(stream, found, found.columns.field(MATCH_ORDER).with_name(f"{MATCH_ORDER}_{stream.maker}"))


def _events(stream: ReadStream, call: Call, clocked: Callable[[Frames], Frames]) -> _Opened:
    """A primitive stream; if no column tells the types of its events, they are of the type that FROM calls it."""
    frames: Frames = stream.events
    is_typed = isinstance(frames, DataFrame) and call.type_column in frames.columns
    if not is_typed and isinstance(frames, DataFrame):
        frames = {stream.name: frames}
    wider, nested = with_nested(frames, call.definition, call.order)
    timed, given = clocked(wider), None
    if call.schema is not None and isinstance(timed, DataFrame):
        given = within(call.schema, timed.columns)
    type_column = call.type_column if is_typed else None
    return _Opened(stream, read_frames(timed, call.order, type_column, call.definition, nested, given), None)


def _selected(
    one: _Opened, place: int, every: pa.Schema, keys: list[pa.Field], order: OrderKey, named: list[str]
) -> DataFrame:
    """The columns of all streams, NULL where this one has none; `named` are types that have their own attributes."""
    own, maker = one.columns, one.stream.maker
    type_column = one.input.schema.type_column
    assert type_column is not None
    event_type = quoted_column(type_column)
    of_type = F.when(event_type.isin(named), F.concat(F.lit(kind_of_type("")), event_type))
    special: dict[str, Column] = {
        TYPE_OF_EVENT: event_type,
        KIND_FIELD.name: of_type.otherwise(F.lit(kind_of_stream(one.stream.name))),
        TIME_OF_EVENT: quoted_column(one.input.order.order_by[0]),
        _RANK.name: F.lit(0 if maker is None else 1 + maker),
        _PLACE.name: F.lit(place if maker is None else 0),
    }
    if maker is None:
        further = zip(keys, order.columns[1:], strict=True)
        special |= {key.name: quoted_column(name) for key, name in further}
    if one.match_order is not None:
        special[one.match_order.name] = quoted_column(MATCH_ORDER)
    columns = []
    for field in every:
        if field.name in special:
            column = special[field.name]
        else:
            column = quoted_column(field.name) if field.name in own.names else F.lit(None)
        columns.append(column.cast(spark_type(field.type)).alias(field.name))
    return one.input.frame.select(*columns)

"""Streams that one query of a program reads together, composite and primitive, to one source of events.

The events have one time, whatever it is called in each stream: the order key of a primitive event, the end of the match
of a composite one. At equal times primitive events come first, since a composite event is complete only once its last
event has been seen; then composite ones in the order of the queries that make them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.analyzed import MATCH_END
from kleene.engine.attributes_by_type import check_attributes
from kleene.engine.column_types import attribute_type, attributes_of
from kleene.engine.events import TYPE_OF_EVENT, check_order_key
from kleene.engine.inputs import EventSource, OrderKey, mentioned_names, open_events
from kleene.engine.several import TYPE_FIELD, column_or_nulls, unified_schema
from kleene.engine.sorting import sorted_table
from kleene.errors import SchemaError, printable
from kleene.ir.query import QueryDefinition
from kleene.options.schema import Schema
from kleene.schema import EventSchema, fits_everywhere
from kleene.source import Location

OWN_NAMES = "__kleene_"
TIME_OF_EVENT = "__kleene_time"
KIND_FIELD = pa.field("__kleene_kind", pa.string())
"""Tells which attributes an event has, if several streams have types of their own, and differ in their columns."""
ORDER_OF_EVENT = "__kleene_order_"
"""How the columns are called that hold the order key and the tie-break of primitive events."""
ORDER_OF_MATCHES = OrderKey((MATCH_END,))


@dataclass(frozen=True, slots=True)
class ReadStream:
    """A stream that a query names in FROM.

    `events` are what the caller gives, or what another query makes; `maker` is that query's place in the program.
    """

    name: str
    events: Any
    maker: int | None = None
    location: Location | None = None

    @property
    def is_composite(self) -> bool:
        return self.maker is not None


@dataclass(frozen=True, slots=True)
class Together:
    """The streams that a query reads, in the order of FROM."""

    streams: tuple[ReadStream, ...]

    @property
    def by_time(self) -> list[ReadStream]:
        """The streams in the order that their events have at equal times."""
        return sorted(self.streams, key=lambda stream: -1 if stream.maker is None else stream.maker)

    @property
    def inputs(self) -> dict[object, Any]:
        """What the caller gave, one by one."""
        found: dict[object, Any] = {}
        for stream in self.streams:
            if isinstance(stream.events, Mapping):
                found |= {(stream.name, name): part for name, part in stream.events.items()}
            elif not stream.is_composite:
                found[stream.name] = stream.events
        return found

    def locate(self, name: str) -> Location | None:
        return next(stream.location for stream in self.streams if stream.name == name)


def open_together(
    events: Together,
    order: OrderKey,
    type_column: str | None,
    definition: QueryDefinition,
    given: Schema | None = None,
) -> EventSource:
    """The events of all streams; `order` and `given` are those of primitive events."""
    streams = events.by_time
    opened = {stream.name: _opened(stream, order, type_column, definition, given) for stream in streams}
    columns = {name: source.columns for name, source in opened.items()}
    time = unified_time(order, columns, events)
    keys = unified_order(order, columns, events)
    unified = unified_attributes(columns, definition, events)
    schema = schema_together({name: source.schema for name, source in opened.items()}, unified, time)

    def read(names: Sequence[str]) -> pa.Table:
        wanted = [unified.field(name) for name in names if not name.startswith(OWN_NAMES)]
        parts = [_read(stream, opened[stream.name], wanted, time, keys) for stream in streams]
        if schema.kind_column is not None:
            parts = [_with_kind(part, stream, schema) for stream, part in zip(streams, parts, strict=True)]
        primitive = [part for stream, part in zip(streams, parts, strict=True) if not stream.is_composite]
        composite = [part for stream, part in zip(streams, parts, strict=True) if stream.is_composite]
        if primitive:
            key_names = tuple(key.name for key in keys)
            composite.insert(0, sorted_table(pa.concat_tables(primitive), key_names).drop_columns(key_names))
        return pa.concat_tables(composite)

    every = pa.schema([*unified, TYPE_FIELD, time, *([] if schema.kind_column is None else [KIND_FIELD])])
    return EventSource(every, schema, OrderKey((TIME_OF_EVENT,)), read)


def _opened(
    stream: ReadStream, order: OrderKey, type_column: str | None, definition: QueryDefinition, given: Schema | None
) -> EventSource:
    """The stream by itself; if no column tells the types of its events, they are of the type that FROM calls it."""
    if stream.is_composite:
        return open_events({stream.name: stream.events}, ORDER_OF_MATCHES, None, definition)
    events = stream.events
    if isinstance(events, Mapping):
        return open_events(events, order, type_column, definition)
    if type_column is None or type_column not in events.column_names:
        return open_events({stream.name: events}, order, None, definition)
    return open_events(events, order, type_column, definition, given and within(given, events.column_names))


def _read(
    stream: ReadStream, source: EventSource, wanted: Iterable[pa.Field], time: pa.Field, keys: Sequence[pa.Field]
) -> pa.Table:
    """The columns that are wanted, the type and the time of each event, and of a primitive one also its order."""
    type_column = source.schema.type_column
    assert type_column is not None
    there = [field.name for field in wanted if field.name in source.columns.names]
    table = source.read(list(dict.fromkeys([*there, *source.order.columns, type_column])))
    check_order_key(table, source.order.order_by)
    columns = {field: field.name for field in wanted} | {TYPE_FIELD: type_column, time: source.order.order_by[0]}
    if not stream.is_composite:
        columns |= dict(zip(keys, source.order.columns, strict=True))
    arrays = [column_or_nulls(table, field.with_name(name), stream.name) for field, name in columns.items()]
    return pa.table(arrays, schema=pa.schema(list(columns)))


def _with_kind(table: pa.Table, stream: ReadStream, schema: EventSchema) -> pa.Table:
    types = table.column(TYPE_OF_EVENT)
    named = pa.array([name for name, _ in schema.by_type or ()], pa.string())
    of_type = pc.binary_join_element_wise(kind_of_type(""), types, "")
    kinds = pc.if_else(pc.is_in(types, value_set=named), of_type, pa.scalar(kind_of_stream(stream.name)))
    return table.append_column(KIND_FIELD, kinds)


def without_composite(table: pa.Table, events: Together) -> pa.Table:
    """The primitive events alone."""
    composite = [stream.name for stream in events.streams if stream.is_composite]
    is_composite = pc.is_in(table.column(TYPE_OF_EVENT), value_set=pa.array(composite, pa.string()))
    return table.filter(pc.invert(is_composite))


# --- what is known of streams together; the same in process and on Spark ---------------------------------------------


def within(given: Schema, columns: Iterable[str]) -> Schema:
    """The schema as far as it speaks of these columns: that of a program speaks of all its inputs."""
    there = set(columns)
    return Schema({name: [one for one in own if one in there] for name, own in given.types})


def check_given(given: Schema | None, columns: Iterable[Sequence[str]]) -> None:
    """An error if the schema names an attribute that no input has."""
    if given is not None:
        check_attributes(given, list(dict.fromkeys(name for names in columns for name in names)))


def unified_attributes(columns: Mapping[str, pa.Schema], definition: QueryDefinition, events: Together) -> pa.Schema:
    attributes = {
        name: pa.schema([field for field in own if field.name != TYPE_OF_EVENT]) for name, own in columns.items()
    }
    for stream, own in attributes.items():
        ours = next((name for name in own.names if name.startswith(OWN_NAMES)), None)
        if ours is not None:
            raise SchemaError(
                f"the stream '{printable(stream)}' has a column '{printable(ours)}', a name that Kleene uses",
                events.locate(stream),
                "Rename it.",
            )
    return unified_schema(attributes, mentioned_names(definition, OrderKey(())), events.locate)


def unified_order(order: OrderKey, columns: Mapping[str, pa.Schema], events: Together) -> list[pa.Field]:
    """The columns that put primitive events in order, under names that no stream has."""
    primitive = [stream.name for stream in events.streams if not stream.is_composite]
    found = []
    for number, name in enumerate(order.columns if primitive else ()):
        own = {stream: pa.schema([columns[stream].field(name)]) for stream in primitive}
        found.append(unified_schema(own, None, events.locate).field(0).with_name(f"{ORDER_OF_EVENT}{number}"))
    return found


def unified_time(order: OrderKey, columns: Mapping[str, pa.Schema], events: Together) -> pa.Field:
    """The time of all events; an error at a stream whose times are of another type than those before it in FROM."""
    times: dict[str, pa.Schema] = {}
    known: tuple[str, pa.DataType] | None = None
    for stream in events.streams:
        time = columns[stream.name].field(MATCH_END if stream.is_composite else order.order_by[0])
        times[stream.name] = pa.schema([time.with_name(TIME_OF_EVENT)])
        if fits_everywhere(attribute_type(time.type)):
            continue
        if known is not None and attribute_type(known[1]) != attribute_type(time.type):
            raise SchemaError(
                f"the times of '{printable(stream.name)}' are {time.type}, but those of '{printable(known[0])}' are "
                f"{known[1]}",
                stream.location,
                "Streams that are read together have times of one type: cast one of them.",
            )
        known = known or (stream.name, time.type)
    return unified_schema(times, None, events.locate).field(0)


def schema_together(schemas: Mapping[str, EventSchema], unified: pa.Schema, time: pa.Field) -> EventSchema:
    """What is known of the events of all streams.

    A type that some stream names has the attributes that it has in any of them. Others may be in every stream that has
    a type column: their events have the attributes of the stream that they come from.
    """
    by_type: dict[str, frozenset[str]] = {}
    others: dict[str, frozenset[str]] = {}
    for stream, schema in schemas.items():
        for name, own in schema.by_type or ():
            by_type[name] = by_type.get(name, frozenset()) | own
        every = schema.other_types if schema.by_type is not None else frozenset(name for name, _ in schema.attributes)
        if every is not None:
            others[stream] = every
    sure, any_of_them = None, frozenset[str]()
    for every in others.values():
        sure, any_of_them = every if sure is None else sure & every, any_of_them | every
    found = EventSchema(
        attributes_of(unified.append(time)),
        TYPE_OF_EVENT,
        tuple(by_type.items()),
        sure,
        frozenset((TIME_OF_EVENT,)).union(*(schema.hidden for schema in schemas.values())),
    )
    if sure is None or sure == any_of_them:
        return found
    kinds = {kind_of_type(name): own for name, own in by_type.items()}
    kinds |= {kind_of_stream(stream): own for stream, own in others.items()}
    return replace(found, kind_column=KIND_FIELD.name, by_kind=tuple(kinds.items()), unsure=any_of_them - sure)


def kind_of_type(event_type: str) -> str:
    return f"type {event_type}"


def kind_of_stream(stream: str) -> str:
    return f"stream {stream}"

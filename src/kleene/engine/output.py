"""Matches to the rows that people see (SEMANTICS §3 "Output")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import MATCH_END, MATCH_START, AnalyzedQuery, Component
from kleene.analysis.conversions import type_of
from kleene.engine.events import ALL_DIGITS, Events, decoded
from kleene.engine.matches import Array, FlatMatches
from kleene.errors import SchemaError, listed, printable
from kleene.ir import expr as ir
from kleene.ir.evaluate import EventBindings, evaluate
from kleene.ir.expr import Position
from kleene.ir.text import expression_text
from kleene.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    MOST_DECIMAL_DIGITS,
    NULL,
    STRING,
    TIME,
    ArrayType,
    DecimalType,
    DurationType,
    MapType,
    StructType,
    TimestampType,
    Type,
)

Positions = Sequence[int | None] | Array
_ARROW_TYPES: dict[Type, pa.DataType] = {
    INTEGER: pa.int64(),
    FLOAT: pa.float64(),
    BOOLEAN: pa.bool_(),
    STRING: pa.string(),
    DATE: pa.date32(),
    TIME: pa.time64("us"),
}
# These give out a value of an event as it is, so that the column keeps the type it had in the input.
_KEEPS_TYPE = ("any_value", "first", "last", "max", "max_by", "min", "min_by", "mode")


def output_schema(query: AnalyzedQuery, columns: pa.Schema, with_times: bool = False) -> pa.Schema:
    """The columns of the result; `with_times` adds the start and the end of the match to those of RETURN."""
    times = [columns.field(query.order_by[0]).with_name(name) for name in (MATCH_START, MATCH_END)]
    if query.measures is not None:
        fields = [arrow_field(measure.expression, columns).with_name(measure.name) for measure in query.measures]
        return pa.schema(fields + times if with_times else fields)
    fields = [columns.field(name) for name in query.key]
    for component in query.components:
        if component.named:
            struct = pa.struct([columns.field(name) for name in _attributes(component, query)])
            fields.append(pa.field(component.name, pa.list_(struct) if component.is_kleene else struct))
    return pa.schema(fields + times)


def output_table(
    query: AnalyzedQuery,
    events: Events,
    matches: FlatMatches,
    with_times: bool = False,
    computed: Mapping[int, pa.Array] | None = None,
) -> pa.Table:
    """A row for each match, in the order of the matches; `computed` are columns of RETURN that are there already."""

    def measure(number: int, expression: ir.Expr) -> pa.Array:
        known = (computed or {}).get(number)
        return known if known is not None else _measure_column(query, events, expression, matches)

    def component(number: int) -> pa.Array:
        return _component_column(query, events, number, matches)

    return table_of_columns(query, events, (matches.first, matches.last), component, measure, with_times)


def table_of_columns(
    query: AnalyzedQuery,
    events: Events,
    ends: tuple[Positions, Positions],
    component: Callable[[int], pa.Array],
    measure: Callable[[int, ir.Expr], pa.Array],
    with_times: bool,
) -> pa.Table:
    """The columns of the result for matches with these first and last events; `component` and `measure` make theirs."""
    if query.measures is None:
        arrays = [taken(events.table, name, ends[0]) for name in query.key]
        arrays += [component(number) for number, own in enumerate(query.components) if own.named]
    else:
        arrays = [measure(number, item.expression) for number, item in enumerate(query.measures)]
    if query.measures is None or with_times:
        arrays += [taken(events.table, query.order_by[0], positions) for positions in ends]
    return as_schema(arrays, output_schema(query, events.table.schema, with_times))


def is_taken(expression: ir.Expr) -> bool:
    """Whether the values of a measure are those of events, taken as they are."""
    match expression:
        case ir.Attribute() | ir.Aggregate(function="collect"):
            return True
        case ir.Aggregate(function="first" | "last", argument=ir.Attribute()):
            return True
    return False


def as_type(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if array.type.equals(type_):
        return array
    if pa.types.is_list(type_) and pa.types.is_null(type_.value_type):  # Arrow's cast loses the lengths of such lists
        return pa.array(array.to_pylist(), type_)
    return array.cast(type_)


def as_schema(columns: Sequence[pa.Array | pa.ChunkedArray], schema: pa.Schema) -> pa.Table:
    """The columns as a table of the schema."""
    return pa.table([as_type(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)


def _attributes(component: Component, query: AnalyzedQuery) -> tuple[str, ...]:
    assert query.schema is not None
    return query.schema.attributes_of(component.types) if component.types else tuple(query.schema)


def taken(table: pa.Table, name: str, positions: Positions | pa.Array) -> pa.Array:
    """The column's values at the positions, NULL where there is none."""
    at = positions if isinstance(positions, pa.Array) else pa.array(positions, pa.int64())
    found = decoded(table.column(name).take(at))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def values_at(column: pa.Array | pa.ChunkedArray, places: Array) -> pa.Array:
    """The values at the places, NULL where the place is -1. NumPy gathers plain numbers several times faster."""
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    is_time = pa.types.is_timestamp(column.type) or pa.types.is_date64(column.type) or pa.types.is_duration(column.type)
    if column.null_count or not len(column) or not (is_number or is_time) or pa.types.is_float16(column.type):
        found = decoded(column.take(pa.array(places, pa.int64(), mask=places < 0)))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    if isinstance(column, pa.ChunkedArray):  # one chunk is not copied
        whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    else:
        whole = column
    values = (whole.view(pa.int64()) if is_time else whole).to_numpy()
    is_missing = places < 0
    gathered = pa.array(values[places], mask=is_missing if is_missing.any() else None)
    return gathered.view(column.type)


def _offsets(lengths: Iterable[int] | Array) -> pa.Array:
    return pa.array(list(accumulate(lengths, initial=0)), pa.int32())


def _component_column(query: AnalyzedQuery, events: Events, number: int, matches: FlatMatches) -> pa.Array:
    component = query.components[number]
    positions = matches.of_component(number)
    names = _attributes(component, query)
    if not component.is_kleene and len(positions) < len(matches):
        return _optional_column(events, names, matches.lengths[:, number] > 0, positions)
    struct = pa.StructArray.from_arrays([taken(events.table, name, positions) for name in names], names=list(names))
    if not component.is_kleene:
        return struct
    return pa.ListArray.from_arrays(_offsets(matches.lengths[:, number]), struct)


def _optional_column(events: Events, names: Sequence[str], is_there: Array, positions: Array) -> pa.Array:
    """The events of a step that some matches have passed over: there it is NULL."""
    places = np.full(len(is_there), -1, np.int64)
    places[is_there] = positions
    parts = [values_at(events.table.column(name), places) for name in names]
    fields = [pa.field(name, part.type) for name, part in zip(names, parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=pa.array(~is_there))


def _measure_column(query: AnalyzedQuery, events: Events, expression: ir.Expr, matches: FlatMatches) -> pa.Array:
    names = [component.name for component in query.components]
    match expression:
        case ir.Attribute(variable=str() as variable, name=name, position=position):
            number = names.index(variable)
            ahead = matches.lengths[:, number] - 1 if position is Position.LAST else 0
            return taken(events.table, name, matches.positions[matches.begins(number) + ahead])
        case ir.Aggregate(function="collect", argument=ir.Attribute(variable=str() as variable, name=name)):
            number = names.index(variable)
            values = taken(events.table, name, matches.of_component(number))
            return pa.ListArray.from_arrays(_offsets(matches.lengths[:, number]), values)
        case ir.Aggregate(
            function="first" | "last" as function, argument=ir.Attribute(variable=str() as variable, name=name)
        ):
            is_valid = events.table.column(name).is_valid().to_pylist()
            number, step = names.index(variable), 1 if function == "first" else -1
            parts = (matches.match(m).selected[number] for m in range(len(matches)))
            chosen = [next((p for p in part[::step] if is_valid[p]), None) for part in parts]
            return taken(events.table, name, chosen)
    selected = (dict(zip(names, matches.match(m).selected, strict=True)) for m in range(len(matches)))
    values = [value_of(expression, events, own) for own in selected]
    return computed_column(expression, values, events.table.schema)


def value_of(expression: ir.Expr, events: Events, selected: Mapping[str, Sequence[int]]) -> Any:
    # An attribute that the event's type lacks is NULL in the table, which is what RETURN shows for it.
    return evaluate(expression, EventBindings(selected, {}, events.values, lambda position, name: False))


def arrow_field(expression: ir.Expr, columns: pa.Schema) -> pa.Field:
    """The column of an expression's values; a value given out as it is keeps its field, and what that remembers."""
    match expression:
        case ir.Attribute(name=name):
            return columns.field(name)
        case ir.Navigation(argument=argument):
            return arrow_field(argument, columns)
        case ir.Aggregate(argument=argument, type=ArrayType(element=element)) if argument.type == element:
            return pa.field("", pa.list_(arrow_field(argument, columns).with_name("element")))
        case ir.Aggregate(function=function, argument=ir.Attribute() as argument) if function in _KEEPS_TYPE:
            return columns.field(argument.name)
        case ir.Aggregate(function="sum" | "avg" as function, type=DecimalType(scale=scale)):
            digits = _digits(expression.argument, columns) + (10 if function == "sum" else 4)
            return pa.field("", pa.decimal128(min(MOST_DECIMAL_DIGITS, digits), scale))
    return pa.field("", arrow_type(type_of(expression)))


def _digits(expression: ir.Expr, columns: pa.Schema) -> int:
    """How many digits the values of an expression that is a decimal may have."""
    match expression:
        case ir.Attribute(name=name) if pa.types.is_decimal(columns.field(name).type):
            return int(columns.field(name).type.precision)
        case ir.Cast(digits=digits):
            return digits
    return MOST_DECIMAL_DIGITS


def arrow_type(type_: Type) -> pa.DataType:
    match type_:
        case DecimalType(scale=scale):
            return pa.decimal128(MOST_DECIMAL_DIGITS, scale)
        case TimestampType(zone=zone, unit=unit):
            return pa.timestamp(unit, zone)
        case DurationType(unit=unit):
            return pa.duration(unit)
        case ArrayType(element=element):
            return pa.list_(arrow_type(element))
        case StructType(fields=fields):
            return pa.struct([pa.field(name, arrow_type(own)) for name, own in fields])
        case MapType(key=key, value=value):
            return pa.map_(arrow_type(key), arrow_type(value))
    return _ARROW_TYPES.get(type_, pa.null())


def computed_column(expression: ir.Expr, values: list[Any], columns: pa.Schema) -> pa.Array:
    """Plain values of an expression as an Arrow array; an error that names the column if there can be none."""
    try:
        return arrow_values(values, type_of(expression), arrow_field(expression, columns).type)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        read = sorted({node.name for node in ir.walk(expression) if isinstance(node, ir.Attribute)})
        raise SchemaError(
            f"{printable(expression_text(expression), 200)} cannot be returned: values of the column {listed(read)} "
            f"can only be passed on as they are ({printable(str(error), 200)})",
            hint="Cast the column to a number, a string or a time first.",
        ) from None


def arrow_numbers(values: Array, is_null: Array, type_: Type, target: pa.DataType) -> pa.Array:
    """Plain values that are numbers, in an array, as an Arrow array of the target type."""
    if type_ == NULL:
        return pa.nulls(len(values), target)
    if type_ == BOOLEAN:
        return pa.array(values != 0, mask=is_null).cast(target)
    return _in_units(pa.array(values, mask=is_null), type_, target)


def _in_units(numbers: pa.Array, type_: Type, target: pa.DataType) -> pa.Array:
    """Plain numbers as the times, dates or lengths of time that they are."""
    if isinstance(type_, TimestampType):
        numbers = numbers.cast(pa.timestamp(type_.unit, target.tz))
    elif type_ == DATE:
        numbers = numbers.cast(pa.int32()).cast(pa.date32())
    elif isinstance(type_, DurationType):
        numbers = numbers.cast(pa.duration(type_.unit))
    elif type_ == TIME:
        numbers = numbers.cast(pa.time64("us"))
    return numbers.cast(target)


def arrow_values(values: list[Any], type_: Type, target: pa.DataType) -> pa.Array:
    """Plain values as an Arrow array of the target type."""
    match type_:
        case DecimalType(scale=scale):
            exact = [None if value is None else Decimal(value).scaleb(-scale, ALL_DIGITS) for value in values]
            return pa.array(exact, pa.decimal128(38, scale)).cast(target)
        case TimestampType() | DurationType():
            return _in_units(pa.array(values, pa.int64()), type_, target)
        case ArrayType(element=element):
            flat = [item for value in values for item in value or ()]
            lists = pa.ListArray.from_arrays(
                _offsets(len(value or ()) for value in values),
                arrow_values(flat, element, target.value_type),
                mask=pa.array([value is None for value in values], pa.bool_()),
            )
            return lists if lists.type.equals(target) else lists.cast(target)
        case StructType(fields=fields):
            parts = [
                arrow_values([value and value[number] for value in values], own, target.field(number).type)
                for number, (_, own) in enumerate(fields)
            ]
            is_null = pa.array([value is None for value in values], pa.bool_())
            return pa.StructArray.from_arrays(parts, fields=list(target), mask=is_null)
        case MapType(key=key, value=own):
            names = arrow_values([name for value in values for name in value or ()], key, target.key_type)
            items = [item for value in values for item in (value or {}).values()]
            offsets: list[int | None] = [*accumulate((len(value or ()) for value in values), initial=0)]
            begins = [None if value is None else at for value, at in zip(values, offsets, strict=False)]
            places = pa.array([*begins, offsets[-1]], pa.int32())
            return pa.MapArray.from_arrays(places, names, arrow_values(items, own, target.item_type), type=target)
        case _ if type_ in (DATE, TIME):
            return _in_units(pa.array(values, pa.int64()), type_, target)
    return pa.array(values, _ARROW_TYPES.get(type_, target)).cast(target)

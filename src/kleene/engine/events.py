"""Events in their order, as columns an engine can read.

An engine sees every value in one plain form, whatever the input's: integers, floats, booleans and strings; timestamps
and durations as microseconds, dates as days, decimals as integers without their point. NULL is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from itertools import pairwise
from math import ceil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.unencoded import unencoded
from kleene.errors import ExecutionError, SchemaError, printable
from kleene.ir.evaluate import MICROSECONDS_PER_DAY, PlainValue
from kleene.ir.functions.nested import map_value
from kleene.ir.options import Window, WindowUnit
from kleene.schema import (
    DATE,
    FLOAT,
    INTEGER,
    STRING,
    TIME,
    ArrayType,
    DecimalType,
    DurationType,
    EventSchema,
    MapType,
    StructType,
    TimestampType,
    Type,
    a_type,
    per_microsecond,
)

TYPE_OF_EVENT = "__kleene_type"
"""The column that tells the type of an event when the input came as several inputs by name."""


@dataclass(slots=True)
class Events:
    """A table of events, already sorted; columns are converted when they are first read."""

    table: pa.Table
    schema: EventSchema
    order_by: tuple[str, ...]
    _columns: dict[str, list[PlainValue]] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def values(self, name: str) -> list[PlainValue]:
        if name not in self._columns:
            self._columns[name] = plain_values(self.table.column(name), self.schema.type_of(name), name)
        return self._columns[name]

    def add(self, columns: dict[str, list[PlainValue]]) -> None:
        """Further columns, which were computed."""
        self._columns |= columns

    def times(self) -> list[int | float]:
        """The time of each event: microseconds for timestamps and dates, else the number itself."""
        name = self.order_by[0]
        return times_of(self.values(name), self.schema.type_of(name))

    def types(self) -> list[str | None] | None:
        """The type of each event, or None where every event is of the one type that the pattern names."""
        name = self.schema.type_column
        if name is None:
            return None
        column: list[str | None] = self.table.column(name).to_pylist()
        return column


def decoded(column: Any) -> Any:
    """The column, or array, without an encoding: strings may travel as codes in a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def times_of(values: list[PlainValue], type_: Type) -> list[Any]:
    """Times that can be subtracted: microseconds for timestamps and dates, else the numbers themselves."""
    if type_ == DATE:
        return [None if days is None else int(days) * MICROSECONDS_PER_DAY for days in values]
    return values


def window_size(window: Window, time_type: Type) -> Any:
    """The window in the units of the times, which for a decimal order key have lost their point."""
    if isinstance(time_type, DecimalType):
        return window.size * 10**time_type.scale
    if isinstance(time_type, TimestampType):
        return window.size * (per_microsecond(time_type) if window.unit is WindowUnit.TIME else 1)
    return float(window.size) if time_type == FLOAT else window.size


def window_time(window: Window, time_type: Type) -> int | float:
    """The window in the units of the times, no less than it is."""
    size = window_size(window, time_type)
    if time_type == FLOAT:
        return float(size)
    return ceil(size) if isinstance(size, Decimal) else int(size)


def plain_values(column: pa.ChunkedArray, type_: Type, name: str) -> list[PlainValue]:
    """The column's values in plain form."""
    try:
        return _plain(column, type_)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise SchemaError(
            f"the column '{printable(name)}' of type {column.type} holds values that do not fit {a_type(type_)}: "
            f"{printable(str(error), 200)}",
            hint="Cast it to microseconds (timestamps) or to a 64-bit number first.",
        ) from None


def _plain(column: pa.ChunkedArray, type_: Type) -> list[PlainValue]:
    match type_:
        case TimestampType():
            column = column.cast(pa.timestamp(type_.unit, column.type.tz)).cast(pa.int64())
        case DecimalType(scale=scale):
            return _unscaled(column, scale)
        case _ if type_ == INTEGER:
            column = column.cast(pa.int64())
        case _ if type_ == FLOAT:
            column = column.cast(pa.float64())
        case _ if type_ == STRING:
            column = column.cast(pa.string())
        case _ if type_ == DATE:
            column = column.cast(pa.date32()).cast(pa.int32())
        case _ if type_ == TIME:
            column = column.cast(pa.time64("us")).cast(pa.int64())
        case DurationType():
            column = column.cast(pa.duration(type_.unit)).cast(pa.int64())
        case ArrayType() | StructType() | MapType():
            return _nested(column, type_)
    values: list[PlainValue] = column.to_pylist()
    return values


def _nested(column: pa.ChunkedArray, type_: Type) -> list[Any]:
    """Arrays as lists, structs as tuples, maps as dicts; of keys that are given twice the first counts."""
    values: list[Any] = []
    for chunk in unencoded(column).chunks:
        is_known = chunk.is_valid().to_pylist()
        match type_:
            case StructType(fields=fields):
                parts = [
                    _plain(pa.chunked_array([part]), inner)
                    for part, (_, inner) in zip(chunk.flatten(), fields, strict=True)
                ]
                own: Iterable[Any] = zip(*parts, strict=True)
            case MapType(key=key, value=item):
                keys, items = _plain(pa.chunked_array([chunk.keys]), key), _plain(pa.chunked_array([chunk.items]), item)
                own = (
                    map_value(zip(keys[a:b], items[a:b], strict=True)) for a, b in pairwise(chunk.offsets.to_pylist())
                )
            case ArrayType(element=element):
                lists = chunk if pa.types.is_list(chunk.type) else chunk.cast(pa.list_(chunk.type.value_type))
                flat = _plain(pa.chunked_array([lists.values]), element)
                own = (flat[a:b] for a, b in pairwise(lists.offsets.to_pylist()))
        values += [value if known else None for value, known in zip(own, is_known, strict=True)]
    return values


def _unscaled(column: pa.ChunkedArray, scale: int) -> list[PlainValue]:
    values = column.to_pylist()
    if pa.types.is_integer(column.type):  # unsigned ones, which may be larger than the signed
        return list(values)
    return [None if value is None else int(ALL_DIGITS.scaleb(value, scale)) for value in values]


ALL_DIGITS = Context(prec=80)


def check_order_key(table: pa.Table, order_by: tuple[str, ...]) -> None:
    """Every event has its place in the order: no order column is NULL, and none is NaN."""
    for name in order_by:
        column = table.column(name)
        nulls, nans = column.null_count, 0
        if pa.types.is_floating(column.type):
            nans = pc.sum(pc.is_nan(column.cast(pa.float64()))).as_py() or 0
        if nulls or nans:
            what = " or ".join(word for word, count in (("NULL", nulls), ("NaN", nans)) if count)
            raise null_order_key(name, nulls + nans, what)


def null_order_key(name: str, count: int, what: str = "NULL") -> ExecutionError:
    rows = "row has" if count == 1 else "rows have"
    return ExecutionError(
        f"{count:,} {rows} no order key: the column '{printable(name)}' is {what} there",
        hint=f"Filter them out, or fill them in: without '{printable(name)}' an event has no place in the order.",
    )

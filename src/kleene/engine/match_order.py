"""Where matches stand in the output, as a column that sorts: for results whose rows have no order, as Spark's.

An event is known by its values in the columns that events are ordered by. Sorting such a struct, ascending and with
NULLs first as Spark does, is sorting the events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.row_pattern import SortColumn
from kleene.engine.events import decoded
from kleene.engine.matches import Array


def event_type(columns: pa.Schema, order: Sequence[SortColumn]) -> pa.DataType:
    """What an event is known by. The flag before each value puts NULLs where they belong."""
    fields: list[tuple[str, pa.DataType]] = []
    for number, item in enumerate(order):
        type_ = columns.field(item.name).type
        fields += [(f"{number}_is_null", pa.bool_()), (f"{number}", _turned_type(type_) if item.descending else type_)]
    return pa.struct(fields)


def event_keys(table: pa.Table, positions: Array, order: Sequence[SortColumn]) -> pa.Array:
    """What the events in these positions are known by."""
    taken = table.select([item.name for item in order]).take(pa.array(positions, pa.int64())).combine_chunks()
    arrays: list[pa.Array] = []
    for item in order:
        column = decoded(taken.column(item.name))
        values = column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
        is_last = values.is_valid() if item.nulls_first else values.is_null()
        arrays += [is_last, _turned(values) if item.descending else values]
    names = [label for number in range(len(order)) for label in (f"{number}_is_null", f"{number}")]
    return pa.StructArray.from_arrays(arrays, names=names)


_NUMBERS = ("among_equals", "number", "row")


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The order of the rows of row patterns and of the regular-expression operator: `order` is that of the events.

    By the event that completes the match, then by the one it begins with, then by the number of the match, and inside
    a match from row to row. `among_equals` tells first events apart that do not differ in any value.
    """

    name: str
    order: tuple[SortColumn, ...]

    def field(self, columns: pa.Schema) -> pa.Field:
        event = event_type(columns, self.order)
        numbers = [(name, pa.int64()) for name in _NUMBERS]
        return pa.field(self.name, pa.struct([("last", event), ("first", event), *numbers]))

    def appended(self, made: pa.Table, events: pa.Table, rows: RowPlaces) -> pa.Table:
        """The rows of the output with where they stand."""
        count = made.num_rows
        equals = np.zeros(count, np.int64) if rows.among_equals is None else rows.among_equals
        parts = [
            event_keys(events, rows.last, self.order),
            event_keys(events, rows.first, self.order),
            *(pa.array(numbers, pa.int64()) for numbers in (equals, rows.numbers, rows.rows)),
        ]
        return made.append_column(self.name, pa.StructArray.from_arrays(parts, names=["last", "first", *_NUMBERS]))


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """Of rows of the output: the positions of the last and the first event of the match, its number, and the row's."""

    last: Array
    first: Array
    numbers: Array
    rows: Array
    among_equals: Array | None = None

    @classmethod
    def of(cls, order: Sequence[tuple[int, ...]]) -> RowPlaces:
        """Of rows that know their place: by end, beginning, number and row; or, the operator's, by end alone."""
        full = [(*own, *[own[0], 0, 0][len(own) - 1 :]) for own in order]
        columns = np.array(full, np.int64).reshape(-1, 4)
        return cls(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3])


# --- descending values: each is turned into one that ascends


def _turned_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(type_) or pa.types.is_boolean(type_) or pa.types.is_null(type_):
        return type_
    return pa.binary() if _is_bytes(type_) else pa.int64()


def _is_bytes(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_kind(type_) for is_kind in kinds)


def _turned(values: pa.Array) -> pa.Array:
    """Values that ascend where the given ones descend."""
    type_ = values.type
    if pa.types.is_null(type_):
        return values
    if pa.types.is_boolean(type_):
        return pc.invert(values)
    if pa.types.is_decimal(type_):
        return pc.negate(values)
    if _is_bytes(type_):
        buffers = (value.as_buffer() for value in values.cast(pa.binary()))
        return pa.array([None if buffer is None else _turned_bytes(buffer) for buffer in buffers], pa.binary())
    if pa.types.is_floating(type_):
        numbers = _float_numbers(values)
    else:
        if pa.types.is_date32(type_) or pa.types.is_time32(type_):
            values = values.cast(pa.int32())
        numbers = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return pa.array(~numbers, pa.int64(), mask=values.is_null().to_numpy(zero_copy_only=False))


def _float_numbers(values: pa.Array) -> Array:
    """Whole numbers in the order of the floats: 0.0 is -0.0, and NaN, of which there is one, is the largest."""
    floats = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0
    bits = np.where(np.isnan(floats), np.nan, floats).view(np.int64)
    return np.asarray(np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits))


def _turned_bytes(value: pa.Buffer) -> bytes:
    """Two bytes for each, so that what goes on comes before what ends: 0 and the complement, and 1 behind the last."""
    given = np.frombuffer(value, np.uint8)
    turned = np.zeros(2 * len(given) + 1, np.uint8)
    turned[1:-1:2] = 255 - given
    turned[-1] = 1
    return turned.tobytes()

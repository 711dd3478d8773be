"""Tables in order. Sorting is stable: rows of equal keys keep the order of the input."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.row_pattern import SortColumn
from kleene.errors import SchemaError, printable


def sorted_table(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """The table in ascending order of the columns, NULLs last."""
    if not names or table.num_rows < 2:
        return table
    columns = [sortable(table.column(name), name) for name in names]
    keys = pa.table(columns, names=[str(number) for number in range(len(columns))])
    by = [(str(number), "ascending") for number in range(len(columns))]
    return table.take(pc.sort_indices(keys, by))


def table_in_order(table: pa.Table, order: Sequence[SortColumn]) -> pa.Table:
    """The table in an order in which each column has its own direction and its own place for NULLs."""
    if not order or table.num_rows < 2:
        return table
    if all(not column.descending and not column.nulls_first for column in order):
        return sorted_table(table, tuple(column.name for column in order))
    # From the least important key to the most: each sort is stable.
    for column in reversed(order):
        key = sortable(table.column(column.name), column.name)
        direction = "descending" if column.descending else "ascending"
        table = table.take(pc.sort_indices(pa.table({"key": key}), [("key", direction)]))
        if column.descending and pa.types.is_floating(key.type):
            table = _first(table, pc.fill_null(pc.is_nan(table.column(column.name).cast(pa.float64())), False))
        if column.nulls_first:
            table = _first(table, pc.is_null(table.column(column.name)))
    return table


def _first(table: pa.Table, wanted: pa.ChunkedArray) -> pa.Table:
    """The wanted rows before the others; Arrow sorts NaN and NULL last, Spark takes NaN for the largest number."""
    return pa.concat_tables([table.filter(wanted), table.filter(pc.invert(wanted))])


def is_sortable(type_: pa.DataType) -> bool:
    special = (pa.types.is_null, pa.types.is_duration, pa.types.is_floating)
    return any(is_kind(type_) for is_kind in (*_SORTABLE, *special))


def sortable(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The column in a form that Arrow can sort and that sorts by value."""
    type_ = column.type
    if pa.types.is_null(type_) or pa.types.is_duration(type_):
        return column.cast(pa.int64())
    if pa.types.is_floating(type_):
        # -0.0 and 0.0 are one value, and adding zero makes them one.
        return pc.add(column.cast(pa.float64()), pa.scalar(0.0))
    if pa.types.is_decimal(type_) and type_.bit_width < 128:
        return column.cast(pa.decimal128(type_.precision, type_.scale))
    if not any(is_kind(type_) for is_kind in _SORTABLE):
        raise SchemaError(
            f"cannot order by the column '{printable(name)}' of type {type_}",
            hint="Order by columns of numbers, strings, booleans, dates or timestamps.",
        )
    return column


_SORTABLE = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
)

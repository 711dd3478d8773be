"""Tables in order. Sorting is stable: rows of equal keys keep the order of the input."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.row_pattern import SortColumn
from kleene.engine.stretches import holds_in_stretches
from kleene.errors import SchemaError, printable

Array = np.ndarray[Any, Any]


def sorted_table(table: pa.Table, names: tuple[str, ...], threads: int = 1) -> pa.Table:
    """The table in ascending order of the columns, NULLs last."""
    if not names or table.num_rows < 2:
        return table
    columns = [sortable(table.column(name), name) for name in names]
    if _are_in_order([(column, False) for column in columns], threads):
        return table
    keys = pa.table(columns, names=[str(number) for number in range(len(columns))])
    by = [(str(number), "ascending") for number in range(len(columns))]
    return table.take(pc.sort_indices(keys, by))


def table_in_order(table: pa.Table, order: Sequence[SortColumn], threads: int = 1) -> pa.Table:
    """The table in an order in which each column has its own direction and its own place for NULLs."""
    if not order or table.num_rows < 2:
        return table
    if all(not column.descending and not column.nulls_first for column in order):
        return sorted_table(table, tuple(column.name for column in order), threads)
    keys = [(sortable(table.column(column.name), column.name), column.descending) for column in order]
    if _are_in_order(keys, threads):
        return table
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


def _are_in_order(keys: Sequence[tuple[pa.ChunkedArray, bool]], threads: int) -> bool:
    """Whether the rows stand in the order of the keys, each with whether it descends; False where that is not known.

    NULLs and NaN have places of their own, so with one of them it is not known.
    """
    ties: pa.Array | None = None  # rows that do not differ from the next in the keys so far; None for all rows
    for number, (column, descends) in enumerate(keys, 1):
        if column.null_count:
            return False
        does_follow = "greater_equal" if descends else "less_equal"
        if ties is None:
            if not holds_in_stretches(partial(_all_neighbours, does_follow), column, threads):
                return False
            if number == len(keys):
                break
            one, other = column.slice(0, len(column) - 1), column.slice(1)
        else:
            one, other = column.take(ties), column.take(pc.add(ties, 1))
            if not pc.all(getattr(pc, does_follow)(one, other)).as_py():
                return False
        equal = pa.array(np.flatnonzero(pc.equal(one, other).to_numpy()))
        ties = equal if ties is None else ties.take(equal)
        if not len(ties):
            break
    return True


def _all_neighbours(compare: str, column: pa.ChunkedArray) -> bool:
    """Whether each value compares so with the next, by a function that Arrow and NumPy have."""
    if column.num_chunks == 1 and (pa.types.is_int64(column.type) or pa.types.is_timestamp(column.type)):
        values = column.chunk(0).view(pa.int64()).to_numpy()
        return bool(getattr(np, compare)(values[:-1], values[1:]).all())  # twice as fast
    return bool(pc.all(getattr(pc, compare)(column.slice(0, len(column) - 1), column.slice(1))).as_py())


def differ_from_next(column: pa.ChunkedArray, threads: int) -> bool:
    """Whether each value of a column without NULLs differs from the next."""
    return holds_in_stretches(partial(_all_neighbours, "not_equal"), column, threads)


def order_numbers(column: pa.ChunkedArray) -> Array:
    """Whole numbers in the same order as the values, which are numbers or times."""
    if pa.types.is_floating(column.type):
        bits = (column.to_numpy().astype(np.float64) + 0.0).view(np.int64)
        return np.asarray(np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits))
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return np.asarray(column.cast(pa.int64()).to_numpy())


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

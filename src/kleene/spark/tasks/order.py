"""Events in order inside a Spark task: by the number of their group, then by the order key, then by the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import SortColumn
from kleene.engine.events import decoded
from kleene.engine.matches import Array
from kleene.engine.sorting import order_numbers, table_in_order
from kleene.engine.spilling import Sorter
from kleene.spark.marks import GROUP

SORTED_AT_ONCE = 160 << 20
"""Bytes of events that are sorted in memory; of more, runs of so many are written to disk."""


def sorted_tables(
    batches: Iterable[pa.Table], order: TaskOrder, most_bytes: int = SORTED_AT_ONCE
) -> Iterator[pa.Table]:
    """All events in order, in tables of any size."""
    sorter = Sorter(order, most_bytes)
    for batch in batches:
        sorter.add(batch)
    yield from sorter.tables()


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """The order of events in a group: the first column is a number or a time that is never missing; then the others."""

    columns: tuple[SortColumn, ...]

    @property
    def decides_ties(self) -> bool:
        return len(self.columns) > 1

    def sorted(self, table: pa.Table) -> pa.Table:
        """The events by group and order; strings come out as codes in a dictionary, which are cheaper to move."""
        table = compacted(table)
        return self._taken(table, *self.keys(table), *_ranks(table.column(GROUP)))

    def sorted_by_time(self, table: pa.Table) -> pa.Table:
        """Events that are all of one group, in their order."""
        no_groups = np.zeros(table.num_rows, np.int64)
        return self._taken(table, no_groups, order_numbers(table.column(self.columns[0].name)), no_groups, 1)

    def _taken(self, table: pa.Table, groups: Array, times: Array, ranks: Array, count: int) -> pa.Table:
        """The table in order; `ranks` are those of the groups, of which there are `count`."""
        order = np.arange(len(times)) if _ascends(times) else np.argsort(times, kind="stable")
        for shift in range(0, max(count - 1, 0).bit_length(), 16):
            digits = ((ranks >> shift) & 0xFFFF).astype(np.uint16)
            order = order[np.argsort(digits[order], kind="stable")]
        self._decide_ties(table, order, groups, times)
        return table if _ascends(order) else table.take(pa.array(order))

    def keys(self, table: pa.Table) -> tuple[Array, Array]:
        """What the events are sorted by in the first place, as whole numbers: their group, their time."""
        first = self.columns[0]
        times = order_numbers(table.column(first.name))
        return table.column(GROUP).to_numpy(), ~times if first.descending else times

    def breaks_ties(self, table: pa.Table) -> bool:
        """Whether events of one group and time do not stand in the order of the other columns."""
        order = np.arange(table.num_rows)
        self._decide_ties(table, order, *self.keys(table))
        return not _ascends(order)

    def _decide_ties(self, table: pa.Table, order: Array, groups: Array, times: Array) -> None:
        """Puts events of one group and time in the order of their other columns."""
        if not self.decides_ties or len(order) < 2:
            return
        one, other = order[:-1], order[1:]
        same = (times[one] == times[other]) & (groups[one] == groups[other])
        if not same.any():
            return
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        number = np.cumsum(~np.append(False, same))[tied]
        names = [column.name for column in self.columns[1:]]
        rows = table.select(names).take(pa.array(order[tied]))
        rows = pa.table([_comparable(column) for column in rows.columns], names=[f"by_{name}" for name in names])
        rows = rows.append_column("number", pa.array(number)).append_column("row", pa.array(order[tied]))
        others = (SortColumn(f"by_{c.name}", c.descending, c.nulls_first) for c in self.columns[1:])
        rows = table_in_order(rows, [SortColumn("number", False, None), *others])
        order[tied] = rows.column("row").to_numpy()


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a form that Arrow can sort; nested values, which it cannot, by their ranks."""
    column = decoded(column)
    if not pa.types.is_nested(column.type):
        return column
    values = [_as_tuple(value) for value in column.to_pylist()]
    ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return pa.chunked_array([pa.array([ranks[value] for value in values], pa.int64())])


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """Nested values as tuples, NULLs last."""
    if value is None:
        return (1,)
    if isinstance(value, dict):
        return (0, tuple(map(_as_tuple, value.values())))
    return (0, tuple(map(_as_tuple, value)) if isinstance(value, (list, tuple)) else value)


def places(numbers: Array, ranks: Array) -> Array:
    """Where events stand in the order of their key: their order numbers, and their ranks among those of equal ones."""
    return np.stack([numbers, ranks], axis=1)


def ranks_of(times: Array, begins: Array) -> Array:
    """Of each row, how many of equal time come before it in its group."""
    is_new = np.ones(len(times), np.bool_)
    is_new[1:] = times[1:] != times[:-1]
    is_new[begins[begins < len(times)]] = True
    rows = np.arange(len(times))
    return np.asarray(rows - np.maximum.accumulate(np.where(is_new, rows, 0)))


def has_order_numbers(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_timestamp, pa.types.is_date32)
    return any(is_kind(type_) for is_kind in kinds)


def compacted(table: pa.Table) -> pa.Table:
    """The table in one piece, its strings as codes in one dictionary."""
    return pa.table([_compact(column) for column in table.columns], names=table.column_names)


def _compact(column: pa.ChunkedArray) -> pa.Array:
    whole = decoded(column).combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    # All of them, also where few are the same: tables that are put together again must be alike.
    return whole.dictionary_encode() if pa.types.is_string(whole.type) else whole


def _ascends(numbers: Array) -> bool:
    return bool((numbers[1:] >= numbers[:-1]).all())


def _ranks(column: pa.ChunkedArray) -> tuple[Array, int]:
    """The place of each number among the different ones, and how many there are."""
    encoded = column.combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks)
    encoded = encoded.dictionary_encode()
    values = encoded.dictionary.to_numpy()
    ranks = np.empty(len(values), np.int64)
    ranks[np.argsort(values)] = np.arange(len(values))
    return ranks[encoded.indices.to_numpy()], len(values)

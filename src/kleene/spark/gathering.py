"""Inside a Spark task: batches of events as they come to tables in order, in bounded memory.

Events carry the number of their group, a hash of their key; they are sorted by it, then by the order key. What does not
fit in memory at once is sorted in runs that lie on disk, which are merged.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import SortColumn
from kleene.engine.events import decoded
from kleene.engine.sorting import table_in_order
from kleene.engine.spilling import spill_folder

Array = np.ndarray[Any, Any]
GROUP = "__kleene_group"
"""The column of group numbers; NULL for an event that has no place in the order."""
SORTED_AT_ONCE = 160 << 20
"""Bytes of events that are sorted in memory; of more, runs of so many are written to disk."""
BATCH = 1 << 16
"""Rows of a run that are read at a time."""


@dataclass(frozen=True, slots=True)
class TaskOrder:
    """The order of events in a group: the first column is a number or a time that is never missing; then the others."""

    columns: tuple[SortColumn, ...]

    def sorted(self, table: pa.Table) -> pa.Table:
        """The events by group and order; strings come out as codes in a dictionary, which are cheaper to move."""
        table = compacted(table)
        groups, times = self.keys(table)
        order = np.arange(len(times)) if _ascends(times) else np.argsort(times, kind="stable")
        codes, count = _ranks(table.column(GROUP))
        for shift in range(0, max(count - 1, 0).bit_length(), 16):
            digits = ((codes >> shift) & 0xFFFF).astype(np.uint16)
            order = order[np.argsort(digits[order], kind="stable")]
        self._decide_ties(table, order, groups, times)
        return table if _ascends(order) else table.take(pa.array(order))

    def sorted_by_time(self, table: pa.Table) -> pa.Table:
        """Events that are all of one group, in their order."""
        times = order_numbers(table.column(self.columns[0].name))
        order = np.arange(len(times)) if _ascends(times) else np.argsort(times, kind="stable")
        self._decide_ties(table, order, np.zeros(len(times), np.int64), times)
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
        if len(self.columns) == 1 or len(order) < 2:
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


def order_numbers(column: pa.ChunkedArray) -> Array:
    """Whole numbers in the same order as the values."""
    if pa.types.is_floating(column.type):
        bits = (column.to_numpy().astype(np.float64) + 0.0).view(np.int64)
        found: Array = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
        return found
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    numbers: Array = column.cast(pa.int64()).to_numpy()
    return numbers


def has_order_numbers(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_timestamp, pa.types.is_date32)
    return any(is_kind(type_) for is_kind in kinds)


def compacted(table: pa.Table) -> pa.Table:
    """The table in one piece, its strings as codes in a dictionary."""
    return pa.table([_compact(column) for column in table.columns], names=table.column_names)


def _compact(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
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


def sorted_tables(
    batches: Iterable[pa.Table], order: TaskOrder, most_bytes: int = SORTED_AT_ONCE
) -> Iterator[pa.Table]:
    """All events in order, in tables of any size."""
    sorter = Sorter(order, most_bytes)
    for batch in batches:
        sorter.add(batch)
    yield from sorter.tables()


class Sorter:
    """Takes events as they come, and gives them all back in order."""

    def __init__(self, order: TaskOrder, most_bytes: int = SORTED_AT_ONCE) -> None:
        self._order, self._most_bytes = order, most_bytes
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._runs: list[_Run] = []

    def add(self, batch: pa.Table) -> None:
        if not batch.num_rows:
            return
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes > self._most_bytes:
            self._runs.append(_Run(self._order, self._taken()))
            self._held_bytes = 0

    def tables(self) -> Iterator[pa.Table]:
        """In tables of any size."""
        if not self._runs:
            if self._held:
                yield self._taken()
            return
        if self._held:
            self._runs.append(_Run(self._order, self._taken()))
        yield from _merged(self._runs, self._order)

    def _taken(self) -> pa.Table:
        """The tables held, sorted; the list is emptied, so that they can go."""
        table = pa.concat_tables(self._held)
        self._held.clear()
        return self._order.sorted(table)


class _Run:
    """Sorted events on disk, of which some rows are in memory. The file has no name: it goes with the process."""

    def __init__(self, order: TaskOrder, table: pa.Table) -> None:
        self._order = order
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=spill_folder())  # noqa: SIM115  # it outlives the function
        with pa.ipc.new_file(pa.PythonFile(self._file, "w"), table.schema) as writer:
            writer.write_table(table, max_chunksize=BATCH)
        self._file.seek(0)
        self._reader = pa.ipc.open_file(pa.PythonFile(self._file, "r"))
        self._next = 0
        self.table = table.slice(0, 0)
        self.read()

    @property
    def has_more(self) -> bool:
        return bool(self._next < self._reader.num_record_batches)

    def read(self) -> None:
        """Another batch behind the rows in memory."""
        batch = pa.Table.from_batches([self._reader.get_batch(self._next)])
        self._next += 1
        self.table = pa.concat_tables([self.table, batch]).combine_chunks() if self.table.num_rows else batch
        self.groups, self.times = self._order.keys(self.table)

    def take_before(self, bound: tuple[int, int]) -> pa.Table:
        """The rows in memory that come before the bound; they are gone from here then."""
        begin, end = np.searchsorted(self.groups, bound[0], "left"), np.searchsorted(self.groups, bound[0], "right")
        return self.take(int(begin + np.searchsorted(self.times[begin:end], bound[1], "left")))

    def take(self, rows: int) -> pa.Table:
        taken = self.table.slice(0, rows)
        self.table, self.groups, self.times = self.table.slice(rows), self.groups[rows:], self.times[rows:]
        return taken

    def close(self) -> None:
        self._file.close()


def _merged(runs: list[_Run], order: TaskOrder) -> Iterator[pa.Table]:
    """The events of all runs in order. Rows before all that is still on disk can go; equal ones wait together."""
    try:
        while True:
            bounds = [(int(run.groups[-1]), int(run.times[-1])) for run in runs if run.has_more]
            if not bounds:
                break
            bound = min(bounds)
            parts = [part for part in (run.take_before(bound) for run in runs) if part.num_rows]
            if parts:
                yield order.sorted(pa.concat_tables(map(_plain, parts)))
            for run in runs:
                if run.has_more and (int(run.groups[-1]), int(run.times[-1])) == bound:
                    run.read()
        rest = [run.take(run.table.num_rows) for run in runs]
        yield order.sorted(pa.concat_tables(map(_plain, rest)))
    finally:
        for run in runs:
            run.close()


def _plain(table: pa.Table) -> pa.Table:
    """Each run has codes of its own for its strings."""
    return pa.table([decoded(column) for column in table.columns], names=table.column_names)


@dataclass(frozen=True, slots=True)
class Groups:
    """Events of whole groups."""

    table: pa.Table


@dataclass(frozen=True, slots=True)
class GroupPart:
    """A part of one group, too large to be held at once; the parts come in order."""

    table: pa.Table
    is_last: bool


def slices_of(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same events in tables of at most so many rows."""
    for table in tables:
        for at in range(0, table.num_rows, rows):
            yield table.slice(at, rows)


AT_ONCE = 1 << 18
"""Rows that are looked at together: tables of whole groups have about twice as many, or more where a group does."""
LARGE = 1 << 20
"""A group of more rows than this comes in parts."""


def groups_of(tables: Iterable[pa.Table], at_once: int = AT_ONCE, large: int = LARGE) -> Iterator[Groups | GroupPart]:
    """Tables in which each group stands together, put together again so that no group is cut without need."""
    ready: list[pa.Table] = []  # whole groups
    held: list[pa.Table] = []  # the group that may go on
    held_group: int | None = None
    is_parted = False
    for table in slices_of(tables, at_once):
        numbers = table.column(GROUP).to_numpy()
        changes = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        goes_on = held_group is not None and numbers[0] == held_group
        if goes_on and not len(changes):
            held.append(table)
        else:
            first = int(changes[0]) if goes_on else 0
            last = int(changes[-1]) if len(changes) else 0
            held.append(table.slice(0, first))
            if is_parted:
                yield GroupPart(pa.concat_tables(held), True)
            else:
                ready += held
            ready.append(table.slice(first, last - first))
            held, held_group, is_parted = [table.slice(last)], int(numbers[-1]), False
        if sum(part.num_rows for part in held) > (0 if is_parted else large):
            if ready:
                yield Groups(pa.concat_tables(ready))
                ready = []
            yield GroupPart(pa.concat_tables(held), False)
            held, is_parted = [table.slice(0, 0)], True
        if sum(part.num_rows for part in ready) > at_once:
            yield Groups(pa.concat_tables(ready))
            ready = []
    if is_parted:
        yield GroupPart(pa.concat_tables(held), True)
        held = []
    if ready or held:
        yield Groups(pa.concat_tables([*ready, *held]))

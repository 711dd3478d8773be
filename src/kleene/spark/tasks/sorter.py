"""Events in any order to tables in order, in bounded memory.

What does not fit in memory at once is sorted in runs that lie on disk, which are merged.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np
import pyarrow as pa

from kleene.engine.events import decoded
from kleene.engine.spilling import spill_folder
from kleene.spark.tasks.order import TaskOrder

SORTED_AT_ONCE = 160 << 20
"""Bytes of events that are sorted in memory; of more, runs of so many are written to disk."""
BATCH = 1 << 16
"""Rows of a run that are read at a time."""


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

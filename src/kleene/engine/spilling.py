"""Rows that come in any order, put in order in bounded memory: what is too much to hold lies on disk, in runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Protocol

import numpy as np
import pyarrow as pa

from kleene.engine.budget import table_bytes
from kleene.engine.matches import Array
from kleene.errors import ExecutionError, printable

PLACE = "__kleene_place"
MOST_RUNS = 32
"""How many runs lie on disk before they are made one: each is a file that is open."""


class Order(Protocol):
    """Rows are sorted by their keys, whole numbers, the first of which counts most."""

    @property
    def decides_ties(self) -> bool:
        """Whether rows of equal keys have an order, and must be held together for it; else they stay as they came."""

    def keys(self, table: pa.Table) -> tuple[Array, ...]: ...

    def sorted(self, table: pa.Table) -> pa.Table: ...


class ByPlace:
    """The order of rows that have a number in a further column."""

    decides_ties = False

    def keys(self, table: pa.Table) -> tuple[Array, ...]:
        return (table.column(PLACE).to_numpy(),)

    def sorted(self, table: pa.Table) -> pa.Table:
        (numbers,) = self.keys(table)
        if (numbers[1:] >= numbers[:-1]).all():
            return table
        return table.take(pa.array(np.argsort(numbers, kind="stable")))


class Sorter:
    """Takes rows as they come, and gives them all back in order."""

    def __init__(self, order: Order, most_bytes: int) -> None:
        self._order, self._most_bytes = order, most_bytes
        self._held: list[pa.Table] = []
        self.held_bytes = 0
        self._runs: list[_Run] = []

    @property
    def is_empty(self) -> bool:
        return not self._held and not self._runs

    def add(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        self._held.append(rows)
        self.held_bytes += table_bytes(rows)
        if self.held_bytes > self._most_bytes:
            self._spill()

    def tables(self) -> Iterator[pa.Table]:
        """All rows so far, in tables of any size; the sorter is empty then."""
        if not self._runs:
            if self._held:
                yield self._taken()
            return
        if self._held:
            self._spill()
        runs, self._runs = self._runs, []
        yield from _merged(runs, self._order)

    def _spill(self) -> None:
        """Writes what is held to disk, in pieces of which one of every run fits in memory."""
        bytes_at_once = self._most_bytes // MOST_RUNS
        self._runs.append(_Run(self._order, [self._taken()], bytes_at_once))
        if len(self._runs) == MOST_RUNS:
            self._runs = [_Run(self._order, _merged(self._runs, self._order), bytes_at_once)]

    def _taken(self) -> pa.Table:
        """The rows that are held, in order; they are let go of before they are sorted."""
        whole = pa.concat_tables(self._held)
        self._held, self.held_bytes = [], 0
        return self._order.sorted(whole)


class _Run:
    """Sorted rows on disk, of which some are in memory. The file has no name: it goes with the process."""

    def __init__(self, order: Order, tables: Iterable[pa.Table], bytes_at_once: int) -> None:
        try:
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=spill_folder())  # noqa: SIM115  # outlives the function
            _write(self._file, tables, bytes_at_once)
            self._file.seek(0)
        except OSError as error:
            raise ExecutionError(
                f"rows that wait to be put in order cannot be written to disk: {printable(str(error), 200)}",
                hint="Make room in the folder for temporary files, or name another with TMPDIR; or raise memory_limit.",
            ) from None
        self._order = order
        self._reader: pa.RecordBatchReader | None = None
        self.table: pa.Table | None = None
        self._keys: tuple[Array, ...] = ()

    def fill(self) -> bool:
        """Reads on if no row is left in memory; False if there is none on disk, either."""
        if self._reader is None:
            self._reader = pa.ipc.open_stream(pa.PythonFile(self._file, "r"))
        while not self._file.closed and (self.table is None or not self.table.num_rows):
            try:
                self.table = pa.Table.from_batches([self._reader.read_next_batch()])
                self._keys = self._order.keys(self.table)
            except StopIteration:
                self._file.close()
        return self.table is not None and bool(self.table.num_rows)

    @property
    def last(self) -> tuple[int, ...]:
        """The keys of the last row in memory."""
        return tuple(int(key[-1]) for key in self._keys)

    def take_before(self, bound: tuple[int, ...]) -> pa.Table:
        """The rows in memory that come before those with these keys."""
        return self._take(self._stretch(bound)[0])

    def take_all_of(self, bound: tuple[int, ...]) -> Iterator[pa.Table]:
        """The rows with these keys, which come next, if there are any."""
        while self.fill() and (rows := self._stretch(bound)[1]):
            yield self._take(rows)

    def _stretch(self, bound: tuple[int, ...]) -> tuple[int, int]:
        """The first row in memory that has these keys, and the one behind the last."""
        begin, end = 0, len(self._keys[0])
        for key, value in zip(self._keys, bound, strict=True):
            here = key[begin:end]
            begin, end = begin + int(np.searchsorted(here, value)), begin + int(np.searchsorted(here, value, "right"))
        return begin, end

    def _take(self, rows: int) -> pa.Table:
        assert self.table is not None
        taken = self.table.slice(0, rows)
        self.table, self._keys = self.table.slice(rows), tuple(key[rows:] for key in self._keys)
        return taken


def _write(file: IO[bytes], tables: Iterable[pa.Table], bytes_at_once: int) -> None:
    writer: pa.RecordBatchStreamWriter | None = None
    for table in tables:
        if writer is None:
            writer = pa.ipc.new_stream(pa.PythonFile(file, "w"), table.schema)
        rows = max(table.num_rows * bytes_at_once // max(table_bytes(table), 1), 1)
        writer.write_table(table, max_chunksize=rows)
    assert writer is not None
    writer.close()


def _merged(runs: list[_Run], order: Order) -> Iterator[pa.Table]:
    """The rows of all runs in order; of equal ones, those of earlier runs first."""
    while runs := [run for run in runs if run.fill()]:
        # What comes before the last row in memory of every run can go. Rows with the keys of that one may be any number
        # of rows: unless they have an order, they go run by run, so that they need not be held together.
        bound = min(run.last for run in runs)
        parts = [part for part in (run.take_before(bound) for run in runs) if part.num_rows]
        equal = (part for run in runs for part in run.take_all_of(bound))
        if order.decides_ties:
            parts += equal
        if parts:
            yield order.sorted(pa.concat_tables(parts))
        yield from equal


def spill_folder() -> str | None:
    """Where Spark puts what it spills, if it says so; else where temporary files go."""
    folders = [folder for folder in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if os.path.isdir(folder)]
    return folders[0] if folders else None

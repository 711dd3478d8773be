"""Rows that come out of order, put in order in bounded memory: what is too much to hold waits on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa

from kleene.errors import ExecutionError, printable

Array = np.ndarray[Any, Any]
_PLACE = "__kleene_place"
MOST_RUNS = 32
"""How many runs lie on disk before they are made one: each is a file that is open."""


class RowSorter:
    """Takes rows, each with a number, and gives them back in the order of their numbers; equal ones as they came."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held: list[pa.Table] = []
        self.held_bytes = 0
        self._runs: list[_Run] = []

    @property
    def is_empty(self) -> bool:
        return not self._held and not self._runs

    def add(self, rows: pa.Table, numbers: Array) -> None:
        if not rows.num_rows:
            return
        self._held.append(rows.append_column(_PLACE, pa.array(numbers, pa.int64())))
        self.held_bytes += self._held[-1].nbytes
        if self.held_bytes > self._most_bytes:
            self._spill()

    def tables(self) -> Iterator[pa.Table]:
        """All rows so far; the sorter is empty then."""
        if not self._runs:
            if self._held:
                yield self._taken().drop_columns([_PLACE])
            return
        if self._held:
            self._spill()
        runs, self._runs = self._runs, []
        for table in _merged(runs):
            yield table.drop_columns([_PLACE])

    def _spill(self) -> None:
        """Writes what is held to disk, in pieces of which one of every run fits in memory."""
        bytes_at_once = self._most_bytes // MOST_RUNS
        self._runs.append(_Run([self._taken()], bytes_at_once))
        if len(self._runs) == MOST_RUNS:
            self._runs = [_Run(_merged(self._runs), bytes_at_once)]

    def _taken(self) -> pa.Table:
        whole = pa.concat_tables(self._held)
        self._held, self.held_bytes = [], 0
        return _sorted(whole)


def _numbers(table: pa.Table) -> Array:
    found: Array = table.column(_PLACE).to_numpy()
    return found


def _sorted(table: pa.Table) -> pa.Table:
    numbers = _numbers(table)
    if (numbers[1:] >= numbers[:-1]).all():
        return table
    return table.take(pa.array(np.argsort(numbers, kind="stable")))


class _Run:
    """Sorted rows on disk, of which some are in memory. The file has no name: it goes with the process."""

    def __init__(self, tables: Iterable[pa.Table], bytes_at_once: int) -> None:
        try:
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=spill_folder())  # noqa: SIM115  # outlives the function
            _write(self._file, tables, bytes_at_once)
            self._file.seek(0)
        except OSError as error:
            raise ExecutionError(
                f"rows that wait to be put in order cannot be written to disk: {printable(str(error), 200)}",
                hint="Make room in the folder for temporary files, or name another with TMPDIR; or raise memory_limit.",
            ) from None
        self._reader: pa.RecordBatchReader | None = None
        self.table: pa.Table | None = None
        self.numbers = np.empty(0, np.int64)

    def fill(self) -> bool:
        """Reads on if no row is left in memory; False if there is none on disk, either."""
        if self._file.closed:
            return bool(len(self.numbers))
        if self._reader is None:
            self._reader = pa.ipc.open_stream(pa.PythonFile(self._file, "r"))
        while not len(self.numbers):
            try:
                self.table = pa.Table.from_batches([self._reader.read_next_batch()])
                self.numbers = _numbers(self.table)
            except StopIteration:
                self._file.close()
                return False
        return True

    def take(self, rows: int) -> pa.Table:
        assert self.table is not None
        taken = self.table.slice(0, rows)
        self.table, self.numbers = self.table.slice(rows), self.numbers[rows:]
        return taken

    def take_before(self, number: int) -> pa.Table:
        """The rows in memory that come before the number."""
        return self.take(int(np.searchsorted(self.numbers, number, "left")))

    def take_all_of(self, number: int) -> Iterator[pa.Table]:
        while self.fill() and self.numbers[0] == number:
            yield self.take(int(np.searchsorted(self.numbers, number, "right")))


def _write(file: IO[bytes], tables: Iterable[pa.Table], bytes_at_once: int) -> None:
    writer: pa.RecordBatchStreamWriter | None = None
    for table in tables:
        if writer is None:
            writer = pa.ipc.new_stream(pa.PythonFile(file, "w"), table.schema)
        rows = max(table.num_rows * bytes_at_once // max(table.nbytes, 1), 1)
        writer.write_table(table, max_chunksize=rows)
    assert writer is not None
    writer.close()


def _merged(runs: list[_Run]) -> Iterator[pa.Table]:
    """The rows of all runs in order; of equal numbers, those of earlier runs first."""
    while runs := [run for run in runs if run.fill()]:
        # What comes before the last row in memory of every run can go. Rows of that one number may be any number of
        # rows: they go run by run, so that they need not be held together.
        bound = min(int(run.numbers[-1]) for run in runs)
        parts = [part for part in (run.take_before(bound) for run in runs) if part.num_rows]
        if parts:
            yield _sorted(pa.concat_tables(parts))
        for run in runs:
            yield from run.take_all_of(bound)


def spill_folder() -> str | None:
    """Where Spark puts what it spills, if it says so; else where temporary files go."""
    folders = [folder for folder in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if os.path.isdir(folder)]
    return folders[0] if folders else None

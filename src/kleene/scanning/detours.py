"""Events that files do not have in order, over the disk: by key, so that a few keys fit in memory, or sorted.

What is written goes into files without names or into a folder of its own, which are gone when the call is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.row_pattern import SortColumn
from kleene.engine.events import null_order_key
from kleene.engine.matches import Array
from kleene.engine.row_output import NUMBER
from kleene.engine.sorting import order_numbers, table_in_order
from kleene.engine.spilling import Sorter, spill_folder
from kleene.errors import ExecutionError, printable
from kleene.scanning.shares import KeyShares

MOST_BUCKETS = 256
"""Files that are open at once."""


@dataclass(frozen=True, slots=True)
class ByOrder:
    """The order of rows by columns of which the first is a number or a time that ascends and is never missing."""

    columns: tuple[SortColumn, ...]
    decides_ties = True

    def keys(self, table: pa.Table) -> tuple[Array, ...]:
        return (order_numbers(table.column(self.columns[0].name)),)

    def sorted(self, table: pa.Table) -> pa.Table:
        return table_in_order(table, self.columns)


def sorted_on_disk(tables: Iterable[pa.Table], order: Sequence[SortColumn], at_once: int) -> Iterator[pa.Table]:
    """All events in order, and where that leaves one open by their numbers, in tables of any size."""
    sorter = Sorter(ByOrder((*order, SortColumn(NUMBER, False, None))), at_once)
    for table in tables:
        sorter.add(table)
    yield from sorter.tables()


def only_ordered(tables: Iterable[pa.Table], strict: Sequence[str]) -> Iterator[pa.Table]:
    """The tables; in the end an error, if an event has no place in the order, that counts them."""
    missing: dict[str, list[int]] = {}
    for table in tables:
        for name in strict:
            column = table.column(name)
            is_float = pa.types.is_floating(column.type)
            nans = (pc.sum(pc.is_nan(column)).as_py() or 0) if is_float else 0
            if column.null_count or nans:
                counts = missing.setdefault(name, [0, 0])
                counts[0] += column.null_count
                counts[1] += nans
        if not missing:
            yield table
    for name, (nulls, nans) in missing.items():
        what = " or ".join(word for word, count in (("NULL", nulls), ("NaN", nans)) if count)
        raise null_order_key(name, nulls + nans, what)


def numbered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables in the order of the input, with the number of each event in it."""
    first = 0
    for table in tables:
        yield table.append_column(NUMBER, pa.array(np.arange(first, first + table.num_rows)))
        first += table.num_rows


@contextmanager
def buckets_on_disk(tables: Iterable[pa.Table], shares: KeyShares) -> Iterator[list[Callable[[], Iterator[pa.Table]]]]:
    """The events of each bucket of keys, as they came; of what is in no partition, nothing."""
    with tempfile.TemporaryDirectory(prefix="kleene-", dir=spill_folder()) as folder:
        paths = [Path(folder, f"{number}.arrow") for number in range(shares.count)]
        _write(paths, tables, shares)
        yield [lambda path=path: _read(path) for path in paths if path.exists()]  # type: ignore[misc]


def _write(paths: Sequence[Path], tables: Iterable[pa.Table], shares: KeyShares) -> None:
    writers: dict[int, pa.RecordBatchStreamWriter] = {}
    try:
        for table in tables:
            for number, part in enumerate(shares.split(table)):
                if part.num_rows:
                    if number not in writers:
                        writers[number] = pa.ipc.new_stream(str(paths[number]), part.schema)
                    writers[number].write_table(part)
    except OSError as error:
        raise ExecutionError(
            f"events cannot be written to disk: {printable(str(error), 200)}",
            hint="Make room in the folder for temporary files, or name another with TMPDIR.",
        ) from None
    finally:
        for writer in writers.values():
            writer.close()


def _read(path: Path) -> Iterator[pa.Table]:
    with pa.memory_map(str(path)) as mapped:
        for batch in pa.ipc.open_stream(mapped):
            yield pa.Table.from_batches([batch])

"""The partitions of a stream: each key that has something open has a number, which stays from one piece to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.compiled.batches import partition_codes
from kleene.engine.compiled.columns import Array
from kleene.engine.saved_parts import SavedParts, require
from kleene.errors import printable


class Partitions:
    """Numbers for keys; `table` has the keys themselves, a row for each number."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._numbers: dict[tuple[Any, ...], int] = {}
        self.table: pa.Table | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, table: pa.Table, null_is_a_key: bool) -> Array:
        """The number of each row's partition, -1 where it is in none."""
        codes, count = partition_codes(table, self._names, null_is_a_key)
        if not table.num_rows:
            return codes
        first = np.full(count, -1, np.int64)
        inside = np.flatnonzero(codes >= 0)
        first[codes[inside[::-1]]] = inside[::-1]
        present = np.flatnonzero(first >= 0)
        keys = table.select(self._names).take(pa.array(first[present]))
        found = np.full(count + 1, -1, np.int64)
        new: list[int] = []
        for row, key in enumerate(_tuples(keys, len(present))):
            if key not in self._numbers:
                self._numbers[key] = len(self._numbers)
                new.append(row)
            found[present[row]] = self._numbers[key]
        if new and self._names:
            added = keys.take(pa.array(new))
            self.table = added if self.table is None else pa.concat_tables([self.table, added])
        numbers: Array = found[codes]
        return numbers

    def keep(self, used: Array) -> Array:
        """Forgets the partitions that are not used, and gives back the new number of each."""
        new = np.cumsum(used) - 1
        self._numbers = {key: int(new[number]) for key, number in self._numbers.items() if used[number]}
        if self.table is not None:
            self.table = self.table.filter(pa.array(used)).combine_chunks()
        return new

    def load(self, parts: SavedParts, name: str, count: int) -> None:
        """The keys that were saved, as many as there are partitions."""
        self.load_table(parts.keys(name, self._names), count, name)

    def load_table(self, table: pa.Table | None, count: int, part: str) -> None:
        self.table = table
        self._numbers = {key: number for number, key in enumerate(_tuples(table, count))}
        require((count if table is None else table.num_rows) == count == len(self._numbers), part)


def _tuples(table: pa.Table | None, rows: int) -> list[tuple[Any, ...]]:
    """The keys; NaN is made equal to itself."""
    if table is None or not table.num_columns:
        return [()] * min(rows, 1)
    columns = [[_same(value) for value in _plain(column).to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as numbers: a clock on the wall shows some of them twice."""
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type) or pa.types.is_date64(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


def _same(value: Any) -> Any:
    if isinstance(value, float):
        return ("NaN",) if value != value else value + 0.0
    return value


def partition_text(table: pa.Table, names: Sequence[str], row: int) -> str:
    """How a message names the partition of a row of the table."""
    where = ", ".join(f"{name} = {table.column(name)[row].as_py()!r}" for name in names)
    return printable(where, 200) if where else "of all events"

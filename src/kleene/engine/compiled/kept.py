"""What engines keep between the pieces of a stream: events, the numbers of partitions, and values of each partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.budget import Budget, table_bytes
from kleene.engine.compiled.batches import EMPTY, Grouped, nullable_names, partition_codes
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.meter import Meter
from kleene.engine.protocol import Held, Time
from kleene.engine.saved_parts import SavedParts, require
from kleene.errors import printable


class KeepingProgress:
    """What every progress has: kept events, partitions, and the names of columns that had NULLs."""

    def __init__(self, partitions: Partitions, budget: Budget | None, meter: Meter | None) -> None:
        self.budget = Budget() if budget is None else budget
        self.meter = Meter() if meter is None else meter
        self.kept, self.partitions = KeptEvents(), partitions
        self.nullable: frozenset[str] = frozenset()

    def behind_kept(self, events: pa.Table, is_last: bool, numbers: Array | None = None) -> tuple[pa.Table, Array]:
        """The kept events and these as one table, and the numbers of their partitions, which may be known already."""
        kept = self.kept.table
        if numbers is None:
            numbers = self.partitions.numbers(events, is_whole=is_last and kept is None)
        if kept is not None:
            events = pa.concat_tables([kept, events.select(kept.column_names)])
            numbers = np.concatenate([self.kept.numbers, numbers])
        self.nullable |= nullable_names(events)
        return events, numbers

    def forget_partitions(self, used: Array) -> Array | None:
        """Forgets partitions that are not used and of which nothing is kept; if one comes again, it begins anew.

        Returns the new numbers, or None where they stay as they are.
        """
        numbers = self.kept.numbers
        used[numbers[numbers >= 0]] = True
        if used.all():
            return None
        new = self.partitions.keep(used)
        self.kept.numbers = np.where(numbers < 0, -1, new[numbers])
        return new

    def holding(self, runs: int, size: int, wakes_at: Time | None) -> Held:
        """What is held, with so many runs in so many bytes besides the events."""
        return Held(runs, len(self.kept), self.kept.bytes + size, wakes_at, not runs and not len(self.kept))

    def saved(self) -> dict[str, Any]:
        return {"nullable": sorted(self.nullable), **self.kept.saved(), **self.partitions.saved()}

    def load(self, parts: SavedParts) -> None:
        self.nullable = parts.column_names("nullable")
        self.partitions.load(parts)
        self.kept.load(parts, self.partitions)


class KeptEvents:
    """Events of earlier pieces, in the order of their table; `numbers` are those of their partitions."""

    def __init__(self) -> None:
        self.table: pa.Table | None = None
        self.numbers = EMPTY
        self.origins = EMPTY  # where they stood in the table that they were kept of

    def __len__(self) -> int:
        return 0 if self.table is None else int(self.table.num_rows)

    @property
    def bytes(self) -> int:
        return 0 if self.table is None else table_bytes(self.table)

    def keep(self, table: pa.Table, rows: Array, numbers: Array) -> Array:
        """Keeps these rows of the table, whose partitions have the numbers; returns each row's new place, or -1."""
        self.table, self.numbers, self.origins = table.take(pa.array(rows)).combine_chunks(), numbers, rows
        return places_of(rows, table.num_rows)

    def keep_grouped(self, table: pa.Table, grouped: Grouped, rows: Array) -> tuple[Array, Array]:
        """Keeps these of the grouped rows.

        Returns them in the order of the table, and for each grouped row its place among those that are kept, or -1.
        """
        positions = grouped.order[rows]
        in_table = np.argsort(positions, kind="stable")
        rows = rows[in_table]
        numbers = np.repeat(grouped.numbers, grouped.sizes)[rows]
        self.keep(table, positions[in_table], numbers)
        return rows, places_of(rows, len(grouped))

    def saved(self) -> dict[str, Any]:
        return {"kept_table": self.table, "kept_numbers": self.numbers}

    def load(self, parts: SavedParts, partitions: Partitions) -> None:
        self.table = parts.table("kept_table")
        lowest = 0 if partitions.null_is_a_key else -1
        self.numbers = parts.array("kept_numbers", len(self), low=lowest, high=len(partitions))


def places_of(rows: Array, count: int) -> Array:
    """Where each of so many rows stands among these, -1 for those that are not there."""
    places = np.full(count, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return places


class Partitions:
    """Each key that has something open has a number, which stays from one piece to the next.

    A partition may have some values by name, which begin with those given here.
    """

    def __init__(self, names: Sequence[str], null_is_a_key: bool, **fresh: int) -> None:
        self.null_is_a_key = null_is_a_key
        self.table: pa.Table | None = None  # the keys, a row for each number
        self._names, self._fresh = list(names), fresh
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._values, self._count = dict.fromkeys(fresh, EMPTY), 0

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, name: str) -> Array:
        return self._values[name]

    def __setitem__(self, name: str, values: Array) -> None:
        self._values[name] = values

    def numbers(self, table: pa.Table, is_whole: bool = False) -> Array:
        """The number of each row's partition, -1 where it is in none; where no piece follows, keys are forgotten."""
        codes, count = partition_codes(table, self._names, self.null_is_a_key)
        if not is_whole:
            codes, count = self._known(table, codes, count), len(self._numbers)
        self.grow(count)
        return codes

    def _known(self, table: pa.Table, codes: Array, count: int) -> Array:
        """The numbers that the keys have, where `codes` tells them apart."""
        if not table.num_rows:
            return codes
        row_of = np.full(count + 1, -1, np.int64)  # one of the rows of each code; those of -1 come last
        row_of[codes] = np.arange(len(codes))
        present = np.flatnonzero(row_of[:count] >= 0)
        keys = table.select(self._names).take(pa.array(row_of[present]))
        found = np.full(count + 1, -1, np.int64)
        new: list[int] = []
        for row, key in enumerate(key_tuples(keys, len(present))):
            if key not in self._numbers:
                self._numbers[key] = len(self._numbers)
                new.append(row)
            found[present[row]] = self._numbers[key]
        if new and self._names:
            added = keys.take(pa.array(new))
            self.table = added if self.table is None else pa.concat_tables([self.table, added])
        numbers: Array = found[codes]
        return numbers

    def grow(self, count: int) -> None:
        self._count = max(self._count, count)
        for name, values in self._values.items():
            missing = np.full(max(count - len(values), 0), self._fresh[name], np.int64)
            self._values[name] = np.concatenate([values, missing])

    def keep(self, used: Array) -> Array:
        """Forgets the partitions that are not used, which begin anew if they come again; returns new numbers."""
        new = np.cumsum(used) - 1
        self._count = int(used.sum())
        self._values = {name: values[used] for name, values in self._values.items()}
        self._numbers = {key: int(new[number]) for key, number in self._numbers.items() if used[number]}
        if self.table is not None:
            self.table = self.table.filter(pa.array(used)).combine_chunks()
        return new

    def saved(self) -> dict[str, Any]:
        return {"keys": self.table, **self._values}

    def load(self, parts: SavedParts) -> None:
        """A value may begin at -1 and is otherwise not negative."""
        count: int | None = None
        for name, fresh in self._fresh.items():
            self._values[name] = parts.array(name, count, low=min(fresh, 0))
            count = len(self._values[name])
        assert count is not None
        self.load_keys(parts.keys("keys", self._names), count, "keys")

    def load_keys(self, table: pa.Table | None, count: int, part: str) -> None:
        """The keys that were saved, as many as there are partitions."""
        self.table, self._count = table, count
        self._numbers = {key: number for number, key in enumerate(key_tuples(table, count))}
        require((count if table is None else table.num_rows) == count == len(self._numbers), part)


def key_tuples(table: pa.Table | None, rows: int) -> list[tuple[Any, ...]]:
    """The keys; NaN is made equal to itself."""
    if table is None or not table.num_columns:
        return [()] * min(rows, 1)
    return list(zip(*map(_key_values, table.columns), strict=True))


def _key_values(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = _plain(column).to_pylist()
    may_differ = pa.types.is_floating(column.type) or pa.types.is_nested(column.type)
    return [_same(value) for value in values] if may_differ else values


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

"""What engines keep between the pieces of a stream: events, and numbers for each partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.compiled.batches import EMPTY, Grouped, partition_codes
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.partitions import Partitions
from kleene.engine.saved_parts import SavedParts


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
        return 0 if self.table is None else int(self.table.nbytes)

    def in_front_of(self, piece: pa.Table, numbers: Array) -> tuple[pa.Table, Array]:
        """The kept events and the piece as one table; so many of its first rows as are kept are old."""
        if self.table is None:
            return piece, numbers
        whole = pa.concat_tables([self.table, piece.select(self.table.column_names)])
        return whole, np.concatenate([self.numbers, numbers])

    def keep(self, table: pa.Table, rows: Array, numbers: Array) -> Array:
        """Keeps these rows of the table, whose partitions have the numbers; returns each row's new place, or -1."""
        self.table, self.numbers, self.origins = table.take(pa.array(rows)).combine_chunks(), numbers, rows
        return _places(rows, table.num_rows)

    def keep_grouped(self, table: pa.Table, grouped: Grouped, rows: Array) -> tuple[Array, Array]:
        """Keeps these of the grouped rows.

        Returns them in the order of the table, and for each grouped row its place among those that are kept, or -1.
        """
        positions = grouped.order[rows]
        in_table = np.argsort(positions, kind="stable")
        rows = rows[in_table]
        numbers = np.repeat(grouped.numbers, np.diff(grouped.begins))[rows]
        self.keep(table, positions[in_table], numbers)
        return rows, _places(rows, len(grouped))

    def saved(self) -> dict[str, Any]:
        return {"kept_table": self.table, "kept_numbers": self.numbers}

    def load(self, parts: SavedParts, partitions: int, lowest: int = 0) -> None:
        self.table = parts.table("kept_table")
        self.numbers = parts.array("kept_numbers", len(self), low=lowest, high=partitions)


def _places(rows: Array, count: int) -> Array:
    places = np.full(count, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return places


class PartitionStates:
    """The partitions of a stream, each with some numbers by name, which begin with the values given here."""

    def __init__(self, names: Sequence[str], null_is_a_key: bool, **fresh: int) -> None:
        self._names, self._null_is_a_key, self._fresh = names, null_is_a_key, fresh
        self.keys = Partitions(names)
        self._values = dict.fromkeys(fresh, EMPTY)

    def __len__(self) -> int:
        return len(next(iter(self._values.values())))

    def __getitem__(self, name: str) -> Array:
        return self._values[name]

    def __setitem__(self, name: str, values: Array) -> None:
        self._values[name] = values

    def numbers(self, table: pa.Table, is_whole: bool = False) -> Array:
        """The number of each event's partition, -1 where it is in none; where no piece follows, keys are forgotten."""
        if is_whole:
            codes, count = partition_codes(table, self._names, self._null_is_a_key)
        else:
            codes = self.keys.numbers(table, self._null_is_a_key)
            count = len(self.keys)
        self.grow(count)
        return codes

    def grow(self, count: int) -> None:
        for name, fresh in self._fresh.items():
            missing = count - len(self._values[name])
            if missing > 0:
                self._values[name] = np.concatenate([self._values[name], np.full(missing, fresh, np.int64)])

    def keep(self, used: Array) -> Array:
        """Forgets the partitions that are not used, which begin anew if they come again; returns new numbers."""
        self._values = {name: values[used] for name, values in self._values.items()}
        return self.keys.keep(used)

    def saved(self) -> dict[str, Any]:
        return {"keys": self.keys.table, **self._values}

    def load(self, parts: SavedParts) -> None:
        """A number may begin at -1 and is otherwise not negative."""
        count: int | None = None
        for name, fresh in self._fresh.items():
            self._values[name] = parts.array(name, count, low=min(fresh, 0))
            count = len(self._values[name])
        self.keys.load(parts, "keys", len(self))

"""The parts of a snapshot, each held against what an engine can have saved before it goes on with it.

A checksum tells damage, not intent: parts with a right checksum may still be forged. Kernels read arrays by numbers
that stand in other arrays, so each number is checked here: what it counts exists, what it points to was there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.matches import Array
from kleene.errors import SnapshotError

MOST = 2**62
_DTYPES: dict[str, Any] = {"i": np.int64, "f": np.float64}


def require(holds: bool | np.bool_, part: str) -> None:
    if not holds:
        raise SnapshotError(
            f"the snapshot cannot be read: its part '{part}' does not fit the rest",
            hint="Use an earlier one, or start anew.",
        )


def require_within(values: Array, low: int, high: Array | int, part: str) -> None:
    """Each value is at least `low`, and below `high`."""
    require(bool(((values >= low) & (values < high)).all()), part)


@dataclass(frozen=True, slots=True)
class SavedParts:
    """`columns` are those of the events that the query is fed."""

    parts: Mapping[str, Any]
    columns: pa.Schema

    def __contains__(self, name: str) -> bool:
        return name in self.parts

    def array(self, name: str, *shape: int | None, kind: str = "i", low: int = -MOST, high: int = MOST) -> Array:
        """An array of the shape, where None is any length, and of values from `low` to below `high`."""
        array: Any = self.parts.get(name)
        require(isinstance(array, np.ndarray), name)
        require(array.dtype == _DTYPES[kind] and array.ndim == len(shape), name)
        require(all(told is None or told == found for told, found in zip(shape, array.shape, strict=True)), name)
        if kind == "i":
            require_within(array, low, high, name)
        checked: Array = array
        return checked

    def table(self, name: str, columns: pa.Schema | None = None) -> pa.Table | None:
        """A table of these columns, or of those of the events; None if there is none."""
        table = self.parts.get(name)
        if table is None:
            return None
        require(isinstance(table, pa.Table), name)
        require(table.schema.equals(self.columns if columns is None else columns), name)
        return table

    def rows_of(self, name: str) -> int:
        table = self.table(name)
        return 0 if table is None else table.num_rows

    def strings(self, name: str) -> list[str]:
        """Texts, each once."""
        texts: Any = self.parts.get(name)
        require(isinstance(texts, list) and all(isinstance(text, str) for text in texts), name)
        require(len(set(texts)) == len(texts), name)
        return list(texts)

    def column_names(self, name: str) -> frozenset[str]:
        names = self.strings(name)
        require(set(names) <= set(self.columns.names), name)
        return frozenset(names)

    def keys(self, name: str, names: Iterable[str]) -> pa.Table | None:
        """The keys of partitions: values of these columns of the events."""
        return self.table(name, pa.schema([self.columns.field(column) for column in names]))


def require_older(links: Array, part: str, most: int = 1) -> None:
    """Each link leads to something before its own place, or nowhere (-1): following links comes to an end."""
    require_within(links, -most, np.arange(len(links)), part)

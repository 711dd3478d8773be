"""Runs, or partial matches, that are open between two pieces of a stream, stored one partition after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kleene.engine.compiled.arrays.groups import (
    GROUP_COLUMNS,
    GROUP_END,
    GROUP_FIRST,
    GROUP_FRESH,
    GROUP_KEPT,
    GROUP_KEPT_COUNT,
    GROUP_STORED,
    GROUP_STORED_COUNT,
)
from kleene.engine.compiled.batches import Grouped, grown
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.registers import Registers
from kleene.engine.saved_parts import SavedParts, require, require_within


class Runs(NamedTuple):
    """Arrays of runs: row r has the whole numbers of run r, and its floats."""

    i: Array
    f: Array

    @classmethod
    def empty(cls, room: int, registers: Registers) -> Runs:
        floats = np.zeros((room, max(registers.floats, 1)), np.float64)
        return cls(np.zeros((room, registers.columns), np.int64), floats)

    def grown(self, length: int) -> Runs:
        return Runs(grown(self.i, length), grown(self.f, length))

    def saved(self, count: int) -> dict[str, Array]:
        """The parts of a snapshot; so many runs are stored."""
        return {"stored_i": self.i[:count], "stored_f": self.f[:count]}

    @classmethod
    def load(cls, parts: SavedParts, registers: Registers) -> Runs:
        stored_i = parts.array("stored_i", None, registers.columns)
        return cls(stored_i, parts.array("stored_f", len(stored_i), max(registers.floats, 1), kind="f"))


def groups_of(grouped: Grouped, old: int, counts: Array) -> Array:
    """The partitions of a piece. So many of its first events are old; `counts` are the runs of each partition."""
    groups = np.zeros((len(grouped.numbers), GROUP_COLUMNS), np.int64)
    first, end = grouped.begins[:-1], grouped.begins[1:]
    fresh = np.concatenate([[0], np.cumsum(grouped.order >= old)]) if old else np.arange(len(grouped) + 1)
    groups[:, GROUP_FIRST], groups[:, GROUP_END] = first, end
    groups[:, GROUP_FRESH] = end - (fresh[end] - fresh[first])
    groups[:, GROUP_STORED] = begins_of(counts)[grouped.numbers]
    groups[:, GROUP_STORED_COUNT] = counts[grouped.numbers]
    return groups


def stored_runs(
    grouped: Grouped, groups: Array, counts: Array, kept: Runs, stored: Runs, room: int
) -> tuple[Array, Runs]:
    """Puts the runs kept of the partitions in this piece together with those stored of the others.

    Returns how many runs each partition has now, and all of them, with room for at least so many.
    """
    is_seen, sources, counts = np.zeros(len(counts), np.bool_), begins_of(counts), counts.copy()
    is_seen[grouped.numbers] = True
    sources[grouped.numbers], counts[grouped.numbers] = groups[:, GROUP_KEPT], groups[:, GROUP_KEPT_COUNT]
    total = int(counts.sum())
    source = np.repeat(sources - begins_of(counts), counts) + np.arange(total)
    from_kept = np.repeat(is_seen, counts)
    made = Runs(*(np.zeros((max(total, room), array.shape[1]), array.dtype) for array in stored))
    for new, own_kept, own_stored in zip(made, kept, stored, strict=True):
        new[:total][from_kept] = own_kept[source[from_kept]]
        new[:total][~from_kept] = own_stored[source[~from_kept]]
    return counts, made


def begins_of(counts: Array) -> Array:
    """Where the runs of each partition begin, if they stand one partition after the other."""
    begins: Array = np.cumsum(counts) - counts
    return begins


def require_run_counts(counts: Array, runs: int, part: str) -> None:
    """The partitions have as many runs together as there are."""
    require_within(counts, 0, runs + 1, part)
    require(int(counts.sum()) == runs, part)

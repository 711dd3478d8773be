"""Runs, or partial matches, that are open between two pieces of a stream, stored one partition after the other."""

from __future__ import annotations

from collections.abc import Sequence

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
from kleene.engine.compiled.batches import Grouped
from kleene.engine.compiled.columns import Array
from kleene.engine.saved_parts import require, require_within


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


def sizes_of(groups: Array) -> Array:
    """How many rows each partition has."""
    sizes: Array = groups[:, GROUP_END] - groups[:, GROUP_FIRST]
    return sizes


def stored_runs(
    grouped: Grouped, groups: Array, counts: Array, arrays: Sequence[tuple[Array, Array]], room: int
) -> tuple[Array, list[Array]]:
    """Puts the runs kept of the partitions in this piece together with those stored of the others.

    `arrays` are pairs of arrays of runs, those kept and those stored. Returns how many runs each partition has now, and
    an array for each pair, with room for at least so many runs.
    """
    is_seen, sources, counts = np.zeros(len(counts), np.bool_), begins_of(counts), counts.copy()
    is_seen[grouped.numbers] = True
    sources[grouped.numbers], counts[grouped.numbers] = groups[:, GROUP_KEPT], groups[:, GROUP_KEPT_COUNT]
    total = int(counts.sum())
    source = np.repeat(sources - begins_of(counts), counts) + np.arange(total)
    from_kept = np.repeat(is_seen, counts)
    made = []
    for kept, stored in arrays:
        new = np.zeros((max(total, room), stored.shape[1]), stored.dtype)
        new[:total][from_kept] = kept[source[from_kept]]
        new[:total][~from_kept] = stored[source[~from_kept]]
        made.append(new)
    return counts, made


def begins_of(counts: Array) -> Array:
    """Where the runs of each partition begin, if they stand one partition after the other."""
    begins: Array = np.cumsum(counts) - counts
    return begins


def require_run_counts(counts: Array, runs: int, part: str) -> None:
    """The partitions have as many runs together as there are."""
    require_within(counts, 0, runs + 1, part)
    require(int(counts.sum()) == runs, part)

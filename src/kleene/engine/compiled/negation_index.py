"""The time-partitioned index of events that negations look for (SASE 2006 §3.3).

Time is cut into parts of equal length. Within a part the events of a negation stand by key, and for each key in their
order, so that an interval is looked up by a few binary searches. When a part has left the window, all of it is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import shared_loops

PARTS_OF_A_WINDOW = 1
REACH = PARTS_OF_A_WINDOW + 2
"""How many parts an interval as long as the window can touch besides its first; one more for rounding."""


@dataclass(frozen=True, slots=True)
class NegationIndex:
    """entries[directory[n, b]:directory[n, b + 1]] are the rows of negation n in part b of time, by key and order."""

    entries: Array
    keys: Array  # of the entries
    directory: Array
    buckets: Array  # for each row of the table, its part of time

    @property
    def arguments(self) -> tuple[Array, ...]:
        return self.entries, self.keys, self.directory, self.buckets

    def kept(self, since: int | float, times: Array) -> Array:
        """The rows of all parts that have not left wholly before `since`."""
        if not len(self.entries):
            return self.entries
        parts = self.buckets[self.entries]
        last = np.full(int(parts.max()) + 1, -np.inf if times.dtype == np.float64 else np.iinfo(np.int64).min)
        last = last.astype(times.dtype)
        np.maximum.at(last, parts, times[self.entries])
        found: Array = np.unique(self.entries[last[parts] >= since])
        return found


_NO_ROWS = np.empty(0, np.int64)
_MOST_CODES = 8
"""Entries are counted by their codes as long as there are not many times as many of these."""


def negation_index(
    rows: Sequence[Array], keys: Sequence[Array], times: Array, window: int | float | None, jit: bool
) -> NegationIndex:
    """The index of events given, for each negation, by their rows in order and the keys of those rows."""
    if not rows:
        return NegationIndex(_NO_ROWS, _NO_ROWS, np.zeros((1, 2), np.int64), _NO_ROWS)
    buckets = _parts_of_time(times, window)
    count = int(buckets.max()) + 1 if len(buckets) else 1
    entries, entry_keys = [], []
    directory = np.zeros((len(rows), count + 1), np.int64)
    at = 0
    for number, (own, own_keys) in enumerate(zip(rows, keys, strict=True)):
        inside = own_keys >= 0
        own, own_keys = own[inside], own_keys[inside]
        order = _by_part_and_key(buckets[own], own_keys, jit)
        entries.append(own[order])
        entry_keys.append(own_keys[order])
        sizes = np.bincount(buckets[own], minlength=count)
        directory[number] = at + np.concatenate([[0], np.cumsum(sizes)])
        at += len(own)
    return NegationIndex(
        np.concatenate(entries).astype(np.int64), np.concatenate(entry_keys).astype(np.int64), directory, buckets
    )


def _by_part_and_key(parts: Array, keys: Array, jit: bool) -> Array:
    """The numbers of entries by part, then by key, then as they come: two stable sorts by counting."""
    by_key = _by_code(keys, jit)
    by_part: Array = by_key[_by_code(parts[by_key], jit)]
    return by_part


def _by_code(codes: Array, jit: bool) -> Array:
    if len(codes) < 2 or int(codes.max()) > _MOST_CODES * len(codes):
        return np.argsort(codes, kind="stable")
    order = np.empty(len(codes), np.int64)
    shared_loops(jit)["group_rows"](codes, np.zeros(int(codes.max()) + 2, np.int64), order)
    return order


def _parts_of_time(times: Array, window: int | float | None) -> Array:
    """For each row the number of its part; all in one where nothing says how long a part should be."""
    if window is None or not len(times):
        return np.zeros(len(times), np.int64)
    first, last = times.min(), times.max()
    if times.dtype == np.float64:
        reach = float(last) - float(first)
        length = max(window / PARTS_OF_A_WINDOW, reach / len(times))
        if not (np.isfinite(reach) and np.isfinite(length) and length > 0):
            return np.zeros(len(times), np.int64)
        found: Array = np.floor((times - first) / length).astype(np.int64)
        return found
    # Not more parts than events, however short the window is.
    whole = max(-(-int(window) // PARTS_OF_A_WINDOW), (int(last) - int(first)) // len(times) + 1)
    parts: Array = (times - first) // min(whole, 2**62)
    return parts

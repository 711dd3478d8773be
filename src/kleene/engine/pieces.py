"""A piece of a partition that is matched where it lies, while its neighbours lie elsewhere.

In a stretch of time that no other piece has events in, everything around an event is known as far as the stretch goes.
Matches whose reach ends within it are found there. The events at its edges travel, with as many of those next to them
as decide about their matches, to where they meet the edges of the neighbours.

The events of a file, or of a part of it, are a piece. It takes the times between its first and its last event to be its
own; if its events are a little out of order, less of them. What lies at its edges travels, and so do its bounds, by
which a task sees whether pieces were right about their times.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kleene.engine.compiled.batches import Grouped
from kleene.engine.compiled.columns import Array
from kleene.engine.protocol import Time
from kleene.engine.ranges import Extent, Reach, own_rows
from kleene.errors import ExecutionError


@dataclass(frozen=True, slots=True)
class Stretch:
    """The times between two that other pieces may have events at."""

    after: Time
    before: Time

    def has(self, times: Array) -> Array:
        """Of each time, whether it lies in the stretch."""
        return np.asarray((times > self.after) & (times < self.before))


@dataclass(frozen=True, slots=True)
class Shares:
    """Of each row: whether it starts matches here, else it does so elsewhere; and whether it travels there."""

    own: Array
    sent: Array


def shares_of(times: Array, grouped: Grouped, stretch: Stretch, reach: Reach) -> Shares:
    """What of a piece is matched where it lies. Times are those of the grouped rows; in each group they ascend."""
    begins, ends = grouped.begins[:-1], grouped.begins[1:]
    inside = stretch.has(times)
    first, last = own_rows(grouped, inside).T
    sizes, count, back_in_time = ends - begins, len(times), -times[::-1]
    turned_first, turned_last = _turned(first, last, count)
    own = inside & _knows_ahead(times, sizes, first, last, reach.ahead, stretch.before)
    own &= _knows_ahead(back_in_time, sizes[::-1], turned_first, turned_last, reach.back, -stretch.after)[::-1]
    own_first, own_last = own_rows(grouped, own).T
    head = _read_on(times, sizes, own_first, own_last, first, reach.ahead, stretch.after)
    turned = _turned(own_first, own_last, count)
    back = _read_on(back_in_time, sizes[::-1], *turned, turned_first, reach.back, -stretch.before)
    tail = (count - back)[::-1]
    # Where nearly all of it would travel, all of it does.
    stays = (tail - head > (ends - begins) // 2) & (own_last > own_first)
    rows = np.arange(len(times))
    own &= np.repeat(stays, sizes)
    return Shares(own, ~own | (rows < np.repeat(head, sizes)) | (rows >= np.repeat(tail, sizes)))


def _turned(first: Array, last: Array, count: int) -> tuple[Array, Array]:
    """The stretches of rows from `first` to `last`, counted from the other end."""
    return (count - last)[::-1], (count - first)[::-1]


def _knows_ahead(times: Array, sizes: Array, first: Array, last: Array, ahead: Extent, before: Time) -> Array:
    """Of each row, whether what it reaches ahead lies before the time, and before the last row of its group."""
    limits: Array = np.full(len(first), before, times.dtype)
    if ahead.rows:
        beyond = last - ahead.rows  # behind all that is within reach by time there must be so many rows
        has = beyond >= first
        if ahead.time is None:
            return np.asarray(np.arange(len(times)) < np.repeat(beyond, sizes))
        limits = np.where(has, np.minimum(limits, times[np.maximum(beyond, 0)]), limits)
        return np.asarray(np.repeat(has, sizes) & (np.repeat(limits, sizes) - times > ahead.time))
    if ahead.time is None:
        return np.ones(len(times), np.bool_)
    return np.asarray(np.repeat(limits, sizes) - times > ahead.time)


def _read_on(
    times: Array, sizes: Array, own_first: Array, own_last: Array, first: Array, ahead: Extent, after: Time
) -> Array:
    """Of each group the row behind the last that an event before its own reaches."""
    head = own_first
    if ahead.time is not None:
        since = np.where(own_first > first, times[np.maximum(own_first, 1) - 1], np.asarray(after, times.dtype))
        is_reached = times - np.repeat(since, sizes) <= ahead.time
        reached = np.concatenate([[0], np.cumsum(is_reached)])
        head = own_first + reached[own_last] - reached[own_first]
    return np.asarray(np.minimum(head + ahead.rows, own_last))


def unpermuted(grouped: Grouped, values: Array) -> Array:
    """Values of grouped rows as they stand in the table."""
    if grouped.is_identity:
        return values
    found = np.empty_like(values)
    found[grouped.order] = values
    return found


# --- which events are a piece, and what it takes for its own ---------------------------------------------------------


BETWEEN = 1 << 60
"""Told by the mark of an event that travels: others may lie next to it that are of another piece."""
_ROW_BITS = 23
"""Where an event lay: so many bits of its row, above them the number of its piece."""
JUMP, MOST_JUMPS = 30, 64
"""Times that jump by so many times the usual are taken for another file's; ahead not more often than this in a piece.
Random arrivals are hardly ever that far apart. To part what belongs together costs edges, no more."""
MOST_TIME = 2**61


def parts_of(times: Array) -> Iterator[tuple[int, int]]:
    """Rows as they lie, from one to another, that are likely to be of one file."""
    steps = np.diff(times).astype(np.float64)
    usual = np.median(np.abs(steps[steps != 0])) if steps.any() else 0.0
    ahead = np.flatnonzero(steps > JUMP * usual)
    if len(ahead) > MOST_JUMPS:
        ahead = ahead[np.argsort(steps[ahead])[-MOST_JUMPS:]]
    jumps = np.sort(np.concatenate([ahead, np.flatnonzero(steps < -JUMP * usual)]))
    found: list[tuple[int, int]] = []
    for begin, end in pairwise([0, *(int(row) + 1 for row in jumps), len(times)]):
        # A few late events are no file of their own: what overlaps with its neighbour belongs to it.
        while found and _overlap(times[slice(*found[-1])], times[begin:end]):
            begin = found.pop()[0]
        found.append((begin, end))
    return iter(found)


def _overlap(one: Array, other: Array) -> bool:
    return bool(one.min() < other.max() and other.min() < one.max())


def clean_cut(times: Array) -> int:
    """A row in the latter half where nothing behind it is earlier than what is before it; the end if there is none."""
    middle, end = len(times) // 2, len(times) - len(times) // 8
    latest = np.maximum.accumulate(times)
    earliest = np.minimum.accumulate(times[::-1])[::-1]
    clean = np.flatnonzero(latest[middle : end - 1] <= earliest[middle + 1 : end])
    return middle + int(clean[-1]) + 1 if len(clean) else len(times)


@dataclass(frozen=True, slots=True)
class Bounds:
    """When a piece's events begin and end, and the times between that it takes for its own, if there are any."""

    low: int
    high: int
    stretch: Stretch | None
    late: int = 0  # by how much an event comes after later ones

    @property
    def text(self) -> str:
        own = None if self.stretch is None else [self.stretch.after, self.stretch.before]
        return json.dumps([self.low, self.high, own])

    @classmethod
    def read(cls, text: str) -> Bounds:
        low, high, own = json.loads(text)
        return cls(low, high, None if own is None else Stretch(*own))


def bounds_of(times: Array) -> Bounds:
    """Of events as they lie: where some are late, others of another piece may be, too, and twice as late."""
    low, high = times.min().item(), times.max().item()
    late = (np.maximum.accumulate(times) - times).max().item()
    if max(abs(low), abs(high)) > MOST_TIME:
        return Bounds(low, high, None, late)  # differences might not fit
    after, before = low + 2 * late, high - 2 * late
    return Bounds(low, high, Stretch(after, before) if after < before else None, late)


def check_bounds(bounds: Iterable[Bounds]) -> None:
    """An error if a piece has events at times that another took for its own."""
    in_order = sorted(bounds, key=lambda piece: (piece.low, piece.high))
    highest: int | None = None
    for number, piece in enumerate(in_order):
        own = piece.stretch
        following = in_order[number + 1] if number + 1 < len(in_order) else None
        is_late = own is not None and highest is not None and highest > own.after
        is_early = own is not None and following is not None and following.low < own.before
        if is_late or is_early:
            raise not_in_place(
                "files of the input do not follow one another in time: they have events at the same times"
            )
        highest = piece.high if highest is None else max(highest, piece.high)


def not_in_place(how: str) -> ExecutionError:
    return ExecutionError(
        f"layout='in place' was given, but {how}",
        hint="Leave the layout out, or write the input in the order of time first: "
        "df.repartitionByRange(n, order).sortWithinPartitions(order).",
    )


def where_it_lay(piece: int, rows: Array) -> Array:
    return np.asarray(rows | (piece << _ROW_BITS))


def is_contiguous(lay: Array) -> Array:
    """Of each event that travelled but the first, whether nothing of its key was left behind just before it.

    Row patterns reach at least one row back and ahead: next to what stayed behind, something of the piece travelled.
    """
    pieces, rows = lay >> _ROW_BITS, lay & ((1 << _ROW_BITS) - 1)
    same = (pieces[1:] == pieces[:-1]) & (lay[1:] & BETWEEN == 0)
    return np.asarray(~same | (rows[1:] == rows[:-1] + 1))

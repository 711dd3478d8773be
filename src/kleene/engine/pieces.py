"""A piece of a partition that is matched where it lies, while its neighbours lie elsewhere.

In a stretch of time that no other piece has events in, everything around an event is known as far as the stretch goes.
Matches whose reach ends within it are found there. The events at its edges travel, with as many of those next to them
as decide about their matches, to where they meet the edges of the neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kleene.engine.compiled.batches import Grouped
from kleene.engine.compiled.columns import Array
from kleene.engine.protocol import Time
from kleene.engine.ranges import Extent, Reach, own_rows


@dataclass(frozen=True, slots=True)
class Stretch:
    """The times between two that other pieces may have events at."""

    after: Time
    before: Time

    def has(self, times: Array) -> Array:
        """Of each time, whether it lies in the stretch."""
        inside: Array = (times > self.after) & (times < self.before)
        return inside


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

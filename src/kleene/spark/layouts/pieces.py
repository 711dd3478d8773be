"""An input matched where it lies: files of events that were written as time went by need not be shuffled.

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

from kleene.engine.pieces import Stretch
from kleene.engine.tasks import Array
from kleene.errors import ExecutionError

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
        f"layout='in place' was given, and {how}",
        hint="Leave the layout out, or write the input in the order of time first: "
        "df.repartitionByRange(n, order).sortWithinPartitions(order).",
    )


def where_it_lay(piece: int, rows: Array) -> Array:
    found: Array = rows | (piece << _ROW_BITS)
    return found


def is_contiguous(lay: Array) -> Array:
    """Of each event that travelled but the first, whether nothing of its key was left behind just before it.

    Row patterns reach at least one row back and ahead: next to what stayed behind, something of the piece travelled.
    """
    pieces, rows = lay >> _ROW_BITS, lay & ((1 << _ROW_BITS) - 1)
    same = (pieces[1:] == pieces[:-1]) & (lay[1:] & BETWEEN == 0)
    found: Array = ~same | (rows[1:] == rows[:-1] + 1)
    return found

"""The slots of a key, with how many events each has, to ranges of about equally many (RIP 2013 §4.2).

The order key is divided into slots of equal width. Ranges are made of whole slots, so that events of equal order keys
are never parted; each range also reads the slots that its matches reach.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kleene.engine.ranges import Extent, Reach
from kleene.ir.evaluate import MICROSECONDS_PER_DAY
from kleene.options.spark import MOST_RANGES

SLOTS = MOST_RANGES
MOST_COPIED = 0.25
"""Ranges are made larger until at most this part of the events is sent twice."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """How an input is cut: each key of more than `least` events into ranges of about `size`, or into `count`."""

    reach: Reach
    order_type: pa.DataType
    least: int
    size: int
    count: int | None
    partitions: int

    def __str__(self) -> str:
        what = f"{self.count} ranges for each key" if self.count else f"ranges of about {self.size:,} events"
        which = "" if self.count else f", where a key has more than {self.least:,}"
        return f"{what}{which}; each reads on for {self.reach}"


@dataclass(frozen=True, slots=True)
class SlotRange:
    """A range of slots, by their places among those that have events: its own, and all that it reads."""

    own: range
    read: range
    size: int


def ranges_of_slots(slots: list[int], counts: list[int], width: float, cutting: Cutting) -> list[SlotRange]:
    """The ranges of a key; none where cutting would send too much twice."""
    total = sum(counts)
    wanted = cutting.count or -(-total // cutting.size)
    if not cutting.count and wanted > cutting.partitions:
        wanted = -(-wanted // cutting.partitions) * cutting.partitions
    while wanted > 1:
        found = _cut(slots, counts, width, in_order_numbers(cutting.reach, cutting.order_type), wanted)
        copied = sum(sum(counts[at] for at in part.read if at not in part.own) for part in found)
        if cutting.count or copied <= MOST_COPIED * total:
            return found if len(found) > 1 else []
        wanted //= 2
    return []


def _cut(slots: list[int], counts: list[int], width: float, reach: Reach, wanted: int) -> list[SlotRange]:
    before = np.concatenate([[0], np.cumsum(counts)]).tolist()
    total = before[-1]
    begins = sorted({bisect_left(before, total * number / wanted) for number in range(wanted)} - {len(slots)})
    found = []
    for begin, end in zip(begins, [*begins[1:], len(slots)], strict=True):
        low, high = _back(slots, before, width, reach.back, begin), _ahead(slots, before, width, reach.ahead, end)
        found.append(SlotRange(range(begin, end), range(low, high), before[end] - before[begin]))
    return found


def _ahead(slots: list[int], before: list[int], width: float, extent: Extent, end: int) -> int:
    """The place behind the last slot that a range reads whose own end before the place `end`."""
    # A slot more than the time needs: times may be rounded on their way to slots.
    high = end if extent.time is None else bisect_left(slots, slots[end - 1] + 2 + _slots_in(extent.time, width), end)
    return min(bisect_left(before, before[high] + extent.rows, high), len(slots))


def _back(slots: list[int], before: list[int], width: float, extent: Extent, begin: int) -> int:
    """The place of the first slot that a range reads whose own begin at the place `begin`."""
    low = begin
    if extent.time is not None:
        low = bisect_left(slots, slots[begin] - 2 - _slots_in(extent.time, width), 0, begin)
    return max(bisect_right(before, before[low] - extent.rows) - 1, 0)


def _slots_in(time: float, width: float) -> int:
    slots = time / width + 1
    return SLOTS if slots > SLOTS else int(slots)


def in_order_numbers(reach: Reach, type_: pa.DataType) -> Reach:
    """The reach in the units of `order_number`."""

    def of(extent: Extent) -> Extent:
        if extent.time is None or not pa.types.is_date(type_):
            # Whole seconds for times without a zone: up to one is lost at either end.
            lost = 2_000_000 if pa.types.is_timestamp(type_) and type_.tz is None else 0
            return extent if extent.time is None else Extent(extent.time + lost, extent.rows)
        return Extent(extent.time / MICROSECONDS_PER_DAY + 1, extent.rows)

    return Reach(of(reach.back), of(reach.ahead))

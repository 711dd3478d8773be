"""A table to ranges that threads match apart, where there is no key to split by, or one with nearly all events.

The table is in order, so that a range is a slice of it: its own events, with as many behind them as a match that begins
there can reach, and as many before them as it looks back to (RIP 2013 §4.2). Every candidate of a range is a match:
queries that choose among overlapping matches are not cut here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.budget import Budget
from kleene.engine.compiled.columns import Array
from kleene.engine.protocol import Time
from kleene.engine.ranges import RangeEvents, RangeMatcher, Reach, Uncut, is_choosing, reach_of
from kleene.engine.tasks import grouped_by, order_times
from kleene.plan.plan import ByKey, Plan
from kleene.schema import LARGEST_INTEGER, SMALLEST_INTEGER

MOST_COPIED = 0.5
"""Ranges that would read more than this part of the events twice gain nothing."""


@dataclass(frozen=True, slots=True)
class Range:
    """The rows from begin to end, of which those from first to last are its own."""

    begin: int
    first: int
    last: int
    end: int


@dataclass(frozen=True, slots=True)
class Ranges:
    plan: Plan
    table: pa.Table
    reach: Reach
    parts: list[Range]
    nullable: frozenset[str]

    def __len__(self) -> int:
        return len(self.parts)

    def matched(self, number: int, with_times: bool, budget: Budget) -> tuple[list[pa.Table], list[Array]]:
        """Tables of rows, and of each row the position of the event that completes its match."""
        part, matcher = self.parts[number], RangeMatcher(self.plan, self.reach, self.nullable)
        table = self.table.slice(part.begin, part.end - part.begin)
        rows = np.arange(table.num_rows)
        own = (rows >= part.first - part.begin) & (rows < part.last - part.begin)
        key = self.plan.split.columns if isinstance(self.plan.split, ByKey) else ()
        places = np.stack([rows, np.zeros_like(rows)], axis=1)
        found = list(matcher.batches(RangeEvents(table, own, places, grouped_by(table, key)), with_times, None, budget))
        return [batch.table for batch in found], [batch.ends + part.begin for batch in found]


def cut_by_range(plan: Plan, table: pa.Table, count: int, nullable: frozenset[str]) -> Ranges | str:
    """Ranges of about as many events each; or why there are none."""
    reach = reach_or_reason(plan)
    if isinstance(reach, str):
        return reach
    times, rows = order_times(table, plan.query), table.num_rows
    parts = []
    for number in range(count):
        first, last = rows * number // count, rows * (number + 1) // count
        begin, end = first - reach.back.rows, last + reach.ahead.rows
        if reach.back.time is not None:
            begin = _place(times, times[first].item() - reach.back.time, "left") - reach.back.rows
        if reach.ahead.time is not None:
            end = _place(times, times[last - 1].item() + reach.ahead.time, "right") + reach.ahead.rows
        parts.append(Range(min(max(begin, 0), first), first, last, max(min(end, rows), last)))
    if sum(part.end - part.begin for part in parts) > (1 + MOST_COPIED) * rows:
        return "a match may reach over most of the events"
    return Ranges(plan, table, reach, parts, nullable)


def _place(times: Array, time: Time, side: Literal["left", "right"]) -> int:
    """Where the time belongs among the times; it may be one that their type cannot hold."""
    if times.dtype.kind == "i":
        if time > LARGEST_INTEGER:
            return len(times)
        if time < SMALLEST_INTEGER:
            return 0
    return int(np.searchsorted(times, times.dtype.type(time), side))


def reach_or_reason(plan: Plan) -> Reach | str:
    """How far a range must read; or why the events are not cut."""
    reach = reach_of(plan)
    if isinstance(reach, Uncut):
        return reach.reason
    if is_choosing(plan):
        return "which matches count depends on those before"
    counts_rows = bool(reach.back.rows or reach.ahead.rows) or not isinstance(plan.query, AnalyzedQuery)
    if isinstance(plan.split, ByKey) and counts_rows:
        return "how far a match reaches is counted in events of its key"
    return reach

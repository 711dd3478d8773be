"""A table to ranges that threads match apart, where there is no key to split by, or one with nearly all events.

The table is in order, so that a range is a slice of it: its own events, with as many behind them as a match that begins
there can reach, and as many before them as it looks back to (RIP 2013 §4.2). What a range finds are candidates. Where a
query chooses among overlapping matches, or numbers them, one pass over the candidates of all ranges says which of them
are matches, and looks at no event; only these become rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.budget import Budget, table_bytes
from kleene.engine.choice import choose
from kleene.engine.compiled.arrangement import chosen_matches, order_of
from kleene.engine.compiled.arrays.orders import BEST_OF_AN_END_FIRST
from kleene.engine.compiled.batches import one_group
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import SharedLoops
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.row_engine import RowEngine
from kleene.engine.compiled.row_search import FoundRows, find_row_candidates
from kleene.engine.matches import FlatMatches, FoundMatches
from kleene.engine.protocol import Time
from kleene.engine.ranges import Reach, Uncut, entries_of, is_choosing, reach_of, resume_rows
from kleene.engine.results import RowWriter
from kleene.engine.run import Runner, measures_of
from kleene.engine.share_keys import Workers
from kleene.engine.tasks import order_times
from kleene.ir.options import Format
from kleene.plan.plan import ByKey, Plan
from kleene.schema import LARGEST_INTEGER, SMALLEST_INTEGER

MOST_COPIED = 0.5
"""Ranges that would read more than this part of the events twice gain nothing."""
FEW = 1_000
Found = FoundMatches | FoundRows


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

    def candidates(self, number: int, budget: Budget) -> Found:
        """What begins with one of the range's own events."""
        part = self.parts[number]
        table = self.table.slice(part.begin, part.end - part.begin)
        if isinstance(self.plan.query, AnalyzedRowPattern):
            return self._rows(self.plan.query, table, part, budget)
        # Every match is a candidate. The engine of a plan is found by its identity.
        plan = self.plan if self.plan.format is Format.ALL else replace(self.plan, format=Format.ALL)
        found = Runner(plan, self.nullable).find(table, budget)
        first = found.first
        is_own = (first >= part.first - part.begin) & (first < part.last - part.begin)
        return FoundMatches(table, found if is_own.all() else chosen_matches(found, np.flatnonzero(is_own)), True)

    def _rows(self, query: AnalyzedRowPattern, table: pa.Table, part: Range, budget: Budget) -> FoundRows:
        engine = choose(self.plan).compiled
        assert isinstance(engine, RowEngine)
        grouped, own = one_group(table.num_rows), np.array([[part.first - part.begin, part.last - part.begin]])
        entries = entries_of(query, self.reach, table, grouped, own)
        return find_row_candidates(engine, table, grouped, own, entries, budget)

    def rows(self, number: int, found: Found, with_times: bool, budget: Budget) -> tuple[list[pa.Table], list[Array]]:
        """Tables of rows, and of each row the position of the event that completes its match."""
        measures = measures_of(self.plan, choose(self.plan), self.nullable)
        writer = RowWriter(self.plan, measures, Meter(), with_times, is_whole=True)
        tables, places = list[pa.Table](), list[Array]()
        for part in writer.parts([found], budget):
            for batch in part.batches:
                assert batch.places is not None
                budget.add("its result", table_bytes(batch.table))
                tables.append(batch.table)
                places.append(batch.places.astype(np.int64) + self.parts[number].begin)
        return tables, places


def chosen_of(ranges: Ranges, found: Sequence[Found], loops: SharedLoops) -> list[Found]:
    """Of the candidates of all ranges those that are matches."""
    begins = [part.begin for part in ranges.parts]
    if isinstance(ranges.plan.query, AnalyzedRowPattern):
        rows = [part for part in found if isinstance(part, FoundRows)]
        return list(_chosen_rows(ranges.plan.query, rows, begins, loops))
    return list(_chosen_matches([part for part in found if isinstance(part, FoundMatches)], begins, loops))


def _chosen_rows(
    query: AnalyzedRowPattern, found: Sequence[FoundRows], begins: Sequence[int], loops: SharedLoops
) -> list[FoundRows]:
    """Matching goes on where the last match says, and from there on every candidate is what it would find."""
    progress, chosen = np.zeros(2, np.int64), list[FoundRows]()
    for part, begin in zip(found, begins, strict=True):
        then = resume_rows(query, part, loops.jit)
        numbers = np.zeros(len(part.matches), np.int64)
        goes_on = np.where(then < 0, then, then + begin)
        if loops["choose_rows"](part.matches.starts + begin, goes_on, progress, numbers) < 0:
            raise NoNextRowError
        which = np.flatnonzero(numbers)
        matches = replace(part.matches.chosen(which), numbers=numbers[which])
        chosen.append(replace(part, matches=matches))
    return chosen


class NoNextRowError(Exception):
    """A match says that matching goes on where it has no row. Matching in one piece tells it as always."""


def _chosen_matches(found: Sequence[FoundMatches], begins: Sequence[int], loops: SharedLoops) -> list[FoundMatches]:
    """By their ends, late beginnings first, those without overlap; of each range only the best of an end."""
    best = [_best_of_ends(part.matches, loops.jit) for part in found]
    first = np.concatenate([own.first + np.int64(begin) for own, begin in zip(best, begins, strict=True)])
    last = np.concatenate([own.last + np.int64(begin) for own, begin in zip(best, begins, strict=True)])
    order = np.lexsort((-first, last))
    is_chosen = np.zeros(len(order), np.int64)
    loops["choose_matches"](first, last, order, is_chosen)
    ends = np.cumsum([0, *map(len, best)]).tolist()
    return [
        replace(part, matches=chosen_matches(own, np.flatnonzero(is_chosen[begin:end])))
        for part, own, begin, end in zip(found, best, ends[:-1], ends[1:], strict=True)
    ]


def _best_of_ends(found: FlatMatches, jit: bool) -> FlatMatches:
    order = order_of(found, np.zeros(len(found), np.int64), BEST_OF_AN_END_FIRST, jit)
    ends = found.last[order]
    return chosen_matches(found, order[np.append(True, ends[1:] != ends[:-1])] if len(order) else order)


# --- where to cut ---


def cut_by_range(plan: Plan, table: pa.Table, workers: Workers, nullable: frozenset[str], is_one: bool) -> Ranges | str:
    """Ranges of about as many events each; or why there are none. `is_one` says that there is one partition."""
    reach = reach_or_reason(plan, is_one)
    if isinstance(reach, str):
        return reach
    times, rows, count = order_times(table, plan.query), table.num_rows, workers.count
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


def has_one_key(plan: Plan, table: pa.Table) -> bool:
    """Whether all events are of one partition."""
    if not isinstance(plan.split, ByKey):
        return True
    columns = [table.column(name) for name in plan.split.columns]
    is_plain = all(pa.types.is_integer(column.type) or pa.types.is_string(column.type) for column in columns)
    if not is_plain or any(column.null_count for column in columns):
        return False
    heads = [column.slice(0, FEW) for column in columns]  # most tables show soon that they have more
    return all(pc.all(pc.equal(column, column[0])).as_py() for column in (*heads, *columns))


def _place(times: Array, time: Time, side: Literal["left", "right"]) -> int:
    """Where the time belongs among the times; it may be one that their type cannot hold."""
    if times.dtype.kind == "i":
        if time > LARGEST_INTEGER:
            return len(times)
        if time < SMALLEST_INTEGER:
            return 0
    return int(np.searchsorted(times, times.dtype.type(time), side))


def reach_or_reason(plan: Plan, has_one_key: bool = False) -> Reach | str:
    """How far a range must read; or why the events, of which all may be known to have one key, are not cut."""
    reach = reach_of(plan)
    if isinstance(reach, Uncut):
        return reach.reason
    if not isinstance(plan.split, ByKey) or has_one_key:
        return reach
    if is_choosing(plan):
        return "which matches count depends on those before, of the same key"
    if bool(reach.back.rows or reach.ahead.rows) or not isinstance(plan.query, AnalyzedQuery):
        return "how far a match reaches is counted in events of its key"
    return reach

"""Ranges of runs: a partition cut into pieces that are matched apart (RIP 2013 §4.2).

A range starts matches from its own events only, and reads on as far as a match can reach; and back, as far as one looks
back. Which of these candidates are matches depends, where matches are chosen among those that overlap, on what the
range before has found: that is decided in one pass over the candidates in order, which looks at no event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.analysis.steps import AnalyzedSteps
from kleene.engine.budget import Budget
from kleene.engine.by_column.matches import Columns
from kleene.engine.choice import choose
from kleene.engine.compiled.arrangement import chosen_matches, order_of
from kleene.engine.compiled.arrays.orders import BEST_OF_AN_END_FIRST
from kleene.engine.compiled.batches import Grouped
from kleene.engine.compiled.columns import Array, times_array
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.row_code import look_around
from kleene.engine.compiled.row_engine import RowEngine
from kleene.engine.compiled.row_search import WHY_NOT_TO_SKIP, FoundRows, find_row_candidates
from kleene.engine.events import window_time
from kleene.engine.match_order import RowOrder, RowPlaces
from kleene.engine.matches import FlatMatches
from kleene.engine.protocol import Time
from kleene.engine.results import ROWS_PER_BATCH, RowWriter
from kleene.engine.row_columns import RowTables
from kleene.engine.row_output import OutputRow, row_output_table
from kleene.engine.row_reference import cannot_skip
from kleene.engine.rows import find_rows
from kleene.engine.run import Runner
from kleene.errors import ExecutionError
from kleene.ir import expr as ir
from kleene.ir.options import AfterMatch, Format, RowsPerMatch, Selection, Skip, Strategy, Timeouts, WindowUnit
from kleene.ir.pattern import can_be_empty, has_exclusion, longest
from kleene.plan.plan import Plan
from kleene.schema import DATE, FLOAT, INTEGER, TimestampType


@dataclass(frozen=True, slots=True)
class Extent:
    """So much time, in the units of the order key, and then so many rows more."""

    time: Time | None = None
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Reach:
    """How far before and behind its first event the events lie that decide about a match."""

    back: Extent
    ahead: Extent

    def __str__(self) -> str:
        parts = [] if self.ahead.time is None else [f"{self.ahead.time:,} of the order key"]
        return " and ".join([*parts, f"{self.ahead.rows:,} rows"])


@dataclass(frozen=True, slots=True)
class Uncut:
    """Why a query cannot be cut into ranges: a clause that fits after a colon."""

    reason: str


def reach_of(plan: Plan) -> Reach | Uncut:
    """How far a range must read; or why there are none."""
    if choose(plan).compiled is None:
        return Uncut("only the compiled engine matches in ranges")
    query = plan.query
    if not query.order_by:
        return Uncut("the query has no ORDER BY, so there is no order key to cut")
    order_type = query.time_type
    if order_type not in (INTEGER, FLOAT, DATE) and not isinstance(order_type, TimestampType):
        return Uncut("ranges are cut by numbers and times, but the order key is neither")
    if plan.timeouts is not Timeouts.NONE:
        return Uncut("runs that are out of time are found where all events of a key are")
    if isinstance(query, AnalyzedRowPattern):
        return _reach_of_rows(query)
    if isinstance(query, AnalyzedSteps):
        return Uncut("a pattern in steps is matched where all events of a key are")
    if plan.mode == "compressed":
        return Uncut("compressed output holds all matches of an event together")
    if plan.mode == "totals":
        return Uncut("aggregates over all matches are made where all events of a key are")
    return _reach_of_events(query)


def _reach_of_events(query: AnalyzedQuery) -> Reach | Uncut:
    window, back = query.window, Extent()
    if window is None:
        is_contiguous = query.strategy in (Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY)
        if is_contiguous and not any(component.is_kleene for component in query.components):
            return Reach(back, Extent(rows=len(query.components)))
        return Uncut("no WITHIN bounds how far a match can reach")
    if window.unit is WindowUnit.EVENTS:
        return Reach(back, Extent(rows=int(window.size)))
    time = window_time(window, query.time_type)
    if any(negation.gap == 0 for negation in query.negations):
        back = Extent(time)
    return Reach(back, Extent(time))


def _reach_of_rows(query: AnalyzedRowPattern) -> Reach | Uncut:
    definition = query.definition
    if definition.selection is Selection.FIRST_COMPLETED:
        return Uncut("the regular-expression operator starts over after each match, wherever that ends")
    if query.order_by[0].descending or query.order_by[0].nulls_first is not None:
        return Uncut("ranges need an order key that ascends and has no NULLs")
    if query.frame is not None:
        return Uncut("a window gives out every row, and a match decides from which row on the next is searched")
    if query.rows_per_match is RowsPerMatch.ALL_WITH_UNMATCHED:
        return Uncut("unmatched rows are known only once all matches are")
    if query.rows_per_match is not RowsPerMatch.ONE and _may_give_no_row(query):
        return Uncut("later matches depend on one that gives out no row")
    used = [condition for _, condition in query.conditions]
    used += [item.expression for item in query.measures if not isinstance(item.expression, ir.MatchNumber)]
    if any(isinstance(node, ir.MatchNumber) for expression in used for node in ir.walk(expression)):
        return Uncut("MATCH_NUMBER() in a condition or inside a measure counts all earlier matches")
    if _has_numbers(query) and definition.selection is Selection.ALL_MATCHES:
        return Uncut("MATCH_NUMBER() counts all earlier matches")
    look_back, look_ahead = look_around(query.expressions)
    # One row more on either side, so that neither end of the range is taken for the partition's.
    back = Extent(rows=look_back + 1)
    window = definition.window
    by_rows = [definition.max_length, longest(definition.pattern)]
    if window is not None and window.unit is WindowUnit.EVENTS:
        by_rows.append(int(window.size))
    bounds = [bound for bound in by_rows if bound is not None]
    if bounds:
        return Reach(back, Extent(rows=min(bounds) + look_ahead + 1))
    if window is None:
        return Uncut("neither MAXLENGTH nor WITHIN bounds how far a match can reach")
    return Reach(back, Extent(window_time(window, query.time_type), look_ahead + 1))


def _may_give_no_row(query: AnalyzedRowPattern) -> bool:
    pattern = query.definition.pattern
    return has_exclusion(pattern) or (query.rows_per_match is RowsPerMatch.ALL_OMIT_EMPTY and can_be_empty(pattern))


def is_choosing(plan: Plan) -> bool:
    """Whether not every candidate is a match, or matches are numbered: then there is a pass over them in order."""
    query = plan.query
    if isinstance(query, AnalyzedQuery):
        return plan.format is Format.NON_OVERLAPPING
    if query.definition.selection is Selection.ALL_MATCHES:
        return False
    after = query.definition.after_match or AfterMatch()
    return after.skip is not Skip.TO_NEXT_ROW or _has_numbers(query)


def _has_numbers(query: AnalyzedRowPattern) -> bool:
    return any(isinstance(measure.expression, ir.MatchNumber) for measure in query.measures)


@dataclass(frozen=True, slots=True)
class RangeEvents:
    """Events of ranges in one table, those of each range in order.

    Of each event: whether it starts matches (those of a range that do stand together), and its place, two numbers that
    grow along its partition. `grouped` puts the events of each range together.
    """

    table: pa.Table
    own: Array
    places: Array
    grouped: Grouped


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows of output, each with where its match begins, and where matching goes on or, for SASE, where it ends.

    Both are places; where the second number is below 0, it says why one cannot go on (see `find_row_candidates`).
    `starts` are the rows in the table of the ranges where the matches begin, `ends` those where they are complete.
    """

    table: pa.Table
    first: Array
    then: Array
    starts: Array
    ends: Array
    matches: FlatMatches | None = None
    events: pa.Table | None = None


NEXT = np.array([0, 1])
"""From a place to the first that can follow it."""
Place = tuple[int, int]


class RangeMatcher:
    """Finds the candidates of ranges."""

    def __init__(self, plan: Plan, reach: Reach, nullable: frozenset[str] | None = None) -> None:
        self._plan, self._reach = plan, reach
        query = plan.query
        engine = choose(plan).compiled
        assert engine is not None
        self._jit = engine.jit
        if isinstance(query, AnalyzedRowPattern):
            assert isinstance(engine, RowEngine)
            self._rows = engine
        else:
            # The engine of a plan is found by its identity.
            self._runner = Runner(plan if plan.format is Format.ALL else replace(plan, format=Format.ALL), nullable)

    def batches(
        self,
        part: RangeEvents,
        with_times: bool = False,
        row_order: RowOrder | None = None,
        budget: Budget | None = None,
    ) -> Iterator[Candidates]:
        budget = Budget(self._plan.limits, part.table.num_rows) if budget is None else budget
        try:
            yield from self._found(part, with_times, row_order, budget)
        except ExecutionError as error:
            if not is_choosing(self._plan):
                raise
            raise ExecutionError(
                error.message,
                hint=f"{error.hint or ''} It happened in a candidate of a range, which need not be a match: "
                "SparkOptions('shuffled') computes matches only.".strip(),
            ) from None

    def _found(
        self, part: RangeEvents, with_times: bool, row_order: RowOrder | None, budget: Budget
    ) -> Iterator[Candidates]:
        query = self._plan.query
        if isinstance(query, AnalyzedQuery):
            return self._events(query, part, with_times, budget)
        own = own_rows(part.grouped, part.grouped.permuted(part.own))
        try:
            entries = entries_of(query, self._reach, part.table, part.grouped, own)
            found = find_row_candidates(self._rows, part.table, part.grouped, own, entries, budget)
        except GaveUpError:
            if (query.definition.after_match or AfterMatch()).skip in (Skip.TO_FIRST, Skip.TO_LAST):
                raise
            return self._interpreted(query, part, row_order)
        return self._row_batches(query, part, found, row_order)

    def _events(
        self, query: AnalyzedQuery, part: RangeEvents, with_times: bool, budget: Budget
    ) -> Iterator[Candidates]:
        """Ranges of one partition are matched as one: they are farther from each other than a match reaches."""
        found = self._runner.find(part.table, budget)
        is_own = part.own[found.first]
        if not is_own.all():
            found = chosen_matches(found, np.flatnonzero(is_own))
        if self._plan.format is Format.NON_OVERLAPPING:
            order = order_of(found, np.zeros(len(found), np.int64), BEST_OF_AN_END_FIRST, self._jit)
            ends = found.last[order]
            found = chosen_matches(found, order[np.append(True, ends[1:] != ends[:-1])] if len(order) else order)
        writer = RowWriter(self._plan, self._runner.measures, self._runner.meter, with_times)
        for batch in writer.batches(part.table, found):
            assert batch.matches is not None
            first, last = (rows.astype(np.int64) for rows in (batch.matches.first, batch.matches.last))
            places = part.places[first], part.places[last]
            yield Candidates(batch.table, *places, first, last, batch.matches, batch.events)

    def _interpreted(
        self, query: AnalyzedRowPattern, part: RangeEvents, row_order: RowOrder | None
    ) -> Iterator[Candidates]:
        """The candidates of every start, found by the interpreter, which knows what is an error."""
        after = query.definition.after_match or AfterMatch()
        every = replace(query, definition=replace(query.definition, after_match=AfterMatch(Skip.TO_NEXT_ROW)))
        for begin, end in pairwise(part.grouped.begins.tolist()):
            rows = part.grouped.order[begin:end]
            table, own = part.table.take(pa.array(rows)), part.own[rows]
            found = [row for row in find_rows(every, table, self._plan.run_limit) if own[row.order[1]]]
            for at in range(0, len(found), ROWS_PER_BATCH):
                some = found[at : at + ROWS_PER_BATCH]
                starts, ends = (rows[[row.order[number] for row in some]] for number in (1, 0))
                then = starts if after.skip is Skip.TO_NEXT_ROW else ends
                made = _rows_with_order(query, table, some, row_order, part.places[rows, 1])
                yield Candidates(made, part.places[starts], part.places[then] + NEXT, starts, ends)

    def _row_batches(
        self, query: AnalyzedRowPattern, part: RangeEvents, found: FoundRows, row_order: RowOrder | None
    ) -> Iterator[Candidates]:
        then = resume_rows(query, found, self._jit)
        # Behind the row before: the row where matching goes on may be beyond those that the range reads.
        goes_on = part.places[found.grouped.positions(np.maximum(then, 1) - 1)] + NEXT
        goes_on[then < 0, 1] = then[then < 0]
        starts = found.grouped.order[found.matches.starts]
        ends = found.grouped.order[found.matches.starts + np.maximum(np.diff(found.matches.offsets), 1) - 1]
        tables = RowTables(Columns(query, part.table))
        if query.rows_per_match is RowsPerMatch.ONE:
            table, order = tables.one_row(found, row_order, part.places[:, 1])
            for at in range(0, len(order), ROWS_PER_BATCH):
                numbers = order[at : at + ROWS_PER_BATCH]
                own = starts[numbers]
                yield Candidates(table.slice(at, len(numbers)), part.places[own], goes_on[numbers], own, ends[numbers])
            return
        table, stands, numbers = tables.all_rows(found, row_order, part.places[:, 1])
        for at in range(0, table.num_rows, ROWS_PER_BATCH):
            first, own = stands.first[at : at + ROWS_PER_BATCH], numbers[at : at + ROWS_PER_BATCH]
            yield Candidates(table.slice(at, len(own)), part.places[first], goes_on[own], first, ends[own])


def _rows_with_order(
    query: AnalyzedRowPattern,
    table: pa.Table,
    rows: Sequence[OutputRow],
    row_order: RowOrder | None,
    among_equals: Array,
) -> pa.Table:
    made = row_output_table(query, table, rows)
    if row_order is None:
        return made
    places = RowPlaces.of([row.order for row in rows])
    return row_order.appended(made, table, replace(places, among_equals=among_equals[places.first]))


def entries_of(query: AnalyzedRowPattern, reach: Reach, table: pa.Table, grouped: Grouped, own: Array) -> Array:
    """How many of the first own rows a match of an earlier range may reach: there matching may go on."""
    is_first = own[:, 0] == grouped.begins[:-1]
    if query.definition.selection is Selection.ALL_MATCHES or is_first.all():
        return np.ones(len(own), np.int64)
    reached, ahead = np.full(len(own), reach.ahead.rows + 1), reach.ahead.time
    if ahead is not None:
        times = grouped.permuted(times_array(table, query.order_by[0].name, query.time_type))
        begins, ends = own.T
        since = times[np.minimum(begins, len(times) - 1)]
        is_reached = np.concatenate([[0], np.cumsum(times - np.repeat(since, grouped.sizes) < ahead)])
        reached += is_reached[ends] - is_reached[begins]
    return np.where(is_first, 1, reached)


def own_rows(grouped: Grouped, own: Array) -> Array:
    """Of each group the first of its own rows and the row behind the last; an empty stretch where it has none."""
    begins = grouped.begins[:-1]
    counts = np.concatenate([[0], np.cumsum(own)])
    before = counts[begins]
    first = np.minimum(np.searchsorted(counts, before, "right") - 1, grouped.begins[1:])
    return np.stack([first, first + counts[grouped.begins[1:]] - before], axis=1)


def resume_rows(query: AnalyzedRowPattern, found: FoundRows, jit: bool) -> Array:
    """The row where matching goes on after each match; what the kernel said where it cannot."""
    matches = found.matches
    starts, lengths = matches.starts, np.diff(matches.offsets)
    after = query.definition.after_match or AfterMatch()
    if after.skip is Skip.TO_NEXT_ROW or query.definition.selection is Selection.ALL_MATCHES:
        return starts + 1
    if after.skip is Skip.PAST_LAST_ROW:
        return starts + np.maximum(lengths, 1)
    assert after.variable is not None
    tables = found.kernel.generated.tables
    members = query.members[after.variable]
    wanted = np.array([int(tables.variables[n] in members) for n in tables.variable_of], np.int64)
    rows = np.empty(len(starts), np.int64)
    from_last = int(after.skip is Skip.TO_LAST)
    shared_loops(jit)["nth_rows"](matches.offsets, starts, matches.states, wanted, from_last, 0, rows)
    rows = np.where(lengths == 0, starts + 1, rows)
    return np.where(matches.numbers < 0, matches.numbers, rows)


class RowChooser:
    """Chooses, of the candidates of a partition in order, those that matching would find from its beginning."""

    def __init__(self, query: AnalyzedRowPattern) -> None:
        self._after = query.definition.after_match or AfterMatch()
        self._goes_on: Place | None = None
        self._chosen: Place | None = None
        self._number = 0

    def choose(self, first: Place, then: Place) -> int:
        """The number of the match, or 0 where the candidate is none; rows of one match come one after the other."""
        if first == self._chosen:
            return self._number
        if self._goes_on is not None and first < self._goes_on:
            return 0
        if then[1] < 0:
            raise cannot_skip(self._after, WHY_NOT_TO_SKIP[-then[1]])
        self._chosen, self._goes_on = first, then
        self._number += 1
        return self._number


class MatchChooser:
    """Chooses, of the candidates of a partition by their ends, late beginnings first, those without overlap."""

    def __init__(self) -> None:
        self._ended: Place | None = None
        self._last: Place | None = None
        self._number = 0

    def choose(self, first: Place, last: Place) -> int:
        if last == self._last:
            return 0  # another that ends here was better
        self._last = last
        if self._ended is not None and first <= self._ended:
            return 0
        self._ended = last
        self._number += 1
        return self._number

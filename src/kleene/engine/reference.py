"""The plain engine: says in code what SEMANTICS §3 says in words, and is the oracle for everything faster.

It follows every run, event by event, and judges negations and HAVING on the finished matches. It works from the
analyzed query, not from the automaton, so that neither can hide a mistake of the other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from typing import Any

from kleene.analysis.analyzed import AnalyzedQuery, Component, Conjunct, NegativeComponent
from kleene.engine.budget import Budget, too_many_partial_matches
from kleene.engine.events import Events, window_size
from kleene.engine.matches import Match, without_overlaps
from kleene.engine.vectorized import vectorized_columns
from kleene.ir.evaluate import EventBindings, PlainValue, evaluate
from kleene.ir.expr import Expr
from kleene.ir.options import Format, Strategy, WindowUnit

POSITIONS_AT_ONCE = 1 << 20
"""How many positions of matches are held before the matches are given out."""
Selected = tuple[tuple[int, ...], ...]
"""The events of a run: for each component bound so far, the numbers of its events in the partition."""


def find_matches(query: AnalyzedQuery, events: Events, format_: Format, run_limit: int) -> list[Match]:
    """All matches in output order; positions are those in the table of `events`."""
    found = match_parts(query, events, format_, run_limit, Budget(events=len(events)))
    return sorted((match for part in found for match in part), key=lambda match: match.output_order)


def _predicates(query: AnalyzedQuery) -> list[Expr]:
    groups = [group for one in query.components for group in (one.begin, one.take, one.complete)]
    groups += [negation.predicates for negation in query.negations]
    return [conjunct.expression for group in groups for conjunct in group]


def match_parts(
    query: AnalyzedQuery, events: Events, format_: Format, run_limit: int, budget: Budget
) -> Iterator[list[Match]]:
    """The matches of one partition after the other, some thousand at a time, in the order of their last events."""
    held: list[Match] = []
    size = 0
    for partition in _partitions(query, events, run_limit, budget):
        found = partition.matches()
        chosen = without_overlaps(found) if format_ is Format.NON_OVERLAPPING else found
        for _, together in groupby(chosen, key=lambda match: match.last):
            of_event = sorted(together, key=lambda match: match.output_order)
            held += of_event
            size += sum(len(match.positions) for match in of_event)
            if size > POSITIONS_AT_ONCE:
                yield held
                held, size = [], 0
    yield held


def open_runs(
    query: AnalyzedQuery, events: Events, starts: Sequence[int], run_limit: int, budget: Budget
) -> list[Selected]:
    """Of the runs that begin at the starts, those that their window leaves with some variables bound and some not."""
    found: list[Selected] = []
    wanted = set(starts)
    for partition in _partitions(query, events, run_limit, budget):
        found += partition.open_runs([event for event, at in enumerate(partition.positions) if at in wanted])
    return sorted(found, key=lambda run: (run[0][0], run))


def _partitions(query: AnalyzedQuery, events: Events, run_limit: int, budget: Budget) -> Iterator[_Partition]:
    """The partitions; events with a NULL or NaN in the key are in none."""
    events.add(vectorized_columns(_predicates(query), events.table, dict(events.schema.attributes)))
    times, types = events.times(), events.types()
    positions: dict[tuple[PlainValue, ...], list[int]] = defaultdict(list)
    columns = [events.values(name) for name in query.partition_by]
    for position in range(len(events)):
        key = tuple(column[position] for column in columns)
        if all(value is not None and value == value for value in key):
            positions[key].append(position)
    for key, own in positions.items():
        types_here = None if types is None else [types[position] for position in own]
        yield _Partition(query, events, key, own, [times[position] for position in own], types_here, run_limit, budget)


@dataclass(slots=True)
class _Partition:
    """One partition's events, and what a run may do with each. Inside, an event is known by its number here.

    `times` and `types` are those of the partition's events.
    """

    query: AnalyzedQuery
    events: Events
    key: tuple[PlainValue, ...]
    positions: list[int]
    times: list[Any]
    types: list[str | None] | None
    run_limit: int
    budget: Budget
    columns: dict[str, list[PlainValue]] = field(default_factory=dict)

    def matches(self) -> Iterator[Match]:
        """In the order of their last events."""
        for run in self._complete_runs():
            if self.accepts(run):
                self.budget.count(1)
                yield Match(self._in_table(run))

    def open_runs(self, starts: Sequence[int]) -> list[Selected]:
        """The runs from the starts that are not complete when their windows end."""
        found: list[Selected] = []
        for start in starts:
            self.budget.check_time()
            runs: list[Selected] = [((start,),)] if self.begins((), start) else []
            for event in range(start + 1, len(self.positions)):
                if not runs or not self.is_in_window(start, event):
                    break
                runs = [after for run in runs for after in self.moves(run, event) if not self.is_finished(after)]
                self._check_limit(runs)
            opened = [self._in_table(run) for run in runs if len(run) < len(self.query.components)]
            self.budget.count(len(opened))
            self.budget.add("runs that are out of time", sum(100 + 8 * len(part) for run in opened for part in run))
            found += opened
        return found

    def _in_table(self, run: Selected) -> Selected:
        return tuple(tuple(self.positions[event] for event in part) for part in run)

    def _complete_runs(self) -> Iterator[Selected]:
        """Every selection of events for all positive components, whatever negations and HAVING will say."""
        runs: list[Selected] = []
        for event in range(len(self.positions)):
            moved: list[Selected] = []
            self.budget.reach(self.positions[event])
            for number, run in enumerate(runs):
                moved += self.moves(run, event)
                if number % 1024 == 1023:
                    self.budget.check_time()
            if self.begins((), event):
                moved.append(((event,),))
            runs = [run for run in moved if not self.is_finished(run)]
            self._check_limit(runs)
            if event % 64 == 0:
                self.budget.hold("its runs", sum(100 + 8 * len(part) for run in runs for part in run))
            yield from (run for run in moved if run[-1][-1] == event and self.is_match(run))

    def _check_limit(self, runs: Sequence[Selected]) -> None:
        if len(runs) > self.run_limit:
            key = dict(zip(self.query.partition_by, self.key, strict=True))
            hint = "Narrow the query (a shorter WITHIN, a stricter strategy, more predicates), or raise run_limit."
            raise too_many_partial_matches(self.run_limit, key, hint)

    # --- moves ---------------------------------------------------------------------------------------------------

    def moves(self, run: Selected, event: int) -> Iterator[Selected]:
        """What becomes of the run when it sees the event: nothing, one run, or several."""
        if not self.is_in_window(run[0][0], event):
            return
        component = self.query.components[len(run) - 1]
        taken = component.is_kleene and self._takes(run, event)
        begun = self._can_be_left(run) and self.begins(run, event)
        if taken:
            yield (*run[:-1], (*run[-1], event))
        if begun:
            yield (*run, (event,))
        match self.query.strategy:
            case Strategy.SKIP_TILL_ANY_MATCH:
                yield run
            case Strategy.SKIP_TILL_NEXT_MATCH if not (taken if component.is_kleene else begun):
                yield run

    def is_match(self, run: Selected) -> bool:
        return len(run) == len(self.query.components) and self._is_complete(run)

    def is_finished(self, run: Selected) -> bool:
        """Whether no event can change the run any more: its last component is bound and takes no more."""
        return len(run) == len(self.query.components) and not self.query.components[-1].is_kleene

    def begins(self, run: Selected, event: int) -> bool:
        """Whether the event can be the first of the component after those of the run."""
        component = self.query.components[len(run)]
        return self._fits(component, component.begin, (*run, (event,)), event)

    def _takes(self, run: Selected, event: int) -> bool:
        component = self.query.components[len(run) - 1]
        return self._fits(component, component.take, (*run[:-1], (*run[-1], event)), event)

    def _fits(self, component: Component, conjuncts: Sequence[Conjunct], tried: Selected, event: int) -> bool:
        return self._is_of_type(event, component.types) and self._hold(conjuncts, tried, trying=component.name)

    def _can_be_left(self, run: Selected) -> bool:
        return len(run) < len(self.query.components) and self._is_complete(run)

    def _is_complete(self, run: Selected) -> bool:
        return self._hold(self.query.components[len(run) - 1].complete, run)

    def _is_of_type(self, event: int, types: tuple[str, ...]) -> bool:
        return self.types is None or self.types[event] in types

    def is_in_window(self, first: int, event: int) -> bool:
        window = self.query.window
        if window is None:
            return True
        if window.unit is WindowUnit.EVENTS:
            return event - first < window.size
        return bool(self.times[event] - self.times[first] < window_size(window, self.query.time_type))

    # --- predicates ----------------------------------------------------------------------------------------------

    def _hold(self, conjuncts: Sequence[Conjunct], run: Selected, trying: str | None = None) -> bool:
        """Whether all conjuncts hold; `trying` is the variable whose last event is being tried."""
        if not conjuncts:
            return True
        selected = {component.name: events for component, events in zip(self.query.components, run, strict=False)}
        return all(self._holds(conjunct, selected, trying) for conjunct in conjuncts)

    def _holds(self, conjunct: Conjunct, selected: Mapping[str, Sequence[int]], trying: str | None) -> bool:
        """Whether the conjunct holds for each choice of the events it speaks of one at a time."""
        names = [name for name, _ in conjunct.indexed]
        choices = [
            [len(selected[name]) - 1] if name == trying else range(first, len(selected[name]))
            for name, first in conjunct.indexed
        ]
        return all(
            self.value(conjunct.expression, selected, dict(zip(names, choice, strict=True))) is True
            for choice in product(*choices)
        )

    def value(self, expression: Expr, selected: Mapping[str, Sequence[int]], index: Mapping[str, int]) -> Any:
        return evaluate(expression, EventBindings(selected, index, self._column, self._is_missing))

    def _column(self, name: str) -> list[PlainValue]:
        """The values of the partition's events."""
        if name not in self.columns:
            values = self.events.values(name)
            self.columns[name] = [values[position] for position in self.positions]
        return self.columns[name]

    def _is_missing(self, event: int, attribute: str) -> bool:
        if self.types is None:
            return False
        schema = self.events.schema
        if schema.kind_column is None:
            return schema.lacks(self.types[event], attribute)
        kind = self.events.table.column(schema.kind_column)[self.positions[event]].as_py()
        return schema.lacks(kind, attribute)

    # --- finished matches ----------------------------------------------------------------------------------------

    def accepts(self, run: Selected) -> bool:
        """Whether no negation forbids the match, and HAVING holds."""
        if any(self._forbids(negation, run) for negation in self.query.negations):
            return False
        if self.query.having is None:
            return True
        selected = {component.name: events for component, events in zip(self.query.components, run, strict=True)}
        return self.value(self.query.having, selected, {}) is True

    def _forbids(self, negation: NegativeComponent, run: Selected) -> bool:
        start, end = self._gap(negation, run)
        selected = {component.name: events for component, events in zip(self.query.components, run, strict=True)}
        for event in range(start, end):
            if self._is_of_type(event, negation.types):
                together = {**selected, negation.name: (event,)}
                if all(self._holds(conjunct, together, None) for conjunct in negation.predicates):
                    return True
        return False

    def _gap(self, negation: NegativeComponent, run: Selected) -> tuple[int, int]:
        """The events, from the first number to before the second, among which the negation looks."""
        first, last = run[0][0], run[-1][-1]
        if negation.gap == 0:
            assert self.query.window is not None
            opening = self.times[last] - window_size(self.query.window, self.query.time_type)
            return bisect_right(self.times, opening, 0, first), first
        if negation.gap == len(run):
            assert self.query.window is not None
            closing = self.times[first] + window_size(self.query.window, self.query.time_type)
            return last + 1, bisect_left(self.times, closing, last + 1)
        return run[negation.gap - 1][-1] + 1, run[negation.gap][0]

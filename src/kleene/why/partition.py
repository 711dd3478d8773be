"""The events of one partition of a SASE query, and what can be asked of them: types, windows, gaps and predicates.

Inside, an event is known by its number in the partition. This says what the interpreter says, in code of its own, so
that the two can be held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from kleene.analysis.analyzed import AnalyzedQuery, Component, Conjunct, NegativeComponent
from kleene.engine.events import Events, window_size
from kleene.errors import ExecutionError
from kleene.ir import expr as ir
from kleene.ir.evaluate import EventBindings, PlainValue, text_of
from kleene.ir.expr import Position
from kleene.ir.options import Strategy, WindowUnit
from kleene.why.checking import decided, made_check, parts_of, raise_first
from kleene.why.model import Bound, Check, Event

Selected = tuple[tuple[int, ...], ...]
"""For each component bound so far, the numbers of its events."""
CONTIGUOUS = (Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A conjunct decided for some events; `index` are the ones of Kleene variables it was decided by."""

    conjunct: Conjunct
    selected: Mapping[str, Sequence[int]]
    index: Mapping[str, int]
    result: bool | ExecutionError | None

    @property
    def holds(self) -> bool:
        return self.result is True


@dataclass(slots=True)
class Partition:
    """`positions` are those of the events in the table, and `rows` those in the input."""

    query: AnalyzedQuery
    events: Events
    key: tuple[PlainValue, ...]
    positions: list[int]
    rows: list[int]
    times: list[Any]
    types: list[str | None] | None
    columns: dict[str, list[PlainValue]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.positions)

    # --- events --------------------------------------------------------------------------------------------------

    def event(self, number: int) -> Event:
        name = self.query.order_by[0]
        time = self.column(name)[number]
        text = text_of(time, self.events.schema.type_of(name))
        return Event(self.rows[number], None if self.types is None else self.types[number], text)

    def key_text(self) -> tuple[tuple[str, str], ...]:
        names, schema = self.query.partition_by, self.events.schema
        return tuple((name, text_of(value, schema.type_of(name))) for name, value in zip(names, self.key, strict=True))

    def bound(self, run: Selected) -> Bound:
        parts = zip(self.query.components, run, strict=False)
        return tuple((component.name, tuple(map(self.event, part))) for component, part in parts)

    def is_of_type(self, event: int, types: tuple[str, ...]) -> bool:
        return self.types is None or self.types[event] in types

    def is_in_window(self, first: int, event: int) -> bool:
        window = self.query.window
        if window is None:
            return True
        if window.unit is WindowUnit.EVENTS:
            return event - first < window.size
        return bool(self.times[event] - self.times[first] < self._window)

    def column(self, name: str) -> list[PlainValue]:
        if name not in self.columns:
            values = self.events.values(name)
            self.columns[name] = [values[position] for position in self.positions]
        return self.columns[name]

    @property
    def _window(self) -> Any:
        assert self.query.window is not None
        return window_size(self.query.window, self.query.time_type)

    def _is_missing(self, event: int, attribute: str) -> bool:
        schema = self.events.schema
        if self.types is None:
            return False
        if schema.kind_column is None:
            return schema.lacks(self.types[event], attribute)
        return schema.lacks(self.events.table.column(schema.kind_column)[self.positions[event]].as_py(), attribute)

    # --- predicates ----------------------------------------------------------------------------------------------

    def named(self, run: Selected) -> dict[str, Sequence[int]]:
        return {component.name: part for component, part in zip(self.query.components, run, strict=False)}

    def begin_verdicts(self, run: Selected, event: int) -> list[Verdict]:
        """What decides whether the event can be the first of the component behind those of the run."""
        component = self.query.components[len(run)]
        return self._verdicts(component, component.begin, (*run, (event,)))

    def take_verdicts(self, run: Selected, event: int) -> list[Verdict]:
        component = self.query.components[len(run) - 1]
        return self._verdicts(component, component.take, (*run[:-1], (*run[-1], event)))

    def complete_verdicts(self, run: Selected) -> list[Verdict]:
        """What decides whether the last component of the run may be left as it is."""
        selected = self.named(run)
        return [self.verdict(conjunct, selected) for conjunct in self.query.components[len(run) - 1].complete]

    def _verdicts(self, component: Component, conjuncts: Sequence[Conjunct], tried: Selected) -> list[Verdict]:
        selected = self.named(tried)
        return [self.verdict(conjunct, selected, component.name) for conjunct in conjuncts]

    def verdict(self, conjunct: Conjunct, selected: Mapping[str, Sequence[int]], trying: str | None = None) -> Verdict:
        """Decides the conjunct for each choice of the events it speaks of one at a time; the first to fail counts."""
        names = [name for name, _ in conjunct.indexed]
        choices = [
            [len(selected[name]) - 1] if name == trying else range(first, len(selected[name]))
            for name, first in conjunct.indexed
        ]
        found = Verdict(conjunct, selected, {}, True)  # of no events, it holds
        for choice in product(*choices):
            index = dict(zip(names, choice, strict=True))
            found = Verdict(conjunct, selected, index, decided(conjunct.expression, self._bindings(selected, index)))
            if not found.holds:
                break
        return found

    def check(self, verdict: Verdict) -> Check:
        """The verdict with the values that it came from."""
        predicate = verdict.conjunct.expression
        speaks_of_none = any(
            first >= len(verdict.selected[name]) and name not in verdict.index
            for name, first in verdict.conjunct.indexed
        )
        if speaks_of_none:
            return Check(predicate, (), True)
        bindings = self._bindings(verdict.selected, verdict.index)
        return made_check(predicate, bindings, verdict.result, lambda part: self._row_of(part, bindings))

    def _row_of(self, part: ir.Expr, bindings: EventBindings) -> int | None:
        if not isinstance(part, ir.Attribute) or part.position in (Position.ALL, Position.SO_FAR):
            return None
        number = bindings.position_of(part)
        return None if number is None else self.rows[number]

    def _bindings(self, selected: Mapping[str, Sequence[int]], index: Mapping[str, int]) -> EventBindings:
        return EventBindings(selected, index, self.column, self._is_missing)

    # --- complete runs -------------------------------------------------------------------------------------------

    def forbidding(
        self,
        negation: NegativeComponent,
        run: Selected,
        note: Callable[[int, list[Verdict]], None] = lambda event, verdicts: None,
    ) -> Iterator[tuple[int, list[Verdict]]]:
        """The events that the negation forbids the run by, each with its predicates, all of which hold.

        `note` is told of every event of its types in the gap.
        """
        begin, end = self.gap(negation, run)
        selected = self.named(run)
        for event in range(begin, end):
            if self.is_of_type(event, negation.types):
                together = {**selected, negation.name: (event,)}
                verdicts = [self.verdict(conjunct, together) for conjunct in negation.predicates]
                _raise_first(verdicts)
                note(event, verdicts)
                if all(verdict.holds for verdict in verdicts):
                    yield event, verdicts

    def gap(self, negation: NegativeComponent, run: Selected) -> tuple[int, int]:
        """The events, from the first number to before the second, that the negation looks at."""
        first, last = run[0][0], run[-1][-1]
        if negation.gap == 0:
            opening = self.times[last] - self._window
            inside = (event for event in range(first) if self.times[event] > opening)
            return next(inside, first), first
        if negation.gap == len(run):
            closing = self.times[first] + self._window
            outside = (event for event in range(last + 1, len(self)) if not self.times[event] < closing)
            return last + 1, next(outside, len(self))
        return run[negation.gap - 1][-1] + 1, run[negation.gap][0]

    def having_verdicts(self, run: Selected) -> list[Verdict]:
        if self.query.having is None:
            return []
        selected = self.named(run)
        found = [self.verdict(Conjunct(part), selected) for part in parts_of(self.query.having)]
        raise_first(verdict.result for verdict in found)  # HAVING is one condition, whose AND goes on behind a NULL
        return found


def _raise_first(verdicts: Sequence[Verdict]) -> None:
    """An error that nothing hides, because what is asked before it holds, is the answer of every engine."""
    for verdict in verdicts:
        if isinstance(verdict.result, ExecutionError):
            raise verdict.result
        if not verdict.holds:
            return


def failures(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Those that do not hold; an error that comes before all of them is raised."""
    _raise_first(verdicts)
    return [verdict for verdict in verdicts if not verdict.holds]

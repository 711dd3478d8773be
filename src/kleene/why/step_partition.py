"""The events of one partition of a pattern in steps, and what can be asked of them: moves, and what is against them.

An event is known by its place in the table, which is in order. The moves are those of the automaton, in code of their
own, so that they can be held against the interpreter's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.model import AllOf, Defined, Edge, Formula, Move, NotFormula, SoonAfter, parts_of
from kleene.engine.events import window_size
from kleene.engine.steps.conditions import Bound, Conditions, StepBindings
from kleene.ir import expr as ir
from kleene.ir.options import Window, WindowUnit
from kleene.ir.text import window_text
from kleene.why.checking import decided, made_check
from kleene.why.model import Bound as ToldBound
from kleene.why.model import Check, Ending, Event, Kind, Try
from kleene.why.partition import Partition
from kleene.why.step_states import Part, States


@dataclass(frozen=True, slots=True)
class Taken:
    """`state` is the cell that took the event; `completes` says that what is bound with it is a match."""

    state: int
    step: int
    target: int
    completes: bool


@dataclass(frozen=True, slots=True)
class Moves:
    """What a run may do with an event: all states that it comes to without it, and what they do with it.

    `in_order` are its takes and, where it ignores the event, the states that this leads to. `hit` is the negation that
    the event is; then nothing goes on, but what it completes is complete.
    """

    states: tuple[int, ...]
    in_order: tuple[Taken | int, ...]
    completes: bool
    hit: str | None

    @property
    def takes(self) -> list[Taken]:
        return [move for move in self.in_order if isinstance(move, Taken)]

    @property
    def ignores(self) -> list[int]:
        return [move for move in self.in_order if isinstance(move, int)]

    @property
    def goes_on(self) -> bool:
        return self.completes or any(take.completes for take in self.takes) or (not self.hit and bool(self.in_order))


@dataclass(slots=True)
class StepPartition:
    """`base` has the events by number; `known` are the checks of one event, which many runs ask for."""

    base: Partition
    states: States
    conditions: Conditions
    known: dict[int, Check] = field(default_factory=dict)
    known_place: int = -1
    number_of: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.number_of = {place: number for number, place in enumerate(self.base.positions)}

    def __len__(self) -> int:
        return len(self.base)

    @property
    def query(self) -> AnalyzedSteps:
        assert isinstance(self.base.query, AnalyzedSteps)
        return self.base.query

    @property
    def places(self) -> list[int]:
        return self.base.positions

    # --- events ------------------------------------------------------------------------------------------------------

    def row(self, place: int) -> int:
        return self.base.rows[self.number_of[place]]

    def event(self, place: int) -> Event:
        return self.base.event(self.number_of[place])

    def told(self, bound: Bound) -> ToldBound:
        """What is bound, by step, in the order of the pattern."""
        return tuple(
            (component.name, tuple(self.event(place) for step, place in bound if step == number))
            for number, component in enumerate(self.query.components)
            if any(step == number for step, _ in bound)
        )

    def is_of_type(self, name: str, place: int) -> bool:
        return self.conditions.is_of_type(name, place)

    # --- moves -------------------------------------------------------------------------------------------------------

    def moves(self, state: int, bound: Bound, place: int, but_for: Kind | None = None) -> Moves:
        """The moves of a run on an event; `but_for` negations, or bounds on the time since the event before."""
        automaton = self.states.automaton
        hit = None if but_for is Kind.NEGATION else self.open_hit(bound, place)
        in_order, completes = list[Taken | int](), False
        waiting, seen = [state], [state]
        visited: list[int] = []
        while waiting:
            own = waiting.pop()
            visited.append(own)
            for edge in automaton.edges[own]:
                if not self._holds(edge.formula, place, bound, but_for):
                    continue
                if edge.move is Move.PROCEED:
                    if edge.target == self.states.steps.stop:
                        hit = hit or (None if but_for is Kind.NEGATION else _negation(edge.formula))
                    elif edge.target not in seen:
                        seen.append(edge.target)
                        waiting.append(edge.target)
                elif edge.move is Move.TAKE:
                    step = automaton.states[own].component
                    assert step is not None
                    in_order.append(Taken(own, step, edge.target, self.reaches_final(edge.target, place, bound)))
                elif bound and edge.target == automaton.final:
                    completes = True
                elif bound:
                    in_order.append(edge.target)
        return Moves(tuple(visited), tuple(in_order), completes, hit)

    def open_hit(self, bound: Bound, place: int) -> str | None:
        """The negation that is open for the run, and that the event is."""
        if not bound:
            return None
        names = self.states.open_after[self.query.components[bound[-1][0]].name]
        return next((name for name in names if self.conditions.satisfies(name, place, bound)), None)

    def _holds(self, formula: Formula, place: int, bound: Bound, but_for: Kind | None) -> bool:
        if but_for is None:
            return self.conditions.holds(formula, place, bound)
        parts = parts_of(formula)
        if but_for is Kind.NEGATION:
            forbids = [NotFormula(Defined(name)) for name in self.states.negations]
            parts = tuple(part for part in parts if part not in forbids)
        elif but_for in (Kind.GAP, Kind.SINCE):
            parts = tuple(part for part in parts if not isinstance(part, SoonAfter))
        return all(self.conditions.holds(part, place, bound) for part in parts)

    def reaches_final(self, state: int, place: int, before: Bound) -> bool:
        """Whether what is bound may be left in this state, with the event as the last one."""
        automaton = self.states.automaton
        waiting, seen = [state], {state}
        while waiting:
            for edge in automaton.edges[waiting.pop()]:
                is_new = edge.move is Move.PROCEED and edge.target not in seen
                if is_new and self.conditions.holds(edge.formula, place, before):
                    seen.add(edge.target)
                    waiting.append(edge.target)
        return automaton.final in seen

    # --- time --------------------------------------------------------------------------------------------------------

    def over(self, state: int, bound: Bound, place: int) -> Ending | None:
        """What ends the run before the event is tried: the window, or a bound on the time since the event before."""
        window, before, kind = self._window_passed(bound[0][1], place), bound[0][1], Kind.WINDOW
        if window is None:
            window, before, kind = self.states.steps.waits[state], bound[-1][1], self.states.bound_kind(state)
            if window is None or self._is_within(before, place, window):
                return None
        name, after = self.states.awaited[state], self.event(before)
        return Ending(kind, self.event(place), variable=name, after=after, bound=window_text(window))

    def deadline(self, state: int, bound: Bound) -> Any:
        """The time at which a run ends in the state, if nothing else ends it before."""
        times, time_type = self.conditions.times, self.query.time_type
        windows = [window for window in self.query.pattern.windows if window.unit is not WindowUnit.EVENTS]
        ends = [times[bound[0][1]] + window_size(window, time_type) for window in windows]
        wait = self.states.steps.waits[state]
        ends += [] if wait is None else [times[bound[-1][1]] + window_size(wait, time_type)]
        return min(ends, default=inf)

    def _window_passed(self, first: int, place: int) -> Window | None:
        for window in self.query.pattern.windows:
            if window.unit is not WindowUnit.EVENTS:
                is_over = not self._is_within(first, place, window)
            else:
                is_over = self.number_of[place] - self.number_of[first] >= window.size
            if is_over:
                return window
        return None

    def _is_within(self, before: int, place: int, window: Window) -> bool:
        times = self.conditions.times
        return bool(times[place] - times[before] < window_size(window, self.query.time_type))

    # --- reasons -----------------------------------------------------------------------------------------------------

    def holds(self, part: Part, place: int, bound: Bound) -> bool:
        """Whether the predicate holds, for counts."""
        return decided(part.predicate, StepBindings(self.conditions, place, () if part.is_alone else bound)) is True

    def checks(self, name: str, place: int, bound: Bound) -> tuple[Check, ...]:
        """The predicates of a step, a negation or an until condition, decided for the event."""
        if place != self.known_place:
            self.known, self.known_place = {}, place
        return tuple(self._check(part, place, bound) for part in self.states.parts_of(name))

    def _check(self, part: Part, place: int, bound: Bound) -> Check:
        if part.number in self.known:
            return self.known[part.number]
        bindings = StepBindings(self.conditions, place, () if part.is_alone else bound)

        def row_of(node: ir.Expr) -> int | None:
            if not isinstance(node, ir.Attribute):
                return None
            places = [place] if node.variable is None else bindings.rows_of(node.variable)
            return self.row(places[-1]) if places else None

        check = made_check(part.predicate, bindings, decided(part.predicate, bindings), row_of)
        if part.is_alone:
            self.known[part.number] = check
        return check

    def tried(self, state: int, bound: Bound, place: int) -> Try:
        """The event tried for the step that the cell waits for."""
        name = self.states.automaton.states[state].variable
        assert name is not None
        if not self.is_of_type(name, place):
            return Try("step", name, self.conditions.types_of(name))
        edge = self.states.take(state)
        assert edge is not None
        against = tuple(self.objections(state, edge, bound, place))
        return Try("step", name, (), self.checks(name, place, bound), against)

    def objections(self, state: int, edge: Edge, bound: Bound, place: int) -> Iterator[Ending]:
        """What stands against the move, besides that the event is not what the step wants."""
        for part in parts_of(edge.formula):
            if not self.conditions.holds(part, place, bound):
                found = self._objection(state, edge.move, part, bound, place)
                if found is not None:
                    yield found

    def _objection(self, state: int, move: Move, part: Formula, bound: Bound, place: int) -> Ending | None:
        event, own = self.event(place), self.states.automaton.states[state].variable
        match part:
            case SoonAfter(window=window):
                last = self.event(bound[-1][1])
                return Ending(self.states.bound_kind(state), event, variable=own, after=last, bound=window_text(window))
            case NotFormula(part=Defined(variable=name) | AllOf(parts=(Defined(variable=name), *_))):
                checks = self.checks(name, place, bound)
                if name in self.states.untils:
                    return Ending(Kind.UNTIL, event, checks, self.states.untils[name])
                if name == own and move is Move.IGNORE:
                    return Ending(Kind.NEXT_MATCH, event, checks, name)
                kind = Kind.NEGATION if name in self.states.negations else Kind.GREEDY
                return Ending(kind, event, checks, name)
        return None

    def dead_ends(self, moves: Moves, bound: Bound, place: int) -> list[Ending]:
        """Why a run that does nothing with the event may not go on as if it had not been."""
        if moves.hit is not None:
            checks = self.checks(moves.hit, place, bound)
            return [Ending(Kind.NEGATION, self.event(place), checks, moves.hit)]
        found: list[Ending] = []
        for state in moves.states:
            found += [own for own in self._dead_end(state, bound, place) if own not in found]
        return found

    def _dead_end(self, state: int, bound: Bound, place: int) -> Iterator[Ending]:
        edges, own = self.states.automaton.edges[state], self.states.automaton.states[state].variable
        for edge in edges:
            if edge.move is Move.PROCEED or own is None:
                yield from (one for one in self.objections(state, edge, bound, place) if one.kind is not Kind.NEGATION)
        if own is None:
            return
        tried = self.tried(state, bound, place)
        if tried.fits:
            yield from tried.objections
            return
        ignores = [edge for edge in edges if edge.move is Move.IGNORE]
        for edge in ignores:
            yield from self.objections(state, edge, bound, place)
        if not ignores:
            yield Ending(Kind.CONTIGUITY, self.event(place), variable=own)


def _negation(formula: Formula) -> str:
    assert isinstance(formula, (Defined, AllOf))
    part = formula if isinstance(formula, Defined) else formula.parts[0]
    assert isinstance(part, Defined)
    return part.variable

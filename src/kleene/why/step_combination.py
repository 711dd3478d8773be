"""Events said to be a match of a pattern in steps, to the reasons why they are not; of no reasons, they are one.

The automaton is followed along these events only: it takes those that are given and ignores the others. Where a
formula does not hold, that is a reason, and the way goes on as if it did. Of all ways, the one with the fewest reasons
is told.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kleene.automaton.model import Defined, Edge, Move, parts_of
from kleene.engine.steps.conditions import Bound
from kleene.why.model import Ending, Kind, Step, Try
from kleene.why.step_partition import StepPartition

_Reason = tuple[Hashable, Ending]
"""What a reason is about, so that it is told once, and the reason."""


@dataclass(frozen=True, slots=True)
class _Way:
    """What stands against one way through the automaton."""

    reasons: tuple[_Reason, ...] = ()

    def __len__(self) -> int:
        return len(self.reasons)

    def but(self, reasons: Iterable[_Reason]) -> _Way:
        known = dict(self.reasons)
        return _Way((*self.reasons, *((key, one) for key, one in dict(reasons).items() if key not in known)))


_Ways = dict[int, _Way]
"""The best way to each state."""


def _add(ways: _Ways, state: int, way: _Way) -> bool:
    is_better = state not in ways or len(way) < len(ways[state])
    if is_better:
        ways[state] = way
    return is_better


@dataclass(slots=True)
class StepCombination:
    """`bound` are the events in their order, all of one partition. `reasons` is empty if they are a complete match."""

    partition: StepPartition
    bound: Bound
    steps: list[Step] = field(default_factory=list)
    reasons: list[Ending] = field(default_factory=list)

    def judge(self) -> None:
        ways: _Ways = {0: _Way()}
        complete: list[_Way] = []
        for number, (step, place) in enumerate(self.bound):
            before = self.bound[:number]
            self._tell(step, place, before)
            nearest = min([*ways.values(), *complete], key=len)
            for between in self._between(number) if number else ():
                ways = self._pass_over(ways, before, between)
            ways, complete = self._take(ways, before, step, place)
            if not ways and not complete:
                name = self.partition.query.components[step].name
                self._conclude(nearest.but([((), Ending(Kind.PLACE, self.partition.event(place), variable=name))]))
                return
        waiting = [way.but([((), self._unfinished(state))]) for state, way in ways.items()]
        self._conclude(min([*complete, *self._completed_later(ways), *waiting], key=len))

    def _conclude(self, way: _Way) -> None:
        self.reasons = [ending for _, ending in way.reasons]

    def _tell(self, step: int, place: int, before: Bound) -> None:
        name = self.partition.query.components[step].name
        if self.partition.is_of_type(name, place):
            one = Try("step", name, (), self.partition.checks(name, place, before))
        else:
            one = Try("step", name, self.partition.conditions.types_of(name))
        self.steps.append(Step(self.partition.event(place), (one,)))

    def _between(self, number: int) -> list[int]:
        """The events between one of the given events and the one before."""
        first, last = (self.partition.number_of[place] for _, place in self.bound[number - 1 : number + 1])
        return self.partition.places[first + 1 : last]

    def _unfinished(self, state: int) -> Ending:
        awaited = self.partition.states.awaited[state]
        return Ending(Kind.END) if awaited is None else Ending(Kind.INCOMPLETE, variable=awaited)

    # --- moves -------------------------------------------------------------------------------------------------------

    def _take(self, ways: _Ways, before: Bound, step: int, place: int) -> tuple[_Ways, list[_Way]]:
        """The ways on, with the event taken for the step; and those on which all that is bound is then a match."""
        kept, complete = _Ways(), list[_Way]()
        final = self.partition.states.automaton.final
        condition = list(self._condition(step, place, before))
        for state, way in self._in_time(ways, before, place).items():
            hit = self._hit(state, before, place)
            for own, reached in self._proceeded(state, way, before, place).items():
                edge = self.partition.states.take(own)
                if edge is None or self.partition.states.automaton.states[own].component != step:
                    continue
                taken = reached.but(condition).but(self._against(own, edge, before, place))
                if edge.target != final:
                    _add(kept, edge.target, taken.but(hit))
                complete += [
                    left for end, left in self._proceeded(edge.target, taken, before, place).items() if end == final
                ]
        return kept, complete

    def _pass_over(self, ways: _Ways, before: Bound, place: int) -> _Ways:
        """The ways on, as if the event had not been."""
        kept = _Ways()
        automaton = self.partition.states.automaton
        for state, way in self._in_time(ways, before, place).items():
            hit = self._hit(state, before, place)
            for own, reached in self._proceeded(state, way, before, place).items():
                ignores = [edge for edge in automaton.edges[own] if edge.move is Move.IGNORE]
                for edge in ignores:
                    if edge.target != automaton.final:
                        _add(kept, edge.target, reached.but(self._against(own, edge, before, place)).but(hit))
                name = automaton.states[own].variable
                if name is not None and not ignores:
                    ending = Ending(Kind.CONTIGUITY, self.partition.event(place), variable=name)
                    _add(kept, own, reached.but([self._reason(ending, before)]).but(hit))
        return kept

    def _completed_later(self, ways: _Ways) -> Iterator[_Way]:
        """The ways on which what is bound is a match by what does not come after it."""
        partition = self.partition
        for place in partition.places[partition.number_of[self.bound[-1][1]] + 1 :]:
            over = {state for state in ways if partition.over(state, self.bound, place) is not None}
            yield from (way for state, way in ways.items() if state in over and partition.states.may_end[state])
            ways = {state: way for state, way in ways.items() if state not in over}
            for state, way in ways.items():
                yield from self._ignored_to_the_end(state, way, place)
            ways = self._pass_over(ways, self.bound, place)
            ways = {state: way for state, way in ways.items() if partition.states.may_end[state]}
            if not ways:
                return
        yield from (way for state, way in ways.items() if partition.states.may_end[state])

    def _ignored_to_the_end(self, state: int, way: _Way, place: int) -> Iterator[_Way]:
        automaton = self.partition.states.automaton
        for own, reached in self._proceeded(state, way, self.bound, place).items():
            for edge in automaton.edges[own]:
                if edge.move is Move.IGNORE and edge.target == automaton.final:
                    yield reached.but(self._against(own, edge, self.bound, place))

    def _proceeded(self, state: int, way: _Way, before: Bound, place: int) -> _Ways:
        """The best way to each state that proceeds lead to."""
        found, waiting = {state: way}, [state]
        while waiting:
            own = waiting.pop()
            for edge in self.partition.states.automaton.edges[own]:
                is_way = edge.move is Move.PROCEED and edge.target != self.partition.states.steps.stop
                if is_way and self._is_open(edge, before, place):
                    reached = found[own].but(self._against(own, edge, before, place))
                    if _add(found, edge.target, reached):
                        waiting.append(edge.target)
        return found

    def _is_open(self, edge: Edge, before: Bound, place: int) -> bool:
        """Of two ways out, one if until holds and one if not, only one is there."""
        wanted = [part for part in parts_of(edge.formula) if isinstance(part, Defined)]
        return all(self.partition.conditions.holds(part, place, before) for part in wanted)

    # --- reasons -----------------------------------------------------------------------------------------------------

    def _reason(self, ending: Ending, before: Bound) -> _Reason:
        """Between two events, one reason of a kind is enough."""
        return (ending.kind, ending.variable, before[-1:]), ending

    def _against(self, state: int, edge: Edge, before: Bound, place: int) -> list[_Reason]:
        return [self._reason(one, before) for one in self.partition.objections(state, edge, before, place)]

    def _in_time(self, ways: _Ways, before: Bound, place: int) -> _Ways:
        return {state: way.but(self._over(state, before, place)) for state, way in ways.items()} if before else ways

    def _over(self, state: int, before: Bound, place: int) -> Sequence[_Reason]:
        ending = self.partition.over(state, before, place)
        if ending is None:
            return []
        since = None if ending.kind is Kind.WINDOW else before[-1:]
        name = self.partition.states.automaton.states[state].variable
        return [((ending.kind, None if since is None else name, since), ending)]

    def _hit(self, state: int, before: Bound, place: int) -> Sequence[_Reason]:
        hit = self.partition.moves(state, before, place).hit if before else None
        if hit is None:
            return []
        checks = self.partition.checks(hit, place, before)
        return [self._reason(Ending(Kind.NEGATION, self.partition.event(place), checks, hit), before)]

    def _condition(self, step: int, place: int, before: Bound) -> Iterator[_Reason]:
        """Why the event is not what the step wants."""
        name, event = self.partition.query.components[step].name, self.partition.event(place)
        if not self.partition.is_of_type(name, place):
            yield (Kind.TYPE, place), Ending(Kind.TYPE, event, (), name)
            return
        for number, check in enumerate(self.partition.checks(name, place, before)):
            if not check.holds:
                yield (Kind.PREDICATE, place, number), Ending(Kind.PREDICATE, event, (check,), name)

"""Where a run of a step pattern can stand, and what it may do there: STEPS.md section 4, read off the pattern itself.

No automaton is built. A place is named by its position in the pattern: for each group around it and for the step
itself the index in its sequence and the number of the round (the number of the event, for a step). In an unbounded
loop the rounds after the n-th all have the number n + 1.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from steps_conditions import Moment, holds
from steps_model import ANY, STRICT, Condition, Group, Negation, Part, Pattern, Quantifier, Step

Position = tuple[tuple[int, int], ...]
Formula = Callable[[Moment], bool]
TAKE, IGNORE, PROCEED = "take", "ignore", "proceed"
CELL, NOT_NEXT, BACK, FINAL, PENDING, STOP = "cell", "not_next", "back", "final", "pending", "stop"


@dataclass(frozen=True)
class Place:
    """`waiting`: an event has been ignored here, so that the ways out are closed. `free`: reached by an until event,
    so that no greedy guard counts.
    """

    kind: str
    position: Position = ()
    waiting: bool = False
    free: bool = False


@dataclass(frozen=True)
class Edge:
    kind: str
    formula: Formula
    target: Place


class Places:
    """The places of one pattern. Each rule is a method of its own."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.start = self.enter((), 0)
        self.known_edges: dict[Place, list[Edge]] = {}
        self.opened: dict[str, list[Condition]] = {}
        self.guards: dict[Place, list[Position]] = {}
        for position in self.all_positions():
            if self.guards_what_follows(self.step(position).quantifier):
                self.guards.setdefault(self.sink(position), []).append(position)

    # ------------------------------------------------------------ the pattern's structure

    def sequence(self, prefix: Position) -> tuple[Part, ...]:
        parts = self.pattern.parts
        for index, _ in prefix:
            group = parts[index]
            assert isinstance(group, Group)
            parts = group.parts
        return parts

    def part(self, position: Position) -> Part:
        return self.sequence(position[:-1])[position[-1][0]]

    def step(self, position: Position) -> Step:
        part = self.part(position)
        assert isinstance(part, Step)
        return part

    def quantifier(self, position: Position) -> Quantifier:
        part = self.part(position)
        assert not isinstance(part, Negation)
        return part.quantifier

    def all_positions(self) -> Iterator[Position]:
        """The position of every cell."""
        yield from self._positions_in((), self.pattern.parts)

    def _positions_in(self, prefix: Position, parts: tuple[Part, ...]) -> Iterator[Position]:
        for index, part in enumerate(parts):
            if isinstance(part, Negation):
                continue
            last = part.quantifier.low + 1 if part.quantifier.high is None else part.quantifier.high
            for number in range(1, last + 1):
                position = (*prefix, (index, number))
                if isinstance(part, Step):
                    yield position
                else:
                    yield from self._positions_in(position, part.parts)

    def ends_with_absence(self) -> bool:
        last = self.pattern.parts[-1]
        return isinstance(last, Negation) and last.contiguity != STRICT

    # ------------------------------------------------------------ what follows a place

    def enter(self, prefix: Position, index: int) -> Place:
        """The first place of what stands at the index in the sequence that the prefix names."""
        parts = self.sequence(prefix)
        while index < len(parts):
            part = parts[index]
            position = (*prefix, (index, 1))
            if isinstance(part, Step):
                return Place(CELL, position)
            if isinstance(part, Group):
                return self.enter(position, 0)
            if part.contiguity == STRICT:
                return Place(NOT_NEXT, position)
            index += 1
        if prefix:
            return self.after_round(prefix)
        return Place(PENDING if self.ends_with_absence() else FINAL)

    def after_round(self, position: Position) -> Place:
        """Where a run goes after an event of the step, or after a round of the group, at this position."""
        number = position[-1][1]
        following = self.number_after(self.quantifier(position), number)
        if following is None:
            return self.sink(position)
        further = (*position[:-1], (position[-1][0], following))
        if isinstance(self.part(position), Step):
            return Place(CELL, further)
        return Place(BACK, position) if following == number else self.enter(further, 0)

    def number_after(self, quantifier: Quantifier, number: int) -> int | None:
        if quantifier.high is None:
            return min(number + 1, quantifier.low + 1)
        return number + 1 if number < quantifier.high else None

    def sink(self, position: Position) -> Place:
        return self.enter(position[:-1], position[-1][0] + 1)

    # ------------------------------------------------------------ formulas

    def group_until(self, position: Position, moment: Moment) -> bool:
        """U: the until of a group around this position holds."""
        groups = (self.quantifier(position[:depth]) for depth in range(1, len(position)))
        return any(group.until is not None and holds(group.until, moment) for group in groups)

    def until(self, position: Position, moment: Moment) -> bool:
        until = self.step(position).quantifier.until
        return until is not None and holds(until, moment)

    def may_take(self, position: Position, moment: Moment) -> bool:
        if (
            not holds(self.step(position).condition, moment)
            or self.until(position, moment)
            or self.group_until(position, moment)
        ):
            return False
        bound = self.bound(position)
        if bound is None or not moment.bindings:
            return True
        return not self.is_over(moment.event.time - moment.bindings[-1][1].time, bound)

    def bound(self, position: Position) -> int | None:
        """The bound on the time since the event selected before: `since="previous"` for a first event, `gap` for a
        further one.
        """
        step = self.step(position)
        return step.since if position[-1][1] == 1 else step.quantifier.gap

    def is_over(self, elapsed: int, bound: int) -> bool:
        return elapsed >= bound

    def may_ignore(self, position: Position, moment: Moment) -> bool:
        contiguity = self.contiguity(position)
        if contiguity == STRICT or self.group_until(position, moment):
            return False
        if position[-1][1] > 1 and self.until(position, moment):
            return False
        return contiguity == ANY or not holds(self.step(position).condition, moment)

    def contiguity(self, position: Position) -> str:
        """Of a step's first event in a group's first place it is the group's: that of the group as a step, or that
        between its rounds.
        """
        index, number = position[-1]
        part = self.part(position)
        if number > 1:
            return self.quantifier(position).inner
        if index > 0:
            return part.contiguity
        return STRICT if len(position) == 1 else self.contiguity(position[:-1])

    def guards_what_follows(self, quantifier: Quantifier) -> bool:
        return quantifier.greedy and quantifier.low != quantifier.high

    def guarded(self, place: Place, moment: Moment) -> bool:
        """Whether a greedy step before this place could have taken the event."""
        if place.free:
            return False
        positions = self.guards.get(replace(place, waiting=False), [])
        return any(
            holds(self.step(each).condition, moment) and not self.group_until(each, moment) for each in positions
        )

    # ------------------------------------------------------------ edges

    def edges(self, place: Place) -> list[Edge]:
        """The edges of a place in their order, the greedy guard included."""

        def guard(edge: Edge) -> Edge:
            return replace(edge, formula=lambda moment: edge.formula(moment) and not self.guarded(place, moment))

        if place not in self.known_edges:
            self.known_edges[place] = [guard(edge) for edge in self.bare_edges(place)]
        return self.known_edges[place]

    def bare_edges(self, place: Place) -> list[Edge]:
        position = place.position
        if place.kind == CELL:
            return self.cell_edges(place)
        if place.kind == BACK:
            return [Edge(PROCEED, _always, self.enter(position, 0))]
        if place.kind == PENDING:
            return [Edge(IGNORE, _always, place)]
        if place.kind == NOT_NEXT:
            return self.not_next_edges(position)
        return []

    def cell_edges(self, place: Place) -> list[Edge]:
        position = place.position
        ways_out = [] if place.waiting else self.ways_out(position)
        stay = replace(place, waiting=True) if ways_out else place
        take = Edge(TAKE, lambda moment: self.may_take(position, moment), self.after_round(position))
        return [take, *ways_out, Edge(IGNORE, lambda moment: self.may_ignore(position, moment), stay)]

    def ways_out(self, position: Position) -> list[Edge]:
        """The proceed edges of a cell: its own, then those of the groups whose first cell it is."""
        ways: list[Edge] = []
        if self.can_leave(position):
            ways += self.own_ways_out(position)
        around = position
        while around[-1] == (0, 1) and len(around) > 1:
            around = around[:-1]
            if self.can_leave(around):
                ways.append(Edge(PROCEED, self.leave_formula(around), self.sink(around)))
        return ways

    def can_leave(self, position: Position) -> bool:
        quantifier, number = self.quantifier(position), position[-1][1]
        return (number == 1 and quantifier.optional) or number > quantifier.low

    def leave_formula(self, position: Position) -> Formula:
        return lambda moment: not self.group_until(position, moment)

    def own_ways_out(self, position: Position) -> list[Edge]:
        leave, sink = self.leave_formula(position), self.sink(position)
        quantifier = self.step(position).quantifier
        if quantifier.until is None or not self.guards_what_follows(quantifier):
            return [Edge(PROCEED, leave, sink)]
        return [
            Edge(PROCEED, lambda moment: leave(moment) and self.until(position, moment), replace(sink, free=True)),
            Edge(PROCEED, lambda moment: leave(moment) and not self.until(position, moment), sink),
        ]

    def not_next_edges(self, position: Position) -> list[Edge]:
        hit = self.negation_formula(position)
        following = self.sink(position)
        last = len(position) == 1 and position[-1][0] == len(self.pattern.parts) - 1
        missed = Edge(IGNORE if last else PROCEED, lambda moment: not hit(moment), following)
        return [missed, Edge(PROCEED, hit, Place(STOP))]

    def negation_formula(self, position: Position) -> Formula:
        part = self.part(position)
        assert isinstance(part, Negation)
        condition = part.condition
        return lambda moment: holds(condition, moment)

    # ------------------------------------------------------------ negations, time

    def opened_by(self, step: str) -> list[Condition]:
        """The negations that are open after an event of the step."""
        if step not in self.opened:
            position = next(each for each in self.all_positions() if self.step(each).name == step)
            self.opened[step] = self.open_negations(position)
        return self.opened[step]

    def open_negations(self, position: Position) -> list[Condition]:
        """What an event taken at this position opens: the not_followed_by steps up to the next positive step that
        must occur.
        """
        found: list[Condition] = []
        while position:
            if self._scan(self.sequence(position[:-1])[position[-1][0] + 1 :], found):
                break
            position = position[:-1]
        return found

    def _scan(self, parts: tuple[Part, ...], found: list[Condition]) -> bool:
        """Gathers the negations; whether a step that must occur ends them."""
        for part in parts:
            if isinstance(part, Negation):
                if part.contiguity != STRICT:
                    found.append(part.condition)
            elif not part.quantifier.optional and (isinstance(part, Step) or self._scan(part.parts, found)):
                return True
        return False

    def time_bound(self, place: Place) -> int | None:
        """How long after the event selected last a run at this place ends, where `since="previous"` or `gap` says
        so.
        """
        if place.kind == PENDING:
            last = self.pattern.parts[-1]
            assert isinstance(last, Negation)
            return last.since
        if place.kind != CELL or (not place.waiting and self.ways_out(place.position)):
            return None
        return self.bound(place.position)

    def reaches(self, place: Place, kind: str, moment: Moment | None) -> bool:
        """Whether proceed edges lead from the place to one of this kind; their formulas count only where a moment is
        given.
        """
        if place.kind == kind:
            return True
        ways = (edge for edge in self.edges(place) if edge.kind == PROCEED)
        return any(self.reaches(edge.target, kind, moment) for edge in ways if moment is None or edge.formula(moment))


def _always(moment: Moment) -> bool:
    return True

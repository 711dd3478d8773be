"""A second checker, by declaration: for all matches it tries every choice of events and asks whether it is a match.

It knows no runs, states or moves. A pattern is unrolled into every list of takes that it allows, with the steps that
are passed over and the `not_next` steps between them; a list together with a choice of events is judged by the rules
of STEPS.md section 3. Not covered (see `covers`): negations in last place, a `not_next` right before what can be
passed over, modes after a match, timeouts and partitions. It guards `steps_brute` against its own mistakes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from steps_brute import Match, names, output_order
from steps_conditions import Bindings, Moment, holds
from steps_legality import all_parts, last_leaf, left_open, passable
from steps_model import ANY, STRICT, Event, Group, Negation, Part, Pattern, Quantifier, Step, positive_steps

Path = tuple[tuple[int, int], ...]
TAKE, PASS, HURDLE = "take", "pass", "hurdle"


@dataclass(frozen=True)
class Token:
    """A take of the step, a way out of the step or group, or a not_next, at a path: pairs of index and round, as
    many rounds as there are.
    """

    kind: str
    path: Path


Tokens = tuple[Token, ...]


def covers(pattern: Pattern) -> bool:
    """Whether this checker knows every construct of the pattern."""
    if pattern.mode != "no_skip" or pattern.partition or isinstance(pattern.parts[-1], Negation) or left_open(pattern):
        return False
    groups = [part for part in all_parts(pattern.parts) if isinstance(part, Group)]
    if any(passable(group) and not group.quantifier.optional for group in groups):
        return False
    return all(_no_hurdle_before_passable(parts) for parts in (pattern.parts, *(group.parts for group in groups)))


def _no_hurdle_before_passable(parts: tuple[Part, ...]) -> bool:
    for index, part in enumerate(parts):
        if isinstance(part, Negation) and part.contiguity == STRICT:
            following = next(each for each in parts[index + 1 :] if not isinstance(each, Negation))
            if passable(following):
                return False
    return True


def check_declared(pattern: Pattern, events: list[Event]) -> list[Match]:
    """All matches, in the order of the output."""
    order = {step.name: number for number, step in enumerate(positive_steps(pattern.parts))}
    found: set[Bindings] = set()
    for tokens in unrolled(pattern.parts, (), len(events)):
        takes = sum(token.kind == TAKE for token in tokens)
        for chosen in combinations(range(len(events)), takes) if takes else ():
            candidate = Candidate(pattern, events, *_segments(tokens), chosen)
            if candidate.is_match():
                found.add(candidate.bound(takes))
    return [names(pattern, bindings) for bindings in sorted(found, key=lambda each: output_order(each, order))]


# ---------------------------------------------------------------- every list of takes


def unrolled(parts: tuple[Part, ...], prefix: Path, budget: int, index: int = 0) -> Iterator[Tokens]:
    """Every way through the parts from the index on with at most so many takes."""
    if index == len(parts):
        yield ()
        return
    for head in _part_unrolled(parts[index], prefix, index, budget):
        left = budget - sum(token.kind == TAKE for token in head)
        for tail in unrolled(parts, prefix, left, index + 1):
            yield head + tail


def _part_unrolled(part: Part, prefix: Path, index: int, budget: int) -> Iterator[Tokens]:
    if isinstance(part, Negation):
        yield (Token(HURDLE, (*prefix, (index, 1))),) if part.contiguity == STRICT else ()
        return
    if part.quantifier.optional:
        yield (Token(PASS, (*prefix, (index, 1))),)
    yield from _rounds(part, prefix, index, budget, 1)


def _rounds(part: Step | Group, prefix: Path, index: int, budget: int, number: int) -> Iterator[Tokens]:
    """The round of this number and those after it."""
    path = (*prefix, (index, number))
    rounds: Iterator[Tokens] = (
        unrolled(part.parts, path, budget) if isinstance(part, Group) else iter([(Token(TAKE, path),)])
    )
    for tokens in rounds:
        left = budget - sum(token.kind == TAKE for token in tokens)
        if left < 0:
            continue
        if number >= part.quantifier.low:
            way_out = () if is_full(part.quantifier, number) else (Token(PASS, (*prefix, (index, number + 1))),)
            yield tokens + way_out
        if not is_full(part.quantifier, number):
            for more in _rounds(part, prefix, index, left, number + 1):
                yield tokens + more


def is_full(quantifier: Quantifier, number: int) -> bool:
    return quantifier.high is not None and number >= quantifier.high


def _segments(tokens: Tokens) -> tuple[list[Path], list[Tokens]]:
    """The takes, and what stands before each of them and after the last."""
    takes: list[Path] = []
    between: list[list[Token]] = [[]]
    for token in tokens:
        if token.kind == TAKE:
            takes.append(token.path)
            between.append([])
        else:
            between[-1].append(token)
    return takes, [tuple(each) for each in between]


# ---------------------------------------------------------------- judging a choice


@dataclass(frozen=True)
class Candidate:
    """A choice of events for the takes of one way through the pattern."""

    pattern: Pattern
    events: list[Event]
    takes: list[Path]
    between: list[Tokens]
    chosen: tuple[int, ...]

    def is_match(self) -> bool:
        numbers = range(len(self.takes))
        if not self.in_window() or not all(self.may_be_taken(each) for each in numbers):
            return False
        if not all(self.may_follow(each) and self.not_negated(each) for each in numbers):
            return False
        last = self.moment(self.chosen[-1], len(self.takes) - 1)
        return all(self.may_pass(token, last) for token in self.between[-1])

    # ------------------------------------------------------------ looking things up

    def parts(self, prefix: Path) -> tuple[Part, ...]:
        parts = self.pattern.parts
        for index, _ in prefix:
            group = parts[index]
            assert isinstance(group, Group)
            parts = group.parts
        return parts

    def part(self, path: Path) -> Part:
        return self.parts(path[:-1])[path[-1][0]]

    def step(self, path: Path) -> Step:
        part = self.part(path)
        assert isinstance(part, Step)
        return part

    def quantifier(self, path: Path) -> Quantifier:
        part = self.part(path)
        assert not isinstance(part, Negation)
        return part.quantifier

    def bound(self, count: int) -> Bindings:
        """The first events of the choice, with their steps."""
        return tuple(
            (self.step(path).name, self.events[place])
            for path, place in zip(self.takes[:count], self.chosen[:count], strict=True)
        )

    def moment(self, place: int, count: int) -> Moment:
        return Moment(self.events[place], self.bound(count))

    def next_place(self, each: int) -> int:
        """The event after the one chosen before: there a run decides where to go."""
        return self.chosen[each - 1] + 1 if each else self.chosen[0]

    def forbidden_around(self, path: Path, moment: Moment) -> bool:
        """Whether the until of a group around the path holds."""
        untils = [self.quantifier(path[:depth]).until for depth in range(1, len(path))]
        return any(until is not None and holds(until, moment) for until in untils)

    # ------------------------------------------------------------ the rules

    def in_window(self) -> bool:
        first, last = self.chosen[0], self.chosen[-1]
        within, count = self.pattern.within, self.pattern.within_events
        in_time = within is None or self.events[last].time - self.events[first].time < within
        return in_time and (count is None or last - first < count)

    def may_be_taken(self, each: int) -> bool:
        path, moment = self.takes[each], self.moment(self.chosen[each], each)
        step = self.step(path)
        until = step.quantifier.until
        if (
            not holds(step.condition, moment)
            or (until is not None and holds(until, moment))
            or self.forbidden_around(path, moment)
        ):
            return False
        limit = step.since if path[-1][1] == 1 else step.quantifier.gap
        return (
            each == 0
            or limit is None
            or self.events[self.chosen[each]].time - self.events[self.chosen[each - 1]].time < limit
        )

    def may_follow(self, each: int) -> bool:
        """What stands between two takes can be passed, the events between can be ignored, and no greedy step
        objects.
        """
        here = self.moment(self.next_place(each), each)
        if not all(self.may_pass(token, here) for token in self.between[each]):
            return False
        if not all(
            self.may_be_ignored(self.takes[each], self.moment(place, each))
            for place in range(self.next_place(each), self.chosen[each])
        ):
            return False
        guarded = [
            (token.path, range(self.next_place(each), self.next_place(each) + 1))
            for token in self.between[each]
            if token.kind == HURDLE
        ]
        guarded.append((self.takes[each], range(self.next_place(each), self.chosen[each] + 1)))
        return not any(self.greedy_objects(path, each, place) for path, places in guarded for place in places)

    def may_pass(self, token: Token, moment: Moment) -> bool:
        part = self.part(token.path)
        if token.kind == HURDLE:
            assert isinstance(part, Negation)
            return not holds(part.condition, moment)
        return not self.forbidden_around(token.path, moment)

    def may_be_ignored(self, path: Path, moment: Moment) -> bool:
        step, contiguity = self.step(path), self.contiguity(path)
        if contiguity == STRICT or self.forbidden_around(path, moment):
            return False
        until = step.quantifier.until
        if path[-1][1] > 1 and until is not None and holds(until, moment):
            return False
        return contiguity == ANY or not holds(step.condition, moment)

    def contiguity(self, path: Path) -> str:
        """Inside a repetition, that between its rounds; of a group's first step, the group's; otherwise the step's
        own.
        """
        for depth in range(len(path), 0, -1):
            index, number = path[depth - 1]
            if number > 1:
                return self.quantifier(path[:depth]).inner
            if index > 0:
                return self.part(path[:depth]).contiguity
        return STRICT

    # ------------------------------------------------------------ greedy

    def greedy_objects(self, path: Path, each: int, place: int) -> bool:
        """Whether the place that a greedy step leads to, at this path, may not be entered or kept at this event."""
        greedy = self.greedy_before(path)
        if greedy is None or not holds(greedy.condition, self.moment(place, each)):
            return False
        until = greedy.quantifier.until
        left = any(token.kind == PASS and self.part(token.path) is greedy for token in self.between[each])
        return until is None or not left or not holds(until, self.moment(self.next_place(each), each))

    def greedy_before(self, path: Path) -> Step | None:
        """The greedy step that is directly before the path; not_followed_by steps stand in no way."""
        if path[-1][1] > 1:
            return None
        before = [
            part
            for part in self.parts(path[:-1])[: path[-1][0]]
            if not (isinstance(part, Negation) and part.contiguity != STRICT)
        ]
        if not before:
            return self.greedy_before(path[:-1]) if len(path) > 1 else None
        leaf = last_leaf(before[-1])
        counts = isinstance(leaf, Step) and leaf.quantifier.greedy and leaf.quantifier.low != leaf.quantifier.high
        return leaf if isinstance(leaf, Step) and counts else None

    # ------------------------------------------------------------ negations

    def not_negated(self, each: int) -> bool:
        """No negation after the event chosen before is hit, until this one; a not_followed_by lets the last event of
        the match pass.
        """
        if each == 0:
            return True
        last = each == len(self.takes) - 1
        for place in range(self.next_place(each), self.chosen[each] + (0 if last else 1)):
            if any(
                holds(negation.condition, self.moment(place, each))
                for negation in self.absences_after(self.takes[each - 1])
            ):
                return False
        return not self.hits_a_hurdle(each)

    def absences_after(self, path: Path) -> Iterator[Negation]:
        """The not_followed_by steps up to the next step that must occur."""
        for depth in range(len(path), 0, -1):
            for part in self.parts(path[: depth - 1])[path[depth - 1][0] + 1 :]:
                if isinstance(part, Negation):
                    if part.contiguity != STRICT:
                        yield part
                elif not part.quantifier.optional:
                    return

    def hits_a_hurdle(self, each: int) -> bool:
        """Whether the next event is one that a not_next, on any way out from the take before, forbids."""
        moment = self.moment(self.next_place(each), each)
        for token in self.ways_after(self.takes[each - 1]):
            part = self.part(token.path)
            if token.kind == PASS and not self.may_pass(token, moment):
                return False
            if isinstance(part, Negation):
                if self.hurdle_guarded(token.path, moment):
                    return False
                if holds(part.condition, moment):
                    return True
        return False

    def hurdle_guarded(self, path: Path, moment: Moment) -> bool:
        greedy = self.greedy_before(path)
        if greedy is None or not holds(greedy.condition, moment):
            return False
        until = greedy.quantifier.until
        return until is None or not holds(until, moment)

    def ways_after(self, path: Path) -> Iterator[Token]:
        """What a run may go past right after a take: ways out, optional steps, not_next steps, up to a step that
        must occur.
        """
        for depth in range(len(path), 0, -1):
            index, number = path[depth - 1]
            quantifier = self.quantifier(path[:depth])
            if number < quantifier.low:
                return
            if not is_full(quantifier, number):
                yield Token(PASS, (*path[: depth - 1], (index, number + 1)))
            for further, part in enumerate(self.parts(path[: depth - 1])[index + 1 :], index + 1):
                here = (*path[: depth - 1], (further, 1))
                if isinstance(part, Negation):
                    if part.contiguity == STRICT:
                        yield Token(HURDLE, here)
                elif part.quantifier.optional:
                    yield Token(PASS, here)
                else:
                    return

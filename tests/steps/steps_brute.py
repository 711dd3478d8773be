"""A slow checker of step patterns, written from STEPS.md alone and sharing nothing with the library.

Runs that begin at different events do not know of each other, except that section 6 may drop all runs of one
beginning together. So the paths of each beginning are searched by themselves, by recursion over the events:
`Beginning` notes what completes, what times out and how long something is alive. `Chooser` then decides by section 6
what is given out. Instants are numbered 2k for the step of time before event k, and 2k + 1 for event k itself; with
n events, 2n is the step of time at the end of the input, and 2n + 1 the end of all runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from steps_conditions import Bindings, Moment, holds
from steps_model import Event, Pattern, positive_steps
from steps_places import FINAL, IGNORE, PENDING, PROCEED, STOP, Edge, Place, Places

Match = dict[str, list[str]]


class MissingStepError(Exception):
    """`missing="error"`: the match has no event of the step, or only one that is its first event."""


@dataclass(frozen=True)
class Timeout:
    """A run that timed out; the time is None where the window is counted in events."""

    match: Match
    time: int | None


@dataclass(frozen=True)
class Answer:
    """Matches in the order of the output; timeouts by time, then likewise."""

    matches: list[Match]
    timeouts: list[Timeout]


@dataclass(frozen=True)
class Completed:
    instant: int
    bindings: Bindings

    @property
    def first(self) -> int:
        return self.bindings[0][1].position

    @property
    def last(self) -> int:
        return self.bindings[-1][1].position

    def of_step(self, step: str) -> list[int]:
        return [event.position for name, event in self.bindings if name == step]


@dataclass(frozen=True)
class _TimedOut:
    instant: int
    bindings: Bindings
    time: int | None


@dataclass
class Beginning:
    """All runs that begin at one event of a partition, by the rules of `places`."""

    places: Places
    events: list[Event]
    first: int
    alive: set[int] = field(default_factory=set)
    completed: list[Completed] = field(default_factory=list)
    timed_out: list[_TimedOut] = field(default_factory=list)
    seen: set[tuple[int, Place, Bindings]] = field(default_factory=set)

    def search(self, index: int) -> None:
        moment = Moment(self.events[index], ())
        noted, stopped = self.moves(self.places.start, moment)
        for edge, origin in noted:
            if edge.kind != IGNORE:
                self.take(edge, origin, moment, index, stopped)

    def moves(self, place: Place, moment: Moment) -> tuple[list[tuple[Edge, Place]], bool]:
        """The takes and ignores open to a run, each with the place that owns it, in order; and whether a not_next
        was hit.
        """
        noted: list[tuple[Edge, Place]] = []
        stopped = False
        stack = [place]
        while stack:
            current = stack.pop()
            stopped = stopped or current.kind == STOP
            for edge in self.places.edges(current):
                if not edge.formula(moment):
                    continue
                if edge.kind == PROCEED:
                    stack.append(edge.target)
                else:
                    noted.append((edge, current))
        return noted, stopped

    def go_on(self, place: Place, bindings: Bindings, index: int) -> None:
        """Follows a run that stands at a place before the event of this index."""
        if (index, place, bindings) in self.seen:
            return
        self.seen.add((index, place, bindings))
        if self.ends_by_time(place, bindings, index):
            return
        self.alive.add(2 * index)
        if index == len(self.events):
            return
        moment = Moment(self.events[index], bindings)
        noted, stopped = self.moves(place, moment)
        hit = stopped or self.negated(moment)
        for edge, origin in noted:
            if edge.kind != IGNORE:
                self.take(edge, origin, moment, index, hit)
            elif edge.target.kind == FINAL:
                self.complete(bindings, 2 * index + 1)
            elif not hit:
                self.keep(edge.target, bindings, index)

    def take(self, edge: Edge, origin: Place, moment: Moment, index: int, hit: bool) -> None:
        bindings = (*moment.bindings, (self.places.step(origin.position).name, moment.event))
        if self.places.reaches(edge.target, FINAL, moment):
            self.complete(bindings, 2 * index + 1)
        if not hit and edge.target.kind != FINAL:
            self.keep(edge.target, bindings, index)

    def keep(self, place: Place, bindings: Bindings, index: int) -> None:
        self.alive.add(2 * index + 1)
        self.go_on(place, bindings, index + 1)

    def complete(self, bindings: Bindings, instant: int) -> None:
        self.completed.append(Completed(instant, bindings))

    def negated(self, moment: Moment) -> bool:
        """Whether the event satisfies a negation that the event selected last, of whatever step, has opened."""
        return any(holds(condition, moment) for condition in self.places.opened_by(moment.bindings[-1][0]))

    def ends_by_time(self, place: Place, bindings: Bindings, index: int) -> bool:
        """Whether the run ends at the step of time before the event of this index; it is then a match or a timeout."""
        over = list(self.bounds_over(place, bindings, index))
        if not over:
            return False
        if self.places.reaches(place, PENDING, None):
            self.complete(bindings, 2 * index)
        else:
            times = [time for time in over if time is not None]
            self.timed_out.append(_TimedOut(2 * index, bindings, min(times) if times else None))
        return True

    def bounds_over(self, place: Place, bindings: Bindings, index: int) -> Iterator[int | None]:
        """For each bound that time has reached, when that was."""
        pattern, (first, previous) = self.places.pattern, (bindings[0][1], bindings[-1][1])
        at_end = index == len(self.events)
        if pattern.within is not None and (
            at_end or self.places.is_over(self.events[index].time - first.time, pattern.within)
        ):
            yield first.time + pattern.within
        count = pattern.within_events
        if count is not None and (at_end or self.places.is_over(index - self.events.index(first), count)):
            yield None
        bound = self.places.time_bound(place)
        if bound is not None and (at_end or self.places.is_over(self.events[index].time - previous.time, bound)):
            yield previous.time + bound


class Chooser:
    """Section 6: which of the complete matches are given out, and which timeouts are left."""

    def __init__(self, pattern: Pattern, beginnings: list[Beginning]) -> None:
        self.pattern = pattern
        self.beginnings = dict(enumerate(beginnings))
        self.waiting: list[Completed] = []
        self.given: list[Completed] = []
        self.timed_out: list[_TimedOut] = []

    def choose(self, instants: int) -> None:
        for instant in range(instants):
            for beginning in self.beginnings.values():
                self.timed_out += [each for each in beginning.timed_out if each.instant == instant]
                self.waiting += [each for each in distinct(beginning.completed) if each.instant == instant]
            self.waiting.sort(key=lambda each: each.first)
            self.give_out(instant)

    def give_out(self, instant: int) -> None:
        if self.pattern.mode == "no_skip":
            self.given += self.waiting
            self.waiting = []
        while self.waiting and not self.must_wait(self.waiting[0], instant):
            match = self.waiting.pop(0)
            self.given.append(match)
            self.drop(match)

    def must_wait(self, match: Completed, instant: int) -> bool:
        return any(instant in each.alive and each.first < match.first for each in self.beginnings.values())

    def drop(self, match: Completed) -> None:
        keep = self.kept_from(match)
        self.beginnings = {number: each for number, each in self.beginnings.items() if each.first >= keep}
        self.waiting = [each for each in self.waiting if each.first >= keep]

    def kept_from(self, match: Completed) -> int:
        """The first position of the events whose runs and matches are kept."""
        mode, target = self.pattern.mode, self.pattern.target
        if mode == "skip_to_next":
            return match.first + 1
        if mode == "skip_past_last_event":
            return match.last + 1
        assert target is not None
        events = match.of_step(target)
        wanted = None if not events else events[0] if mode == "skip_to_first" else events[-1]
        if self.pattern.missing_error and (wanted is None or wanted == match.first):
            raise MissingStepError(f"{target} in {names(self.pattern, match.bindings)}")
        return match.first if wanted is None else wanted


def distinct(completed: list[Completed]) -> list[Completed]:
    """Each match once, where it is complete first; in the order of the instants, then in that of their origin."""
    once: dict[Bindings, Completed] = {}
    for each in sorted(completed, key=lambda each: each.instant):
        once.setdefault(each.bindings, each)
    return list(once.values())


@dataclass(frozen=True)
class Rules:
    """The classes that hold the rules; a test of the cases puts wrong ones in their place."""

    places: type[Places] = Places
    beginning: type[Beginning] = Beginning
    chooser: type[Chooser] = Chooser


RIGHT = Rules()


def check(pattern: Pattern, events: list[Event], rules: Rules = RIGHT) -> Answer:
    """The matches and timeouts of a pattern over events that are in order."""
    given: list[Completed] = []
    timed_out: list[_TimedOut] = []
    places = rules.places(pattern)
    for members in partitions(pattern, events):
        beginnings = [rules.beginning(places, members, event.position) for event in members]
        for index, beginning in enumerate(beginnings):
            beginning.search(index)
        chooser = rules.chooser(pattern, beginnings)
        chooser.choose(2 * len(members) + 2)
        given += chooser.given
        timed_out += chooser.timed_out
    order = {step.name: number for number, step in enumerate(positive_steps(pattern.parts))}
    matches = sorted((each.bindings for each in given), key=lambda each: output_order(each, order))
    late = sorted(
        {each.bindings: each for each in reversed(timed_out)}.values(),
        key=lambda each: output_order(each.bindings, order),
    )
    late.sort(key=lambda each: each.time or 0)
    return Answer(
        [names(pattern, bindings) for bindings in matches],
        [Timeout(names(pattern, each.bindings), each.time) for each in late],
    )


def partitions(pattern: Pattern, events: list[Event]) -> list[list[Event]]:
    groups: dict[tuple[object, ...], list[Event]] = {}
    for event in events:
        key = tuple(event.attribute(column) for column in pattern.partition)
        if None not in key:
            groups.setdefault(key, []).append(event)
    return list(groups.values())


def output_order(bindings: Bindings, order: dict[str, int]) -> tuple[int, int, list[int], list[int]]:
    """By the last event, the first, all events; what is left open, matches of the same events, by the steps, earlier
    ones first.
    """
    positions = [event.position for _, event in bindings]
    return positions[-1], positions[0], positions, [order[name] for name, _ in bindings]


def names(pattern: Pattern, bindings: Bindings) -> Match:
    return {
        step.name: [event.name for name, event in bindings if name == step.name]
        for step in positive_steps(pattern.parts)
    }

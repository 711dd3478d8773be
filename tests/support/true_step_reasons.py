"""Reasons that `why` gives for patterns in steps, asked again of the slow checker's events and conditions."""

from __future__ import annotations

from collections.abc import Iterator

from kleene.why.model import Bound as ToldBound
from kleene.why.model import Ending, Kind, Try
from steps_brute import partitions
from steps_conditions import Bindings, Moment, holds
from steps_model import Condition, Event, Group, Negation, Part, Pattern, Step

WHILE_WAITING = (Kind.WINDOW, Kind.GAP, Kind.SINCE)


def all_parts(parts: tuple[Part, ...]) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, Group):
            yield from all_parts(part.parts)


def label(part: Part) -> str:
    return f"({', '.join(map(label, part.parts))})" if isinstance(part, Group) else part.name


class Truth:
    """What is so, whatever the library says. Rows are places in the list of events, which is in order."""

    def __init__(self, pattern: Pattern, events: list[Event]) -> None:
        self.pattern, self.events = pattern, events
        self.together = {event.position: members for members in partitions(pattern, events) for event in members}
        self.named = {label(part): part for part in all_parts(pattern.parts)}

    def condition(self, name: str) -> Condition:
        part = self.named[name]
        assert isinstance(part, (Step, Negation))
        return part.condition

    def moment(self, row: int, bound: ToldBound) -> Moment:
        """The event of a row, tried when the rows of `bound` that come before it are bound."""
        pairs = [(name, self.events[one.row]) for name, events in bound for one in events if one.row < row]
        bindings: Bindings = tuple(sorted(pairs, key=lambda pair: pair[1].position))
        return Moment(self.events[row], bindings)

    def assert_try(self, one: Try, row: int, bound: ToldBound) -> None:
        """The event is what the step wants exactly if the try says so, and objections stand against it."""
        assert one.fits is holds(self.condition(one.variable), self.moment(row, bound))
        for objection in one.objections:
            self.assert_against(objection, row, bound)

    def assert_against(self, ending: Ending, row: int, bound: ToldBound) -> None:
        """What is said to stand against an event, or to have ended a run by it, is so."""
        assert ending.by is not None
        assert ending.by.row == row
        moment = self.moment(row, bound)
        first, previous = (moment.bindings[place][1] if moment.bindings else moment.event for place in (0, -1))
        match ending.kind:
            case Kind.UNTIL:
                part = self.named[ending.variable or ""]
                assert isinstance(part, (Step, Group))
                assert part.quantifier.until is not None
                assert holds(part.quantifier.until, moment)
            case Kind.GREEDY:
                part = self.named[ending.variable or ""]
                assert isinstance(part, Step)
                assert part.quantifier.greedy
                assert holds(part.condition, moment)
            case Kind.NEGATION | Kind.NEXT_MATCH:
                assert holds(self.condition(ending.variable or ""), moment)
                assert isinstance(self.named[ending.variable or ""], Negation) is (ending.kind is Kind.NEGATION)
            case Kind.WINDOW:
                self.assert_out_of_window(first, moment.event)
            case Kind.GAP | Kind.SINCE:
                assert ending.after is not None
                assert ending.after.row == previous.position
                assert moment.event.time - previous.time >= int(ending.bound or "")
                assert int(ending.bound or "") in self.bounds(ending.kind)
            case Kind.CONTIGUITY:
                members = self.together[row]
                assert members.index(moment.event) == members.index(previous) + 1
            case _:
                raise AssertionError(ending.kind)

    def assert_out_of_window(self, first: Event, event: Event) -> None:
        within, count = self.pattern.within, self.pattern.within_events
        members = self.together[event.position]
        is_late = within is not None and event.time - first.time >= within
        assert is_late or (count is not None and members.index(event) - members.index(first) >= count)

    def bounds(self, kind: Kind) -> list[int | None]:
        if kind is Kind.SINCE:
            return [part.since for part in self.named.values() if isinstance(part, (Step, Negation))]
        return [part.quantifier.gap for part in self.named.values() if isinstance(part, Step)]

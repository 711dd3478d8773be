"""A run of a pattern in steps while it is followed: what it has bound, in whichever states it waits."""

from __future__ import annotations

from dataclasses import dataclass, field

from kleene.engine.steps.conditions import Bound
from kleene.why.model import Check, Ending, Event, Step, Try


@dataclass(slots=True)
class Near:
    """An event that one thing kept from a run: a predicate of the step, or an objection."""

    tried: Try
    event: Event
    would_match: bool

    @property
    def against(self) -> Check | Ending:
        failed = self.tried.failed
        return failed[0] if failed else self.tried.objections[0]

    def is_like(self, other: Near) -> bool:
        """Whether the same thing refused the same step another event."""
        one, another = self.against, other.against
        if self.tried.variable != other.tried.variable:
            return False
        if isinstance(one, Check):
            return isinstance(another, Check) and one.predicate == another.predicate
        return isinstance(another, Ending) and (one.kind, one.variable) == (another.kind, another.variable)


@dataclass(slots=True)
class Late:
    """The run would have gone on with this event, but for its end; `ending` is that end."""

    ending: Ending
    event: Event | None
    variable: str | None
    would_match: bool


@dataclass(slots=True)
class StepNode:
    """`refused_by` are the numbers of the predicates that refused it an event."""

    number: int
    parent: int | None
    bound: Bound
    steps: list[Step]
    endings: list[Ending] = field(default_factory=list)
    near: list[Near] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    refused_by: set[int] = field(default_factory=set)
    went_on: bool = False
    is_complete: bool = False
    is_told: bool = False

    def end(self, ending: Ending) -> None:
        if not self.is_complete and ending not in self.endings:
            self.endings.append(ending)

    def add(self, event: Event, tries: list[Try]) -> None:
        """What was tried with the event; runs in several states try it one after the other."""
        if self.steps and self.steps[-1].event == event:
            tries = [*self.steps.pop().tries, *tries]
        self.steps.append(Step(event, tuple(one for number, one in enumerate(tries) if one not in tries[:number])))

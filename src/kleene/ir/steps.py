"""Patterns in steps, as the fluent builder says them: each step has its own contiguity, repetition and conditions.

Conditions stand in `QueryDefinition.definitions`, by the label of their step, so that whatever walks over the
expressions of a query finds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from kleene.ir.options import Window
from kleene.ir.pattern import Pattern
from kleene.ir.query import Definition, QueryDefinition


class Contiguity(Enum):
    """What may lie between the event selected last and the next one."""

    STRICT = "strict"  # nothing
    RELAXED = "relaxed"  # events that do not satisfy the step
    ANY = "any"  # everything


class Negative(Enum):
    """The two ways to say that something does not occur."""

    NOT_NEXT = "not_next"
    NOT_FOLLOWED_BY = "not_followed_by"


@dataclass(frozen=True, slots=True)
class Repetition:
    """How often a step occurs; `most` is None where nothing bounds it, and `gap` is less than so far apart."""

    least: int
    most: int | None
    gap: Window | None = None

    @property
    def is_fixed(self) -> bool:
        return self.least == self.most


@dataclass(frozen=True, slots=True)
class Step(Pattern):
    """One step: a variable, or, if it has `group`, a whole pattern that is used as one.

    `contiguity` is about what lies before its first event, `inside` about what lies between events of its repetition.
    `since_previous` bounds the time from the event before. Without types every event is of the right type.
    """

    name: str
    contiguity: Contiguity
    types: tuple[str, ...] = ()
    negative: Negative | None = None
    group: tuple[Step, ...] = ()
    repetition: Repetition | None = None
    inside: Contiguity | None = None
    is_optional: bool = False
    is_greedy: bool = False
    has_until: bool = False
    since_previous: Window | None = None

    @property
    def label(self) -> str:
        """What messages call it; no two steps or groups of a pattern have the same.

        >>> a, b = Step("a", Contiguity.STRICT), Step("b", Contiguity.RELAXED)
        >>> Step("", Contiguity.ANY, group=(a, b)).label
        '(a, b)'
        """
        return f"({', '.join(step.label for step in self.group)})" if self.group else self.name

    @property
    def is_loop(self) -> bool:
        """Whether nothing bounds how often it occurs."""
        return self.repetition is not None and self.repetition.most is None

    @property
    def can_be_skipped(self) -> bool:
        """Whether a match may have no event of it."""
        inner = [step for step in self.group if step.negative is None]
        return self.is_optional or (bool(inner) and all(step.can_be_skipped for step in inner))

    @property
    def is_many(self) -> bool:
        """Whether it may occur more than once."""
        return self.repetition is not None and self.repetition.most != 1


class SkipMode(Enum):
    """Which runs and matches a match that is given out drops."""

    NO_SKIP = "no_skip"
    SKIP_TO_NEXT = "skip_to_next"
    SKIP_PAST_LAST_EVENT = "skip_past_last_event"
    SKIP_TO_FIRST = "skip_to_first"
    SKIP_TO_LAST = "skip_to_last"

    @property
    def needs_step(self) -> bool:
        return self in (SkipMode.SKIP_TO_FIRST, SkipMode.SKIP_TO_LAST)


@dataclass(frozen=True, slots=True)
class AfterSteps:
    """What is dropped after a match; `fails` says that a match without an event of the step is an error."""

    mode: SkipMode = SkipMode.NO_SKIP
    step: str | None = None
    fails: bool = False
    is_given: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Steps(Pattern):
    """The steps in their order; `windows` are those of the whole pattern, one of each unit at most."""

    steps: tuple[Step, ...]
    windows: tuple[Window, ...] = ()
    after: AfterSteps = AfterSteps()


class ConditionKind(Enum):
    """How a condition joins what its step has; the value is the call that says it."""

    AND = "where"
    OR = "or_where"
    UNTIL = "until"


@dataclass(frozen=True, slots=True)
class StepCondition(Definition):
    """A condition of the step, or the group, with the label `variable`."""

    kind: ConditionKind = ConditionKind.AND


def is_steps(definition: QueryDefinition) -> bool:
    return isinstance(definition.pattern, Steps)


def steps_of(definition: QueryDefinition) -> Steps:
    assert isinstance(definition.pattern, Steps)
    return definition.pattern


def all_steps(steps: tuple[Step, ...]) -> Iterator[Step]:
    """The steps, and those inside of groups, in the order of the pattern; groups themselves are left out."""
    for step in steps:
        if step.group:
            yield from all_steps(step.group)
        else:
            yield step


def many_of(steps: tuple[Step, ...], is_inside: bool = False) -> Iterator[tuple[Step, bool]]:
    """The positive steps, each with whether a match can have several events of it."""
    for step in steps:
        if step.group:
            yield from many_of(step.group, is_inside or step.is_many)
        elif step.negative is None:
            yield step, is_inside or step.is_many

"""The answer to "why, and why not": runs, their steps and their ends, as values that can be checked one by one.

Rows are those of the input, counted from 0 as Arrow and pandas count them, so that answers can be joined with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kleene.ir.expr import Expr


class Kind(StrEnum):
    """How a run ended, or why there was none."""

    MATCH = "match"
    WENT_ON = "went on"  # other runs continue it
    WINDOW = "window"
    CONTIGUITY = "contiguity"
    END = "end of input"
    NEGATION = "negation"
    HAVING = "having"
    LOST = "lost"  # another match was chosen, and the two overlap
    SKIPPED = "skipped"  # a match before it has taken the row
    LENGTH = "length"  # MAXLENGTH, or the frame of a window
    PREDICATE = "predicate"
    TYPE = "type"
    KEY = "key"  # events of different partitions, or of none
    ORDER = "order"
    ANCHOR = "anchor"
    NEXT_MATCH = "next match"  # skip_till_next_match may not pass over an event that fits
    UNTIL = "until"  # the until condition of a step, or of a group around it, holds
    GREEDY = "greedy"  # a greedy step before would take the event
    GAP = "gap"  # too long after the event before, inside a repetition
    SINCE = "since previous"  # too long after the event before
    DROPPED = "dropped"  # a match that was given out before it was complete skips what began there
    PLACE = "place"  # the pattern wants another step there
    INCOMPLETE = "incomplete"
    NOT_BEGUN = "not begun"
    NOT_SEEN = "not seen"  # no run was waiting when the event came


@dataclass(frozen=True, slots=True)
class Event:
    """An event as it is told: its row in the input, its type where it has one, and its time as text."""

    row: int
    type: str | None
    time: str


@dataclass(frozen=True, slots=True)
class Operand:
    """A value that a predicate was decided by, and the row it was read from where that is one row."""

    expression: Expr
    value: Any
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A predicate that was decided. The result is None where it is unknown, because of a NULL or a NaN.

    `error` says why it could not be decided at all.
    """

    predicate: Expr
    operands: tuple[Operand, ...]
    result: bool | None
    error: str | None = None

    @property
    def holds(self) -> bool:
        return self.result is True


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, or what stands against an event.

    `by` is the event that did it; `checks` are those that say so, `variable` the negation, `match` the winner. Of a
    pattern in steps, `variable` is the step or group whose bound, until or greedy it is, or the steps that the run was
    waiting for; `after` is the event that `by` is too far from, and `bound` how far it may be.
    """

    kind: Kind
    by: Event | None = None
    checks: tuple[Check, ...] = ()
    variable: str | None = None
    match: int | None = None
    after: Event | None = None
    bound: str | None = None


@dataclass(frozen=True, slots=True)
class Try:
    """An event tried for a variable: `move` is begin, take, step (of a pattern in steps) or row (of a row pattern).

    `wanted` are the types it is not of; without them, the checks are all there is to say. `objections` are what else
    stands against it, in a pattern in steps: until, greedy, gap and since previous.
    """

    move: str
    variable: str
    wanted: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    objections: tuple[Ending, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the event is what the variable wants, whatever else stands against it."""
        return not self.wanted and all(check.holds for check in self.checks)

    @property
    def holds(self) -> bool:
        return self.fits and not self.objections

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.holds)


@dataclass(frozen=True, slots=True)
class Step:
    """What a run did with an event: all that was tried, and whether the run itself goes on behind it.

    `bound` is how many rows were bound before it; a row pattern goes back and tries others.
    """

    event: Event
    tries: tuple[Try, ...]
    ignored: bool = False
    bound: int = 0


Bound = tuple[tuple[str, tuple[Event, ...]], ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A run: what it has bound, by variable; its steps from the last event that it bound; and how it ended.

    `parent` is the run that it continues. A run that ends as a match has the number of that match.
    """

    number: int
    parent: int | None
    key: tuple[tuple[str, str], ...]
    bound: Bound
    steps: tuple[Step, ...]
    endings: tuple[Ending, ...]

    @property
    def rows(self) -> tuple[int, ...]:
        return tuple(event.row for _, events in self.bound for event in events)


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A run that failed by one thing only: a predicate, the window, contiguity, a negation, HAVING or an objection.

    `event` is the one that was tried for `variable`, and `by` the one that did it, where that is another. With
    `would_match`, the run would have been a match but for this.
    """

    run: int
    key: tuple[tuple[str, str], ...]
    bound: Bound
    kind: Kind
    variable: str | None
    event: Event | None
    by: Event | None
    check: Check | None
    would_match: bool
    objection: Ending | None = None


@dataclass(frozen=True, slots=True)
class PredicateCount:
    """How a predicate did: among the events it was asked of, how many passed at least once; among all tries, how many.

    `predicate` is None for the type alone. `stopped` is how many runs went no further and had an event refused by it.
    """

    variable: str
    move: str
    predicate: Expr | None
    types: tuple[str, ...]
    events: int
    passed: int
    tries: int
    held: int
    stopped: int


@dataclass(frozen=True, slots=True)
class Count:
    """How many runs reached a state, or ended in one way."""

    name: str
    runs: int


@dataclass(frozen=True, slots=True)
class Match:
    """A match that was given out, by variable."""

    number: int
    bound: Bound

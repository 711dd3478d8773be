"""The choices a query makes besides its pattern and predicates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum

from kleene.schema import LARGEST_INTEGER
from kleene.source import NO_SPAN, Span


class Strategy(Enum):
    """Which events a run may pass over."""

    STRICT_CONTIGUITY = "strict_contiguity"
    PARTITION_CONTIGUITY = "partition_contiguity"
    SKIP_TILL_NEXT_MATCH = "skip_till_next_match"
    SKIP_TILL_ANY_MATCH = "skip_till_any_match"


MICROSECONDS = {
    **dict.fromkeys(("microsecond", "microseconds"), 1),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
    **dict.fromkeys(("w", "week", "weeks"), 604_800_000_000),
}
"""The units of time that texts may name."""


def duration_of(text: str) -> int | None:
    """The microseconds of a text such as 5 minutes; None if it is none, or they are not whole or do not fit 64 bits."""
    found = re.fullmatch(r"\s*(-?(?:\d+(?:\.\d+)?|\.\d+))\s*([a-z]+)\s*", text, re.IGNORECASE)
    scale = MICROSECONDS.get(found[2].lower()) if found else None
    if found is None or scale is None or len(found[1]) > 40:
        return None
    microseconds = Decimal(found[1]) * scale
    is_whole = microseconds == microseconds.to_integral_value() and abs(microseconds) <= LARGEST_INTEGER
    return int(microseconds) if is_whole else None


class WindowUnit(Enum):
    TIME = "time"  # microseconds
    ORDER_KEY = "order key"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class Window:
    """WITHIN: the last selected event is less than `size` after the first."""

    size: int | Decimal
    unit: WindowUnit
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Grouping:
    """What aggregates over all matches are grouped by; by nothing, there is one row.

    A match belongs to the event that completes it: to its partition, and to the window that its time lies in. `numbers`
    says how whole numbers without bound are given out.
    """

    by_event: bool = False
    by_partition: bool = False
    window: Window | None = None
    numbers: str = "text"
    is_partial: bool = field(default=False, repr=False)  # whether others will add what they know


NUMBERS = ("text", "decimal", "float")


@dataclass(frozen=True, slots=True)
class WindowParameter:
    """WITHIN :size, or WITHIN T without the mark: a window that each call gives a size to."""

    name: str
    is_marked: bool = field(default=False, compare=False, repr=False)
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


class Selection(Enum):
    """Which of the runs that the pattern allows are matches."""

    EVERY_RUN = "every run"  # SASE: each accepting run under the strategy
    PREFERRED = "preferred"  # SQL: for each start row, the first in order of preference
    ALL_MATCHES = "all matches"  # RIP: each accepting classification of each start row
    FIRST_COMPLETED = "first completed"  # MatchRegex: at the first event that completes one, the longest


class Skip(Enum):
    """Where matching resumes after a match."""

    PAST_LAST_ROW = "PAST LAST ROW"
    TO_NEXT_ROW = "TO NEXT ROW"
    TO_FIRST = "TO FIRST"
    TO_LAST = "TO LAST"


@dataclass(frozen=True, slots=True)
class AfterMatch:
    """Where matching resumes; `variable` is the target of TO FIRST and TO LAST."""

    skip: Skip = Skip.PAST_LAST_ROW
    variable: str | None = None
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


class RowsPerMatch(Enum):
    """What is given out for a match."""

    ONE = "ONE ROW PER MATCH"
    ALL_SHOW_EMPTY = "ALL ROWS PER MATCH SHOW EMPTY MATCHES"
    ALL_OMIT_EMPTY = "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    ALL_WITH_UNMATCHED = "ALL ROWS PER MATCH WITH UNMATCHED ROWS"
    EACH_ROW = "one row for each row"  # of a window: its measures are those of the row's own match


class Format(Enum):
    """Which matches are given out."""

    ALL = "all"
    NON_OVERLAPPING = "non_overlapping"


class Timeouts(Enum):
    """Which runs that did not become matches are given out beside them."""

    NONE = "none"
    CLOSED = "closed"  # those whose windows have passed
    ALL = "all"  # where the end of all events is not known: those that are open in the end, too, with when they close

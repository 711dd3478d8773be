"""The choices a query makes besides its pattern and predicates."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum

from kleene.source import NO_SPAN, Span


class Strategy(Enum):
    """Which events a run may pass over."""

    STRICT_CONTIGUITY = "strict_contiguity"
    PARTITION_CONTIGUITY = "partition_contiguity"
    SKIP_TILL_NEXT_MATCH = "skip_till_next_match"
    SKIP_TILL_ANY_MATCH = "skip_till_any_match"


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


class Format(Enum):
    """Which matches are given out."""

    ALL = "all"
    NON_OVERLAPPING = "non_overlapping"

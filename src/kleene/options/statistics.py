"""Statistics that a plan is chosen by: how many events there are of each type, how many values of each attribute."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kleene.errors import UnsupportedError, listed, printable, shown

NAMES = ("events", "distinct")


@dataclass(frozen=True, slots=True)
class Statistics:
    """`events[type]`: how many; `distinct[attribute]`: how many values. What is not known is not there."""

    events: Mapping[str, float] = field(default_factory=dict)
    distinct: Mapping[str, float] = field(default_factory=dict)
    source: str = "given"
    in_window: float | None = None  # about how many events lie in one window
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # least and greatest values, of all events

    def __hash__(self) -> int:
        """So that a plan that was made by equal statistics is found again."""
        numbers = (frozenset(part.items()) for part in (self.events, self.distinct, self.ranges))
        return hash((*numbers, self.source, self.in_window))

    def share(self, types: tuple[str, ...]) -> float | None:
        """The part of all events that is of these types."""
        total = sum(self.events.values())
        return sum(self.events.get(name, 0) for name in types) / total if total else None


UNKNOWN = Statistics(source="unknown")


def checked_statistics(given: Statistics | Mapping[str, Any] | None) -> Statistics | None:
    """The statistics that a user gave.

    >>> checked_statistics({"events": {"A": 100, "B": 5}, "distinct": {"id": 40}}).share(("B",))
    0.047619047619047616
    """
    if given is None or isinstance(given, Statistics):
        return given
    if not isinstance(given, Mapping):
        raise UnsupportedError(f"statistics is a dict, but {shown(given)} was given", hint=_example())
    for name, numbers in given.items():
        if name not in NAMES:
            raise UnsupportedError(f"statistics has no {shown(name)}", hint=f"It has {listed(NAMES)}. {_example()}")
        if not isinstance(numbers, Mapping):
            raise UnsupportedError(f"statistics['{name}'] must be a dict of numbers by name", hint=_example())
    events, distinct = (_counts(name, given.get(name, {})) for name in NAMES)
    return Statistics(events, distinct)


def _counts(name: str, numbers: Mapping[Any, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, number in numbers.items():
        try:
            found[key] = math.nan if isinstance(number, (bool, str)) else float(number)
        except (TypeError, ValueError, OverflowError):
            found[key] = math.nan
        if not 0 <= found[key] < math.inf:
            raise UnsupportedError(
                f"statistics['{name}'][{printable(repr(key))}] is {shown(number)}, but a count is a number from 0 up"
            )
    return found


def _example() -> str:
    return 'For example: {"events": {"Shelf": 1000}, "distinct": {"id": 50}}.'

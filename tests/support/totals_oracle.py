"""Aggregates over all matches by making every match: plain, slow, and written from docs/all_matches.md alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

Event = dict[str, Any]
Match = dict[str, list[Event]]
FUNCTIONS = ("count", "sum", "avg", "min", "max")


def matches_of(rows: Iterable[dict[str, Any]], variables: Iterable[str]) -> list[Match]:
    """The matches of rows that `match` returns without RETURN: for each variable its events."""
    names = list(variables)
    return [{name: row[name] if isinstance(row[name], list) else [row[name]] for name in names} for row in rows]


def last_event(match: Match) -> Event:
    return list(match.values())[-1][-1]


def aggregated(function: str, value: Callable[[Event], Any], variable: str, matches: Iterable[Match]) -> Any:
    """The aggregate of a value of the variable's events, over all matches."""
    values = [value(event) for match in matches for event in match[variable]]
    values = [value for value in values if value is not None]
    if function == "count":
        return str(len(values))
    if function in ("min", "max"):
        ordered = sorted(value for value in values if value == value)
        return None if not ordered else ordered[0 if function == "min" else -1]
    if not values:
        return None
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return sum(value for value in values if not math.isfinite(value))
    exact = sum(map(Fraction, values), Fraction(0))
    if function == "avg":
        exact /= len(values)
    is_whole = function == "sum" and not isinstance(values[0], float)
    return str(int(exact)) if is_whole else float(exact)


def same(left: Any, right: Any) -> bool:
    return left == right or (left != left and right != right)

"""Hints: what a user asks a plan to do, each optimization by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from kleene.errors import UnsupportedError, did_you_mean, listed, shown

CHOICES: dict[str, tuple[str, ...]] = {
    "operators": ("sequence", "nfa"),
    "scan": ("basic", "ais", "pais"),
    "second_test": ("selection", "multi_pais", "dynamic", "combined"),
    "window": ("late", "construction", "scan_and_construction"),
    "simple_predicates": ("late", "scan"),
    "parameterized_predicates": ("late", "construction"),
    "implied_tests": ("off", "on"),
    "negation": ("scan_all", "index"),
    "negation_place": ("late", "construction"),
}
"""The names of hints and what each may be; every one is chosen by itself where it is left out."""


@dataclass(frozen=True, slots=True)
class Hints:
    """None where the plan may choose."""

    operators: str | None = None
    scan: str | None = None
    second_test: str | None = None
    window: str | None = None
    simple_predicates: str | None = None
    parameterized_predicates: str | None = None
    implied_tests: str | None = None
    negation: str | None = None
    negation_place: str | None = None

    def given(self) -> dict[str, str]:
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


NO_HINTS = Hints()
_OF_RUNS_TOO = ("operators", "negation")


def checked_hints(given: Mapping[str, Any] | Hints | None) -> Hints:
    """The hints; an error that lists what can be if a name or a value is unknown, or two cannot go together.

    >>> checked_hints({"scan": "ais"}).scan
    'ais'
    >>> checked_hints({"scan": "fast"})
    Traceback (most recent call last):
    ...
    kleene.errors.UnsupportedError: the hint 'scan' cannot be 'fast'
    It can be: 'basic', 'ais', 'pais'.
    """
    if given is None:
        return NO_HINTS
    if isinstance(given, Hints):
        return given
    if not isinstance(given, Mapping):
        raise UnsupportedError(f"plan is a dict of hints, but {shown(given)} was given", hint=_all_hints())
    for name, value in given.items():
        if name not in CHOICES:
            guess = did_you_mean(name, tuple(CHOICES)) if isinstance(name, str) else ""
            raise UnsupportedError(f"there is no hint {shown(name)}", hint=f"{_all_hints()}{guess}")
        if not isinstance(value, str) or value not in CHOICES[name]:
            guess = did_you_mean(value, CHOICES[name]) if isinstance(value, str) else ""
            raise UnsupportedError(
                f"the hint '{name}' cannot be {shown(value)}",
                hint=f"It can be: {', '.join(map(repr, CHOICES[name]))}.{guess}",
            )
    hints = Hints(**given)
    _check_together(hints)
    return hints


def _all_hints() -> str:
    return f"Hints: {listed(tuple(CHOICES))}."


def _check_together(hints: Hints) -> None:
    if hints.operators == "nfa":
        others = [name for name in hints.given() if name not in _OF_RUNS_TOO]
        if others:
            raise UnsupportedError(
                f"the hint '{others[0]}' is for sequence operators, but operators='nfa' asks for runs",
                hint=f"With operators='nfa', these hints remain: {listed(_OF_RUNS_TOO)}.",
            )
    if hints.second_test in ("multi_pais", "combined") and hints.scan in ("basic", "ais"):
        raise UnsupportedError(
            f"second_test='{hints.second_test}' needs partitioned stacks, but scan='{hints.scan}' has none",
            hint="With it, scan can be: 'pais'. Without it, second_test can be: 'selection', 'dynamic'.",
        )

"""Checks that several options share. Each gives back the value, or raises an error that says what exists."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from kleene.errors import UnsupportedError, did_you_mean, listed, shown


def checked_choice(name: str, given: object, names: Sequence[str]) -> str:
    """One of the names.

    >>> checked_choice("engine", "compild", ("auto", "compiled"))
    Traceback (most recent call last):
    ...
    kleene.errors.UnsupportedError: engine cannot be 'compild'
    It can be: auto, compiled. Did you mean 'compiled'?
    """
    if isinstance(given, str) and given in names:
        return given
    guess = did_you_mean(given, names) if isinstance(given, str) else ""
    raise UnsupportedError(f"{name} cannot be {shown(given)}", hint=f"It can be: {listed(names)}.{guess}")


def checked_pair(name: str, given: object, choices: tuple[str, str]) -> str:
    """One of two values of the option."""
    if isinstance(given, str) and given in choices:
        return given
    first, second = choices
    guess = did_you_mean(given, choices).strip() if isinstance(given, str) else ""
    raise UnsupportedError(f"{name} is '{first}' or '{second}', but {shown(given)} was given", hint=guess or None)


def checked_flag(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise UnsupportedError(f"{name} is True or False, but {shown(given)} was given")
    return given


def checked_count(name: str, given: object, what: str = "whole number") -> int:
    """A whole number from 1 up, also one of numpy's."""
    try:
        count = 0 if isinstance(given, bool) else operator.index(given)  # type: ignore[arg-type]  # that is the test
    except TypeError:
        count = 0
    if count < 1:
        raise UnsupportedError(f"{name} is a {what} from 1 up, but {shown(given)} was given")
    return count

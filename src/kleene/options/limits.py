"""What one call may hold, find and take. Limits are part of a plan, and are shipped to tasks with it."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass

from kleene.errors import UnsupportedError, shown

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_LEAST_MEMORY = 10**6


@dataclass(frozen=True, slots=True)
class Limits:
    """None: half of the memory that the process may use; any number of matches; any time."""

    memory: int | None = None
    matches: int | None = None
    seconds: float | None = None


NO_LIMITS = Limits()


def checked_memory(given: int | str | None) -> int | None:
    """A number of bytes.

    >>> checked_memory("2 GB")
    2000000000
    """
    if given is None:
        return None
    found: float = -1
    if isinstance(given, str):
        parts = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([a-z]*)\s*", given.lower())
        if parts is not None and parts[2] in _UNITS:
            found = float(parts[1]) * _UNITS[parts[2]]
    elif not isinstance(given, bool):
        try:
            found = operator.index(given)
        except TypeError:
            found = -1
    if found < _LEAST_MEMORY:
        raise UnsupportedError(
            f"memory_limit is a number of bytes from {_LEAST_MEMORY:,} up, or a text, but {shown(given)} was given",
            hint="Write it like memory_limit='2 GB'.",
        )
    return int(found)


def checked_seconds(given: float | None) -> float | None:
    if given is None:
        return None
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not is_number or not 0 < given < math.inf:
        raise UnsupportedError(f"time_limit is a number of seconds above 0, but {shown(given)} was given")
    return float(given)

"""Values as they stand on a command line, where nothing but their looks and their use tells their types."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time
from typing import Any

from kleene.schema import LARGEST_INTEGER, SMALLEST_INTEGER

_WHOLE = re.compile(r"[+-]?\d{1,19}")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_DAY = r"\d{4}-\d\d-\d\d"
_CLOCK = r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?"


class Written(str):
    """A value as it stands on a command line: its use tells its type, and else how it looks."""

    __slots__ = ()


def as_written(text: str) -> Any:
    """The value that a text of the command line looks like: a number, true or false, a date or a time; else the text.

    >>> [as_written(text) for text in ("12", "1.5", "TRUE", "2024-01-31", "12 hours")]
    [12, 1.5, True, datetime.date(2024, 1, 31), '12 hours']
    """
    text = str(text)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        if _WHOLE.fullmatch(text) and SMALLEST_INTEGER <= int(text) <= LARGEST_INTEGER:
            return int(text)
        if _NUMBER.fullmatch(text) and math.isfinite(float(text)) and not _WHOLE.fullmatch(text):
            return float(text)
        if re.fullmatch(_DAY, text):
            return date.fromisoformat(text)
        if re.fullmatch(rf"{_DAY}[T ]{_CLOCK}(Z|[+-]\d\d:\d\d)?", text):
            return datetime.fromisoformat(text)
        if re.fullmatch(_CLOCK, text):
            return time.fromisoformat(text)
    except ValueError:
        pass
    return text

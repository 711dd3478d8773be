"""What a generated module of the regular-expression operator says of its query; `regex_code.py` writes the bodies."""

from __future__ import annotations

from typing import Any

INTEGER_COLUMNS = 3
"""How many columns a partial match has in `ri`."""
FLOAT_COLUMNS = 0
"""How many columns it uses in `rf`."""


def holds(variable: int, run: int, row: int, ri: Any, rf: Any, columns: Any, ki: Any, kf: Any) -> int:
    """Whether the part of the predicate that looks at the match so far holds for the event."""
    raise NotImplementedError


def add_event(target: int, row: int, ri: Any, rf: Any, columns: Any, ki: Any, kf: Any) -> int:
    """Brings the registers of a partial match up to date with the event."""
    raise NotImplementedError

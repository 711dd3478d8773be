"""What a generated module for a row pattern says of its query; the bodies come from `row_code.py`."""

from __future__ import annotations

from typing import Any

ALL_MATCHES = False
"""Every way of every start row is a match; else the most preferred one is."""
LOOKS_AT_MATCH = False
"""Whether a condition depends on more than the row and its neighbours."""
REMEMBERS = False
"""Whether states that failed are marked: no condition looks at the match, and the pattern has a loop."""
REGISTERS = 0
RUN_VARIABLES = 0
"""A bit for each variable whose condition does."""
MOST_ROWS = -1
"""MAXLENGTH; -1 for none."""
SKIP = 0
"""AFTER MATCH SKIP, as `arrays/row_automaton.py` numbers it."""
SKIP_TARGET = 0
"""A bit for each variable that may be skipped to."""
WINDOW_IN_TIME = False


def in_window(start: int, row: int, times: Any, ki: Any, kf: Any) -> bool:
    """Whether a match from the row `start` may have `row`."""
    raise NotImplementedError


def clear(ri: Any, rf: Any) -> None:
    """Makes the registers those of a match without rows."""
    raise NotImplementedError


def bind(
    variable: int,
    row: int,
    start: int,
    depth: int,
    begin: int,
    end: int,
    ri: Any,
    rf: Any,
    columns: Any,
    ki: Any,
    kf: Any,
) -> int:
    """Brings the registers up to date with the row; what it changes is kept in row `depth`."""
    raise NotImplementedError


def unbind(variable: int, depth: int, ri: Any, rf: Any) -> None:
    """Puts back what `bind` changed."""
    raise NotImplementedError


def fits_run(
    variable: int,
    row: int,
    start: int,
    number: int,
    begin: int,
    end: int,
    ri: Any,
    rf: Any,
    columns: Any,
    ki: Any,
    kf: Any,
) -> int:
    """Whether the part of the variable's condition that looks at the match holds, the row being its last."""
    raise NotImplementedError

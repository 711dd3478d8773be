"""Everything Kleene raises.

KleeneError
├── QuerySyntaxError   (SyntaxError)           the text is not a query
├── AnalysisError      (ValueError)            the query is well formed but means nothing
├── UnsupportedError   (NotImplementedError)   it means something that this path cannot do
├── SchemaError        (ValueError)            the input's columns do not fit
├── ExecutionError     (RuntimeError)          the data itself cannot be processed
│   └── LimitError                             a limit of runs, matches, memory or time was reached
└── SnapshotError      (ValueError)            a saved state is damaged or foreign
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from kleene.source import Location
from kleene.visible import visible


class KleeneError(Exception):
    """The root of all errors that Kleene raises on purpose.

    `message` is one sentence; `location` says where in the query's text the offender stands; `hint` says what exists
    and offers a way out. `str()` of the error is all of that, drawn.
    """

    def __init__(self, message: str, location: Location | None = None, hint: str | None = None) -> None:
        self.message = message
        self.location = location
        self.hint = hint
        super().__init__(message)

    @property
    def line(self) -> int | None:
        return self.location.line if self.location else None

    @property
    def column(self) -> int | None:
        return self.location.column if self.location else None

    def __str__(self) -> str:
        parts = [self.message]
        if self.location:
            parts = [f"{self.location}: {self.message}", self.location.excerpt()]
        if self.hint:
            parts.append(self.hint)
        return visible("\n".join(parts), keep="\n")

    # Spark ships errors between processes; the default would try to rebuild them from `args` alone.
    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.location, self.hint)


class QuerySyntaxError(KleeneError, SyntaxError):
    """The text is not a query."""

    # SyntaxError has its own idea of printing; ours is the one with the excerpt.
    __str__ = KleeneError.__str__


class AnalysisError(KleeneError, ValueError):
    """The query is well formed, but its parts do not fit together or do not fit the input's columns."""


class UnsupportedError(KleeneError, NotImplementedError):
    """The query means something, but not on the path that was asked for."""


class SchemaError(KleeneError, ValueError):
    """The columns of the input are not what the call needs."""


class ExecutionError(KleeneError, RuntimeError):
    """The events themselves cannot be processed: a NULL order key, an overflow, too many runs."""


class LimitError(ExecutionError):
    """A limit that guards the call was reached: of runs, matches, memory or time."""


class SnapshotError(KleeneError, ValueError):
    """A saved state cannot be restored."""


class KleeneWarning(UserWarning):
    """Something legal that is probably a slip."""


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names for a message, cut where a list would be too long to read.

    >>> listed(["b", "a"])
    'b, a'
    """
    all_names = [printable(name) for name in names]
    if not all_names:
        return "none"
    shown = ", ".join(all_names[:most])
    return shown if len(all_names) <= most else f"{shown} and {len(all_names) - most} more"


def printable(name: str, most: int = 60) -> str:
    """A name or literal as it may stand in a message: on one line and not too long."""
    text = visible(name)
    return text if len(text) <= most else text[: most - 1] + "…"


def shown(value: object) -> str:
    """Any Python value as it may stand in a message, even one whose own repr fails."""
    try:
        return printable(repr(value), 80)
    except Exception:
        return f"a {type(value).__name__}"


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """A closing sentence when one of the candidates looks like the name, else nothing.

    >>> did_you_mean("prize", ["symbol", "price"])
    " Did you mean 'price'?"
    """
    # Comparing very long names is slow, and no such name is a slip of the pen.
    by_folded = {candidate.casefold(): candidate for candidate in candidates if len(candidate) <= 100}
    if len(name) > 100 or len(by_folded) > 2000:
        return ""
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f" Did you mean '{printable(by_folded[close[0]])}'?" if close else ""

"""Who is spoken to. An argument of `match` is an option on the command line, and messages call it by the reader's name.

Tasks of Spark do not know who is spoken to: what they say must fit both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_shell: ContextVar[bool] = ContextVar("kleene_is_shell", default=False)


@contextmanager
def speaking_to_shell() -> Iterator[None]:
    """While open, messages are for a user of the command line."""
    before = _is_shell.set(True)
    try:
        yield
    finally:
        _is_shell.reset(before)


def speaks_to_shell() -> bool:
    return _is_shell.get()


def said(*, python: str, shell: str) -> str:
    """The words for the one who is spoken to.

    >>> said(python="tie_break", shell="--tie-break")
    'tie_break'
    >>> with speaking_to_shell():
    ...     said(python="tie_break", shell="--tie-break")
    '--tie-break'
    """
    return shell if _is_shell.get() else python

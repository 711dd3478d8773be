"""Progress of long work, for a person: a bar on standard error, in a terminal or a notebook.

Engines report to whoever watches; they know nothing of bars. A bar appears only when the work takes a while, and goes
when it is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any

PATIENCE, OFTEN = 0.7, 0.1
"""Seconds before a bar appears, and between two looks."""

Report = Callable[[int, int, str], None]
"""Told how much is done, of how much, and what it is."""

_watcher: ContextVar[Report | None] = ContextVar("kleene_watcher", default=None)
_is_shown = False


class show_progress:  # noqa: N801  # a function to its users, who may also write `with`
    """Shows bars for all long work from here on: matching in process, and jobs on Spark.

        kleene.show_progress()
        query.match(events, order_by="ts")

    `kleene.show_progress(False)` ends it, and so does the end of a block: `with kleene.show_progress(): …`.
    """

    def __init__(self, on: bool = True) -> None:
        global _is_shown
        self._before, _is_shown = _is_shown, bool(on)

    def __enter__(self) -> show_progress:
        return self

    def __exit__(self, *_: object) -> None:
        global _is_shown
        _is_shown = self._before

    def __repr__(self) -> str:
        return f"<progress is {'shown' if _is_shown else 'not shown'}>"


def is_shown() -> bool:
    return _is_shown


def watcher() -> Report | None:
    """Whom an engine reports to; None where nobody watches, as nearly always."""
    return _watcher.get()


@contextmanager
def watched(what: str) -> Iterator[None]:
    """While open, what engines report of this thread's work is shown, if progress is to be shown."""
    if not _is_shown or _watcher.get() is not None:
        yield
        return
    with bar(what) as report:
        token = _watcher.set(report)
        try:
            yield
        finally:
            _watcher.reset(token)


@contextmanager
def reporting(what: str, report: Report | None) -> Iterator[None]:
    """While open, what engines report of this thread's work goes to the caller's own function, or is shown."""
    if report is None:
        with watched(what):
            yield
        return
    token = _watcher.set(report)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def bar(what: str) -> Iterator[Report]:
    """A bar that appears once there has been something to report for a while."""
    shown = _Bar(what)
    try:
        yield shown.report
    finally:
        shown.close()


class _Bar:
    def __init__(self, what: str) -> None:
        self._what = what
        self._since = self._looked = monotonic()
        self._progress: Any = None
        self._task: Any = None
        self._lock = threading.Lock()

    def report(self, done: int, total: int, detail: str = "") -> None:
        now = monotonic()
        if now - self._looked < OFTEN or now - self._since < PATIENCE:
            return
        with self._lock:
            self._looked = now
            if self._progress is None:
                self._start()
            words = f"{self._what}, {detail}" if detail else self._what
            self._progress.update(self._task, completed=done, total=total or None, description=words)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(self._what, total=None)
        self._progress.start()

    def close(self) -> None:
        with self._lock:
            if self._progress is not None:
                self._progress.stop()
                self._progress = None
                self._since = float("inf")  # a late report starts nothing

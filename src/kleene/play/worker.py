"""A process of its own that answers questions, one after the other: what takes too long is ended with it."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

from kleene.play.asking import Ask, answer
from kleene.play.tables import Offered

MOST_SECONDS = 30.0
TOO_LONG = "the answer took longer than {:g} seconds, and was given up"
_MOST_PAGES = 1_000
_SPAWNED = multiprocessing.get_context("spawn")


class Worker:
    """Answers one question at a time. Of those that wait, only the newest of a page is answered."""

    def __init__(self, tables: Sequence[Offered], most_seconds: float = MOST_SECONDS) -> None:
        self._tables, self._most_seconds = list(tables), most_seconds
        self._busy, self._newest = Lock(), dict[str, int]()
        self._changing = Lock()  # the process is being started or ended
        self._process: Any = None
        self._pipe: Connection | None = None
        self._is_closed = False

    def answer(self, page: str, number: int, ask: Ask) -> dict[str, Any]:
        """The answer; "superseded" if the page has asked again since."""
        if len(self._newest) > _MOST_PAGES:
            self._newest.clear()
        self._newest[page] = max(number, self._newest.get(page, 0))
        with self._busy:
            if number < self._newest.get(page, 0):
                return {"superseded": True}
            return self._asked(ask)

    def start(self) -> None:
        """Starts the process, so that the first question need not wait for it."""
        self._started()

    def _asked(self, ask: Ask) -> dict[str, Any]:
        try:
            pipe = self._started()
            pipe.send(asdict(ask))
            if not pipe.poll(self._most_seconds):
                self._stop()
                hint = "Make the window smaller, add conditions, or look at fewer events."
                return {"error": {"message": TOO_LONG.format(self._most_seconds), "hint": hint}}
            found: dict[str, Any] = pipe.recv()
        except (EOFError, OSError):
            self._stop()
            hint = "It may have run out of memory. Ask again, with a smaller question."
            return {"error": {"message": "the process that answers has ended", "hint": hint}}
        return found

    def _started(self) -> Connection:
        with self._changing:
            if self._is_closed:
                raise EOFError
            if self._pipe is None:
                self._pipe, theirs = _SPAWNED.Pipe()
                self._process = _SPAWNED.Process(target=_answer_all, args=(theirs, self._tables), daemon=True)
                self._process.start()
                theirs.close()
            return self._pipe

    def _stop(self) -> None:
        with self._changing:
            if self._process is not None:
                self._process.kill()
                self._process.join()
            if self._pipe is not None:
                self._pipe.close()
            self._process = self._pipe = None

    def close(self) -> None:
        self._is_closed = True
        self._stop()


def _answer_all(pipe: Connection, tables: Sequence[Offered]) -> None:
    """The process: it ends when nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that serves the page ends this one
    by_name = {offered.name: offered for offered in tables}
    with contextlib.suppress(EOFError, OSError):
        while True:
            ask = Ask(**pipe.recv())
            try:
                found = answer(ask, by_name)
            except Exception as error:  # a bug: the page says so, and goes on
                found = {"error": {"message": f"this is a bug in Kleene: {type(error).__name__}: {error}", "hint": ""}}
            pipe.send(found)

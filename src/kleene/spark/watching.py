"""Bars for jobs on Spark. They run when somebody uses a DataFrame, so a session is watched rather than a call."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, suppress
from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession

from kleene.watching import Report, bar, is_shown

_LOOK_EVERY = 0.3
_watched: WeakSet[Any] = WeakSet()


def watch_jobs(session: SparkSession) -> None:
    """From here on, jobs of the session show a bar while `kleene.show_progress` is on."""
    if not is_shown() or session in _watched:
        return
    _watched.add(session)
    if hasattr(session, "registerProgressHandler") and getattr(session, "_sc", None) is None:
        handler: Any = _RemoteBar()
        session.registerProgressHandler(handler)
    else:
        threading.Thread(target=_watch, args=(session.sparkContext,), daemon=True, name="kleene-progress").start()


def _watch(context: Any) -> None:
    tracker = context.statusTracker()
    while context._jsc is not None:  # until the session ends
        time.sleep(_LOOK_EVERY)
        with suppress(Exception):  # Spark may be ending
            if is_shown() and tracker.getActiveJobsIds():
                _show_jobs(tracker)


def _show_jobs(tracker: Any) -> None:
    stages: dict[int, tuple[int, int]] = {}
    with bar("Spark") as report:
        while tracker.getActiveJobsIds():
            active = set(tracker.getActiveStageIds())
            for stage in active:
                info = tracker.getStageInfo(stage)
                if info is not None:
                    stages[stage] = (info.numCompletedTasks, info.numTasks)
            done = sum(total if stage not in active else part for stage, (part, total) in stages.items())
            total = sum(total for _, total in stages.values())
            report(done, total, f"{done:,} of {total:,} tasks")
            time.sleep(_LOOK_EVERY)


class _RemoteBar:
    """By Spark Connect, the client is told of the progress of each of its operations."""

    def __init__(self) -> None:
        self._open: dict[str | None, tuple[ExitStack, Report]] = {}

    def __call__(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        if done:
            stack, _ = self._open.pop(operation_id, (ExitStack(), None))
            stack.close()
        elif is_shown():
            if operation_id not in self._open:
                stack = ExitStack()
                self._open[operation_id] = (stack, stack.enter_context(bar("Spark")))
            finished = sum(stage.num_completed_tasks for stage in stages or ())
            total = sum(stage.num_tasks for stage in stages or ())
            self._open[operation_id][1](finished, total, f"{finished:,} of {total:,} tasks")

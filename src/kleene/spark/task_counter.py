"""How far Spark is with the jobs of a call, for a progress bar."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from pyspark.sql import SparkSession


class TaskCounter:
    """While open, tells `report` every quarter of a second how many tasks are done, of how many that are known."""

    def __init__(self, session: SparkSession, report: Callable[[int, int], None]) -> None:
        self._tracker = session.sparkContext.statusTracker()
        self._report = report
        self._stages: dict[int, tuple[int, int]] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> TaskCounter:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(0.25):
            for stage in self._tracker.getActiveStageIds():
                info = self._tracker.getStageInfo(stage)
                if info is not None:
                    self._stages[stage] = (info.numCompletedTasks, info.numTasks)
            active = set(self._tracker.getActiveStageIds())
            done = sum(total if stage not in active else part for stage, (part, total) in self._stages.items())
            self._report(done, sum(total for _, total in self._stages.values()))

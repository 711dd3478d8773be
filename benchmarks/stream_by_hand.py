"""The queries of the benchmark on streams as people write them today: a state for each key, and a loop over its rows.

Each is a processor for `groupBy(key).transformWithStateInPandas`. Events wait until the watermark has passed them, then
go through a few lines of Python in the order of time. All that is held of a key is one value of Spark's state: a key
costs one read and one write of it in a micro-batch, and a timer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

HOUR = 3_600_000_000
WINDOW = 12 * HOUR
TIME = "datetime64[us]"
Row = tuple[int, ...]
# Times are counted in microseconds: pandas' own would make the loops several times slower.


class ByHand(StatefulProcessor):
    """What both queries have in common; `_found` is the query."""

    columns: dict[str, str]

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState(
            "state", "times ARRAY<LONG>, types ARRAY<STRING>, opened ARRAY<LONG>, timer LONG"
        )

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        events = [event for part in rows for event in zip(_microseconds(part), part["type"].tolist(), strict=True)]
        yield from self._advance(int(key[0]), events, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        yield from self._advance(int(key[0]), [], timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        pass

    def _advance(self, key: int, events: list[tuple[int, str]], watermark: int) -> Iterator[Any]:
        times, types, opened, timer = self._state.get() or ([], [], [], None)
        events += zip(times, types, strict=True)
        until = watermark * 1000
        found, opened = self._found(sorted(event for event in events if event[0] <= until), list(opened))
        waiting = [event for event in events if event[0] > until]
        wanted = -(-min(waiting)[0] // 1000) if waiting else None
        if wanted != timer:
            if timer is not None:
                self._handle.deleteTimer(timer)
            if wanted is not None:
                self._handle.registerTimer(wanted)
        if waiting or opened:
            self._state.update(([time for time, _ in waiting], [type_ for _, type_ in waiting], opened, wanted))
        else:
            self._state.clear()
        if found:
            matches = pd.DataFrame(found, columns=list(self.columns)).astype("int64").astype(self.columns)
            matches.insert(0, "id", key)
            yield matches

    def _found(self, events: list[tuple[int, str]], opened: list[int]) -> tuple[list[Row], list[int]]:
        """The matches that the events complete, and the times of the events that may still begin one."""
        raise NotImplementedError


class Shoplifting(ByHand):
    """Every shelf reading with every exit that follows within 12 hours, without a register in between."""

    columns = {"shelf": TIME, "exit": TIME}  # noqa: RUF012

    def _found(self, events: list[tuple[int, str]], opened: list[int]) -> tuple[list[Row], list[int]]:
        found: list[Row] = []
        for now, type_ in events:
            if type_ == "Shelf":
                opened.append(now)
            elif type_ == "Register":
                opened.clear()
            elif type_ == "Exit":
                found.extend((shelf, now) for shelf in opened if now - shelf < WINDOW)
        latest = events[-1][0] if events else 0
        return found, [shelf for shelf in opened if latest - shelf < WINDOW]


class Intrusion(ByHand):
    """From each failed login on, all that follow, up to each login that succeeds within 12 hours."""

    columns = {"first": TIME, "count": "int64", "last": TIME}  # noqa: RUF012

    def _found(self, events: list[tuple[int, str]], opened: list[int]) -> tuple[list[Row], list[int]]:
        found: list[Row] = []
        for now, type_ in events:
            if type_ == "Failure":
                opened.append(now)
            elif type_ == "Success" and opened:
                count = len(opened)
                found.extend((first, count - row, now) for row, first in enumerate(opened) if now - first < WINDOW)
        latest = events[-1][0] if events else 0
        return found, [first for first in opened if latest - first < WINDOW]


def _microseconds(events: pd.DataFrame) -> list[int]:
    times: list[int] = events["ts"].astype(TIME).astype("int64").tolist()
    return times

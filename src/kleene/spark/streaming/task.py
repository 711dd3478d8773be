"""What is to be done with the events of a bucket; it is shipped to every task."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from kleene.engine.tasks import Array, Time, order_times
from kleene.schema import FLOAT, INTEGER
from kleene.spark.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Clock:
    """How events of a stream get their order, and when they are matched."""

    in_arrival_order: bool = False
    has_watermark: bool = True
    lag: int = 0  # milliseconds that what it reads may come behind the watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTask(Task):
    clock: Clock
    fingerprint: str

    def times(self, events: pa.Table) -> Array:
        """The times of events as engines have them: microseconds, or the order key itself where it is a number."""
        return order_times(events, self.plan.query)

    def time(self, milliseconds: int) -> Time:
        """A watermark as a time: all events up to it are there."""
        return milliseconds * self._times_in_a_millisecond

    def milliseconds(self, time: Time) -> int:
        """The first watermark that has passed the time."""
        return -int(-time // self._times_in_a_millisecond)

    @property
    def _times_in_a_millisecond(self) -> int:
        return 1 if self.plan.query.time_type in (FLOAT, INTEGER) else 1000

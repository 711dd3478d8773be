"""Layout: a stream. Keys are put together in buckets, and one stateful operator (transformWithState) matches them.

The operator is called once for a bucket and micro-batch, with all its events, which tasks before it have packed into
few rows. What a bucket holds lies in Spark's state store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.events import window_time
from kleene.engine.streaming import unbounded_state
from kleene.errors import UnsupportedError
from kleene.spark.marks import GROUP
from kleene.spark.names import plain_names, quoted_column
from kleene.spark.reads import events_read, group_of
from kleene.spark.schema import spark_schema
from kleene.spark.streaming.packing import BUCKET, PACKED, PAYLOAD, PackingTask, Unpacker
from kleene.spark.streaming.processor import GIVEN_OUT, OBSERVED, MatchingProcessor, observed
from kleene.spark.streaming.task import Clock, StreamTask

if TYPE_CHECKING:
    from kleene.spark.job import Job


@dataclass(frozen=True, slots=True)
class Stream:
    clock: Clock
    buckets: int
    fingerprint: str  # of all that a checkpoint depends on

    def found(self, job: Job) -> DataFrame:
        by_bucket = self.frame(job).groupBy(BUCKET)
        if not hasattr(by_bucket, "transformWithStateInPandas"):
            raise UnsupportedError(
                f"PySpark {pyspark.__version__} has no stateful operator for streams by Spark Connect",
                hint="Use a newer PySpark, such as 4.3, or a classic session.",
            )
        mode = "EventTime" if self.clock.has_watermark else "None"
        processor = MatchingProcessor(self.task(job))
        found = by_bucket.transformWithStateInPandas(processor, GIVEN_OUT, "append", mode)
        found = observed(found, f"{OBSERVED}{self.fingerprint[:8]}", self.buckets).select(PAYLOAD)
        return found.mapInArrow(Unpacker(job.output.result), spark_schema(job.output.result))

    def frame(self, job: Job) -> DataFrame:
        """The events as the operator gets them, packed by bucket."""
        reads = job.reads
        events = events_read(job.frame, reads, self._before_all_times(job))
        events = events.select(*map(quoted_column, reads.columns.names), group_of(reads))
        packing = PackingTask(plan=job.plan, reads=reads, output=job.output, buckets=self.buckets)
        return events.toDF(*plain_names(reads.columns.names), GROUP).mapInArrow(packing, PACKED)

    def task(self, job: Job) -> StreamTask:
        return StreamTask(
            plan=job.plan, reads=job.reads, output=job.output, clock=self.clock, fingerprint=self.fingerprint
        )

    def lines(self, job: Job) -> list[str]:
        name, key = job.reads.time_column, ", ".join(job.reads.key)
        where = f"by a hash of {key}, to {self.buckets} buckets" if key else "to one bucket: there is no key"
        unbounded = unbounded_state(job.plan)
        return [
            f"shuffle    {where}",
            f"order      by {name}, {'as they arrive' if self.clock.in_arrival_order else 'up to the watermark'}",
            f"state      {'bounded for each key' if unbounded is None else f'not bounded: {unbounded.reason}'}",
        ]

    def _before_all_times(self, job: Job) -> Column | None:
        """A condition on the event time that holds for no event; None without a watermark.

        Spark moves a filter that does not read the event time in front of the watermark, which then would not move on
        by the events that are left out.
        """
        if not self.clock.has_watermark:
            return None
        name = job.reads.time_column
        return quoted_column(name) < F.lit("0001-01-01").cast(job.frame.schema[name].dataType)


@dataclass(frozen=True, slots=True)
class Upstream:
    """What a query must know of the one whose matches it reads."""

    has_watermark: bool
    delay: int
    """How many milliseconds a match may come behind the watermark: those that wait for the end of their window."""


def upstream_of(job: Job | None) -> Upstream | None:
    if job is None:
        return None
    layout, query = job.layout, job.plan.query
    assert isinstance(layout, Stream)
    assert isinstance(query, AnalyzedQuery)
    delay = layout.clock.lag
    if query.window is not None and any(negation.gap == len(query.components) for negation in query.negations):
        delay += layout.task(job).milliseconds(window_time(query.window, query.time_type))
    return Upstream(layout.clock.has_watermark, delay)

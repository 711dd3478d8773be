"""Layout: a stream. Keys are put together in buckets, and one stateful operator (transformWithState) matches them.

The operator is called once for a bucket and micro-batch, with all its events, which tasks before it have packed into
few rows. What a bucket holds lies in Spark's state store.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.events import window_time
from kleene.engine.progress import PreparedQuery, refuse_window, unbounded_state
from kleene.engine.progress_kinds import progress_of
from kleene.engine.totals.groups import spreads
from kleene.errors import SchemaError, UnsupportedError, printable
from kleene.options import StreamOptions
from kleene.plan.plan import Plan
from kleene.schema import TimestampType
from kleene.spark.clock import WATERMARK
from kleene.spark.declared import asking_spark
from kleene.spark.marks import GROUP
from kleene.spark.names import plain_names, quoted_column
from kleene.spark.output import Output
from kleene.spark.reads import Reads, events_read, group_of
from kleene.spark.schema import spark_schema
from kleene.spark.streaming.packing import BUCKET, PACKED, PAYLOAD, PackingTask, unpacked_matches
from kleene.spark.streaming.processor import GIVEN_OUT, OBSERVED, MatchingProcessor, observed
from kleene.spark.streaming.state import Clock, StreamTask
from kleene.spark.tasks.order import has_order_numbers
from kleene.wording import said

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
                f"PySpark {pyspark.__version__} has no stateful operator for streams with Spark Connect",
                hint="Use a newer PySpark, such as 4.3, or a classic session.",
            )
        mode = "EventTime" if self.clock.has_watermark else "None"
        processor = MatchingProcessor(self.task(job))
        found = by_bucket.transformWithStateInPandas(processor, GIVEN_OUT, "append", mode)
        found = observed(found, f"{OBSERVED}{self.fingerprint[:8]}", self.buckets).select(PAYLOAD)
        result = job.output.result
        return found.mapInArrow(partial(unpacked_matches, result), spark_schema(result))

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
        name, key = job.reads.shown_time, ", ".join(job.reads.key)
        where = f"by a hash of {key}, to {self.buckets} buckets" if key else "to one bucket: there is no key"
        if job.plan.mode == "totals" and spreads(job.plan):
            where = "to one bucket: windows of time have matches of all keys"
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
    """What a query must know of what it reads, be it the input or the matches of other queries."""

    has_watermark: bool
    delay: int = 0
    """How many milliseconds a match may come behind the watermark: those that wait for the end of their window."""


def upstream_of_events(events: DataFrame | Mapping[str, DataFrame], time: str, given: StreamOptions) -> Upstream:
    """What is to be known of an input; an error if it is made of matches of the stream that it would wait for."""
    if given.order != "arrival":
        check_not_chained(_frames(events))
    return Upstream(_has_watermark(events, time))


def upstream_of(job: Job) -> Upstream:
    layout, query = job.layout, job.plan.query
    assert isinstance(layout, Stream)
    assert isinstance(query, AnalyzedQuery)
    delay = layout.clock.lag
    if query.window is not None and any(negation.gap == len(query.components) for negation in query.negations):
        delay += layout.task(job).milliseconds(window_time(query.window, query.time_type))
    return Upstream(layout.clock.has_watermark, delay)


def joined(streams: Sequence[Upstream]) -> Upstream:
    """What is to be known of streams that are read together: nothing is complete before the last of them is.

    Spark knows one watermark for all that lies between its sources and an operator, the smallest; what a query before
    gives out for it comes in the same micro-batch.
    """
    return Upstream(all(one.has_watermark for one in streams), max(one.delay for one in streams))


# --- whether a stream can be matched as it is asked for, with what to do where it cannot -----------------------------


PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def _frames(events: DataFrame | Mapping[Any, DataFrame]) -> list[DataFrame]:
    return list(events.values()) if isinstance(events, Mapping) else [events]


def is_stream(events: DataFrame | Mapping[Any, DataFrame]) -> bool:
    """Whether the events, or those of a dict, are streams."""
    with asking_spark():
        kinds = {frame.isStreaming for frame in _frames(events)}
    if len(kinds) > 1:
        raise SchemaError(
            "some inputs are streams and some are not", hint="Read all of them with spark.readStream, or none."
        )
    return True in kinds


def choose_stream(
    frame: DataFrame, plan: Plan, reads: Reads, output: Output, given: StreamOptions, upstream: Upstream
) -> Stream:
    """The layout of a job on a stream."""
    refuse_window(plan)
    _check_session(frame)
    in_arrival_order, first = given.order == "arrival", reads.columns.field(reads.time_column)
    # Spark notes a watermark at columns of its own only, and yet it holds for all that comes after.
    has_watermark = upstream.has_watermark
    if not in_arrival_order:
        _check_time(plan, first.with_name(reads.shown_time), has_watermark)
    elif upstream.delay:
        raise UnsupportedError(
            "in the order of arrival, a query cannot read the matches of one that ends with a negation: they come "
            "when their window has closed, out of order",
            hint=f"Give the stream a watermark, and leave {said(python='order', shell='--arrival')} out.",
        )
    _check_order(reads)
    unbounded = unbounded_state(plan)
    if unbounded is not None and given.unbounded_state == "refuse":
        allow = said(python="StreamOptions(unbounded_state='allow')", shell="--unbounded-state")
        raise UnsupportedError(
            f"the query has no bound on a stream: {unbounded.reason}",
            hint=f"{unbounded.hint}; or accept that state grows: {allow}.",
        )
    clock = Clock(in_arrival_order, has_watermark, upstream.delay)
    # What all keys know of a group is added up in one place.
    buckets = given.buckets if reads.key and not (plan.mode == "totals" and spreads(plan)) else 1
    query = PreparedQuery(plan, reads.columns)
    progress_of(plan)(query)  # which says what it cannot do
    facts = [query.fingerprint, clock.in_arrival_order, clock.lag, buckets, reads.useful]
    facts += [output.id_columns, output.carried]
    return Stream(clock, buckets, hashlib.sha256(repr(facts).encode()).hexdigest())


def _check_order(reads: Reads) -> None:
    first = reads.order[0]
    if not has_order_numbers(reads.type_of(first.name)) or first.descending:
        raise UnsupportedError(
            f"a stream is matched in ascending order of a time or a number, but '{printable(first.name)}' is "
            f"{'descending' if first.descending else reads.type_of(first.name)}",
            hint="Order by a timestamp.",
        )


def _check_session(frame: DataFrame) -> None:
    provider = frame.sparkSession.conf.get(PROVIDER, None) or ""
    if "RocksDB" not in provider:
        raise UnsupportedError(
            "a stream of matches needs Spark's RocksDB state store, but the session has another one",
            hint=f'Add: spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
        )


def _has_watermark(events: DataFrame | Mapping[str, DataFrame], name: str) -> bool:
    fields = (field for frame in _frames(events) for field in frame.schema.fields)
    return all(WATERMARK in field.metadata for field in fields if field.name == name)


def _check_time(plan: Plan, first: pa.Field, has_watermark: bool) -> None:
    name = printable(first.name)
    arrival = said(python="StreamOptions(order='arrival')", shell="--arrival")
    if not isinstance(plan.query.time_type, TimestampType):
        raise UnsupportedError(
            f"a stream is put in order by its event time, which is a timestamp, but '{name}' is {first.type}",
            hint=f"Order by a timestamp with a watermark; or trust that events arrive in order of '{name}': {arrival}.",
        )
    if not has_watermark and first.type.tz is None:
        raise UnsupportedError(
            f"the stream has no watermark on '{name}', and Spark allows none on a timestamp without a time zone",
            hint=said(
                python=f'Make it a point in time first: .withColumn("{name}", col("{name}").cast("timestamp"))'
                f'.withWatermark("{name}", "10 minutes").',
                shell="Give its times a zone with --timezone.",
            ),
        )
    if not has_watermark:
        watermark = said(
            python=f'Add .withWatermark("{name}", "10 minutes") to the stream, right before match',
            shell='Add --watermark "10 minutes"',
        )
        raise UnsupportedError(
            f"the stream has no watermark on '{name}', so nothing says how long to wait for late events",
            hint=f"{watermark}; or trust that events arrive in order: {arrival}.",
        )


_OPERATOR = re.compile(r"^\W*CollectMetrics kleene_[0-9a-f]{8},", re.MULTILINE)
"""What the plan of a stream of matches shows, whatever has become of its columns since."""


def check_not_chained(frames: Iterable[DataFrame]) -> None:
    """An error if the events of a stream are themselves matches of a query on that stream.

    Such a chain would run, and give nothing for ever: of several watermarks Spark takes the smallest, and what lies
    between the two operators waits for it. A program knows its own chains and takes care of the delay.
    """
    for frame in frames:
        (plan,) = frame.sparkSession.sql("EXPLAIN EXTENDED SELECT * FROM {events}", events=frame).collect()
        if _OPERATOR.search(plan[0]):
            raise UnsupportedError(
                "the events are matches that another query finds on the same stream: Spark would wait for the smaller "
                "of two watermarks, and never return anything",
                hint="Write both queries as one program, with INTO and FROM: kleene.program(text).match(stream, …); or "
                "write the matches to a table or a folder, and read them from there as a new stream.",
            )

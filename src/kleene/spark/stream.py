"""A streaming DataFrame of events to a streaming DataFrame of matches, by one stateful operator (transformWithState).

Keys are put together in buckets: the operator is called once for a bucket and micro-batch, with all its events, which
tasks before it have packed into few rows. What a bucket holds lies in Spark's state store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pandas as pd
import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern, warn
from kleene.engine.events import window_time
from kleene.engine.progress import ProgressQuery
from kleene.engine.streaming import unbounded_state
from kleene.engine.timeouts import TIMED_OUT
from kleene.errors import SchemaError, UnsupportedError, printable
from kleene.ir.options import WindowUnit
from kleene.ir.text import expression_text
from kleene.options import StreamOptions
from kleene.plan.plan import Plan
from kleene.schema import TimestampType
from kleene.spark.batch import SparkJob
from kleene.spark.bucket import Bucket, BucketState, StreamMatcher
from kleene.spark.chains import check_not_chained
from kleene.spark.clock import WATERMARK
from kleene.spark.gathering import GROUP, TaskOrder, has_order_numbers
from kleene.spark.handover import chosen_events
from kleene.spark.names import plain_names, quoted_column
from kleene.spark.packing import BUCKET, PACKED, PAYLOAD, PLACE, Packer, Unpacker, packed_table, unpacked_table
from kleene.spark.schema import spark_schema

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
COUNTS = ("events", "late", "matches")
STANDS = ("waiting", "runs", "kept", "bytes")
"""What a bucket tells of a micro-batch, and of how it stands after it."""
TURN = "turn"
"""Which call of its task a bucket speaks of: one that is called for events and then for a timer speaks twice."""
TOLD = "told"
GIVEN_OUT = f"{PAYLOAD} BINARY, {BUCKET} INT, {TOLD} ARRAY<LONG>"
"""Few columns: to hand rows back to Spark takes time for each of them. The last row of a bucket tells its numbers."""
OBSERVED = "kleene_"
"""How the names begin under which Spark's progress tells what buckets told."""


class MatchingProcessor(StatefulProcessor):
    """Spark's view of a bucket: packed events and timers in, packed matches and numbers out."""

    def __init__(self, matcher: StreamMatcher) -> None:
        self._matcher = matcher
        self._turn = 0  # Spark makes a new copy for each task

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = BucketState(
            handle.getValueState("head", "bytes BINARY"),
            handle.getValueState("engine", "bytes BINARY"),
            handle.getMapState("since", "chunk LONG", "bytes BINARY"),
            handle.getMapState("waiting", "chunk LONG", "bytes BINARY"),
            handle.getValueState("recent", "bytes BINARY"),
            handle if self._matcher.has_watermark else None,
        )

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        given = [row for part in rows for row in zip(part[PLACE].tolist(), part[PAYLOAD].tolist(), strict=True)]
        given.sort(key=itemgetter(0))
        events = pa.concat_tables(unpacked_table(payload, self._matcher.columns) for _, payload in given)
        yield from self._advance(int(key[0]), events, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        no_events = self._matcher.columns.empty_table()
        yield from self._advance(int(key[0]), no_events, timerValues.getCurrentWatermarkInMs(), is_woken=True)

    def close(self) -> None:
        pass

    def _advance(self, number: int, events: pa.Table, watermark: int, is_woken: bool = False) -> Iterator[Any]:
        bucket, matches = Bucket(self._matcher, self._state), 0
        payload = None
        for table in bucket.advance(events, max(watermark, 0), is_woken):
            if payload is not None:
                yield _row(payload, number, None)
            payload = packed_table(table)
            matches += table.num_rows
        stands = [getattr(bucket.head, name) for name in STANDS]
        self._turn += 1
        yield _row(payload, number, [events.num_rows, bucket.late, matches, *stands, self._turn])


def _row(payload: bytes | None, bucket: int, told: list[int] | None) -> Any:
    return pd.DataFrame([[payload, bucket, told]], columns=[PAYLOAD, BUCKET, TOLD], dtype=object)


@dataclass(frozen=True, slots=True)
class StreamJob:
    """A query on a streaming DataFrame."""

    job: SparkJob
    matcher: StreamMatcher
    buckets: int

    @property
    def plan(self) -> Plan:
        return self.matcher.plan

    def explanation(self) -> str:
        """How events come to the operator, for EXPLAIN, and what bounds its state."""
        handover, matcher = self.job.handover, self.matcher
        lines = [f"columns    {', '.join(matcher.columns.names)}"]
        if handover.useful is not None:
            lines.append(f"filter     {expression_text(handover.useful)}")
        if handover.key:
            lines.append(f"shuffle    by a hash of {', '.join(handover.key)}, to {self.buckets} buckets")
        else:
            lines.append("shuffle    to one bucket: there is no key")
        name = matcher.time_column
        order = f"by {name}, as they arrive" if matcher.in_arrival_order else f"by {name}, up to the watermark"
        unbounded = unbounded_state(self.plan)
        state = "bounded for each key" if unbounded is None else f"not bounded: {unbounded.reason}"
        return "\n".join([*lines, f"order      {order}", f"state      {state}"])

    @property
    def delay(self) -> int:
        """How many milliseconds a match may come behind the watermark: those that wait for the end of their window."""
        query = self.job.plan.query
        assert isinstance(query, AnalyzedQuery)
        if query.window is None or not any(negation.gap == len(query.components) for negation in query.negations):
            return self.matcher.lag
        return self.matcher.lag + self.matcher.milliseconds(window_time(query.window, query.time_type))

    def packed(self) -> DataFrame:
        """The events as the operator gets them, in the groups of its state."""
        frame, group = chosen_events(self.job.frame, self.job.handover, self._before_all_times())
        names = self.matcher.columns.names
        frame = frame.select(*map(quoted_column, names), group).toDF(*plain_names(names), GROUP)
        return frame.mapInArrow(Packer(self.matcher.columns, self.job.handover.strict, self.buckets), PACKED)

    def _before_all_times(self) -> Column | None:
        """A condition on the event time that holds for no event; None without a watermark.

        Spark moves a filter that does not read the event time in front of the watermark, which then would not move on
        by the events that are left out.
        """
        if not self.matcher.has_watermark:
            return None
        name = self.matcher.time_column
        return quoted_column(name) < F.lit("0001-01-01").cast(self.job.frame.schema[name].dataType)

    def matches(self) -> DataFrame:
        """The matches, as they complete."""
        if self.job.plan.pipeline is not None:
            warn(self.job.plan.pipeline.warnings)
        mode = "EventTime" if self.matcher.has_watermark else "None"
        processor = MatchingProcessor(self.matcher)
        by_bucket = self.packed().groupBy(BUCKET)
        if not hasattr(by_bucket, "transformWithStateInPandas"):
            raise UnsupportedError(
                f"PySpark {pyspark.__version__} has no stateful operator for streams by Spark Connect",
                hint="Use a newer PySpark, such as 4.3, or a classic session.",
            )
        found = by_bucket.transformWithStateInPandas(processor, GIVEN_OUT, "append", mode)
        found = observed(found, f"{OBSERVED}{self.matcher.fingerprint[:8]}", self.buckets).select(PAYLOAD)
        rows = found.mapInArrow(Unpacker(self.matcher.result), spark_schema(self.matcher.result))
        return rows if self.job.prepared is None else self.job.prepared.finished(rows)


def observed(found: DataFrame, name: str, buckets: int) -> DataFrame:
    """The rows of the operator, watched: what they tell of each micro-batch comes with Spark's own progress."""
    told = {name: F.col(TOLD)[place] for place, name in enumerate((*COUNTS, *STANDS, TURN))}
    stands = F.struct(BUCKET, *(told[name].alias(name) for name in (*STANDS, TURN)))
    return found.observe(
        name,
        *(F.sum(told[count]).alias(count) for count in COUNTS),
        F.collect_list(F.when(F.col(TOLD).isNotNull(), stands)).alias("buckets"),
        F.max(F.lit(buckets)).alias("of_buckets"),
    )


def _frames(events: DataFrame | Mapping[str, DataFrame]) -> list[DataFrame]:
    return list(events.values()) if isinstance(events, Mapping) else [events]


def is_stream(events: DataFrame | Mapping[str, DataFrame]) -> bool:
    """Whether the events, or those of a dict, are streams."""
    kinds = {frame.isStreaming for frame in _frames(events)}
    if len(kinds) > 1:
        raise SchemaError(
            "some inputs are streams and some are not", hint="Read all of them with spark.readStream, or none."
        )
    return True in kinds


def stream_job(
    events: DataFrame | Mapping[str, DataFrame], job: SparkJob, given: StreamOptions, before: StreamJob | None = None
) -> StreamJob:
    """The job on a stream; an error where a stream could not be matched so, with what to do about it.

    `before` is the job whose matches are the events, if they are not the input's.
    """
    plan = job.plan
    if given.timeouts:
        _check_timeouts(plan)
    _check_session(job.frame)
    columns, order = job.matcher.columns, job.handover.order
    first = columns.field(order[0].name)
    in_arrival_order = given.order == "arrival"
    # Spark notes a watermark at columns of its own only, and yet it holds for all that comes after.
    has_watermark = before.matcher.has_watermark if before else _has_watermark(events, first.name)
    if not in_arrival_order:
        if before is None:
            check_not_chained(_frames(events))
        _check_time(plan, first, has_watermark)
    elif before is not None and before.delay:
        raise UnsupportedError(
            "with order='arrival' a query cannot read the matches of one that ends with a negation: they come when "
            "their window has closed, out of order",
            hint="Give the stream a watermark, and leave order out.",
        )
    if not has_order_numbers(first.type) or order[0].descending:
        raise UnsupportedError(
            f"a stream is matched in ascending order of a time or a number, and '{printable(first.name)}' is "
            f"{'descending' if order[0].descending else first.type}",
            hint="Order by a timestamp.",
        )
    unbounded = unbounded_state(plan)
    if unbounded is not None and given.unbounded_state == "refuse":
        raise UnsupportedError(
            f"the query has no bound on a stream: {unbounded.reason}",
            hint=f"{unbounded.hint}; or accept that state grows: StreamOptions(unbounded_state='allow').",
        )
    query = ProgressQuery(plan, columns)
    buckets = given.buckets if job.handover.key else 1
    lag = before.delay if before else 0
    said = [query.fingerprint, given.order, buckets, job.matcher.extra, job.handover.useful, given.timeouts, lag]
    result = job.matcher.result
    if given.timeouts:
        result = result.append(pa.field(TIMED_OUT, pa.bool_()))
    matcher = StreamMatcher(
        plan,
        columns,
        TaskOrder(order),
        result,
        in_arrival_order,
        has_watermark,
        hashlib.sha256(repr(said).encode()).hexdigest(),
        job.matcher.extra,
        job.matcher.with_times,
        given.timeouts,
        lag,
    )
    return StreamJob(job, matcher, buckets)


def _check_timeouts(plan: Plan) -> None:
    query = plan.query
    if isinstance(query, AnalyzedRowPattern):
        raise UnsupportedError("timeouts are for SASE queries: a row pattern has no runs", hint="Leave timeouts out.")
    if query.window is None or query.window.unit is WindowUnit.EVENTS:
        raise UnsupportedError("a run times out when its time is over, and the query has no WITHIN in time")
    if query.measures is not None and any(measure.name == TIMED_OUT for measure in query.measures):
        raise UnsupportedError(f"'{TIMED_OUT}' is the column that tells timeouts", hint="Choose another name after AS.")


def _check_session(frame: DataFrame) -> None:
    provider = frame.sparkSession.conf.get(PROVIDER, None) or ""
    if "RocksDB" not in provider:
        raise UnsupportedError(
            "a stream of matches needs Spark's RocksDB state store, and the session has another",
            hint=f'Add: spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
        )


def _has_watermark(events: DataFrame | Mapping[str, DataFrame], name: str) -> bool:
    fields = (field for frame in _frames(events) for field in frame.schema.fields)
    return all(WATERMARK in field.metadata for field in fields if field.name == name)


def _check_time(plan: Plan, first: pa.Field, has_watermark: bool) -> None:
    name = printable(first.name)
    if not isinstance(plan.query.time_type, TimestampType):
        raise UnsupportedError(
            f"a stream is put in order by its event time, a timestamp, and '{name}' is {first.type}",
            hint=f"Order by a timestamp with a watermark; or trust that events arrive in order of '{name}': "
            "StreamOptions(order='arrival').",
        )
    if not has_watermark and first.type.tz is None:
        raise UnsupportedError(
            f"the stream has no watermark on '{name}', a timestamp without a time zone, on which Spark allows none",
            hint=f'Make it a point in time first: .withColumn("{name}", col("{name}").cast("timestamp"))'
            f'.withWatermark("{name}", "10 minutes").',
        )
    if not has_watermark:
        raise UnsupportedError(
            f"the stream has no watermark on '{name}': nobody knows how long to wait for events that are late",
            hint=f'Add .withWatermark("{name}", "10 minutes") to the stream, right before match; or trust that events '
            "arrive in order: StreamOptions(order='arrival').",
        )

"""Whether a stream can be matched as it is asked for, with what to do where it cannot; and its layout."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.progress import PreparedQuery
from kleene.engine.streaming import unbounded_state
from kleene.engine.timeouts import TIMED_OUT
from kleene.errors import SchemaError, UnsupportedError, printable
from kleene.ir.options import WindowUnit
from kleene.options import StreamOptions
from kleene.plan.plan import Plan
from kleene.schema import TimestampType
from kleene.spark.chains import check_not_chained
from kleene.spark.clock import WATERMARK
from kleene.spark.declared import asking_spark
from kleene.spark.layouts.stream import Stream, Upstream
from kleene.spark.output import Output
from kleene.spark.reads import Reads
from kleene.spark.streaming.task import Clock
from kleene.spark.tasks.order import has_order_numbers

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def _frames(events: DataFrame | Mapping[str, DataFrame]) -> list[DataFrame]:
    return list(events.values()) if isinstance(events, Mapping) else [events]


def is_stream(events: DataFrame | Mapping[str, DataFrame]) -> bool:
    """Whether the events, or those of a dict, are streams."""
    with asking_spark():
        kinds = {frame.isStreaming for frame in _frames(events)}
    if len(kinds) > 1:
        raise SchemaError(
            "some inputs are streams and some are not", hint="Read all of them with spark.readStream, or none."
        )
    return True in kinds


def choose_stream(
    events: DataFrame | Mapping[str, DataFrame],
    frame: DataFrame,
    plan: Plan,
    reads: Reads,
    output: Output,
    given: StreamOptions,
    before: Upstream | None,
) -> Stream:
    """The layout of a job on a stream; `before` is the query whose matches are the events, if there is one."""
    if given.timeouts:
        _check_timeouts(plan)
    _check_session(frame)
    in_arrival_order, first = given.order == "arrival", reads.columns.field(reads.time_column)
    # Spark notes a watermark at columns of its own only, and yet it holds for all that comes after.
    has_watermark = before.has_watermark if before else _has_watermark(events, first.name)
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
    _check_order(reads)
    unbounded = unbounded_state(plan)
    if unbounded is not None and given.unbounded_state == "refuse":
        raise UnsupportedError(
            f"the query has no bound on a stream: {unbounded.reason}",
            hint=f"{unbounded.hint}; or accept that state grows: StreamOptions(unbounded_state='allow').",
        )
    clock = Clock(in_arrival_order, has_watermark, before.delay if before else 0)
    buckets = given.buckets if reads.key else 1
    query = PreparedQuery(plan, reads.columns).fingerprint
    said = [query, clock.in_arrival_order, clock.lag, buckets, reads.useful]
    said += [output.id_columns, output.carried, output.timeouts]
    return Stream(clock, buckets, hashlib.sha256(repr(said).encode()).hexdigest())


def _check_order(reads: Reads) -> None:
    first = reads.order[0]
    if not has_order_numbers(reads.type_of(first.name)) or first.descending:
        raise UnsupportedError(
            f"a stream is matched in ascending order of a time or a number, and '{printable(first.name)}' is "
            f"{'descending' if first.descending else reads.type_of(first.name)}",
            hint="Order by a timestamp.",
        )


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

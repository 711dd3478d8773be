"""A query on Spark DataFrames to a job: on tables, or, where they are streaming, on a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame

from kleene.call import Call
from kleene.options import SparkOptions, StreamOptions
from kleene.spark.batch import SparkJob, job_of
from kleene.spark.clock import with_clock
from kleene.spark.stream import StreamJob, is_stream, stream_job

__all__ = ["composed_job", "make_job"]

Events = DataFrame | Mapping[str, DataFrame]


def composed_job(call: Call, events: Events, before: SparkJob | StreamJob | None) -> SparkJob | StreamJob:
    """The job for a query of a program; `before` is the one whose matches are the events, if there is one.

    A result that another query may read carries its times, and its order in a column that is not an attribute.
    """
    is_read = call.definition.into_stream is not None
    call = replace(call, match_order=is_read)
    if not is_stream(events):
        return job_of(call, events, with_times=is_read)
    assert before is None or isinstance(before, StreamJob)
    return _on_stream(call, events, before, with_times=is_read)


def make_job(call: Call, events: Events, *, allow_jvm_calls: bool = False) -> SparkJob | StreamJob:
    """The job, of which nothing runs yet."""
    if not is_stream(events):
        return job_of(call, events, allow_jvm_calls=allow_jvm_calls)
    return _on_stream(call, events, allow_jvm_calls=allow_jvm_calls)


def _on_stream(
    call: Call,
    events: Events,
    before: StreamJob | None = None,
    *,
    with_times: bool = False,
    allow_jvm_calls: bool = False,
) -> StreamJob:
    given, pushdown = call.stream or StreamOptions(), call.spark is None or call.spark.pushdown
    if before is None:
        events = with_clock(events, call.definition, call.order, given.watermark, given.max_ahead)
    call = replace(call, spark=SparkOptions("shuffled", pushdown=pushdown))
    job = job_of(call, events, with_times=with_times, allow_jvm_calls=allow_jvm_calls)
    return stream_job(events, job, given, before)

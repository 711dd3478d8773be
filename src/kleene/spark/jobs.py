"""A query on Spark DataFrames to a job: on tables, or, where they are streaming, on a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from kleene.engine.inputs import OrderKey
from kleene.errors import UnsupportedError
from kleene.ir.query import QueryDefinition
from kleene.spark.batch import SparkJob, SparkOptions, job_of
from kleene.spark.clock import with_clock
from kleene.spark.stream import StreamJob, StreamOptions, is_stream, stream_job

__all__ = ["SparkOptions", "StreamOptions", "composed_job", "make_job"]


def composed_job(
    definition: QueryDefinition,
    events: DataFrame | Mapping[str, DataFrame],
    order: OrderKey,
    type_column: str | None,
    options: Mapping[str, Any],
    on_stream: StreamOptions,
    before: SparkJob | StreamJob | None,
) -> SparkJob | StreamJob:
    """The job for a query of a program; `before` is the one whose matches are the events, if there is one.

    A result that another query may read carries its times, and its order in a column that is not an attribute.
    """
    is_read = definition.into_stream is not None
    on_streams = is_stream(events)
    given = SparkOptions(ranges="off") if on_streams else SparkOptions()
    if not on_streams:
        _check_no_stream_options(on_stream)
    elif before is None:
        events = with_clock(events, definition, order, on_stream.watermark, on_stream.max_ahead)
    job = job_of(definition, events, order, type_column, options, given, match_order=is_read, with_times=is_read)
    if not on_streams:
        return job
    assert before is None or isinstance(before, StreamJob)
    return stream_job(events, job, on_stream, before)


def make_job(
    definition: QueryDefinition,
    events: DataFrame | Mapping[str, DataFrame],
    order: OrderKey,
    type_column: str | None,
    options: Mapping[str, Any],
    given: SparkOptions,
    on_stream: StreamOptions,
    *,
    match_order: bool = False,
) -> SparkJob | StreamJob:
    """The job, of which nothing runs yet."""
    if not is_stream(events):
        _check_no_stream_options(on_stream)
        return job_of(definition, events, order, type_column, options, given, match_order=match_order)
    if match_order:
        raise UnsupportedError(
            "match_order is for tables: a stream gives out matches as they complete", hint="Leave match_order out."
        )
    if given.presorted:
        raise UnsupportedError("presorted is for tables", hint="On a stream, say order='arrival'.")
    events = with_clock(events, definition, order, on_stream.watermark, on_stream.max_ahead)
    job = job_of(definition, events, order, type_column, options, replace(given, ranges="off", range_size=None))
    return stream_job(events, job, on_stream)


def _check_no_stream_options(given: StreamOptions) -> None:
    usual = StreamOptions()
    names = ("order", "timeouts", "watermark", "max_ahead")
    name = next((name for name in names if getattr(given, name) != getattr(usual, name)), None)
    if name is not None:
        raise UnsupportedError(f"{name} is for streams, and the input is a table", hint=f"Leave {name} out.")

"""A query on Spark DataFrames to a job, and a job to a DataFrame of matches. Nothing runs until that is used.

A job is the same for tables and for streams; what differs is its layout: how events come to the tasks. DataFrame API
only, so that Spark Connect works.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from kleene.analysis.analyze import analyze
from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn, is_row_pattern, warn
from kleene.engine.columns_read import columns_read
from kleene.engine.inputs import OrderKey
from kleene.engine.run import result_schema
from kleene.engine.ties import tie_rule
from kleene.engine.useful_events import useful_event
from kleene.errors import UnsupportedError
from kleene.ir.query import QueryDefinition
from kleene.plan.plan import ByKey, Plan, make_plan
from kleene.spark.clock import with_clock
from kleene.spark.foreign_code import check_definition
from kleene.spark.layouts.choosing import Layout, choose_layout
from kleene.spark.layouts.stream import upstream_of
from kleene.spark.layouts.stream_choice import choose_stream, is_stream
from kleene.spark.notes import with_notes_of
from kleene.spark.options import SparkOptions, StreamOptions
from kleene.spark.output import MATCH_ORDER, Output
from kleene.spark.reads import Reads
from kleene.spark.row_source import prepare_rows, with_keys
from kleene.spark.schema import has_map
from kleene.spark.source import read_frames

__all__ = ["MATCH_ORDER", "Job", "SparkOptions", "StreamOptions", "composed_job", "make_job"]

SHOWN_MATCH_ORDER = "match_order"
Events = DataFrame | Mapping[str, DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A query on a DataFrame: what is read, how it comes to the tasks, and what they give out."""

    frame: DataFrame
    plan: Plan
    reads: Reads
    layout: Layout
    output: Output
    finish: Callable[[DataFrame], DataFrame] | None = None  # what Spark computes of the matches

    def explanation(self) -> str:
        """How events come to the tasks, for EXPLAIN, and which settings of the session bear on it."""
        return "\n".join([*self.reads.lines(), *self.layout.lines(self)])

    def matches(self) -> DataFrame:
        """The matches, lazily; on a stream, as they complete."""
        if self.plan.pipeline is not None:
            warn(self.plan.pipeline.warnings)
        found = self.layout.found(self)
        return found if self.finish is None else with_notes_of([found], self.finish(found))


def make_job(
    definition: QueryDefinition,
    events: Events,
    order: OrderKey,
    type_column: str | None,
    options: Mapping[str, Any],
    given: SparkOptions,
    on_stream: StreamOptions,
    *,
    match_order: bool = False,
) -> Job:
    """The job, of which nothing runs yet."""
    if is_stream(events):
        if match_order:
            raise UnsupportedError(
                "match_order is for tables: a stream gives out matches as they complete", hint="Leave match_order out."
            )
        if given.presorted:
            raise UnsupportedError("presorted is for tables", hint="On a stream, say order='arrival'.")
    column = SHOWN_MATCH_ORDER if match_order else None
    return _job(definition, events, order, type_column, options, given, on_stream, column)


def composed_job(
    definition: QueryDefinition,
    events: Events,
    order: OrderKey,
    type_column: str | None,
    options: Mapping[str, Any],
    on_stream: StreamOptions,
    before: Job | None,
) -> Job:
    """The job for a query of a program; `before` is the one whose matches are the events, if there is one.

    A result that another query may read carries its times, and its order in a column that is not an attribute.
    """
    column = None if definition.into_stream is None else MATCH_ORDER
    return _job(definition, events, order, type_column, options, SparkOptions(), on_stream, column, before)


def _job(
    definition: QueryDefinition,
    events: Events,
    order: OrderKey,
    type_column: str | None,
    options: Mapping[str, Any],
    given: SparkOptions,
    on_stream: StreamOptions,
    match_order: str | None,
    before: Job | None = None,
) -> Job:
    """The job; `match_order` is the column that carries the order of matches, if one does."""
    is_streaming = is_stream(events)
    if not is_streaming:
        _check_no_stream_options(on_stream)
    elif before is None:
        events = with_clock(events, definition, order, on_stream.watermark, on_stream.max_ahead)

    def choose(frame: DataFrame, plan: Plan, reads: Reads, output: Output) -> Layout:
        if is_streaming:
            return choose_stream(events, frame, plan, reads, output, on_stream, upstream_of(before))
        return choose_layout(frame, plan, reads, given)

    if is_row_pattern(definition):
        return _job_on_rows(definition, events, options, given, choose)
    timeouts = is_streaming and on_stream.timeouts
    return _job_on_events(definition, events, order, type_column, options, given, choose, match_order, timeouts)


Choose = Callable[[DataFrame, Plan, Reads, Output], Layout]


def _job_on_events(
    definition: QueryDefinition,
    events: Events,
    order: OrderKey,
    type_column: str | None,
    options: Mapping[str, Any],
    given: SparkOptions,
    choose: Choose,
    match_order: str | None,
    timeouts: bool,
) -> Job:
    """The job for a SASE query."""
    source = read_frames(events, order, type_column)
    plan = make_plan(analyze(definition, source.schema, order.order_by), **options)
    query, split = plan.query, plan.split
    assert not isinstance(query, AnalyzedRowPattern)
    names = columns_read(query, source.columns.names, order.columns)
    columns = pa.schema([source.columns.field(name) for name in names])
    # Spark's input has no order of its own: the columns that the query reads decide between equal order keys.
    by = tuple(dict.fromkeys([*order.columns, *columns.names]))
    reads = Reads(
        columns=columns,
        key=split.columns if isinstance(split, ByKey) else (),
        order=tuple(SortColumn(name, False, None) for name in by),
        order_key=len(order.columns),
        strict=order.order_by,
        needs_key=True,
        useful=useful_event(query) if given.pushdown else None,
    )
    with_times = match_order == MATCH_ORDER
    ties = tie_rule(plan, columns.names, bool(order.tie_break))
    output = Output(result=result_schema(plan, columns, with_times), with_times=with_times, ties=ties)
    if given.match_id and plan.mode == "verbose":
        output = output.with_ids(columns.names)
    if match_order is not None:
        carried = [name for name in by if not has_map(columns.field(name).type)]
        output = output.with_order(match_order, columns, carried)
    if timeouts:
        output = output.with_timeouts()
    layout = choose(source.frame, plan, reads, output)
    return Job(frame=source.frame, plan=plan, reads=reads, layout=layout, output=output)


def _job_on_rows(
    definition: QueryDefinition, events: Events, options: Mapping[str, Any], given: SparkOptions, choose: Choose
) -> Job:
    """The job for a row pattern, or for the regular-expression operator."""
    if not given.allow_jvm_calls:
        check_definition(definition)
    prepared, columns, plan = prepare_rows(definition, events, options)
    query = plan.query
    assert isinstance(query, AnalyzedRowPattern)
    frame, columns = with_keys(prepared.frame, columns, query)
    ordered = {column.name for column in query.order_by}
    reads = Reads(
        columns=columns,
        key=query.partition_by,
        order=(*query.order_by, *(SortColumn(name, False, False) for name in columns.names if name not in ordered)),
        order_key=len(query.order_by),
        strict=tuple(column.name for column in query.order_by if column.nulls_first is None),
    )
    output = Output(result=result_schema(plan, columns), ties=tie_rule(plan, columns.names, False))
    layout = choose(frame, plan, reads, output)
    return Job(frame=frame, plan=plan, reads=reads, layout=layout, output=output, finish=prepared.finished)


def _check_no_stream_options(given: StreamOptions) -> None:
    usual = StreamOptions()
    names = ("order", "timeouts", "watermark", "max_ahead")
    name = next((name for name in names if getattr(given, name) != getattr(usual, name)), None)
    if name is not None:
        raise UnsupportedError(f"{name} is for streams, and the input is a table", hint=f"Leave {name} out.")

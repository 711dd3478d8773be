"""A query on Spark DataFrames to a job, and a job to a DataFrame of matches. Nothing runs until that is used.

A job is the same for tables and for streams; what differs is its layout: how events come to the tasks. DataFrame API
only, so that Spark Connect works.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from kleene.analysis.analyze import analyze
from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn, is_row_pattern, warn
from kleene.analysis.steps import AnalyzedSteps
from kleene.call import Call
from kleene.engine.inputs import OrderKey
from kleene.engine.match_order import RowOrder
from kleene.engine.needs import columns_read, useful_event
from kleene.engine.run import result_schema
from kleene.engine.sorting import is_sortable
from kleene.engine.ties import tie_rule
from kleene.engine.together import Together
from kleene.errors import AnalysisError, UnsupportedError, listed
from kleene.ir import expr as ir
from kleene.ir.options import Timeouts
from kleene.ir.paths import spoken
from kleene.ir.query import QueryDefinition
from kleene.ir.text import expression_text
from kleene.options import SparkOptions, StreamOptions
from kleene.plan.plan import ByKey, Plan
from kleene.scanning.scan import Scan
from kleene.schema import TimestampType
from kleene.spark.clock import with_clock
from kleene.spark.closing import closed_only
from kleene.spark.foreign_code import check_definition
from kleene.spark.layouts.choosing import Layout, choose_layout, choose_scan_layout
from kleene.spark.layouts.stream import choose_stream, is_stream, joined, upstream_of, upstream_of_events
from kleene.spark.names import distinctly_named
from kleene.spark.nested import with_nested
from kleene.spark.notes import with_notes_of
from kleene.spark.output import MATCH_ORDER, Output
from kleene.spark.reads import Reads
from kleene.spark.scans import frame_of, scan_of_frame
from kleene.spark.schema import has_map
from kleene.spark.source import SparkInput, prepare_rows, read_frames, session_zone, with_keys
from kleene.spark.together import read_together
from kleene.spark.watching import watch_jobs
from kleene.spark.workers import check_workers

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
        check_workers(self.frame.sparkSession)
        watch_jobs(self.frame.sparkSession)
        found = self.layout.found(self)
        known = found
        if self.plan.timeouts is Timeouts.ALL:
            known = closed_only(found, self.frame, self.plan, self.reads)
        finished = known if self.finish is None else self.finish(known)
        shown = self.output.shown_names
        named = finished.toDF(*(shown.get(name, name) for name in finished.columns)) if shown else finished
        return found if named is found else with_notes_of([found], named)


def make_job(
    call: Call, events: Events | Together | Scan, *, is_read: bool = False, allow_jvm_calls: bool = False
) -> Job:
    """The job, of which nothing runs yet.

    In a program, a query may read several streams together, of which those that queries make are their jobs. A result
    that `is_read` by another query carries its times, and its order in a column that is not an attribute.
    """
    if isinstance(events, Together):
        return _job_on_streams(call, events, is_read)
    given, order = call.spark or SparkOptions(), call.order
    scanned = None
    if isinstance(events, Scan):
        scanned, events = events, frame_of(events)
    elif given.layout == "files":
        scanned = _scanned(events)
    is_streaming, on_stream = is_stream(events), call.stream or StreamOptions()
    warn(zone_notes(call.definition, events))
    events, nested = with_nested(events, call.definition, order)
    if is_streaming and not (is_row_pattern(call.definition) and not call.definition.order_by):
        events = with_clock(events, call.definition, order, on_stream.watermark, on_stream.max_ahead)

    def choose(frame: DataFrame, plan: Plan, reads: Reads, output: Output) -> Layout:
        if is_streaming:
            upstream = upstream_of_events(events, reads.time_column, on_stream)
            return choose_stream(frame, plan, reads, output, on_stream, upstream)
        if scanned is not None:
            return choose_scan_layout(scanned, frame, plan, reads, given)
        return choose_layout(frame, plan, reads, given)

    if is_row_pattern(call.definition):
        if is_streaming and not call.definition.order_by:
            raise UnsupportedError(
                "on a stream, rows come in no order of their own, but the query has no ORDER BY",
                hint="Add ORDER BY and the column of the event time.",
            )
        if not allow_jvm_calls:
            check_definition(call.definition)
        return _job_on_rows(call, events, nested, choose, is_streaming)
    source = read_frames(events, order, call.type_column, call.definition, nested, call.schema)
    return _job_on_events(call, source, is_read, choose)


def _scanned(events: Events) -> Scan:
    if isinstance(events, Mapping):
        raise UnsupportedError(
            "layout='files' is for one DataFrame, but several inputs were given", hint="Leave the layout out."
        )
    return scan_of_frame(events)


def _job_on_streams(call: Call, events: Together, is_read: bool) -> Job:
    """The job for a query that reads the matches of others, or several inputs."""
    given, on_stream = call.spark or SparkOptions(), call.stream or StreamOptions()
    jobs: dict[str, Job] = {stream.name: stream.events for stream in events.streams if stream.is_composite}
    matches: dict[str, DataFrame] = {name: job.matches() for name, job in jobs.items()}
    frames: dict[Any, DataFrame] = {**events.inputs, **matches}
    is_streaming = is_stream(frames)
    warn(zone_notes(call.definition, frames))
    upstream = [upstream_of(job) for job in jobs.values()] if is_streaming else []

    def clocked(primitive: Events) -> Events:
        if not is_streaming or not call.order.order_by:  # what is amiss then is told when columns are looked at
            return primitive
        timed = with_clock(primitive, call.definition, call.order, on_stream.watermark, on_stream.max_ahead)
        upstream.append(upstream_of_events(timed, call.order.order_by[0], on_stream))
        return timed

    def choose(frame: DataFrame, plan: Plan, reads: Reads, output: Output) -> Layout:
        if is_streaming:
            return choose_stream(frame, plan, reads, output, on_stream, joined(upstream))
        return choose_layout(frame, plan, reads, given)

    source = read_together(events, matches, call, clocked)
    return _job_on_events(replace(call, order=source.order), source, is_read, choose)


def _job_on_events(call: Call, source: SparkInput, is_read: bool, choose: Choose) -> Job:
    plan = call.plan(analyze(call.definition, source.schema, source.order.order_by))
    plan = _planned(plan, source.frame.isStreaming)
    reads = reads_of_events(plan, source.columns, source.order, (call.spark or SparkOptions()).pushdown)
    reads = replace(reads, time_name=source.time_name)
    output = output_of_events(call, plan, reads, is_read)
    layout = choose(source.frame, plan, reads, output)
    return Job(frame=source.frame, plan=plan, reads=reads, layout=layout, output=output)


def zone_notes(definition: QueryDefinition, events: DataFrame | Mapping[Any, DataFrame]) -> Iterator[str]:
    """What to tell where the query writes times out, which are in UTC, and the session reads such times otherwise."""
    frame = next(iter(events.values()), None) if isinstance(events, Mapping) else events
    zone = "UTC" if frame is None else session_zone(frame)
    if zone not in ("UTC", "Etc/UTC", "Z", "GMT", "+00:00"):
        for expression, source in spoken(definition):
            for node in ir.walk(expression):
                written = source.text[node.span.start : node.span.end]
                is_time = isinstance(node, ir.Literal) and isinstance(node.of_type, TimestampType)
                if is_time and not re.search(r"(Z|[+-]\d\d(:?\d\d)?)['\"]$", written):
                    yield (
                        f"{expression_text(node)} is a time in UTC, but the session's zone is {zone}; to mean another "
                        "zone, write it behind the time, as in TIMESTAMP '2024-01-31 10:00:00-05:00'"
                    )
                    return


def _planned(plan: Plan, is_streaming: bool) -> Plan:
    """The plan for tasks, which on tables do not know when the last of all events is."""
    # At the end of the input, every run of steps that a window bounds is out of time.
    is_open = plan.timeouts is Timeouts.NONE or is_streaming or isinstance(plan.query, AnalyzedSteps)
    return plan if is_open else replace(plan, timeouts=Timeouts.ALL)


Choose = Callable[[DataFrame, Plan, Reads, Output], Layout]


def reads_of_events(plan: Plan, columns: pa.Schema, order: OrderKey, pushdown: bool) -> Reads:
    query, split = plan.query, plan.split
    assert not isinstance(query, AnalyzedRowPattern)
    columns = pa.schema([columns.field(name) for name in columns_read(query, columns.names, order.columns)])
    # Spark's input has no order of its own: the columns that the query reads decide between equal order keys.
    by = dict.fromkeys([*order.columns, *columns.names])
    return Reads(
        columns=columns,
        key=split.columns if isinstance(split, ByKey) else (),
        order=tuple(SortColumn(name, False, None) for name in by),
        order_key=len(order.columns),
        strict=order.order_by,
        needs_key=True,
        useful=useful_event(query) if pushdown else None,
    )


def output_of_events(call: Call, plan: Plan, reads: Reads, is_read: bool = False) -> Output:
    output = Output(
        result=result_schema(plan, reads.columns, is_read),
        with_times=is_read,
        ties=tie_rule(plan, reads.columns.names, bool(call.order.tie_break)),
    )
    if call.match_id:
        output = output.with_ids(reads.columns.names)
    if call.match_order or is_read:
        carried = [item.name for item in reads.order if not has_map(reads.type_of(item.name))]
        output = output.with_order(MATCH_ORDER if is_read else SHOWN_MATCH_ORDER, reads.columns, carried)
    return output


def reads_of_rows(query: AnalyzedRowPattern, columns: pa.Schema) -> Reads:
    if not query.order_by:
        order = order_of_all(columns, query.hidden)
        checked = takewhile(lambda item: is_sortable(columns.field(item.name).type), order)
        return Reads(
            columns=columns,
            key=query.partition_by,
            order=order,
            order_key=len(list(checked)),
            strict=(),
            is_by_all=True,
        )
    ordered = {column.name for column in query.order_by}
    return Reads(
        columns=columns,
        key=query.partition_by,
        order=(*query.order_by, *(SortColumn(name, False, False) for name in columns.names if name not in ordered)),
        order_key=len(query.order_by),
        strict=tuple(column.name for column in query.order_by if column.nulls_first is None),
    )


def order_of_all(columns: pa.Schema, hidden: Container[str]) -> tuple[SortColumn, ...]:
    """The order of rows where the query gives none: by all columns that have an order, NULLs last."""
    there = [column for column in columns if column.name not in hidden]
    names = [column.name for column in there if not (has_map(column.type) or pa.types.is_null(column.type))]
    if not names:
        raise AnalysisError(
            "the query has no ORDER BY, and no column of the input has an order",
            hint=f"Add ORDER BY and an expression, such as map_keys(m). Columns: {listed(one.name for one in there)}.",
        )
    return tuple(SortColumn(name, False, False) for name in names)


def _job_on_rows(call: Call, events: Events, nested: frozenset[str], choose: Choose, is_streaming: bool) -> Job:
    """The job for a row pattern, or for the regular-expression operator."""
    prepared, columns, plan = prepare_rows(call, events, nested)
    plan, query = _planned(plan, is_streaming), plan.query
    assert isinstance(query, AnalyzedRowPattern)
    frame, columns = with_keys(prepared.frame, columns, query)
    reads = reads_of_rows(query, columns)
    result, shown_names = distinctly_named(result_schema(replace(plan, timeouts=Timeouts.NONE), columns))
    output = Output(result=result, ties=tie_rule(plan, columns.names, False), shown_names=shown_names)
    if call.match_order:
        output = output.with_row_order(row_order(reads), columns)
    output = output.with_marks(plan)
    layout = choose(frame, plan, reads, output)
    return Job(frame=frame, plan=plan, reads=reads, layout=layout, output=output, finish=prepared.finished)


def row_order(reads: Reads) -> RowOrder:
    return RowOrder(SHOWN_MATCH_ORDER, tuple(item for item in reads.order if not has_map(reads.type_of(item.name))))

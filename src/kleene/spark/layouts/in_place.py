"""Layout: pieces of the input are matched where they lie. What lies at their edges travels, by key, and meets there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn
from kleene.engine.events import decoded
from kleene.engine.pieces import (
    BETWEEN,
    Bounds,
    bounds_of,
    check_bounds,
    clean_cut,
    is_contiguous,
    not_in_place,
    parts_of,
    shares_of,
    unpermuted,
    where_it_lay,
)
from kleene.engine.ranges import RangeEvents, Reach, is_choosing
from kleene.engine.sorting import order_numbers, sorted_table
from kleene.engine.spilling import Sorter
from kleene.engine.tasks import Array, Grouped, grouped_by, order_times, plain_errors
from kleene.spark.candidates import CandidateFinder, Chooser, candidate_schema, choice_order, chosen_matches
from kleene.spark.layouts.shuffled import destination
from kleene.spark.marks import GROUP, MARK, are_own, marks, told_by
from kleene.spark.names import plain_names
from kleene.spark.reads import Sort, events_read, group_of
from kleene.spark.schema import spark_schema
from kleene.spark.settings import explained
from kleene.spark.tasks.groups import GroupPart, groups_of, slices_of
from kleene.spark.tasks.order import (
    SORTED_AT_ONCE,
    TaskOrder,
    compacted,
    places,
    ranks_of,
    sorted_tables,
)
from kleene.spark.tasks.task import Task, table_of

if TYPE_CHECKING:
    from kleene.spark.job import Job


@dataclass(frozen=True, slots=True)
class InPlace:
    sort: Sort
    reach: Reach

    def found(self, job: Job) -> DataFrame:
        edges = self.edge_task(job)
        found = self.frame(job).mapInArrow(edges, spark_schema(edges.leaving))
        return found if edges.chooses else chosen_matches(found, job.plan, job.output.result)

    def task(self, job: Job) -> PieceTask:
        return PieceTask(plan=job.plan, reads=job.reads, output=job.output, reach=self.reach)

    def edge_task(self, job: Job) -> EdgeTask:
        # Without a key all candidates meet in one task anyway, so that one chooses.
        chooses = is_choosing(job.plan) and not job.reads.key
        return EdgeTask(plan=job.plan, reads=job.reads, output=job.output, reach=self.reach, chooses=chooses)

    def travelled(self, job: Job) -> DataFrame:
        """What is found in the pieces of the input where they lie, and what must travel from there."""
        task = self.task(job)
        lying = events_read(job.frame, job.reads).toDF(*plain_names(job.reads.columns.names))
        return lying.mapInArrow(task, spark_schema(task.travelling))

    def frame(self, job: Job) -> DataFrame:
        """What travelled: bounds to one place, rows of output to any, events by group; or all to one place."""
        reads, travelled = job.reads, self.travelled(job)
        events = travelled.columns[len(self.task(job).leaving) :]
        at = dict(zip([*reads.columns.names, MARK, RANK, BOUNDS], events, strict=True))

        def column(name: str) -> Column:
            return F.col(at[name])

        together = travelled.withColumn(GROUP, group_of(reads, column=column))
        if self.edge_task(job).chooses:
            return together.repartition(1)
        anywhere = F.when(column(MARK).isNull(), F.spark_partition_id().cast("long"))
        return together.repartition(F.when(column(BOUNDS).isNotNull(), 0).otherwise(F.coalesce(anywhere, F.col(GROUP))))

    def lines(self, job: Job) -> list[str]:
        shuffle = f"of what lies at the edges of pieces, {destination(job.reads)}"
        ranges = f"the pieces of the input, where they lie; each reads on for {self.reach}"
        has_key = bool(job.reads.key)
        return explained(job.frame, spreads=has_key, shuffle=shuffle, sort=self.sort.text, ranges=ranges)


# --- what runs inside Spark tasks: pieces, then what lies at their edges ---------------------------------------------


RANK, BOUNDS = "__kleene_rank", "__kleene_bounds"
"""Of an event that travels: which it is among those of its key and time in the piece. Of a piece: its bounds."""
SENT_AT_ONCE = 1 << 16
PIECE_BITS = 16
"""A Spark partition has fewer pieces than these bits can tell."""
PIECE_ROWS = 1 << 20
LARGE_PIECE = 1 << 18
"""A piece of so many events that are in no order is an error: too much would have to be matched together."""
MOST_AT_EDGES = 1 << 22
"""More events of one key than this are not matched together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlaceTask(Task):
    """What both passes know."""

    reach: Reach

    @property
    def candidates(self) -> pa.Schema:
        return candidate_schema(self.plan, self.output.result)

    @property
    def travelling(self) -> pa.Schema:
        """What goes from one pass to the other: rows of output, events, and bounds, the columns of the others NULL.

        Columns go by their places: names of results and of events may be the same.
        """
        further = [(MARK, pa.int64()), (RANK, pa.int64()), (BOUNDS, pa.string())]
        fields = [*self.candidates, *self.reads.columns, *(pa.field(*field) for field in further)]
        return pa.schema([field.with_name(f"column_{number}") for number, field in enumerate(fields)])

    def grouped(self, events: pa.Table) -> Grouped:
        """The events of each key together, unless the engine needs them in the order of time."""
        return grouped_by(events, () if self.mixed_by else self.reads.key)

    def places(self, events: pa.Table, ranks: Array) -> Array:
        return places(order_numbers(events.column(self.reads.time_column)), ranks)


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceTask(InPlaceTask):
    """The first pass, a function from batches to batches: what is found where it lies, and what must travel."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        return self.of_partition(batches, context.partitionId())

    @property
    def leaving(self) -> pa.Schema:
        return self.candidates

    def of_partition(self, batches: Iterator[pa.RecordBatch], partition: int) -> Iterator[pa.RecordBatch]:
        finder = CandidateFinder(self, self.reach)
        unordered: list[pa.Table] = []
        ordered = (self._ordered(batch, unordered) for batch in batches)
        with plain_errors():
            for number, piece in enumerate(self._pieces(ordered), partition << PIECE_BITS):
                yield from self._of_piece(finder, number, piece)
        for missing in unordered:
            none = np.zeros(missing.num_rows, np.int64)
            yield from self._sent(missing, marks(none | BETWEEN, none == 0), none)

    def _ordered(self, batch: pa.RecordBatch, unordered: list[pa.Table]) -> pa.Table:
        """The events that have a place in the order; the others go to the list."""
        events = table_of(batch, self.reads.columns)
        is_missing = _is_missing(events.select(list(self.reads.strict)))
        if not pc.any(is_missing).as_py():
            return events
        unordered.append(events.filter(is_missing))
        return events.filter(pc.invert(is_missing))

    def _pieces(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The events as they lie, piece by piece: what is left of one when there are enough goes on with the next."""
        held: list[pa.Table] = []
        rows = 0
        for table in slices_of(tables, PIECE_ROWS // 2):
            held.append(table)
            rows += table.num_rows
            if rows >= PIECE_ROWS:
                *pieces, rest = self._parted(pa.concat_tables(held), goes_on=True)
                held, rows = [rest], rest.num_rows
                yield from pieces
        if rows:
            yield from self._parted(pa.concat_tables(held), goes_on=False)

    def _parted(self, events: pa.Table, goes_on: bool) -> list[pa.Table]:
        times = order_times(events, self.plan.query)
        *parts, (begin, end) = parts_of(times)
        if goes_on and end - begin > PIECE_ROWS // 2:
            cut = begin + clean_cut(times[begin:end])
            parts, begin = [*parts, (begin, cut)], cut
        return [events.slice(begin, end - begin) for begin, end in [*parts, (begin, end)]]

    def _of_piece(self, finder: CandidateFinder, number: int, events: pa.Table) -> Iterator[pa.RecordBatch]:
        query = self.plan.query
        bounds = bounds_of(order_times(events, query))
        if bounds.stretch is None and bounds.late and events.num_rows > LARGE_PIECE:
            raise not_in_place("the events of a file of the input are too far out of order")
        yield from self._given_out(len(self.travelling) - 1, pa.array([bounds.text]))
        events = self.order.sorted_by_time(compacted(events))
        grouped = self.grouped(events)
        # Row patterns read a few columns, and are as fast if only these are put in order.
        if not isinstance(query, AnalyzedRowPattern) and not grouped.is_identity:
            events, grouped = events.take(pa.array(grouped.order)), replace(grouped, given=None)
        times = grouped.permuted(order_times(events, query))
        ranks = ranks_of(times, grouped.begins)
        own, travels = np.zeros(len(times), np.bool_), np.ones(len(times), np.bool_)
        rows = where_it_lay(number, np.arange(len(times)))
        lay = rows | BETWEEN
        if bounds.stretch is not None:
            shares = shares_of(times, grouped, bounds.stretch, self.reach)
            own, travels = shares.own, shares.sent
            lay = np.where(bounds.stretch.has(times), rows, lay)
        own, travels, lay, ranks = (unpermuted(grouped, values) for values in (own, travels, lay, ranks))
        if own.any():
            for found in finder.found(RangeEvents(events, own, self.places(events, ranks), grouped)):
                yield from self._given_out(0, *found.columns)
        # What starts matches here does not start them where it travels to.
        at = np.flatnonzero(travels)
        yield from self._sent(events.take(pa.array(at)), marks(lay, ~own)[at], ranks[at])

    def _sent(self, events: pa.Table, marked: Array, ranks: Array) -> Iterator[pa.RecordBatch]:
        columns = [decoded(column) for column in events.columns]
        return self._given_out(len(self.leaving), *columns, pa.array(marked), pa.array(ranks))

    def _given_out(self, at: int, *known: pa.Array | pa.ChunkedArray) -> Iterator[pa.RecordBatch]:
        """Rows that have the columns from a place on; the others are NULL."""
        schema = self.travelling
        columns = [pa.nulls(len(known[0]), type_) for type_ in schema.types]
        columns[at : at + len(known)] = known
        return iter(pa.table(columns, names=schema.names).cast(schema).to_batches(max_chunksize=SENT_AT_ONCE))


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTask(InPlaceTask):
    """The second pass: rows of output as they are, and those that are found where the edges of pieces meet.

    Where it chooses, these are candidates, all of them; matches are given out.
    """

    chooses: bool

    @property
    def leaving(self) -> pa.Schema:
        return self.output.result if self.chooses else self.candidates

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            found = self._found(batches)
            yield from self._chosen(found) if self.chooses else (rows for table in found for rows in table.to_batches())

    def _chosen(self, candidates: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
        schema, order = self.candidates, TaskOrder(choice_order(self.plan.query))
        as_group = (table.append_column(GROUP, pa.array(np.zeros(table.num_rows, np.int64))) for table in candidates)
        in_order = (table.select(schema.names).cast(schema) for table in sorted_tables(as_group, order))
        return Chooser(self.plan.query, self.output.result)(batch for table in in_order for batch in table.to_batches())

    def _found(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        # By where they lay in the end: events that are equal in all columns must not change places.
        sorter = Sorter(TaskOrder((*self.reads.order, SortColumn(MARK, False, None))), SORTED_AT_ONCE)
        arrived = _Arrived(self)
        for events in self.only_ordered(map(arrived.events, batches)):
            yield from arrived.taken_output()
            sorter.add(events)
        check_bounds(arrived.bounds)
        yield from arrived.taken_output()
        finder = CandidateFinder(self, self.reach)
        held: list[pa.Table] = []
        for part in groups_of(sorter.tables()):
            held.append(part.table)
            if sum(table.num_rows for table in held) > MOST_AT_EDGES:
                raise not_in_place(
                    f"matches reach so far that more than {MOST_AT_EDGES:,} events lie at edges of files"
                )
            if isinstance(part, GroupPart) and not part.is_last:
                continue
            together = pa.concat_tables(held)
            held = []
            yield from finder.found(self._ranges(together))

    def _ranges(self, events: pa.Table) -> RangeEvents:
        """Events of keys as ranges: whatever was left behind in a piece parts what travelled from it."""
        if self.mixed_by:
            events = sorted_table(events, self.mixed_by)
        marked, told_ranks = events.column(MARK).to_numpy(), events.column(RANK).to_numpy()
        lay = told_by(marked)
        table = events.select(self.reads.columns.names)
        by_key = self.grouped(table)
        ranks = unpermuted(by_key, ranks_of(by_key.permuted(order_times(table, self.plan.query)), by_key.begins))
        starts = np.append(True, ~is_contiguous(by_key.permuted(lay)))
        starts[by_key.begins[:-1]] = True
        begins = np.append(np.flatnonzero(starts), len(lay))
        stand = self.places(table, np.where(lay & BETWEEN == 0, told_ranks, ranks))
        return RangeEvents(table, are_own(marked), stand, Grouped(by_key.given, begins, np.arange(len(begins) - 1)))


class _Arrived:
    """Takes what arrives apart: events, rows of output, and bounds."""

    def __init__(self, task: InPlaceTask) -> None:
        self._output, self._names = task.candidates, [*task.reads.columns.names, MARK, RANK, GROUP]
        self._schema = task.travelling.append(pa.field(GROUP, pa.int64()))
        self._rows: list[pa.Table] = []
        self.bounds: list[Bounds] = []

    def events(self, batch: pa.RecordBatch) -> pa.Table:
        table = table_of(batch, self._schema)
        *columns, bounds, group = table.columns
        self.bounds += [Bounds.read(text) for text in bounds.drop_null().to_pylist()]
        is_event = columns[-2].is_valid()
        rows = table.filter(pc.invert(pc.or_(is_event, bounds.is_valid())))
        if rows.num_rows:
            self._rows.append(pa.table(rows.columns[: len(self._output)], schema=self._output))
        return pa.table([*columns[len(self._output) :], group], names=self._names).filter(is_event)

    def taken_output(self) -> list[pa.Table]:
        rows, self._rows = self._rows, []
        return rows


def _is_missing(columns: pa.Table) -> pa.ChunkedArray:
    """Of each row, whether any of the columns is NULL or NaN."""
    missing = [pc.is_null(column, nan_is_null=pa.types.is_floating(column.type)) for column in columns.columns]
    return reduce(pc.or_, missing)

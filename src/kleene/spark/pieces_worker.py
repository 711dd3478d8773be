"""What runs inside Spark tasks for an input that is matched where it lies: pieces, then what lies at their edges."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn
from kleene.engine.compiled.batches import Grouped, group, one_group, partition_codes
from kleene.engine.compiled.columns import Array, times_array
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.events import decoded
from kleene.engine.pieces import shares_of
from kleene.engine.ranges import Candidates, RangeMatcher, Ranges, Reach
from kleene.engine.sorting import sorted_table
from kleene.errors import ExecutionError
from kleene.spark.choosing import Chooser, choice_order
from kleene.spark.gathering import GROUP, GroupPart, Sorter, TaskOrder, compacted, groups_of, order_numbers, slices_of
from kleene.spark.pieces import (
    BETWEEN,
    BOUNDS,
    FOREIGN,
    LARGE_PIECE,
    MOST_AT_EDGES,
    PIECE_ROWS,
    RANK,
    ROW_BITS,
    SENT,
    Bounds,
    bounds_of,
    check_bounds,
    clean_cut,
    is_contiguous,
    not_in_place,
    parts_of,
    ranks_of,
)
from kleene.spark.worker import Matcher

SENT_AT_ONCE = 1 << 16
PIECE_BITS = 16
"""A Spark partition has fewer pieces than these bits can tell."""


@dataclass(frozen=True, slots=True)
class InPlaceMatcher:
    """What both passes know."""

    matcher: Matcher
    key: tuple[str, ...]

    @property
    def reach(self) -> Reach:
        assert self.matcher.reach is not None
        return self.matcher.reach

    @property
    def travelling(self) -> pa.Schema:
        """What goes from one pass to the other: rows of output, events, and bounds, the columns of the others NULL."""
        further = [(SENT, pa.int64()), (RANK, pa.int64()), (BOUNDS, pa.string())]
        return pa.schema([*self.matcher.output, *self.matcher.columns, *(pa.field(*field) for field in further)])

    def ranges(self) -> RangeMatcher:
        return RangeMatcher(self.matcher.plan, self.reach)

    def times(self, events: pa.Table) -> Array:
        """As the engine counts them."""
        return times_array(events, self.matcher.order.columns[0].name, self.matcher.plan.query.time_type)

    def grouped(self, events: pa.Table) -> Grouped:
        """The events of each key together, unless the engine needs them in the order of time."""
        if not self.key or self.matcher.mixed_by:
            return one_group(events.num_rows)
        return group(*partition_codes(events, self.key, null_is_a_key=True), jit=True)

    @property
    def is_faster_by_key(self) -> bool:
        """Row patterns read a few columns, and are as fast if only these are put in order."""
        return not isinstance(self.matcher.plan.query, AnalyzedRowPattern)

    def places(self, events: pa.Table, ranks: Array) -> Array:
        """Where events stand, in the order of time: their times, and their ranks among those of equal time."""
        numbers = order_numbers(events.column(self.matcher.order.columns[0].name))
        return np.stack([numbers, ranks], axis=1)

    def found(self, ranges: RangeMatcher, part: Ranges) -> Iterator[pa.Table]:
        try:
            for candidates in ranges.batches(part, self.matcher.with_times):
                yield self.matcher.given_out(candidates, self._digests(part.table, candidates))
        except GaveUpError as error:
            raise ExecutionError(error.message, hint=error.hint) from None

    def _digests(self, events: pa.Table, found: Candidates) -> pa.Array:
        """Of each candidate its key, as bytes that are the same wherever it is found."""
        if not self.key or not self.matcher.is_choosing:
            return pa.array([b""] * len(found.starts), pa.binary())
        keys = events.select(list(self.key)).take(pa.array(found.starts))
        codes, count = partition_codes(keys, self.key, null_is_a_key=True)
        different, firsts = np.unique(codes, return_index=True)
        digests = np.empty(count, object)
        columns = [_plain(decoded(column)) for column in keys.take(pa.array(firsts)).columns]
        for code, key in zip(different.tolist(), zip(*columns, strict=True), strict=True):
            digests[code] = digest(key)
        return pa.array(digests[codes], pa.binary())


def _plain(column: pa.ChunkedArray) -> list[object]:
    """Values with a text that is the same everywhere; of times their numbers, since not all of them are Python's."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    values: list[object] = column.to_pylist()
    return values


def digest(key: Iterable[object]) -> bytes:
    plain = [value + 0.0 if isinstance(value, float) else value for value in key]  # -0.0 and 0.0 are one key
    return hashlib.blake2b(repr(plain).encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class PieceMatcher:
    """The first pass, a function from batches to batches: what is found where it lies, and what must travel."""

    common: InPlaceMatcher

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        return self.of_partition(batches, context.partitionId())

    def of_partition(self, batches: Iterator[pa.RecordBatch], partition: int) -> Iterator[pa.RecordBatch]:
        ranges = self.common.ranges()
        unordered: list[pa.Table] = []
        ordered = (self._ordered(batch, unordered) for batch in batches)
        try:
            for number, piece in enumerate(self._pieces(ordered), partition << PIECE_BITS):
                yield from self._of_piece(ranges, number, piece)
        except GaveUpError as error:
            raise ExecutionError(error.message, hint="Leave ranges out.") from None
        for missing in unordered:
            none = np.zeros(missing.num_rows, np.int64)
            yield from self._sent(missing, none | BETWEEN, none)

    def _ordered(self, batch: pa.RecordBatch, unordered: list[pa.Table]) -> pa.Table:
        """The events that have a place in the order; the others go to the list."""
        matcher = self.common.matcher
        events = pa.Table.from_batches([batch]).rename_columns(matcher.columns.names).cast(matcher.columns)
        is_missing = _is_missing(events.select(list(matcher.strict)))
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
        times = self.common.times(events)
        *parts, (begin, end) = parts_of(times)
        if goes_on and end - begin > PIECE_ROWS // 2:
            cut = begin + clean_cut(times[begin:end])
            parts, begin = [*parts, (begin, cut)], cut
        return [events.slice(begin, end - begin) for begin, end in [*parts, (begin, end)]]

    def _of_piece(self, ranges: RangeMatcher, number: int, events: pa.Table) -> Iterator[pa.RecordBatch]:
        common = self.common
        bounds = bounds_of(common.times(events))
        if bounds.stretch is None and bounds.late and events.num_rows > LARGE_PIECE:
            raise not_in_place("the events of a file of the input are too far out of order")
        yield from self._given_out(further={BOUNDS: pa.array([bounds.text])})
        events = common.matcher.order.sorted_by_time(compacted(events))
        grouped = common.grouped(events)
        if common.is_faster_by_key and not grouped.is_identity:
            events, grouped = events.take(pa.array(grouped.order)), replace(grouped, given=None)
        times = grouped.permuted(common.times(events))
        ranks = ranks_of(times, grouped.begins)
        own, travels = np.zeros(len(times), np.bool_), np.ones(len(times), np.bool_)
        rows = (np.arange(len(times)) | (number << ROW_BITS)) << 1
        sent = rows | BETWEEN
        if bounds.stretch is not None:
            shares = shares_of(times, grouped, bounds.stretch, common.reach)
            own, travels = shares.own, shares.sent
            sent = np.where(bounds.stretch.has(times), rows, sent)
        own, travels, sent, ranks = (_unpermuted(grouped, values) for values in (own, travels, sent, ranks))
        if own.any():
            for found in common.found(ranges, Ranges(events, own, common.places(events, ranks), grouped)):
                yield from self._given_out(found.columns)
        at = np.flatnonzero(travels)
        yield from self._sent(events.take(pa.array(at)), np.where(own, sent | FOREIGN, sent)[at], ranks[at])

    def _sent(self, events: pa.Table, sent: Array, ranks: Array) -> Iterator[pa.RecordBatch]:
        columns = [decoded(column) for column in events.columns]
        return self._given_out(events=columns, further={SENT: pa.array(sent), RANK: pa.array(ranks)})

    def _given_out(
        self,
        output: Sequence[pa.ChunkedArray] = (),
        events: Sequence[pa.ChunkedArray] = (),
        further: Mapping[str, pa.Array] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Rows that have some of the columns; the others are NULL."""
        schema = self.common.travelling
        known = dict(enumerate(output)) | dict(enumerate(events, len(self.common.matcher.output)))
        known |= {schema.names.index(name): column for name, column in (further or {}).items()}
        rows = len(next(iter(known.values())))
        columns = [known.get(number, pa.nulls(rows, type_)) for number, type_ in enumerate(schema.types)]
        wanted = positional(schema)
        return iter(pa.table(columns, names=wanted.names).cast(wanted).to_batches(max_chunksize=SENT_AT_ONCE))


@dataclass(frozen=True, slots=True)
class EdgeMatcher:
    """The second pass: rows of output as they are, and those that are found where the edges of pieces meet.

    Where it chooses, these are candidates, all of them; matches are given out.
    """

    common: InPlaceMatcher
    chooses: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = self._found(batches)
        for table in self._chosen(found) if self.chooses else found:
            yield from table.to_batches()

    def _chosen(self, candidates: Iterator[pa.Table]) -> Iterator[pa.Table]:
        matcher = self.common.matcher
        sorter = Sorter(TaskOrder(choice_order(matcher.plan.query)))
        for table in candidates:
            sorter.add(table.append_column(GROUP, pa.array(np.zeros(table.num_rows, np.int64))))
        names = matcher.output.names
        batches = (
            batch for table in sorter.tables() for batch in table.select(names).cast(matcher.output).to_batches()
        )
        for batch in Chooser(matcher.plan.query, matcher.result)(batches):
            yield pa.Table.from_batches([batch])

    def _found(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        # By where they lay in the end: events that are equal in all columns must not change places.
        sorter = Sorter(TaskOrder((*self.common.matcher.order.columns, SortColumn(SENT, False, None))))
        arrived = _Arrived(self.common)
        for events in self.common.matcher.only_ordered(map(arrived.events, batches)):
            yield from arrived.taken_output()
            sorter.add(events)
        check_bounds(arrived.bounds)
        yield from arrived.taken_output()
        ranges = self.common.ranges()
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
            yield from self.common.found(ranges, self._ranges(together))

    def _ranges(self, events: pa.Table) -> Ranges:
        """Events of keys as ranges: whatever was left behind in a piece parts what travelled from it."""
        matcher = self.common.matcher
        if matcher.mixed_by:
            events = sorted_table(events, matcher.mixed_by)
        sent, told = events.column(SENT).to_numpy(), events.column(RANK).to_numpy()
        table = events.select(matcher.columns.names)
        by_key = self.common.grouped(table)
        in_order = by_key.permuted(sent & ~FOREIGN)
        ranks = _unpermuted(by_key, ranks_of(by_key.permuted(self.common.times(table)), by_key.begins))
        starts = np.append(True, ~is_contiguous(in_order))
        starts[by_key.begins[:-1]] = True
        begins = np.append(np.flatnonzero(starts), len(in_order))
        parted = Grouped(by_key.given, begins, np.arange(len(begins) - 1))
        places = self.common.places(table, np.where(sent & BETWEEN == 0, told, ranks))
        return Ranges(table, sent & FOREIGN == 0, places, parted)


class _Arrived:
    """Takes what arrives apart: events, rows of output, and bounds."""

    def __init__(self, common: InPlaceMatcher) -> None:
        self._output, self._columns = common.matcher.output, common.matcher.columns
        self._schema = positional(common.travelling.append(pa.field(GROUP, pa.int64())))
        self._rows: list[pa.Table] = []
        self.bounds: list[Bounds] = []

    def events(self, batch: pa.RecordBatch) -> pa.Table:
        table = pa.Table.from_batches([batch]).rename_columns(self._schema.names).cast(self._schema)
        sent, rank, bounds, place = table.columns[-4:]
        self.bounds += [Bounds.read(text) for text in bounds.drop_null().to_pylist()]
        is_event = sent.is_valid()
        rows = table.filter(pc.invert(pc.or_(is_event, bounds.is_valid())))
        if rows.num_rows:
            self._rows.append(pa.table(rows.columns[: len(self._output)], schema=self._output))
        names = [*self._columns.names, GROUP, SENT, RANK]
        return pa.table([*table.columns[len(self._output) : -4], place, sent, rank], names=names).filter(is_event)

    def taken_output(self) -> list[pa.Table]:
        rows, self._rows = self._rows, []
        return rows


def positional(schema: pa.Schema) -> pa.Schema:
    """Columns by their places: names of results and of events may be the same."""
    return pa.schema([field.with_name(f"column_{number}") for number, field in enumerate(schema)])


def _is_missing(columns: pa.Table) -> pa.ChunkedArray:
    """Of each row, whether any of the columns is NULL or NaN."""
    missing = [pc.is_null(column, nan_is_null=pa.types.is_floating(column.type)) for column in columns.columns]
    return reduce(pc.or_, missing)


def _unpermuted(grouped: Grouped, values: Array) -> Array:
    """Values of grouped rows as they stand in the table."""
    if grouped.is_identity:
        return values
    found = np.empty_like(values)
    found[grouped.order] = values
    return found

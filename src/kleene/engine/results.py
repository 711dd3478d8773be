"""What engines find to batches of rows, in output order and in bounded memory.

An engine gives parts: the rows of some matches, made only when they are asked for. Where a part is settled, nothing
that follows comes before it, and its rows can go at once; else they wait in a sorter, which puts them in order by the
events that complete them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.analysis.steps import AnalyzedSteps
from kleene.engine.budget import Budget, table_bytes
from kleene.engine.by_column.matches import Columns
from kleene.engine.compiled.measures import MeasureProgram, computed_measures
from kleene.engine.compiled.meter import Meter
from kleene.engine.compiled.regex_engine import FoundRegex
from kleene.engine.compiled.row_search import FoundRows
from kleene.engine.events import Events, decoded, plain_values
from kleene.engine.interpreter import FoundOutputRows
from kleene.engine.match_order import RowOrder, RowPlaces
from kleene.engine.matches import Array, FlatMatches, FoundMatches
from kleene.engine.output import as_schema, output_table, values_at
from kleene.engine.plain_rows import plain_rows
from kleene.engine.protocol import Found, Time
from kleene.engine.regex_columns import regex_table
from kleene.engine.row_columns import RowTables
from kleene.engine.row_output import OutputRow, row_output_schema, row_output_table
from kleene.engine.row_timeouts import FoundRowTimeouts
from kleene.engine.spilling import PLACE, ByPlace, Sorter
from kleene.engine.timeouts import FoundTimeouts, mark_fields, marked, partial_table
from kleene.ir.options import RowsPerMatch
from kleene.plan.plan import Plan
from kleene.schema import (
    EventSchema,
    OpaqueType,
    is_plain,
)

ROWS_PER_BATCH, BYTES_PER_BATCH = 10_000, 1 << 24
"""A batch has so many rows, or fewer where they are large."""
FIRST_ROWS = 1_000
"""Rows of the first batch, by which it shows how large they are."""


@dataclass(frozen=True, slots=True)
class ResultBatch:
    """Some thousand rows of the result; for SASE, with the matches that they stand for, and their events.

    `places` are the positions of the events that complete the matches.
    """

    table: pa.Table
    places: Array | None = None
    matches: FlatMatches | None = None
    events: pa.Table | None = None

    def without_first(self, rows: int) -> ResultBatch:
        matches = None if self.matches is None else self.matches[rows : len(self.matches)]
        places = None if self.places is None else self.places[rows:]
        return ResultBatch(self.table.slice(rows), places, matches, self.events)


@dataclass(frozen=True, slots=True)
class Part:
    """Batches in output order. Where it is settled, all rows up to here come before all rows of later parts."""

    batches: Iterable[ResultBatch]
    is_settled: bool


def in_output_order(parts: Iterable[Part], budget: Budget, holds_all: bool = False) -> Iterator[ResultBatch]:
    """The batches in output order. Rows that wait do so in memory if the caller holds all of them anyway."""
    sorter = Sorter(ByPlace(), budget.memory if holds_all else budget.at_once)
    for part in parts:
        if part.is_settled and sorter.is_empty:
            for batch in part.batches:
                budget.check_time()
                yield batch
            continue
        for batch in part.batches:
            assert batch.places is not None
            sorter.add(batch.table.append_column(PLACE, pa.array(batch.places, pa.int64())))
            budget.hold("rows that wait to be put in order", 2 * sorter.held_bytes)
            budget.check_time()
        if part.is_settled:
            yield from _sorted_batches(sorter)
            budget.hold("rows that wait to be put in order", 0)
    yield from _sorted_batches(sorter)


def _sorted_batches(sorter: Sorter) -> Iterator[ResultBatch]:
    for table in sorter.tables():
        yield from table_batches(table.drop_columns([PLACE]), table.column(PLACE).to_numpy())


def table_batches(whole: pa.Table, places: Array | None = None) -> Iterator[ResultBatch]:
    for start in range(0, whole.num_rows, ROWS_PER_BATCH):
        own = None if places is None else places[start : start + ROWS_PER_BATCH]
        yield ResultBatch(whole.slice(start, ROWS_PER_BATCH), own)


def without_first(batches: Iterable[ResultBatch], rows: int) -> Iterator[ResultBatch]:
    """The batches without so many rows, which were given out before."""
    for batch in batches:
        skipped = min(rows, batch.table.num_rows)
        rows -= skipped
        if skipped < batch.table.num_rows:
            yield batch.without_first(skipped) if skipped else batch


# ---- rows of what was found


@dataclass(frozen=True, slots=True)
class RowWriter:
    """How rows are made of what an engine finds: one way for all of them."""

    plan: Plan
    measures: MeasureProgram | None
    meter: Meter
    with_times: bool = False
    id_columns: Sequence[str] | None = None
    row_order: RowOrder | None = None  # of row patterns, if it is wanted
    placed_by: tuple[str, ...] = ()  # columns of events that tell where they stand, beyond one table
    is_whole: bool = False  # whether the caller holds all rows anyway, so that batches may be large

    def parts(self, all_found: Iterable[Found], budget: Budget) -> Iterator[Part]:
        """The rows of each thing found, made when they are asked for."""
        tables: RowTables | None = None
        for found in all_found:
            match found:
                case FoundMatches():
                    batches = self.batches(found.table, found.matches)
                case FoundRegex():
                    batches = table_batches(*regex_table(self._row_pattern, found, self.row_order))
                case FoundRows() if (plain := self._plain(found)) is not None:
                    batches = self._cut(plain)
                case FoundRows():
                    if tables is None or not tables.is_of(found.table):
                        tables = RowTables(Columns(self._row_pattern, found.table, budget.check_time))
                    batches = self._of_rows(tables, found)
                case FoundOutputRows():
                    batches = output_batches(self._row_pattern, found.table, found.rows, self.row_order)
                case FoundTimeouts():
                    batches = self._partial_batches(found)
                case FoundRowTimeouts():
                    batches = output_batches(self._row_pattern, found.table, found.rows, self.row_order)
                    batches = _marked_batches(batches, self.plan, found.closes)
                case _:
                    raise AssertionError(f"no rows for {type(found).__name__}")
            is_unmarked = mark_fields(self.plan) and not isinstance(
                found, FoundMatches | FoundTimeouts | FoundRowTimeouts
            )
            batches = _marked_batches(batches, self.plan) if is_unmarked else batches
            yield Part(_placed_batches(batches, found.table, self.placed_by), found.is_settled)

    def _plain(self, found: FoundRows) -> ResultBatch | None:
        """The rows of matches whose measures are read off their ends, if all are."""
        is_one = self._row_pattern.rows_per_match is RowsPerMatch.ONE
        plain = plain_rows(self._row_pattern, found) if is_one and self.row_order is None else None
        return None if plain is None else ResultBatch(*plain)

    def _of_rows(self, tables: RowTables, found: FoundRows) -> Iterator[ResultBatch]:
        query = self._row_pattern
        if query.rows_per_match is RowsPerMatch.EACH_ROW:
            yield from _window_batches(tables, query, found)
        elif query.rows_per_match is RowsPerMatch.ONE:
            table, order = tables.one_row(found, self.row_order)
            starts = found.matches.starts[order]
            ends = starts + np.maximum(np.diff(found.matches.offsets)[order], 1) - 1
            yield from self._cut(ResultBatch(table, found.grouped.positions(ends)))
        else:
            table, places, _ = tables.all_rows(found, self.row_order)
            yield from self._cut(ResultBatch(table, places.last))

    def _cut(self, batch: ResultBatch) -> Iterator[ResultBatch]:
        return iter([batch]) if self.is_whole else table_batches(batch.table, batch.places)

    @property
    def _row_pattern(self) -> AnalyzedRowPattern:
        assert isinstance(self.plan.query, AnalyzedRowPattern)
        return self.plan.query

    def batches(self, table: pa.Table, matches: FlatMatches) -> Iterator[ResultBatch]:
        """The rows of the matches of a SASE query in the table."""
        query = self.plan.query
        assert isinstance(query, AnalyzedQuery)
        assert query.schema is not None
        events, started = Events(table, query.schema, query.order_by), perf_counter()
        computed = {} if self.measures is None else computed_measures(self.measures, table, matches)
        start, rows = 0, ROWS_PER_BATCH if query.measures is None else min(FIRST_ROWS, ROWS_PER_BATCH)
        while start < len(matches):
            part = matches[start : start + rows]
            here = {number: column.slice(start, rows) for number, column in computed.items()}
            made = marked(output_table(query, events, part, self.with_times, here), self.plan)
            if self.id_columns is not None:
                made = with_match_ids(made, table, part, self.plan, self.id_columns)
            self.meter.add("Transformation", len(part), made.num_rows, perf_counter() - started)
            start += len(part)
            rows = min(max(len(part) * BYTES_PER_BATCH // max(table_bytes(made), 1), 1), ROWS_PER_BATCH)
            yield ResultBatch(made, part.last, part, table)
            started = perf_counter()

    def _partial_batches(self, found: FoundTimeouts) -> Iterator[ResultBatch]:
        """The rows of runs that are out of time."""
        query = self.plan.query
        assert isinstance(query, AnalyzedQuery)
        assert query.schema is not None
        events = Events(found.table, query.schema, query.order_by)
        for start in range(0, len(found.runs), ROWS_PER_BATCH):
            part, closes = found.runs[start : start + ROWS_PER_BATCH], found.closes[start : start + ROWS_PER_BATCH]
            made = output_table if isinstance(query, AnalyzedSteps) else partial_table
            made = marked(made(query, events, part, self.with_times), self.plan, closes)
            if self.id_columns is not None:
                made = with_match_ids(made, found.table, part, self.plan, self.id_columns)
            yield ResultBatch(made, part.last, part, found.table)


def _marked_batches(
    batches: Iterable[ResultBatch], plan: Plan, closes: Sequence[Time] | None = None
) -> Iterator[ResultBatch]:
    """Batches of rows of a row pattern that are matches, or whose windows close then."""
    at = 0
    for batch in batches:
        end = at + batch.table.num_rows
        yield replace(batch, table=marked(batch.table, plan, None if closes is None else closes[at:end]))
        at = end


PLACED = "\0placed_"
"""What the names begin with of columns that tell, beside each row, where the event stands that completes its match."""


def _placed_batches(batches: Iterable[ResultBatch], events: pa.Table, names: Sequence[str]) -> Iterable[ResultBatch]:
    return (_placed(batch, events, names) for batch in batches) if names else batches


def _placed(batch: ResultBatch, events: pa.Table, names: Sequence[str]) -> ResultBatch:
    assert batch.places is not None
    table, places = batch.table, batch.places.astype(np.int64)
    for number, name in enumerate(names):
        table = table.append_column(f"{PLACED}{number}", values_at(events.column(name), places))
    return replace(batch, table=table)


MATCH_ID = "match_id"
"""A name for each match that depends on nothing but its events: the same in every run, in process and on Spark."""


def with_match_ids(
    table: pa.Table, events: pa.Table | None, matches: FlatMatches | None, plan: Plan, names: Sequence[str]
) -> pa.Table:
    """The rows with a column of the matches' ids; where an event occurs twice in the input, so may a match."""
    assert events is not None
    assert matches is not None
    assert plan.query.schema is not None
    return table.append_column(MATCH_ID, match_ids(events, matches, names, plan.query.schema))


def match_ids(events: pa.Table, matches: FlatMatches, names: Sequence[str], schema: EventSchema) -> pa.Array:
    """For each match 32 hexadecimal digits, made of the values of its events in these columns, by variable.

    Matches of events that do not differ in any of the columns have the same.
    """
    positions, places = np.unique(matches.positions, return_inverse=True)
    used = events.select(names).take(pa.array(positions, pa.int64()))
    columns = [_texts(used, name, schema) for name in sorted(names)]
    digests = [_digest("\x1f".join(values).encode()) for values in zip(*columns, strict=True)]
    ids = []
    for number in range(len(matches)):
        own = places[matches.offsets[number] : matches.offsets[number + 1]]
        lengths = ",".join(map(str, matches.lengths[number].tolist()))
        ids.append(_digest(b"".join([lengths.encode(), *(digests[place] for place in own.tolist())])).hex())
    return pa.array(ids, pa.string())


def _texts(table: pa.Table, name: str, schema: EventSchema) -> list[str]:
    type_ = schema.type_of(name) if name in schema else OpaqueType("", "")
    if not is_plain(type_):
        return [repr(value) for value in table.column(name).to_pylist()]
    values = plain_values(table.column(name), type_, name)
    return [repr(value + 0.0 if isinstance(value, float) else value) for value in values]  # -0.0 and 0.0 are one value


def _digest(said: bytes) -> bytes:
    return hashlib.blake2b(said, digest_size=16).digest()


def _window_batches(tables: RowTables, query: AnalyzedRowPattern, found: FoundRows) -> Iterator[ResultBatch]:
    """Each row, with the measures of its match."""
    schema = row_output_schema(query, found.table.schema)
    names = schema.names[: len(schema) - len(query.measures)]
    measures, matched = tables.of_windows(found)
    positions = found.grouped.order[found.decided]
    is_whole = len(positions) == found.table.num_rows and found.grouped.is_identity
    columns = [found.table.column(name) for name in names]
    columns = [decoded(column) if is_whole else values_at(column, positions) for column in columns]
    whole = as_schema([*columns, *(values_at(column, matched) for column in measures)], schema)
    yield from table_batches(whole)


def output_batches(
    query: AnalyzedRowPattern, table: pa.Table, rows: Sequence[OutputRow], row_order: RowOrder | None = None
) -> Iterator[ResultBatch]:
    for start in range(0, len(rows), ROWS_PER_BATCH):
        some = rows[start : start + ROWS_PER_BATCH]
        places = np.array([row.order[0] for row in some], np.int64)
        made = row_output_table(query, table, some)
        if row_order is not None:
            made = row_order.appended(made, table, RowPlaces.of([row.order for row in some]))
        yield ResultBatch(made, places)

"""A call on a scan to what is known before any event is read: the plan, the columns, and how blocks become tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from kleene.analysis.analyze import analyze
from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn, analyze_row_pattern, is_row_pattern
from kleene.analysis.steps import AnalyzedSteps
from kleene.call import Call
from kleene.engine.inputs import EventSource, category_notes, in_order, open_events, open_rows
from kleene.engine.needs import codable_columns, columns_read
from kleene.engine.rows import sorted_rows, with_computed_keys
from kleene.engine.sampling import sampled_statistics
from kleene.engine.sources import Source
from kleene.engine.tasks import order_times
from kleene.engine.unencoded import CODES
from kleene.plan.plan import Plan
from kleene.scanning.blocks import Block
from kleene.scanning.scan import NO_NAMES, Scan
from kleene.scanning.sweep import Reading

SAMPLED_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Opened:
    """A call on a scan. `names` are the columns that it reads, some of them parts or keys that are computed."""

    call: Call
    scan: Scan
    query: AnalyzedQuery | AnalyzedRowPattern
    names: tuple[str, ...]
    ordered: frozenset[str]

    @property
    def notes(self) -> list[str]:
        return list(category_notes(self.call.definition, self.call.order, self.ordered))

    def table(self, blocks: Sequence[Block] | None = None, coded: frozenset[str] = NO_NAMES) -> pa.Table:
        """The events of the blocks as the input has them, keys computed; columns of `coded` as codes of their words."""
        table = _source(self.call, self.scan, blocks, coded).read(self.names)
        for number, field in enumerate(table.schema):
            if field.name in coded and field.type != CODES:  # all pieces must have the same types
                table = table.set_column(number, field.name, table.column(number).dictionary_encode())
        return table if isinstance(self.query, AnalyzedQuery) else with_computed_keys(self.query, table)

    def tables(self, blocks: Sequence[Block], rows_at_once: int) -> Iterator[pa.Table]:
        """The same, some blocks at a time; text files, some megabytes."""
        if self.scan.is_text:
            return map(self._of_text, self.scan.text_tables(self.scan.columns.names))
        return map(self.table, _together(blocks, rows_at_once))

    def _of_text(self, table: pa.Table) -> pa.Table:
        found = _opened(self.call, Source(table.schema, table.select)).read(self.names)
        return found if isinstance(self.query, AnalyzedQuery) else with_computed_keys(self.query, found)

    def in_order(self, table: pa.Table) -> pa.Table:
        if isinstance(self.query, AnalyzedQuery):
            return in_order(table, self.call.order)
        return sorted_rows(self.query, table)

    @property
    def order(self) -> tuple[SortColumn, ...]:
        if isinstance(self.query, AnalyzedQuery):
            return tuple(SortColumn(name, False, None) for name in self.call.order.columns)
        return self.query.order_by

    @property
    def order_columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.order)

    @property
    def strict(self) -> tuple[str, ...]:
        """Columns of the order key that must not be missing."""
        if isinstance(self.query, AnalyzedQuery):
            return self.call.order.order_by
        return tuple(column.name for column in self.query.order_by if column.nulls_first is None)

    @property
    def reading(self) -> Reading:
        times = partial(order_times, query=self.query)
        return Reading(
            partial(self.table, coded=self.coded), self.in_order, times, by_time_alone=len(self.order_columns) == 1
        )

    @property
    def coded(self) -> frozenset[str]:
        """Columns of types and keys that stay numbers of words from the files to the engine."""
        is_computed = isinstance(self.query, AnalyzedRowPattern) and bool(self.query.computed)
        if is_computed or self.call.schema is not None or self.scan.is_text or self.call.engine.name == "reference":
            return NO_NAMES
        names = codable_columns(self.query).difference(self.order_columns)
        return frozenset(name for name in names if self.scan.few_words(name))

    def plan(self) -> Plan:
        """The plan; what it must know of the events is measured on the first of them."""
        call, query = self.call, self.query
        is_large = self.scan.rows > SAMPLED_ROWS and call.engine.name != "reference"
        if not is_large or not isinstance(query, AnalyzedQuery) or isinstance(query, AnalyzedSteps):
            return call.plan(query)
        sample = self.in_order(self.table(self.scan.blocks[:1]).slice(0, SAMPLED_ROWS))
        # What lies between the least and the greatest value of all is a fact, which a sample cannot tell.
        return call.plan(query, replace(sampled_statistics(sample, query), ranges={}))


def open_scan(call: Call, scan: Scan) -> Opened:
    """What the call makes of the scan; an error if its columns do not fit."""
    source = _source(call, scan, ())
    there = source.columns.names
    if is_row_pattern(call.definition):
        rows = analyze_row_pattern(call.definition, source.schema, source.schema.hidden)
        names = columns_read(rows, there, ()) or there[:1]
        return Opened(call, scan, rows, tuple(names), source.ordered)
    query = analyze(call.definition, source.schema, source.order.order_by)
    return Opened(call, scan, query, tuple(columns_read(query, there, source.order.columns)), source.ordered)


def _source(call: Call, scan: Scan, blocks: Sequence[Block] | None, coded: frozenset[str] = NO_NAMES) -> EventSource:
    return _opened(call, scan.source(blocks, coded), coded)


def _opened(call: Call, source: Source, coded: frozenset[str] = NO_NAMES) -> EventSource:
    if is_row_pattern(call.definition):
        return open_rows(source, call.definition, coded=coded)
    return open_events(source, call.order, call.type_column, call.definition, call.schema, coded=coded)


def _together(blocks: Sequence[Block], rows_at_once: int) -> Iterator[list[Block]]:
    """Blocks that follow one another in the input, about so many rows of them."""
    taken: list[Block] = []
    for block in blocks:
        taken.append(block)
        if sum(one.rows for one in taken) >= rows_at_once:
            yield taken
            taken = []
    if taken:
        yield taken

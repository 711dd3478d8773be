"""A plan and a sorted table of events to the table of matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine import reference, rows
from kleene.engine.events import Events
from kleene.engine.matches import Match
from kleene.engine.output import output_schema, output_table
from kleene.engine.row_output import row_output_schema, row_output_table
from kleene.plan.plan import Plan

ROWS_PER_BATCH = 10_000


def run(plan: Plan, table: pa.Table, with_times: bool = False) -> pa.Table:
    """The matches as rows, in output order."""
    batches = [part.table for part in run_in_batches(plan, table, with_times)]
    return batches[0] if len(batches) == 1 else pa.concat_tables(batches)


@dataclass(frozen=True, slots=True)
class ResultBatch:
    """Some thousand rows of the result; for SASE, with the matches that they stand for."""

    table: pa.Table
    matches: list[Match]


def run_in_batches(plan: Plan, table: pa.Table, with_times: bool = False) -> Iterator[ResultBatch]:
    """The result in pieces of bounded size; of no rows, one empty piece."""
    query = plan.query
    if isinstance(query, AnalyzedRowPattern):
        found = rows.find_rows(query, table, plan.run_limit)
        for start in range(0, len(found) or 1, ROWS_PER_BATCH):
            yield ResultBatch(row_output_table(query, table, found[start : start + ROWS_PER_BATCH]), [])
        return
    events, matches = find(plan, table)
    for start in range(0, len(matches) or 1, ROWS_PER_BATCH):
        part = matches[start : start + ROWS_PER_BATCH]
        yield ResultBatch(output_table(query, events, part, table.schema, with_times), part)


def result_schema(plan: Plan, columns: pa.Schema, with_times: bool = False) -> pa.Schema:
    if isinstance(plan.query, AnalyzedRowPattern):
        return row_output_schema(plan.query, columns)
    return output_schema(plan.query, columns, with_times)


def find(plan: Plan, table: pa.Table) -> tuple[Events, list[Match]]:
    """The matches of a SASE query."""
    query = plan.query
    assert isinstance(query, AnalyzedQuery)
    assert query.schema is not None
    events = Events(table, query.schema, query.order_by)
    return events, reference.find_matches(query, events, plan.format, plan.run_limit)

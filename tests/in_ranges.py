"""Matching in ranges in this process: what Spark's tasks do, with cuts at any rows."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.batches import partition_codes
from kleene.engine.ranges import MatchChooser, RangeMatcher, RowChooser, Uncut, cut_rows, is_choosing, reach_of
from kleene.engine.run import result_schema
from kleene.ir import expr as ir
from kleene.plan.plan import ByKey, Plan


def matched_in_ranges(plan: Plan, table: pa.Table, random: Random) -> pa.Table | Uncut:
    """The rows of the result, in no particular order; or why there are no ranges."""
    reach = reach_of(plan)
    if isinstance(reach, Uncut):
        return reach
    matcher = RangeMatcher(plan, reach)
    parts = [result_schema(plan, table.schema).empty_table()]
    for events in partitions(plan, table):
        begins = sorted({0, *(random.randrange(events.num_rows) for _ in range(random.randrange(6)))})
        found = [part for part in cut_rows(events, plan, reach, begins) for part in matcher.batches(part)]
        parts += chosen(plan, found) if is_choosing(plan) else [part.table for part in found]
    return pa.concat_tables(parts)


def partitions(plan: Plan, table: pa.Table) -> list[pa.Table]:
    if not isinstance(plan.split, ByKey) or not table.num_rows:
        return [table] if table.num_rows else []
    codes, count = partition_codes(table, plan.split.columns, isinstance(plan.query, AnalyzedRowPattern))
    tables = [table.take(pa.array(np.flatnonzero(codes == code))) for code in range(count)]
    return [part for part in tables if part.num_rows]


def chosen(plan: Plan, found: list) -> list[pa.Table]:
    of_rows = isinstance(plan.query, AnalyzedRowPattern)
    rows = [
        (part, n, tuple(part.first[n].tolist()), tuple(part.then[n].tolist()))
        for part in found
        for n in range(len(part.first))
    ]
    # Rows of one match keep their order.
    rows.sort(key=(lambda row: row[2]) if of_rows else (lambda row: (row[3], [-number for number in row[2]])))
    chooser = RowChooser(plan.query) if of_rows else MatchChooser()
    tables = []
    for part, n, first, then in rows:
        number = chooser.choose(first, then)
        if number:
            tables.append(numbered(plan, part.table.slice(n, 1), number))
    return tables


def numbered(plan: Plan, row: pa.Table, number: int) -> pa.Table:
    if isinstance(plan.query, AnalyzedRowPattern):
        for measure in plan.query.measures:
            if isinstance(measure.expression, ir.MatchNumber):
                at = row.column_names.index(measure.name)
                row = row.set_column(at, row.schema.field(at), [pa.array([number], pa.int64())])
    return row

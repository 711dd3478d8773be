"""Matching in ranges in this process: what Spark's tasks do, with cuts at any rows."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.batches import one_group, partition_codes
from kleene.engine.ranges import (
    MatchChooser,
    RangeEvents,
    RangeMatcher,
    Reach,
    RowChooser,
    Uncut,
    is_choosing,
    reach_of,
)
from kleene.engine.run import result_schema
from kleene.engine.tasks import order_times
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


def cut_rows(table: pa.Table, plan: Plan, reach: Reach, begins: list[int]) -> Iterator[RangeEvents]:
    """One partition's events, in order, as ranges that begin at these rows, the first of which is 0."""
    times = order_times(table, plan.query)
    for begin, end in zip(begins, [*begins[1:], table.num_rows], strict=True):
        if begin == end:
            continue
        low, high = begin, end
        if reach.back.time is not None:
            low = begin - int(np.searchsorted((times[begin] - times[:begin])[::-1], reach.back.time, "right"))
        if reach.ahead.time is not None:
            high = end - 1 + int(np.searchsorted(times[end - 1 :] - times[end - 1], reach.ahead.time))
        low, high = max(low - reach.back.rows, 0), min(high + reach.ahead.rows, table.num_rows)
        yield one_range(table.slice(low, high - low), range(begin - low, end - low), begin)


def one_range(table: pa.Table, own: range, base: int) -> RangeEvents:
    """A range of a partition of which `base` events come before the range's own."""
    rows = np.arange(table.num_rows)
    places = np.stack([np.zeros_like(rows), rows + (base - own.start)], axis=1)
    return RangeEvents(table, (rows >= own.start) & (rows < own.stop), places, one_group(len(rows)))

"""Rows for row patterns: read, with computed keys, sorted and partitioned; and the rows that are given out for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.conversions import type_of
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.budget import Budget
from kleene.engine.column_types import attribute_type
from kleene.engine.events import check_order_key, plain_values
from kleene.engine.frames import frame_ends
from kleene.engine.output import arrow_type, arrow_values
from kleene.engine.regex_reference import regex_rows
from kleene.engine.row_aggregates import distinct_key
from kleene.engine.row_output import OutputRow, computed_measures, output_rows, unmatched_rows, window_rows
from kleene.engine.row_reference import PartitionMatcher, RowBindings, Visible
from kleene.engine.sorting import sorted_table, table_in_order
from kleene.engine.vectorized import vectorized_columns
from kleene.errors import ExecutionError, LimitError, printable
from kleene.ir import expr as ir
from kleene.ir.evaluate import PlainValue, evaluate
from kleene.ir.options import RowsPerMatch, Selection
from kleene.schema import EventSchema, Type

ROWS_AT_ONCE = 1 << 16
"""How many rows of the output the interpreter holds."""


def with_computed_keys(query: AnalyzedRowPattern, table: pa.Table) -> pa.Table:
    """The table with the keys that are expressions as further columns."""
    assert query.schema is not None
    for name, expression in query.computed:
        columns = plain_columns([expression], query.schema, table)
        values = [
            evaluate(expression, RowBindings(columns, Visible(0, table.num_rows), {}, (), (), row=row))
            for row in range(table.num_rows)
        ]
        type_ = type_of(expression)
        table = table.append_column(name, arrow_values(values, type_, arrow_type(type_)))
    return table


def sorted_rows(query: AnalyzedRowPattern, table: pa.Table, threads: int = 1) -> pa.Table:
    """The rows in the order of ORDER BY, if there is one; equal ones stay in the order of the input."""
    strict = tuple(column.name for column in query.order_by if column.nulls_first is None)
    check_order_key(table, strict)
    return table_in_order(table, query.order_by, threads)


def check_follows(
    last: pa.Table, first: pa.Table, query: AnalyzedQuery | AnalyzedRowPattern, sort_columns: Sequence[str]
) -> None:
    """An error if the first event of a piece comes before the last one of the piece before.

    `sort_columns` are those that a SASE query's events are sorted by, the tie-break included.
    """
    names = list(sort_columns) if isinstance(query, AnalyzedQuery) else [column.name for column in query.order_by]
    both = pa.concat_tables([last.select(names), first.select(names)])
    both = both.append_column("__piece", pa.array([0, 1]))
    in_order = sorted_table(both, tuple(names)) if isinstance(query, AnalyzedQuery) else sorted_rows(query, both)
    if in_order.column("__piece")[0].as_py() == 1:
        raise ExecutionError(
            f"an event is earlier, by the column '{printable(names[0])}', than events of an earlier piece",
            hint="Feed events in order: sort them first, or hold them back until all earlier ones have come.",
        )


def find_rows(query: AnalyzedRowPattern, table: pa.Table, run_limit: int) -> list[OutputRow]:
    """The rows of the output, in its order."""
    found = row_parts(query, table, run_limit, Budget(events=table.num_rows))
    return sorted((row for part in found for row in part), key=lambda row: row.order)


def row_parts(
    query: AnalyzedRowPattern, table: pa.Table, run_limit: int, budget: Budget
) -> Iterator[Sequence[OutputRow]]:
    """The rows of the output as the interpreter finds them, some thousand at a time, each part in output order."""
    rows = _interpreted_rows(query, table, run_limit, budget)
    while part := sorted(islice(rows, ROWS_AT_ONCE), key=lambda row: row.order):
        yield part


def _interpreted_rows(
    query: AnalyzedRowPattern, table: pa.Table, run_limit: int, budget: Budget
) -> Iterator[OutputRow]:
    assert query.schema is not None
    used = [condition for _, condition in query.conditions] + computed_measures(query)
    measured = query.measured_column
    columns = plain_columns(used, query.schema, table, {} if measured is None else {measured: query.time_type})
    place = 0
    for positions in row_partitions(query, table):
        here = {name: [values[position] for position in positions] for name, values in columns.items()}
        if query.definition.selection is Selection.FIRST_COMPLETED:
            key = {name: table.column(name)[positions[0]].as_py() for name in query.partition_by}
            yield from regex_rows(query, here, positions, run_limit, key, budget)
            continue
        matcher = PartitionMatcher(query, here, len(positions), run_limit, budget)
        if query.frame is not None:
            yield from _window_rows(query, table, matcher, here, positions, place)
            place += len(positions)
            continue
        covered = bytearray(len(positions))
        matches = matcher.matches()
        for match in matches:
            budget.count(1)
            budget.reach(positions[match.start])
            covered[match.start : match.last + 1] = b"\1" * (match.last + 1 - match.start)
            try:
                for row in output_rows(query, [match], here, positions):
                    budget.check_time()
                    yield row
            except LimitError:
                raise
            except ExecutionError:
                for _ in matches:  # an error of the search is told rather than one of a measure
                    pass
                raise
        if query.rows_per_match is RowsPerMatch.ALL_WITH_UNMATCHED:
            yield from unmatched_rows(positions, (row for row in range(len(positions)) if not covered[row]))


def _window_rows(
    query: AnalyzedRowPattern,
    table: pa.Table,
    matcher: PartitionMatcher,
    columns: dict[str, list[PlainValue]],
    positions: list[int],
    place: int,
) -> Iterator[OutputRow]:
    assert query.frame is not None
    order, count = np.array(positions, np.int64), len(positions)
    ends = frame_ends(query.frame, table, order, np.full(count, count), query.definition.source).tolist()
    yield from window_rows(query, matcher.of_each_row(ends), columns, positions, ends, place)


def row_partitions(query: AnalyzedRowPattern, table: pa.Table) -> list[list[int]]:
    """The positions of each partition's rows. In SQL, NULLs form a partition, and so do NaNs."""
    columns = {name: table.column(name) for name in query.partition_by}
    plain = (plain_values(column, attribute_type(column.type), name) for name, column in columns.items())
    keys = [list(map(distinct_key, values)) for values in plain]
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for position in range(table.num_rows):
        groups[tuple(key[position] for key in keys)].append(position)
    return list(groups.values())


def plain_columns(
    expressions: list[ir.Expr], schema: EventSchema, table: pa.Table, further: dict[str, Type] | None = None
) -> dict[str, list[PlainValue]]:
    names = {node.name for item in expressions for node in ir.walk(item) if isinstance(node, ir.Attribute)}
    types = {name: schema.type_of(name) for name in names} | (further or {})
    plain = {name: plain_values(table.column(name), type_, name) for name, type_ in types.items()}
    return plain | vectorized_columns(expressions, table, dict(schema.attributes))

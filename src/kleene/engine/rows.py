"""Rows for row patterns: read, with computed keys, sorted and partitioned; and the rows that are given out for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.analysis.value_types import type_of
from kleene.engine.compiled.row_engine import FoundRows, row_matches
from kleene.engine.events import check_order_key, plain_values
from kleene.engine.inputs import attribute_type
from kleene.engine.output import arrow_type, arrow_values
from kleene.engine.regex_reference import regex_rows
from kleene.engine.row_output import OutputRow, computed_measures, output_rows, unmatched_rows
from kleene.engine.row_reference import PartitionMatcher, RowBindings, RowMatch, distinct_key
from kleene.engine.sorting import sorted_table, table_in_order
from kleene.errors import ExecutionError, printable
from kleene.ir import expr as ir
from kleene.ir.evaluate import PlainValue, evaluate
from kleene.ir.options import RowsPerMatch, Selection
from kleene.schema import Schema, Type


def with_computed_keys(query: AnalyzedRowPattern, table: pa.Table) -> pa.Table:
    """The table with the keys that are expressions as further columns."""
    assert query.schema is not None
    for name, expression in query.computed:
        columns = _plain_columns([expression], query.schema, table)
        values = [
            evaluate(expression, RowBindings(columns, table.num_rows, {}, (), (), row=row))
            for row in range(table.num_rows)
        ]
        type_ = type_of(expression)
        table = table.append_column(name, arrow_values(values, type_, arrow_type(type_)))
    return table


def sorted_rows(query: AnalyzedRowPattern, table: pa.Table) -> pa.Table:
    """The rows in the order of ORDER BY; equal ones keep the order of the input, since each sort is stable."""
    strict = tuple(column.name for column in query.order_by if column.nulls_first is None)
    check_order_key(table, strict)
    return table_in_order(table, query.order_by)


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
            f"an event comes before those of an earlier piece, by the column '{printable(names[0])}'",
            hint="Feed events in their order; sort them first, or hold them back until all earlier ones are there.",
        )


def find_rows(query: AnalyzedRowPattern, table: pa.Table, run_limit: int) -> list[OutputRow]:
    """The rows of the output, in its order."""
    assert query.schema is not None
    used = [condition for _, condition in query.conditions] + computed_measures(query)
    times = [query.order_by[0].name] if query.definition.window else []
    columns = _plain_columns(used, query.schema, table, {**dict.fromkeys(times, query.time_type)})
    found: list[OutputRow] = []
    for positions in _partitions(query, table):
        here = {name: [values[position] for position in positions] for name, values in columns.items()}
        if query.definition.selection is Selection.FIRST_COMPLETED:
            key = {name: table.column(name)[positions[0]].as_py() for name in query.partition_by}
            found += regex_rows(query, here, positions, run_limit, key)
        else:
            matcher = PartitionMatcher(query, here, len(positions), run_limit)
            matches = list(matcher.matches())
            found += output_rows(query, matches, here, positions)
            if query.rows_per_match is RowsPerMatch.ALL_WITH_UNMATCHED:
                found += unmatched_rows(matches, positions, range(len(positions)))
    return sorted(found, key=lambda row: row.order)


def rows_of_matches(query: AnalyzedRowPattern, table: pa.Table, found: FoundRows) -> list[OutputRow]:
    """The rows of the output for matches that the compiled engine found, in its order."""
    assert query.schema is not None
    columns = _plain_columns(computed_measures(query), query.schema, table)
    is_all = query.definition.selection is Selection.ALL_MATCHES
    rows: list[OutputRow] = []
    for at, matches in enumerate(row_matches(found, is_all)):
        if matches or query.rows_per_match is RowsPerMatch.ALL_WITH_UNMATCHED:
            positions = found.grouped.order[found.groups[at, 0] : found.groups[at, 5]].tolist()
            here = {name: [values[position] for position in positions] for name, values in columns.items()}
            rows += output_rows(query, matches, here, positions)
            if query.rows_per_match is RowsPerMatch.ALL_WITH_UNMATCHED:
                rows += _unmatched(found, at, matches, positions)
    return sorted(rows, key=lambda row: row.order)


def _unmatched(found: FoundRows, at: int, matches: list[RowMatch], positions: list[int]) -> Iterator[OutputRow]:
    """The rows of the partition that are in no match; of a stream, those that are decided now."""
    if found.decided is None or found.began is None or found.covered is None:
        return unmatched_rows(matches, positions, range(len(positions)))
    rows = range(int(found.began[at]), int(found.decided[at]))
    return unmatched_rows(matches, positions, rows, int(found.covered[at]))


def _partitions(query: AnalyzedRowPattern, table: pa.Table) -> list[list[int]]:
    """The positions of each partition's rows. In SQL, NULLs form a partition, and so do NaNs."""
    keys = [_grouping_values(table.column(name), name) for name in query.partition_by]
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for position in range(table.num_rows):
        groups[tuple(key[position] for key in keys)].append(position)
    return list(groups.values())


def _grouping_values(column: pa.ChunkedArray, name: str) -> list[Any]:
    return [distinct_key(value) for value in plain_values(column, attribute_type(column.type), name)]


def _plain_columns(
    expressions: list[ir.Expr], schema: Schema, table: pa.Table, further: dict[str, Type] | None = None
) -> dict[str, list[PlainValue]]:
    names = {node.name for item in expressions for node in ir.walk(item) if isinstance(node, ir.Attribute)}
    types = {name: schema.type_of(name) for name in names} | (further or {})
    return {name: plain_values(table.column(name), type_, name) for name, type_ in types.items()}

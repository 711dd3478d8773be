"""Matches of row patterns to rows: one for each match, or all its rows (SEMANTICS §4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.analysis.value_types import type_of
from kleene.engine.events import decoded
from kleene.engine.output import arrow_field, arrow_values
from kleene.engine.row_reference import RowBindings, RowMatch
from kleene.ir.evaluate import PlainValue, evaluate
from kleene.ir.options import RowsPerMatch, Selection


@dataclass(frozen=True, slots=True)
class OutputRow:
    """A row of the output: the position of the input row that its columns come from, and its measures.

    `order` is where it stands in the output; `measures` is None for an unmatched row.
    """

    position: int
    measures: tuple[Any, ...] | None
    order: tuple[object, ...]


def row_output_schema(query: AnalyzedRowPattern, columns: pa.Schema) -> pa.Schema:
    """ONE ROW: partition columns, measures. ALL ROWS: partition columns, order columns, measures, the rest."""
    measures = [arrow_field(measure.expression, columns).with_name(measure.name) for measure in query.measures]
    before, after = _column_names(query, columns)
    return pa.schema([*map(columns.field, before), *measures, *map(columns.field, after)])


def _column_names(query: AnalyzedRowPattern, columns: pa.Schema) -> tuple[list[str], list[str]]:
    """The input's columns that stand before and after the measures."""
    if query.definition.selection is Selection.FIRST_COMPLETED:
        return [], []
    if query.rows_per_match is RowsPerMatch.ONE:
        return list(query.partition_by), []
    order = [column.name for column in query.order_by if column.name not in query.hidden]
    before = list(dict.fromkeys([*query.partition_by, *order]))
    return before, [name for name in columns.names if name not in before and name not in query.hidden]


def row_output_table(query: AnalyzedRowPattern, table: pa.Table, rows: Sequence[OutputRow]) -> pa.Table:
    schema = row_output_schema(query, table.schema)
    before, after = _column_names(query, table.schema)
    taken = table.take(pa.array([row.position for row in rows], pa.int64()))
    measures = []
    for number, measure in enumerate(query.measures):
        values = [None if row.measures is None else row.measures[number] for row in rows]
        field = arrow_field(measure.expression, table.schema)
        measures.append(arrow_values(values, type_of(measure.expression), field.type))
    of_rows = {name: decoded(taken.column(name)) for name in (*before, *after)}
    columns = [*(of_rows[name] for name in before), *measures, *(of_rows[name] for name in after)]
    return pa.table(columns, schema=schema)


def output_rows(
    query: AnalyzedRowPattern,
    matches: Iterable[RowMatch],
    columns: Mapping[str, Sequence[PlainValue]],
    positions: Sequence[int],
) -> Iterator[OutputRow]:
    """The rows of one partition; `positions` are those of its rows in the table."""
    mode, members = query.rows_per_match, query.members
    for match in matches:
        length = len(match.variables)
        rows = range(match.start, match.start + length)
        bindings = RowBindings(
            columns, len(positions), members, rows, match.variables, running=length, number=match.number
        )
        order = (positions[match.last], positions[match.start], match.number)
        if mode is RowsPerMatch.ONE or (not length and mode is not RowsPerMatch.ALL_OMIT_EMPTY):
            yield OutputRow(positions[match.start], _measured(query, bindings), (*order, 0))
        elif length:
            for index, row in enumerate(rows):
                if not match.is_excluded[index]:
                    here = RowBindings(columns, len(positions), members, rows, match.variables, index + 1, match.number)
                    yield OutputRow(positions[row], _measured(query, here), (*order, index))


def unmatched_rows(positions: Sequence[int], rows: Iterable[int]) -> Iterator[OutputRow]:
    """The output for rows of one partition that are in no match."""
    return (OutputRow(positions[row], None, (positions[row], positions[row], 0, 0)) for row in rows)


def _measured(query: AnalyzedRowPattern, bindings: RowBindings) -> tuple[Any, ...]:
    return tuple(evaluate(measure.expression, bindings) for measure in query.measures)

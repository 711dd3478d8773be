"""Matches of row patterns to rows: one for each match, or all its rows (SEMANTICS §4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.events import decoded
from kleene.engine.output import arrow_field, computed_column
from kleene.engine.row_reference import RowBindings, RowMatch, Visible
from kleene.ir import expr as ir
from kleene.ir.evaluate import PlainValue, evaluate
from kleene.ir.options import RowsPerMatch, Selection
from kleene.ir.query import Measure

NUMBER = "\0number"
"""A column that numbers events in their order over many tables; it is never given out."""
POSITION = "\0position"
"""A column that every row has: where it stands in the table."""


def taken_from(expression: ir.Expr) -> str | None:
    """The column whose values a measure gives out as they are, whatever their type; None if it computes with them."""
    match expression:
        case ir.Attribute(name=name) | ir.Navigation(argument=ir.Attribute(name=name)):
            return name
    return None


def computed_measures(query: AnalyzedRowPattern) -> list[ir.Expr]:
    """The measures that need the plain values of columns."""
    return [item.expression for item in query.measures if taken_from(item.expression) is None]


def evaluated_measures(query: AnalyzedRowPattern) -> list[ir.Expr]:
    """The measures as they are evaluated: of values that are given out as they are, only the position is found."""
    return [
        item.expression if taken_from(item.expression) is None else _of_position(item.expression)
        for item in query.measures
    ]


def _of_position(expression: ir.Expr) -> ir.Expr:
    if isinstance(expression, ir.Navigation):
        return replace(expression, argument=_of_position(expression.argument))
    assert isinstance(expression, ir.Attribute)
    return replace(expression, name=POSITION)


@dataclass(frozen=True, slots=True)
class OutputRow:
    """A row of the output: the position of the input row that its columns come from, and its measures.

    `order` is where it stands in the output, first of all by the positions where its match ends and begins; `measures`
    is None for an unmatched row.
    """

    position: int
    measures: tuple[Any, ...] | None
    order: tuple[int, ...]


def row_output_schema(query: AnalyzedRowPattern, columns: pa.Schema) -> pa.Schema:
    """ONE ROW: partition columns, measures. ALL ROWS: partition columns, order columns, measures, the rest.

    A column that PARTITION BY and ORDER BY name twice is there twice.

    A window: the columns of the input, then the measures.
    """
    measures = [arrow_field(measure.expression, columns).with_name(measure.name) for measure in query.measures]
    before, after = column_names(query, columns)
    return pa.schema([*map(columns.field, before), *measures, *map(columns.field, after)])


def column_names(query: AnalyzedRowPattern, columns: pa.Schema) -> tuple[list[str], list[str]]:
    """The input's columns that stand before and after the measures."""
    if query.definition.selection is Selection.FIRST_COMPLETED:
        return [], []
    if query.rows_per_match is RowsPerMatch.ONE:
        return list(query.partition_columns), []
    if query.rows_per_match is RowsPerMatch.EACH_ROW:
        return [name for name in columns.names if name not in query.hidden], []
    before = [*query.partition_columns, *query.order_columns]
    not_after = {*before, *query.hidden, NUMBER}
    return before, [name for name in columns.names if name not in not_after]


def row_output_table(query: AnalyzedRowPattern, table: pa.Table, rows: Sequence[OutputRow]) -> pa.Table:
    schema = row_output_schema(query, table.schema)
    before, after = column_names(query, table.schema)
    taken = table.take(pa.array([row.position for row in rows], pa.int64()))
    measures = []
    for number, measure in enumerate(query.measures):
        values = [None if row.measures is None else row.measures[number] for row in rows]
        measures.append(_measure_column(measure, values, table))
    of_rows = {name: decoded(taken.column(name)) for name in (*before, *after)}
    columns = [*(of_rows[name] for name in before), *measures, *(of_rows[name] for name in after)]
    return pa.table(columns, schema=schema)


def _measure_column(measure: Measure, values: list[Any], table: pa.Table) -> pa.Array:
    name = taken_from(measure.expression)
    if name is not None:
        return decoded(table.column(name).take(pa.array(values, pa.int64())))
    return computed_column(measure.expression, values, table.schema)


def output_rows(
    query: AnalyzedRowPattern,
    matches: Iterable[RowMatch],
    columns: Mapping[str, Sequence[PlainValue]],
    positions: Sequence[int],
) -> Iterator[OutputRow]:
    """The rows of one partition; `positions` are those of its rows in the table."""
    mode, members, measures = query.rows_per_match, query.members, evaluated_measures(query)
    columns = {**columns, POSITION: positions}
    for match in matches:
        length = len(match.variables)
        rows = range(match.start, match.start + length)
        visible = Visible(0, len(positions))
        bindings = RowBindings(columns, visible, members, rows, match.variables, running=length, number=match.number)
        order = (positions[match.last], positions[match.start], match.number)
        if mode is RowsPerMatch.ONE or (not length and mode is not RowsPerMatch.ALL_OMIT_EMPTY):
            yield OutputRow(positions[match.start], _measured(measures, bindings), (*order, 0))
        elif length:
            for index, row in enumerate(rows):
                if not match.is_excluded[index]:
                    here = RowBindings(columns, visible, members, rows, match.variables, index + 1, match.number)
                    yield OutputRow(positions[row], _measured(measures, here), (*order, index))


def window_rows(
    query: AnalyzedRowPattern,
    matches: Iterable[RowMatch | None],
    columns: Mapping[str, Sequence[PlainValue]],
    positions: Sequence[int],
    ends: Sequence[int],
    place: int,
) -> Iterator[OutputRow]:
    """A row for each row of one partition, with the measures of its own match; `place` is where the first stands."""
    members, measures = query.members, evaluated_measures(query)
    columns = {**columns, POSITION: positions}
    for row, match in enumerate(matches):
        measured = None
        if match is not None:
            rows, visible = range(match.start, match.start + len(match.variables)), Visible(row, ends[row])
            measured = _measured(measures, RowBindings(columns, visible, members, rows, match.variables))
        yield OutputRow(positions[row], measured, (place + row,))


def unmatched_rows(positions: Sequence[int], rows: Iterable[int]) -> Iterator[OutputRow]:
    """The output for rows of one partition that are in no match."""
    return (OutputRow(positions[row], None, (positions[row], positions[row], 0, 0)) for row in rows)


def measures_of_part(
    query: AnalyzedRowPattern, part: RowMatch, columns: Mapping[str, Sequence[PlainValue]], positions: Sequence[int]
) -> tuple[Any, ...]:
    """The measures of rows that did not become a match, which has no number."""
    rows, columns = range(part.start, part.start + len(part.variables)), {**columns, POSITION: positions}
    visible = Visible(0, len(positions))
    bindings = RowBindings(columns, visible, query.members, rows, part.variables, running=len(rows), number=None)
    return _measured(evaluated_measures(query), bindings)


def _measured(measures: Sequence[ir.Expr], bindings: RowBindings) -> tuple[Any, ...]:
    return tuple(evaluate(expression, bindings) for expression in measures)

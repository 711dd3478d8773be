"""Matches of row patterns to ONE ROW PER MATCH, column by column.

Measures that are a value of one of the match's rows, a count, a number or the classification are read off the arrays of
the matches; others are computed by the interpreter, match by match.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.row_search import FoundRows, numbered
from kleene.engine.events import decoded, plain_values
from kleene.engine.output import as_type, computed_column
from kleene.engine.row_output import row_output_schema
from kleene.engine.row_reference import RowBindings
from kleene.ir import expr as ir
from kleene.ir.evaluate import PlainValue, evaluate
from kleene.ir.options import Selection


def one_row_table_and_order(query: AnalyzedRowPattern, found: FoundRows) -> tuple[pa.Table, Array]:
    """The table of matches, as they were found, and the numbers of its rows in output order."""
    measures = _Measures(query, found)
    columns = [measures.taken(name, found.matches.starts) for name in query.partition_by]
    columns += [measures.column(measure.expression) for measure in query.measures]
    schema = row_output_schema(query, found.table.schema)
    whole = pa.table(
        [as_type(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )
    return whole, measures.output_order()


class _Measures:
    def __init__(self, query: AnalyzedRowPattern, found: FoundRows) -> None:
        self._query, self._found, self._loops = query, found, shared_loops(found.kernel.jit)
        self._matches, self._tables = found.matches, found.kernel.generated.tables
        self._lengths = np.diff(self._matches.offsets)
        self._numbers = numbered(found, query.definition.selection is Selection.ALL_MATCHES)
        self._names = np.array([self._tables.variables[n] for n in self._tables.variable_of] or [""], object)
        self._plain: dict[str, list[PlainValue]] = {}

    def output_order(self) -> Array:
        """By the last row, then the first, then the number."""
        order = self._found.grouped.order
        ends = self._matches.starts + np.maximum(self._lengths, 1) - 1
        found: Array = np.lexsort((self._numbers, order[self._matches.starts], order[ends]))
        return found

    def column(self, expression: ir.Expr) -> pa.Array:
        match expression:
            case ir.Attribute(variable=variable, name=name):
                return self.taken(name, self._rows(variable, True, 0))
            case ir.Navigation(argument=ir.Attribute(name=name), variable=variable):
                rows = self._rows(variable, expression.from_last, expression.offset)
                return self.taken(name, self._shifted(rows, expression.shift or 0))
            case ir.MatchNumber():
                return pa.array(self._numbers, pa.int64())
            case ir.Aggregate(function="count", distinct=False, argument=ir.Events(variable=variable)):
                return pa.array(self._count(variable), pa.int64())
            case ir.Classifier(variable=None):
                ends = np.where(self._lengths > 0, self._matches.offsets[1:] - 1, -1)
                return self._named(ends)
            case ir.Aggregate(function="array_agg", distinct=False, argument=ir.Classifier(variable=None)):
                names = self._named(np.arange(len(self._matches.states)))
                offsets = pa.array(self._matches.offsets, pa.int32())
                return pa.ListArray.from_arrays(offsets, names, mask=pa.array(self._lengths == 0))
        values = [self._value(expression, number) for number in range(len(self._matches))]
        return computed_column(expression, values, self._found.table.schema)

    def taken(self, name: str, rows: Array) -> pa.Array:
        """The column's values in the rows; NULL for row -1."""
        positions = self._found.grouped.order[rows] if len(rows) else rows
        wanted = pa.array(positions, pa.int64(), mask=rows < 0)
        found = decoded(self._found.table.column(name).take(wanted))
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def _wanted(self, variable: str) -> Array:
        members = self._query.members[variable]
        return np.array([int(name in members) for name in self._names], np.int64)

    def _rows(self, variable: str | None, from_last: bool, offset: int) -> Array:
        starts, lengths = self._matches.starts, self._lengths
        if variable is None:
            rows = starts + (lengths - 1 - offset if from_last else offset)
            return np.where(offset < lengths, rows, -1)
        found = np.empty(len(starts), np.int64)
        self._loops["nth_rows"](
            self._matches.offsets, starts, self._matches.states, self._wanted(variable), int(from_last), offset, found
        )
        return found

    def _shifted(self, rows: Array, shift: int) -> Array:
        begins, ends = (bounds[self._matches.groups] for bounds in (self._found.begins, self._found.ends))
        moved = rows + shift
        return np.where((rows >= 0) & (moved >= begins) & (moved < ends), moved, -1)

    def _count(self, variable: str | None) -> Array:
        if variable is None:
            return self._lengths
        found = np.empty(len(self._matches), np.int64)
        self._loops["count_rows"](self._matches.offsets, self._matches.states, self._wanted(variable), found)
        return found

    def _named(self, places: Array) -> pa.Array:
        """The names of the variables of the states in these places; NULL for place -1."""
        codes = np.append(self._matches.states, 0)[places]
        return pa.array(list(self._names)).take(pa.array(codes, pa.int64(), mask=places < 0))

    def _value(self, expression: ir.Expr, number: int) -> Any:
        group = int(self._matches.groups[number])
        begin, end = int(self._found.begins[group]), int(self._found.ends[group])
        start, length = int(self._matches.starts[number]) - begin, int(self._lengths[number])
        rows = range(start, start + length)
        bindings = RowBindings(
            _Columns(self, begin, end),
            end - begin,
            self._query.members,
            rows,
            tuple(self._names[self._matches.states_of(number)]),
            running=length,
            number=int(self._numbers[number]),
        )
        return evaluate(expression, bindings)

    def plain(self, name: str) -> list[PlainValue]:
        if name not in self._plain:
            assert self._query.schema is not None
            type_ = self._query.schema.type_of(name)
            values = plain_values(self._found.table.column(name), type_, name)
            order = self._found.grouped.order.tolist()
            self._plain[name] = values if self._found.grouped.is_identity else [values[position] for position in order]
        return self._plain[name]


class _Columns(Mapping[str, Any]):
    """The columns of one partition, by the numbers of its rows in it."""

    def __init__(self, measures: _Measures, begin: int, end: int) -> None:
        self._measures, self._begin, self._end = measures, begin, end

    def __getitem__(self, name: str) -> Any:
        return _Slice(self._measures.plain(name), self._begin)

    def __iter__(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class _Slice:
    def __init__(self, values: list[PlainValue], begin: int) -> None:
        self._values, self._begin = values, begin

    def __getitem__(self, row: int) -> PlainValue:
        return self._values[self._begin + row]

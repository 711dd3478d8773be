"""Measures of row patterns at many points to Arrow columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from kleene.analysis.conversions import type_of
from kleene.engine.by_column.aggregates import Aggregates
from kleene.engine.by_column.forms import TAKING, has_column_form, is_list
from kleene.engine.by_column.interpreted import interpreted_values
from kleene.engine.by_column.matches import InTable, Matches, Points
from kleene.engine.by_column.operators import Operators
from kleene.engine.by_column.vectors import NoColumnFormError, Vector, arrow_array, plain_values_of
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.matches import Array
from kleene.engine.output import arrow_field, computed_column, values_at
from kleene.errors import ExecutionError
from kleene.ir import expr as ir

_MOST_ELEMENTS = 2**31 - 1


@dataclass(frozen=True)
class Measures:
    """The measures of a query at points of its matches."""

    matches: Matches
    points: Points

    def columns(self) -> list[pa.Array]:
        """A column for each measure. An error is the one that the interpreter would come to first."""
        try:
            return [self.column(expression) for expression in self._expressions]
        except ExecutionError:
            self.raise_first_error()
            raise

    def raise_first_error(self) -> None:
        """Goes through all measures, match by match."""
        interpreted_values(self._expressions, self.matches, self.points)

    @property
    def _expressions(self) -> list[ir.Expr]:
        return [measure.expression for measure in self.matches.columns.query.measures]

    def column(self, expression: ir.Expr) -> pa.Array:
        try:
            return self._by_column(expression)
        except (NoColumnFormError, RecursionError):  # the interpreter can nest deeper
            found = interpreted_values([expression], self.matches, self.points)
            return computed_column(expression, [value for (value,) in found], self._table.schema)

    def taken(self, name: str, rows: Array) -> pa.Array:
        """The column's values in the rows; NULL for row -1."""
        return values_at(self._table.column(name), self.matches.positions(rows))

    @property
    def _table(self) -> pa.Table:
        return self.matches.columns.table

    @cached_property
    def _aggregates(self) -> Aggregates:
        return Aggregates(self.matches, self.points, shared_loops(self.matches.found.kernel.jit))

    @cached_property
    def _operators(self) -> Operators:
        return self.matches.columns.operators(len(self.points), self._leaf)

    def _by_column(self, expression: ir.Expr) -> pa.Array:
        match expression:
            case ir.InputConstant(name=name):
                return self.taken(name, self._starts)
            case ir.Attribute(name=name):
                return self.taken(name, self._rows(expression))
            case ir.Navigation(argument=ir.Attribute(name=name)):
                return self.taken(name, self.matches.rows(self.points, expression))
            case ir.Aggregate(function=function, argument=ir.Attribute(name=name)) if (
                function in TAKING and has_column_form(expression)
            ):
                return self.taken(name, self._aggregates.row_of_each(expression))
            case ir.Aggregate() if is_list(expression):
                return self._lists(expression)
        vector = self._operators.value(expression)
        if vector.is_bad is not None and vector.is_bad.any():
            raise NoColumnFormError
        if vector.kind == "o":
            values = plain_values_of(vector, self.matches.columns.strings)
            return computed_column(expression, values, self._table.schema)
        return arrow_array(vector, arrow_field(expression, self._table.schema).type, self.matches.columns.strings)

    @property
    def _starts(self) -> Array:
        starts: Array = self.matches.found.matches.starts[self.points.matches]
        return starts

    def _rows(self, attribute: ir.Attribute) -> Array:
        """The row that an attribute is read in: the last one of its variable."""
        if isinstance(attribute, ir.InputConstant):
            return self._starts
        return self.matches.last_rows(self.points, attribute.variable)

    def _leaf(self, expression: ir.Expr) -> Vector:
        """The values of a reference to rows."""
        matches, points = self.matches, self.points
        match expression:
            case ir.Attribute():
                return InTable(matches.columns).leaf(expression).at(matches.positions(self._rows(expression)))
            case ir.PythonCall():
                rows = matches.last_rows(points, None)
                return InTable(matches.columns).leaf(expression).at(matches.positions(rows))
            case ir.Navigation(argument=argument):
                return matches.value_in_rows(argument, matches.rows(points, expression), points.matches)
            case ir.Classifier(variable=variable, final=final):
                return matches.classified(matches.last_rows(points, variable, final), points.matches)
            case ir.MatchNumber():
                return Vector(type_of(expression), matches.numbers[points.matches])
        assert isinstance(expression, ir.Aggregate)
        return self._aggregates.value(expression)

    def _lists(self, aggregate: ir.Aggregate) -> pa.Array:
        """What the aggregate collects at each point."""
        argument, matches = aggregate.argument, self.matches
        collects_nulls = aggregate.function == "array_agg"
        if collects_nulls and not aggregate.distinct:
            rows = self._aggregates.counted_rows(aggregate)
        else:
            rows = self._aggregates.known(aggregate, with_nulls=collects_nulls)
        offsets = np.concatenate([[0], np.cumsum(rows.counts)])
        if offsets[-1] > _MOST_ELEMENTS:
            raise NoColumnFormError
        numbers = np.repeat(rows.begin - offsets[:-1], rows.counts) + np.arange(offsets[-1])
        if isinstance(argument, ir.Attribute):
            elements = self.taken(argument.name, rows.counted.of_each(matches.row_of_place)[numbers])
        else:
            values = rows.values if rows.values is not None else self._aggregates.in_rows(argument, rows.counted)
            type_ = arrow_field(aggregate, self._table.schema).type.value_type
            elements = arrow_array(values.at(numbers), type_, matches.columns.strings)
        is_null = pa.array((rows.counts == 0) & collects_nulls, pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, mask=is_null)

"""Aggregates over rows of many matches, at many points at once: scans over flat arrays.

The rows that an aggregate is about stand one after the other, match by match. A scan gives its value after each of
them; a point reads it off at the last row that counts there. So RUNNING and FINAL, and both kinds of rows per match,
are one computation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kleene.analysis.conversions import type_of
from kleene.engine.by_column.forms import COLLECTING, COUNTING, SPREADS, TAKING, has_column_form, is_exact_average
from kleene.engine.by_column.matches import Counted, Matches, Points
from kleene.engine.by_column.numbers import floats_of, largest, multiplied, order_keys
from kleene.engine.by_column.operators import AtPoint
from kleene.engine.by_column.vectors import NoColumnFormError, Vector, either, of_plain, plain_values_of, some
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import SharedLoops
from kleene.engine.row_aggregates import aggregate_of_rows
from kleene.errors import ExecutionError
from kleene.ir import expr as ir
from kleene.ir.aggregates import aggregated_variable
from kleene.schema import FLOAT, INTEGER, LARGEST_INTEGER, DecimalType


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that an aggregate is about, and of each point the first of them and the one behind the last."""

    counted: Counted
    begin: Array
    end: Array
    values: Vector | None = None  # of the argument

    @property
    def counts(self) -> Array:
        counts: Array = self.end - self.begin
        return counts

    @property
    def lasts(self) -> Array:
        """Of each point the number of the last row, -1 where there is none."""
        return np.where(self.counts > 0, self.end - 1, -1)


class Aggregates:
    """Aggregates at the points."""

    def __init__(self, matches: Matches, points: Points, loops: SharedLoops) -> None:
        self.matches, self.points, self._loops = matches, points, loops

    def value(self, aggregate: ir.Aggregate) -> Vector:
        if not has_column_form(aggregate) or aggregate.function in COLLECTING:
            return self._value_by_value(aggregate)
        function, argument, type_ = aggregate.function, aggregate.argument, type_of(aggregate)
        if function in TAKING:
            return self._in_place(argument, self.row_of_each(aggregate))
        if function in COUNTING:
            return Vector(type_, self._count(aggregate))
        rows = self.known(aggregate)
        assert rows.values is not None
        none = some(rows.counts == 0)
        match function:
            case "bool_and" | "bool_or":
                is_wanted = rows.values.values == (function == "bool_or")
                has_one = self._within(rows, is_wanted) > 0
                return Vector(type_, has_one == (function == "bool_or"), none)
            case "sum":
                return replace(self._sums(rows).at(rows.lasts), type=type_)
            case "avg":
                return averages(aggregate, self._sums(rows).at(rows.lasts), rows.counts)
            case _ if function in SPREADS:
                return self._spread(aggregate, rows)
        raise NoColumnFormError

    # --- rows and their values -----------------------------------------------------------------------------------

    def counted_rows(self, aggregate: ir.Aggregate) -> Rows:
        return self._rows(aggregate, self._counted(aggregate))

    def _counted(self, aggregate: ir.Aggregate) -> Counted:
        """The rows that the aggregate is about: those of its variable that fulfil its condition."""
        counted = self.matches.counted(aggregated_variable(aggregate))
        if aggregate.condition is not None:
            counted = counted.kept(self.in_rows(aggregate.condition, counted).is_true)
        return counted

    def _rows(self, aggregate: ir.Aggregate, counted: Counted, values: Vector | None = None) -> Rows:
        return Rows(counted, *self.matches.bounds(counted, self.points, aggregate.final), values)

    def known(self, aggregate: ir.Aggregate, with_nulls: bool = False) -> Rows:
        """The rows where the argument is not NULL, or the first of each of its values, with these values."""
        counted = self._counted(aggregate)
        values = self.in_rows(aggregate.argument, counted)
        if not with_nulls:
            counted, values = _without_nulls(counted, values)
        if aggregate.distinct or aggregate.function in ("collect_set", "approx_count_distinct"):
            is_first = self._is_first(counted, values)
            counted, values = counted.kept(is_first), values.at(np.flatnonzero(is_first))
        return self._rows(aggregate, counted, values)

    def in_rows(self, expression: ir.Expr, counted: Counted) -> Vector:
        """The expression's value in each of the rows; an error in any of them is left to the interpreter."""
        matches = self.matches
        rows, of_matches = counted.of_each(matches.row_of_place), counted.of_each(matches.match_of_place)
        found = matches.value_in_rows(expression, rows, of_matches)
        if found.is_bad is not None and found.is_bad.any():
            raise NoColumnFormError
        return found

    def _is_first(self, counted: Counted, values: Vector) -> Array:
        """Whether no earlier row of the match has the value; NaN is the same as NaN, and NULL as NULL."""
        codes, count = values.values, len(self.matches.columns.strings.strings)
        if values.kind != "s":
            different, codes = np.unique(values.values, return_inverse=True)
            count = len(different)
        codes = np.where(values.nulls, count, codes)
        of_matches = counted.of_each(self.matches.match_of_place)
        _, firsts = np.unique(of_matches * (count + 1) + codes, return_index=True)
        found = np.zeros(len(values), np.bool_)
        found[firsts] = True
        return found

    def _within(self, rows: Rows, is_wanted: Array) -> Array:
        """Of each point, how many of its rows are wanted."""
        before = np.concatenate([[0], np.cumsum(is_wanted)])
        return np.asarray(before[rows.end] - before[rows.begin])

    def _offsets(self, counted: Counted) -> Array:
        """Where the rows of each match begin, and behind the last."""
        return counted.before(self.matches.found.matches.offsets)

    def _in_place(self, expression: ir.Expr, rows: Array) -> Vector:
        """The expression's value in a row of each point; NULL for row -1."""
        return self.matches.value_in_rows(expression, rows, self.points.matches)

    # --- counts, and values of one row ---------------------------------------------------------------------------

    def _count(self, aggregate: ir.Aggregate) -> Array:
        argument = aggregate.argument
        if isinstance(argument, ir.Events):
            return self.counted_rows(aggregate).counts
        if aggregate.others:
            rows = self.counted_rows(aggregate)
            parts = [self.in_rows(part, rows.counted).is_known for part in (argument, *aggregate.others)]
            return self._within(rows, np.logical_and.reduce(parts))
        rows = self.known(aggregate)
        if aggregate.function != "count_if":
            return rows.counts
        assert rows.values is not None
        return self._within(rows, rows.values.typed(type_of(argument)).values)

    def row_of_each(self, aggregate: ir.Aggregate) -> Array:
        """Of each point the row whose value is the aggregate's; -1 where there is none."""
        function = aggregate.function
        is_by = function.endswith("_by")
        counted = self._counted(aggregate)
        if is_by and not isinstance(aggregate.argument, ir.Attribute):
            self.in_rows(aggregate.argument, counted)  # an error in any row is one
        keys = self.in_rows(aggregate.others[0] if is_by else aggregate.argument, counted)
        if keys.kind == "f" and function != "any_value":
            is_null = either(keys.is_null, some(np.isnan(keys.values)))  # NaN is neither small nor large
            keys = replace(keys, is_null=is_null)
        counted, keys = _without_nulls(counted, keys)
        rows = self._rows(aggregate, counted)
        if function == "any_value":
            number = np.where(rows.counts > 0, rows.begin, -1)
        else:
            number = self._best(counted, keys, function.startswith("min"))[rows.lasts]
            number = np.where(rows.counts > 0, number, -1)
        return self.matches.rows_of(counted, number, self.points.matches)

    def _best(self, counted: Counted, keys: Vector, is_least: bool) -> Array:
        """For each row the number of the one with the smallest, or the largest, key so far; the first of equals."""
        values = keys.values
        if keys.kind == "s":
            values = self.matches.columns.strings.order(values)
        ordered = np.ascontiguousarray(order_keys(values))
        best = np.full(max(len(ordered), 1), -1)
        self._loops["running_best"](self._offsets(counted), ~ordered if is_least else ordered, best)
        return best

    # --- numbers -------------------------------------------------------------------------------------------------

    def _sums(self, rows: Rows) -> Vector:
        """The sum up to each row, from left to right; bad where it is too large on the way."""
        assert rows.values is not None
        values, offsets = rows.values.values, self._offsets(rows.counted)
        if rows.values.kind == "f":
            sums = np.zeros(len(values), np.float64)
            with np.errstate(invalid="ignore", over="ignore"):
                self._loops["running_sums"](offsets, np.ascontiguousarray(values, np.float64), sums)
            return Vector(FLOAT, sums)
        whole = np.ascontiguousarray(values, np.int64)
        lengths = np.diff(offsets)
        if len(whole) and largest(whole) * int(lengths.max()) > LARGEST_INTEGER:
            found, is_over = np.zeros(len(whole), np.int64), np.zeros(len(whole), np.int64)
            self._loops["running_totals"](offsets, whole, found, is_over)
            return Vector(INTEGER, found, None, some(is_over != 0))
        totals = np.cumsum(whole)
        before = np.concatenate([[0], totals])[offsets[:-1]]
        return Vector(INTEGER, totals - np.repeat(before, lengths))

    def _spread(self, aggregate: ir.Aggregate, rows: Rows) -> Vector:
        assert rows.values is not None
        function = aggregate.function
        floats, is_inexact = floats_of(rows.values.values, aggregate.argument.type)
        if is_inexact is not None:
            raise NoColumnFormError
        squares = np.zeros(max(len(floats), 1), np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            self._loops["running_squares"](self._offsets(rows.counted), np.ascontiguousarray(floats), squares)
        divisors = rows.counts if function.endswith("_pop") else rows.counts - 1
        variances = squares[rows.lasts] / np.maximum(divisors, 1)
        with np.errstate(invalid="ignore"):
            values = variances if function.startswith("var") else np.sqrt(variances)
        return Vector(FLOAT, values, some(divisors < 1))

    # --- value by value ------------------------------------------------------------------------------------------

    def _value_by_value(self, aggregate: ir.Aggregate) -> Vector:
        """What the interpreter makes of the values of the parts in each row; once for points with the same rows."""
        counted = self.matches.counted(aggregated_variable(aggregate))
        rows = self._rows(aggregate, counted)
        strings = self.matches.columns.strings
        inner, columns = _with_slots(aggregate), list[list[Any]]()
        for part in _parts(aggregate):
            columns.append(plain_values_of(self.in_rows(part, counted), strings))
        numbers = np.where(rows.counts > 0, rows.end, 0)
        ends, places = np.unique(numbers, return_inverse=True)
        begins = np.zeros(len(ends), np.int64)
        begins[places] = np.where(rows.counts > 0, rows.begin, 0)
        found = []
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            self.matches.columns.check_time()
            try:
                found.append(aggregate_of_rows(inner, [AtPoint(columns, row) for row in range(begin, end)]))
            except ExecutionError:
                raise NoColumnFormError from None
        return of_plain(found, type_of(aggregate), strings).at(places)


def _without_nulls(counted: Counted, values: Vector) -> tuple[Counted, Vector]:
    if values.is_null is None:
        return counted, values
    return counted.kept(values.is_known), Vector(values.type, values.values[values.is_known])


def averages(aggregate: ir.Aggregate, sums: Vector, counts: Array) -> Vector:
    """The sums divided by the counts, as `average_of` does it; of no values the sum is NULL."""
    divisors = np.maximum(counts, 1)
    if not is_exact_average(aggregate):
        floats, is_inexact = floats_of(sums.values, aggregate.argument.type)
        return Vector(type_of(aggregate), floats / divisors, sums.is_null, either(sums.is_bad, is_inexact))
    source, target = aggregate.argument.type, aggregate.type
    assert isinstance(source, DecimalType)
    assert isinstance(target, DecimalType)
    power = np.full(len(divisors), 10 ** (target.scale - source.scale), np.int64)
    wide, is_wide = multiplied(sums.values, power)
    whole, left = np.divmod(np.abs(wide), divisors)
    rounded = whole + (2 * left >= divisors)
    return Vector(target, np.where(wide < 0, -rounded, rounded), sums.is_null, either(sums.is_bad, is_wide))


def _parts(aggregate: ir.Aggregate) -> list[ir.Expr]:
    """What is evaluated in each row."""
    order = (key.operand for key in aggregate.order)
    condition = () if aggregate.condition is None else (aggregate.condition,)
    return [aggregate.argument, *aggregate.others, *condition, *order]


def _with_slots(aggregate: ir.Aggregate) -> ir.Aggregate:
    """The aggregate over the numbers of its parts."""
    slots = {id(part): ir.Attribute(None, str(at), type=part.type) for at, part in enumerate(_parts(aggregate))}

    def changed(part: ir.Expr) -> ir.Expr:
        return ir.with_children(part, changed) if isinstance(part, ir.OrderKey) else slots[id(part)]

    found = ir.with_children(aggregate, changed)
    assert isinstance(found, ir.Aggregate)
    return found

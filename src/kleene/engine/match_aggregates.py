"""Aggregates over the rows of many matches at once, on arrays; the values are those of the interpreter.

What cannot be done so, or could be an error, is left to the interpreter, match by match.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.conversions import type_of
from kleene.engine.compiled.arithmetic import EXACT_IN_FLOAT
from kleene.engine.compiled.columns import IS_BAD, Array, Dictionary, attribute_array, computed_array
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.compiled.loading import SharedLoops
from kleene.engine.output import arrow_field, arrow_numbers, arrow_values, taken
from kleene.ir import expr as ir
from kleene.ir.aggregates import aggregated_variable
from kleene.schema import BOOLEAN, FLOAT, LARGEST_INTEGER, STRING, DecimalType, EventSchema, OpaqueType, Type

_SPREADS = ("stddev", "stddev_pop", "var_samp", "var_pop")
_TAKING = ("any_value", "max", "max_by", "min", "min_by")
"""Functions whose value is that of one row."""
_COLLECTING = ("array_agg", "collect_list", "collect_set")
_AT_ONCE = (*_TAKING, *_COLLECTING, *_SPREADS, "avg", "bool_and", "bool_or", "count", "count_if", "sum")


class OneByOneError(Exception):
    """The aggregate must be computed match by match."""


@dataclass(frozen=True, slots=True)
class RowsOfMatches:
    """Rows of all matches, one after the other: those of match m are rows[offsets[m]:offsets[m + 1]]."""

    rows: Array
    offsets: Array

    @property
    def lengths(self) -> Array:
        lengths: Array = np.diff(self.offsets)
        return lengths

    @property
    def matches(self) -> Array:
        """Of each row, the number of its match."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)

    @property
    def firsts(self) -> Array:
        """The place of the first row of each match that has rows."""
        firsts: Array = self.offsets[:-1][self.lengths > 0]
        return firsts

    def kept(self, is_kept: Array) -> RowsOfMatches:
        before = np.concatenate([[0], np.cumsum(is_kept)])
        return RowsOfMatches(self.rows[is_kept], before[self.offsets])


@dataclass(frozen=True, slots=True)
class Values:
    """The value of each match as a kernel holds it, and where it is NULL; strings are codes of the dictionary."""

    values: Array
    is_null: Array
    dictionary: Dictionary

    def plain(self, type_: Type) -> list[Any]:
        known: list[Any] = self.values.tolist()
        if type_ == BOOLEAN:
            known = list(map(bool, known))
        elif type_ == STRING:
            strings = self.dictionary.strings
            known = [strings[code] if not null else None for code, null in zip(known, self.is_null, strict=True)]
        return [None if null else value for value, null in zip(known, self.is_null, strict=True)]


class MatchAggregates:
    """Aggregates over the matches in a table; `rows_of` gives the rows of a variable, `order` their positions."""

    def __init__(
        self,
        table: pa.Table,
        schema: EventSchema,
        order: Array,
        rows_of: Callable[[str | None], RowsOfMatches],
        loops: SharedLoops,
    ) -> None:
        self._table, self._schema, self._order, self._rows_of, self._loops = table, schema, order, rows_of, loops
        self._attributes: dict[str, tuple[Array, Array, Dictionary]] = {}

    def column(self, aggregate: ir.Aggregate) -> pa.Array:
        """The aggregate of every match; OneByOneError if it must be computed match by match."""
        if aggregate.function in _COLLECTING:
            return self._lists(aggregate)
        target = arrow_field(aggregate, self._table.schema).type
        if aggregate.function in _TAKING and isinstance(aggregate.argument, ir.Attribute):
            rows = self._row_of_each(aggregate)
            positions = self._order[rows] if len(rows) else rows
            return taken(self._table, aggregate.argument.name, pa.array(positions, pa.int64(), mask=rows < 0))
        found, type_ = self.values(aggregate), type_of(aggregate)
        if type_ == STRING:
            codes = pa.array(found.values, pa.int64(), mask=found.is_null)
            return pa.array(found.dictionary.strings, pa.string()).take(codes)
        if isinstance(type_, DecimalType):
            return arrow_values(found.plain(type_), type_, target)
        return arrow_numbers(found.values, found.is_null, type_, target)

    def values(self, aggregate: ir.Aggregate) -> Values:
        """The same as numbers of a kernel."""
        function, argument = aggregate.function, aggregate.argument
        if function in _COLLECTING:
            raise OneByOneError
        if function in _TAKING:
            rows = self._row_of_each(aggregate)
            is_null = rows < 0
            here = RowsOfMatches(rows[~is_null], np.concatenate([[0], np.cumsum(~is_null)]))
            values, unknown, dictionary = self._evaluated(argument, here)
            return _spread_out(values, is_null, dictionary, unknown)
        rows_, values, dictionary = self._known(aggregate)
        lengths, none = rows_.lengths, rows_.lengths == 0
        never = np.zeros(len(lengths), np.bool_)
        match function:
            case "count":
                return Values(lengths, never, dictionary)
            case "count_if":
                return Values(rows_.kept(values == 1).lengths, never, dictionary)
            case "bool_and" | "bool_or":
                best = (np.minimum if function == "bool_and" else np.maximum).reduceat(values, rows_.firsts)
                return _spread_out(best, none, dictionary)
            case "sum":
                return Values(self._sums(rows_, values, argument), none, dictionary)
            case "avg" if isinstance(argument.type, DecimalType):
                raise OneByOneError  # exact, in as many digits as it takes
            case "avg":
                sums = self._as_floats(self._sums(rows_, values, argument), argument)
                return Values(sums / np.maximum(lengths, 1), none, dictionary)
        assert function in _SPREADS
        squares = np.zeros(len(lengths), np.float64)
        with np.errstate(invalid="ignore", over="ignore"):  # of infinite numbers
            self._loops["squares_of_distances"](rows_.offsets, self._as_floats(values, argument), squares)
        divisors = lengths if function.endswith("_pop") else lengths - 1
        variances = squares / np.maximum(divisors, 1)
        return Values(variances if function.startswith("var") else np.sqrt(variances), divisors < 1, dictionary)

    # --- rows and their values -----------------------------------------------------------------------------------

    def _counted_rows(self, aggregate: ir.Aggregate) -> RowsOfMatches:
        """The rows that the aggregate is about."""
        beyond = (ir.Classifier, ir.MatchNumber, ir.PythonCall)
        inside = (ir.walk(part) for part in ir.children(aggregate))
        if aggregate.function not in _AT_ONCE or aggregate.order:
            raise OneByOneError
        if any(isinstance(node, beyond) for nodes in inside for node in nodes):
            raise OneByOneError
        rows = self._rows_of(aggregated_variable(aggregate))
        if aggregate.condition is not None:
            values, unknown, _ = self._evaluated(aggregate.condition, rows)
            rows = rows.kept((values == 1) & ~unknown)
        return rows

    def _known(self, aggregate: ir.Aggregate) -> tuple[RowsOfMatches, Array, Dictionary]:
        """The rows where the argument is not NULL, or the first of each of its values, and these values."""
        rows = self._counted_rows(aggregate)
        if aggregate.others:
            raise OneByOneError
        if isinstance(aggregate.argument, ir.Events):
            return rows, rows.rows, Dictionary()
        values, unknown, dictionary = self._evaluated(aggregate.argument, rows)
        rows, values = rows.kept(~unknown), values[~unknown]
        if aggregate.distinct or aggregate.function == "collect_set":
            is_first = _is_first(rows, values)
            rows, values = rows.kept(is_first), values[is_first]
        return rows, values, dictionary

    def _row_of_each(self, aggregate: ir.Aggregate) -> Array:
        """Of each match the row whose value is the aggregate's; -1 where there is none."""
        rows, function = self._counted_rows(aggregate), aggregate.function
        is_by = function.endswith("_by")
        if len(aggregate.others) > int(is_by):
            raise OneByOneError
        key = aggregate.others[0] if is_by else aggregate.argument
        if is_by and not isinstance(aggregate.argument, ir.Attribute):
            self._evaluated(aggregate.argument, rows)  # an error in any row is one
        values, unknown, dictionary = self._evaluated(key, rows)
        if function != "any_value":
            if isinstance(type_of(key), OpaqueType):
                raise OneByOneError
            if type_of(key) == STRING:
                values = dictionary.ranks()[values]
            unknown = unknown | (values != values)  # NaN is neither small nor large
        rows, values = rows.kept(~unknown), values[~unknown]
        places = rows.firsts
        if function != "any_value" and len(places):
            best = (np.minimum if function.startswith("min") else np.maximum).reduceat(values, places)
            is_best = np.flatnonzero(values == np.repeat(best, rows.lengths[rows.lengths > 0]))
            places = is_best[np.searchsorted(is_best, places)]
        found = np.full(len(rows.lengths), -1, np.int64)
        found[rows.lengths > 0] = rows.rows[places]
        return found

    def _evaluated(self, expression: ir.Expr, rows: RowsOfMatches) -> tuple[Array, Array, Dictionary]:
        """The expression's value in each of the rows, and where it is NULL."""
        positions = self._order[rows.rows] if len(rows.rows) else rows.rows
        try:
            if isinstance(expression, ir.Attribute):
                values, mask, dictionary = self._attribute(expression.name)
                return values[positions], mask[positions] != 0, dictionary
            return self._computed(expression, positions)
        except GaveUpError:
            raise OneByOneError from None

    def _attribute(self, name: str) -> tuple[Array, Array, Dictionary]:
        if name not in self._attributes:
            dictionary = Dictionary()
            values, mask = attribute_array(self._table, name, self._schema.type_of(name), dictionary)
            mask = mask if len(mask) else np.zeros(len(values), np.uint8)
            self._attributes[name] = values, mask, dictionary
        return self._attributes[name]

    def _computed(self, expression: ir.Expr, positions: Array) -> tuple[Array, Array, Dictionary]:
        used, places = np.unique(positions, return_inverse=True)
        names = sorted({node.name for node in ir.walk(expression) if isinstance(node, ir.Attribute)})
        types = {name: self._schema.type_of(name) for name in names}
        dictionary, part = Dictionary(), self._table.select(names).take(pa.array(used, pa.int64()))
        if not names:  # a constant
            part = pa.table({"": pa.nulls(len(used))})
        values, mask = computed_array(expression, part, types, dictionary, {})
        if (mask == IS_BAD).any():
            raise OneByOneError
        return values[places], mask[places] != 0, dictionary

    # --- numbers -------------------------------------------------------------------------------------------------

    def _sums(self, rows: RowsOfMatches, values: Array, argument: ir.Expr) -> Array:
        """The sum of each match, from left to right; whole numbers only where none can be too large on the way."""
        if argument.type == FLOAT:
            sums = np.zeros(len(rows.lengths), np.float64)
            with np.errstate(invalid="ignore", over="ignore"):
                self._loops["sums_of_floats"](rows.offsets, np.ascontiguousarray(values, np.float64), sums)
            return sums
        sums = np.zeros(len(rows.lengths), np.int64)
        if len(values):
            largest = max(abs(int(values.max())), abs(int(values.min())))
            if largest * int(rows.lengths.max()) > LARGEST_INTEGER:
                raise OneByOneError
            sums[rows.lengths > 0] = np.add.reduceat(values, rows.firsts)
        return sums

    def _as_floats(self, numbers: Array, argument: ir.Expr) -> Array:
        if isinstance(argument.type, DecimalType):
            if len(numbers) and max(abs(int(numbers.max())), abs(int(numbers.min()))) > EXACT_IN_FLOAT:
                raise OneByOneError
            if argument.type.scale > 22:  # the power of ten is not exact
                raise OneByOneError
            return np.ascontiguousarray(numbers / float(10**argument.type.scale), np.float64)
        return np.ascontiguousarray(numbers, np.float64)

    # --- arrays --------------------------------------------------------------------------------------------------

    def _lists(self, aggregate: ir.Aggregate) -> pa.Array:
        argument = aggregate.argument
        if not isinstance(argument, ir.Attribute):
            raise OneByOneError
        if aggregate.function == "array_agg" and not aggregate.distinct:
            rows = self._counted_rows(aggregate)
        elif aggregate.function == "array_agg" or isinstance(type_of(argument), OpaqueType):
            raise OneByOneError
        else:
            rows, _, _ = self._known(aggregate)
        if len(rows.rows) > 2**31 - 1:
            raise OneByOneError
        positions = self._order[rows.rows] if len(rows.rows) else rows.rows
        values = taken(self._table, argument.name, pa.array(positions, pa.int64()))
        is_null = (rows.lengths == 0) & (aggregate.function == "array_agg")
        return pa.ListArray.from_arrays(pa.array(rows.offsets, pa.int32()), values, mask=pa.array(is_null, pa.bool_()))


def _spread_out(known: Array, is_null: Array, dictionary: Dictionary, unknown: Array | None = None) -> Values:
    """The values of the matches that have one, in the places of these matches."""
    values = np.zeros(len(is_null), known.dtype)
    values[~is_null] = known
    if unknown is not None:
        is_null = is_null.copy()
        is_null[~is_null] = unknown
    return Values(values, is_null, dictionary)


def _is_first(rows: RowsOfMatches, values: Array) -> Array:
    """Whether no earlier row of the match has the value; NaN is the same as NaN."""
    own, codes = np.unique(values, return_inverse=True)
    _, firsts = np.unique(rows.matches * max(len(own), 1) + codes, return_index=True)
    found = np.zeros(len(values), np.bool_)
    found[firsts] = True
    return found

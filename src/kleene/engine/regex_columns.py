"""Matches of the regular-expression operator to tables, column by column.

Outputs that are a register of the match are read off it. What they are combined to is computed for all matches at once,
as measures of row patterns are; what has no column form, by the interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.conversions import type_of
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.by_column.aggregates import averages
from kleene.engine.by_column.forms import REGISTERED
from kleene.engine.by_column.matches import Columns, InTable
from kleene.engine.by_column.numbers import arithmetic
from kleene.engine.by_column.operators import Strings
from kleene.engine.by_column.vectors import NoColumnFormError, Vector, arrow_array, either, kind_of, some
from kleene.engine.compiled.arrays.partial_matches import PARTIAL_NULLS
from kleene.engine.compiled.arrays.regex_matches import REGEX_MATCH_END
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.own_calls import state_of
from kleene.engine.compiled.regex_engine import FoundRegex
from kleene.engine.compiled.registers import Register
from kleene.engine.compiled.row_search import ranges_of
from kleene.engine.events import Events, decoded
from kleene.engine.match_order import RowOrder, RowPlaces
from kleene.engine.output import arrow_field, as_schema, computed_column, values_at
from kleene.engine.row_output import row_output_schema
from kleene.ir import expr as ir
from kleene.ir.calls import finished
from kleene.ir.evaluate import PlainValue, average_of, evaluate, in_range
from kleene.schema import Type


def regex_table(
    query: AnalyzedRowPattern, found: FoundRegex, row_order: RowOrder | None = None
) -> tuple[pa.Table, Array]:
    """A row for each match, in the order of the events that complete them, and the positions of these."""
    outputs = _Outputs(query, found)
    columns = [outputs.column(measure.expression) for measure in query.measures]
    table = as_schema(columns, row_output_schema(query, found.table.schema))
    if row_order is not None:
        nothing = np.zeros(table.num_rows, np.int64)
        table = row_order.appended(table, found.table, RowPlaces(outputs.ends, outputs.ends, nothing, nothing))
    order = np.argsort(outputs.ends, kind="stable")
    return table.take(pa.array(order)), outputs.ends[order]


class _Outputs:
    def __init__(self, query: AnalyzedRowPattern, found: FoundRegex) -> None:
        assert query.schema is not None
        self.found, ends = found, found.rows()[:, REGEX_MATCH_END]
        self.ends: Array = found.grouped.order[ends] if len(ends) else ends
        self.events = Events(found.table, query.schema, ())
        self.last_events = Events(found.table.take(pa.array(self.ends)), query.schema, ())
        strings = Strings(found.dictionary.strings)
        self._columns = Columns(query, self.last_events.table, strings=strings)
        self._plain: dict[Register, list[PlainValue]] = {}

    def column(self, expression: ir.Expr) -> pa.Array | pa.ChunkedArray:
        match expression:
            case ir.Attribute(name=name):
                return decoded(self.last_events.table.column(name))
            case ir.Aggregate(function="collect", argument=ir.Attribute(name=name)):
                return self._collected(name)
        try:
            return self._by_column(expression)
        except (NoColumnFormError, RecursionError):  # the interpreter can nest deeper
            values = [evaluate(expression, _Measured(self, number)) for number in range(self.found.matches)]
            return computed_column(expression, values, self.found.table.schema)

    def _by_column(self, expression: ir.Expr) -> pa.Array:
        """The output of all matches at once; the rest is left to the interpreter."""
        vector = self._columns.operators(self.found.matches, self._leaf).value(expression)
        if vector.kind == "o" or (vector.is_bad is not None and vector.is_bad.any()):
            raise NoColumnFormError
        target = arrow_field(expression, self.found.table.schema).type
        return arrow_array(vector, target, self._columns.strings)

    def _leaf(self, expression: ir.Expr) -> Vector:
        """The values of the completing events, and of aggregates in the registers of the matches."""
        match expression:
            case ir.Attribute() | ir.PythonCall():
                return InTable(self._columns).leaf(expression)
            case ir.Aggregate(function=function, argument=argument, own=None) if function in REGISTERED:
                registers = self.found.kernel.generated.measured[expression]
                type_ = type_of(expression)
                if function == "avg":
                    sums = self._vector(registers[0], type_of(argument))
                    return averages(expression, sums, self._register(registers[1])[0])
                if function == "delta":
                    now = self._columns.operators(self.found.matches, self._leaf).value(argument)
                    return self._less(now, self._vector(registers[0], type_of(argument)), type_)
                return self._vector(registers[0], type_)
        raise NoColumnFormError

    def _vector(self, register: Register, type_: Type) -> Vector:
        values, is_null = self._register(register)
        if kind_of(type_) == "o":
            raise NoColumnFormError
        return Vector(type_, values != 0 if kind_of(type_) == "b" else np.ascontiguousarray(values), some(is_null))

    def _less(self, now: Vector, then: Vector, type_: Type) -> Vector:
        values, _, is_wide = arithmetic("-", now.values, then.values)
        return Vector(type_, values, either(now.is_null, then.is_null), either(now.is_bad, then.is_bad, is_wide))

    def _collected(self, name: str) -> pa.Array:
        """The values of all events of each match."""
        _, first, last = self.found.rows().T
        rows = ranges_of(first, last + 1)
        positions = self.found.grouped.order[rows] if len(first) else first
        offsets = np.concatenate([[0], np.cumsum(last + 1 - first)])
        return pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), values_at(self.found.table.column(name), positions)
        )

    def _register(self, register: Register) -> tuple[Array, Array]:
        """The register's values in all matches, and where it is NULL."""
        partial, registers, count = self.found.partial, self.found.kernel.generated.registers, self.found.matches
        which, column = registers.place(register)
        is_null = np.zeros(count, np.bool_)
        if register.function not in ("count", "known") and not register.function.startswith("state_"):
            is_null = (partial.oi[:count, PARTIAL_NULLS] >> registers.null_bit(register)) & 1 == 1
        return (partial.of if which == "f" else partial.oi)[:count, column], is_null

    def plain(self, register: Register) -> list[PlainValue]:
        """The same as plain values."""
        if register not in self._plain:
            values, is_null = self._register(register)
            known: list[Any] = values.tolist()
            if register.kind == "b":
                known = list(map(bool, known))
            elif register.kind == "s":
                strings = self.found.dictionary.strings
                known = [None if null else strings[code] for code, null in zip(known, is_null, strict=True)]
            self._plain[register] = [None if null else value for value, null in zip(known, is_null, strict=True)]
        return self._plain[register]


@dataclass(frozen=True, slots=True)
class _Measured:
    """What an output is evaluated for: the completing event, and the registers of the match with it."""

    outputs: _Outputs
    number: int

    def value(self, expression: ir.Expr) -> Any:
        found = self.outputs.found
        match expression:
            case ir.Attribute(name=name):
                return self.outputs.last_events.values(name)[self.number]
            case ir.Aggregate(function="collect", argument=argument):
                _, first, last = found.rows()[self.number]
                positions = found.grouped.order[first : last + 1].tolist()
                return [evaluate(argument, _Event(self.outputs.events, position)) for position in positions]
            case ir.Aggregate(function=function, argument=argument):
                registers = found.kernel.generated.measured[expression]
                values: list[Any] = [self.outputs.plain(register)[self.number] for register in registers]
                if expression.own is not None:
                    state = state_of(expression, found.kernel.generated.layout.plain)
                    known = values[0] is not None
                    return finished(expression.own, state.value(values), expression.type) if known else None
                if function == "avg":
                    return None if values[0] is None else average_of(expression, values[0], values[1])
                if function == "delta":
                    now = evaluate(argument, self)
                    return None if values[0] is None or now is None else in_range(now - values[0], expression)
                return values[0]
        raise AssertionError(f"no rule to evaluate {type(expression).__name__}")


@dataclass(frozen=True, slots=True)
class _Event:
    """A collected event."""

    events: Events
    position: int

    def value(self, expression: ir.Expr) -> Any:
        assert isinstance(expression, ir.Attribute)
        return self.events.values(expression.name)[self.position]

"""Matches of the regular-expression operator to the table of their outputs, column by column.

Outputs that are an attribute of the completing event, or an aggregate that is a register, are read off the arrays of
the matches; others are computed by the interpreter, match by match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.analysis.value_types import type_of
from kleene.engine.compiled.arrays.partial_matches import PARTIAL_NULLS
from kleene.engine.compiled.arrays.regex_matches import REGEX_MATCH_END
from kleene.engine.compiled.columns import Array, Dictionary
from kleene.engine.compiled.regex_engine import FoundRegex
from kleene.engine.compiled.registers import Register, Registers
from kleene.engine.events import decoded, plain_values
from kleene.engine.output import arrow_field, arrow_numbers, as_type, computed_column
from kleene.engine.row_output import row_output_schema
from kleene.ir import expr as ir
from kleene.ir.evaluate import PlainValue, average_of, evaluate, in_range
from kleene.schema import STRING, DecimalType

_REGISTERED = ("count", "first", "last", "max", "min", "sum")


def regex_table(query: AnalyzedRowPattern, found: FoundRegex) -> pa.Table:
    """A row for each match, in the order of the events that complete them."""
    outputs = _Outputs(query, found)
    columns = [outputs.column(measure.expression) for measure in query.measures]
    schema = row_output_schema(query, found.table.schema)
    arrays = [as_type(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema).take(pa.array(np.argsort(outputs.ends, kind="stable")))


class _Outputs:
    def __init__(self, query: AnalyzedRowPattern, found: FoundRegex) -> None:
        self._query, self._found = query, found
        ends = found.rows()[:, REGEX_MATCH_END]
        self.ends: Array = found.grouped.order[ends] if len(ends) else ends
        self._last_events = found.table.take(pa.array(self.ends))
        self._ending: dict[str, list[PlainValue]] = {}
        self._collected = _Collected(query, found)

    def column(self, expression: ir.Expr) -> pa.Array:
        target = arrow_field(expression, self._found.table.schema).type
        match expression:
            case ir.Attribute(name=name):
                whole = decoded(self._last_events.column(name)).combine_chunks()
                return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
            case ir.Aggregate(function=function) if function in _REGISTERED:
                (register,) = self._found.kernel.generated.measured[expression]
                if not isinstance(type_of(expression), DecimalType):
                    return self._register(register, expression, target)
        values = [
            evaluate(expression, _Measured(self._found, number, self, self._collected))
            for number in range(self._found.matches)
        ]
        return computed_column(expression, values, self._found.table.schema)

    def _register(self, register: Register, expression: ir.Expr, target: pa.DataType) -> pa.Array:
        found, registers = self._found, self._found.kernel.generated.registers
        which, column = registers.place(register)
        arrays = found.partial.of if which == "f" else found.partial.oi
        values = arrays[: found.matches, column]
        is_null = np.zeros(found.matches, np.bool_)
        if register.function not in ("count", "known"):
            is_null = (found.partial.oi[: found.matches, PARTIAL_NULLS] >> registers.null_bit(register)) & 1 == 1
        if type_of(expression) == STRING:
            return pa.array(found.dictionary.strings, pa.string()).take(pa.array(values, pa.int64(), mask=is_null))
        return arrow_numbers(values, is_null, type_of(expression), target)

    def ending(self, name: str, number: int) -> PlainValue:
        """The attribute of the event that completes the match."""
        if name not in self._ending:
            assert self._query.schema is not None
            type_ = self._query.schema.type_of(name)
            self._ending[name] = plain_values(self._last_events.column(name), type_, name)
        return self._ending[name][number]


class _Collected:
    """The events of a match, for Collect."""

    def __init__(self, query: AnalyzedRowPattern, found: FoundRegex) -> None:
        self._query, self._found = query, found
        self._columns: dict[str, list[PlainValue]] = {}

    def column(self, name: str) -> list[PlainValue]:
        assert self._query.schema is not None
        if name not in self._columns:
            type_ = self._query.schema.type_of(name)
            self._columns[name] = plain_values(self._found.table.column(name), type_, name)
        return self._columns[name]

    def values(self, argument: ir.Expr, number: int) -> list[Any]:
        _, first, last = self._found.rows()[number]
        positions = self._found.grouped.order[first : last + 1].tolist()
        names = {node.name for node in ir.walk(argument) if isinstance(node, ir.Attribute)}
        columns = {name: self.column(name) for name in names}
        return [evaluate(argument, _Event(columns, position)) for position in positions]


@dataclass(frozen=True, slots=True)
class _Event:
    columns: Mapping[str, Sequence[PlainValue]]
    position: int

    def value(self, expression: ir.Expr) -> Any:
        assert isinstance(expression, ir.Attribute)
        return self.columns[expression.name][self.position]


@dataclass(frozen=True, slots=True)
class _Measured:
    """What an output is evaluated for: the completing event, and the registers of the match with it."""

    found: FoundRegex
    number: int
    outputs: _Outputs
    collected: _Collected

    def value(self, expression: ir.Expr) -> Any:
        match expression:
            case ir.Attribute(name=name):
                return self.outputs.ending(name, self.number)
            case ir.Aggregate(function="collect", argument=argument):
                return self.collected.values(argument, self.number)
            case ir.Aggregate(function=function, argument=argument):
                registers = self.found.kernel.generated.measured[expression]
                values = [self._register(register) for register in registers]
                if function == "avg":
                    return None if values[0] is None else average_of(expression, values[0], values[1])
                if function == "delta":
                    now = evaluate(argument, self)
                    return None if values[0] is None or now is None else in_range(now - values[0], expression)
                return values[0]
        raise AssertionError(f"no rule to evaluate {type(expression).__name__}")

    def _register(self, register: Register) -> Any:
        return register_value(
            register,
            self.found.kernel.generated.registers,
            self.found.partial.oi[self.number],
            self.found.partial.of[self.number],
            self.found.dictionary,
        )


def register_value(
    register: Register, registers: Registers, integers: Array, floats: Array, dictionary: Dictionary
) -> Any:
    """The plain value of a register, given its partial match's two rows."""
    which, column = registers.place(register)
    if register.function not in ("count", "known") and (integers[PARTIAL_NULLS] >> registers.null_bit(register)) & 1:
        return None
    if which == "f":
        return float(floats[column])
    value = int(integers[column])
    if register.kind == "s":
        return dictionary.strings[value]
    return bool(value) if register.kind == "b" else value

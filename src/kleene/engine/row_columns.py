"""Matches of row patterns, and of the regular-expression operator, to tables, column by column.

Measures that are a value of one of the match's rows, a number or the classification are read off the arrays of the
matches, most aggregates are computed for all matches at once, and those that are a register are read off it; others
are computed by the interpreter, match by match.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.conversions import type_of
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.arrays.partial_matches import PARTIAL_NULLS
from kleene.engine.compiled.arrays.regex_matches import REGEX_MATCH_END
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import SharedLoops, shared_loops
from kleene.engine.compiled.own_calls import state_of
from kleene.engine.compiled.regex_engine import FoundRegex
from kleene.engine.compiled.registers import Register
from kleene.engine.compiled.row_search import FoundRows, numbered
from kleene.engine.events import Events, decoded
from kleene.engine.match_aggregates import MatchAggregates, OneByOneError, RowsOfMatches
from kleene.engine.match_order import RowOrder, RowPlaces
from kleene.engine.output import arrow_field, arrow_numbers, as_schema, computed_column, values_at
from kleene.engine.row_output import row_output_schema
from kleene.engine.row_reference import RowBindings, Visible
from kleene.ir import expr as ir
from kleene.ir.calls import finished
from kleene.ir.evaluate import PlainValue, average_of, evaluate, in_range
from kleene.ir.options import Selection
from kleene.schema import STRING, DecimalType

# --- ONE ROW PER MATCH -----------------------------------------------------------------------------------------------


def one_row_table(
    query: AnalyzedRowPattern, found: FoundRows, row_order: RowOrder | None = None, among_equals: Array | None = None
) -> tuple[pa.Table, Array]:
    """The table of matches in output order, and the number of the match that each of its rows stands for.

    With `row_order`, the table says where its rows stand; `among_equals` are the places of rows among equal ones.
    """
    measures = _Measures(query, found)
    order = measures.put_in_order()
    columns = [measures.taken(name, found.matches.starts) for name in query.partition_columns]
    columns += [measures.column(measure.expression) for measure in query.measures]
    table = as_schema(columns, row_output_schema(query, found.table.schema))
    if row_order is not None:
        table = row_order.appended(table, found.table, measures.places(among_equals))
    return table, order


def window_columns(query: AnalyzedRowPattern, found: FoundRows) -> tuple[list[pa.Array], Array]:
    """The measures of each match; and of each row that is decided, the number of its match, or -1."""
    measures = _Measures(query, found)
    matched = np.full(len(found.grouped), -1)
    matched[found.matches.of_rows] = np.arange(len(found.matches))
    return [measures.column(measure.expression) for measure in query.measures], matched[found.decided]


_FEW = 16
"""Where there are so many times as many rows as matches, sorting the matches is quicker than going through the rows."""


def output_order(places: RowPlaces, rows: int, loops: SharedLoops) -> Array:
    """The numbers of matches by the last row, then the first, then the number."""
    last = places.last
    if (last[1:] > last[:-1]).all():
        return np.arange(len(last))
    if len(last) * _FEW > rows:
        order = np.empty(len(last), np.int64)
        if loops["order_by_place"](last, np.full(rows, -1), order) == len(last):
            return order
    return np.asarray(np.lexsort((places.numbers, places.first, last)))


class _Measures:
    def __init__(self, query: AnalyzedRowPattern, found: FoundRows) -> None:
        assert query.schema is not None
        self._query, self._found, self._loops = query, found, shared_loops(found.kernel.jit)
        self._matches, self._tables = found.matches, found.kernel.generated.tables
        self._lengths = np.diff(self._matches.offsets)
        self._numbers = numbered(found, query.definition.selection is Selection.ALL_MATCHES)
        self._names = np.array([self._tables.variables[n] for n in self._tables.variable_of] or [""], object)
        self._events = Events(found.table, query.schema, ())
        self._rows_of_variable: dict[str | None, RowsOfMatches] = {}
        self._aggregates = MatchAggregates(
            found.table, query.schema, found.grouped.order, self._rows_of_matches, self._loops
        )
        self._order: Array | slice = slice(None)  # the matches, by number, as columns have them

    def put_in_order(self) -> Array:
        """From now on columns have the matches in output order, by the last row, then the first, then the number."""
        self._order = output_order(self.places(), self._found.table.num_rows, self._loops)
        return self._order

    def places(self, among_equals: Array | None = None) -> RowPlaces:
        """Where the matches stand; `among_equals` are the places of the table's rows among equal ones."""
        row_order = self._found.grouped.order
        starts = self._matches.starts[self._order]
        ends = starts + np.maximum(self._lengths[self._order], 1) - 1
        first = row_order[starts]
        equals = None if among_equals is None else among_equals[first]
        return RowPlaces(row_order[ends], first, self._numbers[self._order], np.zeros(len(ends), np.int64), equals)

    def column(self, expression: ir.Expr) -> pa.Array:
        match expression:
            case ir.InputConstant(name=name):
                return self.taken(name, self._matches.starts)
            case ir.Attribute(variable=variable, name=name):
                return self.taken(name, self._rows(variable, True, 0))
            case ir.Navigation(argument=ir.Attribute(name=name), variable=variable):
                rows = self._rows(variable, expression.from_last, expression.offset)
                return self.taken(name, self._shifted(rows, expression.shift or 0))
            case ir.MatchNumber():
                return pa.array(self._numbers[self._order], pa.int64())
            case ir.Aggregate(function="count", argument=ir.Events(variable=variable), is_plain=True):
                return pa.array(self._count(variable)[self._order], pa.int64())
            case ir.Classifier(variable=None):
                ends = np.where(self._lengths > 0, self._matches.offsets[1:] - 1, -1)
                return self._named(ends[self._order])
        found = self._as_found(expression)
        return found if isinstance(self._order, slice) else found.take(pa.array(self._order))

    def _as_found(self, expression: ir.Expr) -> pa.Array:
        """The values of the matches in the order in which they were found."""
        match expression:
            case ir.Aggregate(
                function="array_agg", distinct=False, argument=ir.Classifier(variable=None), is_plain=True
            ):
                names = self._named(np.arange(len(self._matches.states)))
                offsets = pa.array(self._matches.offsets, pa.int32())
                return pa.ListArray.from_arrays(offsets, names, mask=pa.array(self._lengths == 0))
            case ir.Aggregate():
                with suppress(OneByOneError):
                    return self._aggregates.column(expression)
        return computed_column(expression, list(self._values(expression)), self._found.table.schema)

    def taken(self, name: str, rows: Array) -> pa.Array:
        """The column's values in the rows of the matches; NULL for row -1."""
        rows = rows[self._order]
        places = self._found.grouped.positions(rows)
        return values_at(self._found.table.column(name), places)

    def _wanted(self, variable: str) -> Array:
        members = self._query.members[variable]
        return np.array([int(name in members) for name in self._names], np.int64)

    def _rows_of_matches(self, variable: str | None) -> RowsOfMatches:
        """The rows of the variable, or of all, in every match."""
        if variable not in self._rows_of_variable:
            starts, offsets = self._matches.starts, self._matches.offsets
            rows = np.repeat(starts - offsets[:-1], self._lengths) + np.arange(len(self._matches.states))
            own = RowsOfMatches(rows, offsets)
            if variable is not None:
                own = own.kept(self._wanted(variable)[self._matches.states] == 1)
            self._rows_of_variable[variable] = own
        return self._rows_of_variable[variable]

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
        begins, ends = self._visible()
        moved = rows + shift
        return np.where((rows >= 0) & (moved >= begins) & (moved < ends), moved, -1)

    def _visible(self) -> tuple[Array, Array]:
        """Of each match, the first row that its measures may see, and the row behind the last."""
        if self._query.frame is not None:
            return self._matches.of_rows, self._found.frame_ends[self._matches.of_rows]
        return self._found.begins[self._matches.groups], self._found.ends[self._matches.groups]

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

    def _values(self, expression: ir.Expr) -> Iterator[Any]:
        """Of each match; those of one partition stand together."""
        matches, members = self._matches, self._query.members
        known, unknown = self._known_parts(expression)
        if not unknown:
            yield from (evaluate(expression, _Known(known, match)) for match in range(len(matches)))
            return
        read = (node for part in unknown for node in ir.walk(part))
        columns = {node.name: self._events.values(node.name) for node in read if isinstance(node, ir.Attribute)}
        visible = np.stack(self._visible(), axis=1)
        for group, numbers in groupby(range(len(matches)), key=matches.groups.__getitem__):
            begin, end = int(self._found.begins[group]), int(self._found.ends[group])
            positions = self._found.grouped.order[begin:end].tolist()
            here = {name: [values[position] for position in positions] for name, values in columns.items()}
            for match in numbers:
                start, length = int(matches.starts[match]) - begin, int(self._lengths[match])
                rows, variables = range(start, start + length), tuple(self._names[matches.states_of(match)])
                number = int(self._numbers[match])
                seen = Visible(*(visible[match] - begin).tolist())
                bindings = RowBindings(here, seen, members, rows, variables, running=length, number=number)
                yield evaluate(expression, _Known(known, match, bindings))

    def _known_parts(self, expression: ir.Expr) -> tuple[dict[int, list[Any]], list[ir.Expr]]:
        """The values of parts of the expression in all matches, by their identity; and the parts that are not known."""
        known: dict[int, list[Any]] = {}
        unknown, unread = list[ir.Expr](), [expression]
        while unread:
            part = unread.pop()
            match part:
                case ir.InputConstant(name=name):
                    known[id(part)] = self._plain(name, self._matches.starts)
                case ir.Attribute(variable=variable, name=name):
                    known[id(part)] = self._plain(name, self._rows(variable, True, 0))
                case ir.Navigation(argument=ir.Attribute(name=name), variable=variable):
                    rows = self._rows(variable, part.from_last, part.offset)
                    known[id(part)] = self._plain(name, self._shifted(rows, part.shift or 0))
                case ir.MatchNumber():
                    known[id(part)] = self._numbers.tolist()
                case ir.Aggregate():
                    try:
                        known[id(part)] = self._aggregates.values(part).plain(type_of(part))
                    except OneByOneError:
                        unknown.append(part)
                case ir.Navigation() | ir.Classifier():
                    unknown.append(part)
                case _:
                    unread += ir.children(part)
        return known, unknown

    def _plain(self, name: str, rows: Array) -> list[Any]:
        """The column's plain values in the rows; None for row -1."""
        values = self._events.values(name)
        positions = np.where(rows < 0, -1, self._found.grouped.order[rows]).tolist() if len(rows) else []
        return [None if position < 0 else values[position] for position in positions]


@dataclass(frozen=True, slots=True)
class _Known:
    """What an expression is evaluated for: parts of it whose values are known in every match, and the match itself."""

    known: dict[int, list[Any]]
    match: int
    bindings: RowBindings | None = None

    def value(self, expression: ir.Expr) -> Any:
        values = self.known.get(id(expression))
        if values is not None:
            return values[self.match]
        assert self.bindings is not None
        return self.bindings.value(expression)


# --- the regular-expression operator ---------------------------------------------------------------------------------

_REGISTERED = ("count", "first", "last", "max", "min", "sum")


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
        self._plain: dict[Register, list[PlainValue]] = {}

    def column(self, expression: ir.Expr) -> pa.Array | pa.ChunkedArray:
        match expression:
            case ir.Attribute(name=name):
                return decoded(self.last_events.table.column(name))
            case ir.Aggregate(function=function) if function in _REGISTERED:
                (register,) = self.found.kernel.generated.measured[expression]
                if not isinstance(type_of(expression), DecimalType):
                    return self._register_column(register, expression)
        values = [evaluate(expression, _Measured(self, number)) for number in range(self.found.matches)]
        return computed_column(expression, values, self.found.table.schema)

    def _register_column(self, register: Register, expression: ir.Expr) -> pa.Array:
        values, is_null = self._register(register)
        if type_of(expression) == STRING:
            return pa.array(self.found.dictionary.strings, pa.string()).take(pa.array(values, pa.int64(), mask=is_null))
        target = arrow_field(expression, self.found.table.schema).type
        return arrow_numbers(values, is_null, type_of(expression), target)

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

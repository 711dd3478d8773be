"""Which rows a match has, and what its expressions see of them: flat arrays to the values of references.

A *place* is where a row of a match stands in the flat array of all their states. A *point* is what a measure is
evaluated for: a match, and the place of its current row, up to which rows count where FINAL does not say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from kleene.analysis.conversions import type_of
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.by_column.operators import Operators, Strings
from kleene.engine.by_column.vectors import NoColumnFormError, Vector, kind_of, of_plain, plain_values_of, some
from kleene.engine.column_types import attribute_type
from kleene.engine.compiled.columns import Array, attribute_array
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.compiled.row_search import FoundRows, numbered
from kleene.engine.events import plain_values
from kleene.engine.vectorized import vectorized_column
from kleene.ir import expr as ir
from kleene.ir.evaluate import vectorized_key
from kleene.ir.options import Selection
from kleene.schema import STRING, Type


class Columns:
    """The columns of a table as vectors, each made once; `check_time` ends what takes too long."""

    def __init__(
        self,
        query: AnalyzedRowPattern,
        table: pa.Table,
        check_time: Callable[[], None] = lambda: None,
        strings: Strings | None = None,
    ) -> None:
        assert query.schema is not None
        self.query, self.table, self.check_time = query, table, check_time
        self.strings = Strings() if strings is None else strings
        self._schema = query.schema
        self._known: dict[str, Vector] = {}

    def operators(self, size: int, leaf: Callable[[ir.Expr], Vector]) -> Operators:
        return Operators(size, leaf, self.strings, self.check_time)

    def attribute(self, name: str) -> Vector:
        if name not in self._known:
            self._known[name] = self._vector(self.table, name, self._schema.type_of(name))
        return self._known[name]

    def called(self, call: ir.PythonCall) -> Vector:
        """What a vectorized function gives for the rows."""
        key = vectorized_key(call)
        if key not in self._known:
            column = vectorized_column(call, self.table, dict(self._schema.attributes))
            type_ = attribute_type(column.type)
            found = self._vector(pa.table({call.name: column}), call.name, type_)
            self._known[key] = self._as_returned(found, type_of(call))
        return self._known[key]

    def _as_returned(self, found: Vector, type_: Type) -> Vector:
        if kind_of(type_) == "o":
            return of_plain(plain_values_of(found, self.strings), type_, self.strings)
        return found.typed(type_)

    def _vector(self, table: pa.Table, name: str, type_: Type) -> Vector:
        if kind_of(type_) == "o":
            return of_plain(plain_values(table.column(name), type_, name), type_, self.strings)
        try:
            values, mask = attribute_array(table, name, type_, self.strings)
        except GaveUpError:
            raise NoColumnFormError from None
        held = values != 0 if kind_of(type_) == "b" else values
        return Vector(type_, held, some(mask != 0) if len(mask) else None)


@dataclass(frozen=True, slots=True)
class Points:
    """What measures are evaluated for: of each, the match, and the place of the current row, -1 in an empty match."""

    matches: Array
    places: Array

    def __len__(self) -> int:
        return len(self.matches)


@dataclass(frozen=True, slots=True)
class Counted:
    """The places that count for a reference, such as those of a variable, one after the other.

    `before[p]` is how many of them stand before place p. Both are None where all `size` places count.
    """

    size: int
    _places: Array | None = None
    _before: Array | None = None

    def __len__(self) -> int:
        return self.size if self._places is None else len(self._places)

    def of_each(self, values: Array) -> Array:
        """Of the values of all places, those of the places that count."""
        return values if self._places is None else values[self._places]

    def places(self, numbers: Array) -> Array:
        """The places of these numbers; of number -1, any."""
        return numbers if self._places is None else self._places[numbers]

    def before(self, places: Array) -> Array:
        """How many of the places that count stand before these."""
        return places if self._before is None else self._before[places]

    def kept(self, is_kept: Array) -> Counted:
        """Only some of them."""
        counts = np.concatenate([[0], np.cumsum(is_kept)])
        if self._places is None or self._before is None:
            return Counted(self.size, np.flatnonzero(is_kept), counts)
        return Counted(self.size, self._places[is_kept], counts[self._before])


@dataclass(frozen=True)
class Matches:
    """The matches found in a table, as expressions see them."""

    columns: Columns
    found: FoundRows
    given_numbers: Array | None = None  # of the matches in their partitions, where these are only some of them

    @cached_property
    def lengths(self) -> Array:
        lengths: Array = np.diff(self.found.matches.offsets)
        return lengths

    @cached_property
    def ends(self) -> Array:
        """Of each match the place of its last row, -1 if it is empty."""
        return np.where(self.lengths > 0, self.found.matches.offsets[1:] - 1, -1)

    @cached_property
    def numbers(self) -> Array:
        """Of each match its number in the partition."""
        if self.given_numbers is not None:
            return self.given_numbers
        return numbered(self.found, self.columns.query.definition.selection is Selection.ALL_MATCHES)

    @cached_property
    def names(self) -> Array:
        """The names of the variables of the states."""
        tables = self.found.kernel.generated.tables
        return np.array([tables.variables[number] for number in tables.variable_of] or [""], object)

    @cached_property
    def match_of_place(self) -> Array:
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def row_of_place(self) -> Array:
        """Of each place the row, as rows are grouped by partition."""
        matches = self.found.matches
        return np.repeat(matches.starts - matches.offsets[:-1], self.lengths) + np.arange(len(matches.states))

    @cached_property
    def visible(self) -> tuple[Array, Array]:
        """Of each match, the first row that its measures may see, and the row behind the last."""
        found, matches = self.found, self.found.matches
        if self.columns.query.frame is not None:
            return matches.of_rows, found.frame_ends[matches.of_rows]
        return found.begins[matches.groups], found.ends[matches.groups]

    @cached_property
    def _counted(self) -> dict[str | None, Counted]:
        return {}

    def counted(self, variable: str | None) -> Counted:
        """The places of the variable's rows, or of all."""
        if variable not in self._counted:
            states = self.found.matches.states
            own = Counted(len(states))
            if variable is not None:
                members = self.columns.query.members[variable]
                is_wanted = np.array([name in members for name in self.names], np.bool_)
                own = own.kept(is_wanted[states] if len(states) else np.zeros(0, np.bool_))
            self._counted[variable] = own
        return self._counted[variable]

    def bounds(self, counted: Counted, points: Points, final: bool) -> tuple[Array, Array]:
        """Of each point the number of the first place that counts, and the number behind the last."""
        first, behind = self._of_points(points, final)
        return counted.before(first), counted.before(behind)

    @cached_property
    def _known_points(self) -> dict[tuple[int, bool], tuple[Points, Array, Array]]:
        return {}

    def _of_points(self, points: Points, final: bool) -> tuple[Array, Array]:
        """Of each point the first place of its match, and the place behind the last that counts."""
        key = (id(points), final)
        if key not in self._known_points:
            first = self.found.matches.offsets[points.matches]
            last = self.ends[points.matches] if final else points.places
            self._known_points[key] = (points, first, np.where(last < 0, first, last + 1))
        return self._known_points[key][1:]

    def rows(self, points: Points, navigation: ir.Navigation) -> Array:
        """Of each point the row that the navigation goes to; -1 where there is none."""
        counted = self.counted(navigation.variable)
        begin, end = self.bounds(counted, points, navigation.final)
        number = end - 1 - navigation.offset if navigation.from_last else begin + navigation.offset
        is_there = (number >= begin) & (number < end)
        rows = self.rows_of(counted, np.where(is_there, number, -1), points.matches)
        if navigation.shift is None and self.columns.query.frame is None:
            return rows
        begins, ends = self.visible
        moved = rows + (navigation.shift or 0)
        is_seen = (rows >= 0) & (moved >= begins[points.matches]) & (moved < ends[points.matches])
        return np.where(is_seen, moved, -1)

    def rows_of(self, counted: Counted, numbers: Array, of_matches: Array) -> Array:
        """The rows of the places of these numbers, in these matches; -1 for number -1."""
        if not len(counted):
            return np.full(len(numbers), -1)
        places = counted.places(numbers)
        matches = self.found.matches
        return np.where(numbers < 0, -1, places + (matches.starts - matches.offsets[:-1])[of_matches])

    def last_rows(self, points: Points, variable: str | None, final: bool = False) -> Array:
        return self.rows(points, ir.Navigation(ir.MatchNumber(), variable, final=final))

    def positions(self, rows: Array) -> Array:
        """Where the rows stand in the table; -1 for row -1."""
        return self.found.grouped.positions(rows)

    def classified(self, rows: Array, matches: Array) -> Vector:
        """The names of the variables that the rows were matched to; NULL for row -1, and outside of the match."""
        found, strings = self.found.matches, self.columns.strings
        codes = np.array([strings.code(name) for name in self.names], np.int64)
        within = rows - found.starts[matches]
        is_outside = (rows < 0) | (within < 0) | (within >= self.lengths[matches])
        places = np.where(is_outside, 0, found.offsets[matches] + within)
        states = found.states[places] if len(found.states) else np.zeros(len(rows), np.int64)
        return Vector(STRING, codes[states], some(is_outside))

    def value_in_rows(self, expression: ir.Expr, rows: Array, matches: Array) -> Vector:
        """An expression over one row, in these rows of these matches; NULL for row -1."""
        is_there = rows >= 0
        if not is_there.all():
            inner = self.value_in_rows(expression, rows[is_there], matches[is_there])
            numbers = np.where(is_there, np.cumsum(is_there) - 1, -1)
            return inner.at(numbers)
        if isinstance(expression, ir.Attribute):
            return InRows(self, rows, matches).leaf(expression)
        table_rows = self.columns.table.num_rows
        if len(rows) > table_rows and not any(isinstance(n, _OF_MATCH) for n in ir.walk(expression)):
            # The matches overlap: each row is computed once.
            whole = self.columns.operators(table_rows, InTable(self.columns).leaf).value(expression)
            return whole.at(self.positions(rows))
        return self.columns.operators(len(rows), InRows(self, rows, matches).leaf).value(expression)


_OF_MATCH = (ir.Classifier, ir.MatchNumber)


@dataclass(frozen=True, slots=True)
class InTable:
    """References to values in each row of the table."""

    columns: Columns

    def leaf(self, expression: ir.Expr) -> Vector:
        match expression:
            case ir.Attribute(name=name):
                return self.columns.attribute(name)
            case ir.PythonCall():
                return self.columns.called(expression)
        raise NoColumnFormError


@dataclass(frozen=True, slots=True)
class InRows:
    """References inside a navigation or an aggregate: to values in certain rows of matches."""

    of: Matches
    rows: Array
    matches: Array

    def leaf(self, expression: ir.Expr) -> Vector:
        match expression:
            case ir.Attribute() | ir.PythonCall():
                return InTable(self.of.columns).leaf(expression).at(self.of.positions(self.rows))
            case ir.Classifier():
                return self.of.classified(self.rows, self.matches)
            case ir.MatchNumber():
                return Vector(type_of(expression), self.of.numbers[self.matches])
        raise NoColumnFormError

"""One row for each match of a row pattern whose measures are read off where it begins, where it ends and its length.

Many queries ask for no more, and often for many short matches: their rows are made in one pass over the matches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.row_search import FoundRows
from kleene.engine.output import as_schema, values_at
from kleene.engine.row_output import row_output_schema
from kleene.ir import expr as ir
from kleene.ir.options import RowsPerMatch, Selection

FEW = 16
"""Where there are so many times as many rows as matches, sorting the matches is quicker than going through the rows."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Of each match, in output order: the positions of its first and last row, its length and its number."""

    first: Array
    last: Array
    lengths: Array
    numbers: Array


@dataclass(frozen=True, slots=True)
class PlainColumn:
    """A column of the output: the values of a column of the table at some of the ends, or, without one, these."""

    name: str | None
    of: Callable[[Ends], Array]

    def values(self, table: pa.Table, ends: Ends) -> pa.Array:
        places = self.of(ends)
        return pa.array(places, pa.int64()) if self.name is None else _values(table.column(self.name), places)


def is_plain_query(query: AnalyzedRowPattern) -> bool:
    """Whether each match gives one row, and its ends tell all values of it."""
    is_one = query.rows_per_match is RowsPerMatch.ONE and query.frame is None
    is_searched = query.definition.selection not in (Selection.ALL_MATCHES, Selection.FIRST_COMPLETED)
    return is_one and is_searched and all(_is_plain(one.expression) for one in query.measures)


def plain_columns(query: AnalyzedRowPattern) -> list[PlainColumn]:
    """The columns of the output of a plain query."""
    keys = [PlainColumn(name, attrgetter("first")) for name in query.partition_columns]
    return keys + [_plain_column(measure.expression) for measure in query.measures]


def plain_rows(query: AnalyzedRowPattern, found: FoundRows) -> tuple[pa.Table, Array] | None:
    """The table of matches in output order, and the positions of their last rows; None if it takes more than this."""
    ends = _ends(found) if is_plain_query(query) else None
    if ends is None:
        return None
    columns = [column.values(found.table, ends) for column in plain_columns(query)]
    return as_schema(columns, row_output_schema(query, found.table.schema)), ends.last


def _values(column: pa.ChunkedArray, places: Array) -> pa.Array:
    """The values at the places; codes stay codes of the same words."""
    if not pa.types.is_dictionary(column.type) or column.num_chunks != 1 or column.null_count:
        return values_at(column, places)
    whole = column.chunk(0)
    return pa.DictionaryArray.from_arrays(pa.array(whole.indices.to_numpy()[places]), whole.dictionary)


def _is_plain(expression: ir.Expr) -> bool:
    match expression:
        case ir.InputConstant() | ir.MatchNumber() | ir.Attribute(variable=None):
            return True
        case ir.Navigation(argument=ir.Attribute(), variable=None, offset=0):
            return not expression.shift
        case ir.Aggregate(function="count", argument=ir.Events(variable=None), is_plain=True):
            return True
    return False


def _plain_column(expression: ir.Expr) -> PlainColumn:
    match expression:
        case ir.InputConstant(name=name):
            return PlainColumn(name, attrgetter("first"))
        case ir.Attribute(name=name):
            return PlainColumn(name, attrgetter("last"))
        case ir.Navigation(argument=ir.Attribute(name=name)):
            return PlainColumn(name, attrgetter("last" if expression.from_last else "first"))
        case ir.MatchNumber():
            return PlainColumn(None, attrgetter("numbers"))
    return PlainColumn(None, attrgetter("lengths"))


def _ends(found: FoundRows) -> Ends | None:
    """None if a match is empty, so that it has no first row, or if two end at one row."""
    matches, given = found.matches, found.grouped.given
    if given is not None and len(matches) * FEW > found.table.num_rows:
        first, last, lengths, numbers = np.empty((4, len(matches)), np.int64)
        slots = np.full(found.table.num_rows, -1, np.int32)
        ordered = shared_loops(found.kernel.jit)["ends_in_order"]
        arrays = (matches.starts, matches.offsets, matches.numbers, given, slots)
        made = ordered(*arrays, first, last, lengths, numbers)
        return Ends(first, last, lengths, numbers) if made == len(matches) else None
    lengths = np.diff(matches.offsets)
    first, last, numbers = matches.starts, matches.starts + lengths - 1, matches.numbers
    if given is not None:
        order = np.argsort(given[last], kind="stable")
        first, last, lengths, numbers = given[first][order], given[last][order], lengths[order], numbers[order]
    is_plain = bool((lengths > 0).all()) and bool((last[1:] > last[:-1]).all())
    return Ends(first, last, lengths, numbers) if is_plain else None

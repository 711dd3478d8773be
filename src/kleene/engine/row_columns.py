"""Matches of row patterns to tables, column by column: a row for each match, all rows of matches, or those of windows.

Columns of the input are taken from it; measures are computed for all rows of the output at once (`by_column`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from kleene.engine.by_column.matches import Columns, Matches, Points
from kleene.engine.by_column.measures import Measures
from kleene.engine.compiled.batches import EMPTY
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import SharedLoops, shared_loops
from kleene.engine.compiled.row_search import FoundRows
from kleene.engine.match_order import RowOrder, RowPlaces
from kleene.engine.output import as_schema, values_at
from kleene.engine.row_output import column_names, row_output_schema
from kleene.errors import ExecutionError
from kleene.ir.options import RowsPerMatch


@dataclass(frozen=True, slots=True)
class RowTables:
    """Makes tables of the matches of a query in one table of events, whose columns are read once."""

    columns: Columns

    def is_of(self, table: pa.Table) -> bool:
        return self.columns.table is table

    def one_row(
        self, found: FoundRows, row_order: RowOrder | None = None, among_equals: Array | None = None
    ) -> tuple[pa.Table, Array]:
        """The table of matches in output order, and the number of the match that each of its rows stands for.

        With `row_order`, the table says where its rows stand; `among_equals` are the places of rows among equal ones.
        """
        matches, query = Matches(self.columns, found), self.columns.query
        places = _places(matches)
        order = output_order(places, found.table.num_rows, shared_loops(found.kernel.jit))
        keys = {name: found.table.column(name) for name in query.partition_columns}
        starts = matches.positions(found.matches.starts[order])
        columns = [values_at(keys[name], starts) for name in query.partition_columns]
        table = as_schema([*columns, *_measured(matches, order)], row_output_schema(query, found.table.schema))
        if row_order is not None:
            table = row_order.appended(table, found.table, _chosen(places, order, among_equals))
        return table, order

    def of_windows(self, found: FoundRows) -> tuple[list[pa.Array | pa.ChunkedArray], Array]:
        """The measures of each match; and of each row that is decided, the number of its match, or -1."""
        matches = Matches(self.columns, found)
        numbers = np.arange(len(found.matches))
        matched = np.full(len(found.grouped), -1)
        matched[found.matches.of_rows] = numbers
        return _measured(matches, numbers), matched[found.decided]

    def all_rows(
        self, found: FoundRows, row_order: RowOrder | None = None, among_equals: Array | None = None
    ) -> tuple[pa.Table, RowPlaces, Array]:
        """The rows of the matches, and those in none, in output order; where they stand; and the matches of rows."""
        matches, query = Matches(self.columns, found), self.columns.query
        rows = _shown_rows(matches, shared_loops(found.kernel.jit))
        is_matched = rows.matches >= 0
        points = Points(rows.matches[is_matched], rows.within[is_matched])
        measured = Measures(matches, points).columns()
        if not is_matched.all():
            numbers = np.where(is_matched, np.cumsum(is_matched) - 1, -1)
            measured = [values_at(column, numbers) for column in measured]
        before, after = column_names(query, found.table.schema)
        taken = {name: values_at(found.table.column(name), rows.positions) for name in {*before, *after}}
        columns = [*(taken[name] for name in before), *measured, *(taken[name] for name in after)]
        table = as_schema(columns, row_output_schema(query, found.table.schema))
        places = rows.places
        if among_equals is not None:
            places = replace(places, among_equals=among_equals[places.first])
        if row_order is not None:
            table = row_order.appended(table, found.table, places)
        return table, places, rows.matches


ROWS_AT_ONCE = 1 << 21
"""Rows of matches whose measures are computed together: the arrays that this takes are as long."""


def _measured(matches: Matches, order: Array) -> list[pa.Array | pa.ChunkedArray]:
    """The measures of whole matches, in this order; they are computed some matches at a time."""
    if len(matches.found.matches.states) <= ROWS_AT_ONCE:
        return Measures(matches, Points(order, matches.ends[order])).columns()
    try:
        parts = [Measures(part, Points(np.arange(len(part.lengths)), part.ends)).columns() for part in _cut(matches)]
    except ExecutionError:
        Measures(matches, Points(order, matches.ends[order])).raise_first_error()
        raise
    whole = [pa.chunked_array(columns) for columns in zip(*parts, strict=True)]
    return whole if (order[1:] > order[:-1]).all() else [column.take(pa.array(order)) for column in whole]


def _cut(matches: Matches) -> Iterator[Matches]:
    """The matches as they were found, cut wherever they have many rows."""
    flat = matches.found.matches
    cuts = np.flatnonzero(np.diff(flat.offsets[1:] // ROWS_AT_ONCE)) + 1
    for begin, end in pairwise([0, *cuts.tolist(), len(flat)]):
        some = replace(matches.found, matches=flat.between(begin, end))
        yield Matches(matches.columns, some, matches.numbers[begin:end])


def _places(matches: Matches) -> RowPlaces:
    """Where the matches stand in the output, in the order in which they were found."""
    found = matches.found
    ends = found.matches.starts + np.maximum(matches.lengths, 1) - 1
    first, last = matches.positions(found.matches.starts), matches.positions(ends)
    return RowPlaces(last, first, matches.numbers, np.zeros(len(last), np.int64))


def _chosen(places: RowPlaces, which: Array, among_equals: Array | None = None) -> RowPlaces:
    first = places.first[which]
    equals = None if among_equals is None else among_equals[first]
    return RowPlaces(places.last[which], first, places.numbers[which], places.rows[which], equals)


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


@dataclass(frozen=True, slots=True)
class _ShownRows:
    """The rows of ALL ROWS PER MATCH in output order.

    Of each: its position in the table, the match, or -1 if it is in none, its place, or -1 if the match is empty, and
    where it stands in the output.
    """

    positions: Array
    matches: Array
    within: Array
    places: RowPlaces


def _shown_rows(matches: Matches, loops: SharedLoops) -> _ShownRows:
    """A match has its rows one after the other; one that is empty, and a row in no match, has one row."""
    found, mode, count = matches.found, matches.columns.query.rows_per_match, len(matches.lengths)
    places, alone = _places(matches), found.unmatched
    if len(alone):
        nothing = np.zeros(len(alone), np.int64)
        both = zip(
            (places.last, places.first, places.numbers, places.rows), (alone, alone, nothing, nothing), strict=True
        )
        places = RowPlaces(*(np.concatenate(pair) for pair in both))
    order = output_order(places, found.table.num_rows, loops)
    least = 0 if mode is RowsPerMatch.ALL_OMIT_EMPTY else 1
    sizes = np.concatenate([np.maximum(matches.lengths, least), np.ones(len(alone), np.int64)]).astype(np.int64)[order]
    unit = np.repeat(order, sizes)
    index = np.arange(len(unit)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    match = np.where(unit < count, unit, -1)
    flat = found.matches
    own = np.maximum(match, 0)
    is_in_match = (match >= 0) & (np.append(matches.lengths, 0)[own] > 0)
    within = np.where(is_in_match, np.append(flat.offsets[:-1], 0)[own] + index, -1)
    is_excluded = np.append(np.array(found.kernel.generated.tables.is_excluded, np.bool_), False)
    states = np.append(flat.states, len(is_excluded) - 1)
    is_shown = ~is_excluded[states[within]]  # place -1 is that of no state
    unit, index, match, within = unit[is_shown], index[is_shown], match[is_shown], within[is_shown]
    positions = matches.positions(np.append(flat.starts, 0)[np.maximum(match, 0)] + index) if len(flat) else EMPTY
    if len(alone):
        positions = np.where(match < 0, places.first[unit], positions) if len(flat) else places.first[unit]
    chosen = _chosen(places, unit)
    return _ShownRows(positions, match, within, replace(chosen, rows=index))

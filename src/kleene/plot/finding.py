"""A call and its events to what pictures are made of: the events are read once, and the matches among them found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyze import analyze
from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern, analyze_row_pattern, is_row_pattern
from kleene.call import Call
from kleene.engine.inputs import in_order, open_events, open_rows
from kleene.engine.needs import columns_read
from kleene.engine.rows import sorted_rows, with_computed_keys
from kleene.engine.run import Runner
from kleene.errors import ExecutionError, LimitError
from kleene.ir import expr as ir
from kleene.ir.options import RowsPerMatch, Selection
from kleene.ir.query import Measure, QueryDefinition
from kleene.ir.steps import is_steps
from kleene.long.definition import long_definition
from kleene.plan.plan import Plan
from kleene.plot.seen import Array, Keys, Matches, Seen, check_column, clock_of, keys_of
from kleene.schema import INTEGER
from kleene.why.question import ROW
from kleene.why.row_asking import with_rows

MOST_MATCHES, MOST_SELECTED = 200_000, 2_000_000
"""Matches that are looked at, and events in them: a query may have more than anyone can hold."""
_COUNT = Measure("\0count", ir.Aggregate("count", ir.Events(None, ir.Position.EACH)))
_ROWS, _VARIABLES = "\0rows", "\0variables"
_ADDED = _NUMBER, _VARIABLE, _POSITION = "\0number", "\0variable", "\0position"


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """What was seen, and the analyzed query that saw it."""

    seen: Seen
    query: AnalyzedQuery | AnalyzedRowPattern


def sight_of(call: Call, events: Any, further: Sequence[str] = ()) -> Sight:
    """The events with the columns that the query reads and those in `further`, and the matches among them."""
    if is_row_pattern(call.definition):
        return _sight_of_rows(call, events, further)
    return _sight_of_events(call, events, further)


# --- SASE, and patterns in steps ---


def _sight_of_events(call: Call, events: Any, further: Sequence[str]) -> Sight:
    whole = call.definition if is_steps(call.definition) else replace(call.definition, measures=None, grouping=None)
    source = open_events(events, call.order, call.type_column, whole, call.schema)
    bare = whole if is_steps(whole) else replace(whole, measures=(Measure("one", ir.Literal(1, INTEGER)),))
    query = analyze(bare, source.schema, source.order.order_by)
    there = source.columns.names
    visible = [name for name in there if name in set(source.schema)]
    for name in further:
        check_column(name, visible)
    names = set(columns_read(query, there, source.order.columns)).union(further)
    table = in_order(with_rows(source.read([name for name in there if name in names])), source.order)
    plan = call.plan(query)
    matches = _matches_of_events(plan, table, tuple(one.name if one.named else None for one in query.components))
    keys = keys_of(table, query.partition_by, with_nulls=False)
    return Sight(Seen(table, clock_of(table, query.order_by[0] if query.order_by else None), keys, matches), query)


def _matches_of_events(plan: Plan, table: pa.Table, variables: tuple[str | None, ...]) -> Matches:
    try:
        return _collected(plan, table, variables)
    except LimitError:
        raise
    except ExecutionError:
        # Machine code gave up after it had given something out; the interpreter says why, or finds all of it.
        return _collected(replace(plan, engine="reference"), table, variables)


def _collected(plan: Plan, table: pa.Table, variables: tuple[str | None, ...]) -> Matches:
    found, is_cut = [], False
    count = selected = 0
    for batch in Runner(plan).batches(table, in_order=False):
        assert batch.matches is not None, "matches of events come with their places"
        if count + len(batch.matches) > MOST_MATCHES or selected > MOST_SELECTED:
            found.append(batch.matches[: MOST_MATCHES - count])
            is_cut = True
            break
        found.append(batch.matches)
        count, selected = count + len(batch.matches), selected + len(batch.matches.positions)
    lengths = [part.lengths for part in found if len(part)]
    places = np.concatenate([part.positions for part in found] or [np.empty(0, np.int64)]).astype(np.int64)
    by_variable = np.concatenate(lengths) if lengths else np.empty((0, len(variables)), np.int64)
    variable = np.repeat(np.tile(np.arange(len(variables)), len(by_variable)), by_variable.ravel())
    return _in_order(_offsets(by_variable.sum(axis=1)), places, variable, variables, is_cut)


# --- row patterns, windows, and the regular-expression operator ---


def _sight_of_rows(call: Call, events: Any, further: Sequence[str]) -> Sight:
    definition = call.definition
    whole = replace(definition, rows_per_match=_all_rows(definition))
    source = open_rows(events, whole)
    bare = replace(definition, measures=(_COUNT,), rows_per_match=_one_row(definition))
    read = analyze_row_pattern(bare, source.schema, source.schema.hidden)
    there = source.columns.names
    for name in further:
        check_column(name, [name for name in there if name in set(source.schema)])
    names = set(columns_read(read, there, ())).union(further)
    table = source.read([name for name in there if name in names] or there[:1])
    table = with_rows(table)
    kept = [(name, type_) for name, type_ in source.schema.attributes if name in table.column_names]
    schema = replace(source.schema, attributes=(*kept, (ROW, INTEGER)))
    query = analyze_row_pattern(_telling(definition), schema, source.schema.hidden)
    table = sorted_rows(query, with_computed_keys(query, table))
    rows = np.asarray(table.column(ROW))
    place_of = np.empty(len(rows), np.int64)
    place_of[rows] = np.arange(len(rows))
    keys = keys_of(table, query.partition_by, with_nulls=True)
    matches = _matches_of_rows(call.plan(query), table, keys, place_of)
    clock = clock_of(table, query.order_by[0].name if query.order_by else None)
    return Sight(Seen(table, clock, keys, matches), query)


def _all_rows(definition: QueryDefinition) -> RowsPerMatch:
    return definition.rows_per_match if definition.frame is not None else RowsPerMatch.ALL_OMIT_EMPTY


def _one_row(definition: QueryDefinition) -> RowsPerMatch:
    return RowsPerMatch.EACH_ROW if definition.frame is not None else RowsPerMatch.ONE


def _telling(definition: QueryDefinition) -> QueryDefinition:
    """The query that tells the rows of its matches, and their variables."""
    if definition.frame is not None:
        rows = Measure(_ROWS, ir.Aggregate("array_agg", ir.Attribute(None, ROW)))
        variables = Measure(_VARIABLES, ir.Aggregate("array_agg", ir.Classifier(None)))
        return replace(definition, measures=(rows, variables))
    told = long_definition(definition, [ROW])
    if definition.selection is Selection.FIRST_COMPLETED:
        return told
    measures = zip(_ADDED, told.measures or (), strict=True)  # under names that no column of the input has
    return replace(told, measures=tuple(replace(measure, name=name) for name, measure in measures))


def _matches_of_rows(plan: Plan, table: pa.Table, keys: Keys, place_of: Array) -> Matches:
    definition = plan.query.definition
    read = _in_lists if definition.frame is not None or definition.selection is Selection.FIRST_COMPLETED else _in_rows
    lengths: list[Array] = []
    rows: list[Array] = []
    variables: list[str | None] = []
    is_cut = False
    key_of_row = np.empty(len(place_of), np.int64)
    key_of_row[np.asarray(table.column(ROW))] = keys.of_event
    count = selected = 0
    batches = (batch.table for batch in Runner(plan).batches(table))
    for own_lengths, own_rows, own_variables in read(batches, key_of_row):
        lengths.append(own_lengths)
        rows.append(own_rows)
        variables += own_variables
        count, selected = count + len(own_lengths), selected + len(own_rows)
        if count > MOST_MATCHES or selected > MOST_SELECTED:
            is_cut = True
            break
    names = tuple(dict.fromkeys(variables))
    number = {name: at for at, name in enumerate(names)}
    variable = np.array([number[name] for name in variables], np.int64)
    places = place_of[np.concatenate(rows or [np.empty(0, np.int64)])]
    offsets = _offsets(np.concatenate(lengths or [np.empty(0, np.int64)]))
    return _in_order(offsets, places, variable, names or (None,), is_cut)


_Told = tuple[Array, Array, list[str | None]]
"""How many rows each match has, the rows, and their variables."""


def _in_rows(batches: Iterator[pa.Table], key_of_row: Array) -> Iterator[_Told]:
    """Matches whose rows follow one another; a match may go on in the next batch, so that one waits."""
    rows: Array = np.empty(0, np.int64)
    variables: list[str | None] = []
    before: tuple[int, int, int] | None = None
    for batch in batches:
        own = np.asarray(batch.column(ROW), dtype=np.int64)
        number, position = np.asarray(batch.column(_NUMBER)), np.asarray(batch.column(_POSITION))
        names = batch.column(_VARIABLE).to_pylist()
        key = key_of_row[own]
        begins = np.ones(len(own), bool)
        begins[1:] = (number[1:] != number[:-1]) | (key[1:] != key[:-1]) | (position[1:] <= position[:-1])
        if before is not None and len(own):
            begins[0] = (number[0], key[0]) != before[:2] or position[0] <= before[2]
        rows, variables = np.concatenate([rows, own]), [*variables, *names]
        held = len(rows) - len(own)
        starts = np.concatenate([[0] if held else np.empty(0, np.int64), held + np.flatnonzero(begins)]).astype(
            np.int64
        )
        if len(own):
            before = (int(number[-1]), int(key[-1]), int(position[-1]))
        if len(starts) > 1:
            end = int(starts[-1])
            yield np.diff(starts), rows[:end], variables[:end]
            rows, variables = rows[end:], variables[end:]
    if len(rows):
        yield np.array([len(rows)]), rows, variables


def _in_lists(batches: Iterator[pa.Table], key_of_row: Array) -> Iterator[_Told]:
    """Matches whose rows stand in a list; a window gives a list to every row, which may be NULL or empty."""
    for batch in batches:
        is_window = _ROWS in batch.column_names
        lists = batch.column(_ROWS if is_window else ROW).to_pylist()
        names = batch.column(_VARIABLES).to_pylist() if is_window else [[None] * len(one or ()) for one in lists]
        told = [(one, own) for one, own in zip(lists, names, strict=True) if one]
        rows = np.array([row for one, _ in told for row in one], np.int64)
        yield np.array([len(one) for one, _ in told], np.int64), rows, [name for _, own in told for name in own]


def _offsets(lengths: Array) -> Array:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _in_order(
    offsets: Array, places: Array, variable: Array, variables: tuple[str | None, ...], is_cut: bool
) -> Matches:
    """Matches by their first event, then by their last; of each match, events by their places."""
    count = len(offsets) - 1
    match = np.repeat(np.arange(count), np.diff(offsets))
    order = np.lexsort((places, match))
    places, variable = places[order], variable[order]
    matches = Matches(offsets, places, variable, variables, is_cut)
    if not count:
        return matches
    by_time = np.lexsort((matches.last, matches.first))
    lengths = np.diff(offsets)[by_time]
    starts = offsets[:-1][by_time]
    taken = np.repeat(starts - _offsets(lengths)[:-1], lengths) + np.arange(len(places))
    return Matches(_offsets(lengths), places[taken], variable[taken], variables, is_cut)

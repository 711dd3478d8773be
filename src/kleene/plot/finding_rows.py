"""Row patterns, windows and the regular-expression operator: a call and its table to what was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.call import Call
from kleene.engine.inputs import open_rows
from kleene.engine.needs import columns_read
from kleene.engine.rows import sorted_rows, with_computed_keys
from kleene.engine.run import Runner
from kleene.errors import LimitError
from kleene.ir import expr as ir
from kleene.ir.options import RowsPerMatch, Selection, Skip
from kleene.ir.query import Measure, QueryDefinition
from kleene.long.definition import long_definition
from kleene.plan.plan import Plan
from kleene.plot import sight
from kleene.plot.seen import Array, Keys, Matches, Seen, check_column, clock_of, keys_of
from kleene.plot.sight import Sight, matches_in_order, offsets_of, visible_columns
from kleene.schema import INTEGER
from kleene.why.question import ROW
from kleene.why.row_asking import with_rows

_COUNT = Measure("\0count", ir.Aggregate("count", ir.Events(None, ir.Position.EACH)))
_ROWS, _VARIABLES = "\0rows", "\0variables"
_ADDED = _NUMBER, _VARIABLE, _POSITION = "\0number", "\0variable", "\0position"


def sight_of_rows(call: Call, events: Any, further: Sequence[str]) -> Sight:
    definition = call.definition
    whole = replace(definition, rows_per_match=_all_rows(definition))
    source = open_rows(events, whole)
    bare = replace(definition, measures=(_COUNT,), rows_per_match=_one_row(definition))
    read = analyze_row_pattern(bare, source.schema, source.schema.hidden)
    there = source.columns.names
    visible = visible_columns(source)
    for name in further:
        check_column(name, visible.names)
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
    plan = call.plan(query)
    if _may_share_rows(definition):
        _check_size(call.plan(analyze_row_pattern(bare, schema, source.schema.hidden)), table)
    matches = _matches_of_rows(plan, table, keys, place_of)
    clock = clock_of(table, query.order_by[0].name if query.order_by else None)
    return Sight(Seen(table, clock, keys, matches), plan, visible)


def _may_share_rows(definition: QueryDefinition) -> bool:
    """Whether matches may overlap, so that they can have far more rows than the table."""
    is_past = definition.after_match is None or definition.after_match.skip is Skip.PAST_LAST_ROW
    return definition.frame is not None or definition.selection is Selection.ALL_MATCHES or not is_past


def _check_size(plan: Plan, table: pa.Table) -> None:
    """An error if the rows of all matches are too many to hold; counting them holds none."""
    total = 0
    for batch in Runner(plan).batches(table):
        total += pc.sum(batch.table.column(_COUNT.name)).as_py() or 0
    if total > sight.MOST_SELECTED:
        raise LimitError(
            f"the matches have {total:,} rows together, but a picture looks at {sight.MOST_SELECTED:,} at most",
            hint="Draw fewer events: a part of the table, or some of its keys.",
        )


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
        if count > sight.MOST_MATCHES or selected > sight.MOST_SELECTED:
            is_cut = True
            break
    names = tuple(dict.fromkeys(variables))
    number = {name: at for at, name in enumerate(names)}
    variable = np.array([number[name] for name in variables], np.int64)
    places = place_of[np.concatenate(rows or [np.empty(0, np.int64)])]
    offsets = offsets_of(np.concatenate(lengths or [np.empty(0, np.int64)]))
    return matches_in_order(offsets, places, variable, names or (None,), is_cut)


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

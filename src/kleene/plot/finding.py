"""A call and its events to what pictures are made of: the events are read once, and the matches among them found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyze import analyze
from kleene.analysis.row_pattern import is_row_pattern
from kleene.call import Call
from kleene.engine.inputs import in_order, open_events
from kleene.engine.needs import columns_read
from kleene.engine.run import Runner
from kleene.errors import ExecutionError, LimitError
from kleene.ir import expr as ir
from kleene.ir.query import Measure
from kleene.ir.steps import is_steps
from kleene.plan.plan import Plan
from kleene.plot import sight
from kleene.plot.finding_rows import sight_of_rows
from kleene.plot.seen import Matches, Seen, check_column, clock_of, keys_of
from kleene.plot.sight import Sight, matches_in_order, offsets_of, visible_columns
from kleene.schema import INTEGER
from kleene.why.row_asking import with_rows


def sight_of(call: Call, events: Any, further: Sequence[str] = ()) -> Sight:
    """The events with the columns that the query reads and those in `further`, and the matches among them."""
    if is_row_pattern(call.definition):
        return sight_of_rows(call, events, further)
    return _sight_of_events(call, events, further)


# --- SASE, and patterns in steps ---


def _sight_of_events(call: Call, events: Any, further: Sequence[str]) -> Sight:
    whole = call.definition if is_steps(call.definition) else replace(call.definition, measures=None, grouping=None)
    source = open_events(events, call.order, call.type_column, whole, call.schema)
    bare = whole if is_steps(whole) else replace(whole, measures=(Measure("one", ir.Literal(1, INTEGER)),))
    query = analyze(bare, source.schema, source.order.order_by)
    there = source.columns.names
    visible = visible_columns(source)
    for name in further:
        check_column(name, visible.names)
    names = set(columns_read(query, there, source.order.columns)).union(further)
    table = in_order(with_rows(source.read([name for name in there if name in names])), source.order)
    plan = replace(call, definition=bare).plan(query)
    matches = _matches_of_events(plan, table, tuple(one.name if one.named else None for one in query.components))
    keys = keys_of(table, query.partition_by, with_nulls=False)
    clock = clock_of(table, query.order_by[0] if query.order_by else None)
    return Sight(Seen(table, clock, keys, matches), plan, visible)


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
        if count + len(batch.matches) > sight.MOST_MATCHES or selected > sight.MOST_SELECTED:
            found.append(batch.matches[: sight.MOST_MATCHES - count])
            is_cut = True
            break
        found.append(batch.matches)
        count, selected = count + len(batch.matches), selected + len(batch.matches.positions)
    lengths = [part.lengths for part in found if len(part)]
    places = np.concatenate([part.positions for part in found] or [np.empty(0, np.int64)]).astype(np.int64)
    by_variable = np.concatenate(lengths) if lengths else np.empty((0, len(variables)), np.int64)
    variable = np.repeat(np.tile(np.arange(len(variables)), len(by_variable)), by_variable.ravel())
    return matches_in_order(offsets_of(by_variable.sum(axis=1)), places, variable, variables, is_cut)

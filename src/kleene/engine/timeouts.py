"""Runs that leave their window before they are complete, for those who ask for them on a stream.

A run is told by its first event: once time has passed the end of that event's window, the runs that it began are
followed again by the plain interpreter, and those that had bound some variables but not all are given out. This is slow
beside matching, and it needs the events of a whole window; it is done only on request.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.value_types import type_of
from kleene.engine.events import Events, window_time
from kleene.engine.output import arrow_field, arrow_values, as_type, output_schema
from kleene.engine.protocol import Time
from kleene.engine.reference import Selected, open_runs
from kleene.ir import expr as ir
from kleene.ir.evaluate import EventBindings, evaluate

TIMED_OUT = "timed_out"


def timed_out_runs(
    query: AnalyzedQuery, table: pa.Table, after: Time | None, until: Time, with_times: bool, run_limit: int
) -> pa.Table:
    """A row for each such run whose window ended after one time and up to another; the table has all their events."""
    assert query.window is not None
    assert query.schema is not None
    events = Events(table, query.schema, query.order_by)
    size = window_time(query.window, query.time_type)
    closed = [time + size <= until and (after is None or time + size > after) for time in events.times()]
    runs = open_runs(query, events, np.flatnonzero(closed).tolist(), run_limit)
    return _table(query, events, runs, with_times)


def _table(query: AnalyzedQuery, events: Events, runs: Sequence[Selected], with_times: bool) -> pa.Table:
    schema = output_schema(query, events.table.schema, with_times)
    columns: list[pa.Array] = []
    if query.measures is None:
        columns += [_taken(events, name, [run[0][0] for run in runs]) for name in query.key]
        for number, component in enumerate(query.components):
            if component.named:
                columns.append(_component(events, number, runs, schema.field(component.name).type))
    else:
        columns += [_measure(query, events, measure.expression, runs) for measure in query.measures]
    if query.measures is None or with_times:
        columns.append(_taken(events, query.order_by[0], [run[0][0] for run in runs]))
        columns.append(_taken(events, query.order_by[0], [run[-1][-1] for run in runs]))
    return pa.table([as_type(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)


def _taken(events: Events, name: str, positions: list[int]) -> pa.Array:
    return events.table.column(name).take(pa.array(positions, pa.int64())).combine_chunks()


def _component(events: Events, number: int, runs: Sequence[Selected], type_: pa.DataType) -> pa.Array:
    """The events of a variable; NULL where it is not bound."""
    is_list = pa.types.is_list(type_)
    names = [field.name for field in (type_.value_type if is_list else type_)]
    rows = events.table.select(names).to_pylist()
    parts = [[rows[position] for position in run[number]] if number < len(run) else None for run in runs]
    return pa.array(parts if is_list else [None if part is None else part[0] for part in parts], type_)


def _measure(query: AnalyzedQuery, events: Events, expression: ir.Expr, runs: Sequence[Selected]) -> pa.Array:
    """The values of a measure; NULL where it speaks of a variable that is not bound."""
    read = {node.variable for node in ir.walk(expression) if isinstance(node, ir.Attribute)}
    values = []
    for run in runs:
        bound = {component.name: part for component, part in zip(query.components, run, strict=False)}
        bindings = EventBindings(bound, {}, events.values, lambda position, name: False)
        values.append(evaluate(expression, bindings) if read <= {*bound, None} else None)
    return arrow_values(values, type_of(expression), arrow_field(expression, events.table.schema).type)

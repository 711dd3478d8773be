"""Runs that leave their window before they are complete, for those who ask for them on a stream.

A run is told by its first event: once time has passed the end of that event's window, the runs that it began are
followed again by the plain interpreter, and those that had bound some variables but not all are given out. This is slow
beside matching, and it needs the events of a whole window; it is done only on request.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.events import Events, window_time
from kleene.engine.output import computed_column, output_schema, table_of_columns, value_of
from kleene.engine.protocol import Time
from kleene.engine.reference import open_runs
from kleene.ir import expr as ir

TIMED_OUT = "timed_out"


def timed_out_runs(
    query: AnalyzedQuery, table: pa.Table, after: Time | None, until: Time, with_times: bool, run_limit: int
) -> pa.Table:
    """A row for each such run whose window ended after one time and up to another; the table has all their events."""
    assert query.window is not None
    assert query.schema is not None
    schema, events = query.schema, Events(table, query.schema, query.order_by)
    size = window_time(query.window, query.time_type)
    closed = [time + size <= until and (after is None or time + size > after) for time in events.times()]
    runs = open_runs(query, events, np.flatnonzero(closed).tolist(), run_limit)
    ends = [run[0][0] for run in runs], [run[-1][-1] for run in runs]

    def component(number: int) -> pa.Array:
        """The events of a variable; NULL where it is not bound."""
        own = query.components[number]
        rows = table.select(list(schema.attributes_of(own.types))).to_pylist()
        parts = [[rows[position] for position in run[number]] if number < len(run) else None for run in runs]
        field = output_schema(query, table.schema).field(own.name)
        return pa.array(parts if own.is_kleene else [None if part is None else part[0] for part in parts], field.type)

    def measure(_: int, expression: ir.Expr) -> pa.Array:
        """The values of a measure; NULL where it speaks of a variable that is not bound."""
        read = {node.variable for node in ir.walk(expression) if isinstance(node, ir.Attribute)}
        bound = [{own.name: part for own, part in zip(query.components, run, strict=False)} for run in runs]
        values = [value_of(expression, events, own) if read <= {*own, None} else None for own in bound]
        return computed_column(expression, values, table.schema)

    return table_of_columns(query, events, ends, component, measure, with_times)

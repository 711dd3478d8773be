"""Runs that leave their window before they are complete, for those who ask for them.

A run is told by its first event. Once time has passed the end of that event's window, what it began is followed again
by the plain interpreter, and runs that had bound something but not all are given out beside the matches. This is slow
beside matching, and needs the events of a whole window; it is done only on request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.analysis.timeouts import MARK
from kleene.engine.budget import Budget
from kleene.engine.compiled.kernel_window import LAST_TIME
from kleene.engine.events import Events, window_time
from kleene.engine.matches import Array, FlatMatches, Match, flat_matches
from kleene.engine.output import (
    computed_column,
    output_schema,
    table_of_columns,
    value_of,
    values_at,
)
from kleene.engine.protocol import Time
from kleene.engine.reference import open_runs
from kleene.engine.saved_parts import SavedParts
from kleene.ir import expr as ir
from kleene.ir.expr import Position
from kleene.ir.options import Timeouts
from kleene.plan.plan import Plan
from kleene.schema import FLOAT, MOST_DECIMAL_DIGITS, DecimalType

TIMED_OUT = MARK
CLOSES = "__kleene_closes"
"""Where the end of all events is not known: when the run's window closes, as engines count time; NULL of a match."""


def mark_fields(plan: Plan) -> list[pa.Field]:
    """The columns that tell matches from runs that are out of time."""
    if plan.timeouts is Timeouts.NONE:
        return []
    marks = [pa.field(TIMED_OUT, pa.bool_())]
    return [*marks, pa.field(CLOSES, closing_type(plan.query))] if plan.timeouts is Timeouts.ALL else marks


def closing_type(query: AnalyzedQuery | AnalyzedRowPattern) -> pa.DataType:
    """The type of times as engines count them."""
    if isinstance(query.time_type, DecimalType):
        return pa.decimal128(MOST_DECIMAL_DIGITS, 0)
    return pa.float64() if query.time_type == FLOAT else pa.int64()


def marked(table: pa.Table, plan: Plan, closes: Sequence[Time] | None = None) -> pa.Table:
    """The rows with these columns; `closes` is when each run's window closes, None where the rows are matches."""
    values: list[Any] = [np.full(table.num_rows, closes is not None), closes or [None] * table.num_rows]
    for field, own in zip(mark_fields(plan), values, strict=False):
        table = table.append_column(field, pa.array(own, field.type))
    return table


@dataclass(frozen=True, slots=True)
class FoundTimeouts:
    """Runs out of time, whose positions are those of the table; a variable that is not bound has no event."""

    table: pa.Table
    runs: FlatMatches
    closes: list[Time]
    is_settled: bool = True


class EventTimeouts:
    """The events of a SASE query whose windows are open."""

    def __init__(self, plan: Plan) -> None:
        assert isinstance(plan.query, AnalyzedQuery)
        assert plan.query.window is not None
        self._plan, self._query = plan, plan.query
        self._size = window_time(plan.query.window, plan.query.time_type)
        self._kept: pa.Table | None = None
        self._wakes_at: Time | None = None

    def closed(self, events: pa.Table, now: Time | None, is_last: bool, budget: Budget) -> Iterator[FoundTimeouts]:
        """The runs whose windows have passed. Up to the time `now` all events are there; they come in order."""
        table = events if self._kept is None else pa.concat_tables([self._kept, events])
        query, plan = self._query, self._plan
        assert query.schema is not None
        all_events = Events(table, query.schema, query.order_by)
        ends = [time + self._size for time in all_events.times()]
        latest = latest_time([end - self._size for end in ends], now)
        is_over = [latest is not None and end <= latest for end in ends]
        self._keep(table, ends, is_over, is_last)
        starts = range(len(ends)) if is_last and plan.timeouts is Timeouts.ALL else np.flatnonzero(is_over).tolist()
        runs = open_runs(query, all_events, starts, plan.run_limit, budget) if len(starts) else []
        if runs:
            runs.sort(key=lambda run: (run[-1][-1], run[0][0], run))
            nothing = [()] * len(query.components)
            found = flat_matches([Match((*run, *nothing[len(run) :])) for run in runs], len(nothing))
            yield FoundTimeouts(table, found, [ends[run[0][0]] for run in runs])

    def _keep(self, table: pa.Table, ends: list[Time], is_over: list[bool], is_last: bool) -> None:
        is_kept = pa.array([not own and not is_last for own in is_over], pa.bool_())
        self._kept = table.filter(is_kept).combine_chunks()
        first = min((end for end, own in zip(ends, is_over, strict=True) if not own), default=None)
        self._wakes_at = first if first is not None and abs(first) < LAST_TIME and not is_last else None

    def held(self) -> tuple[int, int, Time | None]:
        """How many events are kept, their bytes, and when the next window closes."""
        return (0, 0, None) if self._kept is None else (self._kept.num_rows, self._kept.nbytes, self._wakes_at)

    def saved(self) -> dict[str, Any]:
        return {"timeouts_table": self._kept}

    def load(self, parts: SavedParts) -> None:
        self._kept = parts.table("timeouts_table")
        if self._kept is not None:
            assert self._query.schema is not None
            times = Events(self._kept, self._query.schema, self._query.order_by).times()
            self._wakes_at = min((time + self._size for time in times), default=None)


def latest_time(times: Sequence[Any], now: Time | None) -> Any:
    """The time that all events are there up to; None if nothing is known."""
    return max((time for time in (*times, now) if time is not None), default=None)


# --- the rows of runs that are not complete


def partial_table(query: AnalyzedQuery, events: Events, runs: FlatMatches, with_times: bool) -> pa.Table:
    """The columns of matches for runs that are none; what is not bound is NULL."""
    names = [component.name for component in query.components]
    table = events.table

    def places(number: int, is_last: bool = False) -> Array:
        """The position of the variable's first or last event in each run; -1 where it has none."""
        lengths = runs.lengths[:, number]
        at = np.minimum(runs.begins(number) + (np.maximum(lengths, 1) - 1 if is_last else 0), len(runs.positions) - 1)
        return np.where(lengths > 0, runs.positions[at], -1)

    def lists(number: int, values: pa.Array) -> pa.Array:
        lengths = runs.lengths[:, number]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=pa.array(lengths == 0))

    def component(number: int) -> pa.Array:
        own = query.components[number]
        field = output_schema(query, table.schema).field(own.name)
        struct = field.type.value_type if own.is_kleene else field.type
        at = runs.of_component(number) if own.is_kleene else places(number)
        parts = [values_at(table.column(part.name), at) for part in struct]
        array = pa.StructArray.from_arrays(parts, fields=list(struct), mask=pa.array(at < 0))
        return lists(number, array) if own.is_kleene else array

    def measure(_: int, expression: ir.Expr) -> pa.Array:
        match expression:
            case ir.Attribute(variable=str() as variable, name=name, position=position):
                return values_at(table.column(name), places(names.index(variable), position is Position.LAST))
            case ir.Aggregate(function="collect", argument=ir.Attribute(variable=str() as variable, name=name)):
                number = names.index(variable)
                return lists(number, values_at(table.column(name), runs.of_component(number)))
        values = [_value(expression, events, dict(zip(names, _selected(runs, run), strict=True))) for run in all_runs]
        return computed_column(expression, values, table.schema)

    all_runs = range(len(runs))
    return table_of_columns(query, events, (runs.first, runs.last), component, measure, with_times)


def _selected(runs: FlatMatches, number: int) -> tuple[tuple[int, ...], ...]:
    return runs.match(number).selected


def _value(expression: ir.Expr, events: Events, selected: dict[str, tuple[int, ...]]) -> Any:
    """The value of a measure; an event, or a list of values, of a variable that is not bound is NULL."""
    match expression:
        case ir.Function(name="named_struct") | ir.Aggregate(function="collect"):
            read = {node.variable for node in ir.walk(expression) if isinstance(node, ir.Attribute)}
            if read and not any(selected[name] for name in read if name is not None):
                return None
    return value_of(expression, events, selected)

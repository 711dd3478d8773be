"""Aggregates over all matches by group: the groups of completing events, and the table that comes out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import MATCH_END, AnalyzedQuery
from kleene.analysis.conversions import type_of
from kleene.analysis.totals import MICROSECONDS_PER_DAY, WINDOW_END, WINDOW_START
from kleene.engine.compiled.batches import partition_codes
from kleene.engine.compiled.columns import Array
from kleene.engine.events import plain_values, times_of, window_size
from kleene.engine.output import arrow_field, arrow_type, arrow_values, taken
from kleene.engine.totals.cells import Cell, decimal_of, digits_of, nearest, no_cell, scale_of, value_of_cell
from kleene.engine.totals.channels import Channels, Sums
from kleene.engine.totals.listed import sums_of_groups
from kleene.errors import ExecutionError, printable
from kleene.ir import expr as ir
from kleene.ir.options import Grouping
from kleene.ir.query import Measure
from kleene.plan.plan import ByKey, Plan
from kleene.schema import DATE, FLOAT, MOST_DECIMAL_DIGITS, Type, fits_everywhere


def grouping_of(query: AnalyzedQuery) -> Grouping:
    assert query.definition.grouping is not None
    return query.definition.grouping


def aggregate_of(measure: Measure) -> ir.Aggregate:
    assert isinstance(measure.expression, ir.Aggregate)
    return measure.expression


def spreads(plan: Plan) -> bool:
    """Whether the matches of a group may be of several keys, and so of several tasks."""
    query, split = plan.query, plan.split
    assert isinstance(query, AnalyzedQuery)
    grouping = grouping_of(query)
    if grouping.by_event or not isinstance(split, ByKey):
        return False
    return split.is_implied or not grouping.by_partition


# --- the columns ---------------------------------------------------------------------------------------------------


CELLS = "__kleene_cells"
"""The column of what is known of a group, while it travels."""


def totals_schema(query: AnalyzedQuery, columns: pa.Schema) -> pa.Schema:
    fields = list(group_fields(query, columns))
    if grouping_of(query).is_partial:
        return pa.schema([*fields, pa.field(CELLS, pa.string())])
    return pa.schema([*fields, *(_field(measure, grouping_of(query), columns) for measure in query.measures or ())])


def group_fields(query: AnalyzedQuery, columns: pa.Schema) -> Iterable[pa.Field]:
    """The columns that say which group a row is about."""
    grouping = grouping_of(query)
    if grouping.by_event or grouping.by_partition:
        yield from (columns.field(name) for name in query.key)
    if grouping.by_event:
        yield columns.field(query.order_by[0]).with_name(MATCH_END)
    if grouping.window is not None:
        time = columns.field(query.order_by[0]).type
        type_ = pa.timestamp(time.unit, time.tz) if pa.types.is_timestamp(time) else arrow_type(query.time_type)
        yield from (pa.field(name, type_) for name in (WINDOW_START, WINDOW_END))


def _field(measure: Measure, grouping: Grouping, columns: pa.Schema) -> pa.Field:
    aggregate = aggregate_of(measure)
    if aggregate.function in ("min", "max"):
        return arrow_field(aggregate, columns).with_name(measure.name)
    scale = _scale(aggregate)
    if scale is None or grouping.numbers == "float":
        return pa.field(measure.name, pa.float64())
    is_text = grouping.numbers == "text"
    return pa.field(measure.name, pa.string() if is_text else pa.decimal128(MOST_DECIMAL_DIGITS, scale))


def _scale(aggregate: ir.Aggregate) -> int | None:
    """How many digits of a number without bound stand behind its point; None if the value is a float."""
    if aggregate.function == "count":
        return 0
    is_float = aggregate.function == "avg" or aggregate.argument.type == FLOAT
    return None if is_float else scale_of(aggregate.argument.type)


# --- groups --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of completing events: a row of each says what it is. `of_event` has the group of each event."""

    columns: pa.Table
    of_event: Array
    count: int


def groups_of_events(query: AnalyzedQuery, table: pa.Table, ends: Array) -> Groups:
    """The groups of the events at these positions, which ascend; groups come in the order of their first events."""
    grouping = grouping_of(query)
    codes = np.zeros(len(ends), np.int64)
    parts: list[Array] = []
    if grouping.by_event:
        codes = np.arange(len(ends))
    if grouping.by_partition and query.key:
        keys = table.select(list(query.key)).take(pa.array(ends, pa.int64()))
        parts.append(partition_codes(keys, query.key, null_is_a_key=True)[0])
    starts = _window_starts(query, table, ends) if grouping.window is not None else None
    if starts is not None:
        numbers = {start: number for number, start in enumerate(dict.fromkeys(starts))}
        parts.append(np.array([numbers[start] for start in starts], np.int64))
    for part in parts:
        _, codes = np.unique(np.stack([codes, part]), axis=1, return_inverse=True)
        codes = codes.reshape(-1)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first, kind="stable"), kind="stable")
    codes, first = order[codes], np.sort(first)
    return Groups(_group_columns(query, table, ends[first], starts, first), codes, len(first))


def _group_columns(
    query: AnalyzedQuery, table: pa.Table, ends: Array, starts: list[Any] | None, first: Array
) -> pa.Table:
    fields = list(group_fields(query, table.schema))
    arrays: list[Any] = []
    for field in fields:
        if field.name in (WINDOW_START, WINDOW_END) and starts is not None:
            size = 0 if field.name == WINDOW_START else tumbling_size(query)
            arrays.append(_times([starts[at] + size for at in first.tolist()], query.time_type, field.type))
        else:
            name = query.order_by[0] if field.name == MATCH_END and len(arrays) == len(query.key) else field.name
            arrays.append(taken(table, name, ends).cast(field.type))
    return pa.table(arrays, schema=pa.schema(fields)) if fields else no_columns(len(first))


def no_columns(rows: int) -> pa.Table:
    """Rows that say nothing."""
    return pa.table({"": pa.nulls(rows)}).select([])


def tumbling_size(query: AnalyzedQuery) -> Any:
    window = grouping_of(query).window
    assert window is not None
    size = window_size(window, query.time_type)
    if isinstance(size, Decimal):
        if size != int(size):
            raise ExecutionError(
                f"per = {window.size} is no whole number of the order key's units", hint="Choose a multiple of them."
            )
        size = int(size)
    return size


def _window_starts(query: AnalyzedQuery, table: pa.Table, ends: Array) -> list[Any]:
    """The start of the window that each event lies in; windows are counted from zero, for times from 1970 in UTC."""
    name = query.order_by[0]
    column = table.column(name).take(pa.array(ends, pa.int64()))
    times, size = times_of(plain_values(column, query.time_type, name), query.time_type), tumbling_size(query)
    if query.time_type == FLOAT:
        return [math.floor(time / size) * size if math.isfinite(time) else time for time in times]
    return [time // size * size for time in times]


def _times(values: list[Any], type_: Type, target: pa.DataType) -> pa.Array:
    if type_ == DATE:
        values = [value // MICROSECONDS_PER_DAY for value in values]
    try:
        return arrow_values(values, type_, target)
    except (OverflowError, pa.ArrowInvalid):
        raise ExecutionError(
            "a window of time ends later than any time that can be written down", hint="Choose a shorter window."
        ) from None


# --- rows ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Totals:
    """What is known of some matches: a row of `groups` for each group, and its cells, one for each aggregate."""

    groups: pa.Table
    cells: list[list[Cell]]


def totals_of(query: AnalyzedQuery, table: pa.Table, ends: Array, sums: Sums, channels: Channels) -> Totals:
    """The cells of all groups of the completing events; `ends` are their positions, in any order."""
    own, places = np.unique(ends, return_inverse=True)
    groups = groups_of_events(query, table, own)
    by_group = sums_of_groups(sums, groups.of_event[places], groups.count)
    return Totals(groups.columns, [[cell(by_group, group) for cell in channels.cells] for group in range(groups.count)])


def totals_table(query: AnalyzedQuery, found: Totals, columns: pa.Schema) -> pa.Table:
    """The rows that people see. Grouped by nothing, there is always one."""
    grouping, measures = grouping_of(query), query.measures or ()
    cells, groups = found.cells, found.groups
    if not cells and not (grouping.by_event or grouping.by_partition or grouping.window is not None):
        cells, groups = [[no_cell(aggregate_of(measure)) for measure in measures]], no_columns(1)
    schema = totals_schema(query, columns)
    arrays = [groups.column(number) for number in range(groups.num_columns)]
    for number, measure in enumerate(measures):
        aggregate = aggregate_of(measure)
        values = [value_of_cell(aggregate, own[number]) for own in cells]
        arrays.append(_column(measure, values, schema.field(measure.name).type))
    return pa.table(arrays, schema=schema)


def _column(measure: Measure, values: list[Any], target: pa.DataType) -> pa.Array:
    aggregate = aggregate_of(measure)
    if aggregate.function in ("min", "max"):
        type_ = type_of(aggregate)
        return pa.nulls(len(values), target) if fits_everywhere(type_) else arrow_values(values, type_, target)
    scale = _scale(aggregate)
    if scale is None:
        return pa.array(values, pa.float64())
    return pa.array([_number(measure, value, scale, target) for value in values], target)


def _number(measure: Measure, value: int | None, scale: int, target: pa.DataType) -> Any:
    """A number without bound as the column has it."""
    if value is None:
        return None
    if pa.types.is_string(target):
        return digits_of(value, scale)
    if pa.types.is_floating(target):
        return nearest(value, 10**scale)
    if abs(value) >= 10**MOST_DECIMAL_DIGITS:
        digits = len(digits_of(abs(value)))
        raise ExecutionError(
            f"'{printable(measure.name)}' has {digits:,} digits, but a decimal holds {MOST_DECIMAL_DIGITS}",
            hint="Ask for numbers='text', which holds all of them, or for numbers='float'.",
        )
    return decimal_of(value, scale)

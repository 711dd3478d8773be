"""Rows that are read off the ends of matches, made for a whole table at once.

Where each match of a row pattern gives one row, and its measures are values of its first or last row, its length or its
number, a share need only say where its matches begin and end. No two of them end at the same row of the table, so that
each match has a slot of its own, that of its last row. Going through the slots gives the matches in output order, with
nothing to sort, and their values are taken from the columns of the table as it was given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.budget import Budget
from kleene.engine.compiled.arrays.row_groups import (
    ROW_GROUP_COLUMNS,
    ROW_GROUP_END,
    ROW_GROUP_FIRST,
    ROW_GROUP_OPENS,
    ROW_GROUP_SEEN_END,
    ROW_GROUP_START,
    ROW_GROUP_STARTS_END,
)
from kleene.engine.compiled.arrays.row_matches import ROW_MATCH_NUMBER
from kleene.engine.compiled.batches import EMPTY, Grouped
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.kernel_window import KernelWindow
from kleene.engine.compiled.loading import SharedLoops
from kleene.engine.compiled.row_engine import MOST_STATES, RowEngine
from kleene.engine.compiled.row_search import Search
from kleene.engine.output import as_schema, values_at
from kleene.engine.plain_rows import Ends, is_plain_query, plain_columns
from kleene.engine.share_keys import Workers, one_array
from kleene.engine.shares import Share
from kleene.engine.tasks import grouped_by
from kleene.ir import expr as ir
from kleene.ir.options import AfterMatch, Skip
from kleene.ir.pattern import can_be_empty
from kleene.plan.plan import Plan

AT_ONCE = 1 << 16
"""So many slots are gone through together: what is made of them stays in the cache."""
FEW = 16
"""Where there are so many times as many rows as matches, sorting the matches is quicker than going through the rows."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Matches in any order: the position of each one's last row, and its first row and length in one number."""

    last: Array
    matches: Array
    numbers: Array  # in their partitions, if the query asks for them


def searched_columns(plan: Plan, table: pa.Table) -> list[str] | None:
    """The columns that the search for matches looks at, where rows are read off their ends; None where they are not."""
    query = plan.query
    if not isinstance(query, AnalyzedRowPattern) or not is_plain_query(query):
        return None
    after = query.definition.after_match or AfterMatch()
    if after.skip is not Skip.PAST_LAST_ROW or can_be_empty(query.definition.pattern):
        return None
    read = {node.name for _, one in query.conditions for node in ir.walk(one) if isinstance(node, ir.Attribute)}
    if KernelWindow.of(query).in_time is not None:
        read.add(query.order_by[0].name)
    return [name for name in table.column_names if name in read]


def packed_matches(
    engine: RowEngine, share: Share, nullable: frozenset[str], loops: SharedLoops, budget: Budget
) -> Packed:
    """The matches in a share."""
    query, positions, grouped = engine.query, share.positions, _grouped(engine.query, share)
    if grouped.given is not None:
        positions = positions[grouped.given]
    groups = np.zeros((len(grouped.numbers), ROW_GROUP_COLUMNS), np.int64)
    groups[:, ROW_GROUP_FIRST] = groups[:, ROW_GROUP_START] = grouped.begins[:-1]
    for end in (ROW_GROUP_END, ROW_GROUP_SEEN_END, ROW_GROUP_STARTS_END):
        groups[:, end] = grouped.begins[1:]
    groups[:, ROW_GROUP_OPENS] = 1
    parts = list[Packed]()
    search = Search(engine, share.table, grouped, groups, nullable, budget)
    for found in search.tables(min(budget.at_once, MOST_STATES) // 8):
        last, matches = np.empty(len(found), np.int32), np.empty(len(found), np.int64)
        loops["pack_matches"](found, positions, last, matches)
        parts.append(Packed(last, matches, found[:, ROW_MATCH_NUMBER].copy() if _is_numbered(query) else EMPTY))
        budget.add("its matches", last.nbytes + matches.nbytes + parts[-1].numbers.nbytes)
    return joined(parts)


def _grouped(query: AnalyzedRowPattern, share: Share) -> Grouped:
    """The rows of a share by partition."""
    if share.partitions is None:
        return grouped_by(share.table, query.partition_by)
    return Grouped(None, share.partitions, np.arange(len(share.partitions) - 1))


def _is_numbered(query: AnalyzedRowPattern) -> bool:
    return any(isinstance(one.expression, ir.MatchNumber) for one in query.measures)


def joined(parts: Sequence[Packed]) -> Packed:
    if len(parts) == 1:
        return parts[0]
    columns = zip(*((part.last, part.matches, part.numbers) for part in parts), strict=True)
    return Packed(*map(np.concatenate, columns))


def table_of_matches(
    query: AnalyzedRowPattern,
    table: pa.Table,
    schema: pa.Schema,
    found: Sequence[Packed],
    loops: SharedLoops,
    workers: Workers,
) -> pa.Table:
    """The rows of all matches, in output order and with the columns of the schema."""
    count = sum(len(part.last) for part in found)
    if count * FEW < table.num_rows:
        few = joined(found)
        order = np.argsort(few.last, kind="stable")
        matches, numbers = few.matches[order], few.numbers[order] if len(few.numbers) else EMPTY
        ends = Ends(matches & 0xFFFFFFFF, few.last[order].astype(np.int64), matches >> 32, numbers)
        return as_schema([column.values(table, ends) for column in plain_columns(query)], schema)
    slots = _in_slots(found, [part.matches for part in found], table.num_rows, loops, workers)
    numbers = EMPTY
    if _is_numbered(query):
        numbers = _in_slots(found, [part.numbers for part in found], table.num_rows, loops, workers)
    begins = range(0, len(slots), AT_ONCE)
    counts = workers.map(lambda begin: int(np.count_nonzero(slots[begin : begin + AT_ONCE])), begins)
    bases = dict(zip(begins, np.cumsum([0, *counts]).tolist(), strict=False))
    columns = plain_columns(query)
    whole = {name: one_array(table.column(name)) for name in {one.name for one in columns} if name is not None}
    targets = [_target(None if one.name is None else whole[one.name], count) for one in columns]

    def fill(begin: int) -> None:
        own = slots[begin : begin + AT_ONCE]
        room = np.empty((3, len(own)), np.int64)
        size = loops["unpack_slots"](own, begin, *room)
        first, last, lengths = room[:, :size]
        ends = Ends(first, last, lengths, numbers[last] if len(numbers) else EMPTY)
        for column, target in zip(columns, targets, strict=True):
            target.put(bases[begin], column.of(ends))

    workers.map(fill, begins)
    return as_schema(workers.map(lambda target: target.done(), targets), schema)


def _in_slots(
    found: Sequence[Packed], values: Sequence[Array], rows: int, loops: SharedLoops, workers: Workers
) -> Array:
    """The values of matches, each where the last row of its match stands; 0 elsewhere."""
    slots = np.zeros(rows, np.int64)
    workers.map(
        lambda part: loops["put_long"](found[part].last, 0, len(found[part].last), values[part], slots),
        range(len(found)),
    )
    return slots


class _Target(Protocol):
    """A column of the output, as it is filled."""

    def put(self, base: int, places: Array) -> None:
        """Fills the rows from number `base` on with the values at these places."""

    def done(self) -> pa.Array | pa.ChunkedArray: ...


def _target(column: pa.Array | None, count: int) -> _Target:
    if column is None:
        return _Places(np.empty(count, np.int64))
    is_plain = pa.types.is_primitive(column.type) and column.type.bit_width >= 8 and not column.null_count
    return _Numbers(column, count) if is_plain else _Values(column)


@dataclass(frozen=True, slots=True)
class _Places:
    """What the places themselves are."""

    filled: Array

    def put(self, base: int, places: Array) -> None:
        self.filled[base : base + len(places)] = places

    def done(self) -> pa.Array:
        return pa.array(self.filled)


class _Numbers:
    """Values of so many bits each, without NULLs."""

    def __init__(self, column: pa.Array, count: int) -> None:
        self._type = column.type
        self._values = column.view(f"int{column.type.bit_width}").to_numpy()
        self._filled = np.empty(count, self._values.dtype)

    def put(self, base: int, places: Array) -> None:
        # With "raise", NumPy would copy what it writes to.
        np.take(self._values, places, out=self._filled[base : base + len(places)], mode="clip")

    def done(self) -> pa.Array:
        return pa.array(self._filled).view(self._type)


class _Values:
    def __init__(self, column: pa.Array) -> None:
        self._column = column
        self._filled: dict[int, pa.Array] = {}

    def put(self, base: int, places: Array) -> None:
        if len(places):
            self._filled[base] = values_at(self._column, places)

    def done(self) -> pa.ChunkedArray:
        return pa.chunked_array([self._filled[base] for base in sorted(self._filled)])

"""A table to shares that can be matched apart: partitions, of which each is whole in one share.

Events of types that the query does not name are left out on the way, where nothing counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.batches import partition_codes
from kleene.engine.compiled.columns import Array, encoded_values, not_read_only
from kleene.engine.compiled.loading import SharedLoops, shared_loops
from kleene.engine.needs import SKIPPING, type_column_of
from kleene.ir.options import WindowUnit
from kleene.plan.plan import ByKey, Plan

LEAST_ROWS = 100_000
"""Below so many events, threads take longer to start than they save."""
HEAVY = 0.7
"""With more than this part of the events in one partition, the others would wait for it."""
ROWS_AT_ONCE = 1 << 18
"""About so many events a share has where there are more of them: what belongs to them fits into the cache."""
MANY_OF_A_KEY = 8
"""With fewer events of a key on the average, there is nothing to gain from having them together."""
MOST_ROWS = 2**31 - 1
Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers(Protocol):
    """Threads; what they give back comes in the order of what they were given."""

    @property
    def count(self) -> int: ...

    def map(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> list[Result]: ...


@dataclass(frozen=True, slots=True)
class Share:
    """Some of the events, in their order or key by key. `positions` are where they stand in the whole table."""

    table: pa.Table
    positions: Array


@dataclass(frozen=True, slots=True)
class Cut:
    """The events of each share together. Those of share s stand from begins[s] on; `positions` is where they stood."""

    table: pa.Table
    positions: Array
    begins: Array

    def __len__(self) -> int:
        return len(self.begins) - 1

    def share(self, number: int) -> Share:
        begin, end = self.begins[number : number + 2].tolist()
        return Share(self.table.slice(begin, end - begin), self.positions[begin:end])


def cut_by_key(plan: Plan, table: pa.Table, jit: bool, workers: Workers) -> Cut | None:
    """The partitions spread over the shares; None where there is one key, or too much of it."""
    assert isinstance(plan.split, ByKey)
    loops = shared_loops(jit)
    if table.num_rows > MOST_ROWS:
        return None
    table = with_codes(table, [*plan.split.columns, *_type_columns(plan)], workers)
    codes, count = partition_codes(table, plan.split.columns, isinstance(plan.query, AnalyzedRowPattern))
    _leave_out(plan, table, codes, loops, workers)
    sizes = np.zeros(count, np.int64)
    loops["count_by_share"](codes, np.arange(count), sizes)
    if not sizes.sum() or sizes.max() > HEAVY * sizes.sum():
        return None
    shares = max(workers.count, int(sizes.sum()) // ROWS_AT_ONCE)
    share_of = _spread(sizes, shares, is_in_order=_goes_by_partition(plan), codes=codes)
    if _stands_by_key(plan, sizes):
        return _by_key(table, codes, share_of, shares, loops, workers)
    return _arranged(table, codes, share_of, shares, loops, workers)


def _stands_by_key(plan: Plan, sizes: Array) -> bool:
    """Whether the events of each key stand together in a share: a sequence looks for others of its key, up to four
    times as fast where they are near. An engine that does not know the key needs all events in the order of time.
    """
    assert isinstance(plan.split, ByKey)
    is_sequence = plan.pipeline is not None and plan.pipeline.is_sequence and not plan.split.is_implied
    return is_sequence and int(sizes.sum()) >= MANY_OF_A_KEY * len(sizes)


def _by_key(table: pa.Table, codes: Array, share_of: Array, shares: int, loops: SharedLoops, workers: Workers) -> Cut:
    """The rows of each key together, and the keys of each share."""
    order = np.argsort(share_of, kind="stable")
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.arange(len(order))
    by_key = _arranged(table, codes, place_of, len(order), loops, workers)
    firsts = np.searchsorted(share_of[order], np.arange(shares + 1))
    return Cut(by_key.table, by_key.positions, by_key.begins[firsts])


def _parts(rows: int, workers: Workers) -> list[slice]:
    size = -(-rows // workers.count)
    return [slice(begin, min(begin + size, rows)) for begin in range(0, rows, size)]


def _arranged(table: pa.Table, codes: Array, share_of: Array, shares: int, loops: SharedLoops, workers: Workers) -> Cut:
    """The rows of each share together: each thread counts, and then moves, the rows of its part of the table."""
    rows = table.num_rows
    parts = _parts(rows, workers)
    counts = np.zeros((len(parts), shares), np.int64)
    workers.map(lambda own: loops["count_by_share"](codes[parts[own]], share_of, counts[own]), range(len(parts)))
    begins = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    cursors = begins[:-1] + np.cumsum(counts, axis=0) - counts
    new_places, positions = np.empty(rows, np.int32), np.empty(int(begins[-1]), np.int64)
    moves = [_Move(column) for column in table.columns]
    for move in moves:
        move.begin(len(positions), loops)

    def moved(own: int) -> None:
        there = new_places[parts[own]]
        loops["places_by_share"](codes[parts[own]], share_of, cursors[own], there)
        loops["move_rows"](there, parts[own].start, positions)
        for move in moves:
            move.run(there, parts[own])

    workers.map(moved, range(len(parts)))
    columns = workers.map(lambda move: move.done(positions), moves)
    return Cut(pa.table(columns, names=table.column_names), positions, begins)


class _Move:
    """A column on its way to where the shares have their rows. Of what is no plain number, Arrow takes the rows."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column, self._words = column, None
        if pa.types.is_dictionary(column.type):
            encoded = encoded_values(column)
            self._column, self._words = pa.chunked_array([encoded.indices]), encoded.dictionary
        self._type = self._column.type
        self._values: Array | None = None

    def begin(self, rows: int, loops: SharedLoops) -> None:
        is_plain = pa.types.is_primitive(self._type) and self._type.bit_width in (32, 64) and len(self._column)
        if not is_plain or self._column.null_count:
            return
        whole = self._column.combine_chunks()
        whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
        is_long = self._type.bit_width == 64
        self._values = not_read_only(whole.view(pa.int64() if is_long else pa.int32()).to_numpy())
        self._moved = np.empty(rows, self._values.dtype)
        self._loop = loops["move_long" if is_long else "move_short"]

    def run(self, new_places: Array, rows: slice) -> None:
        if self._values is not None:
            self._loop(new_places, self._values[rows], self._moved)

    def done(self, positions: Array) -> pa.Array:
        if self._values is None:
            found = self._column.take(pa.array(positions))
            found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        else:
            found = pa.array(self._moved).view(self._type)
        return found if self._words is None else pa.DictionaryArray.from_arrays(found, self._words)


def _leave_out(plan: Plan, table: pa.Table, codes: Array, loops: SharedLoops, workers: Workers) -> None:
    """Takes events of types that the query does not name out of their partitions."""
    query, names = plan.query, _type_columns(plan)
    if not names or not isinstance(query, AnalyzedQuery):
        return
    uses = [*(one.types for one in query.components), *(one.types for one in query.negations)]
    types = {type_ for use in uses for type_ in use}
    column = encoded_values(table.column(names[0]))
    wanted = np.array([*(word in types for word in column.dictionary.to_pylist()), False], np.int64)
    kinds = not_read_only(column.indices.fill_null(len(wanted) - 1).to_numpy(zero_copy_only=False))
    workers.map(lambda own: loops["leave_out"](codes[own], kinds[own], wanted), _parts(len(codes), workers))


def _type_columns(plan: Plan) -> list[str]:
    """The column of types, where events of other types do not matter."""
    query = plan.query
    if not isinstance(query, AnalyzedQuery) or query.strategy not in SKIPPING:
        return []
    if query.window is not None and query.window.unit is WindowUnit.EVENTS:
        return []
    name = type_column_of(query.schema)
    return [] if name is None else [name]


def _goes_by_partition(plan: Plan) -> bool:
    """Whether the output goes from partition to partition, in the order in which they appear."""
    return isinstance(plan.query, AnalyzedRowPattern) and plan.query.frame is not None


def _spread(sizes: Array, count: int, is_in_order: bool, codes: Array) -> Array:
    """The share of each partition, so that all shares have about as many events."""
    share_of = np.empty(len(sizes), np.int64)
    if is_in_order:
        first = np.full(len(sizes), len(codes))
        np.minimum.at(first, codes[codes >= 0], np.flatnonzero(codes >= 0))
        order = np.argsort(first, kind="stable")
        share_of[order] = (np.cumsum(sizes[order]) - 1) * count // max(int(sizes.sum()), 1)
        return np.clip(share_of, 0, count - 1)
    # From the largest to the smallest, back and forth: 0 1 1 0 0 1 1 0 …
    there_and_back = np.concatenate([np.arange(count), np.arange(count)[::-1]])
    share_of[np.argsort(-sizes, kind="stable")] = np.resize(there_and_back, len(sizes))
    return share_of


def with_codes(table: pa.Table, names: Sequence[str], workers: Workers) -> pa.Table:
    """The table with these columns, where they are texts, as codes in a dictionary: numbered once, in all threads."""
    for name in dict.fromkeys(names):
        column = table.column(name)
        if pa.types.is_string(column.type) and len(column):
            parts = [column.slice(own.start, own.stop - own.start) for own in _parts(len(column), workers)]
            encoded = pa.chunked_array(workers.map(_encoded, parts)).unify_dictionaries().combine_chunks()
            table = table.set_column(table.schema.get_field_index(name), name, encoded)
    return table


def _encoded(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks().dictionary_encode()

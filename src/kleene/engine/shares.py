"""A table to shares that can be matched apart: partitions, of which each is whole in one share.

Events of types that the query does not name are left out on the way, where nothing counts them. Each thread has a part
of the table: it finds the rows of use in it, numbers their keys, and moves them to where their shares stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.budget import Budget
from kleene.engine.compiled.columns import Array, encoded_values, not_read_only
from kleene.engine.compiled.loading import SharedLoops, shared_loops
from kleene.engine.share_keys import (
    NO_ROWS,
    Keys,
    Rows,
    Workers,
    keys_of,
    one_array,
    parts_of,
    rows_of_types,
    type_words,
)
from kleene.plan.plan import ByKey, Plan

LEAST_ROWS = 100_000
"""Below so many events, threads take longer to start than they save."""
HEAVY = 0.7
"""With more than this part of the events in one partition, the others would wait for it."""
ROWS_AT_ONCE = 1 << 18
"""About so many events a share has where there are more of them: what belongs to them fits into the cache."""
SMALL = 64
"""A partition is small if so many of its size make a share."""
AT_ONCE = 1 << 17
"""So many rows are moved together, column by column: their places stay in the cache."""
MANY_OF_A_KEY = 8
"""With fewer events of a key on the average, there is nothing to gain from having them together."""
MANY_KEYS = 1 << 15
"""With more keys than this, the places that their rows are moved to do not fit into the cache."""
MOST_ROWS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Share:
    """Some of the events, in their order or key by key. `positions` are where they stand in the whole table.

    Where they stand key by key, partition p has the events from partitions[p] to partitions[p + 1].
    """

    table: pa.Table
    positions: Array
    partitions: Array | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """The events of each share together. Those of share s stand from begins[s] on; `positions` is where they stood.

    `columns` are those that were moved there; of the others, a share takes its values when it is asked for.
    Where events stand key by key, `partitions` has where those of each key begin, and last, how many events there are.
    """

    table: pa.Table
    columns: dict[str, pa.Array]
    positions: Array
    begins: Array
    partitions: Array | None = None

    def __len__(self) -> int:
        return len(self.begins) - 1

    @property
    def bytes(self) -> int:
        return int(self.positions.nbytes + sum(column.nbytes for column in self.columns.values()))

    def share(self, number: int) -> Share:
        begin, end = self.begins[number : number + 2].tolist()
        positions, columns = self.positions[begin:end], list[pa.Array | pa.ChunkedArray]()
        for name in self.table.column_names:
            if name in self.columns:
                columns.append(self.columns[name].slice(begin, end - begin))
            else:
                columns.append(self.table.column(name).take(pa.array(positions)))
        return Share(pa.table(columns, names=self.table.column_names), positions, self._partitions(begin, end))

    def _partitions(self, begin: int, end: int) -> Array | None:
        if self.partitions is None:
            return None
        first, last = np.searchsorted(self.partitions, [begin, end])
        return np.append(np.unique(self.partitions[first:last]), end) - begin  # of equal ones, some have no events


def cut_by_key(
    plan: Plan,
    table: pa.Table,
    jit: bool,
    workers: Workers,
    budget: Budget | None = None,
    searched: Sequence[str] | None = None,
) -> Cut | None:
    """The partitions spread over the shares; None where there is one key, or too much of it.

    `searched` are the columns that shares need to find matches, if their rows are made of the whole table.
    """
    assert isinstance(plan.split, ByKey)
    if table.num_rows > MOST_ROWS:
        return None
    loops, parts = shared_loops(jit), parts_of(table.num_rows, workers)
    typed = type_words(plan, table)
    if typed is not None:
        types = one_array(table.column(typed[0]))
        parts = workers.map(partial(rows_of_types, types, typed[1], loops), parts)
    if len(plan.split.columns) > 1 or table.column(plan.split.columns[0]).null_count:
        table = with_codes(table, plan.split.columns, workers)
    keys = keys_of(plan, table, parts, loops, workers)
    sizes = np.array(workers.map(partial(_sizes, keys, loops), range(len(parts))))
    totals = sizes.sum(axis=0)
    if not totals.sum() or totals.max() > HEAVY * totals.sum():
        return None
    shares = _count_of_shares(int(totals.sum()), workers)
    share_of = _in_order(totals, shares, parts, keys) if _goes_by_partition(plan) else _spread(totals, shares)
    by_key = _stands_by_key(plan, totals, searched is not None)
    if searched is not None:
        table = table.select(list(searched if by_key else dict.fromkeys((*searched, *plan.split.columns))))
    columns = _Columns(table, parts, loops)
    if typed is not None:
        columns.add_codes(typed[0], pa.array(typed[1], pa.string()), [(part.kinds, None) for part in parts])
    if keys.words is not None and plan.split.columns[0] in table.column_names:
        columns.add_codes(plan.split.columns[0], keys.words, [(own.codes, own.number_of) for own in keys.parts])
    arrange = _arranged_by_key if by_key else _arranged
    return arrange(columns, keys, share_of, sizes, workers, budget or Budget())


def _count_of_shares(rows: int, workers: Workers) -> int:
    """As many for each thread."""
    return workers.count * max(1, round(rows / ROWS_AT_ONCE / workers.count))


def _stands_by_key(plan: Plan, sizes: Array, by_ends: bool) -> bool:
    """Whether the events of each key stand together in a share: a sequence looks for others of its key, up to four
    times as fast where they are near. An engine that does not know the key needs all events in the order of time.

    A search for the ends of matches takes one key after the other. With many keys it is quicker to put those of each
    share together when it is searched.
    """
    assert isinstance(plan.split, ByKey)
    if int(sizes.sum()) < MANY_OF_A_KEY * len(sizes) or plan.split.is_implied:
        return False
    if plan.pipeline is not None and plan.pipeline.is_sequence:
        return True
    return (by_ends or isinstance(plan.query, AnalyzedQuery)) and len(sizes) <= MANY_KEYS


def _arranged_by_key(
    columns: _Columns, keys: Keys, share_of: Array, sizes: Array, workers: Workers, budget: Budget
) -> Cut:
    """The rows of each key together, and the keys of each share."""
    order = np.argsort(share_of, kind="stable")
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.arange(len(order))
    by_key = _arranged(columns, keys, place_of, sizes, workers, budget)
    firsts = np.searchsorted(share_of[order], np.arange(int(share_of.max()) + 2))
    return replace(by_key, begins=by_key.begins[firsts], partitions=by_key.begins)


def _sizes(keys: Keys, loops: SharedLoops, number: int) -> Array:
    """How many rows of a part each partition has."""
    own, sizes = keys.parts[number], np.zeros(keys.count, np.int64)
    counts = np.zeros(max(len(own.number_of), 1), np.int64)
    loops["count_codes"](own.codes, counts)
    sizes[own.number_of] = counts[: len(own.number_of)]
    return sizes


def _spread(sizes: Array, count: int) -> Array:
    """The share of each partition, so that all shares have about as many events."""
    share_of = np.arange(len(sizes)) % count
    # Many small ones are even on average. The large go there and back, from the largest on: 0 1 1 0 0 1 1 0 …
    large = np.flatnonzero(sizes * (SMALL * count) > sizes.sum())
    there_and_back = np.concatenate([np.arange(count), np.arange(count)[::-1]])
    share_of[large[np.argsort(-sizes[large], kind="stable")]] = np.resize(there_and_back, len(large))
    return share_of


def _in_order(sizes: Array, count: int, parts: Sequence[Rows], keys: Keys) -> Array:
    """The share of each partition where those that appear first come first."""
    first = np.full(len(sizes), MOST_ROWS)
    for part, own in reversed(list(zip(parts, keys.parts, strict=True))):
        inside = np.flatnonzero(own.codes >= 0)[::-1]
        first[own.number_of[own.codes[inside]]] = part.first + inside
    order, share_of = np.argsort(first, kind="stable"), np.empty(len(sizes), np.int64)
    share_of[order] = (np.cumsum(sizes[order]) - 1) * count // max(int(sizes.sum()), 1)
    return np.clip(share_of, 0, count - 1)


def _goes_by_partition(plan: Plan) -> bool:
    """Whether the output goes from partition to partition, in the order in which they appear."""
    return isinstance(plan.query, AnalyzedRowPattern) and plan.query.frame is not None


# --- moving ---


def _arranged(columns: _Columns, keys: Keys, share_of: Array, sizes: Array, workers: Workers, budget: Budget) -> Cut:
    """The rows of each share together: each thread moves the rows of its part of the table."""
    shares = int(share_of.max()) + 1
    counts = np.array([np.bincount(share_of, own, shares) for own in sizes]).astype(np.int64)
    begins = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    cursors = begins[:-1] + np.cumsum(counts, axis=0) - counts
    positions = np.empty(int(begins[-1]), np.int32)
    moved = columns.begin(len(positions))
    budget.hold("the events by share", positions.nbytes + sum(array.nbytes for array in moved.values()))
    loops, parts = columns.loops, columns.parts

    def move(number: int) -> None:
        own, shares_of_part, room = (
            keys.parts[number],
            share_of[keys.parts[number].number_of],
            np.empty(AT_ONCE, np.int32),
        )
        for begin in range(0, len(own.codes), AT_ONCE):
            codes = own.codes[begin : begin + AT_ONCE]
            places = room[: len(codes)]
            loops["places_by_share"](codes, shares_of_part, cursors[number], places)
            use, first = parts[number].some(begin, len(codes))
            loops["move_rows"](places, use, first, positions)
            columns.move(number, begin, places)

    workers.map(move, range(len(parts)))
    return Cut(columns.table, columns.done(), positions, begins)


class _Columns:
    """The columns on their way to where the shares have their rows: those that are plain numbers, or codes."""

    def __init__(self, table: pa.Table, parts: Sequence[Rows], loops: SharedLoops) -> None:
        self.table, self.parts, self.loops = table, parts, loops
        self._codes: dict[str, tuple[pa.Array, list[tuple[Array, Array | None]]]] = {}
        self._numbers: dict[str, Array] = {}
        self._moved: dict[str, Array] = {}

    def add_codes(self, name: str, words: pa.Array, codes: list[tuple[Array, Array | None]]) -> None:
        """The column travels as codes of these words: of each part its codes, and what all parts call them."""
        self._codes[name] = (words, codes)

    def begin(self, rows: int) -> dict[str, Array]:
        """Room for so many rows of each column that travels."""
        for name in self.table.column_names:
            if name not in self._codes:
                numbers = plain_numbers(self.table.column(name))
                if numbers is not None:
                    self._numbers[name] = numbers
        self._moved = {name: np.empty(rows, np.int32) for name in self._codes}
        self._moved |= {name: np.empty(rows, values.dtype) for name, values in self._numbers.items()}
        return self._moved

    def move(self, number: int, begin: int, places: Array) -> None:
        """Moves the rows of a part, from one of them on, to their places."""
        use, first = self.parts[number].some(begin, len(places))
        for name, values in self._numbers.items():
            loop = self.loops["move_long" if values.dtype == np.int64 else "move_short"]
            loop(places, use, first, values, self._moved[name])
        for name, (_, codes) in self._codes.items():
            own, number_of = codes[number]
            own = own[begin : begin + len(places)]
            if number_of is None:
                self.loops["move_short"](places, NO_ROWS, 0, own, self._moved[name])
            else:
                self.loops["move_codes"](places, own, number_of, self._moved[name])

    def done(self) -> dict[str, pa.Array]:
        found = {}
        for name, moved in self._moved.items():
            array, type_ = pa.array(moved), self.table.column(name).type
            if name in self._codes:
                found[name] = pa.DictionaryArray.from_arrays(array, self._codes[name][0])
            elif pa.types.is_dictionary(type_):
                words = encoded_values(self.table.column(name)).dictionary
                found[name] = pa.DictionaryArray.from_arrays(array, words)
            else:
                found[name] = array.view(type_)
        return found


def plain_numbers(column: pa.ChunkedArray) -> Array | None:
    """The column's values as numbers of 32 or 64 bits, or its codes, without a copy if they are in one piece."""
    values = encoded_values(column).indices if pa.types.is_dictionary(column.type) else column
    is_plain = pa.types.is_primitive(values.type) and values.type.bit_width in (32, 64)
    if not is_plain or values.null_count or not len(values):
        return None
    whole = one_array(values) if isinstance(values, pa.ChunkedArray) else values
    return not_read_only(whole.view(pa.int64() if values.type.bit_width == 64 else pa.int32()).to_numpy())


def with_codes(table: pa.Table, names: Sequence[str], workers: Workers) -> pa.Table:
    """The table with these columns, where they are texts, as codes in a dictionary: numbered once, in all threads."""
    for name in dict.fromkeys(names):
        column = table.column(name)
        if pa.types.is_string(column.type) and len(column):
            parts = [column.slice(own.first, len(own)) for own in parts_of(len(column), workers)]
            encoded = pa.chunked_array(workers.map(_encoded, parts)).unify_dictionaries().combine_chunks()
            table = table.set_column(table.schema.get_field_index(name), name, encoded)
    return table


def _encoded(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks().dictionary_encode()

"""Rows of several parts, each in output order, to one table in output order.

A row's place is the position of the event that completes its match. Places are cut into stretches, so that what belongs
to one fits into the cache, and threads work on stretches: they count the rows of each place, which says where each row
goes, and put the values of one column after the other there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from kleene.engine.compiled.columns import Array, not_read_only
from kleene.engine.compiled.loading import SharedLoops
from kleene.engine.output import values_at
from kleene.engine.share_keys import Workers, one_array
from kleene.engine.texts import TextArrays

ROWS_OF_A_STRETCH = 1 << 17
"""About so many rows belong to a stretch."""
FEW = 16
"""Where there are so many times as many events as rows, rows are sorted."""
MOST_ROWS = MOST_BYTES = 2**31 - 1
"""Rows, and bytes of the texts of a column, that numbers of 32 bits count."""


@dataclass(frozen=True, slots=True)
class Made:
    """Rows in output order, and of each the place of the event that completes its match."""

    rows: pa.Table
    places: Array

    def behind(self, first: int) -> Made:
        """The rows from a place on."""
        return self.some(int(np.searchsorted(self.places, first)), len(self.places)) if first else self

    def some(self, begin: int, end: int) -> Made:
        return Made(self.rows.slice(begin, end - begin), self.places[begin:end])


@dataclass(frozen=True, slots=True)
class Stretch:
    """The places from first to before last. `begins` and `ends` say which rows of each part have them.

    There are `base` rows before them.
    """

    first: int
    last: int
    begins: list[int]
    ends: list[int]
    base: int


class Target(Protocol):
    """A column of the merged table, as it is filled."""

    def put(self, stretch: Stretch, new_places: Sequence[Array]) -> None: ...

    def done(self) -> pa.Array | pa.ChunkedArray: ...


def in_order(made: Made) -> Made:
    """The rows by their places, where they are found key by key."""
    if (made.places[1:] >= made.places[:-1]).all():
        return made
    order = np.argsort(made.places, kind="stable")
    columns = [_at(column, order) for column in made.rows.columns]
    return Made(pa.table(columns, schema=made.rows.schema), made.places[order])


def _at(column: pa.ChunkedArray, order: Array) -> pa.Array | pa.ChunkedArray:
    """The values in the order; codes stay codes."""
    return column.take(pa.array(order)) if pa.types.is_dictionary(column.type) else values_at(column, order)


def merged(made: Sequence[Made], schema: pa.Schema, loops: SharedLoops, workers: Workers) -> pa.Table:
    """The rows of all parts by their places; of equal places, those of earlier parts come first."""
    made = [part for part in made if part.rows.num_rows]
    if len(made) < 2:
        return made[0].rows.cast(schema) if made else pa.Table.from_batches([], schema)
    columns = list(zip(*(part.rows.columns for part in made), strict=True))
    if _are_few(made):
        order = np.argsort(np.concatenate([part.places for part in made]), kind="stable")
        found = workers.map(partial(_taken, order), columns)
    else:
        found = _put_together(made, columns, schema, loops, workers)
    return pa.table(found, names=schema.names).cast(schema)


def chained(made: Sequence[Made], schema: pa.Schema) -> pa.Table:
    """The same of parts that follow each other, and share places only near their ends: only there rows are sorted."""
    made, done = [part for part in made if part.rows.num_rows], list[pa.Table]()
    if not made:
        return pa.Table.from_batches([], schema)
    current = made[0]
    for part in made[1:]:
        own = int(np.searchsorted(current.places, part.places[0], "right"))
        mixed = int(np.searchsorted(part.places, current.places[-1], "left"))
        done.append(current.rows.slice(0, own))
        current = _chained(
            current.some(own, len(current.places)), part.some(0, mixed), part.some(mixed, len(part.places))
        )
    return pa.concat_tables([rows.cast(schema) for rows in (*done, current.rows)])


def _chained(one: Made, other: Made, rest: Made) -> Made:
    """The rows of the two in order, and the rest behind them."""
    order = np.argsort(np.concatenate([one.places, other.places]), kind="stable")
    rows = pa.concat_tables([one.rows, other.rows]).take(pa.array(order)) if len(order) else one.rows
    places = np.concatenate([one.places, other.places])[order]
    return Made(pa.concat_tables([rows, rest.rows]), np.concatenate([places, rest.places]))


def _are_few(made: Sequence[Made]) -> bool:
    """Whether sorting the rows is quicker than counting them by their places; or they are more than can be counted."""
    rows, last = sum(len(part.places) for part in made), max(int(part.places[-1]) for part in made)
    return rows * FEW < last - min(int(part.places[0]) for part in made) or max(rows, last) > MOST_ROWS


def _put_together(
    made: Sequence[Made],
    columns: Sequence[Sequence[pa.ChunkedArray]],
    schema: pa.Schema,
    loops: SharedLoops,
    workers: Workers,
) -> list[pa.Array | pa.ChunkedArray]:
    places = [part.places.astype(np.int32, copy=False) for part in made]
    targets = [_target(parts, field.type, loops) for parts, field in zip(columns, schema, strict=True)]
    new_places = [np.empty(len(own), np.int32) for own in places]
    workers.map(partial(_fill, targets, places, new_places, loops), _stretches(places, workers))
    order = np.empty(sum(map(len, places)) if None in targets else 0, np.int64)
    if len(order):
        order[np.concatenate(new_places)] = np.arange(len(order))

    def finished(number: int) -> pa.Array | pa.ChunkedArray:
        target = targets[number]
        return _taken(order, columns[number]) if target is None else target.done()

    return workers.map(finished, range(len(targets)))


def _stretches(places: Sequence[Array], workers: Workers) -> list[Stretch]:
    """Stretches of about as many rows, if these lie evenly: all parts are samples of the same events."""
    rows = sum(map(len, places))
    count = max(workers.count, rows // ROWS_OF_A_STRETCH)
    largest = max(places, key=len)
    inner = largest[np.linspace(0, len(largest), count + 1)[1:-1].astype(np.int64)]
    borders = np.unique(np.concatenate([[min(own[0] for own in places)], inner, [max(own[-1] for own in places) + 1]]))
    cuts = np.array([np.searchsorted(own, borders) for own in places])
    bases = cuts.sum(axis=0).tolist()
    return [
        Stretch(int(borders[at]), int(borders[at + 1]), cuts[:, at].tolist(), cuts[:, at + 1].tolist(), bases[at])
        for at in range(len(borders) - 1)
    ]


def _fill(
    targets: Sequence[Target | None],
    places: Sequence[Array],
    new_places: Sequence[Array],
    loops: SharedLoops,
    stretch: Stretch,
) -> None:
    counts = np.zeros(stretch.last - stretch.first + 1, np.int64)
    own = list(zip(places, stretch.begins, stretch.ends, strict=True))
    for part, begin, end in own:
        loops["count_places"](part, begin, end, stretch.first, counts)
    loops["sum_counts"](counts, stretch.base)
    for (part, begin, end), new in zip(own, new_places, strict=True):
        loops["merged_places"](part, begin, end, stretch.first, counts, new)
    for target in targets:
        if target is not None:
            target.put(stretch, new_places)


def _target(parts: Sequence[pa.ChunkedArray], type_: pa.DataType, loops: SharedLoops) -> Target | None:
    """What fills a column of plain numbers or of texts; None for others, and where there are NULLs."""
    if any(part.null_count for part in parts):
        return None
    if all(pa.types.is_dictionary(part.type) and part.type.value_type == type_ for part in parts):
        arrays = [one_array(part) for part in parts]
        are_one = all(own.dictionary.equals(arrays[0].dictionary) for own in arrays[1:])
        return _Codes(arrays, loops) if are_one and arrays[0].indices.type == pa.int32() else None
    if any(part.type != type_ for part in parts):
        return None
    if pa.types.is_primitive(type_) and type_.bit_width in (32, 64):
        return _Numbers(parts, type_, loops)
    if pa.types.is_string(type_) and loops.jit:
        arrays = [TextArrays.of(one_array(part)) for part in parts]
        return _Texts(arrays, loops) if sum(own.size for own in arrays) <= MOST_BYTES else None
    return None


class _Numbers:
    def __init__(self, parts: Sequence[pa.ChunkedArray], type_: pa.DataType, loops: SharedLoops) -> None:
        plain = pa.int64() if type_.bit_width == 64 else pa.int32()
        self._type, self._loop = type_, loops["put_long" if type_.bit_width == 64 else "put_short"]
        self._values = [not_read_only(one_array(part).view(plain).to_numpy()) for part in parts]
        self._moved = np.empty(sum(map(len, parts)), self._values[0].dtype)

    def put(self, stretch: Stretch, new_places: Sequence[Array]) -> None:
        for new, begin, end, values in zip(new_places, stretch.begins, stretch.ends, self._values, strict=True):
            self._loop(new, begin, end, values, self._moved)

    def done(self) -> pa.Array:
        return pa.array(self._moved).view(self._type)


class _Codes:
    """Texts that are codes of the same words in all parts; each stretch becomes texts as soon as it is filled."""

    def __init__(self, parts: Sequence[pa.DictionaryArray], loops: SharedLoops) -> None:
        self._words, self._loop = parts[0].dictionary, loops["put_short"]
        self._codes = [not_read_only(part.indices.to_numpy()) for part in parts]
        self._moved = np.empty(sum(map(len, parts)), np.int32)
        self._filled: dict[int, pa.Array] = {}

    def put(self, stretch: Stretch, new_places: Sequence[Array]) -> None:
        rows = sum(stretch.ends) - sum(stretch.begins)
        for new, begin, end, codes in zip(new_places, stretch.begins, stretch.ends, self._codes, strict=True):
            self._loop(new, begin, end, codes, self._moved)
        own = self._moved[stretch.base : stretch.base + rows]
        self._filled[stretch.base] = self._words.take(pa.array(own))

    def done(self) -> pa.ChunkedArray:
        return pa.chunked_array([self._filled[base] for base in sorted(self._filled)], self._words.type)


class _Texts:
    def __init__(self, parts: Sequence[TextArrays], loops: SharedLoops) -> None:
        self._loops = loops
        self._parts = [(not_read_only(own.offsets), not_read_only(own.bytes)) for own in parts]
        self._offsets = np.zeros(sum(map(len, parts)) + 1, np.int32)
        self._bytes = np.empty(sum(own.size for own in parts), np.uint8)

    def put(self, stretch: Stretch, new_places: Sequence[Array]) -> None:
        own = list(zip(new_places, stretch.begins, stretch.ends, self._parts, strict=True))
        for new, begin, end, (offsets, _) in own:
            self._loops["put_lengths"](new, begin, end, offsets, self._offsets)
        before = sum(int(offsets[begin] - offsets[0]) for _, begin, _, (offsets, _) in own)
        rows = sum(end - begin for _, begin, end, _ in own)
        self._loops["sum_lengths"](stretch.base, stretch.base + rows, before, self._offsets)
        for new, begin, end, (offsets, texts) in own:
            self._loops["put_texts"](new, begin, end, offsets, texts, self._offsets, self._bytes)

    def done(self) -> pa.Array:
        buffers = [None, pa.py_buffer(self._offsets), pa.py_buffer(self._bytes)]
        return pa.Array.from_buffers(pa.string(), len(self._offsets) - 1, buffers)


def _taken(order: Array, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
    return values_at(pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type), order)

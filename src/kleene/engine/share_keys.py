"""Which rows of a table are of use, and the number of each one's partition: in parts, each by a thread of its own.

A part numbers the keys as they appear in it. `number_of` says what all parts call them, so that nobody goes through the
rows again when the numbers of all parts are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.batches import partition_codes
from kleene.engine.compiled.columns import Array, not_read_only
from kleene.engine.compiled.loading import SharedLoops
from kleene.engine.needs import SKIPPING, type_column_of
from kleene.engine.texts import PaddedTexts, TextArrays
from kleene.engine.unencoded import CODES, unencoded_type
from kleene.ir.options import WindowUnit
from kleene.plan.plan import ByKey, Plan

Item = TypeVar("Item")
Result = TypeVar("Result")
NO_ROWS = np.empty(0, np.int32)


class Workers(Protocol):
    """Threads; what they give back comes in the order of what they were given."""

    @property
    def count(self) -> int: ...

    def map(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> list[Result]: ...


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table from first to before last; `use` has the numbers of those that are of use, if not all are."""

    first: int
    last: int
    use: Array | None = None
    kinds: Array = field(
        default_factory=lambda: NO_ROWS
    )  # the numbers of their types, among those that the query names

    def __len__(self) -> int:
        return self.last - self.first if self.use is None else len(self.use)

    @property
    def chosen(self) -> Array:
        """As loops take them: no numbers stand for all rows."""
        return NO_ROWS if self.use is None else self.use

    def some(self, begin: int, count: int) -> tuple[Array, int]:
        """So many of them from one on, as loops take them: their numbers, or none and the first."""
        return (NO_ROWS, self.first + begin) if self.use is None else (self.use[begin : begin + count], 0)

    def of(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        whole = column.slice(self.first, self.last - self.first)
        return whole if self.use is None else whole.take(pa.array(self.use - self.first))


@dataclass(frozen=True, slots=True)
class PartKeys:
    """Of each row of a part that is of use, the number of its partition in this part; -1 if it is in none."""

    codes: Array
    number_of: Array


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of all parts, which have `count` numbers together; `words` are the texts that they number, if any."""

    parts: list[PartKeys]
    count: int
    words: pa.Array | None = None


def parts_of(rows: int, workers: Workers) -> list[Rows]:
    size = max(-(-rows // workers.count), 1)
    return [Rows(begin, min(begin + size, rows)) for begin in range(0, rows, size)]


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The values in one piece, as they lie where they are in one already."""
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


# --- rows of use ---


def type_words(plan: Plan, table: pa.Table) -> tuple[str, list[str]] | None:
    """The column of types and those that the query names, where events of other types do not matter."""
    query = plan.query
    if not isinstance(query, AnalyzedQuery) or query.strategy not in SKIPPING:
        return None
    if query.window is not None and query.window.unit is WindowUnit.EVENTS:
        return None
    name = type_column_of(query.schema)
    if name is None or unencoded_type(table.column(name).type) != pa.string():
        return None
    uses = [*(one.types for one in query.components), *(one.types for one in query.negations)]
    return name, sorted({type_ for use in uses for type_ in use})


def rows_of_types(types: pa.Array, words: Sequence[str], loops: SharedLoops, rows: Rows) -> Rows:
    """Those of the rows whose type is among the words."""
    own = types.slice(rows.first, len(rows))
    of_texts = _named_texts if loops.jit else _named_texts_plainly
    use, kinds = (_named_codes if pa.types.is_dictionary(own.type) else of_texts)(own, words, loops)
    return Rows(rows.first, rows.last, use + np.int32(rows.first), kinds)


def _named_texts(texts: pa.Array, words: Sequence[str], loops: SharedLoops) -> tuple[Array, Array]:
    """Which of the texts are among the words, and the number of each one's word."""
    use, kinds, found = np.empty(len(texts), np.int32), np.empty(len(texts), np.int32), 0
    is_missing = texts.is_null().to_numpy(zero_copy_only=False).astype(np.uint8) if texts.null_count else _NO_BYTES
    named = TextArrays.of(pa.array(words, pa.string())).copied()
    wanted = named.offsets, named.bytes, np.empty(len(words), np.int64), _MASKS
    for part in TextArrays.of(texts).padded():
        missing = is_missing[part.first : part.first + len(part)]
        count = loops["rows_of_words"](*_read(part), missing, *wanted, use[found:], kinds[found:])
        if part.first:
            use[found : found + count] += part.first
        found += count
    return use[:found], kinds[:found]


def _named_texts_plainly(texts: pa.Array, words: Sequence[str], _: SharedLoops) -> tuple[Array, Array]:
    kinds = pc.index_in(texts, pa.array(words, pa.string())).fill_null(-1).to_numpy(zero_copy_only=False)
    use = np.flatnonzero(kinds >= 0)
    return use.astype(np.int32), not_read_only(kinds[use])


def _named_codes(texts: pa.DictionaryArray, words: Sequence[str], _: SharedLoops) -> tuple[Array, Array]:
    number_of = pc.index_in(texts.dictionary, pa.array(words, pa.string())).fill_null(-1).to_numpy(zero_copy_only=False)
    kinds = np.append(number_of, -1)[texts.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    use = np.flatnonzero(kinds >= 0)
    return use.astype(np.int32), kinds[use].astype(np.int32)


_NO_BYTES = np.empty(0, np.uint8)
_MASKS = np.array([*((1 << 8 * count) - 1 for count in range(8)), *([-1] * 8)], np.int64)
"""Ones for the first bytes of a word, by how many there are; padded, so that any four bits are a place in it."""


def _read(texts: PaddedTexts) -> tuple[Array, Array]:
    return not_read_only(texts.offsets), not_read_only(texts.bytes)


# --- keys ---


def keys_of(plan: Plan, table: pa.Table, parts: Sequence[Rows], loops: SharedLoops, workers: Workers) -> Keys:
    assert isinstance(plan.split, ByKey)
    names = plan.split.columns
    if len(names) == 1 and not table.column(names[0]).null_count:
        column = table.column(names[0])
        if pa.types.is_signed_integer(column.type):
            return _dense_keys(column, parts, loops, workers) or _encoded_keys(column, parts, workers)
        if pa.types.is_string(column.type):
            return _encoded_keys(column, parts, workers)
        if column.type == CODES and column.num_chunks == 1:
            return _coded_keys(column.chunk(0), parts)
    codes, count = partition_codes(table, names, isinstance(plan.query, AnalyzedRowPattern))
    short = codes.astype(np.int32)
    numbers = np.arange(count)
    return Keys(
        [PartKeys(short[part.first : part.last] if part.use is None else short[part.use], numbers) for part in parts],
        count,
    )


def _dense_keys(column: pa.ChunkedArray, parts: Sequence[Rows], loops: SharedLoops, workers: Workers) -> Keys | None:
    """Whole numbers that lie close together are their own numbers; None where they do not."""
    values = not_read_only(one_array(column.cast(pa.int64())).to_numpy())
    ends = workers.map(lambda part: (values[part.first : part.last].min(), values[part.first : part.last].max()), parts)
    low, high = int(min(low for low, _ in ends)), int(max(high for _, high in ends))
    if high - low >= 2 * len(values):
        return None
    count = high - low + 1
    numbers = np.arange(count)

    def numbered(part: Rows) -> PartKeys:
        codes = np.empty(len(part), np.int32)
        loops["dense_codes"](values, low, part.chosen, part.first, codes)
        return PartKeys(codes, numbers)

    return Keys(workers.map(numbered, parts), count)


def _coded_keys(column: pa.DictionaryArray, parts: Sequence[Rows]) -> Keys:
    """Texts that come as codes of their words have these for numbers."""
    codes, numbers = not_read_only(column.indices.to_numpy()), np.arange(len(column.dictionary))
    own = [codes[part.first : part.last] if part.use is None else codes[part.use] for part in parts]
    return Keys([PartKeys(part, numbers) for part in own], len(numbers), column.dictionary)


def _encoded_keys(column: pa.ChunkedArray, parts: Sequence[Rows], workers: Workers) -> Keys:
    """Values are numbered by Arrow, in each part; their numbers in all parts are known when all values are."""

    def encoded(part: Rows) -> tuple[Array, pa.Array]:
        own = one_array(part.of(column)).dictionary_encode()
        return not_read_only(own.indices.to_numpy(zero_copy_only=False)), own.dictionary

    made = workers.map(encoded, parts)
    together = pa.concat_arrays([words for _, words in made]).dictionary_encode()
    numbers = together.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum([0, *(len(words) for _, words in made)]).tolist()
    own = [
        PartKeys(codes, numbers[begin:end]) for (codes, _), begin, end in zip(made, ends[:-1], ends[1:], strict=True)
    ]
    return Keys(own, len(together.dictionary), together.dictionary if pa.types.is_string(column.type) else None)

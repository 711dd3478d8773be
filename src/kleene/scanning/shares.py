"""A piece to its shares by key, one for each thread: the same key is always in the same share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kleene.engine.compiled.batches import partition_codes
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.kept import key_tuples

_MIXES = np.uint64(0x9E3779B97F4A7C15)
"""Spreads whole numbers that follow one another (Fibonacci hashing)."""


class KeyShares:
    """Deals out events by their keys. Events that are in no partition are left out."""

    def __init__(self, names: Sequence[str], null_is_a_key: bool, count: int) -> None:
        self.count = count
        self._names, self._null_is_a_key = list(names), null_is_a_key

    def split(self, table: pa.Table) -> list[pa.Table]:
        if self.count == 1:
            return [table]
        codes, count = partition_codes(table, self._names, self._null_is_a_key)
        shares = np.append(self._share_of_each(table, codes, count), -1)[codes]
        return [table.take(pa.array(np.flatnonzero(shares == number))) for number in range(self.count)]

    def _share_of_each(self, table: pa.Table, codes: Array, count: int) -> Array:
        """The share of each key."""
        first = np.full(count + 1, -1, np.int64)
        first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        present = np.flatnonzero(first[:count] >= 0)
        keys = table.select(self._names).take(pa.array(first[present]))
        shares = np.zeros(count, np.int64)
        shares[present] = _hashes(keys) % np.uint64(self.count)
        return shares


def _hashes(keys: pa.Table) -> Array:
    """Of each row a number that depends on its key alone, whatever other keys there are."""
    [column, *others] = keys.columns
    if not others and pa.types.is_signed_integer(column.type):
        numbers = column.fill_null(0).to_numpy().astype(np.int64).view(np.uint64)
        return np.asarray((numbers * _MIXES) >> np.uint64(32))
    return np.array([hash(key) & 0xFFFFFFFF for key in key_tuples(keys, keys.num_rows)], np.uint64)

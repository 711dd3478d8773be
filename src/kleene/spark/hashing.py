"""Hashes: one that brings the events of a key together, one that tells keys apart, and the one Spark places rows by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.engine.events import decoded
from kleene.engine.tasks import Array, key_codes


def key_hash(keys: Sequence[Column]) -> Column:
    """The number that brings the events of a key together. Two keys may share one: tasks look at the key itself."""
    return F.xxhash64(*keys) if keys else F.lit(0).cast("long")


def key_digests(events: pa.Table, rows: Array, key: Sequence[str]) -> pa.Array:
    """The keys of rows of the table, as bytes that are the same wherever they are computed, and no other key's."""
    if not key:
        return pa.array([b""] * len(rows), pa.binary())
    keys = events.select(list(key)).take(pa.array(rows))
    codes, count = key_codes(keys, key)
    different, firsts = np.unique(codes, return_index=True)
    digests = np.empty(count, object)
    columns = [_plain(decoded(column)) for column in keys.take(pa.array(firsts)).columns]
    for code, values in zip(different.tolist(), zip(*columns, strict=True), strict=True):
        digests[code] = digest(values)
    return pa.array(digests[codes], pa.binary())


def digest(key: Iterable[object]) -> bytes:
    plain = [value + 0.0 if isinstance(value, float) else value for value in key]  # -0.0 and 0.0 are one key
    return hashlib.blake2b(repr(plain).encode(), digest_size=16).digest()


def _plain(column: pa.ChunkedArray) -> list[object]:
    """Values with a text that is the same everywhere; of times their numbers, since not all of them are Python's."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    values: list[object] = column.to_pylist()
    return values


def spark_hash(numbers: Array) -> Array:
    """Spark's hash of whole numbers of 64 bits, by which rows find their Spark partition (Murmur3, seed 42)."""
    bits = numbers.astype(np.int64).view(np.uint64)
    found = np.full(len(bits), 42, np.uint32)
    with np.errstate(over="ignore"):
        for half in ((bits & 0xFFFFFFFF).astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)):
            mixed = _turned(half * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
            found = _turned(found ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        found ^= np.uint32(8)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            found = (found ^ (found >> np.uint32(shift))) * np.uint32(factor)
        found ^= found >> np.uint32(16)
    return found.view(np.int32).astype(np.int64)


def _turned(bits: Array, by: int) -> Array:
    return np.asarray((bits << np.uint32(by)) | (bits >> np.uint32(32 - by)))

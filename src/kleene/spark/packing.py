"""Events of a micro-batch packed by bucket before they travel, and matches unpacked behind the stateful operator.

A stateful operator of PySpark is given rows one by one. So that it gets columns instead, a task packs the events of a
bucket of keys into one row of bytes; and what the operator gives out is such rows again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from kleene.engine.events import check_order_key, null_order_key
from kleene.spark.gathering import GROUP

Array = np.ndarray[Any, Any]
BUCKET, PLACE, PAYLOAD = "bucket", "place", "payload"
PACKED = f"{BUCKET} INT, {PLACE} LONG, {PAYLOAD} BINARY"
PACKED_AT_ONCE = 1 << 17
"""Events that are packed together; more of them make fewer and larger rows."""


def bucket_names(buckets: int) -> Array:
    """What the buckets are called: numbers that Spark spreads evenly over its partitions.

    Spark puts a group where a hash of its key says. Few numbers in a row would fall together by chance; of these, each
    leaves another remainder, so that partitions get equally many buckets wherever their number divides that of buckets.

    >>> sorted((_spark_hash(bucket_names(8)) % 8).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    most = 32 * buckets
    while True:
        remainders, first = np.unique(_spark_hash(np.arange(most)) % buckets, return_index=True)
        if len(remainders) == buckets:
            return first
        most *= 2


def _spark_hash(numbers: Array) -> Array:
    """Spark's hash of an INT: Murmur3, 32 bits, with the seed 42."""
    mixed = _turned(numbers.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    found = _turned(mixed ^ np.uint32(42), 13) * np.uint32(5) + np.uint32(0xE6546B64) ^ np.uint32(4)
    found = (found ^ found >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    found = (found ^ found >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return (found ^ found >> np.uint32(16)).view(np.int32)


def _turned(bits: Array, places: int) -> Array:
    return bits << np.uint32(places) | bits >> np.uint32(32 - places)


def packed_table(table: pa.Table) -> bytes:
    """The table as bytes that `unpacked_table` reads; its columns are not told."""
    batches = table.combine_chunks().to_batches()
    assert len(batches) <= 1
    return b"" if not batches else bytes(batches[0].serialize())


def unpacked_table(payload: bytes | pa.Buffer, schema: pa.Schema) -> pa.Table:
    if not len(payload):
        return schema.empty_table()
    return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(payload), schema)])


@dataclass(frozen=True, slots=True)
class Packer:
    """A function from batches of events to rows of packed events, for a Spark task."""

    columns: pa.Schema
    strict: tuple[str, ...]
    buckets: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        place = (0 if context is None else context.partitionId()) << 32
        names = bucket_names(self.buckets)
        for table in self._large(batches):
            buckets = names[table.column(GROUP).to_numpy() % self.buckets]
            order = np.argsort(buckets, kind="stable")
            events = table.drop_columns([GROUP]).take(pa.array(order))
            present, begins = np.unique(buckets[order], return_index=True)
            ends = [*begins[1:], len(order)]
            payloads = [packed_table(events.slice(begin, end - begin)) for begin, end in zip(begins, ends, strict=True)]
            places = np.full(len(present), place)
            place += 1
            yield pa.record_batch(
                [pa.array(present, pa.int32()), pa.array(places, pa.int64()), pa.array(payloads, pa.binary())],
                names=[BUCKET, PLACE, PAYLOAD],
            )

    def _large(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        held: list[pa.Table] = []
        for batch in batches:
            held.append(self._checked(batch))
            if sum(table.num_rows for table in held) >= PACKED_AT_ONCE:
                yield pa.concat_tables(held)
                held = []
        if sum(table.num_rows for table in held):
            yield pa.concat_tables(held)

    def _checked(self, batch: pa.RecordBatch) -> pa.Table:
        schema = self.columns.append(pa.field(GROUP, pa.int64()))
        table = pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema)
        missing = table.column(GROUP)
        if missing.null_count:
            unordered = table.filter(missing.is_null())
            check_order_key(unordered, self.strict)
            raise null_order_key(self.strict[0], unordered.num_rows)
        return table


@dataclass(frozen=True, slots=True)
class Unpacker:
    """A function from rows of packed matches to batches of matches, for a Spark task."""

    result: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch.column(0):
                if payload.is_valid:
                    yield from unpacked_table(payload.as_buffer(), self.result).to_batches()

"""Events of a micro-batch packed by bucket before they travel, and matches unpacked behind the stateful operator.

A stateful operator of PySpark is given rows one by one. So that it gets columns instead, a task packs the events of a
bucket of keys into one row of bytes; and what the operator gives out is such rows again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from kleene.engine.matches import Array
from kleene.spark.hashing import spark_hash
from kleene.spark.marks import GROUP
from kleene.spark.tasks.task import Task, table_of

BUCKET, PLACE, PAYLOAD = "bucket", "place", "payload"
PACKED = f"{BUCKET} LONG, {PLACE} LONG, {PAYLOAD} BINARY"
PACKED_AT_ONCE = 1 << 17
"""Events that are packed together; more of them make fewer and larger rows."""


def bucket_names(buckets: int) -> Array:
    """What the buckets are called: numbers that Spark spreads evenly over its partitions.

    Spark puts a group where a hash of its key says. Few numbers in a row would fall together by chance; of these, each
    leaves another remainder, so that partitions get equally many buckets wherever their number divides that of buckets.

    >>> sorted((spark_hash(bucket_names(8)) % 8).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    most = 32 * buckets
    while True:
        remainders, first = np.unique(spark_hash(np.arange(most)) % buckets, return_index=True)
        if len(remainders) == buckets:
            return first
        most *= 2


def packed_table(table: pa.Table) -> bytes:
    """The table as bytes that `unpacked_table` reads; its columns are not told."""
    batches = table.combine_chunks().to_batches()
    assert len(batches) <= 1
    return b"" if not batches else bytes(batches[0].serialize())


def unpacked_table(payload: bytes | pa.Buffer, schema: pa.Schema) -> pa.Table:
    if not len(payload):
        return schema.empty_table()
    return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(payload), schema)])


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingTask(Task):
    """A function from batches of events to rows of packed events."""

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
                [pa.array(present, pa.int64()), pa.array(places, pa.int64()), pa.array(payloads, pa.binary())],
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
        table = table_of(batch, self.reads.columns.append(pa.field(GROUP, pa.int64())))
        missing = table.column(GROUP)
        if missing.null_count:
            raise self.no_place(table.filter(missing.is_null()))
        return table


def unpacked_matches(result: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of packed matches to batches of matches, in a Spark task."""
    for batch in batches:
        for payload in batch.column(0):
            if payload.is_valid:
                yield from unpacked_table(payload.as_buffer(), result).to_batches()

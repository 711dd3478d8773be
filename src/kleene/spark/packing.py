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

from kleene.engine.events import check_order_key, null_order_key
from kleene.spark.gathering import GROUP

BUCKET, PLACE, PAYLOAD = "bucket", "place", "payload"
PACKED = f"{BUCKET} INT, {PLACE} LONG, {PAYLOAD} BINARY"
PACKED_AT_ONCE = 1 << 17
"""Events that are packed together; more of them make fewer and larger rows."""


def packed_table(table: pa.Table) -> bytes:
    """The table as bytes that `unpacked_table` reads; its columns are not told."""
    batches = table.combine_chunks().to_batches()
    assert len(batches) <= 1
    return b"" if not batches else bytes(batches[0].serialize())


def unpacked_table(payload: bytes, schema: pa.Schema) -> pa.Table:
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
        for table in self._large(batches):
            buckets = table.column(GROUP).to_numpy() % self.buckets
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

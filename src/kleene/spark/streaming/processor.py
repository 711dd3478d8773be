"""Spark's stateful operator around a bucket: packed events and timers in, packed matches and numbers out."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from kleene.spark.streaming.bucket import Bucket
from kleene.spark.streaming.packing import BUCKET, PAYLOAD, PLACE, packed_table, unpacked_table
from kleene.spark.streaming.state import BucketState, StreamTask

COUNTS = ("events", "late", "matches")
STANDS = ("waiting", "runs", "kept", "bytes")
"""What a bucket tells of a micro-batch, and of how it stands after it."""
TURN = "turn"
"""Which call of its task a bucket speaks of: one that is called for events and then for a timer speaks twice."""
TOLD = "told"
GIVEN_OUT = f"{PAYLOAD} BINARY, {BUCKET} LONG, {TOLD} ARRAY<LONG>"
"""Few columns: to hand rows back to Spark takes time for each of them. The last row of a bucket tells its numbers."""
OBSERVED = "kleene_"
"""How the names begin under which Spark's progress tells what buckets told."""


class MatchingProcessor(StatefulProcessor):
    def __init__(self, task: StreamTask) -> None:
        self._task = task
        self._turn = 0  # Spark makes a new copy for each task

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = BucketState(
            handle.getValueState("head", "bytes BINARY"),
            handle.getValueState("engine", "bytes BINARY"),
            handle.getMapState("since", "chunk LONG", "bytes BINARY"),
            handle.getMapState("waiting", "chunk LONG", "bytes BINARY"),
            handle if self._task.clock.has_watermark else None,
        )

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        given = [row for part in rows for row in zip(part[PLACE].tolist(), part[PAYLOAD].tolist(), strict=True)]
        given.sort(key=itemgetter(0))
        events = pa.concat_tables(unpacked_table(payload, self._task.reads.columns) for _, payload in given)
        yield from self._advance(int(key[0]), events, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        no_events = self._task.reads.columns.empty_table()
        yield from self._advance(int(key[0]), no_events, timerValues.getCurrentWatermarkInMs(), is_woken=True)

    def close(self) -> None:
        pass

    def _advance(self, number: int, events: pa.Table, watermark: int, is_woken: bool = False) -> Iterator[Any]:
        bucket, matches = Bucket(self._task, self._state), 0
        payload = None
        for table in bucket.advance(events, max(watermark, 0), is_woken):
            if payload is not None:
                yield _row(payload, number, None)
            payload = packed_table(table)
            matches += table.num_rows
        stands = [getattr(bucket.head, name) for name in STANDS]
        self._turn += 1
        yield _row(payload, number, [events.num_rows, bucket.late, matches, *stands, self._turn])


def _row(payload: bytes | None, bucket: int, told: list[int] | None) -> Any:
    return pd.DataFrame([[payload, bucket, told]], columns=[PAYLOAD, BUCKET, TOLD], dtype=object)


def observed(found: DataFrame, name: str, buckets: int) -> DataFrame:
    """The rows of the operator, watched: what they tell of each micro-batch comes with Spark's own progress."""
    told = {name: F.col(TOLD)[place] for place, name in enumerate((*COUNTS, *STANDS, TURN))}
    stands = F.struct(BUCKET, *(told[name].alias(name) for name in (*STANDS, TURN)))
    return found.observe(
        name,
        *(F.sum(told[count]).alias(count) for count in COUNTS),
        F.collect_list(F.when(F.col(TOLD).isNotNull(), stands)).alias("buckets"),
        F.max(F.lit(buckets)).alias("of_buckets"),
    )

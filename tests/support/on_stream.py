"""A query on a stream without Spark: the operator's processor in Spark's own tester, fed micro-batch by micro-batch."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.tws_tester import TwsTester

from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn
from kleene.engine.compiled.batches import partition_codes
from kleene.engine.run import result_schema
from kleene.plan.plan import ByKey, Plan
from kleene.spark.output import Output
from kleene.spark.reads import Reads
from kleene.spark.streaming import state as stored
from kleene.spark.streaming.bucket import END_OF_TIME
from kleene.spark.streaming.packing import BUCKET, PAYLOAD, PLACE, packed_table, unpacked_table
from kleene.spark.streaming.processor import COUNTS, STANDS, TOLD, TURN, MatchingProcessor
from kleene.spark.streaming.state import Clock, StreamTask

BUCKETS = 3


def task_of(plan: Plan, table: pa.Table, in_arrival_order: bool = False) -> StreamTask:
    query = plan.query
    if isinstance(query, AnalyzedRowPattern):
        order = query.order_by
    else:
        order = tuple(SortColumn(name, False, None) for name in query.order_by)
    ordered = {column.name for column in order}
    ties = tuple(SortColumn(name, False, False) for name in table.column_names if name not in ordered)
    reads = Reads(columns=table.schema, key=(), order=(*order, *ties), order_key=len(order), strict=())
    output = Output(result=result_schema(plan, table.schema))
    return StreamTask(plan=plan, reads=reads, output=output, clock=Clock(in_arrival_order), fingerprint=f"{id(plan)}")


class Stream:
    """A stream in Spark's tester; `rows` is what it has given out, `told` what the operator said of itself."""

    def __init__(self, task: StreamTask) -> None:
        self.task = task
        # Events are packed, so that Spark never sees their times: none is too late for it.
        self.tester = TwsTester(
            MatchingProcessor(task), timeMode="EventTime", eventTimeExtractor=lambda _: END_OF_TIME * 2
        )
        self.rows: list[pa.Table] = [task.output.result.empty_table()]
        self.told: list[dict] = []
        self.times_smaller = stored.TIMES_SMALLER  # 0: events are kept beside a snapshot as long as may be

    def feed(self, events: pa.Table, buckets: np.ndarray | None = None) -> None:
        buckets = np.zeros(events.num_rows, np.int64) if buckets is None else buckets
        events = events.select(self.task.reads.columns.names)  # what travels to the task
        for number in np.unique(buckets):
            own = events.take(pa.array(np.flatnonzero(buckets == number)))
            half = own.num_rows // 2
            payloads = [packed_table(part.combine_chunks()) for part in (own.slice(0, half), own.slice(half))]
            packed = pd.DataFrame({BUCKET: [number] * 2, PLACE: [0, 1], PAYLOAD: payloads})
            with self._patched():
                self._take(self.tester.testInPandas(int(number), packed))

    def watermark(self, milliseconds: int) -> None:
        """Time goes on; it never goes back."""
        if milliseconds > self.tester._currentWatermarkMs:
            with self._patched():
                found = self.tester.setWatermark(milliseconds)
            self._take(found if isinstance(found, pd.DataFrame) else pd.DataFrame(found))

    def end(self) -> pa.Table:
        self.watermark(END_OF_TIME)
        return self.result()

    def result(self) -> pa.Table:
        return pa.concat_tables(self.rows)

    def _patched(self):
        return patch.object(stored, "TIMES_SMALLER", self.times_smaller)

    def _take(self, found: pd.DataFrame) -> None:
        for row in found.to_dict("records"):
            if row[PAYLOAD] is not None:
                self.rows.append(unpacked_table(row[PAYLOAD], self.task.output.result))
            if row[TOLD] is not None:
                self.told.append(dict(zip((*COUNTS, *STANDS, TURN), row[TOLD], strict=True)))


def buckets_of(plan: Plan, table: pa.Table) -> np.ndarray:
    if not isinstance(plan.split, ByKey) or not table.num_rows:
        return np.zeros(table.num_rows, np.int64)
    codes, _ = partition_codes(table, plan.split.columns, isinstance(plan.query, AnalyzedRowPattern))
    return codes % BUCKETS


def matched_on_stream(plan: Plan, table: pa.Table, random: Random) -> pa.Table:
    """The rows of the result, in no particular order: events come late, but no later than the watermark allows."""
    task = task_of(plan, table)
    stream = Stream(task)
    stream.times_smaller = random.choice([0, stored.TIMES_SMALLER])
    if not table.num_rows:
        return stream.result()
    times, buckets = task.times(table), buckets_of(plan, table)
    span = max(int(times.max()) - int(times.min()), 1)
    delay = random.choice([0, span // 3, span])
    arrival = np.argsort([time + random.uniform(0, delay) for time in times.tolist()], kind="stable")
    cuts = sorted(random.randrange(len(arrival)) for _ in range(random.randrange(6)))
    latest = None
    for begin, end in zip([0, *cuts], [*cuts, len(arrival)], strict=True):
        own = arrival[begin:end]
        stream.feed(table.take(pa.array(own)), buckets[own])
        if len(own):
            seen = int(np.floor(times[own].max()))
            latest = seen if latest is None else max(latest, seen)
            stream.watermark(task.milliseconds(latest - delay) - 1)
    return stream.end()

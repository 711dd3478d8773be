"""How the watermark of a stream moves on."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

import kleene
from kleene.spark.layouts.stream import PROVIDER, ROCKSDB

NEVER_PAID = """
    EVENT SEQ(Shelf a, Exit b, !(Register r))
    WHERE [tag] WITHIN 60 seconds
    RETURN b.tag AS tag
"""


@pytest.fixture
def rocks(classic_spark: SparkSession):
    before = classic_spark.conf.get(PROVIDER)
    classic_spark.conf.set(PROVIDER, ROCKSDB)
    yield classic_spark
    classic_spark.conf.set(PROVIDER, before)


@pytest.mark.parametrize("may_be_null", [True, False])
def test_events_that_are_left_out_move_the_watermark(rocks: SparkSession, tmp_path: Path, may_be_null: bool) -> None:
    columns = "type STRING, ts TIMESTAMP, tag LONG"
    shelf, gone = ("Shelf", datetime(2024, 1, 1), 1), ("Exit", datetime(2024, 1, 1, 0, 0, 5), 1)
    clock = ("Clock", datetime(2024, 1, 1, 0, 5), None)
    for number, rows in enumerate([[shelf, gone], [clock]]):
        folder = tmp_path / "written" / str(number)
        rocks.createDataFrame(rows, columns).coalesce(1).write.parquet(str(folder))
        (tmp_path / "events").mkdir(exist_ok=True)
        file = next(folder.glob("*.parquet")).rename(tmp_path / "events" / f"{number}.parquet")
        os.utime(file, (number, number))  # streams read files in the order of their times
    events = rocks.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "events"))
    if not may_be_null:
        events = events.withColumn("ts", F.coalesce("ts", F.timestamp_seconds(F.lit(0))))
    assert events.schema["ts"].nullable == may_be_null
    query = kleene.sase(NEVER_PAID)
    found = query.match(
        events.withWatermark("ts", "10 seconds"),
        order_by="ts",
        engine="generated",
        stream=kleene.StreamOptions(buckets=1),
    )
    writer = found.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.start(str(tmp_path / "sink"), "parquet").awaitTermination(120)
    assert [row.tag for row in rocks.read.parquet(str(tmp_path / "sink")).collect()] == [1]

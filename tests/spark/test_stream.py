"""Streams on Spark: the batch answer, errors that say what to do, restarts."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import kleene
from case_files import near
from kleene.spark.stream import PROVIDER, ROCKSDB

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")

BEGIN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
CLOSING = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)
SCHEMA = "type STRING, ts TIMESTAMP, id LONG, price DOUBLE"
DELAY = 20


@pytest.fixture(scope="module")
def streaming(classic_spark: SparkSession) -> Iterator[SparkSession]:
    classic_spark.conf.set(PROVIDER, ROCKSDB)
    partitions = classic_spark.conf.get("spark.sql.shuffle.partitions")
    classic_spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield classic_spark
    classic_spark.conf.unset(PROVIDER)
    classic_spark.conf.set("spark.sql.shuffle.partitions", partitions)


def table_of(rows: list[tuple[str, float, int, float]]) -> pa.Table:
    types, seconds, ids, prices = zip(*rows, strict=True)
    times = [BEGIN + dt.timedelta(seconds=second) for second in seconds]
    return pa.table(
        {
            "type": types,
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "id": ids,
            "price": pa.array(prices, "double"),
        }
    )


def some_events(seed: int = 0, count: int = 160) -> pa.Table:
    random = Random(seed)
    kinds = ("Shelf", "Register", "Exit", "Stock")
    return table_of([(random.choice(kinds), 2.0 * n, random.randrange(5), random.randrange(20)) for n in range(count)])


def write_files(events: pa.Table, folder: Path, files: int = 3, closing: bool = True) -> None:
    """The events in files, each up to the watermark's delay behind later ones; the last file closes the stream."""
    folder.mkdir(parents=True, exist_ok=True)
    random, seconds = Random(7), [time.timestamp() for time in events.column("ts").to_pylist()]
    arrival = sorted(range(len(seconds)), key=lambda n: seconds[n] + random.uniform(0, DELAY - 1))
    size = -(-len(arrival) // files)
    for number in range(files):
        write(events.take(arrival[number * size : (number + 1) * size]), folder, number)
    if closing:
        write(
            table_of([("Closing", 0, -1, 0)]).set_column(1, "ts", pa.array([CLOSING], pa.timestamp("us", "UTC"))),
            folder,
            99,
        )


def write(events: pa.Table, folder: Path, number: int) -> None:
    path = folder / f"{number:02}.parquet"
    pq.write_table(events, path)
    # Spark reads files in the order of their times.
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def stream_of(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder)).withWatermark("ts", f"{DELAY} seconds")


def run(found: dict[str, DataFrame], folder: Path) -> dict[str, list]:
    """The rows of each stream, in no order, to the end of what there is."""
    for name, frame in found.items():  # one after the other: Spark waits ten seconds for a new Python, and no longer
        start(frame, folder / name).awaitTermination()
    spark = next(iter(found.values())).sparkSession
    return {name: rows_of(spark.read.parquet(str(folder / name / "out")).toArrow()) for name in found}


def start(frame: DataFrame, folder: Path):
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(folder / "out"))


def rows_of(table: pa.Table) -> list:
    return sorted(map(repr, near(table.to_pylist())))


QUERIES: dict[str, Callable[[object], object]] = {
    "sequence": lambda events: kleene.sase(
        "EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [id] WITHIN 60 seconds"
    ).match(events, order_by="ts"),
    "negation_at_the_end": lambda events: kleene.sase(
        "EVENT SEQ(Shelf a, !(Register r)) WHERE [id] WITHIN 40 seconds RETURN a.id AS id, a.ts AS since"
    ).match(events, order_by="ts", match_id=True),
    "kleene_plus": lambda events: kleene.sase(
        """PATTERN SEQ(Stock+ a[], Exit b) WHERE skip_till_next_match(a[], b) { [id] AND a[i].price > a[i-1].price }
        WITHIN 2 minutes RETURN b.id AS id, count(a[]) AS n, sum(a[].price) AS total, b.ts AS ts"""
    ).match(events, order_by="ts"),
    "non_overlapping": lambda events: kleene.sase(
        "PATTERN SEQ(Shelf a, Exit b) WHERE skip_till_any_match(a, b) { [id] } WITHIN 60 seconds"
    ).match(events, order_by="ts", format="non_overlapping"),
    "row_pattern": lambda events: kleene.match_recognize(
        """PARTITION BY id ORDER BY ts MEASURES FIRST(A.ts) AS began, LAST(B.price) AS low, COUNT(*) AS n
        AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+) WITHIN INTERVAL '60' SECOND
        DEFINE B AS B.price < PREV(B.price)"""
    ).match(events),
    "all_rows": lambda events: kleene.match_recognize(
        """PARTITION BY id ORDER BY ts MEASURES CLASSIFIER() AS label, MATCH_NUMBER() AS number
        ALL ROWS PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A B{1,2}) DEFINE B AS B.price > PREV(B.price)"""
    ).match(events),
    "regex": lambda events: kleene.regex(
        pattern=". up up",
        partition_by="id",
        order_by="ts",
        predicates={"up": "price > Last(price)"},
        output={"id": "Last(id)", "n": "Count()", "top": "Max(price)"},
    ).match(events),
    "one_bucket": lambda events: kleene.sase(
        "PATTERN SEQ(Shelf a, Exit b) WHERE strict_contiguity(a, b) { a.id = b.id }"
    ).match(events, order_by="ts"),
    "program": lambda events: kleene.program(
        """EVENT SEQ(Shelf a, !(Register r)) WHERE [id] WITHIN 40 seconds RETURN a.id AS id INTO Unpaid;
        FROM Unpaid EVENT SEQ(Unpaid x, Unpaid y) WHERE x.id = y.id WITHIN 1 minute RETURN x.id AS id"""
    ).match(events, order_by="ts")["query_2"],
}


@pytest.mark.parametrize("kind", QUERIES)
def test_a_stream_gives_the_batch_answer(streaming: SparkSession, tmp_path: Path, kind: str) -> None:
    events = some_events()
    write_files(events, tmp_path / "in")
    expected = rows_of(QUERIES[kind](events))
    assert expected
    assert run({kind: QUERIES[kind](stream_of(streaming, tmp_path / "in"))}, tmp_path)[kind] == expected


class TestSilence:
    """An item that leaves the shelf and never comes back is reported, though nothing more is heard of it."""

    def test_time_alone_reports(self, streaming: SparkSession, tmp_path: Path) -> None:
        query = kleene.sase("EVENT SEQ(Shelf a, !(Exit b)) WHERE [id] WITHIN 60 seconds RETURN a.id AS id")
        events = [("Shelf", 0, 1, 0), ("Shelf", 5, 2, 0), ("Exit", 30, 2, 0), ("Other", 200, 99, 0)]
        write_files(table_of(events), tmp_path / "in", 2, closing=False)
        found = run({"silent": query.match(stream_of(streaming, tmp_path / "in"), order_by="ts")}, tmp_path)
        assert found["silent"] == ["{'id': 1}"]

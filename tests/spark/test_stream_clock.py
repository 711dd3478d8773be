"""Events from the future: they poison the watermark, unless they are set aside before it sees them."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from test_stream import DELAY, SCHEMA, SEQUENCE, rows_of, some_events, start, streaming, table_of, write_files

import kleene
from kleene.spark.monitor import StreamMetrics

__all__ = ["streaming"]  # the fixture

WATERMARK = f"{DELAY} seconds"
CLOCK = {"stream": kleene.StreamOptions(watermark=WATERMARK, max_ahead="1 hour")}
POISON = dt.datetime(2999, 1, 1, tzinfo=dt.UTC)
ORDERED = {"order_by": "ts", "engine": "generated"}


def poison(folder: Path, file: str) -> None:
    """One event of the file gets a time far ahead."""
    events = pq.read_table(folder / file)
    wrong = table_of([("Shelf", 0, 1, 0)]).set_column(1, "ts", pa.array([POISON], pa.timestamp("us", "UTC")))
    changed = folder / file
    times = changed.stat()
    pq.write_table(pa.concat_tables([events.slice(0, 5), wrong, events.slice(5)]), changed)
    os.utime(changed, (times.st_atime, times.st_mtime))


def unmarked(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def ended(query) -> StreamMetrics:
    query.awaitTermination()
    return kleene.stream_metrics(query)


def found_in(spark: SparkSession, folder: Path) -> list:
    return rows_of(spark.read.parquet(str(folder / "out")).toArrow())


@pytest.fixture
def expected() -> list:
    found = rows_of(SEQUENCE.match(some_events(count=80), order_by="ts"))
    assert len(found) > 20
    return found


def test_one_event_from_the_future_loses_no_match_through_a_restart(
    streaming: SparkSession, tmp_path: Path, expected: list
) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "in"
    write_files(some_events(count=80), whole, files=2)
    folder.mkdir()
    metrics = []
    for name in ("00.parquet", "01.parquet"):
        poison(whole, name)
        (whole / name).rename(folder / name)
        guarded = SEQUENCE.match(unmarked(streaming, folder), **ORDERED, **CLOCK)
        metrics.append(ended(start(guarded, tmp_path)))
    assert [(one.ahead, one.late) for one in metrics] == [(1, 0), (1, 0)]
    assert metrics[0].watermark is not None
    assert metrics[0].watermark.year == 2024
    assert "too far ahead of the clock: 1" in str(metrics[0])
    # Whoever wants to close the stream by an event of the year 9999 leaves max_ahead out.
    (whole / "99.parquet").rename(folder / "99.parquet")
    closing = SEQUENCE.match(unmarked(streaming, folder), **ORDERED, stream=kleene.StreamOptions(watermark=WATERMARK))
    assert ended(start(closing, tmp_path)).ahead == 0
    assert found_in(streaming, tmp_path) == expected


def test_without_max_ahead_one_event_makes_the_others_late(
    streaming: SparkSession, tmp_path: Path, expected: list
) -> None:
    write_files(some_events(count=80), tmp_path / "in", files=3)
    poison(tmp_path / "in", "00.parquet")
    stream = unmarked(streaming, tmp_path / "in")
    metrics = ended(
        start(SEQUENCE.match(stream, **ORDERED, stream=kleene.StreamOptions(watermark=WATERMARK)), tmp_path)
    )
    assert metrics.late > 10
    assert len(found_in(streaming, tmp_path)) < len(expected)


def test_in_order_of_arrival_events_from_the_future_are_set_aside_too(streaming: SparkSession, tmp_path: Path) -> None:
    events = some_events(count=60)
    (tmp_path / "in").mkdir()
    for number in range(2):
        pq.write_table(events.slice(30 * number, 30), tmp_path / "in" / f"{number:02}.parquet")
        poison(tmp_path / "in", f"{number:02}.parquet")
    stream = unmarked(streaming, tmp_path / "in").withColumnsRenamed({"ts": "a `time` 'of' day"})
    query = kleene.sase("EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 60 seconds RETURN a.id AS id, b.price AS price")
    found = query.match(
        stream,
        order_by="a `time` 'of' day",
        engine="generated",
        stream=kleene.StreamOptions(order="arrival", max_ahead="1 hour 30 minutes"),
    )
    assert ended(start(found, tmp_path)).ahead == 2
    assert found_in(streaming, tmp_path) == rows_of(query.match(events, order_by="ts"))


def test_programs_and_clauses_have_it_too(streaming: SparkSession, tmp_path: Path) -> None:
    write_files(some_events(count=40), tmp_path / "in", files=1)
    poison(tmp_path / "in", "00.parquet")
    stream = unmarked(streaming, tmp_path / "in")
    clause = kleene.match_recognize(
        "ORDER BY TS MEASURES LAST(A.id) AS id PATTERN (A B) WITHIN 1 minute DEFINE B AS B.price > A.price"
    )
    program = kleene.program(
        """EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 60 seconds RETURN a.id AS id INTO Pair;
        FROM Pair EVENT SEQ(Pair x, Pair y) WITHIN 1 minute RETURN x.id AS one, y.id AS other"""
    )
    assert clause.match(stream, **CLOCK).isStreaming
    frames = program.match(stream, **ORDERED, **CLOCK)
    metrics = ended(start(frames["query_2"], tmp_path))
    assert (metrics.ahead, metrics.late) == (2, 0)  # the poison, and the event that would close the stream


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"max_ahead": "1 hour"}, "max_ahead was given without watermark"),
            ({"max_ahead": "soon", "watermark": "1 second"}, "'soon' is not a length of time"),
            ({"max_ahead": 5, "watermark": "1 second"}, "5 is not a length of time"),
            ({"watermark": "-1 second"}, "'-1 second' is not a length of time"),
            ({"watermark": "10 minutes'); --"}, "is not a length of time"),
            ({"watermark": "999999999 weeks"}, "at most a hundred years"),
        ],
    )
    def test_wrong_lengths(self, options: dict, words: str) -> None:
        with pytest.raises(kleene.UnsupportedError, match=words):
            kleene.StreamOptions(**options)

    def test_a_stream_that_has_a_watermark_already(self, streaming: SparkSession, tmp_path: Path) -> None:
        stream = unmarked(streaming, tmp_path).withWatermark("ts", "1 second")
        with pytest.raises(kleene.UnsupportedError, match="has a watermark already") as error:
            SEQUENCE.match(stream, order_by="ts", **CLOCK)
        assert "Leave .withWatermark out" in str(error.value)

    def test_a_time_that_is_no_point_in_time(self, streaming: SparkSession, tmp_path: Path) -> None:
        stream = unmarked(streaming, tmp_path).selectExpr("type", "id", "CAST(ts AS TIMESTAMP_NTZ) AS ts")
        with pytest.raises(kleene.UnsupportedError, match="are for points in time, but 'ts' is timestamp_ntz"):
            SEQUENCE.match(stream, order_by="ts", **CLOCK)

    def test_tables(self, streaming: SparkSession) -> None:
        events = some_events(count=3)
        for table in (events, streaming.createDataFrame(events, SCHEMA)):
            with pytest.raises(kleene.UnsupportedError, match="is for streams, but the input is a table"):
                SEQUENCE.match(table, order_by="ts", **CLOCK)
        with pytest.raises(kleene.UnsupportedError, match="is for streams, but the input is a table"):
            kleene.program("EVENT SEQ(Shelf a, Exit b) WITHIN 1 minute").match(events, order_by="ts", **CLOCK)

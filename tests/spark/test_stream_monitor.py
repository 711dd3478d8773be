"""How a stream is doing, from progress reports as Spark writes them, and from a real one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row

import kleene
from kleene.spark.layouts.stream import PROVIDER, ROCKSDB
from kleene.spark.monitor import StreamMetrics, named, stream_metrics

STANDS = ("bucket", "waiting", "runs", "kept", "bytes", "turn")


def report(batch: int, *stands: tuple[int, ...], run: str = "r", of_buckets: int | None = 64, **counts: int | None):
    """What Spark reports of a micro-batch in a classic session; each stand is a bucket's, in the order of STANDS."""
    told = {"events": 0, "late": 0, "matches": 0} | counts
    watermark = "1970-01-01T00:00:00.000Z" if batch == 0 else f"2024-01-01T10:{batch:02}:00.000Z"
    buckets = [dict(zip(STANDS, stand, strict=True)) for stand in stands]
    return {
        "runId": run,
        "batchId": batch,
        "batchDuration": 500,
        "durationMs": {"addBatch": 400, "triggerExecution": 500},
        "eventTime": {"watermark": watermark},
        "sources": [{"numInputRows": told["events"] or 0}] * 2,
        "stateOperators": [{"numRowsTotal": 7, "memoryUsedBytes": 1_100_000}],
        "observedMetrics": {
            "kleene_12345678": Row(**told, buckets=buckets, of_buckets=of_buckets),
            "of_another": Row(events=1000),
        },
    }


def metrics_of(*reports) -> StreamMetrics:
    return StreamMetrics().and_then(reports)


def test_counts_add_up_and_stands_are_what_each_bucket_told_last() -> None:
    found = metrics_of(
        report(0, (1, 5, 0, 0, 500, 1), (2, 7, 0, 0, 700, 2), events=12),
        report(1, (2, 3, 1, 4, 400, 1), events=3, late=2, matches=1),
    )
    assert (found.read, found.events, found.late, found.matches) == (30, 15, 2, 1)
    assert (found.waiting, found.runs, found.kept, found.state_bytes) == (8, 1, 4, 900)
    assert [batch.waiting for batch in found.batches] == [12, 8]
    assert [batch.watermark for batch in found.batches] == [None, datetime(2024, 1, 1, 10, 1, tzinfo=UTC)]
    assert found.batches[0].events_per_second == 48
    assert found.is_whole


def test_bucket_that_is_told_twice_stands_as_in_its_later_turn() -> None:
    for stands in ([(1, 5, 0, 0, 500, 1), (1, 0, 2, 3, 90, 2)], [(1, 0, 2, 3, 90, 2), (1, 5, 0, 0, 500, 1)]):
        found = metrics_of(report(0, *stands))
        assert (found.waiting, found.runs) == (0, 2)


def test_micro_batch_in_which_no_bucket_was_touched() -> None:
    found = metrics_of(
        report(0, (1, 5, 0, 0, 500, 1), events=5),
        report(1, events=None, late=None, matches=None, of_buckets=None),
    )
    assert (found.events, found.waiting, found.is_whole) == (5, 5, True)


def test_after_a_restart_it_says_that_it_does_not_know_all() -> None:
    found = metrics_of(report(17, (1, 5, 0, 0, 500, 1), events=5))
    assert not found.is_whole
    assert "≥5" in str(found)
    assert "counted from micro-batch 17 on" in str(found)
    assert "at least" in str(found)


def test_after_a_restart_all_is_known_when_every_bucket_was_touched() -> None:
    found = metrics_of(
        report(17, (0, 5, 0, 0, 500, 1), of_buckets=2),
        report(18, (1, 2, 0, 0, 200, 1), of_buckets=2),
        report(19, of_buckets=None),
    )
    assert [batch.is_whole for batch in found.batches] == [False, True, True]
    assert found.waiting == 7


def test_reports_that_were_missed_make_it_uncertain() -> None:
    assert not metrics_of(report(0), report(2, (1, 5, 0, 0, 500, 1))).is_whole


def test_reports_are_counted_once_and_another_run_begins_anew() -> None:
    first = report(0, events=5)
    assert metrics_of(first, first).events == 5
    again = metrics_of(first, report(1, events=1, run="other"))
    assert (again.events, again.first_batch) == (1, 1)


def test_reports_of_nothing_are_passed_over() -> None:
    idle = report(1, events=9) | {"durationMs": {"triggerExecution": 3}}
    assert metrics_of(report(0, events=5), idle).events == 5


def test_two_patterns_in_one_streaming_query_are_counted_together() -> None:
    both = report(0, (1, 5, 0, 0, 500, 1), events=5)
    both["observedMetrics"]["kleene_abc"] = Row(
        events=1, late=0, matches=2, buckets=[dict(zip(STANDS, (1, 1, 0, 0, 10, 1), strict=True))], of_buckets=64
    )
    found = metrics_of(both)
    assert (found.events, found.matches, found.waiting) == (6, 2, 6)


def test_rows_of_spark_connect_read_the_same() -> None:
    def fields(*names: str) -> dict:
        return {"type": "struct", "fields": [{"name": name, "nullable": True} for name in names]}

    bucket = {"values": [1, 2, 0, 0, 352, 1], "schema": fields(*STANDS)}
    row = Row(values=[3, 0, 0, [bucket], 64], schema=fields("events", "late", "matches", "buckets", "of_buckets"))
    assert named(row) == {
        "events": 3,
        "late": 0,
        "matches": 0,
        "buckets": [{"bucket": 1, "waiting": 2, "runs": 0, "kept": 0, "bytes": 352, "turn": 1}],
        "of_buckets": 64,
    }


def test_table() -> None:
    found = metrics_of(*(report(n, (1, n, 1, 2, 1500, 1), events=1000, matches=n) for n in range(12)))
    lines = str(found).splitlines()
    assert " ".join(lines[0].split()) == (
        "batch read events late matches waiting runs kept state watermark seconds read/s"
    )
    assert len(lines) == 13  # the headings, ten micro-batches, the total, the state store
    assert " ".join(lines[1].split()) == "2 2,000 1,000 0 2 2 1 2 1.5 kB 2024-01-01 10:02:00 0.5 4,000"
    assert " ".join(lines[11].split()) == "total 24,000 12,000 0 66 6.0"
    assert lines[12] == "Spark's state store: 7 rows, 1.1 MB of memory"
    assert str(StreamMetrics()) == "no micro-batch yet"


class Query:
    """As much of a StreamingQuery as is asked for."""

    runId = "r"  # noqa: N815  # Spark's name

    def __init__(self, *reports) -> None:
        self.reports, self.asked = reports, 0

    @property
    def lastProgress(self):  # noqa: N802
        return self.reports[-1] if self.reports else None

    @property
    def recentProgress(self):  # noqa: N802
        self.asked += 1
        return list(self.reports[-2:])


def test_going_on_from_earlier_metrics_counts_what_spark_has_forgotten() -> None:
    query, reports = Query(report(0, (1, 5, 0, 0, 500, 1), events=1)), [report(n, events=1) for n in range(5)]
    found = stream_metrics(query)
    for n in (1, 2, 4):
        query.reports = tuple(reports[: n + 1])
        found = stream_metrics(query, found)
    assert (found.events, found.waiting, found.is_whole) == (5, 5, True)
    assert query.asked == 2  # at first, and where two were new
    assert stream_metrics(query, found) == found


def test_streaming_query_without_a_pattern() -> None:
    with pytest.raises(kleene.UnsupportedError, match="does not find patterns"):
        kleene.stream_metrics(Query(report(0) | {"observedMetrics": {}, "numInputRows": 5}))
    # A trigger that found nothing to do tells nothing.
    assert kleene.stream_metrics(Query(report(0) | {"observedMetrics": {}, "numInputRows": 0})).matches == 0
    assert str(kleene.stream_metrics(Query())) == "no micro-batch yet"


def test_of_a_real_stream(classic_spark, tmp_path: Path) -> None:
    spark = classic_spark.newSession()
    spark.conf.set(PROVIDER, ROCKSDB)
    minutes = [datetime(2024, 1, 1, 10, minute, tzinfo=UTC) for minute in (0, 1, 30)]
    (tmp_path / "in").mkdir()
    events = {"type": ["A", "B", "A"], "ts": pa.array(minutes, pa.timestamp("us", "UTC")), "id": [1, 1, 2]}
    pq.write_table(pa.table(events), tmp_path / "in" / "1.parquet")
    schema = "type STRING, ts TIMESTAMP, id LONG"
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "in")).withWatermark("ts", "5 minutes")
    found = kleene.sase("EVENT SEQ(A a, B b) WHERE [id] WITHIN 1 hour").match(stream, order_by="ts")
    writer = found.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    metrics = kleene.stream_metrics(query)
    assert (metrics.read, metrics.events, metrics.matches, metrics.late) == (3, 3, 1, 0)
    assert [batch.waiting for batch in metrics.batches] == [3, 1]
    assert metrics.runs == 1
    assert metrics.state_bytes > 0
    assert metrics.last.store_rows > 0
    assert metrics.watermark == datetime(2024, 1, 1, 10, 25, tzinfo=UTC)
    assert metrics.is_whole
    assert kleene.stream_metrics(query, metrics) == metrics

"""What the benchmark on streams compares Kleene with finds the same matches; its figures are what they say."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

import stream
import stream_data
from stream_data import Shape

SHAPE = Shape(600, 10, 3)


@pytest.mark.parametrize("name", stream.SUBJECTS)
def test_processor_by_hand_finds_what_kleene_finds(name: str) -> None:
    subject = stream.SUBJECTS[name]
    events = stream_data.GENERATORS[subject.table](SHAPE)
    expected = subject.query.match(events.sort_by("ts"), order_by="ts", engine="reference")
    tester = TwsTester(subject.by_hand(), timeMode="EventTime", eventTimeExtractor=milliseconds)
    given, latest = [], 0
    for piece in pieces(events):
        for key, own in piece.groupby("id"):
            given.append(tester.testInPandas(key, own))
        latest = max(latest, int(piece["ts"].max().value // 1_000_000) - 3_600_000)
        given.append(pd.DataFrame(tester.setWatermark(latest)))
    given.append(pd.DataFrame(tester.setWatermark(2 * latest)))
    found = pd.concat([part for part in given if len(part)])
    assert list(found.columns) == expected.column_names
    plain = expected.to_pandas().apply(lambda column: column.dt.tz_localize(None) if hasattr(column, "dt") else column)
    assert rows(found) == rows(plain)
    assert len(plain) > 5


def milliseconds(row) -> int:
    return int(row.ts.value // 1_000_000)


def pieces(events: pa.Table) -> list[pd.DataFrame]:
    frame = events.select(["id", "ts", "type"]).to_pandas()
    frame["ts"] = frame["ts"].dt.tz_localize(None)
    return [frame[begin : begin + 200] for begin in range(0, len(frame), 200)]


def rows(frame: pd.DataFrame) -> list[tuple]:
    return sorted(frame.itertuples(index=False, name=None))


def test_events_arrive_no_later_than_the_watermark_waits() -> None:
    times = stream_data.readings(SHAPE).column("ts").cast(pa.int64()).to_numpy()
    assert (np.maximum.accumulate(times) - times).max() < stream_data.HOUR
    assert not (times[1:] >= times[:-1]).all()


def test_files_are_read_in_their_order_and_the_last_ends_the_stream(tmp_path: Path) -> None:
    events = stream_data.logins(SHAPE)
    stream_data.write(events, SHAPE.files, tmp_path)
    files = sorted(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime)
    assert [pq.read_metadata(file).num_rows for file in files] == [200, 200, 200, 1]
    last = pq.read_table(files[-1]).column("ts")[0].as_py()
    assert last > max(events.column("ts").to_pylist())
    assert stream_data.first_files(tmp_path, 2) == [str(files[0]), str(files[1]), str(files[3])]


def test_keys_that_move_do_not_come_back() -> None:
    keys = stream_data.logins(Shape(2_000, 10, 1, moving=True)).column("id").to_numpy()
    assert keys[:200].max() < keys[-200:].min()


def test_rate_is_that_of_full_micro_batches_behind_the_first() -> None:
    progress = [
        batch(100, 9_000, 1, 5),
        batch(100, 2_000, 2, 6),
        batch(100, 3_000, 0, None),
        batch(1, 7_000, 4, 7),
        batch(0, 8_000, 0, None),
    ]
    run = stream.run_of(progress, 2.5)
    assert (run.events, run.seconds, run.rate, run.batches) == (200, 5.0, 40.0, 2)
    assert run.answer == (7, 5 ^ 6 ^ 7)
    assert run.durations == {"triggerExecution": 2_500}


def batch(events: int, took: int, matches: int, digest: int | None) -> dict:
    answer = {"answer": {"rows": matches, "digest": digest}}
    return {"numInputRows": events, "durationMs": {"triggerExecution": took}, "observedMetrics": answer}


def test_quarters() -> None:
    assert stream.quarters([0, 0, 1, 3, 9, 9, 5, 7]) == (2, 6)


def test_match_is_seen_when_the_log_of_the_sink_names_its_file(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    named = []
    for number, name in ((8, "8"), (9, "9.compact"), (10, "10")):
        file = tmp_path / f"part-{number}.parquet"
        pq.write_table(pa.table({"last": pa.array([number * 1_000_000], pa.timestamp("us", "UTC"))}), file)
        named.append(json.dumps({"path": f"file://{file}"}))
        (log / name).write_text("\n".join(["v1", *(named if "compact" in name else named[-1:])]))
        os.utime(log / name, (number + 2, number + 2))
    sent, seen = stream.arrivals(tmp_path)
    assert sent.tolist() == [8, 9, 10]
    assert (seen - sent).tolist() == [2, 2, 2]

"""Scans on Spark: tasks read the files, and give what the table gives in this process."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from test_spark_in_place import SASE
from test_spark_ranges import ROWS, rows_of, walk

import kleene
from kleene.spark import scans
from kleene.spark.layouts import files as layout


@pytest.fixture(autouse=True)
def _tasks_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "ROWS_OF_A_TASK", 200)
    monkeypatch.setattr(scans, "MOST_ROWS", 200)


def written(table: pa.Table, folder: Path, cuts: tuple[int, ...] = (300, 310, 650)) -> Path:
    """Files in the order of time; inside, and a little over their edges, events are in no order."""
    folder.mkdir()
    bounds = [0, *cuts, table.num_rows]
    for number, (begin, end) in enumerate(pairwise(bounds)):
        part = table.slice(begin, end - begin)
        if number == 2:
            part = part.take(pa.array(np.random.default_rng(1).permutation(part.num_rows)))
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=120)
    return folder


@pytest.mark.parametrize("name", [*SASE, *ROWS])
def test_scan_on_spark(name: str, spark, tmp_path: Path) -> None:
    table = walk(2, 900, keys=3)
    options: dict[str, Any] = {}
    if name in SASE:
        text, options = SASE[name]
        query, options = kleene.sase(text), {**options, "order_by": "t", "tie_break": "n"}
    else:
        measures = "MATCH_NUMBER() AS number, A.n AS a, LAST(B.n) AS b, PREV(A.n) AS before"
        query = kleene.match_recognize(
            f"PARTITION BY k ORDER BY t, n MEASURES {measures} {ROWS[name]} DEFINE B AS B.x > PREV(B.x)"
        )
    scan = kleene.scan(written(table, tmp_path / "events"), spark=spark)
    assert "because 4 files follow one another in time" in query.explain(scan, **options)
    expected = rows_of(query.match(table, **options))
    assert rows_of(query.match(scan, **options)) == expected
    assert expected


QUERY = kleene.sase("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 8 RETURN a.n AS a, b.n AS b")
ORDER = {"order_by": "t", "tie_break": "n"}


def test_the_session_may_be_given_to_match(either_spark, tmp_path: Path) -> None:
    table = walk(2, 900, keys=3)
    scan = kleene.scan(written(table, tmp_path / "events"))
    found = QUERY.match(scan, **ORDER, spark=either_spark)
    assert type(found).__module__.startswith("pyspark")
    assert rows_of(found) == rows_of(QUERY.match(table, **ORDER))


def test_files_that_overlap_are_shuffled(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = walk(2, 900, keys=3)
    mixed = table.take(pa.array(np.random.default_rng(1).permutation(900)))
    scan = kleene.scan(written(mixed, tmp_path / "events"), spark=spark)
    expected = rows_of(QUERY.match(table, **ORDER))
    assert "but for blocks that overlap and are read together" in QUERY.explain(scan, **ORDER)
    assert rows_of(QUERY.match(scan, **ORDER)) == expected
    monkeypatch.setattr(layout, "MOST_TOGETHER", 100)
    assert "not in place: blocks of 900 events overlap in time" in QUERY.explain(scan, **ORDER)
    assert rows_of(QUERY.match(scan, **ORDER)) == expected
    with pytest.raises(kleene.UnsupportedError, match="cannot be matched where they lie: blocks of 900 events"):
        QUERY.match(scan, **ORDER, spark=kleene.SparkOptions("files"))


def test_a_query_without_a_window_is_shuffled(spark, tmp_path: Path) -> None:
    table = walk(2, 300, keys=3)
    query = kleene.sase(
        "PATTERN SEQ(A a, B b, A c) WHERE skip_till_next_match(a, b, c) { [k] } RETURN a.n AS a, c.n AS c"
    )
    scan = kleene.scan(written(table, tmp_path / "events", (100,)), spark=spark)
    assert "not in place: the query cannot be matched in place: no WITHIN" in query.explain(scan, **ORDER)
    assert rows_of(query.match(scan, **ORDER)) == rows_of(query.match(table, **ORDER))


def test_text_files_are_read_by_tasks(spark, tmp_path: Path) -> None:
    table = walk(2, 300, keys=3)
    pyarrow.csv.write_csv(table.slice(0, 100), tmp_path / "a.csv")
    pyarrow.csv.write_csv(table.slice(100), tmp_path / "b.csv")
    assert rows_of(QUERY.match(kleene.scan(tmp_path, spark=spark), **ORDER)) == rows_of(QUERY.match(table, **ORDER))


def test_blocks_without_events_of_use_are_skipped(spark, tmp_path: Path) -> None:
    table = walk(2, 900, keys=3)
    last = int(table["t"][899].as_py()) - 20
    query = kleene.sase(f"PATTERN SEQ(A a, B b) WHERE [k] AND a.t > {last} AND b.t > {last} WITHIN 8 RETURN a.n AS a")
    scan = kleene.scan(written(table, tmp_path / "events"), spark=spark)
    assert "skipped    " in query.explain(scan, **ORDER)
    expected = rows_of(query.match(table, **ORDER))
    assert rows_of(query.match(scan, **ORDER)) == expected
    assert expected


def test_a_frame_of_files_is_read_by_tasks(spark, tmp_path: Path) -> None:
    table = walk(2, 900, keys=3)
    frame = spark.read.parquet(str(written(table, tmp_path / "events")))
    as_files = {**ORDER, "spark": kleene.SparkOptions("files")}
    assert "tasks read them with Arrow" in QUERY.explain(frame, **as_files)
    assert rows_of(QUERY.match(frame, **as_files)) == rows_of(QUERY.match(table, **ORDER))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.where("n > 5"), "its plan begins with Filter"),
        (lambda frame: frame.withColumn("x", frame.n), "its plan begins with Project"),
        (lambda frame: frame.unionByName(frame), "its plan begins with Union"),
    ],
)
def test_a_frame_that_is_more_than_files_is_refused(change: Any, words: str, spark, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(written(walk(2, 300, keys=3), tmp_path / "events", (100,))))
    with pytest.raises(kleene.UnsupportedError, match=words):
        QUERY.match(change(frame), **ORDER, spark=kleene.SparkOptions("files"))


def test_a_file_that_changes_under_the_job_is_an_error(spark, tmp_path: Path) -> None:
    folder = written(walk(2, 300, keys=3), tmp_path / "events", (100,))
    found = QUERY.match(kleene.scan(folder, spark=spark), **ORDER)
    pq.write_table(walk(3, 10, keys=1), folder / "1.parquet")
    with pytest.raises(Exception, match=r"1\.parquet' has changed since the scan was made"):
        found.collect()


def test_events_of_one_time_in_two_files_meet_in_one_task(spark, tmp_path: Path, monkeypatch) -> None:
    """By the tie-break, the event in the later file comes first."""
    for name in ("ROWS_OF_A_TASK", "MOST_ROWS"):
        monkeypatch.setattr(scans, name, 1)
    monkeypatch.setattr(layout, "EDGES", 0)
    table = pa.table(
        {
            "type": ["A", "B", "A", "B", "A", "B"],
            "t": [1, 5, 5, 9, 9, 20],
            "n": [1, 4, 2, 9, 7, 8],
            "k": [1, 1, 1, 1, 1, 1],
        }
    )
    (tmp_path / "events").mkdir()
    for number, (begin, end) in enumerate(pairwise([0, 2, 4, 5, 6])):
        pq.write_table(table.slice(begin, end - begin), tmp_path / "events" / f"{number}.parquet")
    scan = kleene.scan(tmp_path / "events", spark=spark)
    said = QUERY.explain(scan, **ORDER)
    assert "2 tasks read them" in said
    assert "shuffle    none" in said
    found = sorted(tuple(row) for row in QUERY.match(scan, **ORDER).collect())
    assert found == [(1, 4), (2, 4), (2, 9), (7, 9)]

"""Ties on Spark: counted in the tasks, told after an action, on classic sessions and by Spark Connect."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kleene

SEQUENCE = kleene.sase("EVENT SEQ(A a, B b) WHERE [id] WITHIN 10 RETURN a.x AS a, b.x AS b")
ROWS = [("A", 1, "k", 1), ("B", 1, "k", 2), ("B", 3, "k", 3), ("C", 3, "k", 4), ("A", 3, "other", 5)]


@pytest.fixture
def spark(either_spark):
    return either_spark


def table(rows: list[tuple[str, int, str, int]] = ROWS) -> pa.Table:
    return pa.table(dict(zip(("type", "t", "id", "x"), map(list, zip(*rows, strict=True)), strict=True)))


def test_notes_come_with_an_action_and_change_no_rows(spark) -> None:
    found = SEQUENCE.match(spark.createDataFrame(table()), order_by="t")
    assert sorted(map(tuple, found.collect())) == [(1, 2), (1, 3)]
    assert kleene.last_notes(found) == (
        "2 events have the same t as another event of their id, and the order of their other values decides which "
        "comes first: in process and on Spark the results may differ. Use tie_break to name a column that decides.",
    )
    assert found.count() == 2
    assert found.alias("one").join(found.alias("other"), "a").count() == 4
    assert len(kleene.last_notes(found)) == 1


def test_no_notes_before_an_action(spark, monkeypatch) -> None:
    monkeypatch.setattr("kleene.spark.notes._PATIENCE", 0.1)
    found = SEQUENCE.match(spark.createDataFrame(table()), order_by="t")
    assert kleene.last_notes(found) == ()
    assert found.count() == 2
    monkeypatch.setattr("kleene.spark.notes._PATIENCE", 5)
    assert len(kleene.last_notes(found)) == 1


def test_no_notes_where_nothing_ties_or_the_user_decides(spark) -> None:
    frame = spark.createDataFrame(table())
    for found in (
        SEQUENCE.match(frame.where("x != 2"), order_by="t"),
        SEQUENCE.match(frame, order_by="t", tie_break="x"),
        kleene.sase("EVENT A a").match(frame, order_by="t"),
    ):
        found.count()
        assert kleene.last_notes(found) == ()


def test_ranges_count_an_event_once(spark) -> None:
    rows = [(kind, time, "k", number) for number, time in enumerate(range(60)) for kind in "AB"]
    frame = spark.createDataFrame(table(rows))
    found = SEQUENCE.match(frame, order_by="t", spark=kleene.SparkOptions("ranges", ranges=3))
    found.count()
    assert kleene.last_notes(found)[0].startswith("120 events have the same t")


def test_row_patterns_and_programs(spark) -> None:
    frame = spark.createDataFrame(table())
    rows = kleene.match_recognize("PARTITION BY id ORDER BY t MEASURES B.x AS x PATTERN (A B)").match(frame)
    rows.count()
    assert kleene.last_notes(rows)[0].startswith("4 events have the same t as another event of their id")
    pairs = kleene.program("EVENT SEQ(A a, B b) WHERE [id] INTO Pair; FROM Pair EVENT Pair p").match(
        frame, order_by="t"
    )
    pairs["Pair"].count()
    assert kleene.last_notes(pairs["Pair"])[0].startswith("2 events")


def test_sql_on_a_classic_session(classic_spark) -> None:
    classic_spark.createDataFrame(table()).createOrReplaceTempView("ties")
    clause = "PARTITION BY id ORDER BY t MEASURES B.x AS x PATTERN (A B)"
    found = kleene.sql(classic_spark, f"SELECT * FROM ties MATCH_RECOGNIZE ({clause}) WHERE x > 0")
    found.count()
    assert kleene.last_notes(found)[0].startswith("4 events have the same t as another event of their id")


def test_frames_of_others_have_no_notes(spark) -> None:
    assert kleene.last_notes(spark.range(1)) == ()
    with pytest.raises(kleene.UnsupportedError, match="a DataFrame that match returned"):
        kleene.last_notes(table())

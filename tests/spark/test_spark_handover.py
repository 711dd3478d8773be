"""What travels from Spark to the tasks, and that what is claimed of the input is checked."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import kleene
from kleene.spark.session import kleene_error

QUERY = kleene.sase("EVENT SEQ(A a, B b) WHERE [k] AND a.x > 5 AND b.x IN (1, 2) WITHIN 10 RETURN a.t AS a, b.t AS b")


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory) -> str:
    random = Random(1)
    rows = [(random.choice("ABCD"), n, n % 9, random.randrange(10), f"note {n}") for n in range(500)]
    path = str(tmp_path_factory.mktemp("events") / "parquet")
    spark.createDataFrame(rows, "type STRING, t BIGINT, k INT, x INT, note STRING").write.parquet(path)
    return path


def plan_text(frame) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        frame.explain()
    return said.getvalue()


def test_columns_and_predicates_reach_the_scan(spark, folder: str) -> None:
    text = plan_text(QUERY.match(spark.read.parquet(folder), order_by="t"))
    assert "ReadSchema: struct<type:string,t:bigint,k:int,x:int>" in text  # not the note
    pushed = text.split("PushedFilters: [")[1].split("\n")[0]
    for part in ("EqualTo(type,A)", "GreaterThan(x,5)", "EqualTo(type,B)", "In(x, [1,2])"):
        assert part in pushed
    assert "Filter" in text
    assert "__kleene_group" in text
    assert "CountingTask" in text


def test_without_pushdown_all_events_travel(spark, folder: str) -> None:
    frame = spark.read.parquet(folder)
    text = plan_text(QUERY.match(frame, order_by="t", spark=kleene.SparkOptions(pushdown=False)))
    assert "GreaterThan(x,5)" not in text
    on, off = (
        QUERY.match(frame, order_by="t", spark=kleene.SparkOptions(pushdown=given)).toArrow().to_pylist()
        for given in (True, False)
    )
    assert sorted(map(repr, on)) == sorted(map(repr, off))
    assert on


@pytest.mark.parametrize(
    "text", ["WHERE partition_contiguity(a, b) { [k] AND a.x > 5 }", "WHERE [k] AND a.x > 5 WITHIN 4 events"]
)
def test_where_neighbours_or_places_count_no_event_is_left_out(text: str, spark, folder: str) -> None:
    query = kleene.sase(f"PATTERN SEQ(A a, B b) {text} RETURN a.t AS a, b.t AS b")
    assert "GreaterThan(x,5)" not in plan_text(query.match(spark.read.parquet(folder), order_by="t"))


def test_explain_says_what_travels(spark, folder: str) -> None:
    text = QUERY.explain(spark.read.parquet(folder), order_by="t")
    for line in (
        "columns    type, t, k, x",
        "filter     type IN ('A') AND x > 5 OR type IN ('B') AND x IN (1, 2)",
        "shuffle    by a hash of k",
        "sort       in the tasks, by t",
        "ranges     none: with spark.sql.shuffle.partitions = 2 they would cost more than they save",
        "settings   spark.sql.shuffle.partitions = 2",
    ):
        assert line in text


def in_place(spark, rows: list[tuple]):
    """The rows as they are, in one Spark partition."""
    return spark.createDataFrame(rows, "type STRING, t BIGINT, k INT, x INT").coalesce(1)


SORTED = [("A", t, k, 7) if t % 2 else ("B", t, k, 1) for k in (3, 1, 2) for t in range(20)]


def test_presorted_input_is_neither_shuffled_nor_sorted(spark) -> None:
    found = QUERY.match(in_place(spark, SORTED), order_by="t", spark=kleene.SparkOptions("presorted"))
    usual = QUERY.match(in_place(spark, SORTED), order_by="t")
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, usual.collect()))
    matching = plan_text(found).split("Union")[1].split("HashAggregate")[0]
    assert "Exchange" not in matching


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([*SORTED[:5], *SORTED[6:8], SORTED[5]], "not in the order of 't'"),
        ([*SORTED, *SORTED[:3]], "are not next to each other"),
    ],
)
def test_presorted_input_that_is_not_is_an_error(rows: list[tuple], words: str, spark) -> None:
    with pytest.raises(Exception, match="layout='presorted' was given") as caught:
        QUERY.match(in_place(spark, rows), order_by="t", spark=kleene.SparkOptions("presorted")).collect()
    assert words in kleene_error(caught.value).message


def test_presorted_key_in_two_spark_partitions_is_an_error(spark) -> None:
    frame = in_place(spark, SORTED).repartitionByRange(2, "t").sortWithinPartitions("k", "t")
    with pytest.raises(Exception, match="in several Spark partitions") as caught:
        QUERY.match(frame, order_by="t", spark=kleene.SparkOptions("presorted")).count()
    assert "Leave the layout out" in kleene_error(caught.value).hint
    with pytest.raises(Exception, match="in several Spark partitions"):
        QUERY.match(frame, order_by="t", spark=kleene.SparkOptions("presorted")).where("a = 1").collect()


def test_output_batches_are_small_also_when_one_event_completes_many_matches(spark) -> None:
    events = [("A", t, 1, 7) for t in range(1500)] + [("B", t, 1, 1) for t in range(1500, 1600)]
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE [k] RETURN a.t AS a, b.t AS b")

    def sizes(batches):
        for batch in batches:
            yield pa.record_batch({"rows": pa.array([batch.num_rows], pa.int64())})

    found = query.match(in_place(spark, events), order_by="t").mapInArrow(sizes, "rows BIGINT").collect()
    assert sum(row["rows"] for row in found) == 150_000
    assert max(row["rows"] for row in found) <= 10_000


def test_results_are_written_partitioned_and_read_again(spark, tmp_path: Path) -> None:
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE [k] WITHIN 10 RETURN a.k AS k, a.t AS a, b.t AS b")
    found = query.match(in_place(spark, SORTED), order_by="t")
    found.write.partitionBy("k").parquet(str(tmp_path / "matches"))
    again = spark.read.parquet(str(tmp_path / "matches"))
    assert sorted(p.name for p in (tmp_path / "matches").iterdir() if p.is_dir()) == ["k=1", "k=2", "k=3"]
    assert sorted((r.k, r.a, r.b) for r in again.collect()) == sorted((r.k, r.a, r.b) for r in found.collect())


def test_match_ids_are_the_same_in_every_run(spark) -> None:
    rows = [row for row in SORTED if row[1] < 12]
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE [k] WITHIN 10 RETURN a.k AS k, a.t AS a, b.t AS b")
    columns = zip(*rows, strict=True)
    table = pa.table({name: list(values) for name, values in zip(("type", "t", "k", "x"), columns, strict=True)})
    expected = query.match(table, order_by="t", match_id=True).to_pylist()
    assert len({row["match_id"] for row in expected}) == len(expected) > 10
    frame = in_place(spark, rows[::-1]).repartition(3)
    for options in ({}, {"spark": kleene.SparkOptions("ranges", ranges=3)}):
        found = query.match(frame, order_by="t", match_id=True, **options)
        assert found.columns == ["k", "a", "b", "match_id"]
        assert sorted(map(repr, found.toArrow().to_pylist())) == sorted(map(repr, expected))
    with pytest.raises(kleene.SchemaError, match="match_id is for SASE queries"):
        kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A)").match(table, match_id=True)

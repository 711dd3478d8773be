"""Inputs that lie in files as time went by are matched there on Spark, and give what they give in one piece."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_spark_ranges import ROWS, rows_of, walk, with_and_without_key

import kleene
from kleene.call import Call
from kleene.spark.job import make_job
from kleene.spark.layouts import in_place as layout

IN_PLACE = {"spark": kleene.SparkOptions("in place")}


def files(spark, folder: Path, tables: list[pa.Table]):
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
    return spark.read.parquet(str(folder))


def consecutive(table: pa.Table, *cuts: int) -> list[pa.Table]:
    bounds = [0, *cuts, table.num_rows]
    return [table.slice(begin, end - begin) for begin, end in pairwise(bounds)]


@pytest.mark.parametrize(("name", "key"), with_and_without_key(ROWS, "PARTITION BY k"))
def test_row_pattern_in_place(name: str, key: str, spark, tmp_path: Path) -> None:
    measures = "MATCH_NUMBER() AS number, A.n AS a, LAST(B.n) AS b, PREV(A.n) AS before"
    query = kleene.match_recognize(f"{key} ORDER BY t, n MEASURES {measures} {ROWS[name]} DEFINE B AS B.x > PREV(B.x)")
    table = walk(1, 900, keys=3)
    frame = files(spark, tmp_path / "events", consecutive(table, 300, 310, 650))
    expected = rows_of(query.match(table))
    assert rows_of(query.match(frame, **IN_PLACE)) == expected
    assert expected


SASE = {
    "all": ("PATTERN SEQ(A a, B+ b[], A c) WHERE [k] AND b[i].x > a.x WITHIN 8 RETURN a.n AS a, c.n AS c", {}),
    "non_overlapping": (
        "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 8 RETURN a.n AS a, b.n AS b",
        {"format": "non_overlapping"},
    ),
    "negation_first": (
        "PATTERN SEQ(!(B x), A a, B b) WHERE a.k = b.k AND x.k = a.k WITHIN 8 RETURN a.n AS a, b.n AS b",
        {},
    ),
    "with_ids": ("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 8", {"match_id": True}),
}


@pytest.mark.parametrize("name", SASE)
def test_sase_query_in_place(name: str, spark, tmp_path: Path) -> None:
    text, options = SASE[name]
    query, table = kleene.sase(text), walk(2, 900, keys=3)
    options = {**options, "order_by": "t", "tie_break": "n"}
    frame = files(spark, tmp_path / "events", consecutive(table, 300, 310, 650))
    expected = rows_of(query.match(frame, **options, spark=kleene.SparkOptions("shuffled")))
    assert rows_of(query.match(frame, **options, **IN_PLACE)) == expected
    assert expected


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ", "DATE", "DOUBLE"])
def test_times_of_all_kinds_in_place(kind: str, spark) -> None:
    text = f"CAST(TIMESTAMP '2024-03-31 00:00:00' + make_dt_interval(0,0,0,id) AS {kind})"
    text = {"DATE": "date_add(DATE '2024-01-01', CAST(id AS INT))", "DOUBLE": "CAST(id - 200 AS DOUBLE) / 2"}.get(
        kind, text
    )
    window = {"DATE": "4 days", "DOUBLE": "4"}.get(kind, "4 seconds")
    frame = spark.range(0, 400, 1, 3).selectExpr(f"{text} AS t", "id AS n", "hash(id) % 7 AS x")
    query = kleene.match_recognize(
        f"ORDER BY t, n MEASURES A.n AS a, B.n AS b PATTERN (A C* B) WITHIN {window} DEFINE C AS C.x < 3, B AS B.x > 3"
    )
    expected = rows_of(query.match(frame, spark=kleene.SparkOptions("shuffled")))
    assert rows_of(query.match(frame, **IN_PLACE)) == expected
    assert expected


QUERY = "ORDER BY t MEASURES A.t AS a, LAST(B.t) AS b PATTERN (A B+) MAXLENGTH 6 DEFINE B AS B.x > PREV(B.x)"


def test_most_is_found_where_it_lies_and_little_travels(spark) -> None:
    frame = spark.range(0, 100_000, 1, 4).selectExpr("id AS t", "hash(id) % 7 AS x")
    query = kleene.match_recognize(QUERY)
    job = make_job(Call(query.definition, **IN_PLACE), frame)
    travelled = job.layout.travelled(job).toArrow()
    events = len(travelled.column(-3).drop_null())
    # Of each piece: the two or three events at either end, and those that their matches reach.
    assert 4 * 10 < events < 4 * 25
    assert travelled.num_rows - events - 4 > 0.99 * query.match(frame, spark=kleene.SparkOptions("shuffled")).count()


def test_explain_says_what_is_shuffled(spark) -> None:
    frame = spark.range(0, 1_000, 1, 4).selectExpr("id AS t", "id % 7 AS x")
    said = kleene.match_recognize(QUERY).explain(frame, **IN_PLACE)
    assert "shuffle    of what lies at the edges of pieces, to one Spark partition" in said
    assert "ranges     the pieces of the input, where they lie; each reads on for 7 rows" in said


def test_files_that_overlap_in_time_are_an_error(spark, tmp_path: Path) -> None:
    table = walk(3, 900)
    odd = [table.take(list(range(begin, 900, 2))) for begin in (0, 1)]
    frame = files(spark, tmp_path / "events", odd).repartition(2, "n")
    with pytest.raises(Exception, match="do not follow one another in time: they have events at the same times"):
        kleene.match_recognize(QUERY).match(frame.sortWithinPartitions("t"), **IN_PLACE).collect()


def test_a_large_piece_out_of_order_is_an_error(spark) -> None:
    assert layout.LARGE_PIECE < layout.PIECE_ROWS
    frame = spark.range(0, 300_000, 1, 1).selectExpr("hash(id) AS t", "id % 7 AS x")
    with pytest.raises(Exception, match="a file of the input are too far out of order"):
        kleene.match_recognize(QUERY).match(frame, **IN_PLACE).collect()


def test_small_pieces_out_of_order_are_matched_together(spark, tmp_path: Path) -> None:
    table = walk(3, 900)
    odd = [table.take(list(range(begin, 900, 3))[::-1]) for begin in (0, 1, 2)]
    frame = files(spark, tmp_path / "events", odd)
    query = kleene.match_recognize(QUERY.replace("ORDER BY t", "ORDER BY t, n"))
    assert rows_of(query.match(frame, **IN_PLACE)) == rows_of(query.match(table))


def test_events_without_an_order_key_are_counted(spark) -> None:
    frame = spark.range(0, 40, 1, 3).selectExpr(
        "if(id < 36, CAST(id AS DOUBLE), if(id < 39, double('NaN'), NULL)) AS t"
    )
    query = kleene.match_recognize("ORDER BY t MEASURES PREV(A.t, 5) AS `a.b` PATTERN (A B)")
    assert query.match(frame.where("t < 36"), **IN_PLACE).count() == 18
    with pytest.raises(Exception, match="4 rows have no order key"):
        query.match(frame, **IN_PLACE).collect()


def test_names_of_results_may_be_those_of_events(spark) -> None:
    frame = spark.range(0, 60, 1, 2).selectExpr("id AS t", "id % 3 AS `x.y`", "concat('k', id % 2) AS k")
    query = kleene.match_recognize(
        "PARTITION BY k ORDER BY t MEASURES A.t AS t, B.`x.y` AS `x.y` PATTERN (A B) DEFINE B AS B.`x.y` > 0"
    )
    expected = rows_of(query.match(frame, spark=kleene.SparkOptions("shuffled")))
    assert rows_of(query.match(frame, **IN_PLACE)) == expected
    assert expected


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (QUERY.replace("MAXLENGTH 6", ""), "neither MAXLENGTH nor WITHIN bounds"),
        (QUERY.replace("ORDER BY t", "ORDER BY s"), "pieces are sorted by numbers or times"),
    ],
)
def test_what_cannot_be_matched_in_place_is_named(query: str, words: str, spark) -> None:
    frame = spark.range(3).selectExpr("id AS t", "id AS x", "'s' AS s")
    with pytest.raises(kleene.UnsupportedError, match=words):
        kleene.match_recognize(query).match(frame, **IN_PLACE)


def test_windows_of_events_are_not_matched_in_place(spark) -> None:
    frame = spark.range(3).selectExpr("id AS t", "'A' AS type")
    with pytest.raises(kleene.UnsupportedError, match="needs a window in time"):
        kleene.sase("PATTERN SEQ(A a, A b) WITHIN 3 events").match(frame, order_by="t", **IN_PLACE)

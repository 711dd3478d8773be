"""Heavy keys cut into ranges on Spark give what matching in one piece gives."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

import kleene
from kleene.spark.layouts import choosing
from kleene.spark.schema import spark_schema


def walk(seed: int, rows: int, keys: int = 1) -> pa.Table:
    random = Random(seed)
    times = sorted(random.randrange(rows // 2) for _ in range(rows))  # with ties
    return pa.table(
        {
            "type": [random.choice("AB") for _ in range(rows)],
            "t": times,
            "n": list(range(rows)),
            "k": [random.choice([f"k{n}" for n in range(keys - 1)] + ["heavy"] * 5) for _ in range(rows)],
            "x": [random.randrange(10) for _ in range(rows)],
        }
    )


def rows_of(found) -> list:
    table = found if isinstance(found, pa.Table) else found.toArrow()
    return sorted(map(repr, table.to_pylist()))


ROWS = {
    "skip_past_last": "AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+) MAXLENGTH 6",
    "skip_to_next": "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+) MAXLENGTH 6",
    "skip_to_last": "AFTER MATCH SKIP TO LAST B PATTERN (A B+) MAXLENGTH 6",
    "within": "AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+) WITHIN 9",
    "fixed": "AFTER MATCH SKIP PAST LAST ROW PATTERN (A B{2})",
    "at_start": "AFTER MATCH SKIP PAST LAST ROW PATTERN (^ A B*) MAXLENGTH 6",
    "at_end": "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B* $) MAXLENGTH 6",
}


def with_and_without_key(names: dict, key: str) -> list[tuple[str, str]]:
    """Each without a key; every other one with it, too, since jobs take their time."""
    return [(name, "") for name in names] + [(name, key) for name in list(names)[::2]]


@pytest.mark.parametrize(("name", "key"), with_and_without_key(ROWS, "PARTITION BY k"))
def test_row_pattern_in_ranges(name: str, key: str, spark) -> None:
    measures = "MATCH_NUMBER() AS number, A.n AS a, LAST(B.n) AS b, PREV(A.n) AS before"
    query = kleene.match_recognize(f"{key} ORDER BY t, n MEASURES {measures} {ROWS[name]} DEFINE B AS B.x > PREV(B.x)")
    table = walk(1, 300, keys=4)
    expected = rows_of(query.match(table))
    frame = spark.createDataFrame(table, spark_schema(table.schema))
    assert rows_of(query.match(frame, spark=kleene.SparkOptions("ranges", ranges=7))) == expected
    assert expected


SASE = {
    "all": ("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 4", "all"),
    "kleene": ("PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) { b[i].x > a.x } WITHIN 5", "all"),
    "negation_first": ("PATTERN SEQ(!(B c), A a, B b) WHERE c.x = 3 AND a.x < b.x WITHIN 6", "all"),
    "negation_last": ("PATTERN SEQ(A a, B b, !(A c)) WHERE c.x = 3 AND a.x < b.x WITHIN 6", "all"),
    "non_overlapping": ("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 4", "non_overlapping"),
    "events": ("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 4 events", "non_overlapping"),
    "contiguous": ("PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { a.x < b.x }", "all"),
}


@pytest.mark.parametrize(("name", "key"), with_and_without_key(SASE, "[k]"))
def test_sase_query_in_ranges(name: str, key: str, spark) -> None:
    text, format_ = SASE[name]
    if key:
        text = text.replace("{", f"{{ {key} AND") if "{" in text else text.replace("WHERE", f"WHERE {key} AND")
    query = kleene.sase(text)
    table = walk(2, 300, keys=4)
    frame = spark.createDataFrame(table, spark_schema(table.schema))
    options = {"order_by": ["t", "n"], "format": format_}
    expected = rows_of(query.match(table, **options))
    assert rows_of(query.match(frame, **options, spark=kleene.SparkOptions("ranges", ranges=7))) == expected
    assert expected


def test_only_heavy_keys_are_cut(spark) -> None:
    table = walk(3, 600, keys=20)
    frame = spark.createDataFrame(table, spark_schema(table.schema))
    query = kleene.sase("PATTERN SEQ(A a, B b) WHERE [k] AND a.x < b.x WITHIN 4")
    expected = rows_of(query.match(table, order_by=["t", "n"]))
    assert rows_of(query.match(frame, order_by=["t", "n"], spark=kleene.SparkOptions(range_size=50))) == expected


def test_auto_cuts_large_inputs_where_there_are_tasks_enough(spark, tmp_path, monkeypatch) -> None:
    table = walk(4, 600)
    path = str(tmp_path / "events")
    spark.createDataFrame(table, spark_schema(table.schema)).write.parquet(path)
    frame = spark.read.parquet(path)
    query = kleene.match_recognize(
        "ORDER BY t, n MEASURES A.n AS a, LAST(B.n) AS b PATTERN (A B+) MAXLENGTH 6 DEFINE B AS B.x > PREV(B.x)"
    )
    assert "ranges     none: with spark.sql.shuffle.partitions = 2 they would cost" in query.explain(frame)
    monkeypatch.setattr(choosing, "LEAST_PARTITIONS", 2)
    assert "ranges     none: the input is small" in query.explain(frame)
    monkeypatch.setattr(choosing, "LEAST_BYTES", 1)
    monkeypatch.setattr(choosing, "RANGE_SIZE", 60)
    assert "ranges     ranges of about 60 events, where a key has more than 120" in query.explain(frame)
    assert rows_of(query.match(frame)) == rows_of(query.match(table))


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ", "DATE", "DOUBLE", "NANOSECONDS", "TINY"])
def test_ranges_by_times_of_all_kinds(kind: str, spark) -> None:
    step = "DAY" if kind == "DATE" else "SECOND"
    text = f"CAST(TIMESTAMP '2024-03-31 00:00:00' + make_dt_interval(0,0,0,id) AS {kind})"
    if kind == "DATE":
        text = "date_add(DATE '2024-01-01', CAST(id AS INT))"
    numbers = {"DOUBLE": "CAST(id AS DOUBLE) / 2", "TINY": "CAST(id AS DOUBLE) * 5e-324"}
    numbers["NANOSECONDS"] = "1700000000000000000 + 97 * (id div 2) + 2 * (id % 2)"
    text = numbers.get(kind, text)
    window = "4" if kind in numbers else f"4 {step}s"
    frame = spark.range(400).selectExpr(f"{text} AS t", "id AS n", "hash(id) % 7 AS x")
    query = kleene.match_recognize(
        f"ORDER BY t, n MEASURES A.n AS a, B.n AS b PATTERN (A C* B) WITHIN {window} DEFINE C AS C.x < 3, B AS B.x > 3"
    )
    expected = rows_of(query.match(frame, spark=kleene.SparkOptions("shuffled")))
    assert rows_of(query.match(frame, spark=kleene.SparkOptions("ranges", ranges=9))) == expected
    assert expected


def test_events_without_an_order_key_are_counted_once(spark) -> None:
    frame = spark.range(40).selectExpr("if(id < 36, CAST(id AS DOUBLE), if(id < 39, double('NaN'), NULL)) AS t")
    query = kleene.match_recognize("ORDER BY t MEASURES PREV(A.t, 5) AS `a.b` PATTERN (A B)")
    assert query.match(frame.where("t < 36"), spark=kleene.SparkOptions("ranges", ranges=5)).count() == 18
    with pytest.raises(Exception, match="4 rows have no order key"):
        query.match(frame, spark=kleene.SparkOptions("ranges", ranges=20)).collect()


def test_query_without_a_bound_is_not_cut(spark) -> None:
    frame = spark.range(10).selectExpr("id AS t")
    query = kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A B+) DEFINE B AS B.t > A.t")
    assert query.match(frame).count() == 1
    with pytest.raises(kleene.UnsupportedError, match="neither MAXLENGTH nor WITHIN bounds"):
        query.match(frame, spark=kleene.SparkOptions("ranges", ranges=2))

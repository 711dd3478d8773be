"""Events that Spark leaves out are of no use to the query, whatever values they have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

import kleene
from flat_options import call_of
from kleene.spark.job import make_job
from kleene.spark.pushdown import spark_condition
from kleene.spark.schema import spark_schema
from kleene.spark.session import kleene_error

NAN, INF = float("nan"), float("inf")
FLOATS = [0.0, -0.0, NAN, INF, -INF, None, 1.0, 0.1, 5e-324, 1e308, -1.0, 9007199254740993.0]
INTEGERS = [0, 1, -1, 2**63 - 1, -(2**63), None, 2**53 + 1, 2**53, 7, 8, 9, 10]
WORDS = ["", " ", "a", "a ", "A", "ä", "a\u0308", "\U0001f600", "\uffff", None, "%", "ab"]
VALUES = pa.table(
    {
        "t": list(range(12)),
        "type": ["A"] * 12,
        "y": pa.array(FLOATS, pa.float64()),
        "f": pa.array(FLOATS, pa.float32()),
        "x": pa.array(INTEGERS, pa.int64()),
        "i": pa.array([None if n is None else n % 100 for n in INTEGERS], pa.int8()),
        "b": pa.array([True, False, None] * 4),
        "s": pa.array(WORDS),
    }
)
TWELVE = ", ".join(map(str, range(12)))
TWELVE_FLOATS = ", ".join(f"{n}.0" for n in range(12))
PREDICATES = f"""a.y = 0.0; a.y = -0.0; a.y != 0.0; a.y < 0.0; a.y <= -0.0; a.y > -1.0; a.y >= 0.0; a.y = a.y
    NOT (a.y = a.y); a.y IN ({TWELVE_FLOATS}); a.y IN (-0.0, 1.0); a.y IN (0.0, NULL); a.y = 0; a.y > 9007199254740992
    a.y = 9007199254740993; a.y BETWEEN -0.0 AND 0.0; NOT (a.y BETWEEN 0 AND 1); NOT (a.y > 0.0); a.y IS NULL
    a.f IN ({TWELVE_FLOATS}); a.f = 0.1; a.f > 0.1; a.f >= 0.1; a.f < 0.1; a.f != 0.1; a.f = -0.0; a.f <= a.y; a.y = a.f
    a.x = 9007199254740993; a.x > 9007199254740992.0; a.x = 9223372036854775807; a.x >= 9223372036854775807; a.x > 1e18
    a.x IN ({TWELVE}); a.x != -1; a.x < -9223372036854775807; a.x = 0.0 OR a.y = -0.0; a.x = a.y; a.x IN (1, NULL)
    NOT (a.x IN (1, NULL)); a.x NOT IN (1, 2); a.x IS NOT NULL AND a.y IS NOT NULL; a.x % 2 = 1; a.x / 2 > 3
    a.i > 300; a.i > -129; a.i = 5.0; a.i IN (7, 1000); a.i != a.x; a.b; NOT a.b; a.b = TRUE; a.b IS NULL OR a.y > 0
    CASE WHEN a.b THEN a.y > 0 ELSE a.y < 0 END; a.s = ''; a.s != 'a'; a.s = 'a '; a.s < 'a'; a.s > 'A'; a.s >= 'ä'
    a.s < '\U0001f600'; a.s > '\uffff'; a.s IN ('ä', ' '); a.s LIKE 'a%'; a.s NOT LIKE '_'; a.s || '' = 'a'
    a.s NOT IN ('a', ''); NOT (a.s = 'a' OR a.b); (a.s = 'a' OR a.x > 0) AND (a.b OR a.y != 1.0); upper(a.s) = 'A'
    coalesce(a.x, 0) = 0; a.x > 0 AND a.x * 2 > 0; 1 < 2; 1 > 2"""
ONE_EVENT = [text.strip() for line in PREDICATES.splitlines() for text in line.split(";")]


def frame_of(spark: Any, table: pa.Table) -> Any:
    return spark.createDataFrame(table, spark_schema(table.schema))


def rows_of(found: Any) -> list[str]:
    table = found if isinstance(found, pa.Table) else found.toArrow()
    return sorted(map(repr, table.to_pylist()))


def outcome(run: Any) -> Any:
    try:
        return rows_of(run())
    except kleene.KleeneError as error:
        return error.message
    except Exception as error:  # Spark's, which holds ours
        own = kleene_error(error)
        if own is None:
            raise
        return own.message


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def lost_events(frame: Any, table: pa.Table, predicates: list[str]) -> list[str]:
    """The predicates for which Spark leaves out an event that matches, all of them judged in one Spark job."""
    expected, judged = {}, []
    for predicate in predicates:
        query = kleene.sase(f"PATTERN SEQ(A a) WHERE {predicate} RETURN a.t AS t")
        with_error = outcome(lambda query=query: query.match(table, order_by="t", engine="reference"))
        if isinstance(with_error, str):
            continue
        expected[predicate] = query.match(table, order_by="t", engine="reference").column("t").to_pylist()
        reads = make_job(call_of(query.definition, order_by="t"), frame).reads
        condition = None
        if reads.useful is not None:
            condition = spark_condition(reads.useful, {column.name: column for column in reads.columns})
        if condition is not None:
            judged.append((predicate, condition))
    columns = [condition.alias(f"p{number}") for number, (_, condition) in enumerate(judged)]
    kept = {row["t"]: row for row in frame.select("t", *columns).collect()}
    assert judged
    return [
        predicate
        for number, (predicate, _) in enumerate(judged)
        if any(kept[t][f"p{number}"] is not True for t in expected[predicate])
    ]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_no_event_of_use_is_left_out(ansi: str, spark) -> None:
    with setting(spark, "spark.sql.ansi.enabled", ansi):
        assert lost_events(frame_of(spark, VALUES), VALUES, ONE_EVENT) == []


TIMES = """a.ts > TIMESTAMP '2024-03-31 02:30:00'; a.ts >= TIMESTAMP '2024-03-31 03:00:00'
    a.ts = TIMESTAMP '2024-03-31 01:30:00'; NOT (a.ts < TIMESTAMP '2024-03-31 03:30:00')
    a.ts IN (TIMESTAMP '2024-03-31 01:00:00', TIMESTAMP '2024-03-31 03:00:00'); a.ts > TIMESTAMP '0001-01-01 00:00:00'
    a.nt > TIMESTAMP '2024-03-31 02:30:00'; a.nt <= TIMESTAMP '2024-03-31 02:00:00.000004'; a.d > DATE '2024-03-30'
    a.nt > TIMESTAMP '1400-01-01 00:00:00'; a.ts < TIMESTAMP '9999-12-31 23:00:00'; a.d > DATE '0001-01-01'
    a.d IN (DATE '2024-03-31', DATE '1582-10-10'); a.d < DATE '9999-12-31'; a.e > 0.25; a.e != 0.25; a.e IN (0.25, 1)"""


def test_no_event_of_use_is_left_out_by_times(spark) -> None:
    """Around the hour that is left out in spring."""
    zone = "Europe/Berlin"
    with setting(spark, "spark.sql.session.timeZone", zone):
        frame = spark.sql(
            """SELECT id AS t, 'A' AS type, timestamp_micros(1711845000000000 + (id - 6) * 1800000000) AS ts,
            TIMESTAMP_NTZ '2024-03-31 00:00:00' + make_dt_interval(0, 0, 0, id * 1800.000001) AS nt,
            date_add(DATE '2024-03-31', CAST(id - 6 AS INT)) AS d, CAST((id - 6) / 4 AS DECIMAL(10, 2)) AS e
            FROM range(14)"""
        )
        table = frame.toArrow()
        zoned = table.column("ts").cast(pa.timestamp("us", zone))
        table = table.set_column(table.column_names.index("ts"), "ts", zoned)
        predicates = [text.strip() for line in TIMES.splitlines() for text in line.split(";")]
        assert lost_events(frame, table, predicates) == []


A_AND_B = pa.table(
    {
        "type": ["A", "A", "B", "Z", "A", "B", "A", "B"],
        "t": [1, 2, 3, 4, 5, 6, 7, 8],
        "x": pa.array([1, 2**62, 3, 2**62, None, -4, 0, 2]),
        "y": [1.0, NAN, -0.0, INF, 0.0, 0.0, NAN, 2.5],
        "k": pa.array([1.0, 0.0, -0.0, NAN, None, 1.0, -0.0, 0.0]),
        "s": ["1", "x", "2", "3", "4", "", "7", "ß"],
    }
)
QUERIES = {
    "key": "PATTERN SEQ(A a, B b) WHERE [k] AND a.y != 7.0",
    "implied key": "PATTERN SEQ(A a, B b) WHERE a.k = b.k AND (b.y >= 0.0 OR a.x IS NULL)",
    "negation": "PATTERN SEQ(!(B m), A a, !(A n), B b) WHERE n.y = 0.0 AND m.x > 2 AND b.x < 3 WITHIN 4",
    "kleene": "PATTERN SEQ(A+ c[], A a, B b) WHERE skip_till_any_match(c[], a, b) { c[1].t > 1 AND c[i].y = 0.0 }",
    "next": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { a.t > 1 AND b.x < 3 }",
    "events": "PATTERN SEQ(A a, B b) WHERE a.x > 0 WITHIN 3 events",
    "contiguous": "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { a.y != 1.0 }",
    "no error": "PATTERN SEQ(A a, B b) WHERE a.x < 100 AND a.x * 4 > 0",
}


def test_answers_with_pushdown_without_and_in_process_are_the_same(spark) -> None:
    frame, expected, parts = frame_of(spark, A_AND_B), [], []
    for name, text in QUERIES.items():
        query = kleene.sase(f"{text} RETURN '{name}' AS query, a.t AS a, b.t AS b")
        own = query.match(A_AND_B, order_by="t", engine="reference")
        assert own.num_rows
        expected += 2 * rows_of(own)
        parts += [
            query.match(frame, order_by="t", spark=kleene.SparkOptions(pushdown=pushdown)) for pushdown in (True, False)
        ]
    assert rows_of(reduce(DataFrame.union, parts)) == sorted(expected)


def test_errors_are_not_left_out(spark) -> None:
    query = kleene.sase("PATTERN SEQ(A a, !(Z n), B b) WHERE n.x * 4 > 0 AND n.t = 100 AND a.t < 2")
    expected = outcome(lambda: query.match(A_AND_B, order_by="t", engine="reference"))
    assert "overflow" in expected
    assert outcome(lambda: query.match(frame_of(spark, A_AND_B), order_by="t")) == expected


def test_attributes_that_a_type_lacks(spark) -> None:
    tables = {
        "A": pa.table({"t": [1, 2, 3], "x": [1, 5, None], "k": ["p", "q", "p"]}),
        "B": pa.table({"t": [4, 5], "k": ["p", "q"]}),
        "C": pa.table({"t": [6, 7], "x": [9, 0], "z": [1.5, NAN]}),
    }
    frames = {name: frame_of(spark, table) for name, table in tables.items()}
    query = kleene.sase(
        "PATTERN SEQ(ANY(A, B, C) a, !(ANY(A, B) n), ANY(B, C) c) WHERE NOT (a.x > 2 AND a.k = 'q') AND n.x = 5 "
        "AND (c.z != 1.0 OR c.x = 5) RETURN a.t AS a, c.t AS c"
    )
    expected = rows_of(query.match(tables, order_by="t", engine="reference"))
    assert expected
    assert rows_of(query.match(frames, order_by="t")) == expected


def test_collated_strings(spark) -> None:
    words = ["a", "A", "b", "B", "a ", "ä", None]
    table = pa.table({"type": ["A"] * 7, "t": list(range(7)), "s": words})
    frame = frame_of(spark, table).selectExpr("type", "t", "s COLLATE UTF8_LCASE AS s")
    assert lost_events(frame, table, ["a.s = 'a'", "a.s != 'a'", "a.s < 'a'", "a.s > 'A'", "a.t >= 0"]) == []


def test_padded_strings(spark, tmp_path) -> None:
    spark.sql(f"CREATE TABLE padded (type STRING, t BIGINT, s CHAR(4)) USING parquet LOCATION '{tmp_path / 'padded'}'")
    try:
        spark.sql("INSERT INTO padded VALUES ('A', 1, 'a'), ('A', 2, 'abc')")
        table = pa.table({"type": ["A", "A"], "t": [1, 2], "s": ["a   ", "abc "]})
        assert lost_events(spark.table("padded"), table, ["a.s != 'a'", "a.s = 'a   '", "a.t >= 0"]) == []
    finally:
        spark.sql("DROP TABLE padded")


def test_negative_zero_in_files(spark, tmp_path) -> None:
    table = pa.table({"type": ["A"], "t": [1], "y": [0.0]})
    frame_of(spark, table).write.orc(str(tmp_path / "zero"))
    query = kleene.sase("PATTERN SEQ(A a) WHERE a.y = -0.0 RETURN a.t AS t")
    assert rows_of(query.match(spark.read.orc(str(tmp_path / "zero")), order_by="t")) == ["{'t': 1}"]


def test_ranges_of_collated_keys(spark) -> None:
    table = pa.table({"t": [1, 2, 3, 4], "k": ["a", "A", "a", "A"]})
    frame = frame_of(spark, table).selectExpr("t", "k COLLATE UTF8_LCASE AS k")
    query = kleene.match_recognize("PARTITION BY k ORDER BY t MEASURES A.t AS a, B.t AS b PATTERN (A B)")
    assert rows_of(query.match(frame, spark=kleene.SparkOptions("ranges", ranges=2))) == rows_of(query.match(table))


# Open bugs.


def test_wrong_claim_of_presorted_with_a_filter_on_the_result(spark) -> None:
    table = pa.table({"type": ["A", "B"] * 20, "t": list(range(40)), "k": ["p"] * 40})
    split = frame_of(spark, table).repartition(2, "t").sortWithinPartitions("k", "t")
    found = kleene.sase("PATTERN SEQ(A a, B b) WHERE [k]").match(
        split, order_by="t", spark=kleene.SparkOptions("presorted")
    )
    with pytest.raises(Exception, match="several Spark partitions"):
        found.where("k = 'p'").collect()

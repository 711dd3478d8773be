"""Parameters on Spark: in queries, in clauses of SQL texts, and in table functions."""

from __future__ import annotations

import pytest

import kleene

ROWS = [("A", 1, 1, "u"), ("B", 2, 5, "v"), ("A", 3, 7, "u"), ("B", 4, 9, "w")]
TEXT = """SELECT *, :more AS more FROM {view} MATCH_RECOGNIZE (
    ORDER BY t MEASURES A.t AS a PATTERN (A?) DEFINE A AS A.x > :least AND s = :s) WHERE a > :more"""


@pytest.fixture
def frame(either_spark):
    return either_spark.createDataFrame(ROWS, "type string, t int, x int, s string")


def test_arguments_of_sql_are_values_inside_of_clauses_too(either_spark, frame) -> None:
    frame.createOrReplaceTempView("parameter_rows")
    text = TEXT.format(view="parameter_rows")
    args = {"least": 2, "s": "u", "more": 1}
    assert [row.asDict() for row in kleene.sql(either_spark, text, args).collect()] == [{"a": 3, "more": 1}]
    with pytest.raises(kleene.AnalysisError, match=r"':least' has no value"):
        kleene.sql(either_spark, text, {"s": "u", "more": 1})
    with pytest.raises(kleene.AnalysisError, match="args gives values without names"):
        kleene.sql(either_spark, text, [1])
    with pytest.raises(kleene.QuerySyntaxError, match="written :name"):
        kleene.sql(either_spark, text.replace(":least", "?"), args)


def test_a_pattern_in_a_window_takes_values_too(either_spark, frame) -> None:
    frame.createOrReplaceTempView("parameter_window_rows")
    text = """SELECT t, last(x) OVER w + :more AS top FROM parameter_window_rows WINDOW w AS (
        ORDER BY t ROWS BETWEEN CURRENT ROW AND :n FOLLOWING PATTERN (A B+) DEFINE B AS B.x > :least)"""
    found = kleene.sql(either_spark, text, {"n": 1, "least": 6, "more": 10}).collect()
    assert sorted((row.t, row.top) for row in found) == [(1, None), (2, 17), (3, None), (4, None)]


def test_a_table_function_has_the_values(frame) -> None:
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE a.x > :least WITHIN :size RETURN a.t AS a, b.t AS b")
    values = {"least": 2, "size": 10}
    assert query.match(frame, order_by="t", params=values).collect() == [(3, 4)]
    assert query.table_function(frame.schema, order_by="t", params=values)
    with pytest.raises(kleene.AnalysisError, match="':least' has no value"):
        query.table_function(frame.schema, order_by="t")


def test_whole_events_are_returned(frame) -> None:
    found = kleene.sase("EVENT SEQ(A a, B b) WHERE a.x > :x RETURN a.*, b").match(frame, order_by="t", params={"x": 2})
    [row] = found.collect()
    assert row.asDict(recursive=True) == {
        **dict(zip(("type", "t", "x", "s"), ROWS[2], strict=True)),
        "b": dict(zip(("type", "t", "x", "s"), ROWS[3], strict=True)),
    }

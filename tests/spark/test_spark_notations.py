"""What Spark's own expressions have and clauses take on Spark: lambdas, strings in double quotes, nested values."""

from __future__ import annotations

import pytest

import kleene

ROWS = [(1, 20, [1, 2], "x1"), (2, 24, [3], "y"), (3, 27, [5, 6], "z"), (4, 23, [], "y")]


@pytest.fixture
def spark(either_spark):
    return either_spark


@pytest.fixture
def events(spark):
    return spark.createDataFrame(ROWS, "t int, c int, a array<int>, s string")


def found(events, measures: str, define: str = "A AS TRUE", pattern: str = "A+") -> list[tuple[object, ...]]:
    clause = f"ORDER BY t MEASURES {measures} PATTERN ({pattern}) DEFINE {define}"
    return [tuple(row) for row in kleene.match_recognize(clause).match(events).collect()]


def test_lambdas_over_values_of_the_match(events) -> None:
    assert found(
        events,
        """exists(array_agg(c), x -> x > 26) AS e, transform(array_agg(c), x -> x + FIRST(c)) AS p,
        filter(array_agg(c), (x, i) -> i > 0) AS f, aggregate(array_agg(c), 0L, (sum, x) -> sum + x) AS g,
        zip_with(array_agg(c), array_agg(t), (x, y) -> x % y) AS z, forall(array_agg(s), x -> x RLIKE '^[xyz]') AS a,
        array_sort(array_agg(c), (x, y) -> CASE WHEN x > y THEN -1 WHEN x < y THEN 1 ELSE 0 END) AS o,
        transform(array_agg(named_struct('k', s)), x -> upper(x.k)) AS u""".replace("0L", "CAST(0 AS bigint)"),
    ) == [
        (True, [40, 44, 47, 43], [24, 27, 23], 94, [0, 0, 0, 3], True, [27, 24, 23, 20], ["X1", "Y", "Z", "Y"]),
    ]


def test_lambdas_in_conditions_are_about_one_row(events) -> None:
    assert found(events, "count(*) AS n", "A AS exists(a, x -> x > A.c - 22)") == [(3,)]
    assert found(events, "array_agg(t) AS t", "A AS size(filter(a, x -> x BETWEEN 2 AND 5)) > 0") == [([1, 2, 3],)]


def test_lambda_where_none_can_stand(events) -> None:
    with pytest.raises(kleene.AnalysisError, match="no function 'hex' takes a lambda"):
        found(events, "hex(x -> x) AS h")
    with pytest.raises(kleene.AnalysisError, match="a lambda can only be an argument of a function of Spark's own"):
        found(events, "upper(x -> x) AS h")
    with pytest.raises(kleene.QuerySyntaxError, match="one to 3 parameters, each of another name"):
        found(events, "exists(a, (x, X) -> x) AS h")


def test_text_in_double_quotes_is_a_name_where_there_is_one_and_else_a_string(events) -> None:
    define = """A AS s = "y" OR "s" = 'x1' OR "A"."c" = 27 """
    assert found(events, 'count("A"."s") AS "n", "hello ""you""" AS h', define) == [(4, 'hello "you"')]


def test_text_in_double_quotes_is_a_name_if_the_session_says_so(spark, events) -> None:
    spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        with pytest.raises(kleene.AnalysisError, match="no column 'y'"):
            found(events, "count(*) AS n", 'A AS s = "y"')
    finally:
        spark.conf.unset("spark.sql.ansi.doubleQuotedIdentifiers")
        spark.conf.unset("spark.sql.ansi.enabled")


def test_notations_in_sql(spark, events) -> None:
    events.createOrReplaceTempView("notations")
    result = kleene.sql(
        spark,
        r"""SELECT n + 1 AS n, v.c AS c, m['k'] AS k FROM notations MATCH_RECOGNIZE (
            ORDER BY t
            MEASURES -count(*)::int AS n, struct(LAST(A.c), t) AS v, map('k', LAST(a)[0]) AS m
            PATTERN (A+) DEFINE A AS A.s NOT RLIKE '^x\d' AND A.c::string LIKE '2%' AND size(a) > 0)""",
    )
    assert [tuple(row) for row in result.collect()] == [(-1, 27, 5)]


def test_nested_columns_of_spark_are_values(spark) -> None:
    frame = spark.sql(
        """SELECT * FROM VALUES (1, named_struct('p', 20, 'q', array('a')), map('k', 1.5D)),
           (2, named_struct('p', 24, 'q', NULL), map('k', 2.5D)), (3, NULL, NULL) AS v (t, r, m)"""
    )
    measures = "array_agg(r.p) AS p, LAST(r, 1).q AS q, FIRST(r) AS r, LAST(m, 1) AS m, array_agg(m['k']) AS k"
    rows = found(frame, measures, "B AS B.r = named_struct('p', 24, 'q', NULL) OR B.r IS NULL", "A B+")
    assert [(p, q, tuple(r), m, k) for p, q, r, m, k in rows] == [
        ([20, 24, None], None, (20, ["a"]), {"k": 2.5}, [1.5, 2.5, None])
    ]


def test_wide_decimals_of_spark(spark) -> None:
    frame = spark.sql("SELECT id AS t, CAST(id AS decimal(38, 2)) * 1 AS d FROM range(1, 4)")
    query = kleene.match_recognize(
        """ORDER BY t MEASURES sum(CAST(t AS decimal(30, 10))) AS a, avg(CAST(t AS decimal(30, 10))) AS b,
        CAST(LAST(d) AS decimal(38, 2)) AS c PATTERN (A+) DEFINE A AS avg(CAST(t AS decimal(30, 10))) <= 2"""
    )
    result = query.match(frame)
    assert [field.dataType.simpleString() for field in result.schema] == [
        "decimal(38,10)",
        "decimal(34,14)",
        "decimal(38,2)",
    ]
    assert [tuple(map(str, row)) for row in result.collect()] == [("6.0000000000", "2.00000000000000", "3.00")]

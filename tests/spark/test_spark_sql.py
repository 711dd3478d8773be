"""MATCH_RECOGNIZE inside Spark SQL: every place where a table may stand, and everything around it left to Spark."""

from __future__ import annotations

from decimal import Decimal

import pytest

import kleene
from kleene.spark.session import kleene_error

FALLS = """MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY t
    MEASURES A.price AS top, LAST(B.price) AS bottom, count(*) AS n
    PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)
)"""


@pytest.fixture(scope="module", autouse=True)
def trades(spark):
    rows = [("x", 1, 10), ("x", 2, 8), ("x", 3, 7), ("x", 4, 9), ("y", 1, 5), ("y", 2, 4), ("y", 3, 6), ("y", 4, 1)]
    spark.createDataFrame(rows, "symbol STRING, t BIGINT, price BIGINT").createOrReplaceTempView("trades")
    yield
    spark.catalog.dropTempView("trades")


def rows(frame) -> list[tuple]:
    return sorted(tuple(row) for row in frame.collect())


ALL_FALLS = [("x", 10, 7, 3), ("y", 5, 4, 2), ("y", 6, 1, 2)]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * FROM trades {FALLS}",
        f"SELECT m.symbol, m.top, m.bottom, m.n FROM trades {FALLS} AS m",
        f"SELECT * FROM trades t {FALLS} m WHERE m.n > 0",
        f"SELECT * FROM (SELECT * FROM trades) {FALLS}",
        f"SELECT * FROM (SELECT * FROM trades WHERE price > 0) AS q {FALLS}",
        f"WITH c AS (SELECT * FROM trades) SELECT * FROM c {FALLS}",
        f"WITH b AS (SELECT * FROM trades), c AS (SELECT * FROM b) SELECT * FROM c {FALLS}",
        f"WITH m AS (SELECT * FROM trades {FALLS}) SELECT * FROM m",
        f"WITH b AS (SELECT * FROM trades), m AS (SELECT * FROM b {FALLS}) SELECT * FROM m",
        f"SELECT * FROM (WITH c AS (TABLE trades) SELECT * FROM c {FALLS})",
        f"SELECT * FROM (SELECT * FROM trades {FALLS}) WHERE top > bottom",
        f"SELECT * FROM trades {FALLS} ORDER BY symbol LIMIT 10 -- MATCH_RECOGNIZE ( in a comment",
        f"SELECT symbol, top, bottom, n FROM trades {FALLS}, (SELECT 'MATCH_RECOGNIZE (' AS s, map('k', 1) AS m)",
    ],
)
def test_clause_behind_any_table_factor(text: str, spark) -> None:
    assert rows(kleene.sql(spark, text)) == ALL_FALLS


def test_inline_values(spark) -> None:
    text = """SELECT * FROM VALUES (1, 10), (2, 8), (3, 9) AS v(t, price) MATCH_RECOGNIZE (
                ORDER BY t MEASURES A.price AS top, B.price AS next
                PATTERN (A B) DEFINE B AS B.price < A.price)"""
    assert rows(kleene.sql(spark, text)) == [(10, 8)]


def test_table_function(spark) -> None:
    text = """SELECT * FROM range(5) MATCH_RECOGNIZE (
                ORDER BY id MEASURES FIRST(A.id) AS a, LAST(A.id) AS b PATTERN (A{2}) )"""
    assert rows(kleene.sql(spark, text)) == [(0, 1), (2, 3)]


def test_two_clauses_joined_and_aggregated(spark) -> None:
    rises = FALLS.replace("<", ">").replace("top", "low").replace("bottom", "high")
    text = f"""SELECT f.symbol, count(*) AS pairs, max(f.top - f.bottom) AS deepest
               FROM trades {FALLS} f JOIN trades {rises} r ON f.symbol = r.symbol
               GROUP BY f.symbol"""
    assert rows(kleene.sql(spark, text)) == [("x", 1, 3), ("y", 2, 5)]


def test_clause_over_the_result_of_a_clause(spark) -> None:
    text = f"""SELECT * FROM trades {FALLS} AS m MATCH_RECOGNIZE (
                 PARTITION BY symbol ORDER BY top MEASURES count(*) AS falls PATTERN (F+))"""
    assert rows(kleene.sql(spark, text)) == [("x", 1), ("y", 2)]


def test_clause_inside_the_subquery_of_a_clause(spark) -> None:
    text = f"""SELECT * FROM (SELECT symbol, top FROM trades {FALLS}) MATCH_RECOGNIZE (
                 PARTITION BY symbol ORDER BY top MEASURES LAST(F.top) AS highest PATTERN (F+))"""
    assert rows(kleene.sql(spark, text)) == [("x", 10), ("y", 6)]


def test_clause_in_an_in_subquery_and_in_a_comma_join(spark) -> None:
    text = f"SELECT DISTINCT symbol FROM trades WHERE symbol IN (SELECT symbol FROM trades {FALLS} WHERE n = 3)"
    assert rows(kleene.sql(spark, text)) == [("x",)]
    text = f"SELECT a.id, m.symbol FROM range(1) a, trades {FALLS} m WHERE m.n = 3"
    assert rows(kleene.sql(spark, text)) == [(0, "x")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A VALUES table before the factor is a table of its own.
        (
            f"SELECT v.y, m.symbol FROM VALUES (10), (20) AS v(y), trades {FALLS} m WHERE m.n = 3",
            [(10, "x"), (20, "x")],
        ),
        (f"SELECT m.symbol FROM range(1) r JOIN trades {FALLS} m ON m.n = 3 + r.id", [("x",)]),
        (f"SELECT symbol FROM (range(1) r JOIN trades {FALLS} m ON m.n = 3)", [("x",)]),
        (f"SELECT symbol FROM trades TABLESAMPLE (100 PERCENT) {FALLS} WHERE n = 3", [("x",)]),
        (f"SELECT s FROM trades AS q(symbol, t, price) {FALLS} AS m(s, top, bottom, n) WHERE n = 3", [("x",)]),
        (f"SELECT (SELECT max(n) FROM trades {FALLS}) AS m", [(3,)]),
        (f"SELECT 1 FROM trades WHERE false UNION ALL SELECT n FROM trades {FALLS} WHERE n = 3", [(3,)]),
        (f"WITH c AS (SELECT 1) SELECT * FROM (WITH c AS (TABLE trades) SELECT n FROM c {FALLS} WHERE n = 3)", [(3,)]),
        (f"WITH c(symbol, t, price) AS (SELECT * FROM trades) SELECT n FROM c {FALLS} WHERE n = 3", [(3,)]),
        (f"SELECT n /* a /* nested */ FROM x MATCH_RECOGNIZE ( */ FROM trades {FALLS} WHERE n = 3", [(3,)]),
        (f"SELECT n, r'a\\b' AS s FROM trades {FALLS} WHERE n = 3", [(3, "a\\b")]),
        (f"FROM trades {FALLS} SELECT n WHERE n = 3", [(3,)]),
    ],
)
def test_clause_is_cut_out_of_any_query(text: str, expected: list[tuple], spark) -> None:
    assert rows(kleene.sql(spark, text)) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM trades WHERE t > 0 {C}", "after WHERE, not after a table"),
        ("SELECT * FROM trades ORDER BY t LIMIT 1 {C}", "after ORDER, not after a table"),
        ("SELECT * FROM trades a JOIN trades b ON a.t = b.t {C}", "after ON, not after a table"),
        ("CREATE TEMP VIEW v AS SELECT * FROM trades {C}", "a view cannot contain MATCH_RECOGNIZE"),
    ],
)
def test_clause_behind_something_else_is_refused(text: str, words: str, spark) -> None:
    with pytest.raises(kleene.QuerySyntaxError, match=words):
        kleene.sql(spark, text.replace("{C}", FALLS))


def test_query_without_a_clause_is_spark_sql(spark) -> None:
    assert rows(kleene.sql(spark, "SELECT count(*) FROM trades")) == [(8,)]


def test_no_views_pile_up(spark) -> None:
    before = spark.catalog.listTables()
    frame = kleene.sql(spark, f"SELECT * FROM trades {FALLS}")
    kleene.sql(spark, f"SELECT * FROM trades {FALLS}").collect()
    assert spark.catalog.listTables() == before
    assert rows(frame) == ALL_FALLS


def test_error_has_its_position_in_the_whole_text(spark) -> None:
    text = "SELECT *\nFROM trades MATCH_RECOGNIZE (\n  ORDER BY t\n  PATTERN (A B)\n  DEFINE B AS B.prize > 1)"
    with pytest.raises(kleene.AnalysisError) as caught:
        kleene.sql(spark, text)
    assert (caught.value.line, caught.value.column) == (5, 17)
    assert "DEFINE B AS B.prize > 1)" in str(caught.value)
    assert "Did you mean 'price'?" in str(caught.value)


def test_error_in_a_second_clause_has_its_position_too(spark) -> None:
    second = "MATCH_RECOGNIZE (ORDER BY t PATTERN (A) DEFINE C AS x > 1)"
    text = f"SELECT * FROM trades {FALLS} AS m JOIN trades {second} ON 1 = 1"
    with pytest.raises(kleene.AnalysisError) as caught:
        kleene.sql(spark, text)
    line = text.splitlines()[-1]
    assert (caught.value.line, caught.value.column) == (5, line.index("C AS x") + 1)


def test_clause_behind_nothing_and_unclosed_clause(spark) -> None:
    with pytest.raises(kleene.QuerySyntaxError, match="after no table"):
        kleene.sql(spark, "SELECT * FROM MATCH_RECOGNIZE (ORDER BY t PATTERN (A))")
    with pytest.raises(kleene.QuerySyntaxError, match="never closed"):
        kleene.sql(spark, "SELECT * FROM trades MATCH_RECOGNIZE (ORDER BY t PATTERN (A)")


def test_errors_outside_the_clause_are_sparks(spark) -> None:
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        kleene.sql(spark, f"SELECT * FROM nowhere {FALLS}")
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        kleene.sql(spark, f"SELECT nothing FROM trades {FALLS}").collect()


def test_functions_of_spark_about_one_row(spark) -> None:
    text = """SELECT * FROM trades MATCH_RECOGNIZE (
                PARTITION BY symbol ORDER BY t
                MEASURES regexp_replace(A.symbol, 'x', 'it''s \\\\o/') AS name, format_number(B.price, 2) AS shown
                PATTERN (A B) DEFINE A AS bit_count(A.price) = 2 AND regexp_like(A.symbol, '^x'), B AS true)"""
    assert rows(kleene.sql(spark, text)) == [("x", "it's \\o/", "8.00")]


def test_functions_of_spark_over_values_of_the_match(spark) -> None:
    text = """SELECT symbol, joined, n FROM trades MATCH_RECOGNIZE (
                PARTITION BY symbol ORDER BY t
                MEASURES concat_ws('-', A.symbol, CAST(LAST(B.price) AS string)) AS joined, count(*) AS n,
                         1 + hash(FIRST(A.price), count(B.*)) AS h
                PATTERN (A B+) DEFINE B AS B.price < PREV(B.price))"""
    assert rows(kleene.sql(spark, text)) == [("x", "x-7", 3), ("y", "y-1", 2), ("y", "y-4", 2)]


def test_aggregates_of_spark_in_measures(spark) -> None:
    text = """SELECT * FROM trades MATCH_RECOGNIZE (
                PARTITION BY symbol ORDER BY t
                MEASURES median(A.price) AS middle, 2 * stddev_pop(A.price) AS spread, max_by(A.t, A.price) AS best,
                         percentile(B.price, 0.5) AS nothing
                PATTERN (A+ B?) DEFINE B AS false)"""
    assert rows(kleene.sql(spark, text)) == [
        ("x", 8.5, pytest.approx(2.2360679775), 1, None),
        ("y", 4.5, pytest.approx(3.7416573868), 3, None),
    ]


def test_aggregates_of_spark_alone_running_final_distinct_and_filtered(spark) -> None:
    text = """SELECT * FROM trades MATCH_RECOGNIZE (
                ORDER BY symbol, t
                MEASURES try_sum(t) AS by_default, RUNNING try_sum(t) AS running, FINAL try_sum(t) AS final,
                         try_sum(DISTINCT A.t) FILTER (WHERE A.t <> 3) AS some, kurtosis(B.price) AS nothing,
                         FINAL try_sum(5) FILTER (WHERE t > 9) AS none
                ALL ROWS PER MATCH PATTERN (A{8} B?) DEFINE B AS false)"""
    found = [row[2:8] for row in kleene.sql(spark, text).orderBy("symbol", "t").collect()]
    running = [1, 3, 6, 10, 11, 13, 16, 20]
    some = [1, 3, 3, 7, 7, 7, 7, 7]
    assert found == [(one, one, 20, other, None, None) for one, other in zip(running, some, strict=True)]


def test_own_aggregates_are_the_same_as_those_of_spark(spark) -> None:
    frame = spark.sql("SELECT id AS t, id * id % 7 / 3.0D AS x, id % 3 > 0 AS b FROM range(1, 12)")
    aggregates = {
        **dict.fromkeys(("stddev", "stddev_pop", "var_samp", "var_pop", "median", "any_value", "sum", "avg"), "x"),
        **dict.fromkeys(("bool_and", "bool_or", "count_if"), "b"),
        **dict.fromkeys(("max_by", "min_by"), "t, x"),
    }
    calls = [f"{name}({arguments}) AS {name}" for name, arguments in aggregates.items()]
    found = kleene.match_recognize(f"ORDER BY t MEASURES {', '.join(calls)} PATTERN (A+)").match(frame)
    expected = frame.coalesce(1).sortWithinPartitions("t").selectExpr(*calls)
    assert found.dtypes == expected.dtypes
    own, of_spark = found.collect()[0].asDict(), expected.collect()[0].asDict()
    ties = {"max_by", "min_by"}
    assert {name: own[name] for name in own if name not in ties} == pytest.approx(
        {name: of_spark[name] for name in of_spark if name not in ties}
    )


def test_aggregate_of_spark_alone_in_define_says_which_there_are(spark) -> None:
    text = "SELECT * FROM trades MATCH_RECOGNIZE (ORDER BY t PATTERN (A+) DEFINE A AS try_sum(t) < 9)"
    with pytest.raises(kleene.AnalysisError, match=r"aggregate of Spark's own.*MEASURES") as caught:
        kleene.sql(spark, text)
    assert "bool_and" in str(caught.value)
    assert caught.value.column == text.index("try_sum") + 1


def test_function_of_spark_about_a_label_inside_an_aggregate_is_an_error(spark) -> None:
    text = """SELECT * FROM trades MATCH_RECOGNIZE (
                ORDER BY t MEASURES array_agg(soundex(CLASSIFIER())) AS x PATTERN (A+))"""
    with pytest.raises(kleene.AnalysisError, match="can be about columns, and not about CLASSIFIER"):
        kleene.sql(spark, text)


def test_function_unknown_to_spark_too(spark) -> None:
    with pytest.raises(Exception, match="UNRESOLVED_ROUTINE"):
        kleene.sql(spark, "SELECT * FROM trades MATCH_RECOGNIZE (ORDER BY t PATTERN (A) DEFINE A AS nope(A.t) = 1)")


def test_keys_that_are_expressions_of_spark(spark) -> None:
    text = """SELECT * FROM trades MATCH_RECOGNIZE (
                PARTITION BY ascii(symbol) % 2 ORDER BY pow(t, 2) DESC, hex(symbol)
                MEASURES count(*) AS n, FIRST(A.t) AS first PATTERN (A+))"""
    assert rows(kleene.sql(spark, text)) == [(0, 4, 4), (1, 4, 4)]


def test_identifiers_with_quotes_spaces_and_reserved_words(spark) -> None:
    frame = spark.createDataFrame([("k", 1, 5), ("k", 2, 6)], ["the key", "order", "Select"])
    frame.createOrReplaceTempView("select")
    text = """SELECT `the key`, `a "b" c` FROM `select` MATCH_RECOGNIZE (
                PARTITION BY "the key" ORDER BY `order`
                MEASURES LAST("my row"."Select") AS `a "b" c`
                PATTERN ("my row"+) DEFINE "my row" AS "my row".`Select` > 4)"""
    assert rows(kleene.sql(spark, text)) == [("k", 6)]
    spark.catalog.dropTempView("select")


def test_types_of_partition_order_and_measure_columns(spark) -> None:
    text = """SELECT * FROM (SELECT * FROM VALUES
                  (DATE '2024-01-01', TIMESTAMP '2024-01-01 10:00:00', CAST(1.50 AS DECIMAL(5, 2)), 'a'),
                  (DATE '2024-01-01', TIMESTAMP '2024-01-01 10:00:01', CAST(2.25 AS DECIMAL(5, 2)), 'b')
                AS v(day, ts, amount, s))
              MATCH_RECOGNIZE (PARTITION BY day ORDER BY ts
                MEASURES LAST(A.amount) AS amount, LAST(A.s) AS s, LAST(A.ts) - FIRST(A.ts) AS took,
                         sum(A.amount) AS total
                PATTERN (A+) WITHIN 2 seconds)"""
    found = kleene.sql(spark, text)
    assert [field.dataType.simpleString() for field in found.schema.fields[:3]] == ["date", "decimal(5,2)", "string"]
    row = found.collect()[0]
    assert (str(row["amount"]), row["s"], row["took"].total_seconds(), str(row["total"])) == ("2.25", "b", 1.0, "3.75")


def test_empty_input_one_row_and_a_partition_of_nulls(spark) -> None:
    clause = "MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY t MEASURES count(*) AS n PATTERN (A+))"
    assert rows(kleene.sql(spark, f"SELECT * FROM (SELECT * FROM trades WHERE false) {clause}")) == []
    assert rows(kleene.sql(spark, f"SELECT * FROM (SELECT * FROM trades LIMIT 1) {clause}")) == [("x", 1)]
    nulls = f"SELECT n FROM (SELECT CAST(NULL AS STRING) AS symbol, t, price FROM trades WHERE symbol = 'x') {clause}"
    assert rows(kleene.sql(spark, nulls)) == [(4,)]


def test_all_rows_per_match_keeps_every_column(spark) -> None:
    text = """SELECT * FROM trades MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY t
                MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH PATTERN (A B+) DEFINE B AS B.price < PREV(B.price))"""
    found = kleene.sql(spark, text)
    assert found.columns == ["symbol", "t", "c", "price"]
    assert len(rows(found)) == 7


HOSTILE_KEYS = ["1 / x", "f > 1", "CAST(f AS integer)", "CAST(f AS float)", "CAST(f * 1e10 AS string)", "x % 2 = 0"]


@pytest.mark.parametrize("key", HOSTILE_KEYS)
def test_key_that_is_an_expression_means_the_same_on_spark_and_in_process(key: str, spark) -> None:
    # NaN is no number to convert, which is an error in both.
    condition = "f IS NOT NULL" if "CAST" not in key else "NOT isnan(f)"
    values = "VALUES (1, 1, 2.5D), (2, 2, CAST('NaN' AS DOUBLE)), (3, 0, 0.5D), (4, 0, 5e9D) AS v(t, x, f)"
    frame = spark.sql(f"SELECT * FROM {values} WHERE {condition}")
    query = kleene.match_recognize(f"PARTITION BY {key} ORDER BY t MEASURES array_agg(t) AS ts PATTERN (A+)")
    found, expected = query.match(frame).toArrow(), query.match(frame.toArrow())
    assert found.column_names == expected.column_names
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_comparison_with_nan_is_unknown_inside_a_function_of_spark(spark) -> None:
    frame = spark.sql("SELECT * FROM VALUES (1, 2.5D), (2, CAST('NaN' AS DOUBLE)) AS v(t, f)")
    query = kleene.match_recognize("ORDER BY t MEASURES A.t AS t PATTERN (A) DEFINE A AS if(A.f > 1, 1, 0) = 1")
    assert rows(query.match(frame)) == [(1,)]


EXPRESSIONS = {
    "arithmetic": "x + 2 * x - x % 2 - (-x)",
    "division": "x / 4",
    "division_by_zero": "x / (x - x)",
    "rest_of_division_by_zero": "x % (x - x)",
    "comparison": "x >= 2 AND NOT (x = 3) OR s IS NULL",
    "nan": "f > 1 OR f = f",
    "nan_between": "f BETWEEN 1 AND 3",
    "nan_in": "f IN (1, 2.5)",
    "nan_not_in": "f NOT IN (1, 2)",
    "in": "s IN ('a', 'b_c')",
    "in_with_null": "s IN ('b_c', NULL)",
    "like": r"s LIKE 'b\_%' OR s LIKE '_'",
    "not_like": r"s NOT LIKE '%\\%'",
    "case": "CASE WHEN x > 2 THEN 'large' WHEN x = 2 THEN s ELSE '' END",
    "case_of": "CASE x WHEN 1 THEN 10 WHEN 2 THEN 20 END",
    "concat": "s || '-' || s",
    "functions": "upper(s) || lower('ABC') || CAST(length(s) AS string)",
    "numbers": "abs(-1.5) + least(x, 2) + 1e3 + 0.25",
    "cast": "CAST(CAST(x AS string) AS float)",
    "decimal": "CAST(x AS decimal(10, 2)) + 0.25",
    "boolean": "CAST('true' AS boolean)",
    "date": "DATE '2024-02-29'",
    "old_date": "DATE '0001-01-01'",
    "timestamp": "TIMESTAMP '2024-03-31 02:30:00.123456'",
    "old_timestamp": "TIMESTAMP '1500-01-01 00:00:00'",
    "cast_to_date": "CAST('2024-02-29' AS date)",
    "cast_to_timestamp": "CAST('2024-02-29 01:02:03' AS timestamp)",
    "duration": "TIMESTAMP '2024-01-02 00:00:00' - TIMESTAMP '2024-01-01 00:00:00' > 5 minutes",
}


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_expression_inside_a_function_of_spark_means_what_it_means_in_process(zone: str, spark) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", zone)
    values = "(1, 1L, 2.5D, 'a'), (2, 2L, CAST('NaN' AS DOUBLE), 'b_c'), (3, 3L, NULL, NULL), (4, -3L, 0.5D, 'a\\\\b')"
    frame = own.sql(f"SELECT * FROM VALUES {values} AS v(t, x, f, s)")
    on_spark = ", ".join(f"nvl({text}, {text}) AS `{name}`" for name, text in EXPRESSIONS.items())
    here = ", ".join(f"{text} AS `{name}`" for name, text in EXPRESSIONS.items())
    found = kleene.match_recognize(f"ORDER BY t MEASURES A.t AS t, {on_spark} PATTERN (A)").match(frame)
    expected = kleene.match_recognize(f"ORDER BY t MEASURES A.t AS t, {here} PATTERN (A)").match(frame.toArrow())
    in_order = sorted(found.toArrow().to_pylist(), key=lambda row: row["t"])
    for one, other in zip(in_order, expected.to_pylist(), strict=True):
        for name in EXPRESSIONS:
            assert plain(one[name]) == plain(other[name]), (name, one["t"])


def plain(value):
    return float(value) if isinstance(value, Decimal) else value


def test_nan_is_the_largest_number_in_both_directions(spark) -> None:
    frame = spark.sql("SELECT * FROM VALUES (1, 2.5D), (2, CAST('NaN' AS DOUBLE)), (3, NULL) AS v(t, f)")
    query = kleene.match_recognize("ORDER BY f DESC NULLS LAST MEASURES array_agg(t) AS ts PATTERN (A+)")
    assert query.match(frame).collect()[0]["ts"] == query.match(frame.toArrow()).to_pylist()[0]["ts"] == [2, 1, 3]


def test_aggregate_of_spark_over_constants_counts_rows_and_keeps_its_place(spark) -> None:
    frame = spark.sql("SELECT id AS t FROM range(3)")
    query = kleene.match_recognize("ORDER BY t MEASURES count_if(true) AS n, COUNT(*) AS k PATTERN (A+)")
    found = query.match(frame)
    assert found.columns == ["n", "k"]
    assert rows(found) == [(3, 3)]


def test_measure_that_spark_finishes_may_not_take_the_name_of_a_column(spark) -> None:
    frame = spark.sql("SELECT id AS t, id AS x FROM range(3)")
    query = kleene.match_recognize("ORDER BY t MEASURES stddev(A.x) AS x ALL ROWS PER MATCH PATTERN (A+)")
    with pytest.raises(kleene.AnalysisError, match="the measure 'x' has the name of a column of the input"):
        query.match(frame)


def test_parameters_of_spark(spark) -> None:
    text = f"SELECT symbol FROM (SELECT * FROM trades WHERE symbol = :s) {FALLS} WHERE n = :n"
    assert rows(kleene.sql(spark, text, {"s": "x", "n": 3})) == [("x",)]


def test_explain_looks_at_the_schema_of_a_frame_only(spark) -> None:
    frame = spark.sql("SELECT id AS t, raise_error('this ran') AS x FROM range(3)").selectExpr(
        "t", "CAST(x AS INT) AS x"
    )
    clause = kleene.match_recognize("ORDER BY t MEASURES median(A.x) AS m PATTERN (A+)")
    assert "automaton" in clause.explain(frame)
    assert "stacks" in kleene.sase("EVENT A a WHERE x > 1").explain(frame, order_by="t")


def test_result_without_columns_is_refused(spark) -> None:
    with pytest.raises(kleene.AnalysisError, match="would have no columns"):
        kleene.sql(spark, "SELECT count(*) FROM trades MATCH_RECOGNIZE (ORDER BY t PATTERN (A))")


SUBQUERY = """SELECT * FROM VALUES (1), (2), (3) AS m(t) MATCH_RECOGNIZE (
    ORDER BY t MEASURES array_agg(t) AS ts PATTERN (A+) DEFINE A AS t {})"""


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("< (SELECT max(v) FROM VALUES (2), (3) AS x(v))", [[1, 2]]),
        ("IN (SELECT v FROM VALUES (1), (NULL), (3) AS x(v))", [[1], [3]]),
        ("NOT IN (SELECT v FROM VALUES (1), (NULL), (3) AS x(v))", []),
        ("NOT IN (SELECT v FROM VALUES (1) AS x(v) WHERE v > 9)", [[1, 2, 3]]),
    ],
)
def test_subqueries_of_a_clause(either_spark, condition: str, expected: list) -> None:
    found = kleene.sql(either_spark, SUBQUERY.format(condition))
    assert sorted(row["ts"] for row in found.collect()) == expected


def test_a_subquery_of_several_rows_is_told_when_it_is_run(either_spark) -> None:
    found = kleene.sql(either_spark, SUBQUERY.format("> (SELECT v FROM VALUES (1), (2) AS x(v))"))
    with pytest.raises(Exception, match="SCALAR_SUBQUERY_TOO_MANY_ROWS") as caught:
        found.collect()
    assert isinstance(kleene_error(caught.value), kleene.ExecutionError)


def test_a_subquery_that_runs_foreign_code_is_refused(spark) -> None:
    text = SUBQUERY.format("> (SELECT reflect('java.lang.Math', 'abs', 1))")
    with pytest.raises(kleene.UnsupportedError, match="reflect runs code of the JVM"):
        kleene.sql(spark, text)

"""Subqueries in MEASURES and DEFINE: what is taken out of a clause, and what in process comes of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kleene
from kleene.source import SourceText, Span
from kleene.sqltext.statement import Statement
from kleene.sqltext.subqueries import WithoutSubqueries, without_subqueries

TABLES = {
    "H": pa.table({"t": range(1, 9), "c": [20, 24, 27, 23, 22, 25, 25, 19]}),
    "two": pa.table({"x": [22, 24]}),
    "none": pa.table({"x": pa.array([], pa.int64())}),
}


def taken_out(clause: str, *columns: str) -> WithoutSubqueries:
    statement = Statement(SourceText(clause), clause, secret="s")
    found = without_subqueries(statement, Span(0, len(clause)), columns)
    assert len(found.text) == len(clause)
    assert all(clause[one.select.start : one.select.end].lstrip().startswith("SELECT") for one in found.subqueries)
    return found


def squeezed(found: WithoutSubqueries) -> str:
    return " ".join(found.text.split())


@pytest.mark.parametrize(
    ("clause", "left", "kinds"),
    [
        ("DEFINE A AS c > 1", "DEFINE A AS c > 1", []),
        ("DEFINE A AS c > (SELECT x FROM f(')'))", "DEFINE A AS c > (_0)", ["value"]),
        ("DEFINE A AS EXISTS (SELECT 1) AND NOT EXISTS (SELECT 2)", "DEFINE A AS _0 AND NOT _1", ["exists", "exists"]),
        ("DEFINE A AS c IN (SELECT 1)", "DEFINE A AS _0", ["list"]),
        ("PATTERN (A) DEFINE A AS A.c NOT IN (SELECT 1)", "PATTERN (A) DEFINE A AS (NOT A._0)", ["list"]),
        ("PATTERN (A) DEFINE A AS c + 1 IN (SELECT 1)", "PATTERN (A) DEFINE A AS c + 1 IN (_0)", ["list"]),
        ("DEFINE A AS d IN (SELECT 1)", "DEFINE A AS d IN (_0)", ["list"]),
        ("MEASURES _0 AS a, (SELECT (SELECT 1)) AS b", "MEASURES _0 AS a, (_1) AS b", ["value"]),
        ("DEFINE A AS k = '(SELECT 1)' -- (SELECT 2)\n", "DEFINE A AS k = '(SELECT 1)' -- (SELECT 2)", []),
        ('DEFINE A AS "c" IN (SELECT 1) AND "C" IN (SELECT 2)', 'DEFINE A AS _0 AND "C" IN (_1)', ["list", "list"]),
    ],
)
def test_what_is_left_of_a_clause(clause: str, left: str, kinds: list[str]) -> None:
    found = taken_out(clause, "t", "c")
    assert squeezed(found) == left
    assert [one.kind for one in found.subqueries] == kinds


def rows(text: str, **options: object) -> list:
    return kleene.sql(text, tables=TABLES, **options).to_pylist()


def clause(measures: str = "array_agg(t) AS ts", define: str = "A AS true", pattern: str = "A+") -> str:
    return f"SELECT * FROM H MATCH_RECOGNIZE (ORDER BY t MEASURES {measures} PATTERN ({pattern}) DEFINE {define})"


@pytest.mark.parametrize("engine", ["reference", "generated"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("c IN (SELECT x FROM two)", [[2], [5]]),
        ("A.c IN (SELECT x FROM two)", [[2], [5]]),
        ("c NOT IN (SELECT x FROM none)", [[1, 2, 3, 4, 5, 6, 7, 8]]),
        ("nullif(c, c) IS NULL AND c > (SELECT avg(c) FROM H)", [[2, 3], [6, 7]]),
        ("CASE WHEN c IN (SELECT x FROM two) THEN false ELSE c > 24 END", [[3], [6, 7]]),
        ("c IN (SELECT x FROM two) OR PREV(A.c IN (SELECT x FROM two))", [[2, 3], [5, 6]]),
    ],
)
def test_conditions(condition: str, expected: list, engine: str) -> None:
    assert [row["ts"] for row in rows(clause(define=f"A AS {condition}"), engine=engine)] == expected


@pytest.mark.parametrize("engine", ["reference", "generated"])
def test_values_where_a_match_has_no_rows(engine: str) -> None:
    measures = "(SELECT max(x) FROM two) AS a, (SELECT max(x) FROM two) + count(*) AS b, c IN (SELECT x FROM two) AS d"
    found = rows(clause(measures, "A AS c = 27", "A*"), engine=engine)
    assert found[:3] == [
        {"a": 24, "b": 24, "d": None},
        {"a": 24, "b": 24, "d": None},
        {"a": 24, "b": 25, "d": False},
    ]


def test_common_tables_and_parameters_reach_subqueries() -> None:
    text = """WITH big AS (SELECT max(x) AS m FROM two WHERE x < ?)
        SELECT * FROM (SELECT * FROM H WHERE t > ?) MATCH_RECOGNIZE (ORDER BY t MEASURES array_agg(t) AS ts
        PATTERN (A B?) DEFINE A AS c > (SELECT m FROM big) AND c < (SELECT 25 + ?)) WHERE size(ts) < ?"""
    assert rows(text, args=[24, 2, 1, 3]) == [{"ts": [4, 5]}, {"ts": [6, 7]}]


def test_the_columns_of_subqueries_are_not_among_the_rows() -> None:
    text = "SELECT * FROM H MATCH_RECOGNIZE (ALL ROWS PER MATCH PATTERN (A) DEFINE A AS c > (SELECT 26))"
    assert rows(text) == [{"t": 3, "c": 27}]


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (clause("(SELECT x, x FROM two) AS a"), kleene.AnalysisError, "one value, but this one has 2 columns"),
        (clause("(SELECT x FROM two) AS a"), kleene.ExecutionError, "gives more than one row"),
        (clause("(SELECT y FROM two) AS a"), kleene.AnalysisError, '"y" not found'),
        (clause("(SELECT x FROM two AS a"), kleene.QuerySyntaxError, "never closed"),
        (clause("FIRST((SELECT 1)) AS a"), kleene.AnalysisError, "FIRST needs a column"),
        (clause().replace("ORDER BY t", "ORDER BY t + (SELECT 1)"), kleene.AnalysisError, "not in a key"),
        (clause("(SELECT read_csv('x')) AS a"), kleene.UnsupportedError, "read_csv"),
    ],
)
def test_what_is_refused(text: str, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        rows(text)


def test_outside_of_sql_no_table_is_known() -> None:
    with pytest.raises(kleene.QuerySyntaxError, match="a subquery cannot stand here") as caught:
        kleene.match_recognize("ORDER BY t PATTERN (A) DEFINE A AS c > (SELECT 1)")
    assert caught.value.column == 41
    assert "give the whole query to kleene.sql" in str(caught.value)


def test_a_column_given_twice_is_there_twice() -> None:
    text = "SELECT * FROM H MATCH_RECOGNIZE (ORDER BY t, t ALL ROWS PER MATCH PATTERN (A) DEFINE A AS c > 26)"
    found = kleene.sql(text, tables=TABLES)
    assert found.column_names == ["t", "t", "c"]
    assert [column.to_pylist() for column in found.columns] == [[3], [3], [27]]

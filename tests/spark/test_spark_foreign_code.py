"""Texts that would run code which is not Spark's own are refused, unless the caller allows it."""

from __future__ import annotations

import pytest

import kleene

VALUES = "VALUES (1, 'x') AS v(t, s)"
CLAUSE = "MATCH_RECOGNIZE (ORDER BY t MEASURES count(*) AS n PATTERN (A+))"
REFLECT = "reflect('java.lang.Math', 'abs', -1)"
TEXTS = [
    f"SELECT {REFLECT}",
    f"SELECT 1 -- {'x'}\r, {REFLECT}",
    "SELECT Reflect\n/* here */ ('java.lang.Math', 'abs', -1)",
    "SELECT `reflect`('java.lang.Math', 'abs', -1)",
    "SELECT \"reflect\"('java.lang.Math', 'abs', -1)",
    "SELECT system.builtin.REFLECT('java.lang.Math', 'abs', -1)",
    "SELECT java_method('java.lang.Math', 'abs', -1)",
    "SELECT try_reflect('java.lang.Math', 'abs', -1)",
    "SELECT /* /*+ */ reflect('java.lang.Math', 'abs', -1) -- */",
    "SELECT IDENTIFIER('ref' || 'lect')('java.lang.Math', 'abs', -1)",
    "SELECT IDENTIFIER('Reflect')('java.lang.Math', 'abs', -1)",
    r"SELECT IDENTIFIER('refl\u0065ct')('java.lang.Math', 'abs', -1)",
    "SELECT IDENTIFIER(:f)('java.lang.Math', 'abs', -1)",
    "EXECUTE IMMEDIATE 'SELECT refl' || 'ect(1)'",
    "BEGIN EXECUTE IMMEDIATE 'SELECT 1'; END",
    "SELECT TRANSFORM(s) USING 'cat' AS x FROM letters",
    "FROM letters MAP s USING :program AS x",
    "CREATE TEMPORARY FUNCTION f AS 'java.lang.Math'",
    "CREATE TEMP FUNCTION IF NOT EXISTS f AS 'java.lang.Math'",
    "CREATE OR REPLACE FUNCTION f AS 'java.lang.Math' USING JAR '/x.jar'",
    f"CREATE TEMPORARY FUNCTION f(x INT) RETURNS STRING RETURN {REFLECT}",
    "ADD JAR '/x.jar'",
    "SELECT ${x}",
    "SELECT $$ x $$",
    f"SELECT *, {REFLECT} FROM ({VALUES}) {CLAUSE}",
    f"SELECT * FROM (SELECT *, {REFLECT} FROM {VALUES}) {CLAUSE}",
    f"WITH e AS (SELECT *, {REFLECT} FROM {VALUES}) SELECT * FROM e {CLAUSE}",
    f"SELECT * FROM ({VALUES}) {CLAUSE} WHERE {REFLECT} = '1'",
]
CLAUSES = [
    "ORDER BY t MEASURES reflect('java.lang.Math', 'abs', A.t) AS m PATTERN (A)",
    "ORDER BY t MEASURES `Reflect`('java.lang.Math', 'abs', LAST(A.t)) AS m PATTERN (A)",
    "ORDER BY t MEASURES max_by(try_reflect('java.lang.Math', 'abs', A.t), A.t) AS m PATTERN (A)",
    "ORDER BY t MEASURES A.t AS m PATTERN (A) DEFINE A AS \"JAVA_METHOD\"('java.lang.Math', 'abs', A.t) = '1'",
    "PARTITION BY reflect('java.lang.Math', 'abs', t) ORDER BY t MEASURES A.t AS m PATTERN (A)",
    "ORDER BY t, reflect('java.lang.Math', 'abs', t) MEASURES A.t AS m PATTERN (A)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_that_runs_code_of_others_is_refused(text: str, spark) -> None:
    with pytest.raises(kleene.UnsupportedError, match="which is not allowed in a query text") as error:
        kleene.sql(spark, text, {"f": "reflect", "program": "cat"})
    assert error.value.location is not None
    assert "allow_jvm_calls=True" in str(error.value)


@pytest.mark.parametrize("clause", CLAUSES)
def test_clause_that_runs_code_of_the_jvm_is_refused(clause: str, spark) -> None:
    with pytest.raises(kleene.UnsupportedError, match="runs code of the JVM, which a clause may not do"):
        kleene.match_recognize(clause).match(spark.sql(f"SELECT * FROM {VALUES}"))
    with pytest.raises(kleene.UnsupportedError, match="runs code of the JVM, which a clause may not do") as error:
        kleene.sql(spark, f"SELECT *\nFROM ({VALUES}) MATCH_RECOGNIZE ({clause})")
    assert error.value.line == 2


def test_caller_may_allow_calls_of_the_jvm(spark) -> None:
    clause = "ORDER BY t MEASURES reflect('java.lang.Math', 'abs', 0 - A.t) AS m PATTERN (A)"
    text = f"SELECT *, {REFLECT} AS r FROM ({VALUES}) MATCH_RECOGNIZE ({clause})"
    assert [tuple(row) for row in kleene.sql(spark, text, allow_jvm_calls=True).collect()] == [("1", "1")]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'reflect(' AS s, reflect AS r, `java_method` AS j FROM VALUES (1, 2) AS v(reflect, java_method)",
        "SELECT /* reflect(1) */ 1 AS s, 1 AS r, 2 AS j -- reflect(1)",
        "SELECT a.s, a.r, IDENTIFIER('abs')(-2) AS j FROM VALUES (1, 1) AS a(s, r) JOIN VALUES (1) AS b(s) USING (s)",
    ],
)
def test_words_that_only_look_like_calls_are_fine(text: str, spark) -> None:
    assert tuple(kleene.sql(spark, text).collect()[0])[1:] == (1, 2)

"""Settings of a session that change how Spark reads a text: a query means the same under each of them."""

from __future__ import annotations

import datetime as dt

import pytest

import kleene

SETTINGS = {
    "default": {},
    "escaped literals": {"spark.sql.parser.escapedStringLiterals": "true"},
    "not ansi": {"spark.sql.ansi.enabled": "false", "spark.sql.storeAssignmentPolicy": "LEGACY"},
    "double quoted identifiers": {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    },
    "case sensitive": {"spark.sql.caseSensitive": "true", "spark.sql.storeAssignmentPolicy": "STRICT"},
    "New York": {"spark.sql.session.timeZone": "America/New_York"},
    "times without a zone": {
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "true",
    },
}
ROWS = [
    (1, "a1", "x\\y", 1.5, dt.datetime(2024, 3, 31, 1, 30), 2),
    (2, "bb", "it's", float("nan"), dt.datetime(2024, 3, 31, 2, 30), 0),
    (3, "c3", "line\nbreak \U0001f600", 2.5, dt.datetime(2024, 11, 3, 1, 30), 3),
]
SCHEMA = "t BIGINT, name STRING, text STRING, value DOUBLE, at TIMESTAMP_NTZ, N INT"


@pytest.fixture(params=SETTINGS)
def session(request: pytest.FixtureRequest, classic_spark):
    """A session of its own with the settings, on the one Spark of all tests."""
    made = classic_spark.newSession()
    for name, value in SETTINGS[request.param].items():
        made.conf.set(name, value)
    made.createDataFrame(ROWS, SCHEMA).createOrReplaceTempView("events")
    return made


def matches(session, clause: str) -> list[tuple]:
    return sorted(
        (tuple(row) for row in kleene.match_recognize(clause).match(session.table("events")).collect()), key=str
    )


def test_functions_of_spark_on_rows(session) -> None:
    assert matches(
        session, r"ORDER BY t MEASURES A.t AS t PATTERN (A) DEFINE A AS regexp_like(A.name, '^[a-z]\d$')"
    ) == [
        (1,),
        (3,),
    ]
    clause = r"""ORDER BY t MEASURES A.t AS t PATTERN (A)
        DEFINE A AS contains(A.text, '\') OR contains(A.text, 'it''s') OR contains(A.text, '
break 😀')"""
    assert matches(session, clause) == [(1,), (2,), (3,)]
    clause = r"ORDER BY t MEASURES replace(A.text, '\', '\n') AS m PATTERN (A) DEFINE A AS A.text LIKE '%\\%'"
    assert matches(session, clause) == [(r"x\ny",)]


def test_functions_of_spark_on_matches(session) -> None:
    clause = r"""ORDER BY t MEASURES concat_ws('\t"''', FIRST(A.name), LAST(A.name)) AS joined,
        max_by(A.text, A.t) AS last, array_join(collect_list(A.name), '\') AS names, count_if(A.n / 2 > 1) AS large
        PATTERN (A+)"""
    assert matches(session, clause) == [("a1\\t\"'c3", "line\nbreak \U0001f600", "a1\\bb\\c3", 1)]


def test_arithmetic_casts_and_nan(session) -> None:
    clause = """ORDER BY t MEASURES if(A.value > 1, 1, 0) AS nan, nvl(A.n / 0, -1) AS quotient,
        nvl(5 % A.n, -1) AS rest, hex(CAST(A.value * 2 AS string)) AS text,
        nvl(CAST(A.t AS integer) + 0.5, 0) AS number,
        typeof(CAST(A.t AS decimal(10, 2))) AS type PATTERN (A) DEFINE A AS A.t > 1"""
    found = matches(session, clause)
    assert [row[:3] for row in found] == [(0, -1, -1), (1, -1, 2)]
    assert [bytes.fromhex(row[3]).decode() for row in found] == ["nan", "5.0"]
    assert [(float(row[4]), row[5]) for row in found] == [(2.5, "decimal(10,2)"), (3.5, "decimal(10,2)")]


def test_times_without_a_zone_mean_the_same_in_every_zone(session) -> None:
    clause = """ORDER BY t MEASURES date_format(A.at, 'yyyy-MM-dd HH:mm') AS shown,
        date_format(TIMESTAMP '2024-03-31 02:30:00', 'HH:mm') AS literal,
        nvl(A.at, TIMESTAMP '1999-01-01 00:00:00') AS kept,
        if(A.at >= TIMESTAMP '2024-03-31 02:00:00', 1, 0) AS later, datediff(A.at, DATE '2024-01-01') AS days,
        if(A.at - TIMESTAMP '2024-03-31 00:00:00' > 2 hours, 1, 0) AS long,
        date_format(CAST('2024-03-31 02:30:00' AS timestamp), 'HH:mm') AS converted
        PATTERN (A)"""
    shown = [("2024-03-31 01:30", 0, 90, 0), ("2024-03-31 02:30", 1, 90, 1), ("2024-11-03 01:30", 1, 307, 1)]
    expected = [
        (text, "02:30", at, later, days, long, "02:30")
        for (text, later, days, long), (*_, at, _) in zip(shown, ROWS, strict=True)
    ]
    assert matches(session, clause) == expected


def test_columns_that_differ_from_their_names_in_case(session) -> None:
    clause = """ORDER BY T MEASURES bit_count(a.N) + bit_count(A."N") + bit_count(LAST(A.n)) AS m
        PATTERN (A) DEFINE A AS pmod(a.n, 2) = 1"""
    assert matches(session, clause) == [(6,)]


def test_columns_that_differ_in_case_only(classic_spark) -> None:
    session = classic_spark.newSession()
    session.conf.set("spark.sql.caseSensitive", "true")
    frame = session.createDataFrame([(1, 2, 3)], "t INT, n INT, N INT")
    clause = """ORDER BY t MEASURES bit_count(A.n) AS small, bit_count(A."N") AS large, max_by("n", "N") AS s,
        max_by("N", "n") AS l PATTERN (A)"""
    assert [tuple(row) for row in kleene.match_recognize(clause).match(frame).collect()] == [(1, 2, 2, 3)]


def test_text_around_a_clause(session) -> None:
    # Under the settings Spark reads some of these strings otherwise; it must read the same as without a clause.
    around = r"""SELECT m, 'a\\b' AS one, r'c\' AS two, 'it''s -- no comment' AS three, '{x} /* ' AS four /* ' */
        FROM {} WHERE 'MATCH_RECOGNIZE (' <> '\'' -- ' MATCH_RECOGNIZE (
        AND m > 0"""
    clause = "events MATCH_RECOGNIZE (ORDER BY t MEASURES count(*) AS m PATTERN (A+))"
    found = kleene.sql(session, around.replace("{}", clause)).collect()
    assert found == session.sql(around.replace("{}", "(SELECT 3L AS m)")).collect()
    assert found[0]["m"] == 3


def test_double_quotes_around_a_clause(session) -> None:
    around = """SELECT "m" AS one FROM {} AS r"""
    clause = """events MATCH_RECOGNIZE (ORDER BY t MEASURES count(*) AS "m" PATTERN (A+))"""
    found = kleene.sql(session, around.replace("{}", clause)).collect()
    assert found == session.sql(around.replace("{}", "(SELECT 3L AS m)")).collect()


def test_matches_are_stored_as_what_they_are(session, tmp_path) -> None:
    clause = "ORDER BY t MEASURES count(*) AS n, reverse(LAST(A.name)) AS s, LAST(A.at) AS at PATTERN (A+)"
    kleene.match_recognize(clause).match(session.table("events")).write.parquet(str(tmp_path / "matches"))
    stored = session.read.parquet(str(tmp_path / "matches"))
    assert [field.dataType.simpleString() for field in stored.schema.fields] == ["bigint", "string", "timestamp_ntz"]
    assert [tuple(row) for row in stored.collect()] == [(3, "3c", ROWS[-1][4])]

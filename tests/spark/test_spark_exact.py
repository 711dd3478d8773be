"""Expressions inside a function that only Spark knows mean what they mean in process, whatever the settings are."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

import kleene

LARGEST, SMALLEST = 2**63 - 1, -(2**63)
ROWS = [
    (1, 5, 2_147_483_647, 7, 2.5, "12", Decimal("1.50")),
    (2, LARGEST, -2_147_483_648, 0, math.nan, " -3 ", Decimal("-0.01")),
    (3, SMALLEST + 1, 0, -2, -0.0, "0", Decimal("0.00")),
    (4, None, None, None, None, None, None),
    (5, -7, 3, 3, math.inf, "9223372036854775807", Decimal("99999999.99")),
    (6, 0, -1, 1, -1e17, "+1", Decimal("-99999999.99")),
    (7, 1, 1, 2, 1.25e-5, "007", Decimal("0.50")),
    (8, 2**53 + 1, 5, -1, 123456789.125, "1", Decimal("2.50")),
    (9, 8, 6, 5, 0.00012, "2", Decimal("-2.50")),
    (10, 9, 8, 4, -math.inf, "3", Decimal("12345.67")),
]
WORDS = ["", "straße ΑΣ", "😀é", None, "İ", "a_b%", "Abc", "\n", "ǅ", "x" * 30]
SCHEMA = "t INT, big BIGINT, small INT, d SMALLINT, f DOUBLE, n STRING, m DECIMAL(10, 2), s STRING"
EXPRESSIONS = [
    "small + 1",
    "small * small",
    "small - d",
    "-small",
    "-big",
    "-f",
    "f + d",
    "f * f - m",
    "m + 1",
    "m - m",
    "big * 1.0",
    "m * 1.5",
    "abs(-1.5) + d",
    "big / d",
    "f / d",
    "m / 0",
    "small % d",
    "f % d",
    "d % f",
    "big % -1",
    "abs(big)",
    "abs(small)",
    "abs(f)",
    "abs(m)",
    "greatest(f, 1.0E0)",
    "least(f, 1.0E0)",
    "greatest(f, f)",
    "least(d, big, small)",
    "greatest(n, s)",
    "ceil(f)",
    "floor(f)",
    "ceil(m)",
    "floor(m)",
    "floor(big)",
    "round(f)",
    "round(f, 4)",
    "round(m, 1)",
    "round(small, -3)",
    "round(d, -1)",
    "sqrt(f)",
    "ln(f)",
    "power(1, f)",
    "power(-1, f)",
    "power(f, 0)",
    "coalesce(f, 1.0E0)",
    "CAST(f AS string)",
    "CAST(f * 1e-200 AS string)",
    "CAST(f * 1e5 AS string)",
    "CAST(m AS string)",
    "CAST(m AS integer)",
    "CAST(big AS string)",
    "CAST(big AS float)",
    "CAST(big AS boolean)",
    "CAST(n AS integer)",
    "CAST(n AS float)",
    "CAST(d AS decimal(10, 2))",
    "CAST(m AS decimal(12, 1))",
    "CAST(d > 1 AS string)",
    "CAST(CAST('2024-01-01 00:00:00.5' AS timestamp) AS string)",
    "CAST(DATE '2024-01-01' AS string)",
    "upper(s)",
    "lower(s)",
    "length(s)",
    "s || n",
    "s LIKE '%\\_b\\%'",
    "CASE WHEN d <> 0 THEN small % d ELSE f END",
    "f BETWEEN d AND small",
    "if(d > 0, n, s)",
    "nvl(f, 1.0E0)",
    "nvl2(f, n, s)",
    "nullif(d, small)",
    "nullif(f, f)",
    "pmod(small, d)",
    "pmod(big, 7)",
    "pmod(f, 2.5E0)",
    "mod(small, d)",
    "mod(big, 0)",
    "sign(f)",
    "sign(m)",
    "concat_ws('-', n, s)",
    "substring(s, small % 3, d)",
    "left(s, d)",
    "right(s, 2)",
    "lpad(s, d, n)",
    "trim(n) || '|'",
    "replace(s, 'b', '')",
    "instr(s, 'b')",
    "locate('b', s, d)",
    "contains(s, 'b') AND startswith(s, 'A')",
    "reverse(s)",
    "split_part(s, '_', pmod(d, 2) + 1)",
    "s RLIKE '^[a-zA-Z]+$'",
    "TRY_CAST(n AS integer)",
    "TRY_CAST(s AS float)",
    "TRY_CAST('2024-02-30' AS date)",
    "d::string",
    "CAST(date_trunc('HOUR', TIMESTAMP '2024-03-31 02:30:15.5') AS string)",
    "CAST(date_trunc('WEEK', DATE '2024-03-31') AS string)",
    "unix_timestamp(TIMESTAMP '1969-12-31 23:59:59.5') + d",
    "date_diff(date_add(DATE '2024-02-28', d), DATE '2024-01-01')",
    "EXTRACT(SECOND FROM TIMESTAMP '2024-03-31 02:30:15.5') + d",
    "year(DATE '2024-02-28') + hour(TIMESTAMP '2024-03-31 02:30:15.5')",
    "array(d, small)[d]",
    "element_at(array(d, small), 1 + pmod(d, 2))",
    "size(array(d, small)) + size(NULL)",
    "map('a', d)['a'] + map('a', d)['b']",
    "named_struct('x', d, 'y', s).y",
    "array_contains(array(d, 7), 7)",
    "array_join(array(s, n), '-')",
    "array(d) = array(small)",
]
IMPOSSIBLE = [
    "big + 1",
    "big * 2",
    "-(0 - big - 1)",
    "abs(0 - big - 1)",
    "round(big, -19)",
    "ceil(big * 1.0E0)",
    "CAST('Abc' AS integer)",
    "CAST('1.5' AS integer)",
    "CAST('1d' AS float)",
    "CAST('yes' AS boolean)",
    "CAST('2024' AS date)",
    "CAST('2024-02-30' AS timestamp)",
    "CAST(nan AS integer)",
    "CAST(nan AS decimal(10, 2))",
    "CAST(big * 1.0E0 AS integer)",
    "CAST(big AS decimal(5, 0))",
]


@pytest.fixture(params=["true", "false"], ids=["ansi", "not ansi"])
def session(request: pytest.FixtureRequest, classic_spark):
    """A session of its own, so that the others keep their setting."""
    made = classic_spark.newSession()
    made.conf.set("spark.sql.ansi.enabled", request.param)
    return made


def plain(value):
    """What tells any two values apart but for their types: NaN is like NaN, and -0.0 is not like 0.0."""
    return str(float(value)) if isinstance(value, (Decimal, float, int)) and not isinstance(value, bool) else value


def test_expression_inside_a_function_of_spark_has_the_value_it_has_alone(session) -> None:
    frame = session.createDataFrame([(*row, word) for row, word in zip(ROWS, WORDS, strict=True)], SCHEMA)
    alone = ", ".join(f"{text} AS c{number}" for number, text in enumerate(EXPRESSIONS))
    inside = "try_element_at(array_repeat({}, 1), 1)"  # functions that only Spark has
    through = ", ".join(f"{inside.format(text)} AS c{number}" for number, text in enumerate(EXPRESSIONS))
    clause = "ORDER BY t MEASURES t AS t, {} PATTERN (A)"
    expected = kleene.match_recognize(clause.format(alone)).match(frame.toArrow()).to_pylist()
    found = kleene.match_recognize(clause.format(through)).match(frame).toArrow().to_pylist()
    different = {
        (text, one["t"]): (one[f"c{number}"], other[f"c{number}"])
        for one, other in zip(sorted(found, key=lambda row: row["t"]), expected, strict=True)
        for number, text in enumerate(EXPRESSIONS)
        if plain(one[f"c{number}"]) != plain(other[f"c{number}"])
    }
    assert different == {}


@pytest.mark.parametrize("text", IMPOSSIBLE)
def test_overflow_or_impossible_cast_is_an_error_in_every_session(text: str, session) -> None:
    frame = session.createDataFrame([(1, LARGEST, math.nan)], "t INT, big BIGINT, nan DOUBLE")
    with pytest.raises(kleene.ExecutionError):
        kleene.match_recognize(f"ORDER BY t MEASURES {text} AS m PATTERN (A)").match(frame.toArrow())
    query = kleene.match_recognize(f"ORDER BY t MEASURES t AS t PATTERN (A) DEFINE A AS hex({text}) IS NOT NULL")
    with pytest.raises(Exception, match=r"overflow: |: a value is not a"):
        query.match(frame).collect()


def test_overflow_over_a_function_of_spark_shows_what_the_user_wrote(session) -> None:
    frame = session.createDataFrame([(1, LARGEST)], "t INT, big BIGINT")
    query = kleene.match_recognize("ORDER BY t MEASURES bit_count(LAST(A.big)) + LAST(A.big) AS m PATTERN (A+)")
    with pytest.raises(Exception, match=r"overflow: bit_count\(LAST\(A.big\)\) \+ LAST\(A.big\) does not fit"):
        query.match(frame).collect()


def test_long_sums_of_floats_and_of_integers_are_planned(session) -> None:
    frame = session.createDataFrame([(1, 1.0)], "t INT, f DOUBLE")
    floats, integers = "f" + " + 1" * 80, "t" + " + 1" * 20
    query = kleene.match_recognize(
        f"ORDER BY t MEASURES abs(nvl({floats}, 0)) AS f, nvl({integers}, 0) AS t PATTERN (A)"
    )
    assert [tuple(row) for row in query.match(frame).collect()] == [(81.0, 21)]

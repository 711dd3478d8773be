"""Every function means in the engine what Spark means by it, in process and on Spark."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import kleene

TEXTS = ["", "abc", "a,b,,c", " x ", "ÄÖ😀ab", None, "aaa", "Straße\n", "\tq\r\n", "ABC,", "12", "x.y"]
PARTS = ["a", "", ",", "b", "😀", None, "aa", "ß", "\n", "C", "2", "."]
NUMBERS = [0, 1, 2, -1, -3, None, 5, 100, -2, 3, 7, -7]
FLOATS = [0.0, -0.0, 1.5, -2.5, math.nan, None, math.inf, -math.inf, 7.25, -7.25, 1e-9, 3.0]
DAYS = [
    *(date(2024, 2, 29), date(1969, 12, 31), date(2000, 1, 1), None, date(2024, 12, 30), date(1, 6, 1)),
    *(date(9998, 12, 31), date(2023, 3, 26), date(1582, 10, 4), date(2021, 1, 3), date(2024, 7, 15), date(1970, 1, 1)),
]
TIMES = [
    *(datetime(2024, 2, 29, 23, 59, 59, 999_999), datetime(1969, 12, 31, 23, 59, 59, 500_000), None),
    *(
        datetime(2024, 3, 31, 2, 30),
        datetime(2024, 10, 27, 2, 30, 15),
        datetime(2000, 1, 1),
        datetime(1960, 5, 5, 5, 5, 5),
    ),
    *(datetime(2024, 12, 30, 12), datetime(2021, 1, 3, 0, 0, 1), datetime(1970, 1, 1), datetime(2038, 1, 19, 3, 14, 8)),
    datetime(1900, 1, 1, 0, 0, 0, 1),
]
TABLE = pa.table(
    {
        "t": list(range(len(TEXTS))),
        "s": TEXTS,
        "p": PARTS,
        "n": pa.array(NUMBERS, pa.int32()),
        "k": pa.array([*NUMBERS[3:], *NUMBERS[:3]], pa.int32()),
        "x": pa.array(FLOATS, pa.float64()),
        "m": pa.array([None if n is None else Decimal(n) / 4 for n in NUMBERS], pa.decimal128(8, 2)),
        "d": pa.array(DAYS, pa.date32()),
        "e": pa.array(DAYS[::-1], pa.date32()),
        "ts": pa.array(TIMES, pa.timestamp("us")),
    }
)
FAMILIES = {
    "choices": "if(n > 1, s, p) | if(n > 1, n, x) | nvl(s, p) | nvl(n, x) | nvl2(n, s, p) | ifnull(x, n) | nullif(n, k)"
    " | nullif(s, p) | nullif(n, 1.0) | nullif(m, n) | coalesce(s, p, 'z')",
    "numbers": "pmod(n, k) | pmod(x, 2.5D) | pmod(x, -2.5D) | pmod(m, 0.75) | mod(n, k) | mod(x, 2D) | sign(n)"
    " | sign(x) | sign(m) | n % k",
    "texts": "concat_ws('-', s, p) | concat_ws(p, s, 'z', n) | concat_ws(',') | substring(s, n) | substring(s, n, k)"
    " | substring(s, 2) | left(s, n) | right(s, n) | trim(s) | ltrim(s) | rtrim(s) | replace(s, p, '#')"
    " | replace(s, p) | lpad(s, n, 'xy') | rpad(s, n, p) | lpad(s, 5) | rpad(s, 3, '') | reverse(s)"
    " | substring(n, 1, 1) | left(d, 4)",
    "places": "instr(s, p) | locate(p, s) | locate(p, s, n) | locate(p, s, NULL) | contains(s, p) | startswith(s, p)"
    " | endswith(s, p) | split_part(s, p, 1) | split_part(s, ',', -2) | split_part(s, ',', 9) | contains(n, '0')",
    "patterns": r"regexp_like(s, '^a') | s RLIKE '[a-c]+$' | s RLIKE '(?i)abc' | s RLIKE '\\s' | s RLIKE '^\\S*$'"
    r" | s RLIKE '^.*$' | s RLIKE 'a.b|\\d{2}' | s RLIKE '(?s)^.+$' | s RLIKE '[^a]$' | s RLIKE '^\\w*\\W' "
    r"| s RLIKE '(?:a(,b)?){1,2}' | s RLIKE '\\u00DF|x\\.y' | NOT s RLIKE '(?i)[x-z,ä]' | s RLIKE '^(a|b)*?c'",
    "dates": "date_diff(d, e) | datediff(e, d) | date_add(d, n) | date_sub(d, n) | year(d) | month(d) | day(d)"
    " | dayofmonth(d) | quarter(d) | weekofyear(d) | dayofweek(d) | dayofyear(d) | hour(d) | unix_timestamp(d)"
    " | date_diff(ts, d) | date_add(ts, 1) | year(ts) | EXTRACT(WEEK FROM d) | EXTRACT(YEAROFWEEK FROM d)"
    " | EXTRACT(DOW FROM d) | EXTRACT(DOW_ISO FROM d) | EXTRACT(DOY FROM d) | date_part('MONTH', d)",
    "times": "hour(ts) | minute(ts) | second(ts) | unix_timestamp(ts) | EXTRACT(SECOND FROM ts) | EXTRACT(HOUR FROM ts)"
    " | EXTRACT(MINUTE FROM ts)",
    "casts": "try_cast(s AS int) | try_cast(s AS double) | try_cast(s AS date) | s::string | n::string || 'x'"
    " | -1::string | -n::int | TRY_CAST('2024-02-30' AS date) | n::double / 2 | d::string",
}


def expressions_of(family: str) -> list[str]:
    return [part.strip() for part in FAMILIES[family].split(" | ")]


def measured(events: object, expressions: list[str]) -> pa.Table:
    """The expressions for each row, by the engine."""
    # In a clause as in standard SQL, a backslash is a backslash, and 2D is no number.
    ours = [text.replace("\\\\", "\\").replace("5D", "5").replace("2D", "2.0") for text in expressions]
    measures = ", ".join(f"{text} AS e{number}" for number, text in enumerate(ours))
    found = kleene.match_recognize(f"ORDER BY t MEASURES t AS t, {measures} PATTERN (A)").match(events)
    table = found if isinstance(found, pa.Table) else found.toArrow()
    return table.sort_by("t").drop_columns("t")


def shown(value: object) -> object:
    """A value of either side; widths of numbers do not matter."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, Decimal)):
        return Decimal(value).normalize()
    return repr(value) if isinstance(value, float) else value


def by_spark(spark, expressions: list[str]) -> list[list[object]]:
    frame = spark.createDataFrame(TABLE)
    rows = frame.orderBy("t").selectExpr(*(f"{text} AS e{number}" for number, text in enumerate(expressions))).collect()
    return [[shown(row[number]) for row in rows] for number in range(len(expressions))]


@pytest.fixture
def without_ansi(spark):
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "false")
    yield
    spark.conf.unset("spark.sql.ansi.enabled")
    spark.conf.unset("spark.sql.parser.escapedStringLiterals")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.usefixtures("without_ansi")
def test_functions_are_those_of_spark(spark, family: str) -> None:
    expressions = expressions_of(family)
    wanted = by_spark(spark, expressions)
    ours = measured(TABLE, expressions)
    for number, text in enumerate(expressions):
        found = [shown(value) for value in ours.column(number).to_pylist()]
        assert found == wanted[number], text


def test_functions_are_the_same_on_spark_as_in_process(spark) -> None:
    expressions = [text for family in FAMILIES for text in expressions_of(family)]
    in_process = measured(TABLE, expressions)
    frame = spark.createDataFrame(TABLE)
    on_spark = measured(frame, expressions)
    for number, text in enumerate(expressions):
        one, other = (table.column(number).to_pylist() for table in (in_process, on_spark))
        assert list(map(shown, one)) == list(map(shown, other)), text


ZONED = [
    "hour(z)",
    "day(z)",
    "date_diff(z, d)",
    "date_trunc('DAY', z)",
    "date_trunc('HOUR', z)",
    "date_trunc('WEEK', z)",
]
ZONED += [
    "EXTRACT(MINUTE FROM z)",
    "unix_timestamp(z)",
    "date_trunc('QUARTER', z)",
    "date_add(z, 1)",
    "date_trunc('x', z)",
]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "UTC"])
def test_times_with_a_zone_are_read_on_its_clock(spark, zone: str) -> None:
    known = [moment for moment in TIMES if moment is not None and moment.year > 1950]
    table = pa.table(
        {
            "t": list(range(len(known))),
            "z": pa.array([moment.replace(tzinfo=UTC) for moment in known], pa.timestamp("us", zone)),
            "d": pa.array([date(2024, 1, 1)] * len(known), pa.date32()),
        }
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.createDataFrame(table)
        rows = frame.orderBy("t").selectExpr(*ZONED).toArrow()
        on_spark = measured(frame, ZONED)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    ours = measured(table, ZONED)
    for number, text in enumerate(ZONED):
        wanted = rows.column(number).to_pylist()
        assert ours.column(number).to_pylist() == wanted, text
        assert on_spark.column(number).to_pylist() == wanted, text


UNITS = [
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MILLISECOND",
    "MICROSECOND",
    "mm",
    "no",
]


def test_times_without_a_zone_are_truncated_as_in_utc(spark) -> None:
    expressions = [f"date_trunc('{unit}', ts)" for unit in UNITS] + ["date_trunc('MONTH', d)"]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        native = (
            spark.createDataFrame(TABLE)
            .orderBy("t")
            .selectExpr(*(f"CAST({text} AS timestamp_ntz)" for text in expressions))
        )
        wanted = native.toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    ours = measured(TABLE, expressions)
    for number, text in enumerate(expressions):
        assert ours.column(number).to_pylist() == wanted.column(number).to_pylist(), text


def test_expressions_over_several_rows_and_aggregates(spark) -> None:
    clause = """ORDER BY t
    MEASURES concat_ws('-', FIRST(s), LAST(s)) AS a, pmod(sum(n), 3) AS b, if(count(*) > 1, 'many', 'one') AS c,
        date_diff(max(d), min(d)) AS e, nvl(LAST(p), '?') AS f, upper(left(LAST(s), 1)) || 'x' AS g
    PATTERN (A B*) DEFINE B AS contains(concat(PREV(s), s), 'a') AND nvl(sum(n), 0) > -5"""
    query = kleene.match_recognize(clause)
    in_process = query.match(TABLE).to_pylist()
    on_spark = query.match(spark.createDataFrame(TABLE)).toArrow().to_pylist()
    assert len(in_process) > 1
    assert sorted(map(str, on_spark)) == sorted(map(str, in_process))


def test_pairs_of_numbers_have_the_remainders_of_spark(spark) -> None:
    numbers = [-7, -3, -1, 0, 1, 2, 5, 9]
    pairs = list(itertools.product(numbers, numbers))
    table = pa.table({"t": list(range(len(pairs))), "a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    wanted = spark.createDataFrame(table).orderBy("t").selectExpr("if(b = 0, NULL, pmod(a, nullif(b, 0)))").toArrow()
    assert measured(table, ["pmod(a, b)"]).column(0).to_pylist() == wanted.column(0).to_pylist()

"""The same text on Spark and in process gives the same rows."""

# ruff: noqa: E501  # a text that is compared stands on one line

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import kleene

FALLS = """MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY t
    MEASURES A.price AS top, LAST(B.price) AS bottom, count(*) AS n
    PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)
)"""
UTC = dt.UTC
TABLES = {
    "trades": pa.table(
        {
            "symbol": ["x", "x", "x", "x", "y", "y", "y", "y"],
            "t": [1, 2, 3, 4, 1, 2, 3, 4],
            "price": [10, 8, 7, 9, 5, 4, 6, 1],
        }
    ),
    "names": pa.table({"symbol": ["x", "z"], "Name": ["Xylo Corp", None]}),
    "mixed": pa.table(
        {
            "id": [1, 2, 3, 4],
            "n": pa.array([7, -7, None, 0], pa.int64()),
            "f": [2.7, -2.7, None, 0.5],
            "s": ["Ada, B", " abc ", None, "a_c%"],
            "num": ["12", "-3", None, "0"],
            "ok": [True, False, None, True],
            "d": [dt.date(2024, 1, 31), dt.date(2023, 12, 31), None, dt.date(2024, 2, 29)],
            "ts": [
                dt.datetime(2024, 1, 31, 23, 59, 58, tzinfo=UTC),
                dt.datetime(2023, 12, 31, 0, 0, tzinfo=UTC),
                None,
                dt.datetime(2024, 2, 29, 12, 30, 15, 500000, tzinfo=UTC),
            ],
            "xs": [[3, 1, 2], [], None, [5, None]],
            "dec": pa.array([Decimal("1.25"), Decimal("-1.25"), None, Decimal("0.00")], pa.decimal128(10, 2)),
        }
    ),
}
AROUND = [
    f"SELECT * FROM trades {FALLS}",
    f"SELECT symbol, top - bottom AS fall FROM trades {FALLS} WHERE top - bottom > 1 ORDER BY fall DESC",
    f"WITH c AS (SELECT * FROM trades WHERE price > 1) SELECT m.* FROM c {FALLS} AS m",
    f"WITH m AS (SELECT * FROM TRADES {FALLS}) SELECT Symbol, count(*) AS falls FROM m GROUP BY symbol",
    f"SELECT f.symbol, n.name, f.n FROM trades {FALLS} f LEFT JOIN names n ON f.symbol = n.symbol",
    f"SELECT * FROM trades {FALLS} m MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY top MEASURES count(*) AS k PATTERN (F+))",
    f"SELECT symbol FROM names WHERE symbol IN (SELECT symbol FROM trades {FALLS})",
    f"SELECT symbol, top FROM trades {FALLS} UNION ALL SELECT symbol, price FROM trades WHERE t = 1",
    f"SELECT symbol, max(top - bottom), count(*), sum(n) FROM trades {FALLS} GROUP BY symbol HAVING count(*) > 1",
    f"SELECT *, row_number() OVER (PARTITION BY symbol ORDER BY top DESC) AS r FROM trades {FALLS} QUALIFY r = 1",
    "SELECT * FROM range(5) MATCH_RECOGNIZE (ORDER BY id MEASURES FIRST(A.id) AS a, LAST(A.id) AS b PATTERN (A{2}))",
    """SELECT * FROM VALUES (1, 10), (2, 8), (3, 9) AS v(t, p) MATCH_RECOGNIZE (
         ORDER BY t MEASURES A.p AS top, B.p AS next PATTERN (A B) DEFINE B AS B.p < A.p)""",
    """SELECT * FROM trades MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY t MEASURES CLASSIFIER() AS c
         ALL ROWS PER MATCH PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)) ORDER BY symbol, t""",
    f"""SELECT symbol, CASE WHEN top > 6 THEN 'high' ELSE 'low' END AS level FROM (
         SELECT t, upper(symbol) AS symbol, price FROM trades) {FALLS}""",
    """SELECT * FROM mixed MATCH_RECOGNIZE (ORDER BY ts NULLS FIRST MEASURES A.ts AS ts, LAST(B.ts) - A.ts AS took,
         A.d AS d, A.dec AS dec PATTERN (A B) )""",
    "WITH trades AS (SELECT * FROM trades WHERE symbol = 'y') SELECT * FROM trades",
    "SELECT s.symbol, (SELECT max(price) FROM trades t WHERE t.symbol = s.symbol) AS best FROM names s",
    "SELECT * FROM trades JOIN names USING (symbol)",
    "SELECT a.symbol FROM names a LEFT ANTI JOIN trades b ON a.symbol = b.symbol",
    "SELECT a.symbol FROM names a LEFT SEMI JOIN trades b ON a.symbol = b.symbol",
    "SELECT symbol, t, sum(price) FROM trades GROUP BY ROLLUP (symbol, t)",
    "SELECT symbol, grouping(symbol) AS g, count(*) AS n FROM trades GROUP BY GROUPING SETS ((symbol), ())",
    "SELECT DISTINCT symbol FROM trades MINUS SELECT symbol FROM names",
    "SELECT * EXCEPT (price) FROM trades WHERE t BETWEEN 2 AND 3",
    "SELECT id, x FROM mixed LATERAL VIEW explode(xs) e AS x",
    "SELECT id, explode(xs) AS x FROM mixed",
    "SELECT id, p, x FROM mixed LATERAL VIEW posexplode(xs) e AS p, x",
    "SELECT symbol, price FROM trades ORDER BY price LIMIT 3 OFFSET 1",
    "SELECT /*+ BROADCAST(names) */ count(1) FROM trades, names -- all pairs",
    "SELECT * FROM (SELECT symbol, t, price FROM trades) PIVOT (sum(price) FOR symbol IN ('x', 'y'))",
    "SELECT * FROM trades t, LATERAL (SELECT t.price + 1 AS more)",
    "SELECT upper(symbol), price * 2 + 1, NOT price > 3 FROM trades",
    "SELECT `count(1)` FROM (SELECT count(*) FROM trades)",
    "FROM trades SELECT symbol, max(price) AS m GROUP BY symbol",
    "SELECT 1 AS one, 'it\\'s' AS s, \"double\" AS q, r'\\d' AS raw, 1.5 AS dec, 1e3 AS f, 2L AS l, X'1F' AS b, NULL AS nothing",
]
ORDERED = [
    "SELECT n FROM mixed ORDER BY n",
    "SELECT n FROM mixed ORDER BY n DESC",
    "SELECT n FROM mixed ORDER BY n DESC NULLS FIRST",
    "SELECT id, n FROM mixed ORDER BY 2 NULLS LAST, 1",
    "SELECT id, row_number() OVER (ORDER BY n) AS r, lag(n) OVER (ORDER BY id) AS l FROM mixed ORDER BY id",
    "SELECT id, sum(n) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM mixed ORDER BY id DESC",
]
EXPRESSIONS = [
    "n / 2, n div 2, n % 2, -n, abs(n), pmod(n, 3), mod(n, 4), n * 1.5, f / 2, dec + 1, dec * 2",
    "cast(f AS int), cast(num AS int), cast(ok AS int), cast(dec AS bigint), cast(n AS double), num::int",
    "cast(n AS string), cast(d AS string), cast(ts AS string), cast(ok AS string), cast(d AS timestamp), cast(ts AS date)",
    "try_cast(s AS int), try_cast('2.5' AS int), try_cast(num AS bigint), cast(n AS boolean)",
    "ceil(f), floor(f), round(f), round(f, 1), sign(f), sqrt(abs(f)), power(f, 2), exp(f), ln(abs(f) + 1), greatest(n, 1, f)",
    "least(n, 3), cbrt(n), log10(abs(f)), log2(abs(f)), log(2, abs(f)), pi(), sin(f), degrees(f), atan2(f, 2.0)",
    "cos(f), tan(f), asin(f / 10), acos(f / 10), atan(f), radians(f), current_date() = to_date(now()), current_timestamp() > ts",
    "n & 3, n | 1, n ^ 1, ~n",
    "coalesce(n, -1), nvl(n, 0), nvl2(n, 'a', 'b'), ifnull(f, 0.0), nullif(n, 7), if(ok, 1, 2), isnull(n), isnotnull(n)",
    "n <=> NULL, n IS NULL, n = 7 OR ok, NOT ok, n IN (7, 0), n NOT IN (7, NULL), isnan(f), n BETWEEN 0 AND 9",
    "upper(s), lower(s), length(s), trim(s), ltrim(s), rtrim(s), s || '!', concat(s, '-', num), concat_ws('-', s, num)",
    "substring(s, 1, 2), substring(s, 0, 2), substring(s, -2, 2), substr(s, 2), left(s, 2), right(s, 2), reverse(s)",
    "replace(s, 'a', 'o'), translate(s, 'ab', 'xy'), repeat(s, 2), lpad(s, 8, '*'), rpad(s, 3, '*'), instr(s, 'a')",
    "locate('a', s), position('b' IN s), startswith(s, 'A'), endswith(s, ' '), contains(s, 'c'), ascii(s), chr(65), md5(s)",
    "split(s, ','), regexp_replace(s, '[ab]', '#'), regexp_extract(s, '([a-z]+)', 1), regexp_extract(s, '([a-z])'), s RLIKE '^A'",
    "s LIKE 'A%', s LIKE 'a\\\\_c\\\\%', s LIKE '%a_c%', s ILIKE 'ADA%', s LIKE 'a!_c!%' ESCAPE '!', regexp_like(s, 'b')",
    "year(d), month(d), day(d), dayofmonth(d), quarter(d), dayofweek(d), dayofyear(d), weekofyear(d), weekday(d), last_day(d)",
    "hour(ts), minute(ts), second(ts), year(ts), extract(HOUR FROM ts), extract(MONTH FROM d), to_date(ts), to_date('2024-02-01')",
    "date_add(d, 30), date_sub(d, 1), add_months(d, 1), datediff(d, DATE '2024-01-01'), date_add(ts, cast(n AS int))",
    "date_trunc('MONTH', ts), date_trunc('HOUR', ts), date_format(ts, 'yyyy-MM-dd HH:mm:ss'), ts + INTERVAL 1 DAY, ts - INTERVAL '2' HOURS",
    "timestampdiff(HOUR, TIMESTAMP '2024-01-01 00:30:00', ts), timestampdiff(DAY, ts, TIMESTAMP '2024-01-01 00:30:00')",
    "ts - TIMESTAMP '2024-01-01 00:00:00', timestampadd(MINUTE, 5, ts), unix_seconds(ts), unix_millis(ts), unix_micros(ts)",
    "ts > TIMESTAMP '2024-01-15 00:00:00', d = DATE '2024-01-31', ts > '2024-01-15', make_date(2024, 2, id), to_timestamp('2024-01-01 10:00:00')",
    "size(xs), array_contains(xs, 1), sort_array(xs), array_sort(xs), array_max(xs), array_min(xs), array_join(xs, ',')",
    "array(1, 2)[1], element_at(array(1, 2), 1), array_distinct(array(1, 1)), flatten(array(array(1), array(2))), sequence(1, 3)",
    "transform(xs, x -> x + 1), filter(xs, x -> x > 1), aggregate(array(1, 2), 0, (a, b) -> a + b)",
    "map('k', id)['k'], map_keys(map('k', id)), map_values(map('k', id)), named_struct('a', id, 'b', s).b, struct(id).id",
    "IF(size(xs) > 0, xs[0], -1), cast('7' AS int), cast(7 AS string), cast('2024-01-31' AS date), cast('1' AS tinyint)",
    "CASE id WHEN 1 THEN 'one' ELSE 'many' END, CASE WHEN n > 0 THEN n END",
]
AGGREGATES = [
    "count(*), count(n), count(DISTINCT ok), count_if(ok), sum(n), sum(f), sum(dec), avg(n), mean(n), min(s), max(d), min(ts)",
    "stddev(n), stddev_pop(n), stddev_samp(f), variance(n), var_pop(n), median(f), percentile(n, 0.5), corr(n, f), covar_pop(n, f)",
    "first(7), last(7), any_value(7), stddev(f), var_samp(f), max(s), avg(dec) * 1",
    "bool_and(ok), bool_or(ok), every(ok), some(ok), max_by(id, n), min_by(n, id), max_by(n, id), covar_samp(n, f)",
    "sum(n) FILTER (WHERE ok), count(*) FILTER (WHERE n > 0), sort_array(collect_list(n)), sort_array(collect_set(ok))",
    "sort_array(array_agg(n)), size(collect_list(n) FILTER (WHERE n > 100)), listagg(num, ',') WITHIN GROUP (ORDER BY id)",
]
WINDOWS = [
    "rank() OVER w, dense_rank() OVER w, ntile(2) OVER w, percent_rank() OVER w, cume_dist() OVER w",
    "lead(id, 1, 0) OVER w, first_value(n) OVER w, last_value(n) OVER w, nth_value(id, 2) OVER w, lag(n) IGNORE NULLS OVER w",
    "sum(n) OVER (PARTITION BY ok ORDER BY id), avg(f) OVER (), collect_list(id) OVER w, max(n) OVER (ORDER BY id ROWS 1 PRECEDING)",
]


@pytest.fixture(scope="module", autouse=True)
def views(spark):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name, table in TABLES.items():
        spark.createDataFrame(table).createOrReplaceTempView(name)
    yield
    for name in TABLES:
        spark.catalog.dropTempView(name)
    spark.conf.set("spark.sql.session.timeZone", zone)


def plain(value: Any) -> Any:
    """A value in a form in which whole numbers, decimals and floats compare."""
    match value:
        case bool() | None:
            return value
        case int() | float() | Decimal():
            return float(f"{float(value):.9g}")
        case list():
            return [plain(item) for item in value]
        case tuple():
            return tuple(map(plain, value))
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case bytearray():
            return bytes(value)
    return value


def rows(table: pa.Table) -> list[tuple]:
    return [tuple(map(plain, row)) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def unordered(found: list[tuple]) -> list[tuple]:
    return sorted(found, key=repr)


def both(text: str, spark) -> tuple[pa.Table, pa.Table]:
    return kleene.sql(spark, text).toArrow(), kleene.sql(text, tables=TABLES)


@pytest.mark.parametrize("text", AROUND)
def test_texts(text: str, spark) -> None:
    on_spark, here = both(text, spark)
    assert unordered(rows(here)) == unordered(rows(on_spark))
    assert here.num_rows
    assert here.column_names == on_spark.column_names


@pytest.mark.parametrize("text", ORDERED)
def test_order(text: str, spark) -> None:
    on_spark, here = both(text, spark)
    assert rows(here) == rows(on_spark)


@pytest.mark.parametrize("expressions", EXPRESSIONS)
def test_expressions(expressions: str, spark) -> None:
    on_spark, here = both(f"SELECT {expressions} FROM mixed ORDER BY id", spark)
    for number, column in enumerate(on_spark.column_names):
        assert rows(here.select([number])) == rows(on_spark.select([number])), column


@pytest.mark.parametrize("expressions", AGGREGATES)
def test_aggregates(expressions: str, spark) -> None:
    on_spark, here = both(f"SELECT {expressions} FROM mixed", spark)
    for number, column in enumerate(on_spark.column_names):
        assert rows(here.select([number])) == rows(on_spark.select([number])), column


@pytest.mark.parametrize("expressions", WINDOWS)
def test_windows(expressions: str, spark) -> None:
    on_spark, here = both(f"SELECT {expressions} FROM mixed WINDOW w AS (ORDER BY id) ORDER BY id", spark)
    for number, column in enumerate(on_spark.column_names):
        assert rows(here.select([number])) == rows(on_spark.select([number])), column

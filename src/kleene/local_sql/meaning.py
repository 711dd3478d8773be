"""What Spark means where DuckDB means something else: macros of DuckDB that a translated text calls."""

from __future__ import annotations

MACROS = (
    # A cast to a whole number cuts off; DuckDB's rounds.
    """CREATE MACRO kleene_whole(x DOUBLE) AS trunc(x), (x DECIMAL(38, 10)) AS trunc(x), (x BIGINT) AS x,
       (x HUGEINT) AS x, (x UBIGINT) AS x, (x UINTEGER) AS x, (x BOOLEAN) AS x,
       (x TIMESTAMPTZ) AS CAST(floor(epoch(x)) AS BIGINT),
       (x VARCHAR) AS CASE WHEN regexp_full_match(trim(x), '[+-]?[0-9]+') THEN x WHEN x IS NULL THEN x
                           ELSE error('''' || x || ''' is no whole number') END""",
    """CREATE MACRO kleene_try_whole(x DOUBLE) AS trunc(x), (x DECIMAL(38, 10)) AS trunc(x), (x BIGINT) AS x,
       (x HUGEINT) AS x, (x UBIGINT) AS x, (x UINTEGER) AS x, (x BOOLEAN) AS x,
       (x TIMESTAMPTZ) AS CAST(floor(epoch(x)) AS BIGINT),
       (x VARCHAR) AS CASE WHEN regexp_full_match(trim(x), '[+-]?[0-9]+') THEN x END""",
    # A time as text has no zone.
    """CREATE MACRO kleene_text(x) AS CAST(x AS VARCHAR),
       (x TIMESTAMPTZ) AS CAST(CAST(x AS TIMESTAMP) AS VARCHAR), (x TIMESTAMP) AS CAST(x AS VARCHAR),
       (x DATE) AS CAST(x AS VARCHAR)""",
    "CREATE MACRO kleene_divisor(x) AS CASE WHEN x = 0 THEN error('division by zero') ELSE x END",
    "CREATE MACRO kleene_start(x) AS CASE WHEN x = 0 THEN 1 ELSE x END",
    "CREATE MACRO kleene_pmod(a, b) AS ((a % kleene_divisor(b)) + b) % b",
    "CREATE MACRO kleene_weekday(x) AS isodow(x) - 1",
    "CREATE MACRO kleene_dayofweek(x) AS dayofweek(x) + 1",
    "CREATE MACRO kleene_add_days(x, n) AS CAST(x AS DATE) + CAST(n AS INTEGER)",
    "CREATE MACRO kleene_add_months(x, n) AS CAST(CAST(x AS DATE) + to_months(CAST(n AS INTEGER)) AS DATE)",
    "CREATE MACRO kleene_join(xs, x) AS CASE WHEN xs IS NOT NULL THEN coalesce(array_to_string(xs, x), '') END",
    # Whether an array with a NULL contains something else is unknown.
    "CREATE MACRO kleene_contains(xs, x) AS CASE WHEN x IS NULL THEN NULL WHEN list_contains(xs, x) THEN true "
    "WHEN list_has_any([true], list_transform(xs, lambda y: y IS NULL)) THEN NULL WHEN xs IS NULL THEN NULL "
    "ELSE false END",
)

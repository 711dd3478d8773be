"""The generators of row_strategies.py and regex_strategies.py: legal cases, most with results, and of every kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import kleene
from regex_strategies import by_random, make_query, random_regex_case, regex_queries, regex_tables
from row_strategies import make_clause, outcome, random_row_case, row_clauses, row_tables, same_result

NAN = float("nan")


def run_rows(clause: str, table: pa.Table) -> pa.Table:
    return kleene.match_recognize(clause).match(table, engine="reference")


def run_regex(arguments: dict[str, Any], table: pa.Table) -> pa.Table:
    return kleene.regex(**arguments).match(table, engine="reference")


# Cases are legal and give results.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("random_case", "run", "count"), [(random_row_case, run_rows, 300), (random_regex_case, run_regex, 150)]
)
def test_nearly_all_cases_are_legal_and_many_give_rows(
    random_case: Callable[[Random], tuple[Any, pa.Table]], run: Callable[[Any, pa.Table], pa.Table], count: int
) -> None:
    cases = [random_case(Random(seed)) for seed in range(count)]
    outcomes = [outcome(partial(run, query, table)) for query, table in cases]
    refused = [
        found
        for found in outcomes
        if isinstance(found, kleene.KleeneError) and not isinstance(found, kleene.ExecutionError)
    ]
    with_rows = [found for found in outcomes if isinstance(found, pa.Table) and found.num_rows]
    assert len(refused) <= 0.05 * count, refused[0]
    assert len(with_rows) >= 0.4 * count


def test_equal_seeds_give_equal_cases() -> None:
    (clause, table), (again, same_table) = random_row_case(Random(7)), random_row_case(Random(7))
    assert clause == again
    assert same_result(table, same_table)
    assert random_regex_case(Random(7))[0] == random_regex_case(Random(7))[0]


reproducible = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@reproducible
@given(row_clauses(), row_tables())
def test_drawn_clauses_run_and_give_the_same_twice(clause: str, table: pa.Table) -> None:
    assert same_result(*(outcome(lambda: run_rows(clause, table)) for _ in range(2)))


@reproducible
@given(regex_queries(), regex_tables())
def test_drawn_regexes_run_and_give_the_same_twice(arguments: dict[str, Any], table: pa.Table) -> None:
    assert same_result(*(outcome(lambda: run_regex(arguments, table)) for _ in range(2)))


# Every kind occurs.

ROW_FEATURES = {
    "PATTERN": [
        *(r"\w\*", r"\w\+", r"\w\?", r"\{2\}", r"\{2,\}", r"\{,2\}", r"\{1,3\}", r"\*\?", r"\+\?", r"\?\?", r"\}\?"),
        *(r" \| ", r"\)\*", r"\)\+", r"PERMUTE\([^,()]*, [^,()]*\)", r"PERMUTE\([^,()]*, [^,()]*, [^,()]*\)"),
        *(r"\{- ", r"-\}\+", r"\^ ", r" \$", r"PATTERN \(\(\)\)", r"\| \(\)"),
    ],
    "": [  # the whole clause
        *("ONE ROW PER MATCH", r"ALL ROWS PER MATCH\n", "SHOW EMPTY MATCHES", "OMIT EMPTY MATCHES"),
        *("WITH UNMATCHED ROWS", r"\nALL MATCHES\n", "SKIP PAST LAST ROW", "SKIP TO NEXT ROW", r"SKIP TO FIRST \w"),
        *(r"SKIP TO LAST \w", r"SKIP TO [A-E]\n", "SKIP TO (FIRST |LAST )?U", r"SUBSET U = \(\w, ", r"W = \("),
        *(r"WITHIN \d\n", r"WITHIN 2\.5", r"WITHIN \d ROWS", "WITHIN 5 seconds", "WITHIN INTERVAL", "MAXLENGTH"),
        *("PARTITION BY g", "PARTITION BY g, b", "PARTITION BY x % 2", r"\n\nORDER BY", "ORDER BY t\n", "ORDER BY f"),
        *("ORDER BY ts", "ORDER BY dd", "t DESC", "NULLS FIRST", "NULLS LAST", r"ORDER BY t % 4, t"),
    ],
    "DEFINE": [
        *(r"PREV\([A-E]\.x\)", r"NEXT\(\w+, 2\)", r"FIRST\([A-E]\.\w+, 1\)", r"LAST\([A-E]\.\w+, [12]\)", r"[( ]A\.x"),
        *(r"PREV\(LAST\([A-E]\.x, 1\), 2\)", r"NEXT\((RUNNING )?FIRST\(", r"CLASSIFIER\(\)", r"CLASSIFIER\([A-E]\)"),
        *(r"MATCH_NUMBER\(\)", r"count\(\*\)", r"count\([A-E]\.\*\)", r"count\(U\.\*\)", r"count\(DISTINCT "),
        *(r"sum\(([A-E]\.)?x\)", r"sum\(([A-E]\.)?y\)", r"sum\(([A-E]\.)?d\)", r"avg\(", r"min\(", r"max\("),
        *(r"sum\(DISTINCT ", r"avg\(DISTINCT ", r"stddev\(DISTINCT ", r"(sum|min|max)\(U\.", r"count\(\)"),
        *(r"bool_and\(", r"bool_or\(", r"every\(", r"any\(", r"some\(", r"count_if\(", r"any_value\(", r"arbitrary\("),
        *(r"max_by\(", r"min_by\(", r"stddev\(", r"var_pop\(", r"mode\(", r"median\(", r"listagg\(", "WITHIN GROUP"),
        *(r"FILTER \(WHERE ", r"string_agg\(.* ORDER BY", r"(sum|avg|min|max)\(MATCH_NUMBER", r"DISTINCT CLASSIFIER"),
        *("RUNNING LAST", r"PREV\(\(\w", r"(sum|avg|max)\(\(\w"),
        *(
            "CASE WHEN",
            r"CASE \S+ WHEN",
            r" IN \(",
            r" NOT IN \(",
            " BETWEEN ",
            " NOT BETWEEN ",
            " LIKE ",
            " NOT LIKE ",
        ),
        *(" IS NULL", " IS NOT NULL", r"coalesce\(", r"abs\(", r"least\(", r"greatest\(", "AS integer", "AS float"),
        *("AS string", "AS decimal", "AS boolean", "AS date", "AS timestamp", r" \|\| ", r"upper\(", r"lower\("),
        *(r"length\(", r"concat\(", r"floor\(", r"round\(", r"sqrt\(", r"power\(", r" \* ", r" % ", " / ", r"\(- "),
        *("TIMESTAMP '", "DATE '", "5 seconds", "INTERVAL '", " AND ", " OR ", "NOT ", "TRUE", "FALSE", "NULL"),
    ],
    "MEASURES": [
        *("FINAL (FIRST|LAST)", "FINAL (sum|min|max|avg)", "FINAL CLASSIFIER", "FINAL count", "RUNNING count"),
        *(
            r"collect_list\(",
            r"collect_set\(",
            r"max\(\w+, \d\)",
            r"min_by\(.*, \d\)",
            r"array_agg\(.* ORDER BY .* DESC",
        ),
        *(r"FINAL (max_by|any_value)", r"bool_and\(", r"max_by\(", r"FILTER \(WHERE ", r"WITHIN GROUP"),
        *(r"array_agg\(", r"array_agg\(DISTINCT ", r"FINAL array_agg\(", r"PREV\(FINAL LAST\(", r"MATCH_NUMBER\(\)"),
        *("CASE WHEN", "CAST", " / ", r" \|\| ", r"count\(DISTINCT ", r"sum\(DISTINCT ", "INTERVAL"),
    ],
}
REGEX_FEATURES = {
    "pattern": [r"\w\*", r"\w\+", r"\w\?", r"\)\*", r"\)\+", r"\)\?", r" \| ", r"\.[*+ ]", r"\+\?"],
    "predicates": [
        *(r"Count\(\)", r"First\(x\)", r"Last\(y\)", r"Max\(s\)", r"Min\(d\)", r"Sum\(x\)", r"Sum\(d\)", r"Average\("),
        *(r"Delta\(t\)", r"Delta\(ts\)", r"Collect\(x\) IS NOT NULL", r"Sum\(\(", "seconds", "TIMESTAMP"),
        *(" && ", r" \|\| ", r"\(! ", "NOT ", " AND ", " OR ", "CASE WHEN", " IN ", " LIKE ", " BETWEEN ", "CAST"),
        *(r" \+ ", r" \* ", r" / ", r" % ", r"coalesce\(", r"concat\("),
    ],
    "output": [
        *(r"Count\(\)", r"First\(", r"Last\(", r"Max\(", r"Min\(", r"Sum\(", r"Average\(", r"Delta\(", r"Collect\("),
        *(r"Collect\(\(", "'o0': 'x'", " / ", "CASE WHEN"),
    ],
    "order_by": ["t$", "f$", "ts$", r"\['"],
    "partition_by": [r"\[\]", "g$", r"\['g', 'b'\]"],
}


def missing(features: list[str], texts: list[str]) -> list[str]:
    everything = "\n\n".join(texts)
    return [feature for feature in features if not re.search(feature, everything, re.MULTILINE)]


@cache
def many_clauses() -> list[str]:
    return [make_clause(by_random(Random(seed))) for seed in range(4000)]


def part_of_clause(clause: str, word: str) -> str:
    return "\n".join(line for line in clause.splitlines() if line.startswith(word)) if word else clause


@pytest.mark.parametrize("word", ROW_FEATURES)
def test_every_feature_of_row_patterns_occurs(word: str) -> None:
    assert missing(ROW_FEATURES[word], [part_of_clause(clause, word) for clause in many_clauses()]) == []


@pytest.mark.parametrize("argument", REGEX_FEATURES)
def test_every_feature_of_regexes_occurs(argument: str) -> None:
    queries = [make_query(by_random(Random(seed))) for seed in range(1000)]
    assert missing(REGEX_FEATURES[argument], [str(query[argument]) for query in queries]) == []


def test_tables_hold_nulls_in_half_of_the_cases_and_odd_values_in_many() -> None:
    tables = [random_row_case(Random(seed))[1] for seed in range(300)]
    without_nulls = sum(not any(column.null_count for column in table.columns) for table in tables)
    assert 100 < without_nulls < 200
    assert {table.num_rows for table in tables} == set(range(15))
    assert {str(table.schema.field("g").type) for table in tables} == {"int64", "string"}
    floats = {str(value) for table in tables for value in table["y"].to_pylist()}
    assert {"nan", "inf", "-0.0", "0.0", "None"} <= floats


# Comparison of results.


def table_of(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (table_of(x=[1.0, NAN, None]), table_of(x=[1.0, NAN, None]), True),
        (table_of(x=[[NAN], None]), table_of(x=[[NAN], None]), True),
        (table_of(x=[0.0]), table_of(x=[-0.0]), True),
        (table_of(x=[0.1 + 0.2]), table_of(x=[0.3]), False),
        (table_of(x=[NAN]), table_of(x=[None]).cast(pa.schema({"x": pa.float64()})), False),
        (table_of(x=[1, 2]), table_of(x=[2, 1]), False),
        (table_of(x=[1]), table_of(x=[1, 1]), False),
        (table_of(x=[1]), table_of(x=[1.0]), False),
        (table_of(x=[1]), table_of(y=[1]), False),
        (kleene.ExecutionError("a"), kleene.ExecutionError("a"), True),
        (kleene.ExecutionError("a"), kleene.ExecutionError("b"), False),
        (kleene.ExecutionError("a"), kleene.AnalysisError("a"), False),
        (kleene.ExecutionError("a"), table_of(x=[1]), False),
    ],
)
def test_same_result(left: Any, right: Any, same: bool) -> None:
    assert same_result(left, right) is same
    assert same_result(right, left) is same

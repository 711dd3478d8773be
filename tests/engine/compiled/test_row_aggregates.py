"""Aggregates of row patterns in generated code, and of all matches at once: that they are used, and agree."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import kleene
from kleene.engine.by_column import interpreted
from regex_strategies import outcome, same_result

CONDITIONS = (
    "bool_and(x > 1)",
    "coalesce(every(A.b), TRUE)",
    "bool_or(x > 0) AND some(B.x < 9) AND any(x < 9)",
    "count_if(x >= 2) <= 2",
    "count(*) FILTER (WHERE x >= 2) <= 2",
    "count(B.x) FILTER (WHERE B.b) <= 1",
    "any_value(s) = 'p'",
    "max_by(t, x) >= t - 2",
    "coalesce(min_by(B.s, B.y) <> 'q', TRUE)",
    "max_by(s, s) FILTER (WHERE x > 0) <> 'r'",
    "coalesce(stddev(y) < 1.5, TRUE)",
    "var_pop(x) <= 1.0",
    "coalesce(variance(DISTINCT x) <= 2, TRUE)",
    "count(DISTINCT x) <= 2",
    "count(DISTINCT s) + count(DISTINCT B.s) <= 3",
    "count(DISTINCT y) FILTER (WHERE x > 0) < 4",
    "sum(DISTINCT x) <= 5",
    "coalesce(avg(DISTINCT B.x) < 2.5, TRUE)",
    "count(DISTINCT CLASSIFIER()) < 2",
    "count(DISTINCT concat(CLASSIFIER(), s)) <= 3",
    "min(CLASSIFIER()) = 'A' AND max(CLASSIFIER() || s) < 'Bz'",
    "sum(c * MATCH_NUMBER()) <= 20",
    "count(DISTINCT x + MATCH_NUMBER()) <= 2",
    "count_if(CLASSIFIER() = 'B') <= 1",
    "sum(2) < 7",
)


def made(size: int, seed: int = 1) -> pa.Table:
    random = Random(seed)

    def column(values: list[Any], nulls: float = 0.15) -> list[Any]:
        return [None if random.random() < nulls else random.choice(values) for _ in range(size)]

    return pa.table(
        {
            "t": pa.array(range(size)),
            "g": pa.array(column([1, 2, 3], 0.0)),
            "c": pa.array(column([1, 2, 3, 4, 5, 6], 0.0)),
            "x": pa.array(column([0, 1, 2, 3, 4]), pa.int32()),
            "y": pa.array(column([0.1, 0.25, 1e10, -3.5, 0.0, -0.0, float("nan"), float("inf")], 0.1)),
            "s": pa.array(column(["p", "q", "r", "ß"])),
            "b": pa.array(column([True, False])),
            "d": pa.array(column([Decimal("1.25"), Decimal("-0.50"), Decimal("3.00")]), pa.decimal128(10, 2)),
            "w": pa.array(column([10**15, 2 * 10**15, 3]), pa.timestamp("us")),
        }
    )


@pytest.mark.parametrize("condition", CONDITIONS)
def test_condition_with_an_aggregate_has_code_and_the_interpreters_result(condition: str) -> None:
    query = kleene.match_recognize(
        f"PARTITION BY g ORDER BY t MEASURES array_agg(CLASSIFIER()) AS k PATTERN ((A | B)+ X?) DEFINE A AS {condition}"
    )
    table = made(60)
    found = query.match(table, engine="generated")
    assert found.num_rows
    assert same_result(found, query.match(table, engine="reference"))


def test_machine_code_of_such_conditions_agrees() -> None:
    conditions = " AND ".join(
        f"({condition} OR t % {number + 3} = 0)" for number, condition in enumerate(CONDITIONS[12:19])
    )
    query = kleene.match_recognize(
        f"ORDER BY t MEASURES array_agg(CLASSIFIER()) AS k PATTERN ((A | B)+) WITHIN 9 ROWS DEFINE A AS {conditions}"
    )
    table = made(200)
    assert same_result(query.match(table, engine="compiled"), query.match(table, engine="reference"))


MEASURES = (
    *(
        "sum(x)",
        "sum(A.y)",
        "sum(d)",
        "avg(x)",
        "avg(B.y)",
        "min(y)",
        "max(B.s)",
        "min(b)",
        "max(w)",
        "min(d)",
    ),
    *("count(B.x)", "count(DISTINCT s)", "sum(DISTINCT y)", "avg(DISTINCT x)", "bool_and(b)", "bool_or(x > 3)"),
    *("count_if(b)", "any_value(A.s)", "any_value(x * 2)", "max_by(t, y)", "min_by(B.s, B.x)", "max_by(y * 2, s)"),
    *("stddev(y)", "stddev(x)", "var_pop(d)", "var_samp(DISTINCT x)", "array_agg(t)", "array_agg(B.s)"),
    *(
        "collect_list(y)",
        "collect_set(s)",
        "collect_set(y)",
        "count(*) FILTER (WHERE x > 1)",
        "sum(x) FILTER (WHERE s > 'p')",
    ),
    *(
        "max_by(w, x) FILTER (WHERE b)",
        "sum(x + c)",
        "max(upper(s))",
        "min(w)",
        "sum(2)",
        "count(B.*) FILTER (WHERE B.b)",
    ),
)


@pytest.mark.parametrize("measure", MEASURES)
def test_measure_of_all_matches_at_once_is_the_interpreters(measure: str) -> None:
    query = kleene.match_recognize(
        f"PARTITION BY g ORDER BY t MEASURES {measure} AS m PATTERN (A B* | C) DEFINE A AS c > 2, B AS c > 1"
    )
    table = made(150)
    expected = query.match(table, engine="reference")
    with mock.patch.object(interpreted, "RowBindings", side_effect=AssertionError("match by match")):
        found = query.match(table, engine="generated")
    assert expected.num_rows > 20
    assert same_result(found, expected)


@pytest.mark.parametrize(
    "measure", ["max(y) - min(y)", "CASE WHEN count(*) > 2 THEN sum(x) ELSE LAST(t) - MATCH_NUMBER() END"]
)
def test_combined_measure_needs_no_rows_either(measure: str) -> None:
    query = kleene.match_recognize(f"ORDER BY t MEASURES {measure} AS m PATTERN (A B*) DEFINE A AS c > 2, B AS c > 1")
    table = made(100)
    expected = query.match(table, engine="reference")
    with mock.patch.object(interpreted, "RowBindings", side_effect=AssertionError("match by match")):
        assert same_result(query.match(table, engine="generated"), expected)


def test_floats_are_added_from_left_to_right() -> None:
    random = Random(3)
    values = [random.choice([1e16, 1.0, -1e16, 0.1]) for _ in range(100)]
    query = kleene.match_recognize("ORDER BY t MEASURES sum(y) AS s, var_samp(y) AS v PATTERN (A{50})")
    table = pa.table({"t": range(100), "y": values})
    found = query.match(table, engine="compiled").to_pylist()
    assert found == query.match(table, engine="reference").to_pylist()
    assert [row["s"] for row in found] == [sum_of(values[:50]), sum_of(values[50:])]


def sum_of(values: list[float]) -> float:
    total = values[0]
    for value in values[1:]:
        total += value
    return total


@pytest.mark.parametrize(
    ("measure", "x"),
    [
        ("sum(x)", [2**62, 2**62]),
        ("sum(x)", [2**62, 2**62, -(2**62)]),
        ("sum(x * 2)", [2**62, 1]),
        ("count(*) FILTER (WHERE x * 4 > 0)", [1, 2**62]),
        ("max_by(x * 4, t)", [2**62, 1]),
    ],
)
def test_overflow_is_the_interpreters_error(measure: str, x: list[int]) -> None:
    query = kleene.match_recognize(f"ORDER BY t MEASURES {measure} AS m PATTERN (A+)")
    table = pa.table({"t": range(len(x)), "x": x})
    found, expected = (outcome(lambda e=e: query.match(table, engine=e)) for e in ("generated", "reference"))
    assert isinstance(found, kleene.ExecutionError)
    assert "overflow" in str(found)
    assert same_result(found, expected)


def test_large_sums_that_fit_are_exact() -> None:
    table = pa.table({"t": [0, 1, 2], "x": [2**62, -(2**62), 2**62 - 1]})
    query = kleene.match_recognize("ORDER BY t MEASURES sum(x) AS s, avg(x) AS a PATTERN (A+)")
    assert query.match(table, engine="generated").to_pylist() == [{"s": 2**62 - 1, "a": (2**62 - 1) / 3}]


@pytest.mark.parametrize("measure", ["sum(d)", "avg(d)", "stddev(d)", "max(d)", "count(DISTINCT d)"])
def test_decimals_wider_than_machine_words(measure: str) -> None:
    wide = [Decimal(10) ** 30 + number for number in (0, 1, 1)]
    table = pa.table({"t": [0, 1, 2], "d": pa.array(wide, pa.decimal128(38, 0))})
    query = kleene.match_recognize(f"ORDER BY t MEASURES {measure} AS m PATTERN (A+)")
    assert same_result(query.match(table, engine="generated"), query.match(table, engine="reference"))


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("listagg(s) <> 'pq'", "listagg"),
        ("median(x) < 9", "median"),
        ("any_value(x ORDER BY t DESC) < 9", "ORDER BY"),
        ("count(x, s) < 9", "count"),
    ],
)
def test_explain_names_the_aggregate_without_code(condition: str, named: str) -> None:
    query = kleene.match_recognize(f"ORDER BY t MEASURES count(*) AS n PATTERN (A+) DEFINE A AS {condition}")
    told = str(query.explain(made(5)))
    assert "interpreter" in told or "reference" in told
    assert named in told

"""Measures by column: they are the interpreter's, for one row per match and for all rows, errors included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import kleene
from kleene.engine.by_column import measures as by_column
from kleene.engine.by_column import operators
from kleene.engine.by_column.forms import left_to_the_interpreter
from kleene.engine.by_column.numbers import added, multiplied, rounded_floats, scaled, subtracted
from kleene.ir import expr as ir
from kleene.ir.evaluate import evaluate
from kleene.schema import FLOAT, INTEGER
from regex_strategies import outcome, same_result
from row_strategies import random_measures_case

NAN, INFINITE = float("nan"), float("inf")
ONE, ALL = "ONE ROW PER MATCH", "ALL ROWS PER MATCH"
LARGE = 2**62


def answers(clause: str, table: pa.Table, engine: str = "generated") -> tuple[Any, Any]:
    query = kleene.match_recognize(clause)
    return outcome(lambda: query.match(table, engine=engine)), outcome(lambda: query.match(table, engine="reference"))


def clause(measures: str, rows: str, pattern: str = "A B*", rest: str = "DEFINE B AS B.x >= 0 OR B.x IS NULL") -> str:
    return f"PARTITION BY g ORDER BY t MEASURES {measures} {rows} PATTERN ({pattern}) {rest}"


def table_of(**columns: Any) -> pa.Table:
    size = len(next(iter(columns.values())))
    return pa.table({"g": [1] * size, "t": range(size), **columns})


@contextmanager
def only_by_column() -> Iterator[None]:
    with mock.patch.object(by_column, "interpreted_values", side_effect=AssertionError("point by point")):
        yield


# --- generated measures ----------------------------------------------------------------------------------------------


class Reached:
    """Which parts of measures were computed by column, with FINAL or without, in both kinds of rows per match."""

    def __init__(self) -> None:
        self.parts: set[tuple[str, str, bool]] = set()
        self.columns = self.interpreted = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        plain, point_by_point = by_column.Measures._by_column, by_column.interpreted_values

        def watching(measures: by_column.Measures, expression: ir.Expr) -> pa.Array:
            made = plain(measures, expression)
            rows = measures.matches.columns.query.rows_per_match.value.split()[0]
            for node in ir.walk(expression) if len(made) else ():
                name = node.function if isinstance(node, ir.Aggregate) else type(node).__name__
                self.parts.add((rows, str(name), bool(getattr(node, "final", False))))
            self.columns += 1
            return made

        def counting(*arguments: Any) -> Any:
            self.interpreted += 1
            return point_by_point(*arguments)

        with (
            mock.patch.object(by_column.Measures, "_by_column", watching),
            mock.patch.object(by_column, "interpreted_values", counting),
        ):
            yield


BOTH = ("sum", "avg", "min", "max", "count", "array_agg", "any_value", "max_by", "bool_and", "Navigation")
ALONE = (
    "stddev",
    "Arithmetic",
    "Case",
    "Cast",
    "Comparison",
    "In",
    "And",
    "Function",
    "MatchNumber",
    "Negate",
    "IsNull",
)


def test_generated_measures_are_the_interpreters_and_nearly_all_are_by_column() -> None:
    reached = Reached()
    with reached.watched():
        for seed in range(330):
            said, table = random_measures_case(Random(seed))
            found, expected = answers(said, table)
            assert same_result(found, expected), (seed, said, found, expected)
    wanted = {(rows, name, final) for rows in ("ONE", "ALL") for name in BOTH for final in (False, True)}
    wanted |= {(rows, name, False) for rows in ("ONE", "ALL") for name in ALONE}
    wanted |= {("ALL", "Classifier", final) for final in (False, True)}
    assert wanted - reached.parts == set()
    assert reached.interpreted < 0.03 * reached.columns


def test_machine_codes_loops_agree() -> None:
    measures = (
        "sum(x) AS a, avg(y) AS b, min(s) AS c, max(y) AS d, var_pop(y) AS e, FINAL sum(y) AS f, min(A.x) AS h, "
        "sum(big) AS i, PREV(LAST(x, 1)) + FIRST(x) AS j, CASE WHEN CLASSIFIER() = 'B' THEN count(U.*) END AS k"
    )
    random = Random(5)
    size = 500
    table = table_of(
        x=[random.choice([None, 0, 1, 2, -1]) for _ in range(size)],
        y=[random.choice([None, 0.1, -0.0, 0.0, 1e16, NAN, INFINITE]) for _ in range(size)],
        s=[random.choice([None, "p", "q", "ß"]) for _ in range(size)],
        big=[random.choice([LARGE, -LARGE, 7]) * (-1) ** number for number in range(size)],
    )
    rest = "SUBSET U = (A, B) DEFINE B AS count(*) < 4"
    for rows in (ONE, ALL):
        said = clause(measures if rows == ALL else measures.replace("FINAL ", ""), rows, rest=rest)
        found, expected = answers(said, table, "compiled")
        assert same_result(found, expected)


# --- named cases -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [ONE, ALL])
@pytest.mark.parametrize(
    ("measure", "x", "named"),
    [
        ("sum(x)", [LARGE, LARGE], "sum(x)"),
        ("sum(x) - 1", [LARGE, LARGE, -LARGE], "sum(x)"),
        ("FIRST(x) + LAST(x)", [LARGE, LARGE], "FIRST(x) + LAST(x)"),
        ("LAST(x) - FIRST(x)", [LARGE, -LARGE - 1], "LAST(x) - FIRST(x)"),
        ("count(*) * max(x)", [LARGE, LARGE], "count(*) * max(x)"),
        ("-min(x)", [-(2**63), 1], "-min(x)"),
        ("abs(min(x))", [-(2**63), 1], "abs(min(x))"),
        ("CAST(max(x) * 4.0 AS integer)", [LARGE, 1], "CAST(max(x) * 4.0 AS integer)"),
        ("CAST(sqrt(-1.0 * max(x)) AS integer)", [4, 4], "CAST(sqrt(-1.0 * max(x)) AS integer)"),
        ("sum(x * 3)", [1, LARGE], "x * 3"),
    ],
)
def test_overflow_is_the_interpreters_error_and_names_the_expression(
    measure: str, x: list[int], named: str, rows: str
) -> None:
    found, expected = answers(clause(f"{measure} AS m", rows, rest=""), table_of(x=x))
    assert isinstance(found, kleene.ExecutionError)
    assert same_result(found, expected)
    if not named.startswith("CAST(sqrt"):
        assert named.replace(" - 1", "") in found.message


def test_of_several_errors_the_first_match_tells_its_own() -> None:
    measures = "CAST(LAST(s) AS integer) AS a, LAST(x) * 4 AS b"
    table = table_of(x=[LARGE, 1], s=["1", "no"])
    for rows in (ONE, ALL):
        found, expected = answers(clause(measures, rows, "A", ""), table)
        assert "overflow: LAST(x) * 4" in found.message
        assert same_result(found, expected)


@pytest.mark.parametrize("rows", [ONE, ALL])
def test_an_error_in_a_branch_that_is_not_chosen_is_none(rows: str) -> None:
    measures = (
        "CASE WHEN max(x) < 9 THEN max(x) * 4611686018427387904 ELSE 0 END AS a, "
        "coalesce(count(*), CAST(LAST(s) AS integer)) AS b, max(x) < 0 AND CAST(LAST(s) AS integer) > 0 AS c"
    )
    table = table_of(x=[1, 99], s=["no", "no"])
    with only_by_column():
        found, expected = answers(clause(measures, rows, "A", ""), table)
    assert isinstance(found, pa.Table)
    assert same_result(found, expected)
    assert found.column("a").to_pylist() == [LARGE, 0]


@pytest.mark.parametrize("rows", [ONE, ALL])
def test_null_and_nan(rows: str) -> None:
    measures = (
        "sum(y) AS a, min(y) AS b, max(y) AS c, count(y) AS d, count(DISTINCT y) AS e, avg(x) AS f, "
        "min(y) < max(y) AS h, LAST(y) = LAST(y) AS i, LAST(y) IS NULL AS j, x / (x - x) AS k, x % 0 AS l, "
        "least(LAST(y), 1.5) AS m, greatest(y, NULL) AS n, floor(y) AS o, nullif(y, 1.0) AS p, "
        "CASE LAST(y) WHEN 1.0 THEN 'one' END AS q, sum(y) FILTER (WHERE y > 0) AS r, array_agg(y) AS u"
    )
    table = table_of(y=[NAN, None, 1.0, -0.0, INFINITE, None], x=pa.array([None] * 4 + [5, -5], pa.int64()))
    with only_by_column():
        found, expected = answers(clause(measures, rows, rest=""), table)
    assert same_result(found, expected)
    last = found.to_pylist()[-1]
    assert last["a"] != last["a"]
    assert (last["b"], last["c"], last["d"], last["e"], last["f"]) == (0.0, INFINITE, 4, 4, 0.0)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (ONE, [(0, None, None, None, 1), (0, None, None, None, 2)]),
        (ALL, [(0, None, None, None, 1), (0, None, None, None, 2)]),
        ("ALL ROWS PER MATCH OMIT EMPTY MATCHES", []),
    ],
)
def test_an_empty_match_has_null_measures_except_counts_and_its_number(rows: str, expected: list[Any]) -> None:
    measures = "count(*) AS a, sum(x) + 1 AS b, array_agg(x) AS c, CLASSIFIER() AS d, MATCH_NUMBER() AS e"
    table = table_of(x=[1, 2])
    with only_by_column():
        found, reference = answers(clause(measures, rows, "A*", "DEFINE A AS x > 9"), table)
    assert same_result(found, reference)
    assert [tuple(row[name] for name in "abcde") for row in found.to_pylist()] == expected


def test_excluded_rows_count_and_unmatched_rows_have_null_measures() -> None:
    table = table_of(x=[0, 1, 2, 3, 0])
    measures = "sum(x) AS s, FINAL count(*) AS n, CLASSIFIER() AS c"
    define = "DEFINE A AS x = 1, B AS x = 2, C AS x = 3"
    found, expected = answers(clause(measures, ALL, "A {- B -} C", define), table)
    assert same_result(found, expected)
    assert [(row["s"], row["n"], row["c"]) for row in found.to_pylist()] == [(1, 3, "A"), (6, 3, "C")]
    found, expected = answers(clause(measures, ALL + " WITH UNMATCHED ROWS", "A B C", define), table)
    assert same_result(found, expected)
    assert found.column("s").to_pylist() == [None, 1, 3, 6, None]


def test_running_and_final_of_subsets_with_offsets() -> None:
    table = table_of(x=[5, 1, 2, 3])
    measures = (
        "sum(U.x) AS a, FINAL sum(U.x) AS b, FIRST(U.x, 1) AS c, FINAL LAST(U.x, 1) AS d, PREV(LAST(U.x), 1) AS e, "
        "NEXT(x) AS f, CLASSIFIER(U) AS h, array_agg(x) AS i"
    )
    define = "SUBSET U = (B, C) DEFINE B AS x = 1, C AS x = 2"
    with only_by_column():
        found, expected = answers(clause(measures, ALL, "A B C D", define), table)
    assert same_result(found, expected)
    assert [tuple(row[name] for name in "abcdefhi") for row in found.to_pylist()] == [
        (None, 3, None, 1, None, 1, None, [5]),
        (1, 3, None, 1, 5, 2, "B", [5, 1]),
        (3, 3, 2, 1, 1, 3, "C", [5, 1, 2]),
        (3, 3, 2, 1, 1, None, "C", [5, 1, 2, 3]),
    ]


@pytest.mark.parametrize("rows", [ONE, ALL])
def test_decimals_are_exact(rows: str) -> None:
    measures = (
        "sum(d) AS a, avg(d) AS b, max(d) - min(d) AS c, LAST(d) * LAST(d) AS e, LAST(d) + 1 AS f, d > 0.1 AS h, "
        "CAST(d AS float) AS i, CAST(d AS decimal(9, 1)) AS j, CAST(sum(d) AS integer) AS k, d % 0.3 AS l, abs(d) AS m"
    )
    values = [Decimal("0.10"), Decimal("-0.25"), None, Decimal("0.15"), Decimal("-7.35")]
    table = table_of(d=pa.array(values, pa.decimal128(9, 2)))
    with only_by_column():
        found, expected = answers(clause(measures, rows, rest=""), table)
    assert same_result(found, expected)
    assert found.column("a").to_pylist()[-1] == Decimal("-7.35")
    assert found.column("j").to_pylist()[-1] == Decimal("-7.4")


@pytest.mark.parametrize("rows", [ONE, ALL])
def test_decimals_of_more_than_64_bits_are_left_to_the_interpreter(rows: str) -> None:
    wide = pa.array([Decimal(10) ** 30, Decimal(10) ** 18], pa.decimal128(38, 0))
    narrow = pa.array([Decimal(9 * 10**18), Decimal(9 * 10**18)], pa.decimal128(19, 0))
    measures = "sum(w) + 1 AS a, LAST(w) * 2 AS b, sum(d) AS c, avg(d) AS e, max(d) * max(d) AS f, d / 3 AS h"
    found, expected = answers(clause(measures, rows, rest=""), table_of(w=wide, d=narrow))
    assert isinstance(found, pa.Table)
    assert same_result(found, expected)


def test_columns_keep_their_types_where_there_is_no_match() -> None:
    table = table_of(x=pa.array([1, 2], pa.int16()), s=pa.array(["a", "b"]).dictionary_encode(), y=[1.0, 2.0])
    measures = "max(x) AS a, sum(x) AS b, upper(LAST(s)) AS c, array_agg(x) AS d, CASE WHEN y > 1 THEN s END AS e"
    for rows in (ONE, ALL):
        found, expected = answers(clause(measures, rows, "A", "DEFINE A AS x > 5"), table)
        assert found.num_rows == 0
        assert same_result(found, expected)


def test_rows_of_matches_that_overlap_are_computed_once() -> None:
    query = kleene.match_recognize(
        "ORDER BY t MEASURES sum(exp(y)) AS s AFTER MATCH SKIP TO NEXT ROW PATTERN (A B{,20})"
    )
    table = pa.table({"t": range(100), "y": [0.0] * 100})
    with mock.patch.object(operators, "evaluate", wraps=operators.evaluate) as interpreter:
        found = query.match(table, engine="generated")
    assert found.column("s").to_pylist()[0] == 21.0
    assert interpreter.call_count == 100


def test_a_measure_that_nests_deeply_is_computed() -> None:
    nested = "x" + " + 1" * 90
    for rows in (ONE, ALL):
        found, expected = answers(clause(f"{nested} AS m", rows, rest=""), table_of(x=[1, 2]))
        assert isinstance(found, pa.Table)
        assert same_result(found, expected)


# --- EXPLAIN ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "named"),
    [
        ("sum(x) / count(*) + abs(LAST(x))", None),
        ("round(avg(y), 2)", None),
        ("array_agg(x)", None),
        ("median(x) + 1", "median(x)"),
        ("upper(LAST(s)) || 'x'", "upper(LAST(s)) || 'x'"),
        ("size(array_agg(x)) > 2", "size(array_agg(x))"),
        ("CASE WHEN ln(y) > 0 THEN 1 END", "ln(y)"),
        ("listagg(s ORDER BY x)", "listagg(s ORDER BY x)"),
    ],
)
def test_explain_names_what_has_no_column_form(measure: str, named: str | None) -> None:
    query = kleene.match_recognize(f"ORDER BY t MEASURES {measure} AS m PATTERN (A+)")
    lines = query.explain(table_of(x=[1], y=[1.0], s=["a"])).splitlines()
    said = [line for line in lines if line.startswith("measures ")]
    wanted = f"measures   by column, except that the interpreter computes value by value: {named}"
    assert said == ([] if named is None else [wanted])


def test_explain_says_nothing_of_columns_where_the_interpreter_runs_all() -> None:
    query = kleene.match_recognize("ORDER BY t MEASURES median(x) AS m PATTERN (A+)")
    assert "by column" not in query.explain(table_of(x=[1]), engine="reference")


def test_what_is_left_is_the_largest_part() -> None:
    inner = ir.Function("upper", (ir.Attribute(None, "s"),))
    assert list(left_to_the_interpreter(ir.Function("lower", (inner,)))) == [ir.Function("lower", (inner,))]


# --- numbers ---------------------------------------------------------------------------------------------------------

EDGES = [0, 1, -1, 3, 2**31, LARGE, LARGE + 1, -LARGE, -LARGE - 1, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize(
    ("function", "exact"),
    [(added, lambda a, b: a + b), (subtracted, lambda a, b: a - b), (multiplied, lambda a, b: a * b)],
)
def test_whole_numbers_are_right_or_not_trusted(function: Any, exact: Any) -> None:
    pairs = [(one, other) for one in EDGES for other in EDGES]
    left, right = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        values, is_bad = function(left, right)
    for number, (one, other) in enumerate(pairs):
        right_one = exact(one, other)
        assert is_bad[number] or values[number] == right_one
        if abs(right_one) < 2**61:
            assert not is_bad[number]


def test_floats_are_rounded_as_the_digits_that_people_see() -> None:
    random = Random(1)
    values = [random.uniform(-1, 1) * 10 ** random.randint(-4, 9) for _ in range(300)]
    values += [random.randint(-(10**6), 10**6) / 1000 for _ in range(300)]
    values += [0.0, -0.0, 0.5, 1.5, 2.675, -0.001, 1e300, NAN, INFINITE]
    operand = ir.Attribute(None, "y", type=FLOAT)
    for places in (0, 1, 2, 5):
        call = ir.Function("round", (operand, ir.Literal(places, INTEGER, type=INTEGER)), type=FLOAT)
        found, is_close = rounded_floats(np.array(values), places)
        for value, rounded, close in zip(values, found.tolist(), is_close.tolist(), strict=True):
            expected = evaluate(call, mock.Mock(value=lambda _, value=value: value))
            assert close or repr(rounded) == repr(expected), (value, places)
        assert is_close.sum() < 200


def test_decimals_are_rounded_half_away_from_zero() -> None:
    values, is_bad = scaled(np.array([25, -25, 24, -26, 0]), 2, 1)
    assert values.tolist() == [3, -3, 2, -3, 0]
    assert is_bad is None

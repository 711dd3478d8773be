"""Hostile clauses, patterns, tables and functions for the row patterns and for the regular-expression operator."""

from __future__ import annotations

import random
import re
from typing import Any

import pyarrow as pa
import pytest

import kleene
from quick import first_is_quick

NAN = float("nan")
ROWS = pa.table({"t": [1, 2, 3, 4], "x": [1, 2, 3, 4]})
LONG = pa.table({"t": list(range(24)), "x": [1] * 24})


pytestmark = pytest.mark.usefixtures("in_time")


def rows(clause: str, table: pa.Table = ROWS) -> list[dict[str, Any]]:
    return kleene.match_recognize(clause).match(table).to_pylist()


def regex(pattern: Any, predicates: Any, output: Any, table: pa.Table = ROWS, **more: Any) -> list[dict[str, Any]]:
    more = {"order_by": "t", **more}
    return kleene.regex(pattern=pattern, predicates=predicates, output=output, **more).match(table).to_pylist()


def classified(pattern: str, define: str = "", table: pa.Table = ROWS) -> list[str]:
    found = rows(f"ORDER BY t MEASURES array_agg(classifier()) AS c PATTERN ({pattern}) {define}", table)
    return ["".join(row["c"] or []) for row in found]


# --- patterns that explode -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "define"),
    [
        ("(A*)* B", "B AS x = 9"),
        ("(A | B)* C", "C AS x = 9"),
        ("(A | B)* C", "C AS C.x = 9 AND count(A.*) = 3"),
        ("((((A?){1000}){1000}){1000}){1000}", "A AS x = 9"),
    ],
)
def test_a_pattern_that_explodes_gives_an_answer_or_an_error_in_time(pattern, define):
    try:
        found = rows(f"ORDER BY t MEASURES count(*) AS n PATTERN ({pattern}) DEFINE {define}", LONG)
    except kleene.KleeneError:
        return
    assert not any(row["n"] for row in found)


def test_ways_of_a_regex_that_come_to_the_same_are_followed_once():
    table = pa.table({"t": list(range(300)), "x": [1] * 300})
    assert regex("(a|a)*(a|a)*(a|a)* b", {"a": "x > 0", "b": "x = 9"}, {"n": "Count()"}, table) == []


# --- preference, beside Python's own regular expressions -------------------------------------------------------------

LETTERS = {"A": "ab", "B": "bc", "C": "c", "D": "a"}


def random_pattern(chance: random.Random, depth: int, quantifiers: list[str]) -> tuple[str, str]:
    kind = chance.random()
    if depth == 0 or kind < 0.3:
        name = chance.choice("ABCD")
        return name, f"[{LETTERS[name]}]"
    (left, left_re), (right, right_re) = (random_pattern(chance, depth - 1, quantifiers) for _ in "lr")
    if kind < 0.55:
        return f"{left} {right}", left_re + right_re
    if kind < 0.75:
        return f"({left} | {right})", f"(?:{left_re}|{right_re})"
    quantifier = chance.choice(quantifiers)
    return f"({left}){quantifier}", f"(?:{left_re}){quantifier.replace('{,', '{0,')}"


def conditions(pattern: str) -> dict[str, str]:
    return {
        name: " OR ".join(f"s = '{letter}'" for letter in letters)
        for name, letters in LETTERS.items()
        if name in pattern
    }


@pytest.mark.parametrize("seed", first_is_quick(range(8)))
def test_preference_is_that_of_backtracking(seed):
    chance = random.Random(seed)
    for _ in range(60):
        pattern, same = random_pattern(chance, 3, ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}", "{2,}?"])
        text = "".join(chance.choice("abc") for _ in range(chance.randint(1, 6)))
        expected, at = [], 0
        while at < len(text):
            found = re.compile(same).match(text, at)
            if found:
                expected.append((at if found[0] else None, len(found[0])))
            at += max(len(found[0]) if found else 0, 1)
        define = ", ".join(f"{name} AS {condition}" for name, condition in conditions(pattern).items())
        given = rows(
            f"ORDER BY t MEASURES FIRST(t) AS f, count(*) AS n PATTERN ({pattern}) DEFINE {define}",
            pa.table({"t": list(range(len(text))), "s": list(text)}),
        )
        assert [(row["f"], row["n"]) for row in given] == expected, (pattern, text)


@pytest.mark.parametrize("seed", range(4))
def test_a_regex_reports_the_longest_of_what_completes_first(seed):
    chance = random.Random(seed)
    for _ in range(60):
        pattern, same = random_pattern(chance, 3, ["*", "+", "?"])
        if re.fullmatch(same, ""):
            continue
        text = "".join(chance.choice("abc") for _ in range(chance.randint(1, 8)))
        expected, base = [], 0
        for end in range(1, len(text) + 1):
            start = next((start for start in range(base, end) if re.fullmatch(same, text[start:end])), None)
            if start is not None:
                expected.append({"f": start, "n": end - start})
                base = end
        table = pa.table({"t": list(range(len(text))), "s": list(text)})
        assert regex(pattern, conditions(pattern), {"f": "First(t)", "n": "Count()"}, table) == expected, (
            pattern,
            text,
        )


@pytest.mark.parametrize(
    ("pattern", "define", "expected"),
    [
        ("(A$ | B)+", "", ["BBBA"]),
        ("(A | ^B)+", "", ["AAAA"]),
        ("(^A)*", "", ["A", "", "", ""]),
        ("(A$)*", "", ["", "", "", "A"]),
        ("(() | A)*", "", ["", "", "", ""]),
        ("(A | ())*", "", ["AAAA"]),
        ("(A | A B)(C | B D)", "", ["AC", "AC"]),
        ("PERMUTE(PERMUTE(A, B), C)", "DEFINE A AS x = 3", ["CBA"]),
        ("PERMUTE(A, B, C)", "DEFINE A AS x = 3, B AS x = 1", ["BCA"]),
        ("(A | B)+", "DEFINE A AS A.x > 2, B AS count(A.*) = 0", ["BBAA"]),
        ("A B+", "DEFINE B AS PREV(A.x) IS NULL AND FIRST(B.x) = B.x", ["AB"]),
        ("A+", "DEFINE A AS count(*) <= MATCH_NUMBER()", ["A", "AA", "A"]),
        ("A B", "DEFINE A AS B.x IS NULL AND sum(B.x) IS NULL AND count(B.*) = 0", ["AB", "AB"]),
        ("A B", "DEFINE B AS PREV(CLASSIFIER()) = 'A' AND NEXT(CLASSIFIER()) IS NULL", ["AB", "AB"]),
        ("A+ B*", "SUBSET U = (A, B) DEFINE A AS sum(U.x) <= 3, B AS sum(U.x) > 3", ["AABB"]),
        ('"a" A', 'DEFINE A AS "a".x < A.x', ["aA", "aA"]),
    ],
)
def test_corners_of_patterns(pattern, define, expected):
    assert classified(pattern, define) == expected


# --- measures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("B.x", [None, 2, 3]),
        ("FINAL FIRST(B.x)", [2, 2, 2]),
        ("FINAL LAST(B.x, 1)", [2, 2, 2]),
        ("RUNNING LAST(B.x, 1)", [None, None, 2]),
        ("FIRST(x, 9223372036854775807)", [None, None, None]),
        ("PREV(x)", [None, 1, 2]),
        ("NEXT(x)", [2, 3, 4]),
        ("NEXT(x, 9223372036854775807)", [None, None, None]),
        ("PREV(x, 0)", [1, 2, 3]),
        ("PREV(LAST(B.x), 2)", [None, None, 1]),
        ("NEXT(FIRST(A.x), 3)", [4, 4, 4]),
        ("sum(B.x)", [None, 2, 5]),
        ("FINAL sum(B.x)", [5, 5, 5]),
        ("count(B.*)", [0, 1, 2]),
        ("array_agg(CLASSIFIER(U))", [["A"], ["A", "B"], ["A", "B", "B"]]),
        ("LAST(CLASSIFIER(U), 1)", [None, "A", "B"]),
        ("FINAL CLASSIFIER(A)", ["A", "A", "A"]),
        ("NEXT(CLASSIFIER())", ["B", "B", None]),
    ],
)
def test_measures_of_every_row(measure, expected):
    found = rows(
        f"""ORDER BY t MEASURES {measure} AS m ALL ROWS PER MATCH PATTERN (A B+) SUBSET U = (A, B)
            DEFINE A AS x = 1, B AS x < 4"""
    )
    assert [row["m"] for row in found] == expected


def test_distinct_values_and_odd_floats():
    table = pa.table({"t": [1, 2, 3, 4, 5], "f": [NAN, 1.0, -0.0, 0.0, NAN], "n": [None, 1, 1, None, 2]})
    (row,) = rows(
        """ORDER BY t MEASURES max(f) AS most, min(f) AS least, count(DISTINCT f) AS f, count(DISTINCT n) AS n,
           array_agg(DISTINCT n) AS ns, sum(DISTINCT n) AS total, avg(DISTINCT n) AS mean PATTERN (A+)""",
        table,
    )
    assert row == {"most": 1.0, "least": 0.0, "f": 3, "n": 2, "ns": [None, 1, 2], "total": 3, "mean": 1.5}
    parts = rows("PARTITION BY f ORDER BY t MEASURES array_agg(t) AS ts PATTERN (A+)", table)
    assert [part["ts"] for part in parts] == [[2], [3, 4], [1, 5]]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([{"a": 1}, None]),
        pa.array([[1], None]),
        pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        pa.array([b"\x00\xff", None]),
        pa.array([2**64 - 1, None], pa.uint64()),
        pa.array([-9 * 10**17, 3 * 10**18], pa.timestamp("us")),
        pa.array([-(10**6), 10**7], pa.date32()),
        pa.array([0, None], pa.timestamp("us", "Europe/Zurich")),
        pa.nulls(2),
    ],
    ids=lambda array: str(array.type),
)
def test_what_is_only_passed_on_may_be_of_any_type(array):
    table = pa.table({"t": [1, 2], "c": array})
    one = kleene.match_recognize("ORDER BY t MEASURES FIRST(c) AS f, array_agg(c) AS a PATTERN (A+)").match(table)
    assert one["f"].combine_chunks().equals(array.slice(0, 1))
    assert one["a"].combine_chunks().flatten().equals(array)
    every = kleene.match_recognize("ORDER BY t ALL ROWS PER MATCH PATTERN (A)").match(table)
    assert every["c"].combine_chunks().equals(array)
    collected = kleene.regex(pattern=". .", order_by="t", predicates={}, output={"c": "Collect(c)"}).match(table)
    assert collected["c"].combine_chunks().flatten().equals(array)


# --- after the match, and empty ones ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows_per_match", "expected"),
    [
        ("SHOW EMPTY MATCHES", [(1, None, 1, 0), (2, "B", 2, 1), (3, "B", 2, 2), (4, None, 3, 0)]),
        ("OMIT EMPTY MATCHES", [(2, "B", 2, 1), (3, "B", 2, 2)]),
        ("WITH UNMATCHED ROWS", [(1, None, 1, 0), (2, "B", 2, 1), (3, "B", 2, 2), (4, None, 3, 0)]),
    ],
)
def test_empty_matches(rows_per_match, expected):
    found = rows(
        f"""ORDER BY t MEASURES CLASSIFIER() AS c, MATCH_NUMBER() AS m, count(*) AS n
            ALL ROWS PER MATCH {rows_per_match} PATTERN (B*) DEFINE B AS x IN (2, 3)"""
    )
    assert [(row["t"], row["c"], row["m"], row["n"]) for row in found] == expected


@pytest.mark.parametrize(
    ("skip", "pattern"), [("TO B", "A B?"), ("TO FIRST B", "A B?"), ("TO A", "A+?"), ("TO LAST U", "A B?")]
)
def test_a_skip_that_cannot_be_done(skip, pattern):
    clause = f"ORDER BY t MEASURES count(*) AS n AFTER MATCH SKIP {skip} PATTERN ({pattern}) SUBSET U = (A)"
    with pytest.raises(kleene.KleeneError, match="AFTER MATCH SKIP TO"):
        rows(clause + " DEFINE A AS x < 9" + (", B AS x > 9" if "B" in pattern else ""))


# --- clauses that are refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "clause",
    [
        "\x00",
        ";",
        "ORDER BY t MEASURES 1 AS \ud800 PATTERN (A)",
        'ORDER BY t MEASURES 1 AS "\ud800" PATTERN (A)',
        "ORDER BY t MEASURES '\ud800' AS n PATTERN (A)",
        'ORDER BY t MEASURES CLASSIFIER() AS n PATTERN ("\ud800")',
        'ORDER BY t MEASURES 1 AS "" PATTERN (A)',
        "ORDER BY t MEASURES 1 AS a, 2 AS A PATTERN (A)",
        "ORDER BY t MEASURES 1 AS n PATTERN (A{2,1})",
        "ORDER BY t MEASURES 1 AS n PATTERN (A{1000}{1000})",
        "ORDER BY t MEASURES 1 AS n PATTERN (PERMUTE(A, B, C, D, E, F, G, H, I))",
        "ORDER BY t MEASURES 1 AS n PATTERN (A) PATTERN (A)",
        "MEASURES 1 AS n ORDER BY t PATTERN (A)",
        "ORDER BY t MEASURES 1 AS n PATTERN (A) DEFINE A AS x > 1 /* unclosed",
        "ORDER BY t MEASURES 1 AS n PATTERN (A) DEFINE A AS 'unclosed",
        "ORDER BY t MEASURES 1 AS n PATTERN (A) MAXLENGTH 99999999999999999999",
        "ORDER BY t MEASURES sum(9223372036854775807 - t) AS n PATTERN (A+)",
        "ORDER BY x + 9223372036854775807 MEASURES 1 AS n PATTERN (A)",
        f"ORDER BY t MEASURES 1 AS n PATTERN ({'(' * 5000}A{')' * 5000})",
        f"ORDER BY t MEASURES 1 AS n PATTERN (A) DEFINE A AS {'CASE WHEN x > 1 THEN ' * 500} TRUE {'END ' * 500}",
    ],
    ids=lambda clause: ascii(clause)[:60],
)
def test_clauses_that_are_refused(clause):
    with pytest.raises(kleene.KleeneError) as caught:
        rows(clause)
    str(caught.value).encode()


# --- functions of a regex --------------------------------------------------------------------------------------------


class SilentError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def failing(_: object) -> bool:
    raise SilentError


@pytest.mark.parametrize(
    "function",
    [failing, lambda _: 1, lambda _: [1], lambda _: NAN, lambda: True, lambda _: 1 // 0, lambda x: (i for i in [x])],
)
def test_functions_that_fail_or_give_odd_things(function):
    with pytest.raises(kleene.KleeneError, match="'f'"):
        regex("a", {"a": "f(x)"}, {"n": "Count()"}, functions={"f": function})


def test_a_function_cannot_change_what_was_collected():
    def greedy(values: list[int]) -> bool:
        values.clear()
        return True

    with pytest.warns(kleene.KleeneWarning, match="its argument 'values'"):
        found = regex(". a", {"a": "f(Collect(x))"}, {"c": "Collect(x)"}, functions={"f": greedy})
    assert found == [{"c": [1, 2]}, {"c": [3, 4]}]


@pytest.mark.parametrize("name", ["abs", "Sum", "Count"])
def test_a_function_cannot_take_the_name_of_one_that_exists(name):
    with pytest.raises(kleene.KleeneError, match=name):
        regex("a", {"a": "x > 0"}, {"n": "t"}, functions={name: lambda _: 1000})


@pytest.mark.parametrize("pattern", ["a,b", "a-b", "5", "a**"])
def test_a_regex_says_what_it_expects_in_its_own_words(pattern):
    with pytest.raises(kleene.KleeneError) as caught:
        regex(pattern, {"a": "x > 0", "b": "x > 0"}, {"n": "Count()"})
    for foreign in ("VBAR", "PERMUTE", "Expected none", "{-"):
        assert foreign not in str(caught.value)

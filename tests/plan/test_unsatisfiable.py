"""Contradictions between predicates: those that are found, those that look like one, and none where events exist."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kleene
from kleene.analysis.analyze import analyze
from kleene.ir import expr as ir
from kleene.ir.evaluate import evaluate
from kleene.ir.text import expression_text
from kleene.plan.unsatisfiable import why_never
from kleene.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    STRING,
    UNKNOWN,
    EventSchema,
    Type,
    decimal,
    timestamp,
)


def reproducible(examples: int) -> settings:
    """Derandomized, so that a failure in CI is a failure everywhere."""
    slow = [HealthCheck.too_slow]
    return settings(deadline=None, derandomize=True, database=None, suppress_health_check=slow, max_examples=examples)


TYPES: dict[str, Type] = {
    "t": INTEGER,
    "type": STRING,
    "x": INTEGER,
    "y": INTEGER,
    "f": FLOAT,
    "g": FLOAT,
    "s": STRING,
    "b": BOOLEAN,
    "d": decimal(2),
    "e": decimal(4),
    "day": DATE,
    "ts": timestamp(),
    "zoned": timestamp("Europe/Berlin"),
}


def predicates_of(
    where: str, types: Mapping[str, Type] | None = TYPES, pattern: str = "A a, B b, C c"
) -> list[ir.Expr]:
    """All conjuncts of the condition, typed; without types those of a query whose input is not known yet."""
    definition = kleene.sase(f"PATTERN SEQ({pattern}) WHERE {where}").definition
    schema = None if types is None else EventSchema(tuple(types.items()), "type")
    query = analyze(definition, schema, ("t",) if schema else ())
    parts = [part for item in query.components for part in (item.begin, item.take, item.complete)]
    return list(dict.fromkeys(conjunct.expression for part in parts for conjunct in part))


NEVER = {
    # bounds
    "a.x > 5 AND a.x < 3": "a.x > 5 and a.x < 3 cannot both hold",
    "a.x >= 5 AND a.x < 5": "a.x >= 5 and a.x < 5 cannot both hold",
    "a.x = 1 AND a.x = 2": "a.x = 1 and a.x = 2 cannot both hold",
    "a.x = 1 AND a.x != 1": "a.x = 1 and a.x != 1 cannot both hold",
    "a.x >= 1 AND a.x <= 1 AND a.x != 1": "a.x >= 1, a.x <= 1 and a.x != 1 cannot all hold",
    "3 > a.x AND 3 < a.x": "3 > a.x and 3 < a.x cannot both hold",
    "a.x BETWEEN 5 AND 3": "a.x >= 5 and a.x <= 3 cannot both hold",
    "a.x NOT BETWEEN 1 AND 5 AND a.x = 3": "(a.x < 1 OR a.x > 5) and a.x = 3 cannot both hold",
    "a.y = b.y AND a.x > 5 AND a.s = 'p' AND a.x < 3": "a.x > 5 and a.x < 3 cannot both hold",
    # types
    "a.x > 1 AND a.x < 2": "a.x > 1 and a.x < 2 cannot both hold",
    "a.x = 2.5": "a.x = 2.5 cannot hold",
    "a.x > 2 AND a.x < 2.5": "a.x > 2 and a.x < 2.5 cannot both hold",
    "a.x > 2.1 AND a.x < 2.9": "a.x > 2.1 and a.x < 2.9 cannot both hold",
    "a.f > 2 AND a.f < 1.5": "a.f > 2.0 and a.f < 1.5 cannot both hold",
    "a.s = 'p' AND a.s = 'q'": "a.s = 'p' and a.s = 'q' cannot both hold",
    "a.s > 'p' AND a.s < 'a'": "a.s > 'p' and a.s < 'a' cannot both hold",
    "a.b AND NOT a.b": "a.b and NOT a.b cannot both hold",
    "a.b = TRUE AND a.b = FALSE": "a.b = TRUE and a.b = FALSE cannot both hold",
    "a.b != TRUE AND a.b != FALSE": "a.b != TRUE and a.b != FALSE cannot both hold",
    "a.d > 1.06 AND a.d < 1.05": "a.d > 1.06 and a.d < 1.05 cannot both hold",
    "a.d > 1.05 AND a.d < 1.06": "a.d > 1.05 and a.d < 1.06 cannot both hold",
    "a.d = 1.055": "a.d = 1.055 cannot hold",
    "a.d = 1 AND a.d = 2": "a.d = 1 and a.d = 2 cannot both hold",
    "a.d < a.x AND a.x < 3 AND a.d > 3": "a.d < a.x, a.x < 3 and a.d > 3 cannot all hold",
    "a.d < a.e AND a.e < 1.0599 AND a.d >= 1.06": "a.d < a.e, a.e < 1.0599 and a.d >= 1.06 cannot all hold",
    "a.day > DATE '2024-01-01' AND a.day < DATE '2024-01-02'": (
        "a.day > DATE '2024-01-01' and a.day < DATE '2024-01-02' cannot both hold"
    ),
    "a.day > DATE '2024-01-01' AND a.day < TIMESTAMP '2024-01-02 00:00:00'": (
        "a.day > DATE '2024-01-01' and a.day < TIMESTAMP '2024-01-02 00:00:00' cannot both hold"
    ),
    "a.ts > TIMESTAMP '2024-01-02 00:00:00' AND a.ts < DATE '2024-01-02'": (
        "a.ts > TIMESTAMP '2024-01-02 00:00:00' and a.ts < DATE '2024-01-02' cannot both hold"
    ),
    "a.zoned > TIMESTAMP '2024-01-02 01:00:00' AND a.zoned < TIMESTAMP '2024-01-01 01:00:00'": (
        "a.zoned > TIMESTAMP '2024-01-02 01:00:00' and a.zoned < TIMESTAMP '2024-01-01 01:00:00' cannot both hold"
    ),
    "b.ts - a.ts > 5 minutes AND b.ts - a.ts < 3 minutes": (
        "b.ts - a.ts > 5 minutes and b.ts - a.ts < 3 minutes cannot both hold"
    ),
    # lists
    "a.x IN (1, 2) AND a.x = 3": "a.x IN (1, 2) and a.x = 3 cannot both hold",
    "a.x IN (1, 2) AND a.x > 2": "a.x IN (1, 2) and a.x > 2 cannot both hold",
    "a.x IN (1, 2) AND a.x IN (3, 4, NULL)": "a.x IN (1, 2) and a.x IN (3, 4, NULL) cannot both hold",
    "a.x IN (1, 2) AND a.x NOT IN (1, 2, 3)": "a.x IN (1, 2) and NOT a.x IN (1, 2, 3) cannot both hold",
    "a.x IN (1, 2) AND a.x IN (2, 3) AND a.x IN (1, 3)": (
        "a.x IN (1, 2), a.x IN (2, 3) and a.x IN (1, 3) cannot all hold"
    ),
    "a.x IN (b.x, 7) AND a.x > b.x AND a.x < 7": "a.x < 7, a.x IN (b.x, 7) and a.x > b.x cannot all hold",
    # NULL
    "a.x = NULL": "a.x = NULL cannot hold",
    "a.x IN (NULL)": "a.x IN (NULL) cannot hold",
    "a.x NOT IN (1, NULL)": "NOT a.x IN (1, NULL) cannot hold",
    "a.x IS NULL AND a.x = 1": "a.x IS NULL and a.x = 1 cannot both hold",
    "a.x IS NULL AND a.x IS NOT NULL": "a.x IS NULL and NOT a.x IS NULL cannot both hold",
    "a.x IS NULL AND a.x < 2.5": "a.x IS NULL and a.x < 2.5 cannot both hold",
    "a.x IS NULL AND a.x + 1 > 3": "a.x IS NULL and a.x + 1 > 3 cannot both hold",
    "a.s IS NULL AND a.s LIKE 'p%'": "a.s IS NULL and a.s LIKE 'p%' cannot both hold",
    "a.x IS NULL AND a.x = b.x": "a.x IS NULL and a.x = b.x cannot both hold",
    # constants
    "FALSE": "FALSE cannot hold",
    "NULL": "NULL cannot hold",
    "NOT TRUE": "NOT TRUE cannot hold",
    "1 = 2": "1 = 2 cannot hold",
    "NULL IS NOT NULL": "NOT NULL IS NULL cannot hold",
    # between values
    "a.x < a.x": "a.x < a.x cannot hold",
    "a.x != a.x": "a.x != a.x cannot hold",
    "a.x < b.x AND a.x > b.x": "a.x < b.x and a.x > b.x cannot both hold",
    "a.x = b.x AND b.x != a.x": "a.x = b.x and b.x != a.x cannot both hold",
    "a.x < b.x AND b.x < c.x AND c.x <= a.x": "a.x < b.x, b.x < c.x and c.x <= a.x cannot all hold",
    "a.x <= b.x AND b.x <= c.x AND c.x <= a.x AND a.x != c.x": (
        "a.x <= b.x, b.x <= c.x, c.x <= a.x and 1 more cannot all hold"
    ),
    "a.x < b.x AND b.x < 3 AND a.x > 5": "a.x > 5, a.x < b.x and b.x < 3 cannot all hold",
    "a.x = 1 AND b.x = 1 AND a.x != b.x": "a.x = 1, b.x = 1 and a.x != b.x cannot all hold",
    "a.x + b.x > 5 AND a.x + b.x < 3": "a.x + b.x > 5 and a.x + b.x < 3 cannot both hold",
    "a.x < a.f AND a.f < 3 AND a.x > 3.5": "a.x < a.f, a.f < 3.0 and a.x > 3.5 cannot all hold",
    "a.s LIKE 'p%' AND a.s NOT LIKE 'p%'": "a.s LIKE 'p%' and NOT a.s LIKE 'p%' cannot both hold",
    # alternatives
    "(a.x = 1 OR a.x = 2) AND a.x = 3": "(a.x = 1 OR a.x = 2) and a.x = 3 cannot both hold",
    "(a.x = 1 OR a.x IN (2, 5)) AND a.x = 3": "(a.x = 1 OR a.x IN (2, 5)) and a.x = 3 cannot both hold",
    "(a.x < a.x OR a.x > 5) AND a.x < 3": "(a.x < a.x OR a.x > 5) and a.x < 3 cannot both hold",
    "(a.x = 1 OR b.x = 2) AND (a.x = 2 OR b.x = 1) AND a.x = 3": (
        "a.x = 3, (a.x = 1 OR b.x = 2) and (a.x = 2 OR b.x = 1) cannot all hold"
    ),
    "a.x = 3 AND (a.s = 'p' OR a.s = 'q') AND (a.x = 1 OR a.x = 2)": (
        "a.x = 3 and (a.x = 1 OR a.x = 2) cannot both hold"
    ),
}


@pytest.mark.parametrize("where", NEVER)
def test_contradiction_is_found(where: str) -> None:
    assert why_never(predicates_of(where)) == NEVER[where]


POSSIBLE = [
    "TRUE",
    "1 = 1",
    "a.x > 3 AND a.x < 5",
    "a.x >= 5 AND a.x <= 5",
    "a.f > 1 AND a.f < 2",
    "a.x > 1 AND a.x < 2.5",
    "a.d > 1.05 AND a.d < 1.07",
    "a.e > 1.05 AND a.e < 1.06",
    "a.day > DATE '2024-01-01' AND a.day < TIMESTAMP '2024-01-02 00:00:01'",
    "a.ts > TIMESTAMP '2024-01-01 00:00:00' AND a.ts < TIMESTAMP '2024-01-01 00:00:01'",
    "a.x > 5 AND b.x < 3",
    "a.x > 5 AND a.y < 3",
    "a.x = 1 AND a.y = 2",
    "a.x IN (1, 2) AND a.x IN (2, 3)",
    "a.x IN (1, NULL) AND a.x = 1",
    "a.x NOT IN (1, 2) AND a.x IN (1, 2, 3)",
    "a.x IS NULL AND a.y = 1",
    "a.x IS NULL AND coalesce(a.x, 1) = 1",
    "a.x IS NULL AND a.f IS NOT NULL",
    "a.x = a.x AND a.x <= a.x",
    "a.x <= b.x AND b.x <= c.x AND c.x <= a.x",
    "a.x < b.x AND b.x < 7 AND a.x > 5 OR a.x = 1",
    "a.x != b.x AND a.x <= b.x",
    "(a.x = 1 OR b.x = 2) AND a.x = 3",
    "(a.x = 1 OR a.x IS NULL) AND a.y IS NULL",
    "a.x + 1 > 5 AND a.x < 3",
    "a.s LIKE 'p%' AND a.s NOT LIKE 'q%'",
    "a.b OR NOT a.b",
    "CAST(a.e AS DECIMAL(10, 2)) = 1.05 AND a.e > 1.05",
    "CAST(a.f AS INTEGER) = 1 AND a.f > 1",
    # What one is as an integer the other is not as a float.
    "a.x = 9007199254740993 AND a.x = 9007199254740992.0",
    "a.x < b.x AND b.x <= a.f AND a.f <= a.x",
    # 0.0 and -0.0 are equal, and their inverses are not.
    "power(-0.0, a.f) < 0 AND power(0.0, a.f) > 0",
]


@pytest.mark.parametrize("where", POSSIBLE)
def test_what_events_may_satisfy_is_left_alone(where: str) -> None:
    assert why_never(predicates_of(where)) is None


@pytest.mark.parametrize(
    ("where", "pattern"),
    [
        ("a[i].x > a[i-1].x AND a[i].x < a[i-1].x", "A+ a[], B b"),
        ("sum(a[].x) > 5 AND sum(a[].x) < 3", "A+ a[], B b"),
        ("a.LEN > 5 AND a.LEN < 6", "A+ a[], B b"),
    ],
)
def test_contradiction_between_events_of_one_variable(where: str, pattern: str) -> None:
    assert why_never(predicates_of(where, pattern=pattern)) is not None


def test_two_events_of_one_variable_differ() -> None:
    assert why_never(predicates_of("a[i].x > 5 AND a[1].x < 3 AND a[i-1].x = 4", pattern="A+ a[], B b")) is None


def test_missing_attribute_makes_no_contradiction() -> None:
    by_type = (("A", frozenset({"t", "x"})), ("B", frozenset({"t", "y"})), ("C", frozenset({"t"})))
    schema = EventSchema((("t", INTEGER), ("x", INTEGER), ("y", INTEGER)), "type", by_type)
    text = "PATTERN SEQ(ANY(A, B) a, C c) WHERE a.x > 5 AND a.x < 3"
    query = analyze(kleene.sase(text).definition, schema, ("t",))
    predicates = [conjunct.expression for conjunct in query.components[0].begin]
    assert any(isinstance(predicate, ir.IfPresent) for predicate in predicates)
    assert why_never(predicates) is None


def test_function_that_may_vary_says_nothing() -> None:
    x = ir.Attribute("a", "x", type=INTEGER)
    for call in (ir.PythonCall("f", len, (x,), type=UNKNOWN), ir.Function("rand", (x,), type=UNKNOWN)):
        both = [ir.Comparison(sign, call, ir.Literal(5, INTEGER, type=INTEGER), type=BOOLEAN) for sign in "<>"]
        assert why_never(both) is None


def test_without_types_only_what_holds_for_every_type_is_said() -> None:
    assert why_never(predicates_of("a.x > 5 AND a.x < 3", None)) == "a.x > 5 and a.x < 3 cannot both hold"
    assert why_never(predicates_of("a.s = 'p' AND a.s = 'q'", None)) == "a.s = 'p' and a.s = 'q' cannot both hold"
    assert why_never(predicates_of("a.x < b.x AND b.x < a.x", None)) == "a.x < b.x and b.x < a.x cannot both hold"
    assert why_never(predicates_of("a.x > 1 AND a.x < 2", None)) is None
    assert why_never(predicates_of("a.x + 1 > 1 AND a.x + 1 < 2", None)) is None
    # Two numbers that are one as floats, two that are one float and two decimals.
    assert why_never(predicates_of("a.x = 9007199254740993 AND a.x = 9007199254740992", None)) is None
    assert why_never(predicates_of("a.x > 0.1 AND a.x < 0.10000000000000001", None)) is None
    assert why_never(predicates_of("a.x * 0.1 = 3 AND a.x * 0.10000000000000001 != 3", None)) is None
    # If x and y are integers and f is a float, huge ones may satisfy this.
    assert why_never(predicates_of("a.x < b.y AND b.y <= a.f AND a.f <= a.x", None)) is None


def test_reason_is_short() -> None:
    long = " AND ".join(f"a.x{i} < a.x{i + 1}" for i in range(300))
    types = TYPES | {f"x{i}": INTEGER for i in range(301)}
    reason = why_never(predicates_of(f"a.s = '{'p' * 1000}' AND a.s = '{'q' * 1000}'"))
    cycle = why_never(predicates_of(f"{long} AND a.x300 < a.x0", types))
    assert reason is not None
    assert cycle is not None
    assert len(reason) <= 220
    assert cycle == "a.x0 < a.x1, a.x1 < a.x2, a.x2 < a.x3 and 298 more cannot all hold"


# --- compared with all assignments of small values -------------------------------------------------------------------

BIG = 2**53
FLOATS = [None, math.nan, -math.inf, -1.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, math.inf]
DOMAINS: dict[str, list[Any]] = {
    "x": [None, *range(-2, 7)],
    "y": [None, *range(-2, 7)],
    "f": FLOATS,
    "g": FLOATS,
    "s": [None, "", "a", "ab", "b", "c", "d"],
    "b": [None, False, True],
    "d": [None, *range(-50, 401, 25), 104, 105, 106],  # hundredths
}
NUMBERS, WORDS = ("x", "y", "f", "d"), ("s",)


class Assignment:
    """The values of attributes of one event, each by its name."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def value(self, expression: ir.Expr) -> Any:
        assert isinstance(expression, ir.Attribute)
        return self._values[expression.name]


def satisfying(predicates: Sequence[ir.Expr], domains: Mapping[str, list[Any]]) -> dict[str, Any] | None:
    nodes = (node for predicate in predicates for node in ir.walk(predicate))
    names = sorted({node.name for node in nodes if isinstance(node, ir.Attribute)})
    for values in product(*(domains[name] for name in names)):
        assignment = dict(zip(names, values, strict=True))
        if all(evaluate(predicate, Assignment(assignment)) is True for predicate in predicates):
            return assignment
    return None


SIGNS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


def atoms(names: Sequence[str], constants: Sequence[str]) -> st.SearchStrategy[str]:
    attribute = st.sampled_from([f"a.{name}" for name in names])
    constant = st.sampled_from([*constants, *constants, "NULL"])
    lists = st.lists(constant, min_size=1, max_size=3).map(", ".join)
    return st.one_of(
        st.builds("{} {} {}".format, attribute, SIGNS, constant),
        st.builds("{} {} {}".format, constant, SIGNS, attribute),
        st.builds("{} {} {}".format, attribute, SIGNS, attribute),
        st.builds("{} {}IN ({})".format, attribute, st.sampled_from(["", "NOT "]), lists),
        st.builds("{} IS {}NULL".format, attribute, st.sampled_from(["", "NOT "])),
    )


def conditions(atom: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    alternatives = st.lists(atom, min_size=2, max_size=3).map(lambda parts: f"({' OR '.join(parts)})")
    return st.lists(st.one_of(atom, atom, atom, alternatives), min_size=2, max_size=6).map(" AND ".join)


number_atoms = atoms(["x", "f", "d"], ["0", "1", "2", "3", "0.5", "1.05", "2.5"])
int_atoms = atoms(["x", "y"], ["0", "1", "2", "3", "2.5"])
float_atoms = atoms(["f", "g", "x"], ["0", "1", "2", "0.5", "2.5"])
sums = st.builds("a.x + {} {} {}".format, st.sampled_from(["1", "a.y"]), SIGNS, st.sampled_from(["1", "3", "a.y"]))
string_atoms = st.one_of(
    atoms(["s", "s"], ["''", "'a'", "'b'", "'c'"]),
    st.sampled_from(
        ["a.s LIKE 'a%'", "a.s NOT LIKE 'a%'", "a.b", "NOT a.b", "a.b != TRUE", "a.b > FALSE", "a.b IS NULL"]
    ),
)


@pytest.mark.slow
@reproducible(600)
@given(
    st.one_of(
        conditions(number_atoms),
        conditions(st.one_of(int_atoms, sums)),
        conditions(float_atoms),
        conditions(string_atoms),
    )
)
def test_no_assignment_satisfies_what_never_holds(where: str) -> None:
    predicates = predicates_of(where)
    reason = why_never(predicates)
    if reason is None:
        return
    assert satisfying(predicates, DOMAINS) is None
    if " more " not in reason and "…" not in reason:
        named = [predicate for predicate in predicates if expression_text(predicate) in reason]
        assert why_never(named) is not None, "the predicates of the reason are enough for it"


huge = [str(BIG), str(BIG + 1), f"{BIG}.0", f"{BIG - 1}.0", f"{BIG + 2}.0", str(BIG - 1)]


@pytest.mark.slow
@reproducible(300)
@given(conditions(atoms(["x", "y", "f"], huge)))
def test_integers_that_floats_cannot_tell_apart(where: str) -> None:
    whole = [None, *range(BIG - 2, BIG + 4)]
    domains = {"x": whole, "y": whole, "f": [None, math.nan, *(float(BIG + i) for i in (-2, -1, 0, 2, 4))]}
    predicates = predicates_of(where)
    if why_never(predicates) is not None:
        assert satisfying(predicates, domains) is None


@pytest.mark.slow
@reproducible(200)
@given(conditions(atoms(["x", "y"], ["0", "1", "2", "2.5", str(BIG), str(BIG + 1), f"{BIG}.0"])))
def test_what_is_said_without_types_holds_with_any(where: str) -> None:
    if why_never(predicates_of(where, None)) is None:
        return
    domains = {
        INTEGER: [None, *range(-2, 5), BIG, BIG + 1, BIG + 2],
        FLOAT: [*FLOATS, float(BIG), float(BIG + 2)],
        decimal(2): [None, *range(-50, 401, 50), 100 * BIG, 100 * BIG + 100],
    }
    for first, second in product(domains, repeat=2):
        predicates = predicates_of(where, TYPES | {"x": first, "y": second})
        assert satisfying(predicates, {"x": domains[first], "y": domains[second]}) is None


@pytest.mark.slow
def test_most_contradictions_of_integers_are_found() -> None:
    random = Random(7)
    found: Counter[bool] = Counter()
    domain = [None, *range(-3, 8)]
    for _ in range(1_000):
        predicates = [random_comparison(random) for _ in range(random.randint(2, 6))]
        reason = why_never(predicates)
        if satisfying(predicates, dict.fromkeys("xyz", domain)) is None:
            found[reason is not None] += 1
        else:
            assert reason is None
    assert found[True] > 200
    assert found[True] / found.total() > 0.97


def random_comparison(random: Random) -> ir.Expr:
    left, other = (ir.Attribute("a", random.choice("xyz"), type=INTEGER) for _ in range(2))
    right = random.choice([other, ir.Literal(random.randrange(4), INTEGER, type=INTEGER)])
    return ir.Comparison(random.choice(["=", "!=", "<", "<=", ">", ">="]), left, right, type=BOOLEAN)


# --- many predicates -------------------------------------------------------------------------------------------------


def compared(left: str, sign: str, right: str | int) -> ir.Expr:
    other = ir.Literal(right, INTEGER, type=INTEGER) if isinstance(right, int) else attribute(right)
    return ir.Comparison(sign, attribute(left), other, type=BOOLEAN)


def attribute(name: str) -> ir.Attribute:
    return ir.Attribute("a", name, type=INTEGER)


def either(*parts: ir.Expr) -> ir.Expr:
    return ir.Or(parts, type=BOOLEAN)


MANY = 5_000
LARGE: dict[str, tuple[bool, list[ir.Expr]]] = {
    "bounds of one value": (False, [compared("x", ">", i) for i in range(MANY)]),
    "exceptions": (False, [compared("x", "!=", i) for i in range(MANY)]),
    "chain": (False, [compared(f"x{i}", "<", f"x{i + 1}") for i in range(MANY)]),
    "cycle": (True, [compared(f"x{(i + 1) % MANY}", "<", f"x{i}") for i in range(MANY)]),
    "ring of equal values": (False, [compared(f"x{i}", "=", f"x{(i + 1) % MANY}") for i in range(MANY)]),
    "alternatives apart": (False, [either(compared(f"x{i}", "=", 1), compared(f"y{i}", "=", 1)) for i in range(MANY)]),
    "alternatives of one": (False, [either(compared("x", "!=", i), compared("y", "=", i)) for i in range(MANY)]),
    "a long list": (
        True,
        [
            ir.In(attribute("x"), tuple(ir.Literal(i, INTEGER, type=INTEGER) for i in range(MANY))),
            compared("x", "<", 0),
        ],
    ),
    "alternatives among exceptions": (
        True,
        [*(compared("x", "!=", i) for i in range(MANY)), either(compared("x", "=", 1), compared("x", "=", 2))],
    ),
}


@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("name", LARGE)
def test_thousands_of_predicates_take_a_moment(name: str) -> None:
    is_never, predicates = LARGE[name]
    reason = why_never(predicates)
    assert (reason is not None) == is_never

"""Queries that grow: what is made of them grows no faster, is refused at once, or is left to the interpreter."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

import kleene
from kleene.analysis import predicates
from kleene.analysis.analyze import analyze
from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.automaton.positions import positions_of
from kleene.engine import run
from kleene.engine.compiled.measures import generate_measures
from kleene.engine.compiled.row_engine import RowEngine
from kleene.errors import AnalysisError, KleeneError
from kleene.lang.sase import parse
from kleene.schema import INTEGER, STRING, Schema

SCHEMA = Schema({"t": INTEGER, "type": STRING, "x": INTEGER, "y": INTEGER}, "type")
pytestmark = pytest.mark.usefixtures("in_time")


def events(count: int, seed: int = 1) -> pa.Table:
    chance = random.Random(seed)
    return pa.table(
        {
            "t": range(count),
            "type": [chance.choice("ABC") for _ in range(count)],
            "x": [chance.randint(0, 3) for _ in range(count)],
            "y": [chance.randint(0, 3) for _ in range(count)],
        }
    )


def conjunct_count(text: str) -> int:
    query = analyze(parse(text), SCHEMA, ("t",))
    return sum(len((*item.begin, *item.take, *item.complete)) for item in query.components)


# ---- OR of ANDs


def or_of_ands(count: int) -> str:
    return " OR ".join(f"(a.x = {n} AND b.y = {n + 1})" for n in range(count))


def test_or_of_few_ands_is_distributed():
    assert conjunct_count(f"EVENT SEQ(A a, B b) WHERE {or_of_ands(3)}") == 2**3


def test_or_of_many_ands_stays_one_condition_for_each_variable():
    for count in (12, 100):
        assert conjunct_count(f"EVENT SEQ(A a, B b) WHERE {or_of_ands(count)}") == 2
    query = analyze(parse(f"EVENT SEQ(A a, B b) WHERE {or_of_ands(12)}"), SCHEMA, ("t",))
    (of_a,) = query.components[0].begin
    assert len(of_a.expression.operands) == 12, "a.x = 0 OR a.x = 1 OR …"


def test_or_of_many_ands_over_each_event_is_refused():
    condition = " OR ".join(f"(a[i].x = {n} AND b.y = {n})" for n in range(12))
    with pytest.raises(AnalysisError, match="more than 1,000 conjuncts"):
        analyze(parse(f"EVENT SEQ(A+ a[], B b) WHERE {condition}"), SCHEMA, ("t",))


def formula(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.2:
        one, other = chance.choice("abc"), chance.choice("abc")
        return chance.choice([f"{one}.x = {chance.randint(0, 3)}", f"{one}.x < {other}.y", f"{one}.y <> {other}.x"])
    parts = [formula(chance, depth - 1) for _ in range(chance.randint(2, 3))]
    whole = "(" + chance.choice([" AND ", " OR "]).join(parts) + ")"
    return f"NOT {whole}" if chance.random() < 0.2 else whole


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match", "strict_contiguity"])
def test_conditions_left_together_select_the_same(strategy, monkeypatch):
    together, chance = 0, random.Random(3)
    for seed in range(25):
        condition = formula(chance, 3)
        text = f"EVENT SEQ(A a, B b, C c) WHERE {strategy}(a, b, c) {{ {condition} }} WITHIN 9"
        found = []
        for most in (10**9, 0):
            monkeypatch.setattr(predicates, "MANY_CONJUNCTS", most)
            monkeypatch.setattr(predicates, "MOST_CONJUNCTS", 10**9)
            found.append(kleene.sase(text).match(events(60, seed), order_by="t", engine="generated"))
        assert found[0].equals(found[1]), condition
        together += found[0].num_rows
    assert together > 5


# ---- row patterns


def automaton_of(pattern: str):
    query = kleene.match_recognize(f"ORDER BY t PATTERN ({pattern})")
    return positions_of(analyze_row_pattern(query.definition))


def test_nested_loops_are_as_small_as_what_they_repeat():
    for sign in ("+", "*", "+?"):
        assert len(automaton_of("(" * 90 + "A" + f"){sign}" * 90).states) == 1 + 2  # and the start, and F
    assert len(automaton_of("(" * 40 + "A" + " B?)+" * 40).states) == 41 + 2


def test_permutation_has_a_state_for_what_is_left_and_not_for_each_order():
    automaton = automaton_of("PERMUTE(A, B, C, D, E, F, G, H)")
    assert len(automaton.states) == 8 * 2**7 + 2
    assert max(map(len, automaton.edges[1:])) == 7


@pytest.mark.parametrize("elements", ["A, B, C", "A, B C, C{2}", "A, B, {-C-}", "A, A, B, C"])
@pytest.mark.parametrize("output", ["ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW", "ONE ROW PER MATCH ALL MATCHES"])
def test_permutation_is_the_alternation_of_its_orders(elements, output):
    orders = " | ".join(" ".join(order) for order in itertools.permutations(elements.split(", ")))
    conditions = "A AS x < 3, B AS y > 0, C AS x <> y"
    clause = "ORDER BY t MEASURES array_agg(t) AS ts, array_agg(CLASSIFIER()) AS cs {} PATTERN ({}) DEFINE {}"
    for engine in ("reference", "generated"):
        found = [
            kleene.match_recognize(clause.format(output, pattern, conditions)).match(events(60), engine=engine)
            for pattern in (f"PERMUTE({elements})", orders)
        ]
        assert found[0].num_rows > 10
        assert found[0].equals(found[1])


def test_permutation_of_elements_with_choices_keeps_the_order_of_orders():
    clause = "ORDER BY t MEASURES array_agg(CLASSIFIER()) AS cs ONE ROW PER MATCH PATTERN ({}) DEFINE A AS x < 3"
    both = [
        kleene.match_recognize(clause.format(pattern)).match(events(60), engine=engine)
        for pattern in ("PERMUTE(A+, B, C?)", "A+ B C? | A+ C? B | B A+ C? | B C? A+ | C? A+ B | C? B A+")
        for engine in ("reference", "generated")
    ]
    assert all(found.equals(both[0]) for found in both)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(" * 40 + "A" + "){2}" * 40, "more than 20,000 states"),
        ("PERMUTE(" + ", ".join(f"V{n}+" for n in range(8)) + ")", "more than 20,000 states"),
        ("((A?){100}){20}", "more than 500,000 edges"),
    ],
)
def test_automaton_that_would_be_huge_is_refused_before_it_is_made(pattern, reason):
    with pytest.raises(KleeneError, match=reason):
        automaton_of(pattern)


def test_interpreter_that_goes_around_in_circles_leaves_it_to_machine_code(monkeypatch):
    monkeypatch.setattr(run, "FEW_SECONDS", 0.01)
    start, found = RowEngine.start, []
    monkeypatch.setattr(RowEngine, "start", lambda *given: found.append(given) or start(*given))
    query = kleene.match_recognize("ORDER BY t MEASURES count(*) AS n PATTERN ((A?){20} A{40}) DEFINE A AS x >= 0")
    assert query.match(events(30)).num_rows == 0
    assert len(found) == 1


# ---- much code


def test_code_that_would_take_long_to_compile_is_left_to_the_interpreter():
    condition = " AND ".join(f"a.x + {n} < b.y * {n + 1}" for n in range(1_000))
    explained = kleene.sase(f"EVENT SEQ(A a, B b) WHERE {condition} WITHIN 5").explain(events(10), order_by="t")
    assert "the plain interpreter, since the compiled engine has no code for conditions that make" in str(explained)


def test_thousands_of_columns_are_not_one_function():
    columns = ", ".join(f"a.x + {n} AS c{n}" for n in range(2_000))
    query = kleene.sase(f"EVENT SEQ(A a, B b) WITHIN 3 RETURN {columns}")
    found = query.match(events(30), order_by="t")
    assert found.num_columns == 2_000
    assert generate_measures(analyze(query.definition, SCHEMA, ("t",)), frozenset()).computed == ()

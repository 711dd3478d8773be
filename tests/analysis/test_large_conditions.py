"""Conditions that grow: what is made of them grows no faster, or is refused at once."""

from __future__ import annotations

import random

import pytest

import kleene
from kleene.analysis import predicates
from kleene.analysis.analyze import analyze
from kleene.errors import AnalysisError
from kleene.lang.sase import parse
from random_events import SCHEMA, events

pytestmark = pytest.mark.usefixtures("in_time")


def conjunct_count(text: str) -> int:
    query = analyze(parse(text), SCHEMA, ("t",))
    return sum(len((*item.begin, *item.take, *item.complete)) for item in query.components)


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

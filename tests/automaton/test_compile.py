"""The automaton by the paper's steps: Figure 2 of SASE+ 2008 edge by edge, and each strategy's ignore formulas."""

from __future__ import annotations

import pytest

import kleene
from kleene.analysis.analyze import analyze
from kleene.automaton.model import FormulaClass, Move, Predicate
from kleene.automaton.nfa import nfa_of
from kleene.automaton.text import automaton_dot, formula_text
from paper_queries import QUERY_3


def edges(text: str, steps: int = 6) -> list[str]:
    automaton = nfa_of(analyze(kleene.sase(text).definition), steps)
    names = [state.name for state in automaton.states]
    return [
        f"{names[source]} {edge.move.value} {names[edge.target]}: {formula_text(edge.formula, automaton, source)}"
        for source, own in enumerate(automaton.edges)
        for edge in own
    ]


def test_figure_2a_structure_of_query_3() -> None:
    assert [edge.split(":")[0] for edge in edges(QUERY_3, steps=1)] == [
        "a[1] begin a[i]",
        "a[i] take a[i]",
        "a[i] ignore a[i]",
        "a[i] proceed b",
        "b begin F",
        "b ignore b",
    ]


def test_figure_2b_basic_formulas_of_query_3() -> None:
    # The paper leaves type tests out of the figure; ours are the leading word.
    assert edges(QUERY_3, steps=4) == [
        "a[1] begin a[i]: Stock AND a[1].volume > 1000",
        "a[i] take a[i]: Stock AND a[i].symbol = a[1].symbol AND a[i].price > avg(a[..i-1].price)",
        "a[i] ignore a[i]: NOT take",
        "a[i] proceed b: TRUE",
        "b begin F: Stock AND b.symbol = a[1].symbol AND b.volume < 0.8 * a[a.LEN].volume"
        " AND b.time < a[1].time + 1 hour",
        "b ignore b: NOT begin",
    ]


def test_figure_2c_optimized_formulas_of_query_3() -> None:
    assert edges(QUERY_3) == [
        "a[1] begin a[i]: Stock AND a[1].volume > 1000",
        "a[i] take a[i]: Stock AND a[i].symbol = a[1].symbol AND a[i].price > avg(a[..i-1].price)"
        " AND a[i].time < a[1].time + 1 hour",
        "a[i] ignore a[i]: NOT take AND a[i].time < a[1].time + 1 hour",
        "a[i] proceed b: begin(b) OR (NOT take AND NOT ignore)",
        "b begin F: Stock AND b.symbol = a[1].symbol AND b.volume < 0.8 * a[a.LEN].volume"
        " AND b.time < a[1].time + 1 hour",
        "b ignore b: NOT begin AND b.time < a[1].time + 1 hour",
    ]


@pytest.mark.parametrize(
    ("strategy", "ignore"),
    [
        ("strict_contiguity", "FALSE"),
        ("partition_contiguity", "NOT (b.id = a.id)"),
        ("skip_till_next_match", "NOT begin"),
        ("skip_till_any_match", "TRUE"),
    ],
)
def test_strategy_decides_when_an_event_may_be_ignored(strategy: str, ignore: str) -> None:
    found = edges(f"PATTERN SEQ(A a, B b) WHERE {strategy}(a, b) {{ [id] }}")
    assert found[-1] == f"b ignore b: {ignore}"


def test_kleene_in_last_place_proceeds_to_the_final_state_when_complete() -> None:
    found = edges("PATTERN SEQ(A a, B+ b[]) WHERE b.LEN > 2 AND b.x > a.x WITHIN 10 events")
    assert found == [
        "a begin b[1]: A",
        "b[1] begin b[i]: B AND b[1].x > a.x AND b[1].position < a.position + 10",
        "b[1] ignore b[1]: b[1].position < a.position + 10",
        "b[i] take b[i]: B AND b[i].x > a.x AND b[i].position < a.position + 10",
        "b[i] ignore b[i]: b[i].position < a.position + 10",
        "b[i] proceed F: b.LEN > 2 AND b[b.LEN].position < a.position + 10",
    ]


def test_completion_predicates_guard_the_way_to_the_next_component() -> None:
    found = edges("PATTERN SEQ(A+ a[], B b) WHERE sum(a[].x) > 5")
    assert "a[i] proceed b: sum(a[].x) > 5 AND (begin(b) OR (NOT take AND NOT ignore))" in found


def test_predicates_know_what_it_takes_to_decide_them() -> None:
    text = "PATTERN SEQ(A+ a[], B b) WHERE [id] AND b.x > 3 AND b.y > a[1].y AND a.LEN > 1"
    automaton = nfa_of(analyze(kleene.sase(text).definition))
    begin, proceed = automaton.edge(2, Move.BEGIN), automaton.edge(1, Move.PROCEED)
    assert [part.formula_class for part in begin.formula.parts if isinstance(part, Predicate)] == [
        FormulaClass.PARTITION,
        FormulaClass.SINGLE_EVENT,
        FormulaClass.RUN,
    ]
    assert proceed.formula.parts[0].formula_class is FormulaClass.COMPLETION


def test_variable_named_like_the_final_state_is_no_problem() -> None:
    assert edges("PATTERN SEQ(A F, B b)") == ["F begin b: A", "b begin F: B", "b ignore b: TRUE"]


def test_dot_draws_every_state_and_edge_and_escapes_what_users_write() -> None:
    query = kleene.sase("PATTERN SEQ(A `a\"b`, B+ c[]) WHERE `a\"b`.s = 'x\\y'")
    dot = automaton_dot(nfa_of(analyze(query.definition)))
    assert dot.startswith("digraph automaton {")
    assert dot.endswith("}")
    assert 's0 [label="a\\"b"];' in dot
    assert 's0 -> s1 [label="begin\\nA AND `a\\"b`.s = \'x\\\\y\'"];' in dot
    assert dot.count("->") == 6
    assert dot.count("style=dashed") == 2
    assert dot.count("arrowhead=empty") == 1

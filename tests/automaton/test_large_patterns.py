"""Row patterns that grow: their automata grow no faster, or are refused at once."""

from __future__ import annotations

import itertools

import pytest

import kleene
from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.automaton.positions import positions_of
from kleene.errors import KleeneError
from random_events import events

pytestmark = pytest.mark.usefixtures("in_time")


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

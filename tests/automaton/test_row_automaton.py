"""The position automaton of row patterns: its edges, and its ways against those of the plain engine."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kleene
from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.automaton.positions import positions_of
from kleene.automaton.text import automaton_dot, automaton_text
from kleene.engine.row_reference import PartitionMatcher, Visible
from kleene.ir.row_text import row_query_text
from kleene.schema import INTEGER, EventSchema
from row_automaton_runner import ways
from row_cases import RowCase, load_rows, params_of

LETTERS = "ABC"


def automaton_of(pattern: str):
    query = kleene.match_recognize(f"ORDER BY t PATTERN ({pattern})")
    return positions_of(analyze_row_pattern(query.definition))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("A B", "start  → A\nA      → B\nB      → F"),
        ("A*", "start  → A, F\nA      → A, F"),
        ("A+", "start  → A\nA      → A, F"),
        ("A{2,}", "start  → A·1\nA·1    → A·2\nA·2    → A·2, F"),
        ("A*?", "start  → F, A\nA      → F, A"),
        ("A | B", "start  → A, B\nA      → F\nB      → F"),
        ("(A | B)? C", "start  → A, B, C\nA      → C\nB      → C\nC      → F"),
        ("A{2}", "start  → A·1\nA·1    → A·2\nA·2    → F"),
        ("^A$", "start  → ^A\nA      → F$"),
        ("A {- B -}", "start  → A\nA      → {-B-}\n{-B-}  → F"),
        ("PERMUTE(A, B)", "start  → A·1, B·2\nA·1    → B·1\nB·1    → F\nB·2    → A·2\nA·2    → F"),
        ("()", "start  → F"),
    ],
)
def test_edges_stand_in_order_of_preference(pattern: str, text: str) -> None:
    assert automaton_text(automaton_of(pattern)) == text


def test_dot_numbers_edges_by_preference() -> None:
    dot = automaton_dot(automaton_of("A (B | C)"))
    assert 's1 -> s2 [label="1"];' in dot
    assert 's1 -> s3 [label="2"];' in dot


def engine_ways(query: kleene.Query, letters: list[set[str]]) -> list[list[tuple[str, ...]]]:
    """For each start row, what the plain engine tries, in order; a variable fits the rows whose set has it."""
    conditions = ", ".join(f"{name} AS is_{name} = 1" for name in LETTERS)
    text = row_query_text(query.definition) + f"\nDEFINE {conditions}"
    schema = EventSchema((("t", INTEGER), *((f"is_{name}", INTEGER) for name in LETTERS)))
    definition = kleene.match_recognize(text).definition
    columns = {f"is_{name}": [int(name in row) for row in letters] for name in LETTERS}
    matcher = PartitionMatcher(analyze_row_pattern(definition, schema), columns, len(letters), 1_000_000)
    everything = Visible(0, len(letters))
    return [[found.variables for found in matcher._ways(start, 1, everything)] for start in range(len(letters))]


def distinct(paths: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(paths))


@st.composite
def patterns(draw, depth: int = 3) -> str:
    """Patterns in which A, B and C all stand, so that all can be defined."""
    kinds = ["variable", "sequence", "alternation", "repeat", "group", "exclusion", "permute"]
    kind = draw(st.sampled_from(kinds if depth else ["variable"]))
    inner = patterns(depth - 1) if depth else st.nothing()
    match kind:
        case "variable":
            return draw(st.sampled_from(LETTERS))
        case "sequence":
            return f"({' '.join(draw(st.lists(inner, min_size=1, max_size=3)))})"
        case "alternation":
            return f"({' | '.join(draw(st.lists(inner | st.just('()'), min_size=2, max_size=3)))})"
        case "repeat":
            quantifier = draw(st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}", "{,2}", "{,}"]))
            return f"({draw(inner)}){quantifier}{draw(st.sampled_from(['', '?']))}"
        case "exclusion":
            return f"{{- {draw(inner)} -}}"
        case "permute":
            return f"PERMUTE({draw(inner)}, {draw(inner)})"
    before, after = (draw(st.sampled_from(["", sign, f"{sign}*", f"{sign}{{2}}?"])) for sign in "^$")
    return f"{before} ({draw(inner)}) {after}"


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(patterns(), st.lists(st.sets(st.sampled_from(LETTERS)), min_size=1, max_size=4))
def test_ways_of_the_automaton_are_those_of_the_plain_engine_in_the_same_order(
    pattern: str, rows: list[set[str]]
) -> None:
    # All three variables stand in the pattern, the last ones where nothing can reach them.
    query = kleene.match_recognize(f"ORDER BY t ALL ROWS PER MATCH PATTERN ({pattern} | $ ^ A B C)")
    automaton = positions_of(analyze_row_pattern(query.definition))
    for start, expected in enumerate(engine_ways(query, rows)):
        found = list(ways(automaton, start, len(rows), lambda path, name, start=start: name in rows[start + len(path)]))
        assert distinct(found) == distinct(expected)


@pytest.mark.parametrize("case", load_rows("rows"), ids=lambda case: case.name)
def test_printed_clause_reads_back_as_an_equal_query(case: RowCase) -> None:
    query = kleene.match_recognize(case.item["clause"])
    assert kleene.match_recognize(row_query_text(query.definition)) == query
    assert query.explain(**params_of(case))
    assert query.explain(pa.table(case.table), **params_of(case))

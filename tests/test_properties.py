"""Properties that hold for every query and table; the generated ones are compared with independent_checker.py."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

import kleene
from case_files import near
from independent_checker import conjuncts, has_key, holds, result_rows
from strategies import Events, event_table, queries_with_events
from structured_query import (
    Aggregate,
    Arithmetic,
    Attribute,
    Comparison,
    Component,
    Constant,
    Key,
    Length,
    StructuredQuery,
    variables,
)

Example = tuple[StructuredQuery, Events]
Rows = list[dict[str, Any]]

# Derandomized, so that a failure in CI is a failure everywhere.
reproducible = settings(deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])


def found_rows(query: StructuredQuery, events: Any, **options: Any) -> Rows:
    options = {"order_by": "t", "format": query.format} | options
    return near(kleene.sase(str(query)).match(events, **options).to_pylist())


def made_events(types: str, **attributes: list[Any]) -> Events:
    """One event per letter, one unit of time apart, with the attributes given by column and NULL for the others."""
    nothing = [None] * len(types)
    columns = {name: attributes.get(name, nothing) for name in ("id", "x", "y", "s")}
    return [
        {"type": type_, "t": number, "n": number} | {name: column[number] for name, column in columns.items()}
        for number, type_ in enumerate(types)
    ]


A, B, C = Component("a", ("A",)), Component("b", ("B",)), Component("c", ("C",))
MANY_A, MANY_B = Component("a", ("A",), is_kleene=True), Component("b", ("B",), is_kleene=True)
THEN_MANY_A = Component("b", ("A",), is_kleene=True)
THREE_EVENTS = Comparison("=", Arithmetic("+", Length("a"), Length("b")), Constant(3))

# What chance draws too seldom.
NO_EVENTS = StructuredQuery((A,), keys=(Key("id"),)), []
FEWER_EVENTS_ARE_CHOSEN = StructuredQuery((A, MANY_B, C), format="non_overlapping"), made_events("ABBC")
LONGER_EARLIER_VARIABLE_IS_CHOSEN = (
    StructuredQuery((MANY_A, THEN_MANY_A), having=THREE_EVENTS, format="non_overlapping"),
    made_events("AAA"),
)
NAN_IS_NOT_UNEQUAL = (
    StructuredQuery((A,), predicates=(Comparison("!=", Attribute("a", "every", "y"), Constant(1)),)),
    made_events("AAA", y=[float("nan"), None, 2.0]),
)
REMAINDER_HAS_THE_SIGN_OF_THE_DIVIDEND = (
    StructuredQuery(
        (A,), predicates=(Comparison("<", Arithmetic("%", Attribute("a", "every", "x"), Constant(2)), Constant(0)),)
    ),
    made_events("AAA", x=[-1, 1, -2]),
)
COUNT_SKIPS_NULLS = (
    StructuredQuery((MANY_A,), predicates=(Comparison("<", Aggregate("count", "a", False, "x"), Length("a")),)),
    made_events("AA", x=[1, None]),
)
LATER_VARIABLE_SEES_EVERY_EVENT = (
    StructuredQuery(
        (MANY_A, B), predicates=(Comparison(">", Attribute("b", "every", "x"), Attribute("a", "every", "x")),)
    ),
    made_events("AAB", x=[3, 1, 2]),
)


@pytest.mark.slow
@settings(reproducible, max_examples=1000)
@given(queries_with_events())
@example(NO_EVENTS)
@example(FEWER_EVENTS_ARE_CHOSEN)
@example(LONGER_EARLIER_VARIABLE_IS_CHOSEN)
@example(NAN_IS_NOT_UNEQUAL)
@example(REMAINDER_HAS_THE_SIGN_OF_THE_DIVIDEND)
@example(COUNT_SKIPS_NULLS)
@example(LATER_VARIABLE_SEES_EVERY_EVENT)
def test_matches_are_those_of_the_definition_in_order(case: Example) -> None:
    query, events = case
    expected = near(result_rows(query, events))
    event(f"{min(len(expected), 3)} matches or more")
    assert found_rows(query, event_table(events)) == expected


@pytest.mark.slow
@settings(reproducible, max_examples=100)
@given(queries_with_events(), st.lists(st.integers(0, 8), max_size=4))
def test_result_does_not_depend_on_how_the_input_is_cut_into_batches(case: Example, cuts: list[int]) -> None:
    query, events = case
    table = event_table(events)
    edges = [0, *sorted(min(cut, len(events)) for cut in cuts), len(events)]
    pieces = [table.slice(start, end - start) for start, end in pairwise(edges)]
    cut_table = pa.concat_tables(pieces)
    assert cut_table.column("t").num_chunks == len(cuts) + 1
    assert found_rows(query, cut_table) == found_rows(query, table)


@pytest.mark.slow
@settings(reproducible, max_examples=100)
@given(queries_with_events(), st.randoms(use_true_random=False))
def test_result_does_not_depend_on_the_order_of_rows_when_ties_are_broken(case: Example, random: Any) -> None:
    query, events = case
    shuffled = random.sample(events, len(events))
    expected = found_rows(query, event_table(events), tie_break="n")
    assert found_rows(query, event_table(shuffled), tie_break="n") == expected


@pytest.mark.slow
@settings(reproducible, max_examples=100)
@given(queries_with_events(all_named=True))
def test_every_match_satisfies_the_query_by_its_own_row(case: Example) -> None:
    query, events = case
    for row in kleene.sase(str(query)).match(event_table(events), order_by="t", format=query.format).to_pylist():
        assert_satisfies(query, row)


def assert_satisfies(query: StructuredQuery, row: dict[str, Any]) -> None:
    bound = {
        component.variable: row[component.variable] if component.is_kleene else [row[component.variable]]
        for component in query.positives
    }
    selected = [event for events in bound.values() for event in events]
    places = [(event["t"], event["n"]) for event in selected]
    assert places == sorted(set(places)), "events are in order, each selected once"
    assert all(event["type"] in component.types for component in query.positives for event in bound[component.variable])
    assert all(has_key(query, event, bound) for event in selected)
    assert (row["match_start"], row["match_end"]) == (places[0][0], places[-1][0])
    if query.window is not None and not query.window.is_events:
        assert row["match_end"] - row["match_start"] < query.window.size
    negative = {component.variable for component in query.negatives}
    for conjunct in (conjunct for predicate in query.predicates for conjunct in conjuncts(predicate)):
        if not variables(conjunct) & negative:
            assert holds(conjunct, bound), str(conjunct)
    assert query.having is None or holds(query.having, bound)


@pytest.mark.slow
@settings(reproducible, max_examples=150)
@given(queries_with_events(format="non_overlapping", all_named=True))
def test_non_overlapping_matches_are_some_of_all_and_do_not_overlap_in_a_partition(case: Example) -> None:
    query, events = case
    given_out = found_rows(query, event_table(events))
    every_match = found_rows(query, event_table(events), format="all")
    assert is_subsequence(given_out, every_match)
    assert bool(given_out) == bool(every_match)
    ends: dict[Any, tuple[int, int]] = {}
    for row in given_out:
        places = selected_places(query, row)
        partition = tuple(row[key.name] for key in query.keys)
        assert places[0] > ends.get(partition, (-1, -1))
        ends[partition] = places[-1]


def selected_places(query: StructuredQuery, row: dict[str, Any]) -> list[tuple[int, int]]:
    """Time and number of the events of a match, in order."""
    values = [row[component.variable] for component in query.positives]
    return [(event["t"], event["n"]) for value in values for event in (value if isinstance(value, list) else [value])]


def is_subsequence(part: Rows, whole: Rows) -> bool:
    rest = iter(whole)
    return all(any(row == other for other in rest) for row in part)


FIXED_QUERY = """
PATTERN SEQ(A a, !(C c), B+ b[])
WHERE skip_till_next_match(a, b[]) { [id] AND b[i].x >= b[i-1].x AND b.y < 3 AND c.s = a.s }
WITHIN 10
"""
FIXED_EVENTS: Events = [
    {"type": "B", "t": 4, "id": 1, "x": 2, "y": 1.5, "s": "p", "n": 0},
    {"type": "A", "t": 1, "id": 1, "x": None, "y": None, "s": "p", "n": 1},
    {"type": "C", "t": 2, "id": 1, "x": 1, "y": 0.5, "s": None, "n": 2},
    {"type": "B", "t": 4, "id": 1, "x": 3, "y": 2.5, "s": "q", "n": 3},
    {"type": "A", "t": 5, "id": 2, "x": 0, "y": 0.0, "s": "q", "n": 4},
    {"type": "C", "t": 6, "id": 2, "x": 1, "y": 0.5, "s": "q", "n": 5},
    {"type": "B", "t": 7, "id": 2, "x": 1, "y": 0.5, "s": "q", "n": 6},
    {"type": "B", "t": 8, "id": None, "x": 9, "y": 0.5, "s": "q", "n": 7},
    {"type": "B", "t": 9, "id": 1, "x": None, "y": None, "s": "q", "n": 8},
]
NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.float64(): pd.Float64Dtype(), pa.string(): pd.StringDtype()}
OTHER_TABLES = {
    "pandas": lambda table: table.to_pandas(types_mapper=NULLABLE.get),
    "polars": pl.from_arrow,
    "duckdb": lambda table: duckdb.from_arrow(table),
}


@pytest.mark.parametrize("convert", OTHER_TABLES.values(), ids=OTHER_TABLES.keys())
def test_other_tables_give_the_same_as_arrow(convert: Callable[[pa.Table], Any]) -> None:
    table = event_table(FIXED_EVENTS)
    query = kleene.sase(FIXED_QUERY)
    expected = query.match(table, order_by="t").to_pylist()
    assert [[event["n"] for event in row["b"]] for row in expected] == [[0], [0, 3]]
    events = convert(table)
    found = query.match(events, order_by="t")
    of_duckdb = pa.Table  # which is no kind of its own
    assert type(found) is (of_duckdb if isinstance(events, duckdb.DuckDBPyRelation) else type(events))
    assert as_arrow(found).to_pylist() == expected


def as_arrow(table: Any) -> pa.Table:
    if isinstance(table, pd.DataFrame):
        return pa.Table.from_pandas(table, preserve_index=False)
    return table.to_arrow() if isinstance(table, pl.DataFrame) else table

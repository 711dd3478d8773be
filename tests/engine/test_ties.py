"""Ties: which events are counted, and that nobody is told of those that make no difference."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import pyarrow as pa
import pytest

import kleene
from kleene.engine import ties
from kleene.engine.ties import TieCounter, TieRule, count_ties

SEQUENCE = "EVENT SEQ(A a, B b) WHERE [id]"


def events(rows: Iterable[tuple[str, int, str, int]]) -> pa.Table:
    types, times, ids, values = zip(*rows, strict=True)
    return pa.table({"type": types, "t": times, "id": ids, "x": values})


def told(query: kleene.Query, table: pa.Table, **options) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        query.match(table, **options)
    return [str(one.message) for one in caught if issubclass(one.category, kleene.KleeneWarning)]


def counted(text: str, rows: Iterable[tuple[str, int, str, int]], **options) -> int:
    notes = told(kleene.sase(text), events(rows), order_by="t", **options)
    ties = [note for note in notes if "have the same" in note]
    return int(ties[0].split()[0].replace(",", "")) if ties else 0


AB = [("A", 1, "k", 1), ("B", 1, "k", 2), ("A", 2, "k", 3), ("B", 3, "k", 4)]


def test_the_user_is_warned_with_count_columns_and_a_way_out() -> None:
    with pytest.warns(kleene.KleeneWarning) as caught:
        kleene.sase(SEQUENCE).match(events(AB), order_by="t")
    assert [str(one.message) for one in caught] == [
        "2 events have the same t as another event of their id, and the order of the input decides which comes first: "
        "in process and on Spark the results may differ. Use tie_break to name a column that decides."
    ]


@pytest.mark.parametrize(
    ("text", "rows", "count"),
    [
        (SEQUENCE, AB, 2),
        (SEQUENCE, [("A", 1, "k", 1), ("B", 1, "other", 2)], 0),
        (SEQUENCE, [("A", 1, None, 1), ("B", 1, None, 2)], 0),
        (SEQUENCE, [("A", 1, "k", 1), ("C", 1, "k", 2)], 0),
        (SEQUENCE, [("A", 1, "k", 1), ("A", 1, "k", 2)], 0),
        (SEQUENCE, [("A", 1, "k", 1), ("A", 1, "k", 2), ("B", 1, "k", 2)], 3),
        ("EVENT SEQ(A a, A b) WHERE [id]", [("A", 1, "k", 1), ("A", 1, "k", 2)], 2),
        ("EVENT SEQ(A a, A b) WHERE [id]", [("A", 1, "k", 1), ("A", 1, "k", 1)], 0),
        ("EVENT SEQ(A a, A b) WHERE [id] RETURN a.t AS t", [("A", 1, "k", 1), ("A", 1, "k", 2)], 0),
        ("EVENT SEQ(A a, B b)", [("A", 1, "k", 1), ("B", 1, "other", 2)], 2),
        ("EVENT SEQ(A a, !(B b), A c) WHERE [id]", AB, 2),
        ("EVENT SEQ(A+ a[], B b) WHERE [id]", [("A", 1, "k", 1), ("A", 1, "k", 2)], 2),
        ("EVENT A a", [("A", 1, "k", 1), ("A", 1, "k", 2)], 0),
        ("EVENT SEQ(A a, B b) WHERE skip_till_next_match(a, b) { [id] }", [("B", 1, "k", 1), ("B", 1, "k", 2)], 2),
        ("EVENT SEQ(A a, B b) WHERE strict_contiguity(a, b) { }", [("A", 1, "k", 1), ("C", 1, "k", 2)], 2),
        ("EVENT SEQ(A a, B b) WHERE [id] WITHIN 5 events", [("A", 1, "k", 1), ("C", 1, "k", 2)], 2),
    ],
)
def test_events_that_tie_and_could_be_told_apart_are_counted(text: str, rows, count: int) -> None:
    assert counted(text, rows) == count


def test_choosing_among_matches_can_tell_events_of_one_type() -> None:
    rows = [("A", 1, "k", 1), ("A", 1, "k", 2), ("B", 2, "k", 3)]
    assert (counted(SEQUENCE, rows), counted(SEQUENCE, rows, format="non_overlapping")) == (0, 2)


def test_who_gives_a_tie_break_is_not_warned() -> None:
    assert counted(SEQUENCE, AB, tie_break="x") == 0


def test_programs_warn_of_the_input_and_not_of_their_own_matches() -> None:
    program = kleene.program(f"{SEQUENCE} INTO Pair; FROM Pair EVENT SEQ(Pair p, Pair q)")
    rows = [("A", 1, "k", 1), ("A", 2, "k", 2), ("B", 3, "k", 3)]
    assert told(program, events(rows), order_by="t") == []
    assert len(told(program, events(AB), order_by="t")) == 1


@pytest.mark.parametrize(
    ("pattern", "count"), [("(A B+)", 2), ("(A)", 0), ("(A) DEFINE A AS A.x > PREV(A.x)", 2), ("(A | B)", 2)]
)
def test_row_patterns(pattern: str, count: int) -> None:
    clause = f"PARTITION BY id ORDER BY t MEASURES LAST(x) AS x PATTERN {pattern}".replace("LAST(x)", "x")
    notes = told(kleene.match_recognize(clause), events(AB))
    assert [int(note.split()[0]) for note in notes] == ([count] if count else [])
    assert all(note.endswith("Add a column that decides to ORDER BY.") for note in notes)


def test_key_that_is_the_order_is_not_named_twice() -> None:
    (note,) = told(
        kleene.sase("EVENT SEQ(A a, A b) WHERE a.t = b.t"), events([("A", 1, "k", 1), ("A", 1, "k", 2)]), order_by="t"
    )
    assert note.startswith("2 events have the same t as another event, and the order of the input decides")


def test_rows_without_a_key_may_have_forgotten_it() -> None:
    (note,) = told(kleene.match_recognize("ORDER BY t MEASURES LAST(x) AS x PATTERN (A B+)"), events(AB))
    assert note.endswith("Add a column that decides to ORDER BY, or split them by a key: PARTITION BY.")


def test_order_keys_of_several_columns_tie_only_as_a_whole() -> None:
    query = kleene.sase("EVENT SEQ(A a, A b) WHERE [id]")
    table = events([("A", 1, "k", 1), ("A", 1, "k", 2), ("A", 2, "k", 2)])
    assert told(query, table, order_by=["t", "x"]) == []
    assert told(query, table, order_by=["t", "type"])[0].startswith("2 events have the same t, type as another event")


def test_nested_values_and_nulls_are_compared() -> None:
    rule = TieRule(("t",), (), ("x", "s"), False)
    table = pa.table({"t": [1, 1, 2, 2, 3, 3], "x": [None, None, None, 1, 1, 1], "s": [{"a": 1}] * 5 + [{"a": 2}]})
    assert count_ties(table, rule) == 4


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("held", [1, 1 << 16])
def test_count_does_not_depend_on_how_tables_are_cut(size: int, held: int, monkeypatch) -> None:
    table = pa.table({"g": [1, 1, 1, 1, 2, 2, 2], "t": [1, 1, 1, 2, 2, 2, 3], "x": [1, 2, 3, 4, 5, 6, 7]})
    monkeypatch.setattr(ties, "_MOST_HELD", max(held, 3))
    counter = TieCounter(TieRule(("t",), (), ("x",), False), "g")
    for start in range(0, table.num_rows, size):
        counter.add(table.slice(start, size))
    assert counter.finish() == 5


def test_explain_analyze_tells_the_count() -> None:
    text = kleene.sase(SEQUENCE).explain(events(AB), order_by="t", analyze=True)
    assert "\n  2 events have the same t as another event of their id" in text
    text = kleene.sase(SEQUENCE).explain(events(AB), order_by="t", tie_break="x", analyze=True)
    assert "have the same" not in text


def test_keys_of_several_columns_with_many_values_are_not_mixed_up() -> None:
    count = 1 << 17
    numbers = range(count)
    table = pa.table({"t": [0] * count, "a": numbers, "b": [n % (1 << 16) for n in numbers], "x": numbers})
    assert count_ties(table, TieRule(("t",), ("a", "b"), ("x",), needs_key=False)) == 0

"""What chance draws too seldom, and what the answer says in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import kleene
from kleene.why.model import Kind


def events_of(types: str, **columns: list[Any]) -> pa.Table:
    return pa.table({"type": list(types), "t": list(range(len(types)))} | columns)


def kinds_at(query: str, events: pa.Table, **rows: Any) -> list[Kind]:
    [run] = kleene.sase(query).why(events, order_by="t", at=rows).runs
    return [ending.kind for ending in run.endings]


def test_later_variable_is_held_against_every_event_of_a_kleene_variable() -> None:
    query = "PATTERN SEQ(A+ a[], B b) WHERE b.x > a.x"
    events = events_of("AAB", x=[3, 1, 2])
    why = kleene.sase(query).why(events, order_by="t", at=2)
    assert [[(variable, [one.row for one in part]) for variable, part in match.bound] for match in why.found] == [
        [("a", [1]), ("b", [2])]
    ]
    assert kinds_at(query, events, a=[0, 1], b=2) == [Kind.PREDICATE]
    assert "b.x > a.x is FALSE (b.x = 2, a.x = 3)" in str(why)


def test_negation_in_first_place_looks_back_less_than_the_window() -> None:
    query = "PATTERN SEQ(!(N n), A a, B b) WITHIN 3"
    assert kinds_at(query, events_of("NAB"), a=1, b=2) == [Kind.NEGATION]
    assert kinds_at(query, events_of("NZAB"), a=2, b=3) == [Kind.MATCH]
    assert kinds_at("PATTERN SEQ(A a, !(N n)) WITHIN 3", events_of("AZZN"), a=0) == [Kind.MATCH]
    assert kinds_at("PATTERN SEQ(A a, !(N n)) WITHIN 3", events_of("AZN"), a=0) == [Kind.NEGATION]


def test_next_match_may_not_be_passed_over() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { b.x > 1 }"
    assert kinds_at(query, events_of("ABB", x=[0, 2, 3]), a=0, b=2) == [Kind.NEXT_MATCH]
    assert kinds_at(query, events_of("ABB", x=[0, 1, 3]), a=0, b=2) == [Kind.MATCH]
    taken = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { }"
    assert kinds_at(taken, events_of("AAB"), a=[0], b=2) == [Kind.NEXT_MATCH]


def test_event_just_behind_the_window_is_the_near_miss() -> None:
    why = kleene.sase("PATTERN SEQ(A a, B b) WITHIN 2").why(events_of("AZBB"), order_by="t")
    [miss] = why.near_misses.to_pylist()
    assert (miss["reason"], miss["row"], miss["by_row"], miss["would_match"]) == ("window", 2, 2, True)


def test_an_event_that_no_run_tells_of_has_its_reason_too() -> None:
    query = kleene.sase("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2")
    events = events_of("BAAB", id=[1, None, 2, 2])

    def told(row: int) -> list[tuple[tuple[int, ...], Kind]]:
        why = query.why(events, order_by="t", at=row)
        return [(run.rows, ending.kind) for run in why.runs for ending in run.endings]

    assert told(0) == [((), Kind.NOT_SEEN)]
    assert told(1) == [((), Kind.KEY)]
    late = events_of("AZB", id=[1, 1, 1])
    [run] = query.why(late, order_by="t", at=2).runs
    assert [(run.rows, ending.kind, ending.by.row) for ending in run.endings] == [((0,), Kind.WINDOW, 2)]


def test_orders_types_and_keys_are_reasons() -> None:
    events = events_of("AB", id=[1, 2])
    assert kinds_at("PATTERN SEQ(A a, B b) WHERE [id]", events, a=0, b=1) == [Kind.KEY]
    assert kinds_at("PATTERN SEQ(A a, B b)", events, a=1, b=0)[0] is Kind.ORDER
    assert kinds_at("PATTERN SEQ(B a, B b)", events, a=0, b=1) == [Kind.TYPE]


def test_lost_match_names_the_one_that_was_given_out() -> None:
    query = kleene.sase("PATTERN SEQ(A a, B b)")
    why = query.why(events_of("AAB"), order_by="t", format="non_overlapping", at=0)
    [lost] = [end for run in why.runs for end in run.endings if end.kind is Kind.LOST]
    assert lost.match == 1
    assert why.matches.to_pylist() == [
        {"match": 1, "variable": "a", "row": 1},
        {"match": 1, "variable": "b", "row": 2},
    ]


def test_whole_answer_reads_as_text() -> None:
    query = kleene.sase("EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [tag] AND b.weight < a.weight WITHIN 10")
    events = pa.table(
        {
            "type": ["Shelf", "Shelf", "Register", "Exit", "Exit", "Exit"],
            "t": [1, 2, 3, 4, 5, 20],
            "tag": [7, 8, 7, 7, 8, 8],
            "weight": [5, 5, 1, 4, 6, 1],
        }
    )
    assert str(query.why(events, order_by="t", at="tag = 8")) == EXPECTED


EXPECTED = """\
PATTERN SEQ(Shelf a, !(Register r), Exit b)
WHERE [tag]
  AND b.weight < a.weight
WITHIN 10

0 matches among 3 events; 1 run followed
note: looked at 1 of 2 partitions: those of the events that were asked for

events that passed            passed  of  stopped runs
  a  is Shelf                      1   3
  r  is Register  [negation]       0   3
  b  is Exit                       2   3
     b.weight < a.weight           0   1             1

runs that reached a state: a 1, b 0
runs ended by: window 1
most runs were stopped by b.weight < a.weight: 1 run

near misses
  run 1 (tag = 8): a = 1
    row 4 Exit at 5, for b: b.weight < a.weight is FALSE (b.weight = 6, a.weight = 5); else a match
  run 1 (tag = 8): a = 1
    row 5 Exit at 20 would be b, but the window has passed; else a match

runs, step by step
  run 1 (tag = 8): a = 1
    row 1 Shelf at 2 is a
    row 4 Exit at 5 is not b: b.weight < a.weight is FALSE (b.weight = 6, a.weight = 5)
    ✗ the window has passed with row 5 Exit at 20"""


# --- bounded work, which says what it left out ---


def test_runs_are_bounded_and_the_answer_says_so() -> None:
    why = kleene.sase("PATTERN SEQ(A+ a[], B b)").why(events_of("A" * 30 + "B"), order_by="t", max_runs=50)
    assert why.runs_followed == 50
    assert why.notes == ("stopped after 50 runs, max_runs: what comes later, matches too, was not looked at",)


def test_runs_of_the_event_that_is_asked_for_are_followed_first() -> None:
    query = kleene.sase("PATTERN SEQ(A+ a[], B b)")
    why = query.why(events_of("A" * 30 + "B"), order_by="t", max_runs=50, at=28)
    assert [run.rows for run in why.runs if run.rows[0] == 28] == [(28,), (28, 29), (28, 29, 30), (28, 30)]


def test_a_sample_is_of_whole_partitions() -> None:
    events = pa.table({"type": ["A"] * 90, "t": range(90), "id": [number // 30 for number in range(90)]})
    why = kleene.sase("PATTERN SEQ(A a) WHERE [id]").why(events, order_by="t", max_events=70)
    assert why.notes == ("looked at 60 of 90 events, in 2 of 3 partitions: all events are more than max_events, 70",)


def test_a_sample_of_keys_is_looked_at_and_an_asked_key_comes_first() -> None:
    count = 1_000
    events = pa.table({"type": ["A", "B"] * count, "t": range(2 * count), "id": [n // 2 for n in range(2 * count)]})
    query = kleene.sase("PATTERN SEQ(A a, B b) WHERE [id]")
    sample = query.why(events, order_by="t", max_events=20)
    assert (sample.events, len(sample.found)) == (20, 10)
    assert sample.notes == (
        "looked at 20 of 2,000 events, in 10 of 1,000 partitions: all events are more than max_events, 20",
    )
    asked = query.why(events, order_by="t", keys=977, max_events=20)
    assert [match.bound[0][1][0].row for match in asked.found] == [2 * 977]
    assert asked.notes == ("looked at 1 of 1,000 partitions: those of the events that were asked for",)


def test_a_long_partition_is_cut_around_the_events_that_are_asked_for() -> None:
    events = pa.table({"type": ["A", "B"] * 500, "t": range(1_000)})
    why = kleene.sase("PATTERN SEQ(A a, B b) WITHIN 4").why(events, order_by="t", at=600, max_events=30)
    assert why.events <= 30
    assert {601, 603} == {match.bound[1][1][0].row for match in why.found if match.bound[0][1][0].row == 600}
    assert "a partition was cut" in why.notes[-1]


def test_near_misses_that_are_left_out_are_counted() -> None:
    events = events_of("AB" * 20, x=[1, 0] * 20)
    why = kleene.sase("PATTERN SEQ(A a, B b) WHERE b.x > a.x").why(events, order_by="t", limit=3, at="type = 'A'")
    assert why.near_misses.num_rows == 3
    assert why.steps.column("run").unique().to_pylist() == [1, 2, 3]
    assert why.notes == (
        "17 more runs have to do with the events that were asked for; raise limit, 3, to see them",
        "20 near misses, of which the nearest 3 are told",
    )


# --- counts ---


def test_predicates_on_one_event_are_counted_even_where_no_run_comes_to_them() -> None:
    events = events_of("BBB", x=[1, 5, 9])
    why = kleene.sase("PATTERN SEQ(A a, B b) WHERE b.x > 3").why(events, order_by="t")
    assert why.summary.select(["variable", "predicate", "events", "passed"]).to_pylist() == [
        {"variable": "a", "predicate": "is A", "events": 3, "passed": 0},
        {"variable": "b", "predicate": "is B", "events": 3, "passed": 3},
        {"variable": "b", "predicate": "b.x > 3", "events": 3, "passed": 2},
    ]


def test_an_error_behind_a_predicate_that_fails_is_told_and_not_raised() -> None:
    query = kleene.sase("PATTERN SEQ(A a, B b) WHERE b.x > 3 AND CAST(b.s AS integer) > a.x")
    events = events_of("AB", x=[1, 1], s=["", "word"])
    [step] = [step for run in query.why(events, order_by="t", at=0).runs for step in run.steps if step.event.row == 1]
    assert [(check.result, check.error is None) for check in step.tries[0].checks] == [(False, True), (None, False)]
    with pytest.raises(kleene.ExecutionError, match="'word' is not"):
        query.why(events_of("AB", x=[1, 9], s=["", "word"]), order_by="t")


@pytest.mark.parametrize("first", [None, 1])
def test_an_error_behind_null_is_raised_where_one_condition_has_both(first: int | None) -> None:
    """AND goes on behind a NULL, and only FALSE ends it, as it does in every engine."""
    events = pa.table({"type": ["A", "B"], "t": [0, 1], "x": pa.array([1, first], pa.int64()), "s": ["1", "word"]})
    condition = "{0}.x > 3 AND CAST({0}.s AS integer) > 0"
    having = kleene.sase(f"PATTERN SEQ(A a, B b) HAVING {condition.format('b')}")
    clause = kleene.match_recognize(f"ORDER BY t MEASURES A.t AS a PATTERN (A B) DEFINE B AS {condition.format('B')}")
    for query, options in ((having, {"order_by": "t"}), (clause, {})):
        expected = _message(lambda: query.match(events, engine="reference", **options))  # noqa: B023
        assert _message(lambda: query.why(events, **options)) == expected  # noqa: B023
        assert (expected is None) is (first == 1)


def _message(run: Callable[[], Any]) -> str | None:
    try:
        run()
    except kleene.ExecutionError as error:
        return str(error)
    return None


# --- questions that cannot be answered ---


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"at": 9}, "the input has no row 9: it has 2 rows, 0 to 1"),
        ({"at": 1.5}, "at is a row number, a list of them, a filter or a dict of rows by variable, but 1.5 was given"),
        ({"at": "count() > 1"}, "in the filter: it looks at one event at a time"),
        ({"at": "x = :least"}, "in the filter: it has no parameters"),
        ({"at": "y = 1"}, "has no column 'y'"),
        ({"at": {"a": 0}}, "at names no row for the variable 'b'"),
        ({"at": {"a": 0, "b": [0, 1]}}, "at names 2 rows for 'b', which is one event"),
        ({"at": {"a": 0, "b": 1, "c": 2}}, "at names 'c', which no event of a match is bound to"),
        ({"keys": 5}, "no event has the key x = 5"),
        ({"keys": {"z": 5}}, "the partition key has no attribute 'z'"),
        ({"max_runs": 0}, "max_runs is a whole number from 1 up"),
    ],
)
def test_wrong_questions_are_refused(question: dict[str, Any], message: str) -> None:
    query = kleene.sase("PATTERN SEQ(A a, B b) WHERE [x]")
    with pytest.raises(kleene.KleeneError) as error:
        query.why(events_of("AB", x=[1, 1]), order_by="t", **question)
    assert message in str(error.value)


def test_keys_need_a_partition_key() -> None:
    with pytest.raises(kleene.SchemaError, match="the query has no partition key"):
        kleene.sase("PATTERN SEQ(A a, B b)").why(events_of("AB"), order_by="t", keys=1)


def test_no_text_of_the_data_reaches_a_terminal_unescaped() -> None:
    events = events_of("AB", s=["\x1b[31m", "\u202e"])
    why = kleene.sase("PATTERN SEQ(A a, B b) WHERE b.s = a.s").why(events, order_by="t", at=0)
    assert "\\x1b[31m" in str(why)
    assert "\x1b" not in str(why)

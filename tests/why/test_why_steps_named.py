"""What `why` says of patterns in steps, one reason at a time, and what it says in words."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import kleene
from kleene.why.answer import Why
from kleene.why.model import Kind
from kleene.why.text import ending_text
from run_checks import table
from steps_notation import parse, stream, to_builder


def why(pattern: str, events: str, **question: Any) -> Why:
    return to_builder(parse(pattern), kleene).why(table(stream(events)), order_by="t", **question)


def end_of(pattern: str, events: str, *rows: int) -> list[str]:
    """How the run that has bound these rows ended, in words."""
    answer = why(pattern, events, at=list(range(len(stream(events)))))
    [run] = [run for run in answer.runs if sorted(run.rows) == list(rows)]
    return [ending_text(ending) for ending in run.endings]


def reasons(pattern: str, events: str, **rows: Any) -> list[Kind]:
    [run] = why(pattern, events, at=rows).runs
    return [ending.kind for ending in run.endings]


@pytest.mark.parametrize(
    ("pattern", "events", "rows", "expected"),
    [
        ("a > b", "a1 x1 b1", [0], "✗ row 1 x at 1 may not be passed over: b comes directly after"),
        ("a >> b within(3)", "a1 b1@3", [0], "✗ the window has passed with row 1 b at 3, waiting for b"),
        ("a >> b within(2 events)", "a1 x1 b1", [0], "✗ the window has passed with row 2 b at 2, waiting for b"),
        (
            "a >> b since_previous(2)",
            "a1 x1@2 b1@3",
            [0],
            "✗ row 1 x at 2 is 2 or more after row 0 a at 0, waiting for b",
        ),
        (
            "a >> b{2} gap(2)",
            "a1 b1 x1@3 b2@4",
            [0, 1],
            "✗ row 2 x at 3 is 2 or more after row 1 b at 1, waiting for b",
        ),
        ("a >! n >> b", "a1 n1 b1", [0], "✗ forbidden: row 1 n at 1 is n"),
        ("a >>! n >> b", "a1 x1 n1 b1", [0], "✗ forbidden: row 2 n at 2 is n"),
        (
            "a >> p=bu+ until(u) >> c",
            "a1 u1 b1 c1",
            [0],
            "✗ row 1 u at 1: p ends there, by until: type = 'u' is TRUE (type = 'u')",
        ),
        ("a >> b{1,2} greedy >> c", "a1 b1 b2 b3 c1", [0, 1, 2], "✗ row 3 b at 3: b is greedy, and would take it"),
        ("a >> b", "a1 x1", [0], "✗ no more events, waiting for b"),
        ("a >! n", "a1", [0], "✗ no more events"),
        (
            "a >> b+ > c skip_past_last_event",
            "a1 b1 a2 b2 c1",
            [2, 3, 4],
            "✗ overlaps match 1, which was given out instead",
        ),
        ("a >> b >> c skip_past_last_event", "a1 b1 a2 c1", [2], "✗ dropped by match 1: skip_past_last_event"),
        ("a >> b", "a1 b1", [0], "→ went on in other runs"),
        ("a >> b", "a1 b1", [0, 1], "→ match 1"),
    ],
)
def test_the_end_of_a_run_names_what_ended_it(pattern: str, events: str, rows: list[int], expected: str) -> None:
    assert expected in end_of(pattern, events, *rows)


@pytest.mark.parametrize(
    ("pattern", "events", "rows", "expected"),
    [
        ("a > b", "a1 x1 b1", {"a": 0, "b": 2}, [Kind.CONTIGUITY]),
        ("a >> b", "a1 b1 b2", {"a": 0, "b": 2}, [Kind.NEXT_MATCH]),
        ("a >>> b", "a1 b1 b2", {"a": 0, "b": 2}, [Kind.MATCH]),
        ("a >> b[price > 3]", "a1 b1=2", {"a": 0, "b": 1}, [Kind.PREDICATE]),
        ("a >> b", "a1 x1", {"a": 0, "b": 1}, [Kind.TYPE]),
        ("a >> b >> c", "a1 b1 c1", {"a": 0, "b": 1}, [Kind.INCOMPLETE]),
        ("a >> b >> c", "a1 b1 c1", {"a": 0, "c": 2}, [Kind.PLACE]),
        ("a >> b{2}", "a1 b1 b2", {"a": 0, "b": 1}, [Kind.INCOMPLETE]),
        ("a >>! n within(3)", "a1 n1", {"a": 0}, [Kind.NEGATION]),
        ("a >>! n within(3)", "a1 n1@3", {"a": 0}, [Kind.MATCH]),
        ("a >! n", "a1 n1", {"a": 0}, [Kind.NEGATION]),
        ("a >! n", "a1", {"a": 0}, [Kind.END]),
        ("a >> b", "a1 b1", {"a": 1, "b": 0}, [Kind.PLACE]),
        ("a >> p=ab", "a1 b1", {"a": 0, "p": 0}, [Kind.ORDER]),
        ("a >> b+ greedy >> c", "a1 b1 b2 c1", {"a": 0, "b": [1], "c": 3}, [Kind.GREEDY]),
        ("b+ until(u)", "b1 u1 b2", {"b": [0, 2]}, [Kind.UNTIL]),
        ("a >> b within(3)", "a1 x1 b1@4", {"a": 0, "b": 2}, [Kind.WINDOW]),
        ("a >> b since_previous(3) >> c", "a1 b1@4 c1", {"a": 0, "b": 1, "c": 2}, [Kind.SINCE]),
        ("b+ gap(2)", "b1 b2@3", {"b": [0, 1]}, [Kind.GAP]),
        ("b+ skip_to_next", "b1 b2", {"b": [0, 1]}, [Kind.LOST]),
        ("a[price > 1] > b[price > 1] within(2)", "a1=0 x1 b1=0@4", {"a": 0, "b": 2},
         [Kind.PREDICATE, Kind.CONTIGUITY, Kind.WINDOW, Kind.PREDICATE]),
    ],
)  # fmt: skip
def test_a_combination_is_told_every_reason(pattern: str, events: str, rows: Any, expected: list[Kind]) -> None:
    assert reasons(pattern, events, **rows) == expected


def test_the_order_in_which_runs_arise_decides_among_matches() -> None:
    answer = why("p=ab+ greedy? >> q=*+ consecutive skip_to_last(p)", "a1 c1 x1 a2 b1 a3 c2 x2 a4")
    assert len(answer.found) == 14


def test_of_matches_that_time_completes_the_first_counts_as_it_does_on_a_stream() -> None:
    pattern = "a >>> b >>> c[price > LAST(b.price)] >>! n since_previous(3) skip_to_next"
    [match] = why(pattern, "a1@0 b1=5@1 b2=1@2 c2=3@3 c3=9@4 x1@20").found
    assert [event.row for _, events in match.bound for event in events] == [0, 2, 3]


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        ("a >> b[price > 3]", "a1 b1=2", "row 1 b at 1, for b: price > 3.0 is FALSE (price = 2.0); else a match"),
        ("a >> b within(3)", "a1 x1@4 b1@5", "row 2 b at 5 would be b, but the window has passed; else a match"),
        ("a > b", "a1 x1 b1", "row 2 b at 2 would be b, but row 1 x at 1 is in between; else a match"),
        ("a >>! n >> b", "a1 n1 b1", "row 1 n at 1 is n, which must not be there; else a match"),
        ("a >>! n within(5)", "a1 n1", "row 1 n at 1 is n, which must not be there; else a match"),
        (
            "a >> b since_previous(2)",
            "a1 b1@3",
            "row 1 b at 3 would be b, but it is 2 or more after row 0 a at 0; else a match",
        ),
        (
            "a >> b{1,2} greedy > p=bc",
            "a1 b1 b2 b3",
            "row 3 b at 3 would be p, but b is greedy, and would take it; else a match",
        ),
    ],
)
def test_a_near_miss_says_what_was_in_the_way(pattern: str, events: str, expected: str) -> None:
    text = str(why(pattern, events)).partition("near misses")[2]
    assert expected in [line.strip() for line in text.splitlines()]


def test_python_functions_are_told_by_name() -> None:
    def is_dear(row: dict[str, Any], bound: dict[str, Any]) -> bool:
        return bool(row["price"] > 5)

    pattern = kleene.begin("a", type="a").followed_by("b", type="b").where(is_dear).or_where("price < 1")
    events = pa.table({"type": ["a", "b"], "t": [0, 1], "price": [1, 3]})
    answer = pattern.why(events, order_by="t", at=0)
    told = "is_dear(row, bound) OR price < 1 is FALSE (is_dear(row, bound) = FALSE, price = 3)"
    assert told in str(answer)
    alone = kleene.begin("a", type="a").followed_by("b", type="b").where(is_dear).why(events, order_by="t")
    assert "for b: is_dear(row, bound) is FALSE; else a match" in str(alone)


def test_whole_answer_reads_as_text() -> None:
    pattern = (
        kleene.begin("a", type="Shelf")
        .not_followed_by("n", type="Register")
        .followed_by("b", type="Exit")
        .where("weight < LAST(a.weight)")
        .within(10)
        .partition_by("tag")
    )
    events = pa.table(
        {
            "type": ["Shelf", "Shelf", "Register", "Exit", "Exit", "Exit"],
            "t": [1, 2, 3, 4, 5, 20],
            "tag": [7, 8, 7, 7, 8, 8],
            "weight": [5, 5, 1, 4, 6, 1],
        }
    )
    assert str(pattern.why(events, order_by="t", keys=8)) == EXPECTED


EXPECTED = """\
(kleene.begin('a', type='Shelf')
    .not_followed_by('n', type='Register')
    .followed_by('b', type='Exit')
    .where('weight < last(a.weight)')
    .within(10)
    .partition_by('tag'))

0 matches among 3 events; 1 run followed
note: looked at 1 of 2 partitions: those of the events that were asked for

events that passed            passed  of  stopped runs
  a  is Shelf                      1   3
  n  is Register  [negation]       0   3
  b  is Exit                       2   3
     weight < last(a.weight)       0   1             1

runs that reached a state: a 1, b 0
runs ended by: window 1
most runs were stopped by weight < last(a.weight) of b: 1 run

near misses
  run 1 (tag = 8): a = 1
    row 4 Exit at 5, for b: weight < last(a.weight) is FALSE (weight = 6, last(a.weight) = 5); else a match
  run 1 (tag = 8): a = 1
    row 5 Exit at 20 would be b, but the window has passed; else a match

runs, step by step
  run 1 (tag = 8): a = 1
    row 1 Shelf at 2 is a
    row 4 Exit at 5 is not b: weight < last(a.weight) is FALSE (weight = 6, last(a.weight) = 5)
    ✗ the window has passed with row 5 Exit at 20, waiting for b"""


# --- bounded work, and questions that cannot be answered ---


def test_runs_and_tries_are_bounded_and_the_answer_says_so() -> None:
    answer = why("b+ combinations", " ".join(f"b{number}" for number in range(1, 30)), max_runs=50)
    assert answer.runs_followed == 50
    [note] = answer.notes
    assert note.startswith("stopped after 50 runs, max_runs, or 20 times as many tries: what comes later")
    waiting = why("a >> b >> c", " ".join(f"a{number}" for number in range(1, 200)), max_runs=200)
    assert waiting.notes
    assert waiting.runs_followed < 200


def test_an_event_that_no_run_tells_of_has_its_reason_too() -> None:
    answer = why("a >> b", "b1 a1 x1", at=0)
    assert [(run.rows, ending.kind) for run in answer.runs for ending in run.endings] == [((), Kind.NOT_SEEN)]
    answer = why("a[price > 3] >> b", "a1=1 b1", at=0)
    assert [(run.rows, ending.kind) for run in answer.runs for ending in run.endings] == [((), Kind.NOT_BEGUN)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"z": 0}, "at names 'z', which no event of a match is bound to"),
        ({"n": 0}, "at names 'n', which no event of a match is bound to"),
        ({"a": [0, 1]}, "at names 2 rows for 'a', which is one event"),
        ({"a": []}, "at names no row"),
        ({"a": 7}, "the input has no row 7"),
    ],
)
def test_wrong_combinations_are_refused(rows: Any, message: str) -> None:
    with pytest.raises(kleene.SchemaError, match=message):
        why("a >>! n >> b", "a1 b1", at=rows)


def test_the_same_error_as_matching_raises() -> None:
    pattern = kleene.begin("a", type="a").next("b", type="b").optional().next("c", type="c")
    pattern = pattern.after_match("skip_to_first", "b", missing="error")
    events = pa.table({"type": ["a", "c"], "t": [0, 1]})
    for ask in (pattern.why, pattern.match):
        with pytest.raises(kleene.ExecutionError, match="the match of a at 0, c at 1 has no event of it"):
            ask(events, order_by="t")


def test_no_text_of_the_data_reaches_a_terminal_unescaped() -> None:
    events = pa.table({"type": ["a", "b"], "t": [0, 1], "s": ["\x1b[31m", "\u202e"]})
    pattern = kleene.begin("a", type="a").followed_by("b", type="b").where("s = LAST(a.s)")
    text = str(pattern.why(events, order_by="t", at=0))
    assert "\\x1b[31m" in text
    assert "\x1b" not in text

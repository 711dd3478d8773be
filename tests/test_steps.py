"""What the builder makes: values that compare, conditions of both kinds, the columns of results, timeouts, EXPLAIN."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

import kleene
from kleene import begin
from step_cases import events_of, found_in

EVENTS = events_of("a1=5 b1=3 b2=7 x1 c1=1")


class TestValues:
    def test_a_call_leaves_the_pattern_as_it_was(self) -> None:
        first = begin("a")
        longer = first.next("b")
        assert first == begin("a")
        assert longer != first
        assert hash(longer) == hash(begin("a").next("b"))

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (begin("a", type="A"), begin("a").of_type("A")),
            (begin("a", type=["A", "B"]), begin("a").of_type("A", "B")),
            (begin("a").one_or_more(), begin("a").times_or_more(1)),
            (begin("a").times(0, 3), begin("a").times(1, 3).optional()),
            (begin("a").optional().times(2), begin("a").times(2).optional()),
            (begin("a").where("price>10"), begin("a").where("price > 10")),
            (begin("a").within(5).within(3), begin("a").within(3)),
            (begin("a").within("1 minute"), begin("a").within(dt.timedelta(seconds=60))),
            (begin("a").within(5).next("b"), begin("a").next("b").within(5)),
            (begin("a").after_match("no_skip"), begin("a")),
            (
                begin("a").where("x > 1").one_or_more().until("x > 2"),
                begin("a").one_or_more().until("x > 2").where("x > 1"),
            ),
        ],
    )
    def test_patterns_that_say_the_same_are_equal(self, one: kleene.StepPattern, other: kleene.StepPattern) -> None:
        assert one == other
        assert repr(one) == repr(other)

    def test_a_long_pattern_prints_on_several_lines(self) -> None:
        pattern = begin("a", type="Shelf").where("price > 10").followed_by(begin("b").next("c")).times(2, 3)
        pattern = pattern.not_followed_by("n").next("d").within("5 minutes").after_match("skip_to_last", "d")
        assert repr(pattern).count("\n") == 7
        assert eval(repr(pattern), {"kleene": kleene}) == pattern


class TestConditions:
    def test_a_function_sees_the_event_and_all_that_is_bound(self) -> None:
        seen: list[tuple[str, dict[str, list[str]]]] = []

        def rising(row: dict[str, Any], bound: dict[str, list[dict[str, Any]]]) -> bool:
            seen.append((row["id"], {name: [own["id"] for own in rows] for name, rows in bound.items()}))
            return not bound["b"] or row["price"] > bound["b"][-1]["price"]

        pattern = begin("a", type="a").followed_by("b", type="b").where(rising).one_or_more().next("c", type="x")
        assert found_in(pattern.match(EVENTS, order_by="t")) == [(("a", ("a1",)), ("b", ("b1", "b2")), ("c", ("x1",)))]
        assert ("b2", {"a": ["a1"], "b": ["b1"], "c": []}) in seen

    def test_a_function_that_fails_says_so(self) -> None:
        pattern = begin("a").where(lambda row, bound: row["nothing"])
        with pytest.raises(kleene.ExecutionError, match="failed at row 1: KeyError"):
            pattern.match(EVENTS, order_by="t")

    def test_text_and_functions_join(self) -> None:
        pattern = begin("p", type="b").where("price > 5").or_where(lambda row, bound: row["id"] == "b1")
        assert len(found_in(pattern.match(EVENTS, order_by="t"))) == 2
        assert len(found_in(pattern.where("price < 5").match(EVENTS, order_by="t"))) == 1

    def test_the_type_counts_whatever_or_says(self) -> None:
        pattern = begin("p", type="b").where("price > 5").or_where("price < 5")
        assert [row["p"]["id"] for row in pattern.match(EVENTS, order_by="t").to_pylist()] == ["b1", "b2"]

    def test_a_condition_that_is_null_does_not_hold(self) -> None:
        pattern = begin("a", type="a").followed_by("b").where("price < 5")
        assert [row["b"]["id"] for row in pattern.match(events_of("a1 x1 b1=3"), order_by="t").to_pylist()] == ["b1"]

    def test_values_of_parameters_come_with_the_call(self) -> None:
        pattern = begin("p", type="b").where("price > :least")
        assert [pattern.match(EVENTS, order_by="t", params={"least": n}).num_rows for n in (2, 5, 9)] == [2, 1, 0]
        with pytest.raises(kleene.AnalysisError, match="the parameter ':least' has no value"):
            pattern.match(EVENTS, order_by="t")


class TestResults:
    def test_columns(self) -> None:
        pattern = (
            begin("a", type="a").next("n", type="x").optional().followed_by("b", type="b").times(2).partition_by("k")
        )
        found = pattern.match(EVENTS.append_column("k", pa.array([1] * 5)), order_by="t")
        assert found.column_names == ["k", "a", "n", "b", "match_start", "match_end"]
        [row] = found.to_pylist()
        assert row["n"] is None
        assert [event["id"] for event in row["b"]] == ["b1", "b2"]
        assert (row["match_start"], row["match_end"]) == (0, 2)

    def test_the_first_event_may_be_of_a_later_step(self) -> None:
        pattern = begin(begin("p", type="x").optional().next("q", type="b")).times(2)
        [row] = pattern.match(events_of("b1 x1 b2"), order_by="t").to_pylist()
        assert (row["match_start"], row["match_end"]) == (0, 2)

    def test_runs_that_are_open_in_the_end_time_out(self) -> None:
        pattern = begin("a", type="a").followed_by("b", type="b").one_or_more().followed_by("c", type="c").within(9)
        [row] = pattern.match(events_of("a1 b1"), order_by="t", timeouts=True).to_pylist()
        assert row["timed_out"] is True
        assert (row["a"]["id"], [event["id"] for event in row["b"]], row["c"]) == ("a1", ["b1"], None)
        assert row["match_end"] == 1

    def test_a_window_of_events_counts_those_of_the_partition(self) -> None:
        pattern = begin("a", type="a").followed_by("b", type="b").within("3 events")
        assert pattern.match(events_of("a1 x1 b1"), order_by="t").num_rows == 1
        assert pattern.match(events_of("a1 x1 x2 b1"), order_by="t").num_rows == 0

    def test_a_null_in_the_key_is_in_no_partition(self) -> None:
        events = events_of("a1 b1 a2 b2").append_column("k", pa.array([None, None, 1, 1], pa.int64()))
        found = begin("a", type="a").next("b", type="b").partition_by("k").match(events, order_by="t")
        assert [row["a"]["id"] for row in found.to_pylist()] == ["a2"]


def test_explain_shows_the_steps_the_automaton_and_what_stays_open() -> None:
    pattern = begin("a", type="a").not_followed_by("n", type="x").next("b", type="b").times(2, 3, gap=4).greedy()
    text = pattern.followed_by("c").where("price > LAST(b.price)").within(20).explain()
    assert text.startswith("(kleene.begin('a', type='a')\n    .not_followed_by('n', type='x')")
    assert "after a, no n may come" in text
    assert "b[2]          take     → b[3]          b AND less than 4 after the event before" in text
    assert "NOT c AND NOT b" in text
    assert "c when price > last(b.price)" in text


def test_the_long_form_has_a_row_for_each_event() -> None:
    pattern = begin("a", type="a").followed_by("b", type="b").one_or_more().followed_by("c", type="c").optional()
    found = pattern.match(events_of("a1 b1 x1 b2 c1"), order_by="t", long=True).to_pylist()
    ids = list(dict.fromkeys(row["match_id"] for row in found))
    rows = [(ids.index(row["match_id"]), row["match_variable"], row["match_position"], row["id"]) for row in found]
    assert rows[:2] == [(0, "a", 1, "a1"), (0, "b", 2, "b1")]
    assert rows[-3:] == [(3, "a", 1, "a1"), (3, "b", 2, "b1"), (3, "c", 3, "c1")]


def test_a_repeated_group_has_no_long_form() -> None:
    pattern = begin(begin("a", type="a").next("b", type="b")).one_or_more()
    with pytest.raises(kleene.UnsupportedError, match=r"repeats the group \(a, b\) has no long form"):
        pattern.match(events_of("a1 b1 a2 b2"), order_by="t", long=True)

"""Patterns in steps that are refused: at the call that makes them illegal, or when they are used, with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from test_messages import check_hint

import kleene
from kleene import begin

EVENTS = pa.table({"type": ["a", "b"], "t": [1, 2], "price": [1, 2]})
a, b = begin("a"), begin("a").followed_by("b")
loop = b.one_or_more()
group = begin("x").next("y")
absent = b.not_followed_by("n")

# What is built, and words of the message.
AT_THE_CALL: list[tuple[Callable[[], Any], str]] = [
    (lambda: b.next("a"), "two steps are called 'a'"),
    (lambda: begin(group).next("x"), "two steps are called 'x'"),
    (lambda: begin("x").next(group), "two steps are called 'x'"),
    (lambda: begin(""), "an empty name"),
    (lambda: begin(3), "3 was given"),  # type: ignore[arg-type]
    (lambda: loop.times(2), "step 'b' is repeated already"),
    (lambda: b.times(2).one_or_more(), "step 'b' is repeated already"),
    (lambda: loop.optional().optional(), "step 'b' is optional already"),
    (lambda: loop.until("price > 1").until("price > 2"), "step 'b' has an until condition already"),
    (lambda: loop.consecutive().consecutive(), "step 'b' has consecutive already"),
    (lambda: loop.allow_combinations().allow_combinations(), "step 'b' has allow_combinations already"),
    (lambda: loop.greedy().greedy(), "step 'b' is greedy already"),
    (lambda: b.times(0), "times(0) of step 'b': a count is positive"),
    (lambda: b.times(-1), "times(-1) of step 'b'"),
    (lambda: b.times(-1, 2), "times(-1) of step 'b'"),
    (lambda: b.times_or_more(0), "times_or_more(0) of step 'b'"),
    (lambda: b.times(3, 2), "times(3, 2) of step 'b' is an empty range"),
    (lambda: b.times(0, 0), "times(0, 0) of step 'b' is an empty range"),
    (lambda: b.times("2"), "takes whole numbers"),  # type: ignore[arg-type]
    (lambda: b.greedy(), "greedy on step 'b', which is not repeated"),
    (lambda: b.consecutive(), "consecutive on step 'b', which is not repeated"),
    (lambda: b.allow_combinations(), "allow_combinations on step 'b', which is not repeated"),
    (lambda: loop.consecutive().allow_combinations(), "they exclude each other"),
    (lambda: loop.allow_combinations().consecutive(), "they exclude each other"),
    (lambda: loop.greedy().allow_combinations(), "step 'b' cannot be greedy and allow combinations"),
    (lambda: loop.allow_combinations().greedy(), "step 'b' cannot be greedy and allow combinations"),
    (lambda: begin(group).one_or_more().greedy(), "greedy is not defined for group (x, y)"),
    (lambda: loop.greedy().next("c").optional(), "step 'c' stands right after the greedy step 'b'"),
    (lambda: loop.greedy().next("c").times(0, 2), "step 'c' stands right after the greedy step 'b'"),
    (lambda: loop.greedy().next(group).optional(), "group (x, y) stands right after the greedy step 'b'"),
    (lambda: loop.greedy().next(begin("x").optional().next("y")), "group (x, y) stands right after the greedy"),
    (lambda: b.until("price > 1"), "until on step 'b', which is not an unbounded loop"),
    (lambda: b.times(2, 3).until("price > 1"), "until on step 'b', which is not an unbounded loop"),
    (lambda: absent.times(2), "times on the negative step 'n'"),
    (lambda: absent.one_or_more(), "one_or_more on the negative step 'n'"),
    (lambda: absent.optional(), "optional on the negative step 'n'"),
    (lambda: absent.greedy(), "greedy on the negative step 'n'"),
    (lambda: absent.until("price > 1"), "until on the negative step 'n'"),
    (lambda: b.optional().not_next("n"), "right after the optional step 'b'"),
    (lambda: a.next(group).optional().not_followed_by("n"), "right after the optional group (x, y)"),
    (lambda: begin(group).where("price > 1"), "where is about one event, but group (x, y)"),
    (lambda: begin(group).or_where("price > 1"), "or_where is about one event, but group (x, y)"),
    (lambda: begin(group).of_type("A"), "of_type is about one event, but group (x, y)"),
    (lambda: begin(group, type="A"), "type= in begin is about one step, but group (x, y)"),
    (lambda: begin(group).times(2, gap=3), "gap is between events of one step, but group (x, y)"),
    (lambda: a.next(group).within(3, since="previous"), "since='previous' is about one step, but group (x, y)"),
    (lambda: a.next(group.within(3)), "group (x, y) has within"),
    (lambda: a.next(group.after_match("no_skip")), "group (x, y) has after_match"),
    (lambda: a.next(group.partition_by("price")), "group (x, y) has partition_by"),
    (lambda: a.next(group.not_next("n")), "group (x, y, n) ends with the negative step 'n'"),
    (lambda: begin(begin("x").optional()).one_or_more(), "it could go round for ever"),
    (lambda: begin(begin("x").optional().next("y").optional()).times_or_more(2), "it could go round for ever"),
    (lambda: a.within(3, since="previous"), "since='previous' on step 'a', which is the first"),
    (lambda: b.within(3, since="last"), "since is 'first' or 'previous', but 'last' was given"),
    (lambda: b.within(0), "the window of the pattern is 0, but a window is positive"),
    (lambda: b.within(-3), "the window of the pattern is -3"),
    (lambda: b.within("0 minutes"), "a window is positive"),
    (lambda: b.within("soon"), "'soon', which is not a window"),
    (lambda: b.within(0, since="previous"), "the window of step 'b' is 0"),
    (lambda: b.times(2, gap=-1), "the gap of step 'b' is -1"),
    (lambda: b.times(2, gap="5 events"), "the gap of step 'b' counts events"),
    (lambda: b.within("5 events", since="previous"), "the window of step 'b' counts events"),
    (lambda: b.after_match("skip_to_frist"), "after_match has no mode 'skip_to_frist'"),
    (lambda: b.after_match("skip_to_next", "b"), "after_match('skip_to_next') takes no step"),
    (lambda: b.after_match("skip_to_first"), "after_match('skip_to_first') needs the name of a step"),
    (lambda: b.after_match("skip_to_first", "b", missing="never"), "missing is 'ignore' or 'error'"),
    (lambda: b.partition_by(3), "partition_by takes names of columns"),  # type: ignore[arg-type]
    (lambda: b.where(3), "the condition of step 'b' is text or a function"),  # type: ignore[arg-type]
    (lambda: b.where("COUNT(a.price, b.price) > 1"), "COUNT takes one argument"),
    (lambda: b.where("LAST(a.*) > 1"), "only COUNT takes *"),
]
WHEN_USED: list[tuple[kleene.StepPattern, str]] = [
    (absent, "not_followed_by('n') stands last, and nothing says when to stop waiting"),
    (absent.within("5 events"), "not_followed_by('n') stands last, and nothing says when to stop waiting"),
    (loop.not_followed_by("n").within(3, since="previous"), "step 'b' could still go on"),
    (a.next(begin("x").next("y").one_or_more()).not_followed_by("n").within(3, since="previous"), "could still go on"),
    (b.within(5, since="previous").within(3), "since='previous' of step 'b' is 5, larger than the window"),
    (b.times(2, gap=5).within(3), "gap of step 'b' is 5, larger than the window of the pattern, 3"),
    (b.after_match("skip_to_first", "zed"), "after_match names 'zed', which is not a step"),
    (absent.next("c").after_match("skip_to_first", "n"), "'n', which is a negative step"),
    (b.where("zed.price > 1"), "'zed' is neither a step nor an attribute"),
    (b.where("LAST(zed.price) > 1"), "unknown step 'zed'"),
    (b.where("prize > 1"), "no event has the attribute 'prize'"),
    (b.where("LAST(a.prize) > 1"), "no event has the attribute 'prize'"),
    (b.where("LAST(price) > 1"), "LAST is over the events of one step"),
    (loop.next("c").where("b.price > 1"), "'b.price' is many values"),
    (begin(group).times(2).next("c").where("x.price > 1"), "'x.price' is many values"),
    (absent.where("n.price > 1").next("c"), "'n' is a negative step and has no events"),
    (b.where("a > 1"), "'a' is a step, not a value"),
    (b.where("price"), "a condition needs a boolean"),
    (b.partition_by("item"), "partition_by names the attribute 'item', which no event has"),
    (b.within("5 minutes"), "the window of the pattern is 5 minutes, a duration, but the order key is an integer"),
    (b.times(2, gap="5 minutes"), "gap of step 'b' is 5 minutes, a duration"),
    (b.next("match_end"), "two columns 'match_end'"),
]


@pytest.mark.parametrize("number", range(len(AT_THE_CALL)), ids=lambda n: re.sub(r"\W+", "_", AT_THE_CALL[n][1]))
def test_an_illegal_call_is_refused_with_the_reason(number: int) -> None:
    build, words = AT_THE_CALL[number]
    with pytest.raises(kleene.AnalysisError) as caught:
        build()
    assert words in str(caught.value), str(caught.value)
    assert caught.value.hint is not None
    check_hint(caught.value.hint)


@pytest.mark.parametrize("number", range(len(WHEN_USED)), ids=lambda n: re.sub(r"\W+", "_", WHEN_USED[n][1]))
def test_what_depends_on_the_whole_is_refused_when_it_is_used(number: int) -> None:
    pattern, words = WHEN_USED[number]
    with pytest.raises(kleene.AnalysisError) as caught:
        pattern.match(EVENTS, order_by="t")
    assert words in str(caught.value), str(caught.value)
    assert caught.value.hint is not None


def test_a_number_is_no_window_on_timestamps() -> None:
    events = pa.table({"type": ["a"], "t": [datetime(2024, 1, 1)]})
    with pytest.raises(kleene.AnalysisError, match="the window of the pattern is 5, which has no unit"):
        b.within(5).match(events, order_by="t")


def test_a_condition_that_does_not_parse_says_which_and_where() -> None:
    with pytest.raises(kleene.QuerySyntaxError, match="in the condition of step 'b'") as caught:
        b.where("price >")
    assert (caught.value.line, caught.value.column) == (1, 8)


def test_what_steps_do_not_have_is_refused() -> None:
    for call in (lambda: b.compressed(EVENTS, order_by="t"), lambda: b.aggregate(EVENTS, {"n": "count(*)"})):
        with pytest.raises(kleene.UnsupportedError, match="for SASE queries"):
            call()
    with pytest.raises(kleene.UnsupportedError, match="format is for SASE queries"):
        b.match(EVENTS, order_by="t", format="non_overlapping")
    with pytest.raises(kleene.UnsupportedError, match="the pattern has no window"):
        b.match(EVENTS, order_by="t", timeouts=True)

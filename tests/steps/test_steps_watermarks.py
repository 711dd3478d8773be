"""Watermarks change nothing: matches and timeouts are those of the whole input, wherever watermarks fall."""

import random
import warnings
from typing import Any

import pyarrow as pa
import pytest

import kleene
from flat_options import call_of
from generate import random_pattern, random_stream
from kleene.api import prepare
from kleene.engine.progress import CheckedProgress, PreparedQuery
from run_checks import table
from steps_model import Event, Pattern
from steps_notation import parse, render, render_stream, stream, to_builder

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


def rows_of(found: pa.Table) -> list[str]:
    return sorted(map(repr, found.to_pylist()))


class Watched:
    """A pattern on its way, which is told the time between events."""

    def __init__(self, pattern: Pattern, events: list[Event], timeouts: bool = True) -> None:
        built = to_builder(pattern, kleene)
        call = call_of(built.definition, order_by="t", timeouts=timeouts, engine="reference")
        self.table, plan = prepare(call, table(events))
        self.query = PreparedQuery(plan, self.table.schema, call.order.columns)
        self.progress = CheckedProgress(self.query)
        self.found: list[dict[str, Any]] = []

    def feed(self, begin: int, end: int, now: int | None = None, is_last: bool = False) -> list[dict[str, Any]]:
        piece = self.table.slice(begin, end - begin)
        found = [row for part in self.progress.batches(piece, is_last, now=now) for row in part.table.to_pylist()]
        self.found += found
        return found

    def restart(self) -> None:
        self.progress = CheckedProgress.restore(self.query, self.progress.snapshot())


def with_watermarks(chance: random.Random, pattern: Pattern, events: list[Event], timeouts: bool = True) -> list[str]:
    watched = Watched(pattern, events, timeouts)
    times = [*(event.time for event in events), None]
    for number in range(len(events)):
        watched.feed(number, number + 1)
        now, following = times[number], times[number + 1]
        for _ in range(chance.choice((0, 1, 1, 2, 3))):
            if chance.random() < 0.3:
                watched.restart()
            assert now is not None
            most = now + 12 if following is None else following
            now = chance.randint(now, most)
            watched.feed(0, 0, now)
    watched.feed(0, 0, is_last=True)
    return sorted(map(repr, watched.found))


def batch(pattern: Pattern, events: list[Event], timeouts: bool = True) -> list[str] | None:
    """None where a match that lacks its step is an error, and for timeouts where no window bounds the pattern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"timeouts": True} if timeouts else {}
        try:
            found = to_builder(pattern, kleene).match(table(events), order_by="t", engine="reference", **options)
        except (kleene.ExecutionError, kleene.UnsupportedError):
            return None
    return rows_of(found)


@pytest.mark.parametrize("part", range(3))
def test_watermarks_change_neither_matches_nor_timeouts(part: int) -> None:
    chance = random.Random(f"watermarks {part}")
    compared = skipping = 0
    while compared < 60:
        pattern = random_pattern(chance)
        events = random_stream(chance, pattern)
        expected = batch(pattern, events)
        if expected is None:
            continue
        assert with_watermarks(chance, pattern, events) == expected, f"{render(pattern)} on {render_stream(events)}"
        compared += 1
        skipping += pattern.mode != "no_skip" and any("'timed_out': True" in row for row in expected)
    assert skipping > 5


DROPPED = "a >> b[price > LAST(a.price)] >>! n within(10) skip_past_last_event"
"""At 10, the match of a1 and b1 is given out and drops the run of a2, whose time would have been over at 11."""


def late(rows: list[dict[str, Any]]) -> list[str]:
    return [row["a"]["id"] for row in rows if row["timed_out"]]


@pytest.mark.parametrize(("following", "expected"), [("x1@10", []), ("x1@11", ["a2"]), ("", ["a2"])])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_run_dropped_between_events_times_out_if_the_next_event_is_late_enough(
    following: str, expected: list[str], restarts: bool
) -> None:
    events = stream(f"a1=1@0 a2=9@1 b1=5@2 {following}")
    whole = batch(parse(DROPPED), events)
    watched = Watched(parse(DROPPED), events)
    watched.feed(0, 3)
    [match] = watched.feed(0, 0, now=10)
    assert (match["timed_out"], match["a"]["id"]) == (False, "a1")
    if restarts:
        watched.restart()
    watched.feed(3, len(events))
    watched.feed(0, 0, is_last=True)
    assert late(watched.found) == expected
    assert sorted(map(repr, watched.found)) == whole


@pytest.mark.parametrize(("following", "expected"), [("x1@10", []), ("x1@11", ["a2"])])
def test_a_dropped_run_keeps_the_bound_that_it_waited_under(following: str, expected: list[str]) -> None:
    """The run of a2 would have ended at 11, by the bound of its step; by the window, only at 12."""
    pattern = parse("a >> b[price > LAST(a.price)] since_previous(9) >>! n within(10) skip_past_last_event")
    events = stream(f"a1=1@0 a2=9@2 b1=5@3 {following}")
    watched = Watched(pattern, events)
    watched.feed(0, 3)
    watched.feed(0, 0, now=10)
    watched.restart()
    watched.feed(3, 4, is_last=True)
    assert late(watched.found) == expected
    assert sorted(map(repr, watched.found)) == batch(pattern, events)


def test_equal_bindings_time_out_once_though_one_run_was_dropped() -> None:
    """At 10, the run of a2 that waits for q ends, and the one that waits for b is dropped; its time is over at 12."""
    pattern = parse(
        "a >> q=u? since_previous(8) >> b[price > LAST(a.price)] >>! n within(10) skip_past_last_event",
    )
    events = stream("a1=1@0 a2=9@2 x1@3 b1=5@4 x2@12")
    watched = Watched(pattern, events)
    watched.feed(0, 4)
    for now in (10, 11):
        watched.feed(0, 0, now=now)
    watched.feed(4, 5, is_last=True)
    assert sorted(late(watched.found)) == ["a1", "a2"]
    assert sorted(map(repr, watched.found)) == batch(pattern, events)


def test_a_watermark_tells_of_a_dropped_run_when_no_event_can_come_before_its_end() -> None:
    watched = Watched(parse(DROPPED), stream("a1=1@0 a2=9@1 b1=5@2"))
    watched.feed(0, 3)
    watched.feed(0, 0, now=10)
    assert watched.progress.held().wakes_at == 11
    assert late(watched.feed(0, 0, now=11)) == ["a2"]
    assert watched.progress.held().is_idle
    assert watched.feed(0, 0, is_last=True) == []


def test_of_matches_that_begin_together_that_is_given_out_which_time_completed_first() -> None:
    """{a b2 c2} is over at 6 and {a b1 c3} at 7, though its run arose first."""
    pattern = parse("a >>> b >>> c[price > LAST(b.price)] >>! n since_previous(3) skip_to_next")
    events = stream("a1@0 b1=5@1 b2=1@2 c2=3@3 c3=9@4 x1@20")
    watched = Watched(pattern, events, timeouts=False)
    watched.feed(0, 5)
    [match] = watched.feed(0, 0, now=6)
    assert (match["b"]["id"], match["c"]["id"]) == ("b2", "c2")
    watched.feed(5, 6, is_last=True)
    assert sorted(map(repr, watched.found)) == batch(pattern, events, timeouts=False)

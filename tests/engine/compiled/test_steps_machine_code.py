"""Machine code for patterns in steps, on tables that are large enough for it, and with threads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kleene
from flat_options import call_of
from kleene import begin
from kleene.api import prepare
from kleene.engine.choice import choose

EVENTS = 40_000


def some_events(count: int = EVENTS) -> pa.Table:
    chance = np.random.default_rng(3)
    return pa.table(
        {
            "type": np.array(list("abcx"))[chance.choice(4, count, p=[0.1, 0.3, 0.1, 0.5])],
            "t": np.arange(count),
            "k": chance.integers(0, 30, count),
            "price": chance.integers(0, 50, count) / 2,
        }
    )


PATTERNS = {
    "a loop, with values that a run keeps": begin("a", type="a")
    .followed_by("b", type="b")
    .where("price > a.price AND (COUNT(b.*) = 0 OR price > AVG(b.price))")
    .one_or_more()
    .not_followed_by("n", type="c")
    .where("price > 20")
    .followed_by("c", type="c")
    .optional()
    .within(400)
    .after_match("skip_to_last", "b")
    .partition_by("k"),
    "a group": begin("s", type="a")
    .followed_by(begin("p", type="b").next("q", type=["b", "x"]))
    .one_or_more()
    .followed_by_any("e", type="c")
    .not_followed_by("n", type="a")
    .within(90)
    .partition_by("k"),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_machine_code_and_threads_find_what_the_interpreter_finds(name: str) -> None:
    events, pattern = some_events(), PATTERNS[name]
    expected = pattern.match(events, order_by="t", engine="reference")
    assert expected.num_rows > 100
    engine = kleene.EngineOptions("compiled", threads=2)
    assert pattern.match(events, order_by="t", engine=engine).equals(expected)
    progress = pattern.progress(events, order_by="t", engine="compiled")
    rows = [progress.feed(events.slice(at, 7_000)) for at in range(0, EVENTS, 7_000)] + [progress.finish()]
    assert sorted(map(repr, pa.concat_tables(rows).to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_a_large_table_needs_no_options() -> None:
    """Whatever engine answers, statistics that only SASE plans have are not asked for."""
    events = some_events(12_000)
    found = (
        begin("a", type="a").next("b", type="b").where(lambda row, bound: row["price"] > 20).match(events, order_by="t")
    )
    assert found.num_rows > 50


class TestChoice:
    def reason(self, pattern: kleene.StepPattern, **options: object) -> str:
        call = call_of(pattern.definition, order_by="t", **options)
        return choose(prepare(call, some_events(5))[1]).reason

    def test_it_says_why_the_interpreter_runs_a_pattern(self) -> None:
        pattern = begin("a").next("b").within(5)
        assert "machine code" in self.reason(pattern)
        assert "conditions that are Python functions" in self.reason(pattern.where(lambda row, bound: True))
        assert "timeouts of patterns in steps" in self.reason(pattern, timeouts=True)
        assert "missing='error'" in self.reason(pattern.after_match("skip_to_last", "b", missing="error"))

    def test_an_engine_that_cannot_run_it_is_refused(self) -> None:
        pattern = begin("a").next("b").where(lambda row, bound: True)
        with pytest.raises(kleene.UnsupportedError, match="has no code for conditions that are Python functions"):
            pattern.match(some_events(5), order_by="t", engine="compiled")

    def test_the_code_can_be_looked_at(self) -> None:
        pattern = PATTERNS["a group"]
        assert "def advance_steps(" in pattern.explain(some_events(5), order_by="t", code=True)
        assert "s again" not in pattern.explain(some_events(5), order_by="t")
        assert "<svg" in pattern.explain(svg=True)
        assert "digraph" in pattern.explain(dot=True)


def test_too_many_runs_are_told() -> None:
    pattern = begin("a").followed_by_any("b").one_or_more().allow_combinations().partition_by("k")
    for engine in ("reference", "generated"):
        options = kleene.EngineOptions(engine, run_limit=100)
        with pytest.raises(kleene.LimitError, match="has more than 100 partial matches at once"):
            pattern.match(some_events(2_000), order_by="t", engine=options)

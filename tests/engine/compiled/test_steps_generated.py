"""Generated patterns in steps: the code made for them finds what the interpreter finds, in one piece and in many."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import kleene
from step_cases import load_steps
from step_strategies import random_events, random_pattern

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
CASES = [case for case in load_steps() if not case.item.keys() & {"illegal", "error", "timed_out"}]


def in_pieces(pattern: kleene.StepPattern, events: pa.Table, random: Random, **options: Any) -> list[dict[str, Any]]:
    progress, at, rows = pattern.progress(events, order_by="t", **options), 0, list[dict[str, Any]]()
    while at < events.num_rows:
        size = random.randint(1, 5)
        rows += progress.feed(events.slice(at, size)).to_pylist()
        at += size
        if random.random() < 0.5:
            progress = pattern.progress(events, order_by="t", **options, snapshot=progress.snapshot())
    return rows + progress.finish().to_pylist()


def as_set(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("seed", range(150))
def test_generated_code_agrees_with_the_interpreter(seed: int) -> None:
    random = Random(seed)
    pattern = random_pattern(random)
    for _ in range(4):
        events = random_events(random, random.randint(0, 16))
        expected = pattern.match(events, order_by="t", engine="reference")
        assert pattern.match(events, order_by="t", engine="generated").to_pylist() == expected.to_pylist(), pattern
        for engine in ("reference", "generated"):
            found = in_pieces(pattern, events, random, engine=engine)
            assert as_set(found) == as_set(expected.to_pylist()), (pattern, engine)


@pytest.mark.parametrize("seed", range(60))
def test_timeouts_do_not_depend_on_the_pieces(seed: int) -> None:
    random = Random(1000 + seed)
    pattern = random_pattern(random).within(5)
    events = random_events(random, 14)
    whole = pattern.match(events, order_by="t", timeouts=True).to_pylist()
    assert as_set(in_pieces(pattern, events, random, timeouts=True)) == as_set(whole), pattern
    assert [row for row in whole if not row.pop("timed_out")] == pattern.match(events, order_by="t").to_pylist()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_by_generated_code(case: Any) -> None:
    options = {"order_by": "t"}
    expected = case.pattern.match(case.events, **options, engine="reference")
    assert case.pattern.match(case.events, **options, engine="generated").to_pylist() == expected.to_pylist()

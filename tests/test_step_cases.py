"""Every case of patterns in steps: as whole tables, and in pieces that are cut at random, with snapshots between."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import kleene
from step_cases import StepCase, expected, expected_timeouts, found_in, load_steps

CASES = [case for case in load_steps() if "illegal" not in case.item]
ILLEGAL = [case for case in load_steps() if "illegal" in case.item]
pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


def options_of(case: StepCase) -> dict[str, Any]:
    return {"order_by": "t", "timeouts": "timed_out" in case.item, "engine": "reference"}


def check(case: StepCase, table: pa.Table) -> None:
    found = found_in(table)
    if case.item.get("in_any_order"):
        assert sorted(found) == sorted(expected(case))
    else:
        assert found == expected(case)
    assert found_in(table, is_timed_out=True) == expected_timeouts(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_of_steps_on_a_table(case: StepCase) -> None:
    if "error" in case.item:
        with pytest.raises(kleene.ExecutionError, match="after a match"):
            case.pattern.match(case.events, **options_of(case))
    else:
        check(case, case.pattern.match(case.events, **options_of(case)))


@pytest.mark.parametrize("case", [case for case in CASES if "error" not in case.item], ids=lambda case: case.name)
def test_case_of_steps_in_pieces_with_snapshots(case: StepCase) -> None:
    events, pattern, options = case.events, case.pattern, options_of(case)
    whole = pattern.match(events, **options)
    for seed in range(3):
        random, rows = Random(seed), list[dict[str, Any]]()
        progress, at = pattern.progress(events, **options), 0
        while at < events.num_rows:
            size = random.randint(1, 3)
            rows += progress.feed(events.slice(at, size)).to_pylist()
            at += size
            if random.random() < 0.7:
                progress = pattern.progress(events, **options, snapshot=progress.snapshot())
        rows += progress.finish().to_pylist()
        assert sorted(map(str, rows)) == sorted(map(str, whole.to_pylist()))


@pytest.mark.parametrize("case", ILLEGAL, ids=lambda case: case.name)
def test_case_of_steps_is_refused(case: StepCase) -> None:
    with pytest.raises(kleene.AnalysisError):
        case.pattern.match(case.events, order_by="t")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pattern_prints_as_the_calls_that_build_it(case: StepCase) -> None:
    assert eval(repr(case.pattern), {"kleene": kleene}) == case.pattern

"""The library finds what the cases say and what the slow checker finds, by its interpreter and by generated code."""

import random
from pathlib import Path

import pytest

import kleene
from generate import random_pattern, random_stream
from run_checks import LeftOutError, actual, agree, expected
from steps_cases import FOLDER, load
from steps_model import Event, Pattern
from steps_notation import parse, render, render_stream, stream

FILES = sorted(path for path in FOLDER.glob("*.toml") if path.name != "errors.toml")
ENGINES = ("reference", "generated")


def differs(pattern: Pattern, events: list[Event], engine: str, timeouts: bool = False) -> bool | None:
    """None where the engine has no code for the pattern, or a pattern without a window is to time out."""
    try:
        said = actual(kleene, pattern, events, timeouts, engine)
    except LeftOutError:
        return None
    return not agree(expected(pattern, events, timeouts), said, events)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_library_gives_what_the_cases_expect(path: Path, engine: str) -> None:
    cases = list(load([path]))
    if "combinations" in path.stem:  # each by one engine: there are many, and they differ little
        cases = cases[ENGINES.index(engine) :: 2]
    found = {case.name: differs(case.pattern, case.events, engine) for case in cases}
    assert [name for name, is_wrong in found.items() if is_wrong] == []
    assert sum(is_wrong is None for is_wrong in found.values()) < len(found) / 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", range(4))
def test_random_patterns_match_what_the_checker_finds(part: int, engine: str) -> None:
    chance = random.Random(f"{part} {engine}")
    left_out = 0
    for _ in range(125):
        pattern = random_pattern(chance)
        events = random_stream(chance, pattern)
        is_wrong = differs(pattern, events, engine)
        assert not is_wrong, f"{render(pattern)} on {render_stream(events)}"
        left_out += is_wrong is None
    assert left_out < 25


def test_random_patterns_time_out_as_the_checker_says() -> None:
    chance = random.Random(7)
    compared = skipping = 0
    for _ in range(250):
        pattern = random_pattern(chance)
        events = random_stream(chance, pattern)
        is_wrong = differs(pattern, events, "reference", timeouts=True)
        assert not is_wrong, f"{render(pattern)} on {render_stream(events)}"
        compared += is_wrong is not None
        skipping += is_wrong is not None and pattern.mode != "no_skip"
    assert compared > 60
    assert skipping > 25


def test_runs_that_a_waiting_match_drops_at_the_end_of_the_input_have_timed_out() -> None:
    pattern = parse("p=ab{2}? > q=a within(6 events) skip_to_next")
    assert not differs(pattern, stream("b3@0 a4@1"), "reference", timeouts=True)

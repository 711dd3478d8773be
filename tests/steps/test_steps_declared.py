"""The two checkers, one by paths and one by declaration, agree where both know the pattern."""

import random

import pytest

from generate import Wishes, random_pattern, random_stream
from steps_brute import check
from steps_cases import load
from steps_declared import check_declared, covers
from steps_notation import render, render_stream

WISHES = Wishes(modes=False, partitions=False)
COVERED = [case for case in load() if len(case.events) < 9 and covers(case.pattern)]


@pytest.mark.parametrize("seed", range(20))
def test_both_checkers_agree_on_random_patterns(seed: int) -> None:
    for number in range(40):
        source = random.Random(f"{seed}-{number}")
        pattern = random_pattern(source, WISHES)
        events = random_stream(source, pattern, longest=7)
        if covers(pattern):
            assert check_declared(pattern, events) == check(pattern, events).matches, (
                f"{render(pattern)} on {render_stream(events)}"
            )


def test_both_checkers_agree_on_the_cases() -> None:
    differing = [
        case.name
        for case in COVERED
        if check_declared(case.pattern, case.events) != check(case.pattern, case.events).matches
    ]
    assert differing == []

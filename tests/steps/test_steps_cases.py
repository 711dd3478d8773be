"""The cases of step patterns agree with the slow checker, and the shorthand can be written and read back."""

from collections import Counter
from pathlib import Path

import pytest

from steps_cases import FOLDER, complaint, load
from steps_notation import parse, render

FILES = sorted(path for path in FOLDER.glob("*.toml") if path.name != "errors.toml")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_checker_gives_what_the_cases_expect(path: Path) -> None:
    found = {case.name: complaint(case) for case in load([path])}
    assert {name: told for name, told in found.items() if told is not None} == {}


def test_patterns_are_written_and_read_back() -> None:
    assert [case.name for case in load() if parse(render(case.pattern)) != case.pattern] == []


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(case.name for case in load()).items() if count > 1] == []

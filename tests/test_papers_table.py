"""docs/papers.md names tests and cases, and all of them exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "papers.md"


def existing() -> set[str]:
    """The names of all tests and of all cases."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        found.update(re.findall(r"^\s*def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    for path in (TESTS / "cases").rglob("*.toml"):
        found.update(re.findall(r'^name = "(\w+)"', path.read_text(encoding="utf-8"), re.MULTILINE))
    return found


def named() -> list[str]:
    """The names in the last columns of the page's tables."""
    rows = [
        re.split(r"(?<!\\)\|", line)[1:-1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "
    ]
    return [name for row in rows if row[0].strip() != "feature" for name in re.findall(r"`(\w+)`", row[-1])]


def test_every_row_names_a_test_that_exists() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    headers = [line for line in lines if line.startswith("| feature")]
    assert len(headers) == 4
    assert len(named()) >= len(lines) - len(headers)
    assert sorted(set(named()) - existing()) == []

"""The cases of step patterns, read from the TOML files beside this one."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps_brute import RIGHT, Answer, Match, MissingStepError, Rules, Timeout, check
from steps_model import Event, Pattern
from steps_notation import parse, stream

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    file: str
    name: str
    pattern: Pattern
    events: list[Event]
    matches: list[str] | None
    timeouts: list[str] | None


def load(paths: list[Path] | None = None) -> Iterator[Case]:
    """The cases with an expected result, of all files but that of the errors."""
    for path in paths or sorted(each for each in FOLDER.glob("*.toml") if each.name != "errors.toml"):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["case"]:
            yield _case(path.name, entry)


def _case(file: str, entry: dict[str, Any]) -> Case:
    unknown = set(entry) - {
        "name",
        "pattern",
        "stream",
        "after_match",
        "missing",
        "error",
        "matches",
        "timeouts",
        "why",
    }
    if unknown:
        raise ValueError(f"{entry['name']}: unknown keys {sorted(unknown)}")
    missing = "missing_error" if entry.get("missing") == "error" else ""
    text = f"{entry['pattern']} {entry.get('after_match', '')} {missing}"
    matches = None if entry.get("error") else entry["matches"]
    return Case(file, entry["name"], parse(text), stream(entry["stream"]), matches, entry.get("timeouts"))


def match_text(match: Match) -> str:
    """A match as the cases write it; steps without events are left out."""
    return " ".join(f"{step}={','.join(events)}" for step, events in match.items() if events)


def timeout_text(timeout: Timeout) -> str:
    return match_text(timeout.match) + ("" if timeout.time is None else f" at {timeout.time}")


def complaint(case: Case, rules: Rules = RIGHT) -> str | None:
    """What the checker says that the case does not expect."""
    try:
        answer = check(case.pattern, case.events, rules)
    except MissingStepError as error:
        return None if case.matches is None else f"error: {error}"
    if case.matches is None:
        return f"no error but {[match_text(each) for each in answer.matches]}"
    return _difference(case, answer)


def _difference(case: Case, answer: Answer) -> str | None:
    matches = [match_text(each) for each in answer.matches]
    if matches != case.matches:
        return f"matches are {matches}, expected {case.matches}"
    timeouts = [timeout_text(each) for each in answer.timeouts]
    if case.timeouts is not None and timeouts != case.timeouts:
        return f"timeouts are {timeouts}, expected {case.timeouts}"
    return None

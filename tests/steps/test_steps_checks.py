"""The comparison with the library finds what is wrong, shrinks it, and calls the builder as the shorthand says."""

import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import run_checks
from generate import random_pattern, random_stream
from mutants import catches
from mutants_places import MUTANTS
from run_checks import actual, agree, expected
from shrink import shrink
from steps_brute import Rules, check
from steps_cases import load
from steps_legality import illegal
from steps_model import Event, Pattern, positive_steps
from steps_notation import builder_text, calls, parse, render, stream, to_builder

CASES = list(load())


@dataclass(frozen=True)
class Recorder:
    """Stands for the library: every call returns the text of the calls so far."""

    text: str = "kleene"

    def __getattr__(self, method: str) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Recorder:
            words = [each.text if isinstance(each, Recorder) else repr(each) for each in arguments]
            words += [f"{key}={value!r}" for key, value in keywords.items()]
            return Recorder(f"{self.text}.{method}({', '.join(words)})")

        return call


@dataclass(frozen=True)
class Library:
    """A library that follows the given rules."""

    pattern: Pattern
    rules: Rules

    def match(self, events: pa.Table, order_by: str) -> pa.Table:
        rows = [
            Event(row["id"], row["type"], row["t"], row["price"], row["key"], place)
            for place, row in enumerate(events.to_pylist())
        ]
        matches = check(self.pattern, rows, self.rules).matches
        event_list = pa.list_(pa.struct([("id", pa.string())]))
        names = [step.name for step in positive_steps(self.pattern.parts)]
        return pa.table(
            {
                name: pa.array([[{"id": each} for each in match[name]] for match in matches], event_list)
                for name in names
            }
        )


def test_the_calls_are_those_that_the_text_shows() -> None:
    for case in CASES:
        assert to_builder(case.pattern, Recorder()).text == builder_text(calls(case.pattern))


def test_the_calls_of_one_pattern() -> None:
    pattern = parse(
        "s >> (a >>! n[price > 3] > p=bc{1,2} greedy gap(2)){2,} until(u)? >>> e since_previous(3)"
        " within(9) skip_to_last(p)"
    )
    assert builder_text(calls(pattern)) == (
        "kleene.begin('s', type='s')"
        ".followed_by(kleene.begin('a', type='a').not_followed_by('n', type='n').where('price > 3')"
        ".next('p', type=('b', 'c')).times(1, 2, gap=2).greedy()).times_or_more(2).until(\"type = 'u'\").optional()"
        ".followed_by_any('e', type='e').within(3, since='previous').within(9).after_match('skip_to_last', 'p')"
    )


def test_random_patterns_are_legal_and_can_be_read_back() -> None:
    for number in range(300):
        pattern = random_pattern(random.Random(number))
        assert illegal(pattern) == []
        assert parse(render(pattern)) == pattern


def test_the_cases_are_legal() -> None:
    assert [(case.name, illegal(case.pattern)) for case in CASES if illegal(case.pattern)] == []


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_caught(name: str) -> None:
    assert next(catches(MUTANTS[name], CASES), None) is not None


def test_a_right_library_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_checks, "to_builder", lambda pattern, module: Library(pattern, Rules()))
    for number in range(100):
        source = random.Random(number)
        pattern = random_pattern(source)
        events = random_stream(source, pattern)
        if expected(pattern, events, False).error is None:
            assert agree(expected(pattern, events, False), actual(None, pattern, events, False), events)


def test_a_wrong_library_is_found_and_its_case_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = MUTANTS["the greedy guard is ignored"]
    monkeypatch.setattr(run_checks, "to_builder", lambda pattern, module: Library(pattern, wrong))

    def differs(pattern: Pattern, events: list[Event]) -> bool:
        return not agree(expected(pattern, events, False), actual(None, pattern, events, False), events)

    pattern, events = shrink(
        parse("a >> b[price < 9]+ greedy >> p=cd > e? within(50)"), stream("a1 x1 b1=1 b2=2 x2 c1 e1"), differs
    )
    assert render(pattern) == "b+ greedy >> p=c"
    assert [event.name for event in events] == ["b1", "b2", "c1"]

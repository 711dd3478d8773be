"""Every reason that `why` gives for a pattern in steps is true: it is asked again of the slow checker."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import kleene
from generate import random_pattern, random_stream
from kleene.why.answer import Why
from kleene.why.model import Bound, Ending, Kind, NearMiss
from run_checks import table
from steps_brute import Match, MissingStepError, check
from steps_model import Event, Pattern, positive_steps
from steps_notation import render, render_stream, to_builder
from true_reasons import assert_true, checks_of
from true_step_reasons import WHILE_WAITING, Truth

EVERYTHING = {"limit": 100_000, "max_runs": 100_000}
ENDED_BY_AN_EVENT = (*WHILE_WAITING, Kind.CONTIGUITY, Kind.NEGATION, Kind.UNTIL, Kind.GREEDY)


def asked(pattern: Pattern, events: list[Event], **question: Any) -> Why:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return to_builder(pattern, kleene).why(table(events), order_by="t", **question)


def cases(seed: str, count: int) -> Iterator[tuple[Pattern, list[Event], list[Match]]]:
    """Random patterns and streams with their matches; those that are errors are left out."""
    source = random.Random(seed)
    for _ in range(count):
        pattern = random_pattern(source)
        events = random_stream(source, pattern)
        try:
            yield pattern, events, check(pattern, events).matches
        except MissingStepError:
            with pytest.raises(kleene.ExecutionError, match="after a match, skip_to"):
                asked(pattern, events)


def told(pattern: Pattern, events: list[Event], bound: Bound) -> Match:
    named = {name: [events[one.row].name for one in part] for name, part in bound}
    return {step.name: named.get(step.name, []) for step in positive_steps(pattern.parts)}


def as_text(pattern: Pattern, events: list[Event]) -> str:
    return f"{render(pattern)} on {render_stream(events)}"


# --- reasons are true ---


@pytest.mark.slow
def test_walk_finds_the_matches_of_the_checker_and_every_reason_is_true() -> None:
    kinds: Counter[Kind] = Counter()
    for pattern, events, matches in cases("walk", 300):
        why = asked(pattern, events, at=list(range(len(events))), **EVERYTHING)
        found = [told(pattern, events, match.bound) for match in why.found]
        assert sorted(map(repr, found)) == sorted(map(repr, matches)), as_text(pattern, events)
        for one in checks_of(why):
            assert_true(one, table(events))
        truth = Truth(pattern, events)
        for run in why.runs:
            for step in run.steps:
                for one in step.tries:
                    truth.assert_try(one, step.event.row, run.bound)
            for ending in run.endings:
                kinds[ending.kind] += 1
                if ending.kind in ENDED_BY_AN_EVENT:
                    assert ending.by is not None
                    truth.assert_against(ending, ending.by.row, run.bound)
    assert {Kind.MATCH, Kind.WENT_ON, *ENDED_BY_AN_EVENT, Kind.END, Kind.DROPPED, Kind.LOST} <= set(kinds)


@pytest.mark.slow
def test_runs_that_are_dropped_began_where_the_match_skips() -> None:
    seen: Counter[Kind] = Counter()
    for pattern, events, _ in cases("dropped", 150):
        why = asked(pattern, events, at=list(range(len(events))), **EVERYTHING)
        for run in why.runs:
            for ending in run.endings:
                if ending.kind in (Kind.DROPPED, Kind.LOST):
                    seen[ending.kind] += 1
                    winner = why.found[(ending.match or 0) - 1]
                    rows = sorted(one.row for _, part in winner.bound for one in part)
                    assert rows[0] <= min(run.rows) < skipped_to(pattern, winner.bound, rows)
    assert min(seen[Kind.DROPPED], seen[Kind.LOST]) > 5


def skipped_to(pattern: Pattern, bound: Bound, rows: list[int]) -> int:
    if pattern.mode == "skip_to_next":
        return rows[0] + 1
    if pattern.mode == "skip_past_last_event":
        return rows[-1] + 1
    own = sorted(one.row for one in dict(bound)[pattern.target or ""])
    return own[0 if pattern.mode == "skip_to_first" else -1]


@pytest.mark.slow
def test_counts_are_those_of_the_runs_that_are_told() -> None:
    for pattern, events, matches in cases("counts", 60):
        why = asked(pattern, events, at=list(range(len(events))), **EVERYTHING)
        runs = [run for run in why.runs if run.number]
        assert len(runs) == why.runs_followed == sum(count.runs for count in why.reached)
        assert sum(count.runs for count in why.ended) == len(runs)
        assert Counter({count.name: count.runs for count in why.ended}) == Counter(
            run.endings[-1].kind.value for run in runs
        )
        assert (
            dict.fromkeys(["match"], len(matches)).items()
            <= {
                "match": 0,
                **{count.name: count.runs for count in why.ended},
            }.items()
        )
        for count in why.predicates:
            assert 0 <= count.passed <= count.events
            assert 0 <= count.held <= count.tries


# --- one combination ---


def combinations(source: random.Random, pattern: Pattern, events: list[Event], matches: list[Match]) -> Iterator[Match]:
    """Matches, matches with an event more, less or another one, and events for steps at random."""
    steps = list(positive_steps(pattern.parts))
    names = [event.name for event in events]
    for match in source.sample(matches, min(3, len(matches))):
        yield match
        for _ in range(3):
            other = {name: list(part) for name, part in match.items()}
            part = other[source.choice(list(other))]
            if part and source.random() < 0.6:
                part.remove(source.choice(part))
            if source.random() < 0.7:
                part.append(source.choice(names))
            yield other
    for _ in range(5):
        yield {step.name: source.sample(names, source.choice((0, 1, 1, 2)) % (len(names) + 1)) for step in steps}


@pytest.mark.slow
def test_a_combination_has_a_reason_exactly_if_it_is_no_match() -> None:
    source, kinds, matched = random.Random(1), Counter[Kind](), 0
    for pattern, events, matches in cases("combination", 160):
        given = {repr(match) for match in matches}
        row_of = {event.name: event.position for event in events}
        for one in combinations(source, pattern, events, matches):
            rows = {name: sorted({row_of[event] for event in part}) for name, part in one.items()}
            try:
                why = asked(pattern, events, at=rows)
            except kleene.SchemaError:  # two events of a single step, or none at all
                continue
            [run] = why.runs
            is_match = repr({name: [events[row].name for row in part] for name, part in rows.items()}) in given
            assert ([ending.kind for ending in run.endings] == [Kind.MATCH]) is is_match, (
                as_text(pattern, events),
                rows,
            )
            matched += is_match
            kinds.update(ending.kind for ending in run.endings)
            assert_reasons(pattern, events, run.endings, run.bound)
    assert matched > 50
    assert {
        *WHILE_WAITING,
        Kind.CONTIGUITY,
        Kind.NEXT_MATCH,
        Kind.NEGATION,
        Kind.UNTIL,
        Kind.GREEDY,
        Kind.PREDICATE,
        Kind.TYPE,
        Kind.INCOMPLETE,
        Kind.PLACE,
        Kind.LOST,
        Kind.ORDER,
    } <= set(kinds)


def assert_reasons(pattern: Pattern, events: list[Event], endings: tuple[Ending, ...], bound: Bound) -> None:
    truth = Truth(pattern, events)
    for ending in endings:
        for one in ending.checks:
            assert_true(one, table(events))
        if ending.by is not None and ending.kind in (
            Kind.UNTIL,
            Kind.GREEDY,
            Kind.NEGATION,
            Kind.NEXT_MATCH,
            Kind.WINDOW,
        ):
            truth.assert_against(ending, ending.by.row, bound)
        if ending.kind is Kind.PREDICATE:
            assert not any(check.holds for check in ending.checks)
        if ending.kind is Kind.TYPE:
            assert ending.by is not None
            assert events[ending.by.row].letter not in (truth.condition(ending.variable or "").letters or "")


# --- near misses ---


@pytest.mark.slow
def test_a_near_miss_that_would_match_has_that_one_reason() -> None:
    """What a near miss says of the event is what the combination with that event is told."""
    seen: Counter[Kind] = Counter()
    for pattern, events, _ in cases("near misses", 450):
        for miss in asked(pattern, events, **EVERYTHING).misses:
            if not miss.would_match:
                continue
            seen[miss.kind] += 1
            reasons = [endings for rows in with_event(pattern, miss) for endings in endings_of(pattern, events, rows)]
            if miss.check is not None:
                [[ending]] = reasons
                assert ending.checks[0].predicate == miss.check.predicate
            elif miss.kind in (Kind.UNTIL, Kind.GREEDY):
                [[ending]] = reasons
                assert ending.kind is miss.kind
            else:
                allowed = set(WHILE_WAITING) if miss.kind in WHILE_WAITING else {miss.kind}
                assert miss.objection is None or miss.kind in (Kind.GAP, Kind.SINCE)
                assert any({one.kind for one in endings} <= allowed for endings in reasons), as_text(pattern, events)
    assert min(seen[kind] for kind in (Kind.PREDICATE, Kind.WINDOW, Kind.CONTIGUITY, Kind.NEGATION)) > 3


def with_event(pattern: Pattern, miss: NearMiss) -> Iterator[dict[str, list[int]]]:
    """What the run had bound, with the event in the place of its step; a negation does not say which that is."""
    rows = {variable: [one.row for one in part] for variable, part in miss.bound}
    if miss.event is None:
        yield rows
        return
    for step in positive_steps(pattern.parts):
        if miss.kind is Kind.NEGATION or step.name == miss.variable:
            yield rows | {step.name: [*rows.get(step.name, []), miss.event.row]}


def endings_of(pattern: Pattern, events: list[Event], rows: dict[str, list[int]]) -> list[tuple[Ending, ...]]:
    try:
        return [asked(pattern, events, at=rows).runs[0].endings]
    except kleene.SchemaError:  # two events for a step that has one
        return []

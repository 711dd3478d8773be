"""Every reason that `why` gives for a SASE query is true: it is asked again of the interpreter and of the values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import kleene
from independent_checker import Assignment, assignments_given_out, every_assignment, in_order
from kleene.why.answer import Why
from kleene.why.model import Ending, Kind, NearMiss
from strategies import Events, event_table, queries_with_events
from structured_query import StructuredQuery
from true_reasons import assert_true, checks_of

Example = tuple[StructuredQuery, Events]
reproducible = settings(deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])


def asked(query: StructuredQuery, events: Events, **question: Any) -> Why:
    return kleene.sase(str(query)).why(event_table(events), order_by="t", format=query.format, **question)


def reference_rows(query: StructuredQuery, events: Events) -> list[list[tuple[str, list[int]]]]:
    """The matches of the interpreter, each variable with the rows of its events."""
    found = kleene.sase(str(query)).match(event_table(events), order_by="t", format=query.format, engine="reference")
    return sorted(
        [
            (part.variable, [one["n"] for one in (row[part.variable] if part.is_kleene else [row[part.variable]])])
            for part in query.positives
        ]
        for row in found.to_pylist()
    )


def walked_rows(why: Why) -> list[list[tuple[str, list[int]]]]:
    return sorted(
        [(variable, [event.row for event in events]) for variable, events in match.bound] for match in why.found
    )


# --- reasons are true ---


def places_of(events: Events) -> dict[int, int]:
    return {one["n"]: place for place, one in enumerate(in_order(events))}  # type: ignore[misc]


def is_out_of_window(query: StructuredQuery, events: Events, first: int, row: int) -> bool:
    """By the definition: too far behind the first event, in time or, within the partition, in events."""
    assert query.window is not None
    by_row = {one["n"]: one for one in events}
    if not query.window.is_events:
        return bool(by_row[row]["t"] - by_row[first]["t"] >= query.window.size)
    together = [one["n"] for one in in_order(events) if in_one_partition(query, by_row[first], one)]
    return together.index(row) - together.index(first) >= query.window.size


def in_one_partition(query: StructuredQuery, one: Any, other: Any) -> bool:
    if query.strategy == "strict_contiguity":
        return True
    return all(one[key.name] == other[key.name] and other[key.name] is not None for key in query.keys)


def assert_did_it(query: StructuredQuery, events: Events, bound: list[int], ending: Ending | NearMiss) -> None:
    """The event that is named for the end of a run really is of the kind that ends it."""
    places, by_row = places_of(events), {one["n"]: one for one in events}
    assert ending.by is not None
    row = ending.by.row
    match ending.kind:
        case Kind.WINDOW:
            assert places[row] > places[bound[-1]]
            assert is_out_of_window(query, events, bound[0], row)
        case Kind.CONTIGUITY:
            together = [one["n"] for one in in_order(events) if in_one_partition(query, by_row[bound[0]], one)]
            if query.strategy in ("strict_contiguity", "partition_contiguity"):
                assert together.index(row) == together.index(bound[-1]) + 1
        case Kind.NEGATION:
            negative = next(part for part in query.components if part.variable == ending.variable)
            assert by_row[row]["type"] in negative.types
            assert row not in bound
            assert in_one_partition(query, by_row[bound[0]], by_row[row])
        case _:
            raise AssertionError(ending.kind)


@pytest.mark.slow
@settings(reproducible, max_examples=100)
@given(queries_with_events(all_named=True))
def test_walk_finds_the_matches_of_the_interpreter_and_every_reason_is_true(case: Example) -> None:
    query, events = case
    why = asked(query, events, at=list(range(len(events))))
    assert walked_rows(why) == reference_rows(query, events)
    table = event_table(events)
    for check in checks_of(why):
        assert_true(check, table)
    for run in why.runs:
        for ending in run.endings:
            event(ending.kind.value)
            if ending.kind is Kind.KEY:
                assert ending.by is not None
                unkeyed = next(one for one in events if one["n"] == ending.by.row)
                assert any(unkeyed[key.name] is None for key in query.keys)
            elif ending.by is not None and ending.kind is not Kind.NOT_SEEN:
                assert_did_it(query, events, list(run.rows), ending)
            if ending.kind in (Kind.NEGATION, Kind.NOT_BEGUN) and ending.checks:
                assert all(check.holds for check in ending.checks)
            if ending.kind is Kind.HAVING:
                assert not any(check.holds for check in ending.checks)
    for miss in why.misses:
        bound = [one.row for _, part in miss.bound for one in part]
        assert miss.check is None or not miss.check.holds
        if miss.by is not None:
            assert_did_it(query, events, bound, miss)


@settings(reproducible, max_examples=100)
@given(queries_with_events(all_named=True))
def test_counts_are_those_of_the_runs_that_are_told(case: Example) -> None:
    query, events = case
    why = asked(query, events, at=list(range(len(events))), limit=100_000)
    told = [run for run in why.runs if run.number]
    assert len(told) == why.runs_followed == sum(count.runs for count in why.reached)
    ends = {count.name: count.runs for count in why.ended}
    # A run has one end in the counts; of several objections the first counts.
    for kind in (Kind.MATCH, Kind.LOST, Kind.WINDOW, Kind.CONTIGUITY, Kind.END):
        assert ends.get(kind.value, 0) == sum(run.endings[0].kind is kind for run in told)
    assert ends.get(Kind.MATCH.value, 0) == len(why.found)
    for count in why.predicates:
        assert 0 <= count.passed <= count.events
        assert 0 <= count.held <= count.tries
        tested = [
            check
            for run in why.runs
            for step in run.steps[1 if run.parent else 0 :]
            for one in step.tries
            if one.variable == count.variable and one.move == count.move
            for check in one.checks
            if check.predicate == count.predicate
        ]
        if count.predicate is not None and count.move in ("begin", "take"):
            assert count.tries == len(tested)
            assert count.held == sum(check.holds for check in tested)


@pytest.mark.slow
@settings(reproducible, max_examples=100)
@given(queries_with_events(all_named=True), st.randoms(use_true_random=False))
def test_a_combination_has_a_reason_exactly_if_it_is_no_match(case: Example, random: Any) -> None:
    query, events = case
    ordered = in_order(events)
    matches = set(assignments_given_out(query, ordered))
    every = list(every_assignment(query, len(ordered)))
    chosen = random.sample(every, min(len(every), 8)) + sorted(matches)[:4]
    for assignment in chosen:
        why = asked(query, events, at=combination_of(query, ordered, assignment))
        [run] = why.runs
        reasons = [ending for ending in run.endings if ending.kind is not Kind.MATCH]
        event("match" if assignment in matches else reasons[0].kind.value if reasons else "no reason")
        assert bool(reasons) is (assignment not in matches)
        for ending in reasons:
            if ending.kind in (Kind.PREDICATE, Kind.HAVING):
                assert not any(check.holds for check in ending.checks)
            for check in ending.checks:
                assert_true(check, event_table(events))


def combination_of(query: StructuredQuery, ordered: Any, assignment: Assignment) -> dict[str, list[int]]:
    return {
        part.variable: [ordered[place]["n"] for place in places]
        for part, places in zip(query.positives, assignment, strict=True)
    }


@settings(reproducible, max_examples=100)
@given(queries_with_events(format="all", all_named=True))
def test_a_near_miss_that_would_match_is_no_match_and_has_that_one_reason(case: Example) -> None:
    """What a near miss says of the event is what the combination with that event is told."""
    query, events = case
    why = asked(query, events)
    for miss in why.misses:
        if not miss.would_match:
            continue
        rows = {variable: [one.row for one in part] for variable, part in miss.bound}
        if miss.event is not None:
            assert miss.variable is not None
            rows[miss.variable] = [*rows.get(miss.variable, []), miss.event.row]
        [run] = asked(query, events, at=rows).runs
        event(miss.kind.value)
        if miss.kind is Kind.PREDICATE:
            # The events between may object too, once the run is held to this event.
            failed = [end for end in run.endings if end.kind is Kind.PREDICATE]
            assert {end.checks[0].predicate for end in failed} == {miss.check and miss.check.predicate}
        else:
            kinds = {ending.kind for ending in run.endings}
            assert miss.kind in kinds
            assert kinds <= {miss.kind, Kind.NEXT_MATCH}
        if miss.kind is Kind.NEGATION:
            assert is_match_without_forbidding_events(query, events, rows)


def is_match_without_forbidding_events(query: StructuredQuery, events: Events, rows: dict[str, list[int]]) -> bool:
    """Takes out one event after the other that is said to forbid the combination, until there is nothing to say."""
    left = list(events)
    while True:
        number_of = {one["n"]: number for number, one in enumerate(left)}
        at = {variable: [number_of[row] for row in part] for variable, part in rows.items()}
        [run] = asked(query, left, at=at).runs
        if run.endings[0].kind is Kind.MATCH:
            return True
        assert [ending.kind for ending in run.endings] == [Kind.NEGATION]
        assert run.endings[0].by is not None
        left.pop(run.endings[0].by.row)


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match", "partition_contiguity"])
def test_each_strategy_tells_its_own_end(strategy: str) -> None:
    query = kleene.sase(f"PATTERN SEQ(A a, B b) WHERE {strategy}(a, b) {{ [id] AND b.x > a.x }} WITHIN 10")
    events = pa.table({"type": ["A", "B", "B", "B"], "t": [0, 1, 2, 20], "id": [1] * 4, "x": [5, 3, 7, 9]})
    why = query.why(events, order_by="t", at=0)
    [first, *_] = [run for run in why.runs if run.rows == (0,)]
    expected = Kind.CONTIGUITY if strategy == "partition_contiguity" else Kind.WENT_ON
    assert [ending.kind for ending in first.endings] == [expected]
    if strategy == "partition_contiguity":
        [predicate, contiguity] = why.misses
        assert (contiguity.kind, contiguity.event.row, contiguity.by.row) == (Kind.CONTIGUITY, 2, 1)
        assert (predicate.kind, predicate.event.row, predicate.by) == (Kind.PREDICATE, 1, None)

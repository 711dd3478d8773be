"""Generated queries in ranges, cut anywhere, give what they give in one piece; and ranges read all that they need."""

from __future__ import annotations

from dataclasses import replace
from math import floor
from random import Random

import pyarrow as pa
import pytest

import kleene
from case_files import near
from flat_options import call_of
from in_ranges import chosen, cut_rows, matched_in_ranges, partitions
from kleene.api import prepare
from kleene.engine.ranges import Extent, RangeMatcher, Reach, Uncut, is_choosing, reach_of
from kleene.engine.threads import run
from kleene.ir.options import Window, WindowUnit
from kleene.spark.layouts.slots import SLOTS, Cutting, ranges_of_slots
from plan_strategies import random_plan
from row_strategies import random_row_case
from strategies import event_table, queries_with_events, some_examples

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


def rows_of(table) -> list[str]:
    return sorted(map(repr, near(table.to_pylist())))


def outcome(find) -> list[str] | str | Uncut:
    """The rows, or what the error says."""
    try:
        found = find()
    except kleene.KleeneError as error:
        return error.message
    return found if isinstance(found, Uncut) else rows_of(found)


def is_same_in_ranges(plan, table: pa.Table, random: Random) -> bool:
    """Whether the query is one that is cut and has matches; that the matches are the same is checked."""
    if isinstance(reach_of(plan), Uncut):
        return False
    expected = outcome(lambda: run(plan, table))
    found = outcome(lambda: matched_in_ranges(plan, table, random))
    if isinstance(expected, list):
        assert found == expected
    else:
        assert isinstance(found, str)  # which of several errors is the first, depends on the cuts
    return isinstance(expected, list) and bool(expected)


def sase_plan(text: str, options: dict, events, random: Random):
    definition = kleene.sase(text).definition
    if definition.window is None:
        definition = replace(definition, window=Window(random.choice([1, 2, 5, 9]), WindowUnit.EVENTS))
    return prepare(call_of(definition, **options, engine="generated"), events)


@pytest.mark.slow
def test_generated_sequences_in_ranges() -> None:
    random, matched = Random(1), 0
    for _ in range(70):
        case = random_plan(random, most=100)
        table, plan = sase_plan(str(case.query), case.options, case.events, random)
        matched += is_same_in_ranges(plan, table, random)
    assert matched > 20


@pytest.mark.slow
def test_generated_queries_with_all_strategies_in_ranges() -> None:
    random, matched = Random(2), 0
    for query, events in some_examples(queries_with_events(), lambda _: True, 60, 3):
        options = {"order_by": "t", "format": query.format}
        table, plan = sase_plan(str(query), options, event_table(events), random)
        matched += is_same_in_ranges(plan, table, random)
    assert matched > 12


@pytest.mark.slow
def test_generated_row_patterns_in_ranges() -> None:
    random, matched = Random(5), 0
    for _ in range(600):
        clause, events = random_row_case(random)
        try:
            definition = kleene.match_recognize(clause).definition
            if definition.window is None and definition.max_length is None:
                definition = replace(definition, max_length=random.choice([1, 2, 3, 4, 6]))
            table, plan = prepare(call_of(definition, engine="generated"), events)
            reach_of(plan)
        except kleene.KleeneError:
            continue  # rows that have no order, or a query that the generated engine cannot run
        matched += is_same_in_ranges(plan, table, random)
    assert matched > 20


def in_ranges_of_one_row(plan, table: pa.Table) -> pa.Table | Uncut:
    reach = reach_of(plan)
    if isinstance(reach, Uncut):
        return reach
    matcher, parts = RangeMatcher(plan, reach), []
    for events in partitions(plan, table):
        cut = cut_rows(events, plan, reach, list(range(events.num_rows)))
        found = [part for piece in cut for part in matcher.batches(piece)]
        parts += chosen(plan, found) if is_choosing(plan) else [part.table for part in found]
    return pa.concat_tables(parts)


LARGE = [-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1]


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 0.1", [0.7, 0.7999999999999999, 0.8, 0.9]),
        ("PATTERN SEQ(!(B n), A a) WITHIN 0.1", [0.6, 0.7, 0.7999999999999999, 0.8]),
        ("PATTERN SEQ(A a, B b) WITHIN 10", LARGE),
        ("PATTERN SEQ(!(A n), A a, B b) WITHIN 10", LARGE),
        ("PATTERN SEQ(A a, B b) WITHIN 9223372036854775807", LARGE),
    ],
)
def test_times_at_the_limits(text: str, times: list) -> None:
    table, plan = sase_plan(text, {"order_by": "t"}, pa.table({"type": ["A", "B"] * 2, "t": times}), Random())
    assert outcome(lambda: in_ranges_of_one_row(plan, table)) == outcome(lambda: run(plan, table))


MAY_FAIL = pa.table({"type": ["A", "A", "B", "B"], "t": [1, 2, 3, 4], "x": [0, 2**62, 0, 1]})


@pytest.mark.parametrize(
    "clause",
    [
        "MEASURES A.t AS a PATTERN (A B) DEFINE A AS A.x * 4 >= 0",
        "MEASURES A.x * 4 AS a PATTERN (A B)",
        "MEASURES A.t AS a AFTER MATCH SKIP TO LAST B PATTERN (A C B) DEFINE A AS A.x * 4 >= 0",
    ],
)
def test_errors_of_candidates_that_are_not_chosen_say_how_to_avoid_them(clause: str) -> None:
    definition = kleene.match_recognize(f"ORDER BY t {clause}").definition
    table, plan = prepare(call_of(definition, engine="generated"), MAY_FAIL)
    assert run(plan, table).num_rows == 1 or "SKIP" not in clause
    with pytest.raises(kleene.ExecutionError) as caught:
        in_ranges_of_one_row(plan, table)
    assert "SparkOptions('shuffled')" in caught.value.hint


def test_error_of_a_match_that_is_not_chosen() -> None:
    text = "PATTERN SEQ(A a, B b) WITHIN 10 RETURN a.x * 4 AS a, b.t AS b"
    events = MAY_FAIL.set_column(2, "x", pa.array([2**62, 0, 0, 0]))
    table, plan = sase_plan(text, {"order_by": "t", "format": "non_overlapping"}, events, Random())
    assert run(plan, table).num_rows == 1
    with pytest.raises(kleene.ExecutionError) as caught:
        in_ranges_of_one_row(plan, table)
    assert "SparkOptions('shuffled')" in caught.value.hint


def test_comparison_that_only_the_interpreter_can_do() -> None:
    """Not an error, but beyond 64 bits when it is compared as hundredths."""
    rows = pa.table({"t": [1, 2, 3, 4], "x": [0, 2**62, 0, 1], "d": pa.array([-1, -1, -1, -1], pa.decimal128(10, 2))})
    clause = "MEASURES A.t AS a AFTER MATCH SKIP TO LAST B PATTERN (A C B) DEFINE A AS A.d < A.x"
    table, plan = prepare(call_of(kleene.match_recognize(f"ORDER BY t {clause}").definition, engine="generated"), rows)
    found = outcome(lambda: in_ranges_of_one_row(plan, table))
    assert isinstance(found, Uncut) or found == outcome(lambda: run(plan, table))


def test_ranges_of_slots_read_all_that_they_need() -> None:
    random, cut = Random(4), 0
    for _ in range(3000):
        size = random.randrange(2, 60)
        spread = random.choice([5, 50, 10**6, 10**12])
        whole = random.random() < 0.5
        times = sorted(float(random.randrange(spread)) if whole else random.uniform(-1, 1) for _ in range(size))
        span = times[-1] - times[0]
        width = span / SLOTS * (1 + 1e-9) if span else 1.0
        slot_of = [floor((time - times[0]) / width) for time in times]
        slots = sorted(set(slot_of))
        counts = [slot_of.count(slot) for slot in slots]
        reach = Reach(extent(random, span, width), extent(random, span, width))
        count = random.choice([None, None, 2, 3, 7, 100, SLOTS])
        cutting = Cutting(reach, pa.float64(), 1, random.choice([1, 2, 5, 20]), count, random.choice([1, 3, 8]))
        ranges = ranges_of_slots(slots, counts, width, cutting)
        cut += bool(ranges)
        assert [at for part in ranges for at in part.own] == list(range(len(slots) if ranges else 0))
        for part in ranges:
            own = [n for n, slot in enumerate(slot_of) if slots.index(slot) in part.own]
            read = [n for n, slot in enumerate(slot_of) if slots.index(slot) in part.read]
            assert part.size == len(own)
            low, high = needed(times, own, reach)
            assert read[0] <= low
            assert read[-1] >= high
    assert cut > 1000


def extent(random: Random, span: float, width: float) -> Extent:
    times = [None, 0, 1, 5, span / 10, span / 3, span, span * 10, width, width * 1.5, 1e300]
    return Extent(random.choice(times), random.choice([0, 0, 1, 3, 10, 100]))


def needed(times: list[float], own: list[int], reach: Reach) -> tuple[int, int]:
    """The first and the last event that the own ones need."""
    low, high = own[0], own[-1]
    while reach.back.time is not None and low and times[low - 1] > times[own[0]] - reach.back.time:
        low -= 1
    while (
        reach.ahead.time is not None and high + 1 < len(times) and times[high + 1] - times[own[-1]] < reach.ahead.time
    ):
        high += 1
    return max(low - reach.back.rows, 0), min(high + reach.ahead.rows, len(times) - 1)

"""Plans of sequence operators find what the reference engine finds, whatever their hints are, whole and in pieces.

Run as plain Python, since compiling takes longer than answering; a few are compiled as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from random import Random
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kleene
from agreement import as_set
from flat_options import arguments
from kleene.engine.compiled import sequence_engine, stacks
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.events import TYPE_OF_EVENT
from kleene.engine.inputs import make_order_key, read_events
from kleene.options.hints import CHOICES
from kleene.plan.operators import (
    NegationFilter,
    Pipeline,
    Selection,
    SequenceConstruction,
    SequenceScan,
    WindowFilter,
)
from plan_strategies import OF_SEVERAL_TESTS, Events, PlanCase, random_hints, random_plan, random_statistics
from quick import first_is_quick
from regex_strategies import Outcome, outcome, same_result
from strategies import event_table, queries_with_events, some_examples

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
PARTS, CASES_IN_PART, HINTS_FOR_CASE = 11, 30, 5
CANNOT_BE = ("scan='pais' needs", *(f"second_test='{name}' needs" for name in OF_SEVERAL_TESTS))
RUNS = [{"operators": "nfa", "negation": access} for access in CHOICES["negation"]]
Hints = dict[str, str]


# Comparing.


def matched(query: kleene.Query, events: Events, **options: Any) -> Outcome:
    return outcome(lambda: query.match(events, **arguments({"engine": "generated", **options})))


def is_impossible(found: Outcome) -> bool:
    """Whether the hints ask for stacks that the query has no equivalence tests for."""
    return isinstance(found, kleene.UnsupportedError) and found.message.startswith(CANNOT_BE)


def disagreement(expected: Outcome, found: Outcome, hints: Hints) -> str | None:
    """What is different, if anything. A plan that was asked for may pass over the event that would be an error."""
    if isinstance(expected, kleene.ExecutionError):
        is_same = isinstance(found, kleene.ExecutionError) or (bool(hints) and isinstance(found, pa.Table))
    else:
        is_same = same_result(expected, found)
    return None if is_same else f"{hints or 'no hints'}: {difference(expected, found)}"


def difference(expected: Outcome, found: Outcome) -> str:
    """How many rows are too many and how many are lacking, with one of each."""
    if not isinstance(expected, pa.Table) or not isinstance(found, pa.Table):
        return f"{as_text(found)}, and the reference engine gives {as_text(expected)}"
    there, wanted = Counter(as_set(found)), Counter(as_set(expected))
    lines = [f"{found.num_rows} rows for {expected.num_rows}"]
    for what, rows in (("too many", there - wanted), ("lacking", wanted - there)):
        lines += [f"{rows.total()} {what}, such as {next(iter(rows))}"] if rows else []
    return "\n".join(lines)


def as_text(result: Outcome) -> str:
    return f"{result.num_rows} rows" if isinstance(result, pa.Table) else repr(result)


def in_order(events: Events, options: dict[str, Any]) -> pa.Table:
    order = make_order_key(options["order_by"], options.get("tie_break"))
    return read_events(events, order, options.get("type_column", "type"))[0]


def piece_of(rows: pa.Table, events: Events) -> Events:
    """Rows of the input in the form that the input had."""
    if isinstance(events, pa.Table):
        return rows.select(events.column_names)
    return {
        name: rows.filter(pc.equal(rows.column(TYPE_OF_EVENT), name)).select(part.column_names).cast(part.schema)
        for name, part in events.items()
    }


def fed(query: kleene.Query, events: Events, chance: Random, options: dict[str, Any]) -> pa.Table:
    """What comes out in all, when events are fed in pieces, with snapshots between some of them."""
    rows = in_order(events, options)
    options = {"engine": "generated", **options}
    progress = query.progress(events, **arguments(options))
    cuts = sorted(chance.randrange(rows.num_rows + 1) for _ in range(chance.randrange(1, 5)))
    parts = []
    for begin, end in zip([0, *cuts], [*cuts, rows.num_rows], strict=True):
        parts.append(progress.feed(piece_of(rows.slice(begin, end - begin), events)))
        if chance.random() < 0.5:
            progress = query.progress(events, snapshot=progress.snapshot(), **arguments(options))
    return pa.concat_tables([*parts, progress.finish()])


def disagreement_in_pieces(
    query: kleene.Query, case: PlanCase, expected: pa.Table, hints: Hints, chance: Random
) -> str | None:
    try:
        found = fed(query, case.events, chance, {**case.options, "plan": hints})
    except GaveUpError:
        return None  # what the interpreter decides for a whole table nobody can decide for pieces
    if found.schema == expected.schema and as_set(found) == as_set(expected):
        return None
    return f"in pieces, {hints or 'no hints'}: {difference(expected, found)}"


# Generated cases.


@dataclass
class Report:
    """What came of the cases of a part."""

    problems: list[str] = field(default_factory=list)
    exercised: Counter[Any] = field(default_factory=Counter)
    cases: int = 0
    with_matches: int = 0
    in_pieces: int = 0


@contextmanager
def recorded(exercised: Counter[Any]) -> Iterator[None]:
    """Counts what plans really do, by what reaches the engine."""
    start = sequence_engine.SequenceEngine.start

    def spy(engine: sequence_engine.SequenceEngine, *given: Any) -> Any:
        exercised.update(traits_of(engine.plan))
        return start(engine, *given)

    with mock.patch.object(sequence_engine.SequenceEngine, "start", spy):
        yield


def traits_of(plan: Pipeline) -> Iterator[Any]:
    scan, construction = plan.get(SequenceScan), plan.get(SequenceConstruction)
    selection, late = plan.find(Selection) or Selection(), plan.find(NegationFilter)
    tests = {
        "combined": scan.is_combined,
        "multi_pais": len(scan.tests) > 1,
        "dynamic": construction.tests,
        "selection": selection.tests,
    }
    windows = {
        "scan_and_construction": scan.window,
        "construction": construction.window,
        "late": plan.find(WindowFilter),
    }
    second = next((name for name, found in tests.items() if found), None)
    window = next((name for name, found in windows.items() if found), None)
    yield from [("scan", scan.algorithm), ("second_test", second), ("window", window)]
    yield scan.algorithm, second, window
    if scan.predicates:
        yield "simple_predicates", "scan"
    if construction.predicates:
        yield "parameterized_predicates", "construction"
    for predicate in selection.predicates:
        yield "simple_predicates" if predicate.is_simple else "parameterized_predicates", "late"
    if any(test.is_implied for test in plan.tests):
        yield "implied_tests", "on"
    if construction.negations:
        yield from [("negation_place", "construction"), ("negation", construction.access)]
    if late is not None:
        yield from [("negation_place", "late"), ("negation", late.access)]


@cache
def report(part: int) -> Report:
    found = Report()
    with recorded(found.exercised):
        for number in range(CASES_IN_PART):
            seed = part * CASES_IN_PART + number
            chance = Random(seed)
            try_case(random_plan(chance), chance, seed, found)
    return found


def try_case(case: PlanCase, chance: Random, seed: int, found: Report) -> None:
    query = kleene.sase(str(case.query))
    expected = matched(query, case.events, engine="reference", **case.options)
    assert not isinstance(expected, kleene.KleeneError) or isinstance(expected, kleene.ExecutionError), seed
    found.cases += 1
    found.with_matches += isinstance(expected, pa.Table) and expected.num_rows > 0
    for hints, result in ways(query, case, chance, HINTS_FOR_CASE):
        problem = disagreement(expected, result, hints)
        if problem is None and seed % 3 == 0 and isinstance(expected, pa.Table) and chance.random() < 0.25:
            found.in_pieces += 1
            problem = disagreement_in_pieces(query, case, expected, hints, chance)
        if problem is not None:
            found.problems.append(f"seed {seed}, {case.options}\n{case.query}\n{problem}")


def ways(query: kleene.Query, case: PlanCase, chance: Random, count: int) -> Iterator[tuple[Hints, Outcome]]:
    """What the query finds without hints, and with so many combinations of hints that can be."""
    yield {}, matched(query, case.events, statistics=random_statistics(chance), **case.options)
    if case.query.negative and chance.random() < 0.3:
        count -= 1
        hints = chance.choice(RUNS)
        yield hints, matched(query, case.events, plan=hints, **case.options)
    while count:
        hints = random_hints(chance)
        found = matched(query, case.events, plan=hints, statistics=random_statistics(chance), **case.options)
        if not is_impossible(found):
            count -= 1
            yield hints, found


@pytest.mark.parametrize("part", first_is_quick(range(PARTS)))
def test_generated_cases(part: int) -> None:
    assert not report(part).problems, "\n\n".join(report(part).problems)


@pytest.mark.slow
def test_the_cases_exercise_every_algorithm() -> None:
    reports = [report(part) for part in range(PARTS)]
    exercised = sum((own.exercised for own in reports), Counter[Any]())
    for name, values in CHOICES.items():
        for value in values:
            if name != "operators" and (name, value) != ("implied_tests", "off"):
                assert exercised[name, value] >= 30, (name, value)
    for scan, second, window in product(CHOICES["scan"], CHOICES["second_test"], CHOICES["window"]):
        if scan == "pais" or second not in OF_SEVERAL_TESTS:
            assert exercised[scan, second, window] >= 4, (scan, second, window)
    cases = sum(own.cases for own in reports)
    assert cases >= 330
    assert sum(own.with_matches for own in reports) >= 0.4 * cases
    assert sum(own.in_pieces for own in reports) >= 130


def with_matches(seeds: range, wanted: Callable[[PlanCase], bool] = lambda _: True) -> Iterator[tuple[int, PlanCase]]:
    for seed in seeds:
        case = random_plan(Random(seed), may_fail=0)
        if wanted(case):
            found = matched(kleene.sase(str(case.query)), case.events, engine="reference", **case.options)
            if isinstance(found, pa.Table) and found.num_rows:
                yield seed, case


ROOMS = [(1, 1, 4), (3, 2, 4), (2, 7, 8), (1 << 14, 3, 2)]


@pytest.mark.parametrize("sizes", first_is_quick(ROOMS))
def test_blocks_batches_and_rings_of_any_size(monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int, int]) -> None:
    block, sequences, room = sizes
    monkeypatch.setattr(sequence_engine, "BLOCK", block)
    monkeypatch.setattr(sequence_engine, "MOST_HEIGHTS", 2 + sequences)
    monkeypatch.setattr(stacks, "SEQUENCES", sequences)
    monkeypatch.setattr(stacks, "FIRST_ROOM", room)
    for seed, case in with_matches(range(2_000, 2_014)):
        query, chance = kleene.sase(str(case.query)), Random(seed)
        expected = matched(query, case.events, engine="reference", **case.options)
        assert isinstance(expected, pa.Table)
        for hints, found in ways(query, case, chance, 2):
            assert disagreement(expected, found, hints) is None, seed
            assert disagreement_in_pieces(query, case, expected, hints, chance) is None, seed


COMPILED: list[Hints] = [
    {},
    {"scan": "basic", "window": "scan_and_construction"},
    {"scan": "basic", "second_test": "selection", "window": "construction", "negation": "scan_all"},
    {"scan": "ais", "second_test": "dynamic", "window": "scan_and_construction", "simple_predicates": "late"},
    {"scan": "pais", "second_test": "combined", "parameterized_predicates": "late"},
    {"scan": "pais", "second_test": "multi_pais", "window": "construction"},
    {"scan": "pais", "second_test": "dynamic", "negation_place": "late", "implied_tests": "on"},
    {
        "scan": "pais",
        "second_test": "multi_pais",
        "window": "late",
        "negation": "scan_all",
        "simple_predicates": "late",
    },
]


def compiled_case(number: int) -> tuple[kleene.Query, PlanCase]:
    """A small case with matches that the hints can be used for, every other one with non-overlapping matches."""

    def wanted(case: PlanCase) -> bool:
        is_small = len(case.query.parts) <= 3 and len(case.query.predicates) <= 2
        return is_small and ("format" in case.options) == (number % 2 == 1)

    for _, case in with_matches(range(3_000 + 100 * number, 4_000 + 100 * number), wanted):
        query = kleene.sase(str(case.query))
        if number < 4 or not is_impossible(
            matched(query, case.events, plan={"second_test": "multi_pais"}, **case.options)
        ):
            return query, case
    pytest.fail("no case was found")


@pytest.mark.parametrize("number", range(len(COMPILED)))
def test_machine_code(number: int) -> None:
    hints, (query, case) = COMPILED[number], compiled_case(number)
    expected = matched(query, case.events, engine="reference", **case.options)
    assert isinstance(expected, pa.Table)
    found = matched(query, case.events, engine="compiled", plan=hints, **case.options)
    assert disagreement(expected, found, hints) is None, str(case.query)


def with_kleene_plus_and_negation(count: int, seed: int) -> list[tuple[str, pa.Table, dict[str, Any]]]:
    def wanted(example: Any) -> bool:
        parts = example[0].components
        return any(part.is_negative for part in parts) and any(part.is_kleene for part in parts)

    drawn = some_examples(queries_with_events(), wanted, count, seed)
    return [(str(said), event_table(events), {"order_by": "t", "format": said.format}) for said, events in drawn]


def check_runs(text: str, events: Events, options: dict[str, Any], chance: Random) -> None:
    query = kleene.sase(text)
    expected = matched(query, events, engine="reference", **options)
    for hints in RUNS:
        assert disagreement(expected, matched(query, events, plan=hints, **options), {}) is None, text
    if isinstance(expected, pa.Table):
        with suppress(GaveUpError):
            pieces = fed(query, events, chance, {**options, "plan": chance.choice(RUNS)})
            assert as_set(pieces) == as_set(expected), text


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_runs_with_a_negation_index_or_without(seed: int) -> None:
    for text, events, options in with_kleene_plus_and_negation(18, seed):
        check_runs(text, events, options, Random(seed))
    for number in range(100 * seed, 100 * seed + 60):
        case = random_plan(Random(5_000 + number))
        if case.query.negative:
            check_runs(str(case.query), case.events, case.options, Random(number))


# Named cases.


def table_of(types: str, times: list[Any] | None = None, **columns: list[Any]) -> pa.Table:
    """Events of these types at these times, or one after the other; `n` is their number."""
    count = list(range(len(types)))
    return pa.table({"type": list(types), "t": count if times is None else times, "n": count, **columns})


PLANS: list[Hints] = [
    {},
    *RUNS,
    {"scan": "basic", "second_test": "selection", "window": "late"},
    {"scan": "basic", "second_test": "dynamic", "window": "construction", "negation_place": "late"},
    {"scan": "basic", "window": "scan_and_construction", "simple_predicates": "late"},
    {"scan": "ais", "second_test": "selection", "window": "construction", "negation": "scan_all"},
    {"scan": "ais", "second_test": "dynamic", "window": "scan_and_construction"},
    {"scan": "ais", "implied_tests": "off", "simple_predicates": "late"},
    {"scan": "pais", "second_test": "selection", "simple_predicates": "late"},
    {"scan": "pais", "second_test": "multi_pais", "window": "scan_and_construction", "negation_place": "late"},
    {"scan": "pais", "second_test": "multi_pais", "window": "construction"},
    {"scan": "pais", "second_test": "combined", "window": "scan_and_construction"},
    {"scan": "pais", "second_test": "combined", "window": "construction", "negation": "scan_all"},
    {"scan": "pais", "second_test": "dynamic", "window": "construction", "parameterized_predicates": "late"},
    {name: "late" for name, values in CHOICES.items() if "late" in values} | {"implied_tests": "off"},
]


def numbers_of(found: Outcome) -> list[tuple[int, ...]]:
    assert isinstance(found, pa.Table), found
    return [tuple(row.values()) for row in found.to_pylist()]


def check(text: str, events: Events, expected: list[tuple[int, ...]], **options: Any) -> None:
    """That every plan, and the reference engine, finds this; and those that forget events, event by event too."""
    query, options = kleene.sase(text), {"order_by": "t", **options}
    assert numbers_of(matched(query, events, engine="reference", **options)) == expected
    for hints in PLANS:
        found = matched(query, events, plan=hints, **options)
        if is_impossible(found):
            continue
        assert numbers_of(found) == expected, hints
        if hints.get("window", "scan_and_construction") == "scan_and_construction":
            pieces = one_by_one(query, events, {**options, "plan": hints})
            assert sorted(numbers_of(pa.concat_tables(pieces))) == sorted(expected), hints


def one_by_one(query: kleene.Query, events: Events, options: dict[str, Any]) -> list[pa.Table]:
    """What comes out after each event, and at the end."""
    progress, rows = query.progress(events, **arguments({"engine": "generated", **options})), in_order(events, options)
    found = [progress.feed(piece_of(rows.slice(number, 1), events)) for number in range(rows.num_rows)]
    return [*found, progress.finish()]


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("PATTERN SEQ(A a, A b) RETURN a.n AS a, b.n AS b", "AAA", [(0, 1), (0, 2), (1, 2)]),
        ("PATTERN SEQ(ANY(A, B) a, A b, ANY(A, B) c) RETURN a.n AS a, b.n AS b, c.n AS c", "BAB", [(0, 1, 2)]),
        ("PATTERN SEQ(A a, A b, A c) RETURN a.n AS a, b.n AS b, c.n AS c", "AA", []),
        ("PATTERN SEQ(A a, !(A n), A b) RETURN a.n AS a, b.n AS b", "AAA", [(0, 1), (1, 2)]),
        ("PATTERN SEQ(A a, !(ANY(A, B) n), B b) RETURN a.n AS a, b.n AS b", "AABB", [(1, 2)]),
        ("PATTERN SEQ(A a) RETURN a.n AS a", "ABA", [(0,), (2,)]),
        ("PATTERN SEQ(A, A b, B) RETURN b.n AS b", "AAAB", [(1,), (2,), (2,)]),
    ],
)
def test_an_event_is_no_event_before_itself(text: str, types: str, expected: list[tuple[int, ...]]) -> None:
    check(text, table_of(types), expected)


def test_events_of_one_time_follow_each_other_in_the_order_of_the_input() -> None:
    pair = "PATTERN SEQ(A a, B b) WITHIN 2 RETURN a.n AS a, b.n AS b"
    check(pair, table_of("BABA", [3, 3, 3, 3]), [(1, 2)])
    check(pair, table_of("BAAB", [4, 4, 3, 3]), [(2, 3), (2, 0)])


class TestWindows:
    @pytest.mark.parametrize(("size", "expected"), [("5", []), ("5.5", [(0, 1)]), ("6", [(0, 1)])])
    def test_a_time_is_within_if_it_is_less(self, size: str, expected: list[tuple[int, ...]]) -> None:
        check(f"PATTERN SEQ(A a, B b) WITHIN {size} RETURN a.n AS a, b.n AS b", table_of("AB", [0, 5]), expected)

    def test_a_number_of_events_counts_both_ends(self) -> None:
        text = "PATTERN SEQ(A a, B b) WITHIN {} events RETURN a.n AS a, b.n AS b"
        check(text.format(3), table_of("AZBB"), [(0, 2)])
        check(text.format(1), table_of("AB"), [])

    def test_an_older_event_in_the_middle_does_not_reach_further(self) -> None:
        text = "PATTERN SEQ(A a, B b, C c) WITHIN 4 RETURN a.n AS a, b.n AS b, c.n AS c"
        check(text, table_of("ABABC", [0, 1, 2, 3, 4]), [(2, 3, 4)])

    def test_fractions_of_an_order_key_that_is_a_float(self) -> None:
        # 0.3 - 0.1 is less than 0.2, though not by much.
        check("PATTERN SEQ(A a, B b) WITHIN 0.2 RETURN a.n AS a", table_of("AB", [0.1, 0.3]), [(0,)])
        check("PATTERN SEQ(A a, B b) WITHIN 0.2 RETURN a.n AS a", table_of("AB", [0.0, 0.2]), [])

    def test_events_are_counted_in_the_partition_whatever_the_stacks_are(self) -> None:
        events = table_of("AAAAAABB", id=[1, 2, 2, 2, 2, 2, 1, 2], k=[5, 5, 5, 6, 6, 5, 5, 5])
        text = "PATTERN SEQ(A a, B b) WHERE {} WITHIN 2 events RETURN a.n AS a, b.n AS b"
        check(text.format("[id]"), events, [(0, 6), (5, 7)])
        check(text.format("[id, k]"), events, [(0, 6), (5, 7)])

    def test_events_of_other_partitions_do_not_end_a_window_of_events(self) -> None:
        events = table_of("BAAAAAB", id=[1, 2, 2, 2, 2, 1, 1])
        check("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2 events RETURN a.n AS a, b.n AS b", events, [(5, 6)])
        events = table_of("ZZZZABZZB", id=[2, 2, 2, 2, 2, 1, 1, 1, 2])
        check("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2 events RETURN a.n AS a, b.n AS b", events, [(4, 8)])
        events = table_of("AAAAAB", id=[1, 2, 2, 2, 2, 1])
        check("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2 events RETURN a.n AS a, b.n AS b", events, [(0, 5)])

    def test_events_are_counted_in_the_partition_of_a_constant(self) -> None:
        text = "PATTERN SEQ(A a, B b) WHERE [{}] WITHIN 2 events RETURN a.n AS a, b.n AS b"
        for test in ("id = 1", "id = 1, k"):
            check(text.format(test), table_of("AZZZB", id=[1, 2, 2, 2, 1], k=[5] * 5), [(0, 4)])
            check(text.format(test), table_of("ZZZZAAB", id=[1, 1, 1, 1, 1, 2, 1], k=[5] * 7), [(4, 6)])
            check(text.format(test), table_of("AAAAAB", id=[1, 2, 2, 2, 2, 1], k=[5] * 6), [(0, 5)])


class TestKeys:
    def test_null_and_nan_are_in_no_partition_and_both_zeros_in_one(self) -> None:
        nan = float("nan")
        events = table_of("AAAABBBB", y=[0.0, nan, None, 1.0, -0.0, nan, None, 0.0])
        for test in ("[y]", "a.y = b.y", "b.y = a.y AND [y]"):
            check(f"PATTERN SEQ(A a, B b) WHERE {test} RETURN a.n AS a, b.n AS b", events, [(0, 4), (0, 7)])
        check("PATTERN SEQ(A a) WHERE [y] RETURN a.n AS a", events, [(0,), (3,)])

    def test_two_tests_do_not_hold_by_halves(self) -> None:
        events = table_of("AAABBB", id=[1, 1, 2, 1, 2, 2], k=["u", "v", "u", "v", "u", "v"])
        check("PATTERN SEQ(A a, B b) WHERE [id, k] RETURN a.n AS a, b.n AS b", events, [(1, 3), (2, 4)])

    def test_three_components_share_values_pair_by_pair_only(self) -> None:
        events = table_of("ABBC", id=[1, 1, 2, 1], k=[5, 6, 5, 5])
        check("PATTERN SEQ(A a, B b, C c) WHERE [id, k] RETURN a.n AS a", events, [])

    def test_a_test_with_a_constant(self) -> None:
        events = table_of("AABNB", k=["u", "v", "v", "u", "u"])
        check("PATTERN SEQ(A a, B b) WHERE [k = 'u'] RETURN a.n AS a, b.n AS b", events, [(0, 4)])
        check("PATTERN SEQ(A a, !(N n), B b) WHERE [k = 'u'] RETURN a.n AS a, b.n AS b", events, [])
        check("PATTERN SEQ(A a, !(N n), B b) WHERE [k = 'v'] RETURN a.n AS a, b.n AS b", events, [(1, 2)])

    def test_a_constant_that_two_values_equal_does_not_make_them_equal(self) -> None:
        large = 2**53
        events = table_of("AAB", id=[large, large + 1, large])
        text = f"PATTERN SEQ(A a, B b) WHERE [id = {float(large):.1f}] RETURN a.n AS a, b.n AS b"
        check(text, events, [(0, 2)])

    def test_a_test_that_is_said_twice(self) -> None:
        events = table_of("ANB", id=[1, 2, 1])
        text = "PATTERN SEQ(A a, !(N n), B b) WHERE [id] AND [id, id] AND a.id = b.id AND n.id = a.id RETURN a.n AS a"
        check(text, events, [(0,)])


class TestImpliedTests:
    def test_attributes_of_different_names(self) -> None:
        events = table_of("ABC", id=[1, 9, 9], j=[9, 1, 9], x=[9, 9, 1])
        check("PATTERN SEQ(A a, B b, C c) WHERE a.id = b.j AND c.x = b.j RETURN a.n AS a", events, [(0,)])

    def test_two_attributes_of_one_component_do_not_tie_the_others(self) -> None:
        events = table_of("ABC", id=[1, 1, 2], j=[9, 2, 9])
        check("PATTERN SEQ(A a, B b, C c) WHERE a.id = b.id AND b.j = c.id RETURN a.n AS a", events, [(0,)])

    def test_two_attributes_of_one_component_that_must_be_equal(self) -> None:
        events = table_of("AAB", id=[1, 1, 1], j=[1, 2, 9])
        check("PATTERN SEQ(A a, B b) WHERE a.id = b.id AND a.j = b.id RETURN a.n AS a", events, [(0,)])

    def test_a_chain_that_leaves_one_out(self) -> None:
        events = table_of("ABC", id=[1, 2, 1])
        check("PATTERN SEQ(A a, B b, C c) WHERE a.id = c.id RETURN b.n AS b", events, [(1,)])

    def test_they_form_no_partition(self) -> None:
        events = table_of("AZBAB", id=[1, 2, 1, 2, 2])
        pair = "PATTERN SEQ(A a, B b) WHERE a.id = b.id WITHIN 2 events RETURN a.n AS a, b.n AS b"
        check(pair, events, [(3, 4)])
        overlapping = table_of("AABB", id=[1, 2, 1, 2])
        pair = "PATTERN SEQ(A a, B b) WHERE a.id = b.id RETURN a.n AS a, b.n AS b"
        check(pair, overlapping, [(0, 2)], format="non_overlapping")

    def test_columns_of_different_width(self) -> None:
        events = table_of("AB").append_column("p", pa.array([1, 300], pa.int16()))
        events = events.append_column("q", pa.array([-1, 1], pa.int8()))
        check("PATTERN SEQ(A a, B b) WHERE a.p = b.q RETURN a.n AS a", events, [(0,)])

    @pytest.mark.parametrize(("nanoseconds", "found"), [(1001, (1, 0, 1)), (1000, (1, 1, 1))])
    def test_times_finer_than_microseconds_are_equal_to_the_nanosecond(self, nanoseconds, found) -> None:
        events = table_of("AB").append_column("p", pa.array([nanoseconds] * 2, pa.timestamp("ns")))
        events = events.append_column("q", pa.array([1, 1], pa.timestamp("us")))
        for text, count in zip(("[p]", "a.p = b.q", "a.p = b.p"), found, strict=True):
            query = kleene.sase(f"PATTERN SEQ(A a, B b) WHERE {text}")
            expected = matched(query, events, order_by="t", engine="reference")
            assert expected.num_rows == count
            assert disagreement(expected, matched(query, events, order_by="t"), {}) is None


class TestNegations:
    @pytest.mark.parametrize(
        ("pattern", "types", "times", "expected"),
        [
            ("!(N n), A a, B b", "NAB", [1, 3, 6], [(1, 2)]),  # not after 6 - 5
            ("!(N n), A a, B b", "NAB", [2, 3, 6], []),
            ("!(N n), A a, B b", "ANB", [3, 3, 6], [(0, 2)]),
            ("!(N n), A a, B b", "NAB", [3, 3, 6], []),
            ("A a, B b, !(N n)", "ABN", [0, 2, 5], [(0, 1)]),  # not before 0 + 5
            ("A a, B b, !(N n)", "ABN", [0, 2, 4], []),
            ("A a, B b, !(N n)", "ANB", [0, 2, 2], [(0, 2)]),
            ("A a, B b, !(N n)", "ABN", [0, 2, 2], []),
            ("A a, B b, !(N n)", "AB", [0, 2], [(0, 1)]),
            ("A a, !(N n), B b", "NABN", [1, 1, 1, 1], [(1, 2)]),
            ("A a, !(N n), B b", "ANB", [1, 1, 1], []),
            ("A a, !(N n), !(M m), B b", "AMB", [1, 1, 1], []),
            ("!(N n), A a, !(B m), B b, !(A k)", "ABAB", [0, 1, 5, 6], [(0, 1), (2, 3)]),
        ],
    )
    def test_borders(self, pattern: str, types: str, times: list[int], expected: list[tuple[int, ...]]) -> None:
        check(f"PATTERN SEQ({pattern}) WITHIN 5 RETURN a.n AS a, b.n AS b", table_of(types, times), expected)

    @pytest.mark.parametrize(
        ("pattern", "types"),
        [("A a, !(N n), B b", "ANNB"), ("!(N n), A a, B b", "NNAB"), ("A a, B b, !(N n)", "ABNN")],
    )
    @pytest.mark.parametrize("tie", first_is_quick(["[id]", "a.id = b.id AND n.id = b.id", "n.id = a.id"]))
    def test_only_events_of_the_partition_count(self, pattern: str, types: str, tie: str) -> None:
        text = f"PATTERN SEQ({pattern}) WHERE {tie} WITHIN 9 RETURN a.n AS a, b.n AS b"
        of_none_and_another = iter([None, 2])
        ids = [1 if name in "AB" else next(of_none_and_another) for name in types]
        check(text, table_of(types, id=ids), [(types.index("A"), types.index("B"))])
        check(text, table_of(types, id=[1 if own == 2 else own for own in ids]), [])

    def test_a_negation_that_nothing_ties_looks_everywhere(self) -> None:
        events = table_of("ANB", id=[1, 2, 1])
        check("PATTERN SEQ(A a, !(N n), B b) WHERE a.id = b.id RETURN a.n AS a", events, [])

    def test_a_tie_to_another_attribute(self) -> None:
        events = table_of("ANB", id=[1, 2, 1], j=[2, 1, 9])
        text = "PATTERN SEQ(A a, !(N n), B b) WHERE a.id = b.id AND {} RETURN a.n AS a"
        check(text.format("n.j = a.id"), events, [])
        check(text.format("n.id = a.id"), events, [(0,)])
        check(text.format("n.id = a.j"), events, [])
        check(text.format("n.id = a.id AND n.j = b.id"), events, [(0,)])

    def test_two_tests_and_a_negation(self) -> None:
        events = table_of("ANNB", id=[1, 1, 2, 1], k=[5, 6, 5, 5])
        check("PATTERN SEQ(A a, !(N n), B b) WHERE [id, k] RETURN a.n AS a", events, [(0,)])
        check("PATTERN SEQ(A a, !(N n), B b) WHERE [id] AND a.k = b.k AND n.k = a.k RETURN a.n AS a", events, [(0,)])
        check("PATTERN SEQ(A a, !(N n), B b) WHERE [id] AND a.k = b.k RETURN a.n AS a", events, [])

    def test_the_last_place_waits_for_the_window_and_no_longer(self) -> None:
        query = kleene.sase("PATTERN SEQ(A a, B b, !(N n)) WITHIN 5 RETURN a.n AS a, b.n AS b")
        events = table_of("ABZZNA", [0, 2, 4, 5, 5, 6])
        for hints in (hints for hints in PLANS if hints.get("scan") != "pais"):
            given = one_by_one(query, events, {"order_by": "t", "plan": hints})
            assert [part.num_rows for part in given] == [0, 0, 0, 1, 0, 0, 0], hints

    def test_a_window_of_floats_closes_in_a_stream_when_it_does_in_a_table(self) -> None:
        # 42.4 is before 8.7 + 33.7, though 42.4 - 8.7 is 33.7.
        events = table_of("AZN", [8.7, 42.4, 42.4])
        check("PATTERN SEQ(A a, !(N n)) WITHIN 33.7 RETURN a.n AS a", events, [])

    @pytest.mark.parametrize("pattern", ["A a, !(N n), B b", "!(N n), A a, B b", "A a, B b, !(N n)"])
    def test_order_keys_without_end(self, pattern: str) -> None:
        infinite = float("inf")
        text = f"PATTERN SEQ({pattern}) WITHIN 3 RETURN a.n AS a"
        for times in ([infinite] * 3, [-infinite] * 3, [-infinite, 0.0, infinite], [0.0, infinite, infinite]):
            check(text, table_of("".join(re.findall(r"[NAB](?= )", pattern)), times), [])

    @pytest.mark.parametrize("size", first_is_quick([1, 42, 999_999, 5_000_000]))
    def test_parts_of_time_of_every_size(self, size: int) -> None:
        events = table_of("NABNABNABN", [0, 1, 2, 40, 41, 42, 1_000_000, 1_000_001, 1_000_003, 1_000_004])
        for pattern in ("!(N n), A a, B b", "A a, B b, !(N n)", "A a, !(N n), B b"):
            text = f"PATTERN SEQ({pattern}) WITHIN {size} RETURN a.n AS a, b.n AS b"
            check(text, events, numbers_of(matched(kleene.sase(text), events, order_by="t", engine="reference")))


OF_THREE_TYPES: Events = {
    "A": pa.table({"t": [0, 1], "n": [0, 1], "id": [1, 2]}),
    "B": pa.table({"t": [2, 3], "n": [2, 3], "x": [7, 8]}),
    "C": pa.table({"t": [4], "n": [4], "id": [2], "x": [8]}),
}


class TestMissingAttributes:
    def test_a_comparison_with_what_is_missing_holds(self) -> None:
        text = "PATTERN SEQ(A a, B b, C c) WHERE {} RETURN a.n AS a, b.n AS b, c.n AS c"
        check(text.format("a.id = c.id AND b.id = c.id"), OF_THREE_TYPES, [(1, 2, 4), (1, 3, 4)])
        check(text.format("[id] AND b.x = c.x"), OF_THREE_TYPES, [(1, 3, 4)])
        check(text.format("a.x = b.x AND b.x = c.x"), OF_THREE_TYPES, [(0, 3, 4), (1, 3, 4)])

    def test_any_of_two_types_one_of_which_lacks_it(self) -> None:
        text = "PATTERN SEQ(A a, !(B n), ANY(B, C) c) WHERE [id] RETURN a.n AS a, c.n AS c"
        check(text, OF_THREE_TYPES, [(0, 2), (1, 2)])


class TestMany:
    @pytest.mark.parametrize("hints", [{"scan": "basic"}, {"scan": "ais"}, {"scan": "pais"}, {}])
    def test_more_instances_than_there_was_room_for(self, hints: Hints) -> None:
        count = 1_500
        events = table_of("A" * count + "B", id=[1, 2] * (count // 2) + [2])
        query = kleene.sase(f"PATTERN SEQ(A a, B b) WHERE [id] WITHIN {count} RETURN a.n AS a, b.n AS b")
        found = numbers_of(matched(query, events, order_by="t", plan=hints))
        assert found == [(number, count) for number in range(1, count, 2)]

    @pytest.mark.parametrize("pattern", ["A a", "A a, B b"])
    def test_few_matches_that_do_not_overlap_by_machine_code(self, pattern: str) -> None:
        query = kleene.sase(f"PATTERN SEQ({pattern}) RETURN a.n AS a")
        options = {"order_by": "t", "format": "non_overlapping"}
        for events in (table_of("BA"), table_of("AAB"), table_of("AAB").slice(0, 0)):
            expected = matched(query, events, engine="reference", **options)
            assert same_result(expected, matched(query, events, engine="compiled", **options))
            assert same_result(expected, fed(query, events, Random(1), {**options, "engine": "compiled"}))

    def test_more_sequences_than_go_from_one_operator_to_the_next_at_once(self) -> None:
        events = table_of("A" * 128 + "B" * 130)
        query = kleene.sase("PATTERN SEQ(!(N n), A a, B b) WITHIN 1000 RETURN a.n AS a, b.n AS b")
        found = numbers_of(matched(query, events, order_by="t"))
        assert found == [(a, b) for b in range(128, 258) for a in range(128)]

    def test_more_tests_than_a_machine_word_has_bits(self) -> None:
        names = [f"k{number}" for number in range(66)]
        events = table_of("ABB", **{name: [1, 1, 1 if name == "k0" else 2] for name in names})
        text = f"PATTERN SEQ(A a, B b) WHERE [{', '.join(names)}] RETURN a.n AS a, b.n AS b"
        found = matched(kleene.sase(text), events, order_by="t", plan={"scan": "pais", "second_test": "multi_pais"})
        assert numbers_of(found) == [(0, 1)]


class TestErrors:
    """An error that the reference engine meets, a plan that nobody asked for meets too."""

    HUGE = 2**62

    @pytest.mark.parametrize(
        ("pattern", "where", "types"),
        [
            ("A a, B b", "a.x * b.x * HUGE > 0 AND b.y = 9", "AB"),
            ("A a, B b", "a.x * b.x * HUGE > 0 AND b.y = a.y", "AB"),
            ("A a, B b, C c", "a.x * c.x * HUGE > 0 AND b.y = c.y", "ABC"),
            ("A a, B b, C c", "a.x * b.x * HUGE > 0", "AB"),
            ("A a, !(N n), B b", "n.x * HUGE > 0 AND a.x = b.x AND n.y = a.x", "ANB"),
            ("!(N n), A a, !(M m), B b, C c", "n.x * HUGE > 0", "NAMBC"),
            ("!(N n), A a, B b, !(M m), C c", "n.x * HUGE > 0", "NABMC"),
            ("A a, B b", "a.x * HUGE > 0", "A"),
            ("A a, B b", "b.x * HUGE > 0", "AB"),
            ("A a, B b", "b.x * HUGE > 0 AND a.y = b.y", "AB"),
            ("A a, !(N n), B b", "b.x * HUGE > 0", "ANB"),
            ("A a, B b", "a.x * HUGE > 0 AND a.k = b.k", "AB"),
            ("A a, B b", "a.x * b.x * HUGE > 0 AND b.k = a.k", "AB"),
        ],
    )
    def test_an_overflow(self, pattern: str, where: str, types: str) -> None:
        query = kleene.sase(f"PATTERN SEQ({pattern}) WHERE {where.replace('HUGE', str(self.HUGE))} WITHIN 9")
        count = len(types)
        events = table_of(types, x=[4] * count, y=list(range(count)), k=pa.nulls(count, pa.int64()))
        assert isinstance(matched(query, events, order_by="t", engine="reference"), kleene.ExecutionError)
        assert isinstance(matched(query, events, order_by="t"), kleene.ExecutionError)

    @pytest.mark.parametrize(
        ("pattern", "where", "types"),
        [
            ("A a, B b", "b.y > 9 AND a.x * b.x * HUGE > 0", "AB"),
            ("A a, B b", "a.y > b.y AND b.x * HUGE > 0", "AB"),
            ("A a, B b", "b.x * HUGE > 0", "B"),
            ("A a, !(N n), B b", "n.y > 9 AND n.x * HUGE > 0", "ANB"),
        ],
    )
    def test_what_would_overflow_and_is_not_needed(self, pattern: str, where: str, types: str) -> None:
        text = f"PATTERN SEQ({pattern}) WHERE {where.replace('HUGE', str(self.HUGE))} WITHIN 9 RETURN a.n AS a"
        events = table_of(types, x=[4] * len(types), y=list(range(len(types))))
        query = kleene.sase(text)
        expected = matched(query, events, order_by="t", engine="reference")
        assert isinstance(expected, pa.Table)
        assert disagreement(expected, matched(query, events, order_by="t"), {}) is None

    @pytest.mark.parametrize(
        ("where", "hints", "says"),
        [
            ("a.id > 0", {"scan": "pais"}, "scan='pais' needs an equivalence test"),
            ("[id]", {"scan": "pais", "second_test": "multi_pais"}, "needs two equivalence tests, but the query has 1"),
            ("[id, n]", {"scan": "ais", "second_test": "multi_pais"}, "needs partitioned stacks"),
            ("[id, n]", {"scan": "basic", "second_test": "multi_pais"}, "needs partitioned stacks"),
            ("[id]", {"operators": "nfa", "scan": "ais"}, "is for sequence operators"),
        ],
    )
    def test_hints_that_cannot_be(self, where: str, hints: Hints, says: str) -> None:
        query = kleene.sase(f"PATTERN SEQ(A a, B b) WHERE {where}")
        with pytest.raises(kleene.UnsupportedError, match=says):
            query.match(table_of("AB", id=[1, 1]), order_by="t", engine=kleene.EngineOptions("generated", plan=hints))

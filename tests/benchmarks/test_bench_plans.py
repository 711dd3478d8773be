"""The streams and queries of SASE 2006 §5, and that an experiment on them runs; how fast is not tested."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

import kleene
import plans
from plans import (
    DOMAINS,
    EXPERIMENTS,
    TYPES,
    Claims,
    Note,
    Point,
    Sizes,
    best_of,
    first_test,
    held_after_pieces,
    make_events,
    make_query,
    sequences_in_windows,
    simulated_types,
)

TINY = Sizes(light=2_400, heavy=600, stream=2_000, piece=100, windows=(300, 600))


def test_events_are_drawn_from_all_types_and_values() -> None:
    events = make_events(20_000)
    assert sorted(set(events.column("type").to_pylist())) == sorted(f"E{n}" for n in range(1, TYPES + 1))
    assert events.column("t").to_pylist() == list(range(20_000))
    for number, size in enumerate(DOMAINS[:4], 1):
        assert set(events.column(f"attr{number}").to_pylist()) == set(range(size))


def test_the_same_seed_makes_the_same_events() -> None:
    assert make_events(100, seed=3).equals(make_events(100, seed=3))
    assert not make_events(100, seed=3).equals(make_events(100, seed=4))


def test_pieces_of_a_stream_follow_each_other() -> None:
    one, other = make_events(50), make_events(50, begin=50)
    assert other.column("t").to_pylist() == list(range(50, 100))
    assert one.schema == other.schema
    assert one.column("attr1") != other.column("attr1")


def test_a_query_has_what_its_parameters_say() -> None:
    text = make_query(4, 500, equivalence=2, parameterized=1, simple=1, negations=2)
    pattern, _, rest = text.partition(" WHERE ")
    conditions, _, window = rest.partition(" WITHIN ")
    assert re.findall(r"\bE(\d) e\1\b", pattern) == ["1", "2", "3", "4"]
    assert re.findall(r"!\((\w+)", pattern) == ["E5", "E6"]
    assert len(conditions.split(" AND ")) == 4
    assert window == "500"


@pytest.mark.parametrize("seed", range(20))
def test_every_query_of_the_generator_is_one(seed: int) -> None:
    for length in range(2, 7):
        text = make_query(length, 10, 2, 1, 1, min(2, length - 1), seed=seed)
        assert text == make_query(length, 10, 2, 1, 1, min(2, length - 1), seed=seed)
        kleene.sase(text)


def test_more_types_make_a_query_as_selective_as_a_test_would() -> None:
    for values in (100, 10_000):
        chance = 1 / simulated_types(values, 3) ** 3
        assert chance == pytest.approx(1 / (TYPES**3 * values**2), rel=0.01)


def test_sequences_in_windows_are_those_that_a_query_without_a_test_finds() -> None:
    events = make_events(120, types=4)
    kinds = events.column("type").to_pylist()
    for window in (5, 30, 200):
        by_hand = sum(
            (kinds[i], kinds[j], kinds[k]) == ("E1", "E2", "E3") and k - i < window
            for i, j, k in combinations(range(120), 3)
        )
        found = kleene.sase(make_query(3, window, equivalence=0)).match(events, order_by="t", engine="reference")
        assert sequences_in_windows(events, window) == found.num_rows == by_hand


def test_the_best_of_several_turns() -> None:
    slow, fast = Point(10, 1, 2.0, 0.1, 0.5, 0.5, 0.0, 1, 1), Point(10, 1, 3.0, 0.1, 0.2, 0.1, 0.0, 1, 1)
    best = best_of([slow, fast])
    assert (best.scan, best.construction, best.whole) == (0.2, 0.1, 2.0)


@pytest.fixture
def plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thing once, and with nothing to compile: a few events are not worth it."""
    monkeypatch.setattr(plans, "ENGINE", "generated")
    monkeypatch.setattr(plans, "RUNS", 1)
    monkeypatch.setattr(plans, "MOST_RUNS", 1)


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_on_little(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    claims = Claims(experiment=name, is_judging=False)
    EXPERIMENTS[name](claims, TINY)
    claims.conclude()
    assert claims.data
    assert claims.verdicts == []  # all plans found the same
    assert not claims.lines
    printed = capsys.readouterr().out
    assert f"\n{name}" in printed
    assert "Error" not in printed  # what fails is a note in a table


@pytest.mark.usefixtures("plainly")
def test_claims_are_told_after_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    claims = Claims(experiment="2b")
    first_test(claims, TINY)
    claims.conclude()
    printed = capsys.readouterr().out
    assert "completes more than 90 sequences" in printed
    assert "Claims\n  held      2b. W = 300, 90 sequences with one event: PAIS completes" in printed
    assert [verdict for verdict, _, _ in claims.verdicts] == ["held", "held"]


@pytest.mark.usefixtures("plainly")
def test_what_is_held_after_each_tenth() -> None:
    held = held_after_pieces(make_query(3, 300), TINY, DOMAINS)
    assert [item.events for item in held] == list(range(TINY.stream // 10, TINY.stream + 1, TINY.stream // 10))
    assert all(0 < item.instances < 300 and item.rows <= 300 for item in held)


def test_plans_that_differ_are_told_though_nothing_is_judged() -> None:
    claims = Claims(experiment="3", is_judging=False)
    points = {name: Point(10, matches, 1, 1, 1, 1, 1, 1, 1) for name, matches in (("one", 5), ("other", 4))}
    assert claims.add("here", points)
    assert claims.verdicts == [("NOT HELD", "3. here: all plans find the same matches", "one 5, other 4")]


def test_what_cannot_be_measured_is_a_line() -> None:
    claims = Claims(experiment="3")
    assert not claims.add("here", Note("failed"))
    assert claims.lines == [["here", "failed"]]
    assert claims.verdicts == [("NOT HELD", "3. here: could be measured", "failed")]

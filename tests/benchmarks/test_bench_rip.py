"""RIP's techniques find what Kleene finds, with the evaluations of the sequential one; how fast is not tested."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kleene
import rip
import rip_units
from kernels import Note
from kleene.datasets import prices
from planted_ticks import PLANTED
from rip import BALANCED, QUERIES, Claims, Point, clause_of
from rip_query import RipQuery, checksum_of, rip_query
from rip_units import Outcome, by_state, in_batches, round_robin, sequential, shared_out

pytestmark = pytest.mark.slow  # its loops are machine code

LENGTH = 14
# Of little length, so that it cuts matches off; the few of the others that match are planted, across ends of batches.
SHORT = {"Q2": 4, "Q3": 7, "Q4": 3, "Q8": 6}


def planted_ticks(name: str) -> pa.Table:
    """Prices with what matches planted at every place that a batch can end at."""
    planted = PLANTED.get(name, [])
    drawn: list[int] = []
    for piece in range(12):
        drawn += prices(40 + piece, seed=piece).column("price").to_pylist() + planted
    return pa.table({"t": np.arange(len(drawn)), "price": np.array(drawn, np.float64)})


def ticks_of(table: pa.Table) -> np.ndarray:
    return np.array(table.column("price").to_numpy())  # writable, since the loops are compiled once more for others


def techniques(query: RipQuery, ticks: np.ndarray, batch: int) -> dict[str, Outcome]:
    found = {"SEQ": sequential(query, ticks, batch), "SB": by_state(query, ticks, batch)}
    found["SB+"] = by_state(query, ticks, batch, first_units=2)
    for units in (1, 2, 5):
        found[f"RB {units}"] = round_robin(query, ticks, units, batch)
        found[f"RB+ {units}"] = in_batches(query, ticks, units, max(batch, 2 * query.longest))
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_all_techniques_find_what_kleene_finds(name: str) -> None:
    length = SHORT.get(name, LENGTH)
    table = planted_ticks(name)
    query = rip_query(name, clause_of(name, length), length)
    rows = kleene.match_recognize(query.clause).match(table, engine="reference").to_pylist()
    expected = len(rows), checksum_of(query, ((row["first"], row["last"], row["path"]) for row in rows))
    assert rows
    for batch in (1, 28, 10_000):
        found = techniques(query, ticks_of(table), batch)
        assert {name: outcome.answer for name, outcome in found.items()} == dict.fromkeys(found, expected)
        evaluations = found["SEQ"].evaluations
        assert {name: outcome.evaluations for name, outcome in found.items()} == dict.fromkeys(found, evaluations)
        assert all(sum(outcome.unit_evaluations) == sum(evaluations) for outcome in found.values())


def test_runs_that_need_more_room_than_there_was_at_first() -> None:
    clause = "ORDER BY t MEASURES FIRST(t) AS first, LAST(t) AS last, array_agg(CLASSIFIER()) AS path ALL MATCHES "
    clause += "PATTERN (A B* C* D) MAXLENGTH 18 DEFINE D AS D.price > 147"
    ticks = np.random.default_rng(1).uniform(50, 150, 200)
    query = rip_query("many", clause, 18)
    table = pa.table({"t": np.arange(200), "price": ticks})
    rows = kleene.match_recognize(clause).match(table, engine="reference").to_pylist()
    expected = len(rows), checksum_of(query, ((row["first"], row["last"], row["path"]) for row in rows))
    assert len(rows) > 100
    for outcome in techniques(query, ticks, 60).values():
        assert outcome.answer == expected


def test_a_checksum_tells_matches_apart() -> None:
    query = rip_query("Q2", clause_of("Q2", 9), 9)
    one = checksum_of(query, [(0, 2, "ABC"), (5, 8, "ABBC")])
    assert one == checksum_of(query, [(5, 8, "ABBC"), (0, 2, "ABC")])
    others = ([(0, 2, "ABC")], [(1, 2, "ABC"), (4, 8, "ABBC")], [(0, 2, "ABC"), (5, 8, "ABCC")], [(0, 2, "ABC")] * 2)
    assert one not in {checksum_of(query, other) for other in others}


def test_too_small_a_shared_part_loses_matches_and_a_larger_one_none() -> None:
    query = rip_query("Q11", clause_of("Q11", LENGTH), LENGTH)
    ticks = ticks_of(planted_ticks("Q11"))
    whole = sequential(query, ticks).answer
    assert query.longest == 6
    assert in_batches(query, ticks, 2, 24, shared=12).answer == whole
    assert in_batches(query, ticks, 2, 24).answer == whole
    assert in_batches(query, ticks, 2, 24, shared=0).matches < whole[0]
    with pytest.raises(ValueError, match="cannot share"):
        in_batches(query, ticks, 2, 9)


def test_events_are_copied_as_often_as_the_techniques_say() -> None:
    query = rip_query("Q11", clause_of("Q11", LENGTH), LENGTH)
    ticks = np.random.default_rng(1).uniform(50, 150, 1_000)
    assert round_robin(query, ticks, 3, 100).copied == 3_000
    assert by_state(query, ticks, 100).copied == 6_000
    assert by_state(query, ticks, 100, first_units=2).copied == 6_000
    assert in_batches(query, ticks, 3, 100).copied == 1_000 + 10 * 5  # of each batch but the last, five


def test_units_take_turns_in_starting_runs_across_batches() -> None:
    query = rip_query("Q2", clause_of("Q2", 9), 9)
    nothing_begins = np.full(14, 150.0)  # each event that may start a run costs one evaluation
    assert round_robin(query, nothing_begins, 3, 7).unit_evaluations == (5, 5, 4)


@pytest.mark.parametrize(
    "clause",
    [
        "PATTERN (A | B) DEFINE A AS A.price > 1.0, B AS B.price > 1.0",
        "PATTERN (A+ B) DEFINE B AS B.price > 1.0",
        "PATTERN (A B+ C) DEFINE C AS C.price > B.price",
        "PATTERN (A B) DEFINE A AS A.price > PREV(A.price)",
        "PATTERN (A B) DEFINE B AS B.price > 2 * A.price",
    ],
)
def test_what_the_loops_cannot_do_is_refused(clause: str) -> None:
    with pytest.raises(ValueError, match=r"wanted|must|may|cannot"):
        rip_query("other", f"ORDER BY t MEASURES 1 AS one {clause}", 10)


@pytest.mark.parametrize("kernel", ["begin_matches", "extend_matches", "follow_runs"])
def test_a_unit_that_fails_is_an_error_and_not_the_end_of_all_waiting(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(rip_units, kernel, fail)
    query = rip_query("Q11", clause_of("Q11", LENGTH), LENGTH)
    ticks = np.random.default_rng(1).uniform(50, 150, 1_000)
    with pytest.raises(ZeroDivisionError):
        techniques(query, ticks, 10)


def test_a_batch_goes_to_the_unit_that_is_idle_first() -> None:
    assert shared_out([5, 1, 1, 1, 4], 2) == [7, 5]
    assert shared_out([3], 3) == [3, 0, 0]


def test_a_balanced_query_is_one() -> None:
    query = rip_query("balanced", clause_of("balanced", 9), 9)
    evaluations = sequential(query, np.random.default_rng(1).uniform(50, 150, 1_000)).evaluations
    assert BALANCED
    assert evaluations == (1_000, 999, 998, 997)


def test_experiments_on_little(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(rip, "RUNS", 1)
    monkeypatch.setattr(rip, "ENOUGH_SECONDS", 0.0)
    claims = Claims(is_judging=False)
    for name, experiment in rip.EXPERIMENTS.items():
        if name not in ("agreement", "kleene"):  # they would compile every query
            experiment(claims, rip.Sizes(events=6_000, agreement=100))
    claims.conclude()
    assert claims.verdicts == []  # all techniques found the same
    printed = capsys.readouterr().out
    assert all(f"Figure {number}" in printed for number in (8, 9, 10, 11, 12, 13, 14))
    assert "Error" not in printed


def test_techniques_that_differ_are_told_though_nothing_is_judged() -> None:
    claims = Claims(is_judging=False)
    outcome = Outcome(1.0, 5, 77, (3,), (3,), (1.0,), 0)
    other = Outcome(1.0, 5, 78, (3,), (3,), (1.0,), 0)
    assert claims.add("here", 10, {"SEQ": Point.of([outcome]), "RB": Point.of([other])})
    assert [verdict for verdict, _, _ in claims.verdicts] == ["NOT HELD"]
    assert not claims.add("there", 10, Note("failed"))
    assert claims.lines[-1] == ["there", "failed"]

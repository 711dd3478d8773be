"""Streams that are killed and go on from their checkpoints; `make soak` does more of it, with all queries."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from soak import FEWEST_MATCHES, Moment, difference, soak


@pytest.mark.parametrize(
    "moments",
    [[Moment.COMMIT], pytest.param([Moment.STATE, Moment.AT_WORK], marks=pytest.mark.heavy)],
    ids=["while it commits", "while it writes its state and while it matches"],
)
def test_killed_streams_lose_nothing_and_give_out_nothing_twice(tmp_path: Path, moments: list[Moment]) -> None:
    # One stream, nothing compiled, few micro-batches: what is left of the time goes into starts.
    outcome = soak(tmp_path, moments, ["never_paid"], engine="generated", seed=1, most_batches=1)
    assert [kill.moment for kill in outcome.kills] == moments
    assert all(kill.busy for kill in outcome.kills)
    assert min(table.num_rows for table in outcome.expected.values()) >= FEWEST_MATCHES
    assert outcome.differences == {}


def test_difference_counts_rows() -> None:
    once, twice = pa.table({"x": [1, 2]}), pa.table({"x": [2, 1, 1]})
    assert difference(once, once.take([1, 0])) is None
    assert difference(once, twice) == "0 lost, 1 too much\ntoo much  [1]"
    assert difference(twice, once) == "1 lost, 0 too much\nlost      [1]"

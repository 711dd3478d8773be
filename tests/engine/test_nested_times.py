"""Times inside of structs are times in pandas, too."""

from __future__ import annotations

import pandas as pd
import pytest

import kleene


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("nanoseconds", [0, 1])
def test_times_in_structs_are_times_in_pandas(nanoseconds: int, zone: str | None) -> None:
    first = pd.Timestamp("2024-05-06 10:00", tz=zone) + pd.Timedelta(nanoseconds, "ns")
    then = first + pd.Timedelta(1, "h")
    events = pd.DataFrame({"at": [first, then], "x": [1, 2]})
    found = kleene.begin("a").next("b").match(events, order_by="at").to_dict("records")
    assert [(row["a"]["at"], row["b"]["at"]) for row in found] == [(first, then)]
    assert found[0]["b"]["at"] - found[0]["a"]["at"] == pd.Timedelta(1, "h")


def test_times_in_lists_of_structs_and_missing_structs() -> None:
    times = pd.to_datetime(["2024-05-06 10:00", "2024-05-06 10:01", "2024-05-06 10:02"])
    events = pd.DataFrame({"type": ["A", "A", "C"], "at": times})
    pattern = kleene.begin("a", type="A").times(2).followed_by("b", type="B").optional().followed_by("c", type="C")
    (row,) = pattern.match(events, order_by="at").to_dict("records")
    assert [event["at"] for event in row["a"]] == list(times[:2])
    assert row["b"] is None
    assert row["c"]["at"] == times[2]

"""Tables that stand in order already are left as they are; all others come out in order."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kleene.analysis.row_pattern import SortColumn
from kleene.engine import stretches
from kleene.engine.sorting import differ_from_next, sorted_table, table_in_order
from kleene.engine.texts import check_texts

VALUES: dict[str, tuple[Any, Any]] = {
    "whole numbers": (1, 2),
    "floats": (1.5, 2.5),
    "texts": ("a", "b"),
    "booleans": (False, True),
    "decimals": (Decimal("1.5"), Decimal("2.5")),
    "dates": (dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
    "timestamps": (dt.datetime(2024, 1, 1, 9), dt.datetime(2024, 1, 1, 10)),
    "times of day": (dt.time(9), dt.time(10)),
    "durations": (dt.timedelta(1), dt.timedelta(2)),
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_table_in_order_is_not_copied(kind: str) -> None:
    low, high = VALUES[kind]
    in_order, not_in_order = pa.table({"t": [low, low, high]}), pa.table({"t": [high, low, low]})
    assert sorted_table(in_order, ("t",)) is in_order
    assert sorted_table(not_in_order, ("t",)).column("t").to_pylist() == [low, low, high]


@pytest.mark.parametrize("values", [[1.0, float("nan"), 2.0], [1.0, None, 2.0], [None, 1.0, 2.0]])
def test_nulls_and_nan_go_to_the_end(values: list[float | None]) -> None:
    found = sorted_table(pa.table({"t": values}), ("t",)).column("t").to_pylist()
    assert found[:2] == [1.0, 2.0]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2) | st.none()), max_size=6), st.booleans(), st.booleans())
def test_several_keys_in_either_direction(rows: list[tuple[int, int | None]], first: bool, second: bool) -> None:
    table = pa.table({"a": pa.array([a for a, _ in rows], pa.int64()), "b": pa.array([b for _, b in rows], pa.int64())})
    order = [SortColumn("a", first, None), SortColumn("b", second, False)]
    found = table_in_order(table, order).to_pylist()
    sign = {True: -1, False: 1}
    wanted = sorted(rows, key=lambda row: (sign[first] * row[0], row[1] is None, sign[second] * (row[1] or 0)))
    assert [(row["a"], row["b"]) for row in found] == wanted


def test_stretches_that_threads_check_tell_what_the_whole_column_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "LEAST_ROWS", 5)
    chance, told = np.random.default_rng(5), set()
    for _ in range(200):
        values = np.sort(chance.integers(0, 400, 20))
        if chance.random() < 0.5:  # at a border, or anywhere
            values[chance.choice([6, 7, 13, 14, chance.integers(20)])] = chance.integers(400)
        column = pa.chunked_array([values]) if chance.random() < 0.5 else pa.chunked_array([values[:8], values[8:]])
        table = pa.table({"t": column})
        found = sorted_table(table, ("t",), threads=3)
        assert found.column("t").to_pylist() == sorted(values.tolist())
        assert (found is table) == bool((values[1:] >= values[:-1]).all())
        differ = bool((values[1:] != values[:-1]).all())
        assert differ_from_next(column, threads=3) == differ
        told.add((found is table, differ))
    assert len(told) == 4


def test_texts_are_checked_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "LEAST_ROWS", 5)
    for wrong in range(12):
        values = [b"text"] * 12
        check_texts(pa.chunked_array([pa.array(values, pa.binary()).view(pa.string())]), threads=3)
        values[wrong] = b"\xff"
        with pytest.raises(pa.ArrowInvalid):
            check_texts(pa.chunked_array([pa.array(values, pa.binary()).view(pa.string())]), threads=3)

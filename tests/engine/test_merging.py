"""Rows of several parts come together by their places, as a stable sort puts them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kleene.engine import merging
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.merging import Made, chained, merged
from kleene.engine.threads import _OneThread

SCHEMA = pa.schema(
    {
        "place": pa.int64(),
        "short": pa.int32(),
        "float": pa.float64(),
        "time": pa.timestamp("us", "UTC"),
        "text": pa.string(),
        "some": pa.int64(),
        "is": pa.bool_(),
        "list": pa.list_(pa.int64()),
    }
)


def rows_at(places: np.ndarray, part: int) -> pa.Table:
    numbers = np.arange(len(places)) + 1_000 * part
    return pa.table(
        {
            "place": places,
            "short": numbers,
            "float": numbers / 7,
            "time": numbers,
            "text": [f"{number}ä" * (number % 5) for number in numbers.tolist()],
            "some": [None if number % 3 == 0 else number for number in numbers.tolist()],
            "is": numbers % 2 == 0,
            "list": [[number] * (number % 3) for number in numbers.tolist()],
        }
    ).cast(SCHEMA)


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("span", [30, 300, 30_000])
def test_parts_come_together_as_a_stable_sort_puts_them(span: int, jit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "ROWS_OF_A_STRETCH", 20)
    chance = np.random.default_rng(span)
    for count in (0, 1, 2, 5):
        made = []
        for number in range(count):
            places = np.sort(chance.integers(0, span, chance.integers(0, 60)))
            rows = rows_at(places, number)
            if number % 2:  # in chunks, one of them a slice
                rows = pa.concat_tables([rows.slice(0, 7), rows.slice(7)])
            made.append(Made(rows, places))
        found = merged(made, SCHEMA, shared_loops(jit), _OneThread())
        whole = pa.concat_tables([SCHEMA.empty_table(), *(part.rows for part in made)])
        order = np.argsort(whole.column("place").to_numpy(), kind="stable")
        assert found.equals(whole.take(pa.array(order)))
        found.validate(full=True)


def test_parts_that_follow_each_other_come_together_as_a_stable_sort_puts_them() -> None:
    chance = np.random.default_rng(2)
    for overlap in (-3, 0, 1, 5, 40, 200):
        for count in (0, 1, 2, 4):
            made = []
            for number in range(count):
                begin = 50 * number
                places = np.sort(chance.integers(begin, max(begin + 50 + overlap, begin + 1), chance.integers(0, 60)))
                made.append(Made(rows_at(places, number), places))
            whole = pa.concat_tables([SCHEMA.empty_table(), *(part.rows for part in made)])
            order = np.argsort(whole.column("place").to_numpy(), kind="stable")
            assert chained(made, SCHEMA).equals(whole.take(pa.array(order)))


def test_codes_of_texts_become_texts() -> None:
    schema = pa.schema({"k": pa.string()})
    made = [
        Made(pa.table({"k": pa.array(["a", "b"]).dictionary_encode()}), np.array([0, 2])),
        Made(pa.table({"k": pa.array(["c", "d"]).dictionary_encode()}), np.array([1, 3])),
    ]
    assert merged(made, schema, shared_loops(True), _OneThread()).to_pydict() == {"k": ["a", "c", "b", "d"]}

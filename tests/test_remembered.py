"""Work that calls repeat is done once, and never for another query."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kleene
from kleene.remembered import KEPT, remembered


def test_the_same_value_is_made_once_and_an_equal_one_again() -> None:
    made: list[object] = []

    @remembered
    def make(value: list[int], extra: object) -> int:
        made.append((value, extra))
        return len(made)

    one, equal = [1, 2], [1, 2]
    assert [make(one, "x"), make(one, "x"), make(equal, "x"), make(one, "y")] == [1, 1, 2, 3]
    assert [make(one, {}), make(one, {})] == [4, 5]  # a dict cannot be compared


def test_only_the_last_are_kept() -> None:
    made: list[int] = []

    @remembered
    def make(value: list[int]) -> int:
        made.append(value[0])
        return value[0]

    values = [[number] for number in range(KEPT + 1)]
    for value in values:
        make(value)
    make(values[0])
    assert made[KEPT:] == [KEPT, 0]


def test_a_query_asked_of_other_columns_is_analysed_again() -> None:
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE a.v < b.v WITHIN 10 RETURN b.v")
    numbers = pa.table({"type": ["A", "B"], "t": [1, 2], "v": [1, 2]})
    texts = pa.table({"type": ["A", "B"], "t": [1, 2], "v": ["1", "2"]})
    for events in (numbers, texts, numbers):
        assert query.match(events, order_by="t").column("v").to_pylist() == events.column("v").to_pylist()[1:]
    for _ in range(2):
        with pytest.raises(kleene.KleeneError, match="'v'"):
            query.match(numbers.drop_columns("v"), order_by="t")

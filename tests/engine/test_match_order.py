"""What events are known by in `match_order` sorts as the events do, whatever their types, directions and NULLs."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kleene.analysis.row_pattern import SortColumn
from kleene.engine.match_order import RowPlaces, event_keys, event_type
from kleene.engine.sorting import table_in_order

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int32(), [3, -1, 0, 2**31 - 1, -(2**31)]),
    "longs": (pa.int64(), [3, -1, 0, 2**63 - 1, -(2**63)]),
    "floats": (pa.float64(), [1.5, -0.0, 0.0, -2.5, float("inf"), float("-inf"), float("nan")]),
    "booleans": (pa.bool_(), [True, False]),
    "texts": (pa.string(), ["", "a", "ab", "ab\0", "b", "ä", "🙂", "zz"]),
    "bytes": (pa.binary(), [b"", b"\0", b"\xff", b"\xff\xff", b"a"]),
    "decimals": (pa.decimal128(20, 2), [Decimal("1.50"), Decimal("-3.25"), Decimal("0.00")]),
    "dates": (pa.date32(), [dt.date(2024, 1, 1), dt.date(1969, 12, 31)]),
    "times": (pa.timestamp("us"), [dt.datetime(2024, 1, 1), dt.datetime(1960, 5, 5, 1, 2, 3, 4)]),
    "durations": (pa.duration("us"), [dt.timedelta(hours=1), dt.timedelta(hours=-1)]),
}


def as_spark_sorts(value: Any) -> Any:
    """What Python may compare as Spark does: NULLs first, NaN last."""
    if isinstance(value, dict):
        return tuple(as_spark_sorts(part) for part in value.values())
    if isinstance(value, float):
        return (1, value != value, 0.0 if value != value else value)
    return (0,) if value is None else (1, value)


@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", VALUES)
def test_keys_sort_as_events_do(kind: str, descending: bool, nulls_first: bool) -> None:
    type_, values = VALUES[kind]
    column = [*values, None] * 2
    Random(3).shuffle(column)
    table = pa.table({"x": pa.array(column, type_), "n": range(len(column))})
    order = [SortColumn("x", descending, nulls_first), SortColumn("n", True, None)]
    keys = event_keys(table, np.arange(table.num_rows), order)
    assert keys.type == event_type(table.schema, order)
    by_key = sorted(range(table.num_rows), key=lambda row: as_spark_sorts(keys[row].as_py()))
    assert by_key == table_in_order(table, order).column("n").to_pylist()


def test_places_of_rows_and_of_the_operator() -> None:
    rows = RowPlaces.of([(5, 2, 1, 0), (5, 2, 1, 1)])
    assert [part.tolist() for part in (rows.last, rows.first, rows.numbers, rows.rows)] == [
        [5, 5],
        [2, 2],
        [1, 1],
        [0, 1],
    ]
    alone = RowPlaces.of([(7,)])
    assert [part.tolist() for part in (alone.last, alone.first, alone.numbers, alone.rows)] == [[7], [7], [0], [0]]
    assert len(RowPlaces.of([]).last) == 0

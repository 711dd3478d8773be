"""Events as they come into a task, put in order in bounded memory and handed on by whole groups or in parts."""

from __future__ import annotations

import math
from random import Random

import pyarrow as pa
import pytest

from kleene.analysis.row_pattern import SortColumn
from kleene.engine import spilling
from kleene.engine.sorting import order_numbers
from kleene.spark.marks import GROUP
from kleene.spark.tasks.groups import GroupPart, Groups, groups_of
from kleene.spark.tasks.order import TaskOrder, sorted_tables

BY_TIME = TaskOrder((SortColumn("t", False, None), SortColumn("s", False, None), SortColumn("x", False, None)))


def batches(seed: int, rows: int, keys: int, times: int, each: int = 37) -> list[pa.Table]:
    random = Random(seed)
    columns = {
        "t": [random.randrange(-times, times) for _ in range(rows)],
        "s": [random.choice(["a", "b", "ü", "", None]) for _ in range(rows)],
        "x": [random.choice([1.5, -0.0, 0.0, math.nan, None]) for _ in range(rows)],
        GROUP: [random.randrange(-(2**63), 2**63) if keys > 100 else random.randrange(keys) for _ in range(rows)],
    }
    types = {"t": pa.int64(), "s": pa.string(), "x": pa.float64(), GROUP: pa.int64()}
    table = pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})
    return [table.slice(at, each) for at in range(0, rows, each)]


def in_plain_order(tables: list[pa.Table], sign: int = 1) -> list[tuple]:
    def key(row: dict) -> tuple:
        x = row["x"]
        return (
            row[GROUP],
            sign * row["t"],
            row["s"] is None,
            (row["s"] or "").encode(),
            (x is None, x is not None and math.isnan(x), 0.0 if x is None or math.isnan(x) else x),
        )

    return [plain(row) for row in sorted(pa.concat_tables(tables).to_pylist(), key=key)]


def plain(row: dict) -> tuple:
    x = row["x"]
    return row[GROUP], row["t"], row["s"], None if x is None else "NaN" if math.isnan(x) else x + 0.0


@pytest.mark.parametrize(("keys", "times"), [(1, 5), (3, 1000), (7, 20), (70_000, 10)])
@pytest.mark.parametrize("most_bytes", [10**9, 4000, 1])
def test_sorted_in_memory_and_by_runs_on_disk(keys: int, times: int, most_bytes: int, monkeypatch) -> None:
    monkeypatch.setattr(spilling, "MOST_RUNS", 5)
    given = batches(keys, 900, keys, times)
    found = [row for table in sorted_tables(iter(given), BY_TIME, most_bytes) for row in table.to_pylist()]
    assert list(map(plain, found)) == in_plain_order(given)


def test_descending_order() -> None:
    order = TaskOrder((SortColumn("t", True, None), *BY_TIME.columns[1:]))
    given = batches(1, 300, 3, 40)
    (table,) = sorted_tables(given, order)
    assert list(map(plain, table.to_pylist())) == in_plain_order(given, sign=-1)


def test_runs_in_which_other_strings_are_frequent_go_together() -> None:
    order = TaskOrder((SortColumn("t", False, None),))
    often = pa.table({"s": ["a", "a"], "t": [0, 1], GROUP: [7, 7]})
    seldom = pa.table({"s": ["b", "c"], "t": [2, 3], GROUP: [7, 7]})
    found = list(groups_of(sorted_tables([often, seldom, often.slice(0, 0)], order, 1), at_once=2))
    assert pa.concat_tables([part.table for part in found]).column("s").to_pylist() == ["a", "a", "b", "c"]


def test_no_events_are_no_tables() -> None:
    assert list(sorted_tables([], BY_TIME)) == []
    assert list(groups_of([])) == []


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_floats_become_numbers_in_their_order(type_: pa.DataType) -> None:
    values = [-math.inf, -1e30, -2.5, -1.0, -0.0, 0.0, 1e-30, 1.0, 2.5, math.inf]
    numbers = order_numbers(pa.chunked_array([pa.array(values, type_)])).tolist()
    assert numbers == sorted(numbers)
    assert numbers[4] == numbers[5]
    assert len(set(numbers)) == len(values) - 1


@pytest.mark.parametrize("sizes", [[5], [1, 1, 1], [30, 1, 2], [3, 50, 3], [9] * 9, [1] * 40, [40, 40]])
@pytest.mark.parametrize("piece", [1, 4, 100])
def test_groups_are_whole_or_in_parts(sizes: list[int], piece: int) -> None:
    numbers = [number for number, size in enumerate(sizes) for _ in range(size)]
    whole = pa.table({GROUP: numbers, "n": list(range(len(numbers)))})
    tables = [whole.slice(at, piece) for at in range(0, len(numbers), piece)]
    found = list(groups_of(tables, at_once=6, large=10))
    assert pa.concat_tables([part.table for part in found]).to_pylist() == whole.to_pylist()
    open_group, seen = None, set()
    for part in found:
        here = set(part.table.column(GROUP).to_pylist())
        if isinstance(part, Groups):
            assert open_group is None
            assert not here & seen, "a group came twice"
            assert all(sizes[number] == part.table.column(GROUP).to_pylist().count(number) for number in here)
            assert part.table.num_rows <= 6 + 10 + 6
        else:
            assert isinstance(part, GroupPart)
            assert len(here | ({open_group} if open_group is not None else set())) <= 1
            open_group = None if part.is_last else next(iter(here))
        seen |= here
    assert open_group is None

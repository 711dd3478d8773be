"""RETURN computed by generated code is what the interpreter computes."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import kleene
from agreement import same_result
from kleene.engine.compiled import measures

MEASURES = [
    *(f"{name}(a[].{column})" for name in ("sum", "avg", "min", "max", "count") for column in ("x", "y", "d")),
    *(f"{name}(a[].{column})" for name in ("min", "max", "count", "first", "last") for column in ("s", "ts", "flag")),
    "count(a[])",
    "a.LEN",
    "a.LEN * 1000 + b.x",
    "a[1].x + a[a.LEN].x",
    "a[1].y / b.x",
    "a[1].d * 2",
    "b.ts - a[1].ts",
    "CASE WHEN b.x > 1 THEN a[1].s WHEN b.flag THEN 'flag' END",
    "coalesce(b.s, a[1].s, 'none')",
    "a[1].s || b.s",
    "b.x IS NULL",
    "greatest(b.x, a[1].x)",
    "sum(a[].x) > 3 AND b.flag",
    "collect(a[].x)",
]


def table(seed: int) -> pa.Table:
    chance = random.Random(seed)
    count = 12

    def some(*values: object) -> list[object]:
        return [chance.choice([*values, None]) if seed % 2 else chance.choice(values) for _ in range(count)]

    begin = datetime(2024, 1, 1)
    return pa.table(
        {
            "type": [chance.choice("AAB") for _ in range(count)],
            "t": range(count),
            "x": pa.array(some(0, 1, 2, -3), pa.int64()),
            "y": pa.array(some(0.5, -1.25, float("nan")), pa.float64()),
            "d": pa.array(some(Decimal("1.25"), Decimal("-3.50")), pa.decimal128(10, 2)),
            "s": pa.array(some("p", "q", ""), pa.string()),
            "ts": pa.array(some(begin, begin + timedelta(seconds=5)), pa.timestamp("us")),
            "flag": pa.array(some(True, False), pa.bool_()),
        }
    )


@pytest.mark.parametrize("seed", range(6))
def test_every_kind_of_measure(seed: int) -> None:
    items = ", ".join(f"{measure} AS m{number}" for number, measure in enumerate(MEASURES))
    query = kleene.sase(f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) {{ }} RETURN {items}")
    expected = query.match(table(seed), order_by="t", engine="reference")
    assert expected.num_rows > 2
    assert same_result(expected, query.match(table(seed), order_by="t", engine="generated"))


def test_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "FEW", 0)
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) RETURN sum(a[].x) AS total, avg(a[].y) AS mean, min(a[].s) AS least")
    expected = query.match(table(2), order_by="t", engine="reference")
    assert same_result(expected, query.match(table(2), order_by="t", engine="compiled"))


def test_what_does_not_fit_is_the_error_of_the_interpreter() -> None:
    events = pa.table({"type": ["A", "A", "B"], "t": [1, 2, 3], "x": [2**62, 2**62, 0]})
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) RETURN sum(a[].x) AS total")
    with pytest.raises(kleene.ExecutionError, match=r"overflow: sum\(a\[\]\.x\) does not fit"):
        query.match(events, order_by="t", engine="generated")

"""Measures aggregates over all matches: food contamination, and how the cost grows with events and with the graph."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import kleene
from streams import contaminated_ways, contamination

CONTAMINATION = """PATTERN SEQ(Alert a, Shipment+ b[])
    WHERE skip_till_any_match(a, b[])
        { a.kind = 'contaminated' AND b[1].source = a.site AND b[i].source = b[i-1].target }
    WITHIN 3 hours"""
ASKED = {"n": "count(*)", "sum": "sum(b.target)", "most": "max(b.target)", "mean": "avg(b.target)"}
GROWTH = (625, 1_250, 2_500, 5_000)
QUERIES = {
    "one Kleene plus": "PATTERN SEQ(A a, B+ b[])",
    "two of them": "PATTERN SEQ(A+ a[], B+ b[])",
    "a window of half the events": "PATTERN SEQ(A a, B+ b[]) WITHIN {half}",
    "a key": "PATTERN SEQ(A a, B+ b[]) WHERE [id]",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=GROWTH[-1], help="the largest number of events")
    most = parser.parse_args().most
    measure_contamination()
    for name, text in QUERIES.items():
        measure_growth(name, text, [size for size in GROWTH if size <= most])


def best(call: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The shortest time of several, after one that compiles."""
    found, seconds = call(), []
    for _ in range(times):
        begin = time.perf_counter()
        found = call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds), found


def measure_contamination() -> None:
    shipped, query = contamination(2_000), kleene.sase(CONTAMINATION)
    print("Food contamination, 2,000 shipments in one window, four aggregates:")
    for per in (None, "event", "1 hour"):
        seconds, found = best(
            lambda per=per: query.aggregate(shipped, ASKED, per=per, order_by="ts", engine="compiled")
        )
        print(f"  per {per or 'nothing':<8} {seconds:.3f} s, {found.num_rows:,} rows")
    [count] = query.aggregate(shipped, {"n": "count(*)"}, order_by="ts", engine="compiled")["n"].to_pylist()
    is_right = int(count) == contaminated_ways(shipped["Shipment"])
    print(f"  the count has {len(count)} digits, and is {'right' if is_right else 'WRONG'}")


def measure_growth(name: str, text: str, sizes: list[int]) -> None:
    print(f"{name}: events, digits of the count, seconds, microseconds an event")
    for size in sizes:
        query = kleene.sase(text.format(half=size // 2))
        events = pa.table(
            {
                "type": ["A" if n % 50 == 0 else "B" for n in range(size)],
                "t": range(size),
                "id": [n % 7 for n in range(size)],
                "target": [n % 10 for n in range(size)],
            }
        )
        seconds, found = best(lambda: query.aggregate(events, ASKED, order_by="t", engine="compiled"))  # noqa: B023
        digits = len(found["n"][0].as_py())
        print(f"  {size:>6,} {digits:>6,} {seconds:>8.3f} {1e6 * seconds / size:>8.1f}")


if __name__ == "__main__":
    main()

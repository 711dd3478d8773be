"""What a pattern in steps costs beside the same question in SASE+, and beside its interpreter (`make bench-steps`).

Whole calls, in process, Arrow in and out, one thread; the best of several turns, machine code made beforehand. Both
ask the same: the numbers of matches must agree.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import kleene

FEW = 50_000
"""Events for the interpreter, whose time for all of them is reckoned from that."""
a = kleene.begin("a", type="A")
b = a.followed_by("b", type="B")
STEPS = {
    "sequence": b.followed_by("c", type="C"),
    "loop": b.one_or_more().greedy().followed_by_any("c", type="C"),
    "rising loop": b.where("COUNT(b.*) = 0 OR price > LAST(b.price)")
    .one_or_more()
    .greedy()
    .followed_by_any("c", type="C"),
}
SASE = {
    "sequence": "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { [id] } WITHIN 2000",
    "loop": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [id] } WITHIN 2000",
    "rising loop": """PATTERN SEQ(A a, B+ b[], C c)
        WHERE skip_till_next_match(a, b[], c) { [id] AND b[i].price > b[i-1].price } WITHIN 2000""",
}


def events(rows: int) -> pa.Table:
    chance = np.random.default_rng(1)
    types = np.array(["A", "B", "C", "X"])[chance.choice(4, rows, p=[0.05, 0.2, 0.05, 0.7])]
    times, ids, prices = np.arange(rows), chance.integers(0, 20, rows), chance.integers(0, 100, rows)
    return pa.table({"type": types, "t": times, "id": ids, "price": prices})


def best_of(calls: list[Callable[[], pa.Table]], turns: int) -> tuple[list[float], list[int]]:
    """The best time of each call, and how many matches it finds; they take turns."""
    best, found = [float("inf")] * len(calls), [0] * len(calls)
    for _ in range(turns):
        for number, call in enumerate(calls):
            started = time.perf_counter()
            found[number] = call().num_rows
            best[number] = min(best[number], time.perf_counter() - started)
    return best, found


def measured(name: str, table: pa.Table, turns: int) -> dict[str, float | int | str]:
    pattern, query = STEPS[name].within(2000).partition_by("id"), kleene.sase(SASE[name])
    engine = kleene.EngineOptions("compiled", threads=1)
    for one in (pattern, query):
        one.match(table.slice(0, FEW), order_by="t", engine=engine)
    calls = [lambda one=one: one.match(table, order_by="t", engine=engine) for one in (pattern, query)]  # type: ignore[misc]
    (own, sase), (matches, same) = best_of(calls, turns)
    assert matches == same, f"{name}: {matches} matches, but {same} in SASE+"
    few = table.slice(0, FEW)
    [plain], _ = best_of([lambda: pattern.match(few, order_by="t", engine="reference")], 1)
    gain = plain * table.num_rows / few.num_rows / own
    return {
        "question": name,
        "events": table.num_rows,
        "matches": matches,
        "seconds": round(own, 3),
        "in SASE+": round(sase, 3),
        "ratio": round(own / sase, 2),
        "times the interpreter": round(gain),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    table = events(given.rows)
    for name in STEPS:
        print(json.dumps(measured(name, table, given.turns)), flush=True)


if __name__ == "__main__":
    main()

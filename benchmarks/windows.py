"""What a pattern in a window costs beside MATCH_RECOGNIZE of the same pattern, and how it grows (`make bench-windows`).

Whole calls, in process, Arrow in and out; the best of several turns, machine code made beforehand. A window gives out
every row of its input, MATCH_RECOGNIZE a row for each match.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import kleene

PATTERN = "PATTERN (S DN{3,} UP+) DEFINE DN AS DN.c < PREV(DN.c), UP AS UP.c > PREV(UP.c)"
MEASURES = "MEASURES FIRST(c) AS top, LAST(DN.c) AS low, count(*) AS n"
KEYS = "PARTITION BY k ORDER BY t"
UNBOUNDED = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"
NEXT_ROW = "AFTER MATCH SKIP TO NEXT ROW"
NEVER = "PATTERN (A B) DEFINE A AS c > PREV(c), B AS c IS NULL"
MOST_RATIO = 1.5


def walk(rows: int, keys: int = 1_000) -> pa.Table:
    chance = np.random.default_rng(1)
    return pa.table(
        {
            "k": chance.integers(0, keys, rows),
            "t": np.arange(rows),
            "c": np.cumsum(chance.integers(-3, 4, rows)),
        }
    )


def clause(skip: str = "") -> kleene.Query:
    return kleene.match_recognize(f"{KEYS} {MEASURES} {skip} {PATTERN}")


def window(frame: str = UNBOUNDED, skip: str = "", seeking: str = "INITIAL") -> kleene.Query:
    return kleene.pattern_window(f"{KEYS} {MEASURES} {frame} {skip} {seeking} {PATTERN}")


def following(rows: int) -> str:
    return f"ROWS BETWEEN CURRENT ROW AND {rows} FOLLOWING"


def seconds(query: kleene.Query, table: pa.Table, turns: int) -> float:
    return best_of([query], table, turns)[0]


def best_of(queries: list[kleene.Query], table: pa.Table, turns: int) -> list[float]:
    """The best time of each query. They take turns, so that none of them alone pays for memory that is new."""
    for query in queries:
        query.match(table.slice(0, 20_000), engine="compiled")
    best = [float("inf")] * len(queries)
    for _ in range(turns):
        for number, query in enumerate(queries):
            begun = time.perf_counter()
            query.match(table, engine="compiled")
            best[number] = min(best[number], time.perf_counter() - begun)
    return best


def beside(rows: int, turns: int) -> dict[str, dict[str, float]]:
    """Each window beside the clause that searches alike."""
    table = walk(rows)
    pairs: dict[str, tuple[kleene.Query, kleene.Query]] = {
        "INITIAL, past last row": (window(), clause()),
        "INITIAL, to next row": (window(skip=NEXT_ROW), clause(NEXT_ROW)),
        "INITIAL, 20 following": (window(following(20)), clause()),
        "SEEK, past last row": (window(seeking="SEEK"), clause()),
        "SEEK, to next row": (window(skip=NEXT_ROW, seeking="SEEK"), clause(NEXT_ROW)),
    }
    found = {}
    for name, (one, other) in pairs.items():
        own, plain = best_of([one, other], table, turns)
        found[name] = {"window": own, "clause": plain, "ratio": own / plain}
    return found


def growth(rows: int, turns: int) -> dict[str, list[float]]:
    """Seconds for a size and for the doubled one."""
    never = kleene.pattern_window(f"ORDER BY t MEASURES LAST(t) AS e {UNBOUNDED} {NEXT_ROW} SEEK {NEVER}")
    overlap: Callable[[int], kleene.Query] = lambda length: kleene.pattern_window(  # noqa: E731
        f"ORDER BY t MEASURES count(*) AS n {following(length)} {NEXT_ROW} PATTERN (A+)"
    )
    few = max(rows // 20, 1_000)
    return {
        "SEEK that finds nothing: rows doubled": [seconds(never, walk(size, 1), turns) for size in (rows, 2 * rows)],
        "overlapping frames of 100 rows: rows doubled": [
            seconds(overlap(100), walk(size, 1), turns) for size in (few, 2 * few)
        ],
        "overlapping frames: 100 and 200 rows": [
            seconds(overlap(length), walk(few, 1), turns) for length in (100, 200)
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What patterns in windows cost.")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()
    ratios = beside(arguments.rows, arguments.turns)
    print(f"{arguments.rows:,} rows, 1,000 keys: {PATTERN}\n")
    for name, figures in ratios.items():
        print(
            f"{name:<24} {figures['window']:.3f} s, MATCH_RECOGNIZE {figures['clause']:.3f} s: {figures['ratio']:.2f}"
        )
    worst = max(figures["ratio"] for name, figures in ratios.items() if name.startswith("INITIAL"))
    print(f"\nINITIAL at most {MOST_RATIO} times: {'met' if worst <= MOST_RATIO else 'NOT met'} ({worst:.2f})\n")
    grown = growth(arguments.rows // 4, arguments.turns)
    for name, (before, after) in grown.items():
        print(f"{name:<46} {before:.3f} s → {after:.3f} s: {after / before:.2f} times")
    if arguments.json:
        arguments.json.write_text(json.dumps({"ratios": ratios, "growth": grown}, indent=2))


if __name__ == "__main__":
    main()

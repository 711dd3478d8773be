"""What results cost in memory: `match_batches` beside `match`, for more and more matches (`make bench-results`).

Each figure is the peak of a process of its own, above that of the same process on a query with one match; machine code
is made beforehand.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import kleene


@dataclass(frozen=True)
class Subject:
    query: Callable[[], kleene.Query]
    events: Callable[[int], pa.Table]
    options: dict[str, str]
    sizes: tuple[int, ...]


def one_key(count: int) -> pa.Table:
    return pa.table({"type": ["A"] * count, "t": range(count)})


def many_keys(count: int) -> pa.Table:
    return pa.table({"type": ["A"] * count, "t": range(count), "id": [number % 100 for number in range(count)]})


SUBJECTS = {
    "sequences": Subject(
        lambda: kleene.sase("PATTERN SEQ(A a, A b) RETURN a.t AS a, b.t AS b"),
        one_key,
        {"order_by": "t"},
        (1_000, 2_000, 4_000, 8_000),
    ),
    "runs, 100 keys": Subject(
        lambda: kleene.sase("""
            PATTERN SEQ(A+ a[], A b) WHERE skip_till_any_match(a[], b) { [id] } WITHIN 1200
            RETURN count(a[]) AS n, b.t AS t"""),
        many_keys,
        {"order_by": "t"},
        (2_000, 4_000, 8_000),
    ),
    "all matches of rows": Subject(
        lambda: kleene.match_recognize("ORDER BY t MEASURES COUNT(*) AS n ALL MATCHES PATTERN (A+)"),
        one_key,
        {},
        (500, 1_000, 2_000),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", nargs=3, metavar=("SUBJECT", "CALL", "SIZE"), help=argparse.SUPPRESS)
    child = parser.parse_args().child
    if child is not None:
        measure(SUBJECTS[child[0]], child[1], int(child[2]))
        return
    print(f"{'query':<22} {'events':>7} {'matches':>12} {'match_batches':>22} {'match':>22}")
    for name, subject in SUBJECTS.items():
        floor = {call: in_child(name, call, 2)[1] for call in ("match_batches", "match")}
        for size in subject.sizes:
            figures = []
            for call in ("match_batches", "match"):
                rows, peak, seconds = in_child(name, call, size)
                figures.append(f"{(peak - floor[call]) / 1024:>9,.0f} MB {seconds:>7.2f} s")
            print(f"{name:<22} {size:>7,} {rows:>12,} {figures[0]:>22} {figures[1]:>22}", flush=True)


def in_child(subject: str, call: str, size: int) -> tuple[int, int, float]:
    command = [sys.executable, __file__, "--child", subject, call, str(size)]
    rows, peak, seconds = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(rows), int(peak), float(seconds)


def measure(subject: Subject, call: str, size: int) -> None:
    query = subject.query()
    query.match(subject.events(2), engine="compiled", **subject.options)
    events, began = subject.events(size), time.perf_counter()
    if call == "match":
        rows = query.match(events, engine="compiled", **subject.options).num_rows
    else:
        rows = sum(batch.num_rows for batch in query.match_batches(events, engine="compiled", **subject.options))
    print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter() - began)


if __name__ == "__main__":
    main()

"""What results cost (`make bench-results`): memory for more and more matches, and time for measures of row patterns.

Memory: `match_batches` beside `match`. Each figure is the peak of a process of its own, above that of the same process
on a query with one match. Time: processor time of whole calls whose measures are computed by column, beside the same
calls with the interpreter's measures. Machine code is made beforehand.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pyarrow as pa

import kleene
from kleene.engine.by_column.measures import Measures
from kleene.engine.by_column.vectors import NoColumnFormError


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


PATTERN = "PATTERN (S DN+ UP+) DEFINE DN AS DN.c < PREV(DN.c), UP AS UP.c > PREV(UP.c)"
ONE, ALL = "ONE ROW PER MATCH", "ALL ROWS PER MATCH"
MEASURES = {
    "aggregates": (ONE, "sum(DN.c) AS a, avg(y) AS b, min(c) AS d, max(UP.y) AS e, count(DISTINCT s) AS f"),
    "aggregates, combined": (
        ONE,
        """(max(c) - min(c)) / count(*) AS a, round(avg(y), 2) AS b, coalesce(PREV(FIRST(c)), 0) + LAST(c, 1) AS d,
        CASE WHEN count(DN.*) > 2 THEN sum(DN.y) ELSE LAST(UP.y) - FIRST(y) END AS e""",
    ),
    "lists": (ONE, "array_agg(c) AS a, array_agg(CLASSIFIER()) AS b"),
    "functions of strings": (ONE, "upper(LAST(s)) || FIRST(s) AS a, median(c) AS b"),
    "running aggregates": (ALL, "sum(c) AS a, avg(y) AS b, min(c) AS d, count(DN.*) AS e, CLASSIFIER() AS f"),
    "final and running": (
        ALL,
        """c - FINAL avg(c) AS a, FINAL count(*) AS b, PREV(y) AS d,
        CASE WHEN CLASSIFIER() = 'UP' THEN LAST(DN.c) - FIRST(c) END AS e""",
    ),
}


def walk(rows: int) -> pa.Table:
    chance = np.random.default_rng(1)
    prices = np.cumsum(chance.integers(-3, 4, rows))
    strings = pa.array(np.array(["p", "q", "r", "st"])[chance.integers(0, 4, rows)])
    keys = chance.integers(0, 1_000, rows)
    return pa.table({"k": keys, "t": np.arange(rows), "c": prices, "y": prices * 0.1, "s": strings})


def time_of_measures(rows: int, turns: int) -> None:
    """By column the best of several turns; by the interpreter one."""
    table = walk(rows)
    print(f"{rows:,} rows, 1,000 keys, {PATTERN}")
    print(f"{'measures':<22} {'rows per match':<20} {'rows':>9} {'by column':>12} {'interpreter':>12} {'ratio':>7}")
    for name, (kind, measures) in MEASURES.items():
        query = kleene.match_recognize(f"PARTITION BY k ORDER BY t MEASURES {measures} {kind} {PATTERN}")
        query.match(table.slice(0, 20_000), engine="compiled")
        own = min(processor_time(query, table) for _ in range(turns))
        with mock.patch.object(Measures, "_by_column", side_effect=NoColumnFormError):
            plain = processor_time(query, table)
        found = query.match(table, engine="compiled").num_rows
        print(f"{name:<22} {kind:<20} {found:>9,} {own:>10.3f} s {plain:>10.2f} s {plain / own:>7.0f}", flush=True)


def processor_time(query: kleene.Query, table: pa.Table) -> float:
    begun = time.process_time()
    query.match(table, engine="compiled")
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", nargs=3, metavar=("SUBJECT", "CALL", "SIZE"), help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=("memory", "measures"), help="one of the two parts")
    parser.add_argument("--rows", type=int, default=1_000_000, help="for measures")
    parser.add_argument("--turns", type=int, default=5, help="for measures")
    options = parser.parse_args()
    child = options.child
    if child is not None:
        measure(SUBJECTS[child[0]], child[1], int(child[2]))
        return
    if options.only != "memory":
        time_of_measures(options.rows, options.turns)
    if options.only != "measures":
        memory_of_results()


def memory_of_results() -> None:
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

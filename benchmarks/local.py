"""Whole calls in this process beside what experts write by hand for DuckDB and polars (`make bench-local`).

Arrow in and out; the best of several turns, machine code made beforehand. All give equal rows, which is checked. The
peers use all cores, as Kleene does.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

import kleene
from floors import floor_of
from local_questions import KEYS, QUESTIONS, Question, events, same_rows
from streams import uniform_prices
from workloads import RIP, rip_clause

LEAST_AHEAD = {"integer keys": 4.0, "text keys": 3.0}
LEAST_GAIN, LEAST_RANGE_GAIN = 1.7, 1.5
MOST_OVER_FLOOR = 5.0
RIP_ROWS = 2_000_000
SMALL_ROWS = 1_000


def seconds(call: Callable[[], Any], turns: int) -> float:
    best = float("inf")
    for _ in range(turns):
        begun = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begun)
    return best


def asked(question: Question, table: pa.Table, turns: int) -> dict[str, float]:
    """Seconds of Kleene, with all cores and with one, and of the peers; an error if answers differ."""
    expected = question.ask_kleene(table)
    peers = {"duckdb": question.ask_duckdb} | ({} if question.polars is None else {"polars": question.ask_polars})
    for name, ask in peers.items():
        if not same_rows(expected, ask(table)):
            raise SystemExit(f"{question.name}: the rows of {name} differ")
    found = {"matches": float(expected.num_rows)}
    found["kleene"] = seconds(lambda: question.ask_kleene(table), turns)
    found["one thread"] = seconds(lambda: question.ask_kleene(table, threads=1), turns)
    return found | {name: seconds(lambda ask=ask: ask(table), turns) for name, ask in peers.items()}


def small_call(question: Question, turns: int) -> float:
    table = events(SMALL_ROWS, 10)
    question.ask_kleene(table)
    return seconds(lambda: question.ask_kleene(table), 20 * turns)


def rip_calls(rows: int, turns: int) -> dict[str, dict[str, float]]:
    """RIP's queries over one stream in order, whole calls: beside the floor, and in ranges by all threads."""
    prices = uniform_prices(rows)
    print(
        f"\nRIP, whole calls on {rows:,} rows without a key: at most {MOST_OVER_FLOOR:g} times the floor in the mean, "
    )
    print(f"all threads at least {LEAST_RANGE_GAIN:g} times as fast as one")
    figures: dict[str, dict[str, float]] = {}
    for name in RIP:
        query, floor = kleene.match_recognize(rip_clause(name)), floor_of(name, prices)

        def call(threads: int | None, query: kleene.Query = query) -> int:
            options = kleene.EngineOptions("compiled", threads=threads)
            found: pa.Table = query.match(prices, engine=options)
            return found.num_rows

        matches = call(1)
        call(None)
        found = {"floor": seconds(floor, turns), "one thread": seconds(lambda: call(1), turns)}
        found |= {"kleene": seconds(lambda: call(None), turns), "matches": float(matches)}
        figures[name] = found
        over, gain = found["kleene"] / found["floor"], found["one thread"] / found["kleene"]
        print(
            f"  {name:<4} {matches:>9,} matches  {1e3 * found['kleene']:.1f} ms, {over:.1f} times the floor; "
            f"one thread {1e3 * found['one thread']:.1f} ms ({gain:.2f})"
        )
    for kind in ("kleene", "one thread"):
        mean = math.exp(sum(math.log(each[kind] / each["floor"]) for each in figures.values()) / len(figures))
        print(f"  geometric mean, {kind}: {mean:.1f} times the floor")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="What whole calls cost beside DuckDB and polars.")
    parser.add_argument("--section", choices=["questions", "rip"], help="only this one")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(
        f"{arguments.rows:,} events, {KEYS:,} keys, {cores} cores; DuckDB {duckdb.__version__}, polars {pl.__version__}"
    )
    figures: dict[str, dict[str, dict[str, float]]] = {}
    if arguments.section != "questions":
        figures["rip"] = rip_calls(RIP_ROWS, arguments.turns)
    for kind, least in LEAST_AHEAD.items() if arguments.section != "rip" else ():
        table = events(arguments.rows, has_text_keys=kind == "text keys")
        print(f"\n{kind}: ahead by at least {least:g}, two threads by at least {LEAST_GAIN:g}")
        for question in QUESTIONS:
            found = figures.setdefault(kind, {})[question.name] = asked(question, table, arguments.turns)
            ahead = ", ".join(
                f"{name} {found[name]:.3f} s ({found[name] / found['kleene']:.1f})"
                for name in ("duckdb", "polars")
                if name in found
            )
            gain = found["one thread"] / found["kleene"]
            print(
                f"  {question.name:<11} {int(found['matches']):>9,} matches  {found['kleene']:.3f} s; "
                f"one thread {found['one thread']:.3f} s ({gain:.2f}); {ahead}"
            )
    print(f"\nA call on {SMALL_ROWS:,} rows, once warm:")
    for question in QUESTIONS if arguments.section != "rip" else ():
        took = figures.setdefault("small", {}).setdefault(question.name, {})["kleene"] = small_call(
            question, arguments.turns
        )
        print(f"  {question.name:<11} {1_000 * took:.1f} ms")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()

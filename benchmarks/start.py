"""How soon a query answers that nobody has asked before, on a machine on which `kleene warm` was run.

    python benchmarks/start.py [--rows 200000] [--rules 100]

Each first call is one of a new process, with a cache folder that holds the loops of all queries and nothing else.
Reported are the whole process, the call, and the call of machine code that is loaded already.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

QUERIES = {
    "falls": ("rows", "PARTITION BY k ORDER BY t MEASURES count(*) AS n PATTERN (A B{4,}) DEFINE B AS p < PREV(p)"),
    "sessions": (
        "rows",
        "PARTITION BY k ORDER BY t MEASURES count(*) AS n PATTERN (A B*) DEFINE B AS t - PREV(t) < 90",
    ),
    "above the first": (
        "rows",
        "PARTITION BY k ORDER BY t PATTERN (A B+ C) DEFINE B AS p < PREV(p), C AS p > FIRST(p)",
    ),
    "negation": ("sase", "PATTERN SEQ(A a, !(B b), C c) WHERE [k] AND c.p > a.p + 90 WITHIN 1000"),
    "next match": ("sase", "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { [k] } WITHIN 500"),
    "rising": (
        "sase",
        "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) "
        "{ [k] AND b[1].p > a.p AND b[i].p > b[i-1].p AND c.p < a.p } WITHIN 1000",
    ),
    "average": (
        "sase",
        "PATTERN SEQ(A a, B+ b[]) WHERE partition_contiguity(a, b[]) { [k] AND b[i].p > avg(b[..i-1].p) } WITHIN 900",
    ),
}


def events(rows: int) -> pa.Table:
    chance = np.random.default_rng(1)
    kinds = np.array(["A", "B", "C"])[chance.integers(0, 3, rows)]
    return pa.table(
        {"t": np.arange(rows), "k": chance.integers(0, 100, rows), "p": chance.random(rows) * 100, "type": kinds}
    )


def asked(name: str, table: pa.Table, engine: str = "auto") -> pa.Table:
    import kleene

    language, text = QUERIES[name]
    if language == "rows":
        return kleene.match_recognize(text).match(table, engine=engine)
    return kleene.sase(text).match(table, order_by="t", engine=engine)


def first_call(name: str, rows: int) -> None:
    """What the new process does."""
    table = events(rows)
    started = time.perf_counter()
    found = asked(name, table)
    print(json.dumps({"call": time.perf_counter() - started, "matches": found.num_rows}), flush=True)


def rules(count: int, rows: int) -> None:
    """Different rules, one after the other: no two have the same shape of formulas."""
    import kleene

    table, started = events(rows), time.perf_counter()
    found = 0
    for number in range(count):
        terms = " AND ".join(f"b.p > a.p + {bit + number % 7}" for bit in range(1 + number // 34))
        signs = [">", ">=", "<", "<=", "!="]
        extra = f"c.p {signs[number % 5]} b.p AND a.p {signs[(number // 5) % 5]} {number}"
        text = f"PATTERN SEQ(A a, B b, C c) WHERE [k] AND {terms} AND {extra} AND c.p > a.p + 97 WITHIN {50 + number}"
        found += kleene.sase(text).match(table, order_by="t").num_rows
    print(json.dumps({"call": time.perf_counter() - started, "matches": found}), flush=True)


def in_new_process(warmed: Path, *arguments: str) -> tuple[float, float, int]:
    """Seconds of the whole process and of the call, and how many matches there were."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(warmed, Path(folder) / "code")
        environment = {**os.environ, "KLEENE_CACHE_DIR": str(Path(folder) / "code")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        started = time.perf_counter()
        told = subprocess.run(
            [sys.executable, __file__, *arguments], env=environment, capture_output=True, text=True, check=True
        )
        whole = time.perf_counter() - started
    answer = json.loads(told.stdout)
    return whole, answer["call"], answer["matches"]


def best(name: str, table: pa.Table, engine: str) -> float:
    asked(name, table, engine)
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        asked(name, table, engine)
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def report(rows: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        warmed = Path(folder) / "code"
        os.environ["KLEENE_CACHE_DIR"] = str(warmed)
        from kleene.engine.compiled.warming import warm

        started = time.perf_counter()
        warm()
        print(f"kleene warm: {time.perf_counter() - started:.0f} s")
        loops = shutil.copytree(warmed, Path(folder) / "loops")
        table, small = events(rows), events(20_000)
        print(f"\n{rows:,} rows; seconds")
        print("| query | matches | process | first call | tables | compiled | ratio | against the interpreter |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        ratios, gains = [], []
        for name in QUERIES:
            in_new_process(loops, "--first", name, "--rows", str(rows))  # the files of Python are read once
            whole, call, matches = in_new_process(loops, "--first", name, "--rows", str(rows))
            tables, compiled = best(name, table, "tables"), best(name, table, "compiled")
            gain = best(name, small, "reference") / best(name, small, "tables")
            ratios.append(tables / compiled)
            gains.append(gain)
            told = f"{matches:,} | {whole:.2f} | {call:.2f} | {tables:.3f} | {compiled:.3f}"
            print(f"| {name} | {told} | {ratios[-1]:.1f} | {gain:.0f} |", flush=True)
        print(f"\ngeometric means: {_mean(ratios):.2f} times the compiled engine's time")
        print(f"and {_mean(gains):.0f} times as fast as the interpreter")
        whole, call, matches = in_new_process(loops, "--rules", str(count), "--rows", str(rows))
        print(f"{count} new rules over {rows:,} events: {call:.1f} s, {matches:,} matches; the process {whole:.1f} s")


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rules", type=int)
    parser.add_argument("--first", choices=QUERIES)
    given = parser.parse_args()
    if given.first is not None:
        first_call(given.first, given.rows)
    elif given.rules is not None:
        rules(given.rules, given.rows)
    else:
        report(given.rows, 100)

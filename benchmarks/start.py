"""How soon a query answers that nobody has asked before, on a machine on which `kleene warm` was run.

    python benchmarks/start.py [--section first|large|rules|tiers|spark] [--rows 200000]

Each first call is one of a new process, with a cache folder that holds what `kleene warm` left and nothing else. The
call includes whatever is imported and loaded for it after the public names are there; the process includes all.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

MOST_PROCESS, MOST_CALL = 1.2, 0.4  # seconds
LARGE_ROWS, MOST_OVER, MOST_BEHIND = 5_000_000, 1.5, 0.5  # times of the compiled call, or seconds behind it
RULES, MOST_RULES = 100, 15.0
TIER_ROWS, LEAST_GAIN, MOST_RATIO = 100_000, 30.0, 4.0
TURNS = 3
SECTIONS = ("first", "large", "rules", "spark", "tiers")
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


# ---- what a new process does


def first_call(name: str, rows: int, engine: str) -> dict[str, float]:
    import kleene

    begun = time.perf_counter()
    _ = kleene.sase  # the public names are imported when they are first used
    imported = time.perf_counter()
    table = events(rows)
    started = time.perf_counter()
    found = asked(name, table, engine)
    return {"import": imported - begun, "call": time.perf_counter() - started, "matches": found.num_rows}


def many_rules(count: int, rows: int) -> dict[str, float]:
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
    return {"call": time.perf_counter() - started, "matches": found}


def in_new_process(kept: Path, *arguments: str) -> dict[str, float]:
    """What the process tells, and the seconds that it took; it works with a copy of the folder."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(kept, Path(folder) / "code")
        environment = {**os.environ, "KLEENE_CACHE_DIR": str(Path(folder) / "code")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        started = time.perf_counter()
        told = subprocess.run(
            [sys.executable, __file__, *arguments], env=environment, capture_output=True, text=True, check=True
        )
        answer: dict[str, float] = json.loads(told.stdout)
        return {**answer, "process": time.perf_counter() - started}


def best_process(kept: Path, *arguments: str) -> dict[str, float]:
    return min((in_new_process(kept, *arguments) for _ in range(TURNS)), key=lambda told: told["process"])


# ---- sections


def first_calls(kept: Path, rows: int) -> None:
    print(f"\nA query never seen, {rows:,} rows: the process within {MOST_PROCESS} s, the call within {MOST_CALL} s")
    in_new_process(kept, "--first", "falls", "--rows", str(rows))  # the files of Python are read once
    for name in QUERIES:
        told = best_process(kept, "--first", name, "--rows", str(rows))
        print(
            f"  {name:<16} {int(told['matches']):>7,} matches  process {told['process']:.2f} s, "
            f"of it import {told['import']:.2f} s, call {told['call']:.2f} s",
            flush=True,
        )


def large_calls(kept: Path) -> None:
    print(
        f"\nA query never seen, {LARGE_ROWS:,} rows: the call within {MOST_OVER} times of one whose machine code lies "
        f"on disk, or within {MOST_BEHIND} s of it; new processes"
    )
    with tempfile.TemporaryDirectory() as folder:
        compiled = shutil.copytree(kept, Path(folder) / "compiled")
        os.environ["KLEENE_CACHE_DIR"] = str(compiled)
        small = events(20_000)
        for name in QUERIES:
            asked(name, small, "compiled")
        for name in QUERIES:
            new = best_process(kept, "--first", name, "--rows", str(LARGE_ROWS))["call"]
            known = best_process(compiled, "--first", name, "--rows", str(LARGE_ROWS), "--engine", "compiled")["call"]
            print(f"  {name:<16} {new:.2f} s; compiled {known:.2f} s ({new / known:.2f})", flush=True)


def new_rules(kept: Path, rows: int) -> None:
    told = in_new_process(kept, "--rules", str(RULES), "--rows", str(rows))
    print(
        f"\n{RULES} new rules over {rows:,} events, within {MOST_RULES:g} s: {told['call']:.1f} s, "
        f"{int(told['matches']):,} matches; the process {told['process']:.1f} s"
    )


def workloads(rows: int) -> Iterator[tuple[str, Callable[[str], Any]]]:
    """Queries of RIP, of the template of SASE+, and the four questions: a name, and a call by an engine."""
    import kleene
    from kernels import STOCKS, stock_query
    from local_questions import QUESTIONS
    from local_questions import events as user_events
    from streams import stock_ticks, uniform_prices
    from workloads import RIP, rip_clause

    def call(query: kleene.Query, table: pa.Table) -> Callable[[str], Any]:
        order = None if "ORDER BY" in repr(query) else "t"
        return lambda engine: query.match(table, order_by=order, engine=engine)

    prices, stocks, users = uniform_prices(rows), stock_ticks(rows), user_events(rows, 200)
    for name in RIP:
        yield name, call(kleene.match_recognize(rip_clause(name)), prices)
    for name in STOCKS:
        yield name, call(kleene.sase(stock_query(name)), stocks)
    for question in QUESTIONS:
        yield question.name, call(question.kleene, users)


def tiers(kept: Path) -> None:
    print(
        f"\nThe first tier, whole calls on {TIER_ROWS:,} rows: at least {LEAST_GAIN:g} times the interpreter's speed, "
        f"at most {MOST_RATIO:g} times the second tier's time (geometric means)"
    )
    os.environ |= {"KLEENE_CACHE_DIR": str(kept), "KLEENE_BACKGROUND": "0"}
    ratios, gains = [], []
    for name, call in workloads(TIER_ROWS):
        tables, compiled = best(lambda call=call: call("tables")), best(lambda call=call: call("compiled"))
        interpreted = seconds(lambda call=call: call("reference"))
        ratios.append(tables / compiled)
        gains.append(interpreted / tables)
        print(
            f"  {name:<11} {1e3 * tables:7.1f} ms, compiled {1e3 * compiled:7.1f} ms ({ratios[-1]:.2f}), "
            f"interpreter {interpreted:6.2f} s ({gains[-1]:.0f})",
            flush=True,
        )
    print(
        f"  geometric means: {_mean(ratios):.2f} times the second tier's time, {_mean(gains):.0f} times as fast as the"
    )
    print("  interpreter")


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def best(call: Callable[[], Any]) -> float:
    call()
    return min(seconds(call) for _ in range(TURNS))


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def report(sections: tuple[str, ...], rows: int, given: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept = given or Path(folder) / "code"
        environment = {**os.environ, "KLEENE_CACHE_DIR": str(kept)}
        took = seconds(lambda: subprocess.run([sys.executable, "-m", "kleene", "warm"], env=environment, check=True))
        print(f"kleene warm: {took:.0f} s")
        for section in sections:
            # A copy each: what one section has made is new to the next.
            own = shutil.copytree(kept, Path(folder) / section)
            _report_on(section, own, rows)


def _report_on(section: str, kept: Path, rows: int) -> None:
    match section:
        case "first":
            first_calls(kept, rows)
        case "large":
            large_calls(kept)
        case "rules":
            new_rules(kept, rows)
        case "tiers":
            tiers(kept)
        case "spark":
            from start_spark import on_two_workers

            on_two_workers(kept)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--section", choices=SECTIONS, help="only this one")
    parser.add_argument("--folder", type=Path, help="what `kleene warm` made before is kept there")
    parser.add_argument("--rules", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--first", choices=QUERIES, help=argparse.SUPPRESS)
    parser.add_argument("--engine", default="auto", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.first is not None:
        print(json.dumps(first_call(given.first, given.rows, given.engine)), flush=True)
    elif given.rules is not None:
        print(json.dumps(many_rules(given.rules, given.rows)), flush=True)
    else:
        report((given.section,) if given.section else SECTIONS, given.rows, given.folder)

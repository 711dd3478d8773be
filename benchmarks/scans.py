"""Files matched where they lie (`make bench-scans`): in this process and on Spark, growth, and memory.

Events lie in Parquet files in the order of time, half a million in each. Every way must give as many matches as the
others. What is timed is the whole call, from `kleene.scan` to the rows; the best of several turns, after one that makes
the machine code.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kleene
from local_questions import CHANCES, KINDS, WINDOW

FILE_ROWS = 500_000
KEYS = 10_000
QUESTIONS = {
    "falls": kleene.match_recognize(f"""PARTITION BY k ORDER BY t
        MEASURES FIRST(t) AS begun, LAST(t) AS ended, COUNT(*) AS n
        PATTERN (A B{{4,}}) WITHIN {10 * KEYS} DEFINE B AS B.c < PREV(B.c)"""),
    "negation": kleene.sase(f"""EVENT SEQ(cart a, !(pay b), help c) WHERE [k] WITHIN {WINDOW}
        RETURN a.k AS k, a.t AS begun, c.t AS ended"""),
    "next match": kleene.sase(f"""PATTERN SEQ(view a, cart b, pay c)
        WHERE skip_till_next_match(a, b, c) {{ [k] }} WITHIN {WINDOW}
        RETURN a.k AS k, a.t AS begun, b.t AS middle, c.t AS ended"""),
}
SPARK_AHEAD = {"shuffled": 3.0, "in place": 2.0}
LEAST_SPEED = 15e6
MOST_MEMORY = 2.0
MOST_GROWTH = 1.15


def write_events(folder: Path, rows: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(rows // FILE_ROWS):
        chance = np.random.default_rng(number)
        kinds = pa.DictionaryArray.from_arrays(chance.choice(4, FILE_ROWS, p=CHANCES).astype(np.int32), KINDS)
        table = pa.table(
            {
                "k": chance.integers(0, KEYS, FILE_ROWS),
                "t": np.arange(number * FILE_ROWS, (number + 1) * FILE_ROWS),
                "c": chance.integers(0, 1000, FILE_ROWS) / 10,
                "type": kinds.cast(pa.string()),
            }
        )
        pq.write_table(table, folder / f"part-{number:04}.parquet")


def order_of(query: kleene.Query) -> str | None:
    return None if "ORDER BY" in repr(query) else "t"


def matched(query: kleene.Query, folder: Path | list[Path], threads: int | None = None) -> int:
    options = kleene.EngineOptions("compiled", threads=threads)
    found: pa.Table = query.match(kleene.scan(folder), order_by=order_of(query), engine=options)
    return found.num_rows


def best(call: Callable[[], Any], turns: int) -> tuple[Any, float]:
    answer, seconds = call(), float("inf")
    for _ in range(turns):
        begun = time.perf_counter()
        answer = call()
        seconds = min(seconds, time.perf_counter() - begun)
    return answer, seconds


def in_process(folder: Path, rows: int, turns: int) -> dict[str, Any]:
    print(f"\nin this process, {rows:,} events: at least {LEAST_SPEED / 1e6:g} million a second")
    figures: dict[str, Any] = {}
    for name, query in QUESTIONS.items():
        found, seconds = best(lambda query=query: matched(query, folder), turns)
        _, alone = best(lambda query=query: matched(query, folder, 1), turns)
        figures[name] = {"matches": found, "seconds": seconds, "one thread": alone}
        print(
            f"  {name:<11} {found:>8,} matches  {seconds:.3f} s, {rows / seconds / 1e6:.1f} million a second; "
            f"one thread {alone:.3f} s ({alone / seconds:.2f})"
        )
    return figures


def growth(folder: Path, sizes: list[int], turns: int) -> dict[str, Any]:
    print(f"\ngrowth: nanoseconds an event, at most {MOST_GROWTH:g} times those of the smallest")
    figures: dict[str, Any] = {}
    for name, query in QUESTIONS.items():
        each: list[float] = []
        for size in sizes:
            paths = sorted(folder.glob("*.parquet"))[: size // FILE_ROWS]
            _, seconds = best(lambda query=query, paths=paths: matched(query, paths), turns if size < 50_000_000 else 1)
            each.append(seconds / size * 1e9)
        figures[name] = dict(zip(map(str, sizes), each, strict=True))
        told = ", ".join(f"{size / 1e6:g} million {value:.1f}" for size, value in zip(sizes, each, strict=True))
        print(f"  {name:<11} {told} ({max(each) / each[0]:.2f})")
    return figures


def on_spark(folder: Path, rows: int, turns: int) -> dict[str, Any]:
    from kleene.spark.session import embedded_session

    session = embedded_session("kleene-bench")
    session.sparkContext.setLogLevel("ERROR")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    frame = session.read.parquet(str(folder))
    print(f"\non Spark, {rows:,} events: the scan is at least this many times as fast: {SPARK_AHEAD}")
    figures: dict[str, Any] = {}
    for name, query in QUESTIONS.items():
        order = order_of(query)

        def ask(layout: str, query: kleene.Query = query, order: str | None = order) -> int:
            if layout == "scan":
                return int(query.match(kleene.scan(folder, spark=session), order_by=order).count())
            return int(query.match(frame, order_by=order, spark=kleene.SparkOptions(layout)).count())

        found = {layout: best(lambda layout=layout: ask(layout), turns) for layout in ("scan", *SPARK_AHEAD)}
        if len({count for count, _ in found.values()}) != 1:
            raise SystemExit(f"{name}: the numbers of matches differ: {found}")
        seconds = {layout: value for layout, (_, value) in found.items()}
        figures[name] = seconds
        others = ", ".join(
            f"{layout} {seconds[layout]:.2f} s ({seconds[layout] / seconds['scan']:.1f})" for layout in SPARK_AHEAD
        )
        print(f"  {name:<11} {found['scan'][0]:>8,} matches  {seconds['scan']:.2f} s; {others}")
    session.stop()
    return figures


def memory(folder: Path, rows: int) -> dict[str, Any]:
    """The most memory that a process of its own takes."""
    print(f"\nmemory for {rows:,} events: at most {MOST_MEMORY:g} GiB")
    figures: dict[str, Any] = {}
    for name in QUESTIONS:
        code = (
            "import resource, sys; sys.path.insert(0, sys.argv[1]); import scans; from pathlib import Path;"
            "print(scans.matched(scans.QUESTIONS[sys.argv[2]], Path(sys.argv[3])),"
            "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        begun = time.perf_counter()
        said = subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent), name, str(folder)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        seconds, gib = time.perf_counter() - begun, int(said[1]) / 2**20
        figures[name] = {"matches": int(said[0]), "GiB": gib, "seconds": seconds}
        print(f"  {name:<11} {int(said[0]):>8,} matches  {gib:.2f} GiB, {rows / seconds / 1e6:.1f} million a second")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="What it costs to match files where they lie.")
    parser.add_argument("--section", choices=["process", "growth", "spark", "memory"], help="only this one")
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--many-rows", type=int, default=200_000_000, help="for memory; half of it for growth")
    parser.add_argument("--folder", type=Path, help="where the files are put, and left; else they go")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="kleene-bench-"))
    few, many = folder / "few", folder / "many"
    wanted = [arguments.section] if arguments.section else ["process", "spark", "growth", "memory"]
    figures: dict[str, Any] = {}
    try:
        if not few.exists():
            write_events(few, arguments.rows)
        if {"growth", "memory"} & set(wanted) and not many.exists():
            write_events(many, arguments.many_rows)
        if "process" in wanted:
            figures["process"] = in_process(few, arguments.rows, arguments.turns)
        if "spark" in wanted:
            figures["spark"] = on_spark(few, arguments.rows, arguments.turns)
        if "growth" in wanted:
            most = arguments.many_rows // 2
            figures["growth"] = growth(many, [most // 100, most // 10, most], arguments.turns)
        if "memory" in wanted:
            figures["memory"] = memory(many, arguments.many_rows)
    finally:
        if arguments.folder is None:
            shutil.rmtree(folder)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()

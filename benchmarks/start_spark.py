"""How soon a Spark job of a new query is done: its first run beside its second, on a cluster of two workers.

The driver's machine has what `kleene warm` leaves, and the executors have nothing at all: what they need travels with
the tasks. Before it is measured, the workers have run a job of each language, so that Spark and Python are up.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

MOST_BEHIND = 1.0
"""Seconds that the first run may take longer than the second."""
ROWS = 1_000_000
OTHERS = ("sessions", "average")
"""One of each language, which the cluster has run before: the JVM is slow the first time it meets a kind of job."""


def on_two_workers(kept: Path) -> None:
    from pyspark.sql import SparkSession

    from start import QUERIES, events

    os.environ |= {"KLEENE_CACHE_DIR": str(kept), "PYSPARK_PYTHON": sys.executable}
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(events(ROWS), Path(folder) / "events.parquet", row_group_size=ROWS // 8)
        empty = Path(folder) / "empty"
        spark: Any = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .config("spark.executorEnv.KLEENE_CACHE_DIR", str(empty))
            .config("spark.sql.shuffle.partitions", 4)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
        try:
            frame = spark.read.parquet(str(Path(folder) / "events.parquet"))
            print(
                f"\nA new query on Spark, {ROWS:,} events, two workers that have no machine code: "
                f"the first run at most {MOST_BEHIND:g} s behind the second"
            )
            for name in OTHERS:
                _run(name, frame)
            for name in (name for name in QUERIES if name not in OTHERS):
                first, second = _run(name, frame), min(_run(name, frame) for _ in range(2))
                print(f"  {name:<16} {first:.2f} s, then {second:.2f} s ({first - second:+.2f} s)", flush=True)
            made = [path.name for path in empty.glob("*.bin")] if empty.exists() else []
            print(f"  made by executors: {len(made)} files")
        finally:
            spark.stop()


def _run(name: str, frame: Any) -> float:
    """Seconds until the number of matches is known; each run plans anew."""
    import kleene
    from start import QUERIES

    language, text = QUERIES[name]
    query = kleene.match_recognize(text) if language == "rows" else kleene.sase(text)
    started = time.perf_counter()
    query.match(frame, order_by=None if language == "rows" else "t").count()
    return time.perf_counter() - started

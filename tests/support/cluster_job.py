"""A job for spark-submit: three queries on generated events, and where the tasks found Kleene.

Usage: cluster_job.py DATA RESULT [MARKERS]. With a folder for markers, every task that matches leaves a file there,
named by its Spark partition and by the process of its executor, and then takes its time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession

import kleene


def where_kleene_is(batches):
    import pyarrow as pa

    import kleene

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"file": [kleene.__file__], "executor": [executor()]})


def executor():
    """The process of the executor: the parent of the daemon that forked this one."""
    return int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(os.getppid())]))


def slow(markers):
    def wait(batches):
        number = TaskContext.get().partitionId()
        Path(markers, f"{number}-{executor()}-{uuid.uuid4().hex}").touch()
        yield from batches
        time.sleep(2)

    return wait


def matches(queries, events, markers=None):
    """The rows of each query as text, sorted: Spark's results have no order."""
    found = {}
    for name, query, options in queries:
        result = query.match(events, **options)
        if markers is not None:
            result = result.mapInArrow(slow(markers), result.schema)
        rows = result.toArrow().to_pylist() if hasattr(result, "toArrow") else result.to_pylist()
        found[name] = sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)
    return found


SASE = """
    PATTERN SEQ(Shelf+ a[], !(Register r), Exit b)
    WHERE skip_till_next_match(a[], r, b) { [tag] AND a[i].weight >= a[i-1].weight }
    WITHIN 400
    RETURN b.tag AS tag, a[1].t AS first_seen, count(a[]) AS seen, b.t AS gone
"""
ROWS = """
    PARTITION BY tag ORDER BY t
    MEASURES A.t AS top, LAST(B.weight) AS bottom
    PATTERN (A B+) DEFINE B AS B.weight < PREV(B.weight)
"""
WITHOUT_KEY = """
    PATTERN SEQ(Register r, Exit b)
    WHERE r.weight = 0 AND b.weight = 9 WITHIN 30
    RETURN r.t AS paid, b.t AS gone
"""
QUERIES = [
    ("by key", kleene.sase(SASE), {"order_by": "t"}),
    ("rows by key", kleene.match_recognize(ROWS), {}),
    ("without a key", kleene.sase(WITHOUT_KEY), {"order_by": "t"}),
]


def main(data, result, markers=None):
    spark = SparkSession.builder.getOrCreate()
    events = spark.read.parquet(data).repartition(4)
    places = events.mapInArrow(where_kleene_is, "file STRING, executor BIGINT").distinct().collect()
    found = {
        "driver": kleene.__file__,
        "tasks": sorted({row["file"] for row in places}),
        "executors": sorted({row["executor"] for row in places}),
        "matches": matches(QUERIES if markers is None else QUERIES[:2], events, markers),
    }
    Path(result).write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])

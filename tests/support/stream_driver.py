"""Streams of matches in a process of its own, so that it can be killed and started anew.

Usage: stream_driver.py FOLDER ENGINE NAMES [drain]. Events come as files in FOLDER/events; each query that is named has
its checkpoint and its sink below FOLDER/<name>. What the streams are at is told in FOLDER/status.json, over and over.
With "drain" they end when all files are read, and what the sinks then hold is left in FOLDER/<name>.parquet.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

import kleene
from kleene.spark.layouts.stream import PROVIDER, ROCKSDB
from kleene.spark.session import embedded_session

DELAY = 20
"""Seconds that an event may be late."""
FILES_TO_DRAIN = 100
COLUMNS = "type STRING, ts TIMESTAMP, seq LONG, tag LONG, weight LONG"
IN_ORDER = {"order_by": "ts", "tie_break": "seq"}

UNPAID = """
    EVENT SEQ(Shelf a, !(Register r), Exit b)
    WHERE [tag] WITHIN 60 seconds
    RETURN b.tag AS tag, a.seq AS shelf, b.seq AS gone
"""
NEVER_PAID = """
    EVENT SEQ(Shelf a, Exit b, !(Register r))
    WHERE [tag] WITHIN 60 seconds
    RETURN b.tag AS tag, a.seq AS shelf, b.ts AS gone
"""
RISING = """
    PATTERN SEQ(Shelf+ a[], Exit b)
    WHERE skip_till_next_match(a[], b) { [tag] AND a[i].weight >= a[i-1].weight }
    WITHIN 60 seconds
    RETURN b.tag AS tag, a[1].seq AS first, count(a[]) AS seen, sum(a[].weight) AS weight, b.seq AS gone
"""
DIPS = """
    PARTITION BY tag ORDER BY ts, seq
    MEASURES MATCH_NUMBER() AS number, CLASSIFIER() AS role, LAST(B.weight) AS bottom
    ALL ROWS PER MATCH AFTER MATCH SKIP TO LAST C
    PATTERN (A B+ C) WITHIN INTERVAL '60' SECOND
    DEFINE B AS B.weight < PREV(B.weight), C AS C.weight > PREV(C.weight)
"""
QUERIES = {
    "unpaid": (kleene.sase(UNPAID), IN_ORDER),
    "never_paid": (kleene.sase(NEVER_PAID), IN_ORDER),
    "rising": (kleene.sase(RISING), IN_ORDER),
    "dips": (kleene.match_recognize(DIPS), {}),
}


def main(folder, engine, names, drain=None):
    folder, names = Path(folder), names.split(",")
    spark = embedded_session("kleene-soak", cores="2")
    spark.conf.set(PROVIDER, ROCKSDB)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    tell(folder, {})
    queries = [started(spark, folder, name, engine, drain is not None) for name in names]
    while any(query.isActive for query in queries):
        tell(folder, {query.name: query.status["message"] for query in queries})
        time.sleep(0.05)
    for query in queries:
        query.awaitTermination()  # an error, if it ended by one
    for name in names:
        pq.write_table(spark.read.parquet(str(folder / name / "sink")).toArrow(), folder / f"{name}.parquet")


def started(spark, folder, name, engine, drains):
    files = FILES_TO_DRAIN if drains else 1
    events = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", files).parquet(str(folder / "events"))
    query, options = QUERIES[name]
    found = query.match(
        events.withWatermark("ts", f"{DELAY} seconds"), **options, engine=engine, stream=kleene.StreamOptions(buckets=4)
    )
    writer = found.writeStream.queryName(name).option("checkpointLocation", str(folder / name / "checkpoint"))
    if drains:
        writer = writer.trigger(availableNow=True)
    return writer.start(str(folder / name / "sink"), "parquet")


def tell(folder, status):
    """In one stroke: whoever reads it sees all of it, even if this process is killed."""
    fresh = folder / "status.fresh"
    fresh.write_text(json.dumps(status))
    os.replace(fresh, folder / "status.json")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""How fast Kleene is on streams of Spark: against the same plan that only counts, against a state for each key with a
loop written by hand; how much state it holds as a stream goes on; and how soon a match is there.

    python benchmarks/stream.py [--section SECTION] [--only QUERY] [--events N] [--turns K] [--json FILE]

What is compared takes turns inside one run. Spark reads a file for each micro-batch, and as fast as it can (trigger
availableNow); output is thrown away (sink "noop"). A rate is that of the micro-batches between the first, in which
workers start and code is loaded, and the last file, which has one event only: events by the time that Spark says their
micro-batches took. Of several turns the median counts. A measurement that fails is a line of the report, not the end
of it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import kleene
import stream_by_hand
from kernels import Note, Report, attempted
from kleene.call import Call
from kleene.engine.inputs import OrderKey
from kleene.files import write_text
from kleene.spark.job import Job, make_job
from kleene.spark.layouts.stream import PROVIDER, ROCKSDB
from kleene.spark.schema import spark_schema
from kleene.spark.session import embedded_session
from kleene.spark.streaming.packing import BUCKET, PAYLOAD, unpacked_matches, unpacked_table
from kleene.spark.streaming.processor import COUNTS, GIVEN_OUT, STANDS, TOLD, TURN, observed
from processes import ProcessorTime
from stream_data import DELAY, SCHEMA, Shape, first_files, folder_of

# Spark's workers cannot import the modules of the benchmark; their functions travel whole.
cloudpickle.register_pickle_by_value(stream_by_hand)
cloudpickle.register_pickle_by_value(sys.modules[__name__])

FULL = 1_000_000
KEYS = 10_000
FILES = (20, 8)
BY_HAND_FILES = 4
"""A state for each key takes long: it is measured on so many of the 20 files."""
WINDOWS = 20
FILES_OF_A_WINDOW = 2
HEAP = "4g"
SHOPLIFTING = """EVENT SEQ(Shelf a, !(Register r), Exit b)
    WHERE [id]
    WITHIN 12 hours
    RETURN a.id AS id, a.ts AS shelf, b.ts AS exit"""
INTRUSION = """PATTERN SEQ(Failure+ a[], Success b)
    WHERE skip_till_next_match(a[], b) { [id] }
    WITHIN 12 hours
    RETURN b.id AS id, a[1].ts AS first, a.LEN AS count, b.ts AS last"""


@dataclass(frozen=True, slots=True)
class Subject:
    """A query, the events it reads, and the same by hand."""

    name: str
    query: kleene.Query
    table: str
    by_hand: type[stream_by_hand.ByHand]
    matches: str


SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject(
            *("shoplifting", kleene.sase(SHOPLIFTING), "readings", stream_by_hand.Shoplifting),
            "id LONG, shelf TIMESTAMP, exit TIMESTAMP",
        ),
        Subject(
            *("intrusion", kleene.sase(INTRUSION), "logins", stream_by_hand.Intrusion),
            "id LONG, first TIMESTAMP, count LONG, last TIMESTAMP",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """All are in proportion, so that a small run takes little time; what a micro-batch costs at all stays, though."""

    events: int
    turns: int
    latency_seconds: int

    @property
    def keys(self) -> int:
        return max(self.events * KEYS // FULL, 1)

    @property
    def state(self) -> Shape:
        """A tenth of the keys, each of which lives for two windows, over 20 windows."""
        keys = max(self.keys // 10, 10)
        return Shape(WINDOWS * 6 * keys, keys, WINDOWS * FILES_OF_A_WINDOW, moving=True)


# ---- plans

Plan = Callable[[DataFrame], DataFrame]


def match_plan(subject: Subject, events: DataFrame, **options: Any) -> DataFrame:
    found: DataFrame = subject.query.match(
        events, order_by="ts", stream=kleene.StreamOptions(**options) if options else None
    )
    return found


class CountingProcessor(StatefulProcessor):
    """What the floor does with packed events: it counts them, and keeps the number."""

    def __init__(self, columns: Any) -> None:
        self._columns = columns

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "events LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        events = sum(unpacked_table(payload, self._columns).num_rows for part in rows for payload in part[PAYLOAD])
        before = self._count.get()
        self._count.update((events + (0 if before is None else before[0]),))
        told = [events, *(0 for _ in (*COUNTS[1:], *STANDS, TURN))]
        yield pd.DataFrame([[b"", int(key[0]), told]], columns=[PAYLOAD, BUCKET, TOLD], dtype=object)

    def close(self) -> None:
        pass


def stream_job_of(subject: Subject, events: DataFrame, options: kleene.StreamOptions) -> Job:
    return make_job(Call(subject.query.definition, OrderKey(("ts",)), "type", stream=options), events)


def floor_plan(subject: Subject, events: DataFrame, **options: Any) -> DataFrame:
    """Kleene's own plan, with an operator that only counts."""
    job = stream_job_of(subject, events, kleene.StreamOptions(**options))
    counting = CountingProcessor(job.reads.columns)
    found = job.layout.frame(job).groupBy(BUCKET).transformWithStateInPandas(counting, GIVEN_OUT, "append", "EventTime")
    return (
        observed(found, "floor", job.layout.buckets)
        .select(PAYLOAD)
        .mapInArrow(partial(unpacked_matches, job.output.result), spark_schema(job.output.result))
    )


def by_hand_plan(subject: Subject, events: DataFrame) -> DataFrame:
    groups = events.select("id", "ts", "type").groupBy("id")
    return groups.transformWithStateInPandas(subject.by_hand(), subject.matches, "append", "EventTime")


# ---- running


@dataclass(frozen=True, slots=True)
class Run:
    """A stream that went through: rates are of the micro-batches that count."""

    events: int
    seconds: float
    processor: float
    """The seconds of processor time of all processes since the first micro-batch."""
    batches: int
    rows: int
    digest: int
    durations: Mapping[str, float]
    """What Spark says a micro-batch took, in milliseconds, in the middle."""

    @property
    def rate(self) -> float:
        return self.events / self.seconds

    @property
    def answer(self) -> tuple[int, int]:
        return self.rows, self.digest


def digested(frame: DataFrame) -> Sequence[Any]:
    digest = F.bit_xor(F.xxhash64(*(F.col(f"`{name}`") for name in frame.columns)))
    return F.count(F.lit(1)).alias("rows"), digest.alias("digest")


def read_stream(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """The files as a stream, one for each micro-batch."""
    folder = str(Path(files[0]).parent)
    numbers = ",".join(Path(file).stem.rpartition("-")[2] for file in files)
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.option("pathGlobFilter", f"part-{{{numbers}}}.parquet").parquet(folder).withWatermark("ts", DELAY)


@contextmanager
def started(frame: DataFrame, sink: str = "noop", **options: Any) -> Iterator[tuple[StreamingQuery, Path]]:
    """The stream on its way to a sink, and the folder that it may write into, until it is no longer looked at."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        writer = frame.writeStream.format(sink).option("checkpointLocation", str(path / "checkpoint"))
        if sink != "noop":
            writer = writer.option("path", str(path / "output"))
        query = writer.trigger(**options).start() if options else writer.start()
        try:
            yield query, path
        finally:
            query.stop()


def run(spark: SparkSession, plan: Plan, files: Sequence[str]) -> Run:
    frame = plan(read_stream(spark, files))
    with started(frame.observe("answer", *digested(frame)), availableNow=True) as (query, _):
        while query.isActive and not query.recentProgress:
            time.sleep(0.02)
        processor = ProcessorTime()
        query.awaitTermination()
        used = processor.used()
        progress = [json.loads(one.json) for one in query.recentProgress]
    return run_of(progress, used)


def run_of(progress: Sequence[Mapping[str, Any]], processor: float) -> Run:
    given = [one["observedMetrics"]["answer"] for one in progress]
    counting = [one for one in progress[1:] if one["numInputRows"] > 1]
    names = sorted({name for one in counting for name in one["durationMs"]})
    digest = 0
    for one in given:
        digest ^= one["digest"] or 0
    return Run(
        sum(one["numInputRows"] for one in counting),
        sum(one["durationMs"]["triggerExecution"] for one in counting) / 1000,
        processor,
        len(counting),
        sum(one["rows"] for one in given),
        digest,
        {name: statistics.median(one["durationMs"].get(name, 0) for one in counting) for name in names},
    )


def batch_answer(spark: SparkSession, subject: Subject, files: Sequence[str]) -> tuple[int, int]:
    """What Kleene finds in the same events as a table."""
    found = match_plan(subject, spark.read.schema(SCHEMA).parquet(*files))
    seen = Observation()
    found.observe(seen, *digested(found)).write.format("noop").mode("overwrite").save()
    return seen.get["rows"], seen.get["digest"] or 0


def start_session(cores: int) -> SparkSession:
    # The size of the heap is settled when Java starts: a setting of the session would come too late.
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--driver-memory {HEAP} pyspark-shell")
    spark = embedded_session("kleene-benchmark", cores=str(cores))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set(PROVIDER, ROCKSDB)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")
    return spark


@dataclass(slots=True)
class Bench(Report):
    """The session, the sizes, and what was found so far."""

    spark: SparkSession = field(kw_only=True)
    sizes: Sizes = field(kw_only=True)
    only: str | None = field(kw_only=True)

    def subjects(self) -> Iterator[Subject]:
        return (subject for name, subject in SUBJECTS.items() if self.only in (None, name))

    def turns(self, plans: Mapping[str, Plan], files: Sequence[str], count: int | None = None) -> dict[str, list[Run]]:
        """Runs of each plan; they take turns. Before, each has gone through a little: Java compiles for a while."""
        for plan in plans.values():
            run(self.spark, plan, [*files[:2], files[-1]])
        runs: dict[str, list[Run]] = {name: [] for name in plans}
        for _ in range(self.sizes.turns if count is None else count):
            for name, plan in plans.items():
                runs[name].append(run(self.spark, plan, files))
                said(name, f"{runs[name][-1].rate:,.0f} events/s", f"{runs[name][-1].processor:.1f} CPU s")
        return runs


def said(*words: str) -> None:
    """A table is printed when it is complete, which may take minutes."""
    print("  …", *words, file=sys.stderr, flush=True)


def rate_of(runs: Sequence[Run]) -> float:
    return statistics.median(one.rate for one in runs)


def processor_of(runs: Sequence[Run]) -> float:
    """Seconds of processor time for a million events."""
    return statistics.median(1e6 * one.processor / one.events for one in runs)


# ---- 1. throughput


def measure_throughput(bench: Bench) -> None:
    lines: list[list[str]] = []
    for subject in bench.subjects():
        for files in FILES:
            found = attempted(partial(against_floor, bench, subject, files))
            name = f"{subject.name}, {files} files"
            what = f"throughput: {name}: at least 0.6 of the floor, and the batch answer"
            if isinstance(found, Note):
                lines.append([name, found.text])
                bench.judge(what, False, found.text)
                continue
            runs, is_equal = found
            lines += run_lines(name, runs)
            ratio = rate_of(runs["Kleene"]) / rate_of(runs["floor"])
            bench.data[name] = {kind: list(map(asdict, own)) for kind, own in runs.items()}
            bench.judge(what, ratio >= 0.6 and is_equal, f"{ratio:.2f}{'' if is_equal else ', DIFFERENT'}")
    head = ["query", "matches", "events/s", "CPU s per M", "batch ms", "× Kleene", "× CPU"]
    title = f"Throughput: {bench.sizes.events:,} events, {bench.sizes.keys:,} keys"
    bench.table(title, head, lines)


def against_floor(bench: Bench, subject: Subject, files: int) -> tuple[dict[str, list[Run]], bool]:
    paths = first_files(folder_of(subject.table, Shape(bench.sizes.events, bench.sizes.keys, files)), files)
    plans = {"Kleene": partial(match_plan, subject), "floor": partial(floor_plan, subject)}
    runs = bench.turns(plans, paths)
    answers = {one.answer for one in runs["Kleene"]}
    return runs, answers == {batch_answer(bench.spark, subject, paths)}


def run_lines(name: str, runs: Mapping[str, Sequence[Run]]) -> Iterator[list[str]]:
    own = runs["Kleene"]
    for kind, measured in runs.items():
        yield [
            f"{name}: {kind}",
            f"{measured[0].rows:,}",
            f"{rate_of(measured):,.0f}",
            f"{processor_of(measured):.1f}",
            f"{statistics.median(one.durations['triggerExecution'] for one in measured):,.0f}",
            f"{rate_of(measured) / rate_of(own):.2f}",
            f"{processor_of(measured) / processor_of(own):.2f}",
        ]


# ---- 2. by hand


def measure_by_hand(bench: Bench) -> None:
    lines: list[list[str]] = []
    for subject in bench.subjects():
        found = attempted(partial(against_hand, bench, subject))
        what = f"by hand: {subject.name} at least 3 × as fast, with equal answers"
        if isinstance(found, Note):
            lines.append([subject.name, found.text])
            bench.judge(what, False, found.text)
            continue
        runs, is_equal = found
        lines += run_lines(subject.name, runs)
        times = rate_of(runs["Kleene"]) / rate_of(runs["by hand"])
        bench.data[f"by hand: {subject.name}"] = {kind: list(map(asdict, own)) for kind, own in runs.items()}
        bench.judge(what, times >= 3 and is_equal, f"{times:.1f}{'' if is_equal else ', DIFFERENT'}")
    head = ["query", "matches", "events/s", "CPU s per M", "batch ms", "× Kleene", "× CPU"]
    title = f"A state for each key, by hand: {BY_HAND_FILES} micro-batches of {bench.sizes.events // FILES[0]:,} events"
    bench.table(title, head, lines)


def against_hand(bench: Bench, subject: Subject) -> tuple[dict[str, list[Run]], bool]:
    folder = folder_of(subject.table, Shape(bench.sizes.events, bench.sizes.keys, FILES[0]))
    files = first_files(folder, BY_HAND_FILES)
    plans = {"Kleene": partial(match_plan, subject), "by hand": partial(by_hand_plan, subject)}
    runs = bench.turns(plans, files, min(bench.sizes.turns, 2))
    answers = {one.answer for own in runs.values() for one in own}
    return runs, answers == {batch_answer(bench.spark, subject, files)}


# ---- 3. state


@dataclass(frozen=True, slots=True)
class Standing:
    """What is held after a micro-batch."""

    bytes: int
    waiting: int
    kept: int
    rows: int
    """In Spark's state store."""
    store_bytes: int


def measure_state(bench: Bench) -> None:
    for subject in bench.subjects():
        found = attempted(partial(standings, bench, subject))
        what = f"state: {subject.name}, as much in the last quarter of {WINDOWS} windows as in the second, within 20 %"
        if isinstance(found, Note):
            bench.judge(what, False, found.text)
            continue
        lines = []
        for window in range(WINDOWS):
            own = found[window * FILES_OF_A_WINDOW : (window + 1) * FILES_OF_A_WINDOW]
            middle = [statistics.mean(getattr(one, name) for one in own) for name in Standing.__slots__]
            lines.append([f"{window + 1}", *(f"{number:,.0f}" for number in middle)])
        head = ["window", "bytes", "events waiting", "events kept", "rows of Spark", "bytes of Spark"]
        shape = bench.sizes.state
        bench.table(f"State: {subject.name}, {shape.events:,} events, {shape.keys:,} keys at a time", head, lines)
        bench.data[f"state: {subject.name}"] = list(map(asdict, found))
        figures, ratios = [], []
        for name in ("bytes", "rows"):
            second, last = quarters([getattr(one, name) for one in found])
            ratios.append(last / second if second else math.nan)
            figures.append(f"{name} {second:,.0f} to {last:,.0f}")
        bench.judge(what, all(abs(ratio - 1) <= 0.2 for ratio in ratios), ", ".join(figures))


def quarters(numbers: Sequence[float]) -> tuple[float, float]:
    """The means of the second quarter and of the last."""
    quarter = len(numbers) // 4
    return statistics.mean(numbers[quarter : 2 * quarter]), statistics.mean(numbers[-quarter:])


def standings(bench: Bench, subject: Subject) -> list[Standing]:
    shape = bench.sizes.state
    files = first_files(folder_of(subject.table, shape), shape.files)[:-1]
    frame = match_plan(subject, read_stream(bench.spark, files))
    with started(frame, availableNow=True) as (query, _):
        query.awaitTermination()
        progress = [json.loads(one.json) for one in query.recentProgress]
    return [standing_of(one) for one in progress if one["numInputRows"]]


def standing_of(progress: Mapping[str, Any]) -> Standing:
    own = next(metrics for name, metrics in progress["observedMetrics"].items() if name.startswith("kleene"))
    latest = {one[BUCKET]: one for one in own["buckets"]}.values()
    operator = progress["stateOperators"][0]
    return Standing(
        *(sum(one[name] for one in latest) for name in ("bytes", "waiting", "kept")),
        operator["numRowsTotal"],
        operator["memoryUsedBytes"],
    )


# ---- 4. latency

RATE = 200
ACCOUNTS = 100
FAILURES = 0.03
SOON = kleene.sase(INTRUSION.replace("12 hours", "10 seconds"))
"""In a minute, a window of hours would never end."""
WARMING_SECONDS = 20


class Feed(threading.Thread):
    """Sends events by a socket, so many a second, each with the time at which it is sent."""

    def __init__(self, seconds: float) -> None:
        super().__init__(daemon=True)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._seconds = seconds
        self.is_done = threading.Event()

    def run(self) -> None:
        chance = np.random.default_rng(7)
        connection, _ = self._server.accept()
        begin, last = time.time(), 0
        with connection, self._server:
            for number in range(int(RATE * self._seconds)):
                time.sleep(max(0.0, begin + number / RATE - time.time()))
                type_ = "Failure" if chance.random() < FAILURES else "Success"
                last = max(last + 1, time.time_ns() // 1000)
                connection.sendall(f"{type_},{chance.integers(ACCOUNTS)},{last}\n".encode())
            # What is on its way arrives before the connection ends.
            self.is_done.set()
            time.sleep(30)


def measure_latency(bench: Bench) -> None:
    lines = []
    plans = {"intrusion within 10 seconds": match_on_arrival, "without a query": successes}
    for name, plan in plans.items():
        found = attempted(partial(latencies, bench, plan))
        if isinstance(found, Note):
            lines.append([name, found.text])
            bench.judge(f"latency: {name} could be measured", False, found.text)
            continue
        middle, most = (float(np.percentile(found, share)) for share in (50, 99))
        bench.data[f"latency: {name}"] = {"rows": len(found), "p50": middle, "p99": most}
        lines.append([name, f"{len(found):,}", f"{middle:.2f}", f"{most:.2f}", f"{found.max():.2f}"])
    title = f"Latency: {RATE} events a second by a socket, order='arrival', Parquet files as the sink"
    bench.table(title, ["plan", "rows", "p50 s", "p99 s", "most s"], lines)
    bench.print(
        "  From the sending of the event that completes a match to the moment when the sink's log names the file with\n"
        "  the match, which is when a reader sees it. Without a query, events of a type go to the same sink."
    )


def match_on_arrival(events: DataFrame) -> DataFrame:
    found: DataFrame = SOON.match(events, order_by="ts", stream=kleene.StreamOptions(order="arrival"))
    return found


def successes(events: DataFrame) -> DataFrame:
    return events.where("type = 'Success'").select(F.col("ts").alias("last"))


def latencies(bench: Bench, plan: Plan) -> np.ndarray[Any, Any]:
    """In seconds, of the rows whose event was sent after a while."""
    feed = Feed(WARMING_SECONDS + bench.sizes.latency_seconds)
    feed.start()
    lines = bench.spark.readStream.format("socket").options(host="127.0.0.1", port=feed.port).load()
    parts = F.split("value", ",")
    events = lines.select(
        parts[0].alias("type"), parts[1].cast("long").alias("id"), F.timestamp_micros(parts[2].cast("long")).alias("ts")
    )
    begin = time.time() + WARMING_SECONDS
    with started(plan(events), "parquet") as (query, folder):
        while not feed.is_done.wait(0.2):
            if query.exception() is not None:
                raise RuntimeError(str(query.exception()))
        query.processAllAvailable()
        sent, seen = arrivals(folder / "output")
    is_warm = sent >= begin
    return (seen - sent)[is_warm]


def arrivals(output: Path) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """For each row of the sink: when its last event was sent, and when the log of the sink named its file."""
    sent, seen, known = [], [], set()
    logs = [log for log in (output / "_spark_metadata").iterdir() if not log.name.startswith(".")]
    for log in sorted(logs, key=lambda log: int(log.name.partition(".")[0])):
        for line in log.read_text().splitlines()[1:]:
            path = Path(json.loads(line)["path"].removeprefix("file://"))
            if path not in known:
                known.add(path)
                times = pq.read_table(path, columns=["last"]).column(0).cast("timestamp[us]").to_numpy()
                sent.append(times.astype("datetime64[us]").astype(np.int64) / 1e6)
                seen.append(np.full(len(times), log.stat().st_mtime))
    return np.concatenate([np.empty(0), *sent]), np.concatenate([np.empty(0), *seen])


# ---- 5. buckets


def measure_buckets(bench: Bench) -> None:
    lines: list[list[str]] = []
    for subject in bench.subjects():
        shape = Shape(bench.sizes.events, bench.sizes.keys, FILES[0])
        files = first_files(folder_of(subject.table, shape), 10)
        plans = {f"{count} buckets": partial(match_plan, subject, buckets=count) for count in (8, 16, 32, 64)}
        runs = attempted(partial(bench.turns, plans, files))
        if isinstance(runs, Note):
            lines.append([subject.name, runs.text])
            continue
        for kind, own in runs.items():
            middle = statistics.median(one.durations["triggerExecution"] for one in own)
            figures = [f"{rate_of(own):,.0f}", f"{processor_of(own):.1f}", f"{middle:,.0f}"]
            lines.append([f"{subject.name}, {kind}", *figures])
        bench.data[f"buckets: {subject.name}"] = {kind: list(map(asdict, own)) for kind, own in runs.items()}
    title = f"Buckets: 10 micro-batches of {bench.sizes.events // FILES[0]:,} events"
    bench.table(title, ["query", "events/s", "CPU s per M", "batch ms"], lines)


# ---- the report

SECTIONS: dict[str, Callable[[Bench], None]] = {
    "throughput": measure_throughput,
    "hand": measure_by_hand,
    "state": measure_state,
    "latency": measure_latency,
    "buckets": measure_buckets,
}


def describe(bench: Bench, cores: int) -> None:
    packages = {name: version(name) for name in ("pyspark", "pyarrow", "pandas", "numba", "kleene")}
    versions = [f"Python {platform.python_version()}", *(f"{name} {number}" for name, number in packages.items())]
    bench.print(f"Kleene on streams, local[{cores}] of {os.cpu_count()} cores. {', '.join(versions)}.")
    bench.print(f"Median of {bench.sizes.turns} turns. CPU s: processor time of Java and Python for a million events.")
    if bench.sizes.events < FULL:
        bench.print(
            f"What is to be reached is meant for {FULL:,} events: on fewer, what a micro-batch costs counts more."
        )
    bench.data["versions"] = packages | {"python": platform.python_version(), "cores": cores}
    bench.data["sizes"] = asdict(bench.sizes)


def main() -> None:
    options = parsed()
    sizes = Sizes(options.events, options.turns, options.seconds)
    bench = Bench(spark=start_session(options.cores), sizes=sizes, only=options.only)
    describe(bench, options.cores)
    for name, measure in SECTIONS.items():
        if options.section in (None, name):
            measure(bench)
    bench.conclude()
    if options.json:
        write_text(options.json, json.dumps(bench.data, indent=2, ensure_ascii=False))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How fast Kleene is on streams of Spark.")
    parser.add_argument("--section", choices=SECTIONS, help="one of the sections; all if left out")
    parser.add_argument("--only", choices=SUBJECTS, metavar="QUERY", help=f"one query: {', '.join(SUBJECTS)}")
    parser.add_argument("--events", type=int, default=FULL, help="the other sizes are in proportion")
    parser.add_argument("--turns", type=int, default=3, help="runs of each plan, of which the median counts")
    parser.add_argument("--seconds", type=int, default=60, help="how long latency is measured")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return parser.parse_args()


if __name__ == "__main__":
    main()

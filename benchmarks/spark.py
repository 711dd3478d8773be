"""How fast Kleene is on Spark: against the plain plan that finds nothing, against loops written by hand, and as events
grow.

    python benchmarks/spark.py [--section SECTION] [--only QUERY] [--events N] [--turns K] [--json FILE]

What is compared takes turns inside one run and the best time of each counts, so that all have the same share of what
else happens on the machine. A job is timed from the call to its end, all of its output made and thrown away (Spark's
sink "noop"). Events are Parquet files, made once. A measurement that fails is a line of the report, not the end of it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

import hand_written
import kleene
import spark_data
from hand_written import HAND_WRITTEN
from kernels import Note, Report, attempted
from kleene.call import Call
from kleene.engine.inputs import make_order_key
from kleene.files import write_text
from kleene.spark.job import make_job
from kleene.spark.session import embedded_session
from kleene.spark.settings import MOST_BYTES, NO_LIMIT
from kleene.spark.tasks.task import GroupTask
from processes import PeakWatch, ProcessorTime, worker_peaks
from spark_queries import NOTES, ONE_STREAM, ONE_STREAM_ALL, SELECTIVE, SUBJECTS, Subject

# Spark's workers cannot import the modules of the benchmark; their functions travel whole.
cloudpickle.register_pickle_by_value(hand_written)
cloudpickle.register_pickle_by_value(sys.modules[__name__])

FULL = 10_000_000
HEAP = "6g"
FEWER = 4
"""Where a loop written by hand would take too long, both run on that fraction of the events."""
SAMPLE = 20
"""The fraction on which that is judged."""
LONGEST_HAND_SECONDS = 90.0
GROWING = ("finance1", "sase_q2")
FEW = 1_000
"""So many events take no time: what is measured then is what a job costs at all."""
IN_PLACE, UNCUT = kleene.SparkOptions("in place"), kleene.SparkOptions("shuffled")
CUT = kleene.SparkOptions(range_size=1 << 18)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of events; all are in proportion, so that a small run takes seconds."""

    events: int
    turns: int

    @property
    def one_key(self) -> int:
        return self.events // 2

    @property
    def memory(self) -> tuple[int, ...]:
        return self.events // 2, self.events, 2 * self.events

    @property
    def growth(self) -> tuple[int, ...]:
        return self.events // 10, self.events, 5 * self.events


# ---- jobs


@dataclass(frozen=True, slots=True)
class Run:
    """A job that ran: how long, how many rows it gave, and a digest of them that does not depend on their order."""

    seconds: float
    processor: float
    """The seconds of processor time of all processes: on a busy machine they say more than the clock."""
    rows: int
    digest: int | None

    @property
    def answer(self) -> tuple[int, int | None]:
        return self.rows, self.digest


Job = Callable[[], DataFrame]


def run(make: Job) -> Run:
    """Planning counts too: a user waits for it."""
    processor, begin = ProcessorTime(), time.perf_counter()
    frame = make()
    seen = Observation()
    digest = F.bit_xor(F.xxhash64(*(F.col(f"`{name}`") for name in frame.columns)))
    watched = frame.observe(seen, F.count(F.lit(1)).alias("rows"), digest.alias("digest"))
    watched.write.format("noop").mode("overwrite").save()
    seconds = time.perf_counter() - begin
    return Run(seconds, processor.used(), seen.get["rows"], seen.get["digest"])


def best(jobs: Mapping[str, Job], turns: int) -> dict[str, Run]:
    """The fastest run of each job; they take turns."""
    runs: dict[str, list[Run]] = {name: [] for name in jobs}
    for _ in range(turns):
        for name, make in jobs.items():
            runs[name].append(run(make))
    for name, own in runs.items():
        if len({one.answer for one in own}) > 1:
            raise AssertionError(f"{name} gave different answers: {', '.join(f'{one.rows:,} rows' for one in own)}")
    return {name: best_of(own) for name, own in runs.items()}


def best_of(runs: Sequence[Run]) -> Run:
    """The fastest run, with the least processor time of any."""
    fastest = min(runs, key=lambda one: one.seconds)
    return replace(fastest, processor=min(one.processor for one in runs))


def count_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What the floor does with events in the worker."""
    events = sum(part.num_rows for part in batches)
    yield pa.record_batch({"events": [events]}, pa.schema([("events", pa.int64())]))


def floor_plan(subject: Subject, frame: DataFrame) -> DataFrame:
    """The plan that everyone needs who looks at events by key and in order: it finds nothing."""
    columns = frame.select(*subject.columns)
    split = columns.repartition(*subject.key) if subject.key else columns.repartition(1)
    return split.sortWithinPartitions(*subject.key, subject.order).mapInArrow(count_rows, "events long")


def match_plan(subject: Subject, frame: DataFrame, layout: kleene.SparkOptions | None = None) -> DataFrame:
    return subject.query.match(frame, **subject.options, spark=layout)


def own_floor_plan(subject: Subject, frame: DataFrame) -> DataFrame:
    """Kleene's own plan, with a matcher that only counts; where tasks sort, they do so here, too."""
    order = make_order_key(subject.options.get("order_by", ()), None)
    job = make_job(Call(subject.query.definition, order, subject.options.get("type_column")), frame)
    return job.layout.frame(job).mapInArrow(partial(count_in_order, job.layout.task(job)), "events long")


def count_in_order(task: GroupTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    events = sum(table.num_rows for table in task.in_order(batches))
    yield pa.record_batch({"events": [events]}, pa.schema([("events", pa.int64())]))


def hand_written_plan(subject: Subject, frame: DataFrame, loop: str | None = None) -> DataFrame:
    columns = frame.select(*subject.columns)
    return columns.groupBy(subject.grouped_by).applyInPandas(HAND_WRITTEN[loop or subject.name], subject.matches)


# ---- the session and its events


def start_session(cores: int) -> SparkSession:
    # The size of the heap is settled when Java starts: a setting of the session would come too late.
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--driver-memory {HEAP} pyspark-shell")
    spark = embedded_session("kleene-benchmark", cores=str(cores))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    return spark


@dataclass(slots=True)
class Bench(Report):
    """The session, the sizes, and what was found so far."""

    spark: SparkSession = field(kw_only=True)
    sizes: Sizes = field(kw_only=True)
    only: str | None = field(kw_only=True)
    is_warm: set[str] = field(default_factory=set)

    def read(self, table: str, events: int | None = None) -> DataFrame:
        return self.spark.read.parquet(str(spark_data.parquet_folder(table, events or self.sizes.events)))

    def wants(self, name: str) -> bool:
        return self.only is None or self.only == name

    def warm(self, name: str, *jobs: Job) -> None:
        """The first job of its kind starts workers and compiles: that is not what is measured."""
        if name not in self.is_warm:
            for make in jobs:
                run(make)
            self.is_warm.add(name)

    def few(self, table: str) -> DataFrame:
        return self.read(table, min(100_000, self.sizes.events))

    def show(self, title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        if lines:
            self.table(title, head, lines)


def line_of(name: str, measured: Any, figures: Callable[[Any], list[str]]) -> list[str]:
    line = [name, measured.text] if isinstance(measured, Note) else [name, *figures(measured)]
    # A table is printed when it is complete, which may take minutes.
    print("  …", *line, file=sys.stderr, flush=True)
    return line


# ---- 1. the floor


def measure_floors(bench: Bench) -> None:
    lines, ratios = [], {}
    for name, subject in SUBJECTS.items():
        if bench.wants(name):
            found = attempted(partial(against_floor, bench, subject))
            lines.append(line_of(name, found, partial(floor_figures, bench.sizes.events)))
            if isinstance(found, Note):
                bench.judge(f"floor: {name} could be measured", False, found.text)
            else:
                ratios[name] = found["job"].seconds / found["floor"].seconds
                bench.data[f"floors: {name}"] = {kind: asdict(one) for kind, one in found.items()}
    head = ["query", "matches", "one in", "job s", "floor s", "× floor", "× CPU", "own s", "× own"]
    bench.show(f"The floor: {bench.sizes.events:,} events, {spark_data.KEYS} keys", head, lines)
    bench.print("  " + NOTES.replace("\n", "\n  "))
    if ratios:
        mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
        bench.print(f"  Geometric mean of × floor: {mean:.2f}")
        bench.judge("floor: geometric mean at most 1.25", mean <= 1.25, f"{mean:.2f}")
        worst = max(ratios, key=lambda name: ratios[name])
        bench.judge("floor: worst at most 2", ratios[worst] <= 2, f"{ratios[worst]:.2f}, {worst}")


def against_floor(bench: Bench, subject: Subject) -> dict[str, Run]:
    plans = {"job": match_plan, "floor": floor_plan} | {"own": own_floor_plan}
    few, frame = bench.few(subject.table), bench.read(subject.table)
    bench.warm(subject.name, *(partial(plan, subject, few) for plan in plans.values()))
    return best({kind: partial(plan, subject, frame) for kind, plan in plans.items()}, bench.sizes.turns)


def floor_figures(events: int, found: Mapping[str, Run]) -> list[str]:
    job, own = found["job"], found.get("own")
    return [
        f"{job.rows:,}",
        f"{events / max(job.rows, 1):.0f}",
        f"{job.seconds:.2f}",
        f"{found['floor'].seconds:.2f}",
        f"{job.seconds / found['floor'].seconds:.2f}",
        f"{job.processor / found['floor'].processor:.2f}",
        "-" if own is None else f"{own.seconds:.2f}",
        "-" if own is None else f"{job.seconds / own.seconds:.2f}",
    ]


# ---- 2. pushdown


def measure_pushdown(bench: Bench) -> None:
    found = attempted(partial(against_floor, bench, SELECTIVE))
    what = "pushdown: at least 1.5 × as fast as the floor without it"
    line = line_of(SELECTIVE.name, found, partial(floor_figures, bench.sizes.events))
    head = ["query", "matches", "one in", "job s", "floor s", "× floor", "× CPU", "own s", "× own"]
    bench.show(f"Pushdown, a tenth of the events is of use: {bench.sizes.events:,} events", head, [line])
    if isinstance(found, Note):
        bench.judge(what, False, found.text)
    else:
        ratio = found["floor"].seconds / found["job"].seconds
        bench.judge(what, ratio >= 1.5, f"{ratio:.2f}")


# ---- 3. loops written by hand

LEAST, LEAST_IN_PLACE = {"finance1": 1.5}, {"head_and_shoulders_tried": 4.0}
"""A loop that knows that head and shoulders has nothing to try twice is harder to beat than one that does not."""


def measure_hand_written(bench: Bench) -> None:
    lines = []
    tried = SUBJECTS["head_and_shoulders"]
    for name, subject in [*SUBJECTS.items(), (f"{tried.name}_tried", tried)]:
        if bench.wants(subject.name):
            found = attempted(partial(against_hand, bench, subject, name))
            lines.append(line_of(name, found, hand_figures))
            least = LEAST.get(name, 1.0)
            what = f"by hand: {name} at least {least:g} × as fast"
            if isinstance(found, Note):
                bench.judge(what, False, found.text)
            else:
                bench.data[f"hand: {name}"] = asdict(found)
                bench.judge(what, found.times >= least and found.is_equal, f"{found.times:.2f}")
                if name in LEAST_IN_PLACE:
                    least, times = LEAST_IN_PLACE[name], found.times_in_place
                    what = f"by hand: {name} in place at least {least:g} × as fast"
                    bench.judge(what, times >= least and found.is_equal, f"{times:.2f}")
    head = ["query", "events", "matches", "job s", "in place s", "by hand s", "×", "× CPU", "× in place", "answers"]
    title = (
        f"Loops in groupBy.applyInPandas; {bench.sizes.events:,} events, or a quarter where that would take too long"
    )
    bench.show(title, head, lines)


@dataclass(frozen=True, slots=True)
class Compared:
    job: Run
    hand: Run
    in_place: Run | None
    events: int

    @property
    def times(self) -> float:
        """By how much Kleene is faster."""
        return self.hand.seconds / self.job.seconds

    @property
    def times_in_place(self) -> float:
        return math.nan if self.in_place is None else self.hand.seconds / self.in_place.seconds

    @property
    def times_processor(self) -> float:
        return self.hand.processor / self.job.processor

    @property
    def is_equal(self) -> bool:
        return {self.hand.answer} == {run.answer for run in (self.job, self.in_place) if run is not None}


def against_hand(bench: Bench, subject: Subject, loop: str) -> Compared:
    few, events = bench.few(subject.table), bench.sizes.events
    bench.warm(subject.name, partial(match_plan, subject, few))
    bench.warm(f"{loop} by hand", partial(hand_written_plan, subject, few, loop))
    sample = run(partial(hand_written_plan, subject, bench.read(subject.table, events // SAMPLE), loop))
    if sample.seconds * SAMPLE > LONGEST_HAND_SECONDS:
        events //= FEWER
    frame = bench.read(subject.table, events)
    jobs = {"job": partial(match_plan, subject, frame), "hand": partial(hand_written_plan, subject, frame, loop)}
    if has_bound(subject):
        jobs["in place"] = partial(match_plan, subject, frame, IN_PLACE)
    found = best(jobs, bench.sizes.turns)
    return Compared(found["job"], found["hand"], found.get("in place"), events)


def hand_figures(found: Compared) -> list[str]:
    return [
        f"{found.events:,}",
        f"{found.job.rows:,}",
        f"{found.job.seconds:.2f}",
        "-" if found.in_place is None else f"{found.in_place.seconds:.2f}",
        f"{found.hand.seconds:.2f}",
        f"{found.times:.2f}",
        f"{found.times_processor:.2f}",
        "-" if found.in_place is None else f"{found.times_in_place:.2f}",
        "equal" if found.is_equal else "DIFFERENT",
    ]


# ---- 4. ranges


def measure_ranges(bench: Bench) -> None:
    lines = []
    for subject in (ONE_STREAM, ONE_STREAM_ALL):
        two = attempted(partial(cut_and_uncut, bench, subject))
        one = attempted(partial(on_one_core, subject.name, bench.sizes))
        for cores, found in (("2 cores", two), ("1 core", one)):
            lines.append(line_of(f"{subject.name}, {cores}", found, range_figures))
            what = f"ranges: {subject.name}, {cores}: " + (
                "at least 1.7 × as fast as uncut" if found is two else "at most 10 % slower than uncut"
            )
            if isinstance(found, Note):
                bench.judge(what, False, found.text)
            else:
                times = found["uncut"].seconds / found["cut"].seconds
                is_equal = len({one.answer for one in found.values()}) == 1
                bench.data[f"ranges: {subject.name}, {cores}"] = {kind: asdict(one) for kind, one in found.items()}
                least = 1.7 if found is two else 1 / 1.1
                bench.judge(what, is_equal and times >= least, f"{times:.2f}" + ("" if is_equal else ", DIFFERENT"))
    head = ["query", "matches", "in place s", "uncut s", "×", "answers", "sent by range s"]
    bench.show(
        f"Ranges of one stream: {bench.sizes.one_key:,} events without a key, at most 100 to a match", head, lines
    )


def cut_and_uncut(bench: Bench, subject: Subject) -> dict[str, Run]:
    return with_options(bench, subject, bench.sizes.one_key, {"cut": IN_PLACE, "sent": CUT, "uncut": UNCUT})


def with_options(
    bench: Bench, subject: Subject, events: int, jobs: Mapping[str, kleene.SparkOptions]
) -> dict[str, Run]:
    """The query on so many events, in each of the layouts."""
    few, frame = bench.few(subject.table), bench.read(subject.table, events)
    for options in jobs.values():
        bench.warm(f"{subject.name} {options}", partial(match_plan, subject, few, options))
    plans = {kind: partial(match_plan, subject, frame, options) for kind, options in jobs.items()}
    return best(plans, bench.sizes.turns)


def on_one_core(name: str, sizes: Sizes) -> dict[str, Run]:
    told = in_process("--ranges-of", name, "--cores", "1", *arguments_of(sizes))
    return {kind: Run(**one) for kind, one in json.loads(told).items()}


def range_figures(found: Mapping[str, Run]) -> list[str]:
    cut, uncut = found["cut"], found["uncut"]
    return [
        f"{cut.rows:,}",
        f"{cut.seconds:.2f}",
        f"{uncut.seconds:.2f}",
        f"{uncut.seconds / cut.seconds:.2f}",
        "equal" if all(one.answer == uncut.answer for one in found.values()) else "DIFFERENT",
        *([f"{found['sent'].seconds:.2f}"] if "sent" in found else []),
    ]


# ---- 5. inputs that are matched where they lie


def measure_in_place(bench: Bench) -> None:
    lines = []
    jobs = {"cut": IN_PLACE, "uncut": UNCUT}
    for name, subject in SUBJECTS.items():
        if bench.wants(name) and has_bound(subject):
            found = attempted(partial(with_options, bench, subject, bench.sizes.events, jobs))
            lines.append(line_of(name, found, range_figures))
            what = f"in place: {name} faster than with a shuffle"
            if isinstance(found, Note):
                bench.judge(what, False, found.text)
            else:
                times = found["uncut"].seconds / found["cut"].seconds
                is_equal = found["cut"].answer == found["uncut"].answer
                bench.judge(what, is_equal and times > 1, f"{times:.2f}")
                bench.data[f"in place: {name}"] = {kind: asdict(one) for kind, one in found.items()}
    head = ["query", "matches", "in place s", "shuffled s", "×", "answers"]
    bench.show(f"Files in the order of time: {bench.sizes.events:,} events, {spark_data.KEYS} keys", head, lines)


def has_bound(subject: Subject) -> bool:
    """Of MatchRegex's queries none has, and each begins anew behind a match."""
    return not subject.name.startswith("finance")


# ---- 6. a setting that bears on the hand-over


def measure_setting(bench: Bench) -> None:
    """The session of the benchmark has it; Spark's default is measured here."""
    subject, conf, lines = SUBJECTS["finance1"], bench.spark.conf, []
    plans = {"job": match_plan, "floor": floor_plan}
    jobs = {kind: partial(plan, subject, bench.read(subject.table)) for kind, plan in plans.items()}
    for limit in ("64m", str(NO_LIMIT)):
        conf.set(MOST_BYTES, limit)
        found = best(jobs, bench.sizes.turns)
        lines.append([limit, *(f"{one.seconds:.2f}" for one in found.values())])
        bench.data[f"setting: {limit}"] = {kind: asdict(one) for kind, one in found.items()}
    bench.show(f"{MOST_BYTES}: {subject.name}, {bench.sizes.events:,} events", ["limit", "job s", "floor s"], lines)


# ---- 7. memory


def measure_memory(bench: Bench) -> None:
    lines, peaks = [], []
    for events in bench.sizes.memory:
        # A worker keeps what it once had: each size needs workers of its own.
        found = attempted(lambda events=events: json.loads(in_process("--peak-of", str(events))))
        lines.append(line_of(f"{events:,}", found, memory_figures))
        peaks.append(math.inf if isinstance(found, Note) else found["peak"])
        bench.data[f"memory: {events}"] = found.text if isinstance(found, Note) else found
    head = ["events", "matches", "s", "before MB", "peak MB"]
    bench.show("Memory of a Python worker: head and shoulders over one key", head, lines)
    figures = ", ".join(f"{peak:,.0f}" for peak in peaks) + " MB"
    bench.judge("memory: under 1 GB", max(peaks) < 1_000, figures)
    bench.judge(
        "memory: as much for the most events as for the fewest, within 15 %", peaks[-1] <= 1.15 * peaks[0], figures
    )


def memory_figures(found: Mapping[str, float]) -> list[str]:
    return [f"{found['rows']:,}", f"{found['seconds']:.1f}", f"{found['before']:,.0f}", f"{found['peak']:,.0f}"]


def tell_peak(spark: SparkSession, events: int) -> None:
    """Runs in a process of its own: the peak over the life of its workers."""
    few, many = (spark.read.parquet(str(spark_data.parquet_folder("one_stream", size))) for size in (1_000, events))
    run(partial(match_plan, ONE_STREAM, few))
    before = max(worker_peaks(), default=0.0)
    watch = PeakWatch()
    watch.start()
    done = run(partial(match_plan, ONE_STREAM, many, UNCUT))
    peak = watch.stop()
    print(json.dumps({"rows": done.rows, "seconds": done.seconds, "before": before, "peak": peak}))


# ---- 8. growth


def measure_growth(bench: Bench) -> None:
    lines = []
    for name in GROWING:
        if not bench.wants(name):
            continue
        rates, beyond = [], []
        fixed = grown(bench, SUBJECTS[name], FEW).seconds
        for events in bench.sizes.growth:
            found = attempted(partial(grown, bench, SUBJECTS[name], events))
            lines.append(line_of(f"{name}, {events:,}", found, partial(growth_figures, events, fixed)))
            rates.append(math.nan if isinstance(found, Note) else events / found.seconds)
            beyond.append(math.nan if isinstance(found, Note) else events / (found.seconds - fixed))
        bench.data[f"growth: {name}"] = {"fixed": fixed, **dict(zip(bench.sizes.growth, rates, strict=True))}
        for what, found in (("rates", rates), ("rates without what a job costs at all", beyond)):
            figures = ", ".join(f"{rate / 1e6:.2f}" for rate in found) + " million events a second"
            bench.judge(f"growth: {name}, {what} within 20 % of each other", min(found) >= max(found) / 1.2, figures)
    head = ["query and events", "matches", "s", "M events/s", f"without the {FEW:,} events' s"]
    bench.show(f"Growth, with {spark_data.KEYS} keys each", head, lines)


def grown(bench: Bench, subject: Subject, events: int) -> Run:
    bench.warm(subject.name, partial(match_plan, subject, bench.few(subject.table)))
    # Short jobs vary more, and cost little: they get more turns.
    turns = bench.sizes.turns if events <= bench.sizes.events else 1
    job = {"job": partial(match_plan, subject, bench.read(subject.table, events))}
    return best(job, turns + (2 if events < bench.sizes.events else 0))["job"]


def growth_figures(events: int, fixed: float, found: Run) -> list[str]:
    rates = (events / seconds / 1e6 for seconds in (found.seconds, found.seconds - fixed))
    return [f"{found.rows:,}", f"{found.seconds:.2f}", *(f"{rate:.2f}" for rate in rates)]


# ---- 9. skew

SHAPES = {
    "390 keys": "concat('k', id % 390)",
    "one key": "'k'",
    "a million keys": "concat('k', id % 1000000)",
    "Zipf": "concat('k', CAST(pow(1000000.0, (hash(id) & 1048575) / 1048576.0) AS INT))",
}
"""The last: of a million keys, the first has a twentieth of all events, half of the events have the first thousand."""
SKEWED = kleene.sase(
    "PATTERN SEQ(Trade a, Trade b) WHERE [k] AND a.x < 2 AND b.x > 97 WITHIN 1000 RETURN a.t AS a, b.t AS b"
)
SKEWED_ROWS = kleene.match_recognize(
    "PARTITION BY k ORDER BY t MEASURES A.t AS a, LAST(B.t) AS b PATTERN (A B+ C) MAXLENGTH 100 "
    "DEFINE B AS B.x > PREV(B.x), C AS C.x < 5"
)


def measure_skew(bench: Bench) -> None:
    """No key may be too heavy, and no number of keys too large."""
    lines = []
    for name, query, options in (("sequence", SKEWED, {"order_by": "t"}), ("row pattern", SKEWED_ROWS, {})):
        found = {shape: skewed(bench, query, key, options) for shape, key in SHAPES.items()}
        usual = found["390 keys"].seconds
        for shape, one in found.items():
            lines.append([f"{name}, {shape}", f"{one.rows:,}", f"{one.seconds:.2f}", f"{one.seconds / usual:.2f}"])
        bench.data[f"skew: {name}"] = {shape: one.seconds for shape, one in found.items()}
    bench.show(f"Skew: {bench.sizes.events:,} events", ["query and keys", "matches", "s", "× 390 keys"], lines)


def skewed(bench: Bench, query: kleene.Query, key: str, options: Mapping[str, Any]) -> Run:
    def events(count: int) -> DataFrame:
        return bench.spark.range(count).selectExpr("id AS t", f"{key} AS k", "hash(id, 1) & 127 AS x").where("x < 100")

    job = partial(query.match, type_column=None, **options)
    run(partial(job, events(10_000)))
    return best({"job": partial(job, events(bench.sizes.events))}, bench.sizes.turns)["job"]


# ---- the report

SECTIONS: dict[str, Callable[[Bench], None]] = {
    "floors": measure_floors,
    "pushdown": measure_pushdown,
    "hand": measure_hand_written,
    "ranges": measure_ranges,
    "in_place": measure_in_place,
    "setting": measure_setting,
    "memory": measure_memory,
    "growth": measure_growth,
    "skew": measure_skew,
}


def in_process(*arguments: str) -> str:
    """What a process of its own prints last."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it failed and said nothing"])[-1])
    return done.stdout.strip().splitlines()[-1]


def arguments_of(sizes: Sizes) -> list[str]:
    return ["--events", str(sizes.events), "--turns", str(sizes.turns)]


def describe(bench: Bench, cores: int, start: float, first: float) -> None:
    packages = {name: version(name) for name in ("pyspark", "pyarrow", "pandas", "numba", "kleene")}
    versions = [f"Python {platform.python_version()}", *(f"{name} {number}" for name, number in packages.items())]
    bench.print(f"Kleene on Spark, local[{cores}] of {os.cpu_count()} cores, {HEAP} of heap. {', '.join(versions)}.")
    bench.print("× CPU compares processor time, Java's and Python's together, which a busy machine distorts less.")
    bench.print(f"Best of {bench.sizes.turns} turns. Start of Spark {start:.1f} s, first job of a query {first:.1f} s.")
    if bench.sizes.events < FULL:
        bench.print(
            f"What is to be reached is meant for {FULL:,} events: on fewer, what a job costs at all counts more."
        )
    bench.data["versions"] = packages | {"python": platform.python_version(), "cores": cores}
    bench.data["sizes"] = asdict(bench.sizes)


def main() -> None:
    options = parsed()
    sizes = Sizes(options.events, options.turns)
    begin = time.perf_counter()
    spark = start_session(options.cores)
    start = time.perf_counter() - begin
    if options.peak_of:
        tell_peak(spark, options.peak_of)
        return
    bench = Bench(spark=spark, sizes=sizes, only=options.only)
    if options.ranges_of:
        subject = next(one for one in (ONE_STREAM, ONE_STREAM_ALL) if one.name == options.ranges_of)
        print(json.dumps({kind: asdict(one) for kind, one in cut_and_uncut(bench, subject).items()}))
        return
    first_name = options.only or "finance1"
    first = SUBJECTS[first_name]
    describe(bench, options.cores, start, run(partial(match_plan, first, bench.few(first.table))).seconds)
    for name, measure in SECTIONS.items():
        if options.section in (None, name):
            measure(bench)
    bench.conclude()
    if options.json:
        write_text(options.json, json.dumps(bench.data, indent=2, ensure_ascii=False))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How fast Kleene is on Spark.")
    parser.add_argument("--section", choices=SECTIONS, help="one of the sections; all if left out")
    parser.add_argument("--only", choices=SUBJECTS, metavar="QUERY", help=f"one query: {', '.join(SUBJECTS)}")
    parser.add_argument("--events", type=int, default=FULL, help="the other sizes are in proportion")
    parser.add_argument("--turns", type=int, default=2, help="runs of each job, of which the best counts")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--ranges-of", help=argparse.SUPPRESS)
    parser.add_argument("--peak-of", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()

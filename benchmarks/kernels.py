"""How fast the compiled engine is: against the reference engine, against a loop that does no matching, and as inputs
grow; and whether the relations that the papers report hold here.

    python benchmarks/kernels.py [--quick] [--json FILE]

Times are the best of several runs. They are those of finding matches in an Arrow table, reading its columns included,
without making rows of output. A measurement that fails is a line of the report, not the end of it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

import kleene
from floors import floor_of
from kleene.analysis.row_pattern import AnalyzedRowPattern, analyze_row_pattern
from kleene.api import prepare
from kleene.call import Call
from kleene.datasets import trades
from kleene.engine import reference
from kleene.engine.budget import Budget
from kleene.engine.column_types import attributes_of
from kleene.engine.compiled.regex_engine import RegexEngine
from kleene.engine.compiled.row_engine import RowEngine
from kleene.engine.compiled.run_engine import RunEngine, RunProgress
from kleene.engine.events import Events, plain_values
from kleene.engine.inputs import OrderKey
from kleene.engine.regex_reference import regex_rows
from kleene.engine.row_reference import PartitionMatcher
from kleene.engine.run import Runner
from kleene.files import write_text
from kleene.options.engine import DEFAULT_RUN_LIMIT
from kleene.schema import EventSchema
from streams import (
    constant,
    contaminated_ways,
    contamination,
    repeated,
    stock_ticks,
    store_readings,
    uniform_prices,
    walking_prices,
)
from workloads import MATCH_REGEX, RIP, regex_arguments, rip_clause

RUNS, MOST_RUNS, ENOUGH_SECONDS = 3, 10, 0.3


@dataclass(frozen=True, slots=True)
class Sizes:
    prices: int
    trades: int
    stocks: int
    growth: int
    """Events of the smaller input, where it is about ten times as many."""
    keys: int
    backtracked: int
    reference_seconds: float
    starts: tuple[str, ...]


FINANCE = ("finance0", "finance1", "finance2", "finance5")
STOCKS = tuple(f"{iterator}{strategy}" for iterator in ("p1", "p2", "p3") for strategy in ("s2", "s3"))
FULL = Sizes(1_000_000, 500_000, 200_000, 100_000, 1_000_000, 20_000, 1.0, (*RIP, *FINANCE, *STOCKS, "p1s3 basic"))
QUICK = Sizes(1_000_000, 100_000, 100_000, 40_000, 1_000_000, 5_000, 0.15, ("Q1", "finance0", "p1s3", "p1s3 basic"))

# What is measured has the form of one of the queries below: it can be timed on any prefix of its events.


class Subject(Protocol):
    def find(self, events: pa.Table) -> int:
        """The number of matches that the compiled engine finds."""

    def find_plainly(self, events: pa.Table) -> int:
        """The same by the reference engine."""


class RowPattern:
    def __init__(self, clause: str, events: pa.Table) -> None:
        definition = kleene.match_recognize(clause).definition
        self._query = analyze_row_pattern(definition, EventSchema(attributes_of(events.schema)))
        self._engine = RowEngine(self._query)

    def find(self, events: pa.Table) -> int:
        return sum(len(part.matches) for part in self._engine.start().feed(events, is_last=True))

    def find_plainly(self, events: pa.Table) -> int:
        columns = _plain_columns(self._query, events)
        matcher = PartitionMatcher(self._query, columns, events.num_rows, DEFAULT_RUN_LIMIT)
        return sum(1 for _ in matcher.matches())


class RegexPattern:
    def __init__(self, name: str, events: pa.Table) -> None:
        definition = kleene.regex(**regex_arguments(name)).definition
        self._query = analyze_row_pattern(definition, EventSchema(attributes_of(events.schema)))
        self._engine = RegexEngine(self._query)

    def find(self, events: pa.Table) -> int:
        return sum(part.matches for part in self._engine.start().feed(events, is_last=True))

    def find_plainly(self, events: pa.Table) -> int:
        columns = _plain_columns(self._query, events)
        partitions: dict[Any, list[int]] = defaultdict(list)
        for position, symbol in enumerate(columns["symbol"]):
            partitions[symbol].append(position)
        found = 0
        for positions in partitions.values():
            own = {name: [values[position] for position in positions] for name, values in columns.items()}
            found += sum(1 for _ in regex_rows(self._query, own, positions, DEFAULT_RUN_LIMIT, {}, Budget()))
        return found


class SasePattern:
    def __init__(self, text: str, events: pa.Table, algorithm: str = "auto") -> None:
        engine = kleene.EngineOptions("compiled", algorithm=algorithm)
        call = Call(kleene.sase(text).definition, OrderKey(("t",)), "type", engine=engine)
        _, self.plan = prepare(call, events.slice(0, 1))
        self._runner = Runner(self.plan)

    def find(self, events: pa.Table) -> int:
        return len(self._runner.find(events))

    def count(self, events: pa.Table) -> int:
        return self._runner.compressed(events).count()

    def find_plainly(self, events: pa.Table) -> int:
        query = self.plan.query
        read = Events(events, query.schema, query.order_by)
        return len(reference.find_matches(query, read, self.plan.format, DEFAULT_RUN_LIMIT))


def _plain_columns(query: AnalyzedRowPattern, events: pa.Table) -> dict[str, list[Any]]:
    assert query.schema is not None
    return {
        name: plain_values(events.column(name), query.schema.type_of(name), name)
        for name in events.column_names
        if name != "t"
    }


def stock_query(name: str, window: int = 500) -> str:
    """A query of the template of SASE+ 2008 §6, named as there: p1s3 has the predicate p1 and the strategy s3."""
    iterators = {
        "p1": "",
        "p2": "AND a[i].price > a[i-1].price ",
        "p3": "AND a[i].price > min(a[..i-1].price) ",
    }
    strategies = {"s2": "partition_contiguity", "s3": "skip_till_next_match"}
    return (
        f"PATTERN SEQ(Stock+ a[], Stock b) WHERE {strategies[name[2:]]}(a[], b) "
        f"{{[symbol] AND a[1].price % 500 = 0 {iterators[name[:2]]}AND b.volume < 150}} WITHIN {window} events"
    )


CONTAMINATION = """PATTERN SEQ(Alert a, Shipment+ b[])
    WHERE skip_till_any_match(a, b[])
        { a.kind = 'contaminated' AND b[1].source = a.site AND b[i].source = b[i-1].target }
    WITHIN 3 hours"""
SHOPLIFTING = "EVENT SEQ(Shelf a, !(Counter b), Exit c) WHERE [id] WITHIN 5000"
FEW_MATCHES = "EVENT SEQ(Shelf a, Exit b) WHERE [id] AND a.place = 7 AND b.place = 7 WITHIN 1000"


def row_clause(pattern: str, definitions: str) -> str:
    return f"ORDER BY t MEASURES FIRST(t) AS first ONE ROW PER MATCH PATTERN ({pattern}) DEFINE {definitions}"


NO_B = row_clause("A+ B+", "A AS x = 1, B AS x = 2")
NO_Z = row_clause("A* B* C* D* E* Z", ", ".join([*(f"{name} AS x = 1" for name in "ABCDE"), "Z AS x = 2"]))


def subject(name: str, events: pa.Table) -> Subject:
    """The query of that name; "p1s3 basic" is one with the algorithm that it is to use."""
    if name in RIP:
        return RowPattern(rip_clause(name), events)
    if name in MATCH_REGEX:
        return RegexPattern(name, events)
    query, _, algorithm = name.partition(" ")
    return SasePattern(stock_query(query), events, algorithm or "auto")


def few_events(name: str) -> pa.Table:
    if name in RIP:
        return uniform_prices(2_000)
    return trades(2_000) if name in MATCH_REGEX else stock_ticks(2_000)


# ---- timing


@dataclass(frozen=True, slots=True)
class Prepared:
    """An action of which only the second part is to be timed."""

    prepare: Callable[[], Any]
    act: Callable[[Any], Any]

    def __call__(self) -> Any:
        return self.act(self.prepare())


Action = Callable[[], Any] | Prepared


def seconds_of(action: Action) -> float:
    if isinstance(action, Prepared):
        action = partial(action.act, action.prepare())
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def best(*actions: Action) -> list[float]:
    """The best time of each action; they take turns, so that they share what else happens on the machine.

    Short ones get more turns than long ones.
    """
    times: list[list[float]] = []
    while len(times) < RUNS or (len(times) < MOST_RUNS and sum(map(sum, times)) < ENOUGH_SECONDS):
        times.append([seconds_of(action) for action in actions])
    return [min(column) for column in zip(*times, strict=True)]


def attempted(measure: Callable[[], Any]) -> Any:
    """What is measured, or a note of what went wrong."""
    try:
        return measure()
    except Exception as error:
        reason = str(error).partition("\n")[0]
        return Note(f"{type(error).__name__}: {reason}"[:110])


@dataclass(frozen=True, slots=True)
class Note:
    text: str


# ---- 1. queries


@dataclass(frozen=True, slots=True)
class Measured:
    query: str
    events: int
    seconds: float
    matches: int
    plain_events: int
    plain_seconds: float
    plain_matches: int
    matches_there: int
    """What the compiled engine finds in the reference engine's events."""
    floor_seconds: float

    @property
    def rate(self) -> float:
        return self.events / self.seconds

    @property
    def over_reference(self) -> float:
        return self.rate / (self.plain_events / self.plain_seconds)

    @property
    def over_floor(self) -> float:
        return self.seconds / self.floor_seconds


def measure_query(name: str, events: pa.Table, sizes: Sizes) -> Measured:
    query, floor = subject(name, events), floor_of(name, events)
    query.find(events.slice(0, 1_000))
    matches = query.find(events)
    seconds, floor_seconds = best(lambda: query.find(events), floor)
    plain_events, plain_seconds, plain_matches = measure_plainly(query, events, sizes.reference_seconds)
    matches_there = query.find(events.slice(0, plain_events))
    return Measured(
        name,
        events.num_rows,
        seconds,
        matches,
        plain_events,
        plain_seconds,
        plain_matches,
        matches_there,
        floor_seconds,
    )


def measure_plainly(query: Subject, events: pa.Table, enough: float) -> tuple[int, float, int]:
    """The reference engine on a prefix that takes it long enough to measure."""
    size = min(4_000, events.num_rows)
    while True:
        begin = time.perf_counter()
        matches = query.find_plainly(events.slice(0, size))
        seconds = time.perf_counter() - begin
        if seconds >= enough or size == events.num_rows:
            again = seconds_of(partial(query.find_plainly, events.slice(0, size)))
            return size, min(seconds, again), matches
        size = min(size * (4 if 4 * seconds < enough else 2), events.num_rows)


def measure_queries(report: Report, sizes: Sizes) -> None:
    starts = {name: attempted(partial(start_seconds, name)) for name in sizes.starts}
    groups = (
        ("RIP, uniform prices", tuple(RIP), uniform_prices(sizes.prices)),
        ("RIP, walking prices", tuple(RIP), walking_prices(sizes.prices)),
        ("MatchRegex, trades", FINANCE, trades(sizes.trades)),
        ("SASE+ template, W = 500", STOCKS, stock_ticks(sizes.stocks)),
    )
    for title, names, events in groups:
        measured = [(name, attempted(partial(measure_query, name, events, sizes))) for name in names]
        report.table(f"{title}: {events.num_rows:,} events", QUERY_HEAD, [query_line(*m, starts) for m in measured])
        report.data[title] = {name: plain(result) for name, result in measured}
        judge_queries(report, title, [result for _, result in measured])
    further = [(name, start) for name, start in starts.items() if " " in name]
    report.table("Starts with other algorithms", ["query", "cold s", "warm s"], [[n, *shown(s)] for n, s in further])
    judge_starts(report, starts)


QUERY_HEAD = ["query", "events/s", "matches", "× reference", "on events", "× floor", "cold s", "warm s"]


def query_line(name: str, result: Measured | Note, starts: dict[str, Any]) -> list[str]:
    start = shown(starts[name]) if name in starts else ["", ""]
    if isinstance(result, Note):
        return [name, result.text]
    figures = [f"{result.rate:,.0f}", f"{result.matches:,}", f"{result.over_reference:,.0f}"]
    return [name, *figures, f"{result.plain_events:,}", f"{result.over_floor:.1f}", *start]


def judge_queries(report: Report, title: str, results: list[Measured | Note]) -> None:
    good = [result for result in results if isinstance(result, Measured)]
    differing = [
        f"{r.query} on {r.plain_events:,} events: {r.matches_there} instead of {r.plain_matches}"
        for r in good
        if r.matches_there != r.plain_matches
    ]
    differing += [result.text for result in results if isinstance(result, Note)]
    report.judge(f"{title}: as many matches as the reference engine", not differing, "; ".join(differing))
    slow = [f"{r.query} {r.over_reference:.0f}" for r in good if r.over_reference < 100]
    least = min((r.over_reference for r in good), default=math.nan)
    enough = not slow and len(good) == len(results)
    report.judge(f"{title}: at least 100 × reference", enough, ", ".join(slow) or f"least {least:.0f}")
    if title == "RIP, uniform prices" and good:
        mean = math.exp(sum(math.log(r.over_floor) for r in good) / len(good))
        report.judge(f"{title}: geometric mean at most 5 × floor", mean <= 5, f"{mean:.1f}")


# ---- starts: from the start of a process to its first matches


@dataclass(frozen=True, slots=True)
class Start:
    cold: float
    warm: float


def start_seconds(name: str) -> Start:
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"KLEENE_CACHE_DIR": folder}
        cold = seconds_of(lambda: in_process("--first-use", name, environment))
        warm = min(seconds_of(lambda: in_process("--first-use", name, environment)) for _ in range(2))
    return Start(cold, warm)


def in_process(option: str, value: str, environment: dict[str, str] | None = None) -> str:
    """What a fresh process prints that does only this."""
    command = [sys.executable, str(Path(__file__)), option, value]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
    return done.stdout


def first_use(name: str) -> None:
    events = few_events(name)
    print(subject(name, events).find(events), flush=True)
    os._exit(0)  # how long it takes to end is not measured


def shown(start: Start | Note) -> list[str]:
    return [start.text] if isinstance(start, Note) else [f"{start.cold:.2f}", f"{start.warm:.2f}"]


def judge_starts(report: Report, starts: dict[str, Start | Note]) -> None:
    report.data["starts"] = {name: plain(start) for name, start in starts.items()}
    warm = {name: start.warm for name, start in starts.items() if isinstance(start, Start)}
    if warm:
        worst = max(warm, key=lambda name: warm[name])
        text = f"worst {worst}: {warm[worst]:.2f} s, of {len(warm)} measured"
        report.judge("warm start under 2 s", warm[worst] < 2, text)


# ---- 2. growth


@dataclass(frozen=True, slots=True)
class Growth:
    before: float
    after: float

    @property
    def ratio(self) -> float:
        return self.after / self.before


def measure_growth(report: Report, sizes: Sizes) -> None:
    lines, few = [], sizes.growth
    cases: list[tuple[str, float, Callable[[], Growth]]] = [
        ("events × 10: shoplifting", 11, partial(more_readings, 2 * few)),
        ("events × 10: Kleene closure, p2s3", 11, partial(more_of, "p2s3", stock_ticks(few), "t")),
        ("events × 10: RIP Q2", 11, partial(more_of, "Q2", uniform_prices(2 * few), "t")),
        ("events × 10: finance0", 11, partial(more_of, "finance0", trades(few), "ts")),
        ("keys 1 → 100,000", 2, partial(more_keys, sizes.keys)),
        ("rows × 10: A+ B+ without a B", 12, partial(more_rows, NO_B, few // 4)),
        ("rows × 10: A* B* C* D* E* Z without a Z", 12, partial(more_rows, NO_Z, few // 4)),
    ]
    for what, most, measure in cases:
        grown = attempted(measure)
        report.data[what] = plain(grown)
        if isinstance(grown, Note):
            lines.append([what, f"at most × {most}", grown.text])
            report.judge(f"{what}: cost at most × {most}", False, grown.text)
        else:
            figures = [f"{grown.before * 1000:.1f}", f"{grown.after * 1000:.1f}", f"{grown.ratio:.1f}"]
            lines.append([what, f"at most × {most}", *figures])
            report.judge(f"{what}: cost at most × {most}", grown.ratio <= most, f"× {grown.ratio:.1f}")
    report.table("Growth of cost", ["what grows", "target", "ms before", "ms after", "× cost"], lines)
    measure_windows(report, sizes)


def more_of(name: str, events: pa.Table, time_column: str) -> Growth:
    return grown_by(subject(name, events), events, repeated(events, 10, time_column))


def more_readings(count: int) -> Growth:
    events = store_readings(count, items=1_000)
    return grown_by(SasePattern(SHOPLIFTING, events), events, repeated(events, 10, "t"))


def more_keys(count: int) -> Growth:
    one, many = store_readings(count, items=1), store_readings(count, items=100_000)
    return grown_by(SasePattern(FEW_MATCHES, one), one, many)


def more_rows(clause: str, count: int) -> Growth:
    few, many = constant(count), constant(10 * count)
    return grown_by(RowPattern(clause, few), few, many)


def grown_by(query: Subject, smaller: pa.Table, larger: pa.Table) -> Growth:
    query.find(smaller)
    return Growth(*best(lambda: query.find(smaller), lambda: query.find(larger)))


def measure_windows(report: Report, sizes: Sizes) -> None:
    """SASE+ 2008, Figure 8(g): the wider the window, the more merging is worth."""
    events = stock_ticks(2 * sizes.stocks)
    lines: list[list[str]] = []
    for how, find in (("counted", counter), ("matching", matcher)):
        both = [attempted(partial(wider_window, find, events, algorithm)) for algorithm in ALGORITHMS]
        lines += [
            [f"{how}, {algorithm}", *growth_figures(grown)] for algorithm, grown in zip(ALGORITHMS, both, strict=True)
        ]
        report.data[f"W 500 → 2000, {how}"] = [plain(grown) for grown in both]
        what = f"W 500 → 2000, {how}: merge grows at most 0.8 × as much as basic"
        notes = [grown.text for grown in both if isinstance(grown, Note)]
        if notes:
            report.judge(what, False, notes[0])
        else:
            basic, merge = (grown.ratio for grown in both)
            report.judge(what, merge <= 0.8 * basic, f"× {merge:.2f} against × {basic:.2f}")
    title = f"p1s3, W = 500 → 2000: {events.num_rows:,} events"
    report.table(title, ["how", "ms at 500", "ms at 2000", "× cost"], lines)


def growth_figures(grown: Growth | Note) -> list[str]:
    if isinstance(grown, Note):
        return [grown.text]
    return [f"{grown.before * 1000:.1f}", f"{grown.after * 1000:.1f}", f"{grown.ratio:.2f}"]


def wider_window(find: Callable[..., Action], events: pa.Table, algorithm: str) -> Growth:
    narrow, wide = (find("p1s3", events, algorithm, window) for window in (500, 2000))
    narrow()
    wide()
    return Growth(*best(narrow, wide))


# ---- 3. the relations that the paper reports

ALGORITHMS = ("basic", "merge")


def finder(name: str, events: pa.Table, algorithm: str, window: int = 500) -> Action:
    """Finds all matches of a query of the template and writes them out."""
    query = SasePattern(stock_query(name, window), events, algorithm)
    return lambda: query.find(events)


def counter(name: str, events: pa.Table, algorithm: str, window: int = 500) -> Action:
    """Counts the matches without writing them out."""
    query = SasePattern(stock_query(name, window), events, algorithm)
    return lambda: query.count(events)


def matcher(name: str, events: pa.Table, algorithm: str, window: int = 500) -> Action:
    """Follows the runs only, on events read before: what SASE+ 2008 measures in Experiment 6."""
    plan = SasePattern(stock_query(name, window), events, algorithm).plan
    engine = RunEngine(plan.query, algorithm)

    def read() -> tuple[RunProgress, Any]:
        progress = engine.start()
        return progress, progress.prepared(events, None, True)

    def follow(given: tuple[RunProgress, Any]) -> None:
        progress, piece = given
        for _ in progress._visits(piece):
            pass

    return Prepared(read, follow)


def measure_relations(report: Report, sizes: Sizes) -> None:
    events = stock_ticks(sizes.stocks)
    lines = []
    for name, of_paper in (("p1s3", 1.5), ("p2s3", 1.4), ("p3s3", 1.5)):
        for how, find in (("verbose", finder), ("counted", counter), ("matching", matcher)):
            # Counting costs little beside reading the events, which both must do.
            least = 1 if how == "counted" else 1.4
            what = f"{name} {how}: merge at least {least} × basic"
            both = attempted(partial(compared, find, name, events, *ALGORITHMS))
            lines.append([name, how, *relation(report, what, both, least, events.num_rows, f"{of_paper}")])
    head = ["query", "how", "basic events/s", "merge events/s", "merge / basic", "paper"]
    report.table(f"Merging runs, W = 500: {events.num_rows:,} events", head, lines)
    fewer = events.slice(0, sizes.backtracked)
    lines = []
    for name in ("p1s3", "p3s3"):
        what = f"{name}: basic at least 10 × backtrack"
        both = attempted(partial(compared, finder, name, fewer, "backtrack", "basic"))
        lines.append([name, *relation(report, what, both, 10, fewer.num_rows, "200–300")])
    head = ["query", "backtrack events/s", "basic events/s", "basic / backtrack", "paper"]
    report.table(f"All runs at once, W = 500: {fewer.num_rows:,} events", head, lines)


def compared(find: Callable[..., Action], name: str, events: pa.Table, slow: str, fast: str) -> Growth:
    """The times of two algorithms on the same events, the one that should be faster first."""
    one, other = find(name, events, fast), find(name, events, slow)
    found = one(), other()
    if found[0] != found[1]:
        raise AssertionError(f"{fast} finds {found[0]} matches, {slow} {found[1]}")
    return Growth(*best(one, other))


def relation(report: Report, what: str, both: Growth | Note, least: float, events: int, paper: str) -> list[str]:
    report.data[what] = plain(both)
    if isinstance(both, Note):
        report.judge(what, False, both.text)
        return [both.text]
    report.judge(what, both.ratio >= least, f"{both.ratio:.2f}")
    return [f"{events / both.after:,.0f}", f"{events / both.before:,.0f}", f"{both.ratio:.2f}", paper]


# ---- 4. contamination


def measure_contamination(report: Report) -> None:
    result = attempted(lambda: json.loads(in_process("--count-contaminated", "2000")))
    report.data["contamination"] = plain(result)
    if isinstance(result, Note):
        report.print(f"\nContamination: {result.text}")
        report.judge("contamination: the count is right", False, result.text)
        return
    report.judge("contamination: the count is right", result["is_right"], f"{result['digits']} digits")
    report.print(
        f"\nContamination, 2,000 shipments in one window, counted: {result['seconds']:.3f} s, a number of "
        f"{result['digits']} digits; peak memory {result['peak']:.0f} MB, of which {result['before']:.0f} MB before"
    )


def count_contaminated(shipments: int) -> None:
    sys.set_int_max_str_digits(0)
    few, many = contamination(20), contamination(shipments)
    options = {"order_by": "ts", "engine": "compiled"}
    query = kleene.sase(CONTAMINATION)
    query.compressed(few, **options).count()
    before = peak_memory()
    begin = time.perf_counter()
    count = query.compressed(many, **options).count()
    seconds = time.perf_counter() - begin
    peak = {"before": before, "peak": peak_memory()}
    is_right = count == contaminated_ways(many["Shipment"])
    print(json.dumps({"seconds": seconds, "digits": len(str(count)), "is_right": is_right, **peak}))


def peak_memory() -> float:
    """In megabytes. On Linux getrusage would tell the parent's, where that is larger."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ---- the report


@dataclass(slots=True)
class Report:
    """What is printed as it is measured, what goes into the file, and what was to be reached."""

    data: dict[str, Any] = field(default_factory=dict)
    verdicts: list[tuple[str, str, str]] = field(default_factory=list)

    def print(self, text: str) -> None:
        print(text, flush=True)

    def table(self, title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        self.print(f"\n{title}\n" + "\n".join(aligned(head, lines)))

    def judge(self, what: str, is_met: bool, figures: str = "") -> None:
        self.verdicts.append(("OK" if is_met else "NOT MET", what, figures))

    def conclude(self) -> None:
        self.data["to reach"] = self.verdicts
        self.print("\nTo reach")
        for verdict, what, figures in self.verdicts:
            self.print(f"  {verdict:8}{what}" + (f" ({figures})" if figures else ""))


def aligned(head: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of text with the first column to the left and the others to the right; a short line ends in a note."""
    full = [line for line in [head, *lines] if len(line) == len(head)]
    widths = [max(len(line[column]) for line in full) for column in range(len(head))]
    for line in [head, *lines]:
        if len(line) == len(head):
            others = [text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True)]
            yield "  " + "  ".join([line[0].ljust(widths[0]), *others]).rstrip()
        else:
            yield "  " + "  ".join([line[0].ljust(widths[0]), *line[1:]])


def plain(result: Any) -> Any:
    return asdict(result) if isinstance(result, (Measured, Start, Growth, Note)) else result


def describe(report: Report, sizes: Sizes) -> None:
    packages = {name: version(name) for name in ("numba", "numpy", "kleene")}
    versions = [f"Python {platform.python_version()}", *(f"{name} {number}" for name, number in packages.items())]
    report.print(f"Kleene's compiled engine. {', '.join(versions)}; {os.cpu_count()} cores.")
    report.print(
        f"Events: {sizes.prices:,} prices, {sizes.trades:,} trades, {sizes.stocks:,} stock ticks. "
        f"Best of {RUNS} to {MOST_RUNS} runs."
    )
    report.data["versions"] = packages | {"python": platform.python_version(), "cores": os.cpu_count()}
    report.data["sizes"] = asdict(sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast the compiled engine is.")
    parser.add_argument("--quick", action="store_true", help="fewer events, fewer starts of processes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--first-use", help=argparse.SUPPRESS)
    parser.add_argument("--count-contaminated", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first_use:
        first_use(options.first_use)
    if options.count_contaminated:
        count_contaminated(options.count_contaminated)
        return
    report, sizes = Report(), QUICK if options.quick else FULL
    describe(report, sizes)
    measure_queries(report, sizes)
    measure_growth(report, sizes)
    measure_relations(report, sizes)
    measure_contamination(report)
    report.conclude()
    if options.json:
        write_text(options.json, json.dumps(report.data, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()

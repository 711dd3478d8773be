"""What each part of a query plan is worth: the experiments of SASE 2006 §5 on their own streams and queries.

    python benchmarks/plans.py [--quick] [--only EXPERIMENT] [--json FILE]

The paper's claims are about ratios: one way to run a query against another, on the same events. The ways take turns
and the best time of each counts, so that both have the same share of what else happens on the machine. "M events/s" is
what the paper measures: the operators, on events that have been read; though where a test has stacks, reading also
numbers its values, which in the paper is the scan's work. "whole" is all of finding matches in an Arrow table, reading
its columns and ordering the matches included. An experiment that fails is a line of the report, not the end of it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa

import kleene
from kernels import Note, Report, attempted
from kleene.api import Progress, prepare
from kleene.call import Call
from kleene.engine.compiled.meter import Meter
from kleene.engine.inputs import OrderKey
from kleene.engine.run import Runner
from kleene.files import write_text
from kleene.options.engine import DEFAULT_RUN_LIMIT

RUNS, MOST_RUNS, ENOUGH_SECONDS = 5, 25, 2.0
ENGINE = "compiled"
Hints = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sizes:
    light: int
    """Events for points that cost little for each event."""
    heavy: int
    """Events for points of many sequences, or of a plan that is slow on purpose."""
    stream: int
    """Events of the run that is to need no more memory as it goes on."""
    piece: int
    windows: tuple[int, int]
    """The narrowest and the widest window; both must fit into the streams several times."""


FULL = Sizes(2_000_000, 200_000, 10_000_000, 100_000, (10_000, 100_000))
QUICK = Sizes(40_000, 10_000, 100_000, 10_000, (2_000, 10_000))

# ---- the paper's generators

TYPES = 20
DOMAINS = (100, 20, 10, 1_000, 10_000)
EQUIVALENCE, SIMPLE, PARAMETERIZED = ("attr1", "attr2"), "attr3", "attr4"


def make_events(
    count: int, types: int = TYPES, domains: Sequence[int] = DOMAINS, seed: int = 7, begin: int = 0
) -> pa.Table:
    """The stream of Table 1: types E1, E2, … and the values of attr1, attr2, … all uniform (θ1 = 0).

    `t` is the number of the event, counted from `begin`: a window in time is one of events, as the paper has it.
    """
    chance = np.random.default_rng([seed, begin])
    codes = pa.array(chance.integers(0, types, count).astype(np.int32))
    names = [f"E{number}" for number in range(1, types + 1)]
    kinds = pa.DictionaryArray.from_arrays(codes, names).cast(pa.string())
    values = {f"attr{i}": chance.integers(0, size, count) for i, size in enumerate(domains, 1)}
    return pa.table({"type": kinds, "t": np.arange(begin, begin + count), **values})


def make_query(
    length: int,
    window: int,
    equivalence: int = 1,
    parameterized: int = 0,
    simple: int = 0,
    negations: int = 0,
    domains: Sequence[int] = DOMAINS,
    seed: int = 7,
) -> str:
    """A query of Table 2: L, W, EP, IP, SP and N.

    The types are E1 to EL in this order, which is as good as any since all are equally frequent; negations are of the
    types behind them. Drawn are the components of predicates, their constants and directions, and the gaps of
    negations.

    >>> make_query(3, 10_000, equivalence=2)
    'EVENT SEQ(E1 e1, E2 e2, E3 e3) WHERE [attr1] AND [attr2] WITHIN 10000'
    >>> make_query(2, 10, simple=1, parameterized=1, negations=1)
    'EVENT SEQ(E1 e1, !(E3 n1), E2 e2) WHERE [attr1] AND e1.attr3 = 5 AND e1.attr4 < e2.attr4 WITHIN 10'
    """
    chance = random.Random(seed)
    conditions = [f"[{name}]" for name in EQUIVALENCE[:equivalence]]
    for _ in range(simple):
        value = chance.randrange(domains[int(SIMPLE[-1]) - 1])
        conditions.append(f"e{chance.randint(1, length)}.{SIMPLE} = {value}")
    for _ in range(parameterized):
        one, other = sorted(chance.sample(range(1, length + 1), 2))
        conditions.append(f"e{one}.{PARAMETERIZED} {chance.choice('<>')} e{other}.{PARAMETERIZED}")
    gaps = sorted(chance.sample(range(1, length), negations))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"EVENT SEQ({', '.join(_components(length, gaps))}){where} WITHIN {window}"


def _components(length: int, gaps: Sequence[int]) -> Iterator[str]:
    for number in range(1, length + 1):
        yield f"E{number} e{number}"
        if number in gaps:
            nth = gaps.index(number) + 1
            yield f"!(E{length + nth} n{nth})"


def simulated_types(domain: int, length: int) -> int:
    """So many types that a query without a test is as selective as one with a test on that many values (§5.2).

    >>> simulated_types(100, 3)
    431
    """
    return round(TYPES * math.pow(domain, (length - 1) / length))


def sequences_in_windows(events: pa.Table, window: int) -> int:
    """How many sequences of E1, E2 and E3 lie in a window: what a plan makes that tests them only afterwards."""
    kinds = np.asarray(events.column("type").to_numpy(zero_copy_only=False))
    firsts, seconds = (np.concatenate([[0], np.cumsum(kinds == name)]) for name in ("E1", "E2"))
    pairs = np.concatenate([[0], np.cumsum((kinds == "E2") * firsts[:-1])])
    ends = np.flatnonzero(kinds == "E3")
    begins = np.maximum(ends - window + 1, 0)
    within = pairs[ends] - pairs[begins] - firsts[begins] * (seconds[ends] - seconds[begins])
    return int(within.sum())


# ---- measuring


@dataclass(slots=True)
class Point:
    """A query under one plan on one stream: the best times of several runs, in seconds, and what went through."""

    events: int
    matches: int
    whole: float
    read: float
    scan: float
    construction: float
    others: float
    sequences: int
    """What construction gave to the operators above it."""
    instances: int
    """The most that stood on stacks at once."""

    @property
    def operators(self) -> float:
        return self.scan + self.construction + self.others

    @property
    def rate(self) -> float:
        """Events a second, of the operators."""
        return self.events / self.operators

    @property
    def whole_rate(self) -> float:
        return self.events / self.whole


class Subject:
    """A query with its plan, compiled and warm."""

    def __init__(self, text: str, events: pa.Table, hints: Hints, run_limit: int = DEFAULT_RUN_LIMIT) -> None:
        engine = kleene.EngineOptions(ENGINE, plan=dict(hints), run_limit=run_limit)
        call = Call(kleene.sase(text).definition, OrderKey(("t",)), "type", engine=engine)
        self._table, plan = prepare(call, events)
        self._runner = Runner(plan)
        self._runner.find(self._table.slice(0, 1_000))

    def measure(self) -> Point:
        self._runner.meter = Meter()
        begin = time.perf_counter()
        found = self._runner.find(self._table)
        whole = time.perf_counter() - begin
        meter = self._runner.meter
        seconds = {name: operator.seconds for name, operator in meter.operators.items()}
        read, scan, construction = (seconds.pop(name, 0.0) for name in ("read", "SequenceScan", "SequenceConstruction"))
        made = meter.operators.get("SequenceConstruction")
        return Point(
            self._table.num_rows,
            len(found),
            whole,
            read,
            scan,
            construction,
            sum(seconds.values()),
            0 if made is None else made.given,
            meter.peaks.get("instances", 0),
        )


def compared(make: Mapping[str, Callable[[], Subject]]) -> dict[str, Point]:
    """The best of each subject, by name; they take turns, and short ones get more of them."""
    subjects = {name: made() for name, made in make.items()}
    turns: list[dict[str, Point]] = []
    spent = 0.0
    while len(turns) < RUNS or (len(turns) < MOST_RUNS and spent < ENOUGH_SECONDS):
        turns.append({name: subject.measure() for name, subject in subjects.items()})
        spent += sum(point.whole for point in turns[-1].values())
    return {name: best_of([turn[name] for turn in turns]) for name in subjects}


def best_of(points: Sequence[Point]) -> Point:
    """The turn whose operators were fastest, with the best times of reading and of the whole."""
    best = min(points, key=lambda point: point.operators)
    return replace(best, read=min(point.read for point in points), whole=min(point.whole for point in points))


# ---- the report

HEAD = [
    "",
    "events",
    "matches",
    "sequences",
    "read ns",
    "SS→ ns",
    "SC← ns",
    "others ns",
    "M events/s",
    "×",
    "whole M/s",
    "whole ×",
]


@dataclass(slots=True)
class Claims(Report):
    """Tables of points, and whether the paper's claims held; nothing is judged on small streams."""

    is_judging: bool = True
    experiment: str = ""
    lines: list[list[str]] = field(default_factory=list)

    def judge(self, what: str, is_met: bool, figures: str = "") -> None:
        if self.is_judging:
            self.verdicts.append(("held" if is_met else "NOT HELD", what, figures))

    def add(self, where: str, points: Mapping[str, Point] | Note, is_one_query: bool = True) -> bool:
        """Lines for what ran on the same events; × is how much faster the first is. Whether there was anything."""
        if isinstance(points, Note):
            self.lines.append([where, points.text])
            self.judge(f"{self.experiment}. {where}: could be measured", False, points.text)
            return False
        first = next(iter(points.values()))
        self.lines += [line_of(f"{where}: {name}", point, first) for name, point in points.items()]
        self.data[f"{self.experiment}. {where}"] = {name: asdict(point) for name, point in points.items()}
        found = {name: point.matches for name, point in points.items()}
        if is_one_query and len(set(found.values())) > 1:
            figures = ", ".join(f"{name} {count:,}" for name, count in found.items())
            what = f"{self.experiment}. {where}: all plans find the same matches"
            self.verdicts.append(("NOT HELD", what, figures))
        return True

    def show(self, title: str, of_paper: str) -> None:
        self.table(title, HEAD, self.lines)
        self.print(f"  Paper: {of_paper}")
        self.lines = []

    def conclude(self) -> None:
        self.data["claims"] = self.verdicts
        if self.verdicts:
            self.print("\nClaims")
        for verdict, what, figures in self.verdicts:
            self.print(f"  {verdict:10}{what}" + (f" ({figures})" if figures else ""))


def line_of(label: str, point: Point, first: Point) -> list[str]:
    each = 1e9 / point.events
    return [
        label,
        f"{point.events:,}",
        f"{point.matches:,}",
        f"{point.sequences:,}",
        *(f"{seconds * each:.1f}" for seconds in (point.read, point.scan, point.construction, point.others)),
        f"{point.rate / 1e6:.2f}",
        f"{first.rate / point.rate:.2f}",
        f"{point.whole_rate / 1e6:.2f}",
        f"{first.whole_rate / point.whole_rate:.2f}",
    ]


Measured = dict[str, dict[str, Point]]


def measured(claims: Claims, where: str, text: str, events: pa.Table, plans: Mapping[str, Hints]) -> Measured:
    """The points by where they are and by plan; nothing if they could not be measured."""
    points = attempted(partial(compared, {name: partial(Subject, text, events, own) for name, own in plans.items()}))
    return {where: points} if claims.add(where, points) else {}


# ---- 1. and 2.: sequence construction

STACKS: dict[str, Hints] = {"AIS": {"scan": "ais"}, "basic": {"scan": "basic"}}


def varying_domain(claims: Claims, sizes: Sizes) -> None:
    """Experiment 1. No test is evaluated: more types stand for one, so that only the stacks differ.

    Where construction has work to do, operators are compared. Where next to nothing matches, each of them takes a few
    nanoseconds for an event, and whether that is close is judged by the whole.
    """
    window = sizes.windows[0]
    points: Measured = {}
    for domain in (100, 300, 1_000, 3_000, 10_000):
        events = make_events(sizes.light // 2, simulated_types(domain, 3))
        where = f"V1 = {domain:,}"
        points |= measured(claims, where, make_query(3, window, equivalence=0), events, STACKS)
    claims.show(
        f"1. Active instance stacks against a runtime stack, L = 3, W = {window:,}",
        "AIS 18 × basic at V1 = 100; close at 10,000 (Figure 8)",
    )
    for where, least, most in (("V1 = 100", 10.0, math.inf), ("V1 = 10,000", 0.0, 2.0)):
        if where in points:
            ratio = points[where]["AIS"].rate / points[where]["basic"].rate
            wanted = f"at least {least:.0f}" if least else f"at most {most:.0f}"
            whole = points[where]["AIS"].whole_rate / points[where]["basic"].whole_rate
            figures = f"operators {ratio:.2f}; whole {whole:.2f}"
            judged = ratio if least else whole
            by = "operators" if least else "the whole"
            claims.judge(f"1. AIS {wanted} × basic at {where}, by {by}", least <= judged <= most, figures)


def varying_window(claims: Claims, sizes: Sizes) -> None:
    """Experiment 2. Few matches, so that what grows with the window is the work for each of them."""
    narrow, wide = sizes.windows
    events = make_events(sizes.light, simulated_types(10_000, 3))
    points: Measured = {}
    for window in (narrow, wide // 2, wide):
        text = make_query(3, window, equivalence=0)
        points |= measured(claims, f"W = {window:,}", text, events, STACKS)
    claims.show("2. The same with wider windows, L = 3, V1 = 10,000", "basic falls much faster than AIS (Figure 9)")
    ends = [points.get(f"W = {window:,}") for window in (narrow, wide)]
    if ends[0] and ends[1]:
        kept = {name: ends[1][name].rate / ends[0][name].rate for name in STACKS}
        figures = ", ".join(f"{name} keeps {share:.2f}" for name, share in kept.items())
        claims.judge(
            f"2. from W = {narrow:,} to {wide:,} basic falls faster than AIS", kept["basic"] < kept["AIS"], figures
        )


# ---- 2b. and 3.: equivalence tests

IN_SCAN: Hints = {"scan": "pais"}
AFTERWARDS: Hints = {"scan": "ais", "second_test": "selection"}


def first_test(claims: Claims, sizes: Sizes) -> None:
    """The paper's initial experiment of §5.3: a test on nothing but whole sequences makes too many of them.

    Both plans may complete the same number of sequences with one event, somewhat less than a window without a test
    holds.
    """
    narrow, wide = sizes.windows
    for window, domain, count in ((narrow, 100, sizes.light // 4), (wide, 1_000, sizes.light // 4)):
        limit = min(window**2 // 1_000, DEFAULT_RUN_LIMIT)
        events, text = make_events(count, domains=(domain, *DOMAINS[1:])), make_query(3, window)
        where = f"W = {window:,}, V1 = {domain:,}"
        pushed = {"PAIS, in the scan": partial(Subject, text, events, IN_SCAN, limit)}
        points = attempted(partial(compared, pushed))
        completes = claims.add(where, points)
        failure = failure_of(text, events, limit)
        each = sequences_in_windows(events, window) / events.num_rows
        claims.lines.append([f"{where}: in selection", f"{each:,.0f} sequences per event; {failure or 'completes'}"])
        made = points["PAIS, in the scan"].sequences if completes else 0
        claims.judge(
            f"2b. W = {window:,}, {limit:,} sequences with one event: PAIS completes, selection does not",
            completes and failure is not None,
            f"{made / events.num_rows:.2f} sequences per event against {each:,.0f}",
        )
    claims.show("2b. The first equivalence test, L = 3", "without it in the scan the experiment could not be completed")


def failure_of(text: str, events: pa.Table, limit: int) -> str | None:
    """What ends a plan that evaluates its test in selection; None if it completes."""
    try:
        Subject(text, events, AFTERWARDS, limit).measure()
    except kleene.ExecutionError as error:
        return str(error).partition("\n")[0]
    return None


SECOND: dict[str, Hints] = {
    "dynamic": {"second_test": "dynamic"},
    "Multi-PAIS": {"second_test": "multi_pais"},
    "selection": {"second_test": "selection"},
    "combined": {"second_test": "combined"},  # not the paper's: stacks for combinations of values
}


def second_test(claims: Claims, sizes: Sizes) -> None:
    """Experiment 3, Figure 10: throughput, and how many sequences construction makes."""
    text = make_query(3, sizes.windows[0], equivalence=2)
    for second in (20, 5):
        points: Measured = {}
        for domain in (10, 50, 100, 500, 1_000, 10_000):
            count = sizes.heavy if domain < 100 else sizes.light // 2
            events = make_events(count, domains=(domain, second, *DOMAINS[2:]))
            points |= measured(claims, f"V1 = {domain:,}, V2 = {second}", text, events, SECOND)
        claims.show(
            f"3. A second equivalence test, V2 = {second}, L = 3, W = {sizes.windows[0]:,}",
            "dynamic filtering wins by a wide margin up to V1 = 500, Multi-PAIS is worst, all are close after it",
        )
        if second == 20:
            judge_second_test(claims, points)


def judge_second_test(claims: Claims, points: Measured) -> None:
    for domain in (10, 50, 100, 500):
        own = points.get(f"V1 = {domain:,}, V2 = 20")
        if own is not None:
            ratios = {name: own["dynamic"].rate / own[name].rate for name in ("Multi-PAIS", "selection")}
            figures = ", ".join(f"{ratio:.2f} × {name}" for name, ratio in ratios.items())
            what = f"3. dynamic filtering beats both others at V1 = {domain:,}, V2 = 20"
            claims.judge(what, min(ratios.values()) > 1, figures)


# ---- 4. predicates, windows and negations


def more_predicates(claims: Claims, sizes: Sizes) -> None:
    """Experiment 4 and the others of §5.3, of which the paper gives conclusions only."""
    simple_predicates(claims, sizes)
    parameterized_predicates(claims, sizes)
    windows(claims, sizes)
    negations(claims, sizes)


def in_places(hint: str, *places: str, **fixed: str) -> dict[str, Hints]:
    return {place: {hint: place, **fixed} for place in places}


def simple_predicates(claims: Claims, sizes: Sizes) -> None:
    events = make_events(sizes.light // 2)
    points: Measured = {}
    for seed in range(3):
        text = make_query(3, sizes.windows[0], simple=1, seed=seed)
        plans = in_places("simple_predicates", "scan", "late")
        points |= measured(claims, said(text), text, events, plans)
    claims.show("4a. A simple predicate, L = 3, V1 = 100", "pushing it down always helps")
    for where, own in points.items():
        ratio = own["scan"].rate / own["late"].rate
        claims.judge(f"4a. {where}: in the scan at least as fast as late", ratio >= 1, f"{ratio:.2f}")


def said(text: str) -> str:
    """The part of a generated query that differs from the template."""
    return text.partition(" WHERE ")[2].partition(" WITHIN ")[0].removeprefix("[attr1] AND ")


def parameterized_predicates(claims: Claims, sizes: Sizes) -> None:
    events = make_events(sizes.light // 2)
    for seed in range(3):
        text = make_query(3, sizes.windows[0], parameterized=1, seed=seed)
        plans = in_places("parameterized_predicates", "construction", "late")
        measured(claims, said(text), text, events, plans)
    claims.show("4b. A parameterized predicate, L = 3, V1 = 100", "in selection it costs little more")


def windows(claims: Claims, sizes: Sizes) -> None:
    """A short stream: with the window outside, each event meets all before it."""
    window = sizes.windows[0]
    events = make_events(min(5 * window, sizes.heavy))
    plans = in_places("window", "scan_and_construction", "construction", "late")
    points = measured(claims, f"W = {window:,}", make_query(3, window), events, plans)
    instances = {name: point.instances for own in points.values() for name, point in own.items()}
    claims.show("4c. The window, L = 3, V1 = 100", "pushing it to scan and construction reduces intermediate results")
    claims.print(f"  On stacks at most: {', '.join(f'{name} {count:,}' for name, count in instances.items())}")


def negations(claims: Claims, sizes: Sizes) -> None:
    events = make_events(sizes.heavy // 2)
    points: Measured = {}
    plans = {
        f"{access}, {place}": {"negation": access, "negation_place": place}
        for place in ("construction", "late")
        for access in ("index", "scan_all")
    }
    for count in (1, 2):
        text = make_query(3, sizes.windows[0], negations=count)
        points |= measured(claims, f"N = {count}", text, events, plans)
    claims.show("4d. Negation, L = 3, V1 = 100", "modest while intermediate results are few; worth pushing down else")
    for where, own in points.items():
        for place in ("construction", "late"):
            ratio = own[f"index, {place}"].rate / own[f"scan_all, {place}"].rate
            claims.judge(f"4d. {where}, {place}: index at least as fast as scan_all", ratio >= 1, f"{ratio:.2f}")


# ---- 5. and 6.: length, and against runs


def varying_length(claims: Claims, sizes: Sizes) -> None:
    """Experiment 5, with reading: it numbers the values by which stacks are found, which in the paper the scan does."""
    events, window = make_events(sizes.light // 2), sizes.windows[0]
    queries = {f"L = {length}": partial(Subject, make_query(length, window), events, {}) for length in range(2, 7)}
    points = attempted(partial(compared, queries))
    is_measured = claims.add("V1 = 100", points, is_one_query=False)
    claims.show(
        f"5. Longer sequences, W = {window:,}; × is how much slower than L = 2",
        "at L = 6 half of the throughput at L = 2 (Figure 11)",
    )
    if is_measured:
        short, long = points["L = 2"], points["L = 6"]
        kept, whole = long.rate / short.rate, long.whole_rate / short.whole_rate
        after_reading = (short.read + short.operators) / (long.read + long.operators)
        what = "5. throughput at L = 6 at least 0.4 of that at L = 2"
        figures = f"{after_reading:.2f}; without reading {kept:.2f}, whole {whole:.2f}, with 5 times the matches"
        claims.judge(what, after_reading >= 0.4, figures)


JUDGED = "V1 = 10, V2 = 5"


def against_runs(claims: Claims, sizes: Sizes) -> None:
    """Stacks against the runs of SASE+ 2008, on queries that both can run.

    The whole is judged: runs sort events into partitions while they read them, so that their operators have little to
    do, and these alone are no measure of theirs. It is judged where there is something to find; where next to nothing
    is, both take the time of reading.
    """
    text = make_query(4, sizes.windows[0], equivalence=2)
    points: Measured = {}
    plans: dict[str, Hints] = {
        "dynamic": {"second_test": "dynamic"},
        "combined": {"second_test": "combined"},
        "nfa": {"operators": "nfa"},
    }
    for domain, second in ((10, 5), (10, 20), (100, 20), (500, 20)):
        count = sizes.heavy if domain < 100 else sizes.light // 2
        events = make_events(count, domains=(domain, second, *DOMAINS[2:]))
        points |= measured(claims, f"V1 = {domain}, V2 = {second}", text, events, plans)
    claims.show(
        f"6. Sequence operators against runs, L = 4, W = {sizes.windows[0]:,}",
        "has no such comparison; of runs, partitioning counts as reading",
    )
    for where, own in points.items():
        whole = {name: own["nfa"].whole / own[name].whole for name in ("dynamic", "combined")}
        figures = f"{whole['dynamic']:.2f}; combined {whole['combined']:.2f}"
        if where == JUDGED:
            claims.judge(f"6. {where}: dynamic filtering at least 5 × as fast as runs", whole["dynamic"] >= 5, figures)
        else:
            claims.print(f"  {where}: dynamic filtering × runs, by the whole: {figures}")


# ---- 7. memory


@dataclass(frozen=True, slots=True)
class Held:
    events: int
    bytes: int
    instances: int
    rows: int
    resident: float
    """Megabytes of the process."""


def memory(claims: Claims, sizes: Sizes) -> None:
    """A long run in pieces: what is kept from one to the next is what the window reaches, however long it goes on."""
    for domain in (100, 10_000):
        domains = (domain, 20, *DOMAINS[2:])
        text = make_query(3, sizes.windows[0], equivalence=2)
        held = attempted(partial(held_after_pieces, text, sizes, domains))
        what = f"7. V1 = {domain:,}: held after {sizes.stream:,} events at most 1.2 × held after a tenth of them"
        if isinstance(held, Note):
            claims.judge(what, False, held.text)
            continue
        claims.data[f"7. V1 = {domain:,}"] = [asdict(item) for item in held]
        claims.table(
            f"7. What is held, L = 3, W = {sizes.windows[0]:,}, V1 = {domain:,}, V2 = 20, pieces of {sizes.piece:,}",
            ["events", "bytes", "instances", "rows", "process MB"],
            [[f"{h.events:,}", f"{h.bytes:,}", f"{h.instances:,}", f"{h.rows:,}", f"{h.resident:.0f}"] for h in held],
        )
        ratio = held[-1].bytes / held[0].bytes
        claims.judge(what, ratio <= 1.2, f"{ratio:.2f}")


def held_after_pieces(text: str, sizes: Sizes, domains: Sequence[int]) -> list[Held]:
    """What is held after each tenth of the stream, whose pieces are made as they are needed."""
    progress = kleene.sase(text).progress(
        make_events(1, domains=domains), order_by="t", engine=kleene.EngineOptions(ENGINE, plan={})
    )
    found: list[Held] = []
    for begin in range(0, sizes.stream, sizes.piece):
        progress.feed(make_events(sizes.piece, domains=domains, begin=begin))
        done = begin + sizes.piece
        if done % (sizes.stream // 10) == 0:
            found.append(held_by(progress, done))
    return found


def held_by(progress: Progress, events: int) -> Held:
    held = progress._progress.held()
    return Held(events, held.bytes, held.runs, held.events, resident_memory())


def resident_memory() -> float:
    """In megabytes; where the system does not tell, the most there was."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmRSS")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ---- all of it

EXPERIMENTS: dict[str, Callable[[Claims, Sizes], None]] = {
    "1": varying_domain,
    "2": varying_window,
    "2b": first_test,
    "3": second_test,
    "4": more_predicates,
    "5": varying_length,
    "6": against_runs,
    "7": memory,
}


def describe(claims: Claims, sizes: Sizes) -> None:
    packages = {name: version(name) for name in ("numba", "numpy", "kleene")}
    versions = [f"Python {platform.python_version()}", *(f"{name} {number}" for name, number in packages.items())]
    claims.print(f"Kleene's query plans. {', '.join(versions)}; {os.cpu_count()} cores.")
    claims.print(
        f"Streams of SASE 2006 §5.1: {TYPES} types, attributes of {', '.join(f'{size:,}' for size in DOMAINS)} values, "
        f"all uniform. Best of {RUNS} to {MOST_RUNS} runs."
    )
    claims.print("ns are for each event. × is how much faster the first plan of a group is, by its operators or whole.")
    claims.data["versions"] = packages | {"python": platform.python_version(), "cores": os.cpu_count()}
    claims.data["sizes"] = asdict(sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description="What each part of a query plan is worth.")
    parser.add_argument("--quick", action="store_true", help="everything small, to see that it runs; nothing is judged")
    parser.add_argument("--only", choices=list(EXPERIMENTS), metavar="EXPERIMENT", help=", ".join(EXPERIMENTS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    claims, sizes = Claims(is_judging=not options.quick), QUICK if options.quick else FULL
    describe(claims, sizes)
    for name, experiment in EXPERIMENTS.items():
        if options.only in (None, name):
            claims.experiment = name
            experiment(claims, sizes)
    claims.conclude()
    if options.json:
        write_text(options.json, json.dumps(claims.data, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()

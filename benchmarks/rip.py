"""Runs or states in parallel: the experiments of RIP 2013 §5, in threads of one process.

    python benchmarks/rip.py [--quick] [--only EXPERIMENT] [--json FILE]

Speedups that are measured end at the number of cores. What the techniques would do with a core for every unit is told
by two figures that do not depend on it. "evaluations ×" is all evaluations of variables over those of the busiest unit,
the paper's own model of cost (§4.3). "CPU ×" is the CPU time of SEQ over that of the busiest thread, be it a unit or
the one that hands out events: it counts what evaluations leave out, such as copying events and partial matches,
reading events that start no run, and queues. The network, at which the paper's measurements end, is not here.

Techniques take turns and the best time of each counts, so that all have the same share of what else happens on the
machine. All of them must find the same matches, by number and by a checksum over first and last event and path.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import numpy as np
import pyarrow as pa

import kleene
from in_ranges import cut_rows
from kernels import Note, Report, attempted
from kleene.api import prepare
from kleene.call import Call
from kleene.engine.ranges import RangeEvents, RangeMatcher, Reach, reach_of
from kleene.files import write_text
from rip_query import RipQuery, checksum_of, rip_query
from rip_units import BATCH, Numbers, Outcome, by_state, in_batches, round_robin, sequential
from streams import uniform_prices
from workloads import RIP, rip_clause

RUNS, MOST_RUNS, ENOUGH_SECONDS = 5, 20, 3.0
MAX_LENGTH = 100
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Sizes:
    events: int
    agreement: int
    """Events that Kleene reads too, to compare matches with their paths."""


FULL, QUICK = Sizes(1_000_000, 20_000), Sizes(60_000, 2_000)

# ---- queries

# §5.8 does not say which query is balanced. In this one every state but the last lets everything through, and each
# has one comparison: all evaluate the same number of times.
BALANCED = (
    "A B C D",
    "A AS A.price >= 50, B AS B.price >= 50, C AS C.price >= 50, D AS D.price > 149",
)
QUERIES = (*RIP, "balanced")


def clause_of(name: str, max_length: int = MAX_LENGTH) -> str:
    if name in RIP:
        return rip_clause(name, max_length)
    return rip_clause("Q12", max_length).replace(RIP["Q12"][0], BALANCED[0]).replace(RIP["Q12"][1], BALANCED[1])


@cache
def query_of(name: str) -> RipQuery:
    return rip_query(name, clause_of(name), MAX_LENGTH)


@cache
def prices(count: int) -> Numbers:
    return np.array(uniform_prices(count).column("price").to_numpy())


# ---- measuring


@dataclass(frozen=True, slots=True)
class Point:
    """A technique on a query: the best time of several runs, and the least CPU time of its busiest thread."""

    seconds: float
    busiest_seconds: float
    busiest_is_receiver: bool
    outcome: Outcome

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Point:
        least = min(outcomes, key=lambda outcome: max(outcome.unit_seconds))
        units = len(least.unit_evaluations)
        busiest = max(least.unit_seconds)
        is_receiver = busiest > max(least.unit_seconds[:units])
        return cls(min(outcome.seconds for outcome in outcomes), busiest, is_receiver, least)

    @property
    def units(self) -> int:
        return len(self.outcome.unit_evaluations)

    def speedup(self, sequential: Point) -> float:
        return sequential.seconds / self.seconds

    def evaluation_speedup(self) -> float:
        return sum(self.outcome.evaluations) / max(self.outcome.unit_evaluations)

    def cpu_speedup(self, sequential: Point) -> float:
        return sequential.busiest_seconds / self.busiest_seconds


Points = dict[str, Point]
Techniques = Mapping[str, Callable[[], Outcome]]


def compared(techniques: Techniques) -> Points:
    """The best of each technique, by name; they take turns, and short ones get more of them."""
    for run in techniques.values():
        run()
    turns: list[dict[str, Outcome]] = []
    spent = 0.0
    while len(turns) < RUNS or (len(turns) < MOST_RUNS and spent < ENOUGH_SECONDS):
        turns.append({name: run() for name, run in techniques.items()})
        spent += sum(outcome.seconds for outcome in turns[-1].values())
    return {name: Point.of([turn[name] for turn in turns]) for name in techniques}


def side_by_side(query: RipQuery, ticks: Numbers, copies: int) -> Outcome:
    """Independent SEQs at once, each on all events: what the cores have to give. The time is for one of them."""
    outcomes: list[Outcome] = []
    threads = [threading.Thread(target=lambda: outcomes.append(sequential(query, ticks))) for _ in range(copies)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = (time.perf_counter() - begin) / copies
    one = outcomes[0]
    return Outcome(
        seconds,
        one.matches,
        one.checksum,
        one.evaluations,
        tuple(sum(one.evaluations) // copies for _ in range(copies)),
        tuple(outcome.unit_seconds[0] / copies for outcome in outcomes),
        0,
    )


CEILING = f"{CORES} SEQ side by side"


def baselines(query: RipQuery, ticks: Numbers) -> dict[str, Callable[[], Outcome]]:
    return {"SEQ": partial(sequential, query, ticks), CEILING: partial(side_by_side, query, ticks, CORES)}


# ---- the report

HEAD = [
    "",
    "units",
    "M events/s",
    "× SEQ",
    "evaluations ×",
    "CPU ×",
    "copied/event",
    "forwarded/event",
    "busiest",
]


@dataclass(slots=True)
class Claims(Report):
    """Tables of points, and whether the paper's claims held; nothing is judged on few events."""

    is_judging: bool = True
    experiment: str = ""
    lines: list[list[str]] = field(default_factory=list)

    def judge(self, what: str, is_met: bool, figures: str = "") -> None:
        if self.is_judging:
            self.verdicts.append(("held" if is_met else "NOT HELD", what, figures))

    def judge_time(self, what: str, is_met: bool, figures: str, ceiling: float) -> None:
        """Where others use the cores too, more threads get more of them: then times say nothing about techniques."""
        figures = f"{figures}; independent SEQs {ceiling:.2f}"
        if ceiling >= 0.85 * CORES:
            self.judge(what, is_met, figures)
        elif self.is_judging:
            self.verdicts.append(("not judged", what, f"{figures}: the machine was busy"))

    def add(self, where: str, events: int, points: Points | Note) -> bool:
        """Lines for techniques on the same events, of which the first is SEQ. Whether there was anything."""
        if isinstance(points, Note):
            self.lines.append([where, points.text])
            self.judge(f"{self.experiment}. {where}: could be measured", False, points.text)
            return False
        first = next(iter(points.values()))
        self.lines += [line_of(f"{where} {name}", events, point, first) for name, point in points.items()]
        self.data[f"{self.experiment}. {where}"] = {name: asdict(point) for name, point in points.items()}
        for what, values in (
            ("matches", {name: point.outcome.answer for name, point in points.items()}),
            ("evaluations", {name: point.outcome.evaluations for name, point in points.items()}),
        ):
            differing = [name for name, value in values.items() if value != next(iter(values.values()))]
            if differing:
                self.verdicts.append(
                    (
                        "NOT HELD",
                        f"{self.experiment}. {where}: all techniques have the same {what}",
                        ", ".join(differing),
                    )
                )
        return True

    def show(self, title: str, of_paper: str) -> None:
        self.table(title, HEAD, self.lines)
        self.print(f"  Paper: {of_paper}")
        self.lines = []

    def conclude(self) -> None:
        self.data["claims"] = self.verdicts
        if any(verdict == "not judged" for verdict, _, _ in self.verdicts):
            self.print("\nOthers used the cores too: × SEQ and M events/s above say little; CPU × is affected less.")
        if self.verdicts:
            self.print("\nClaims")
        for verdict, what, figures in self.verdicts:
            self.print(f"  {verdict:12}{what}" + (f" ({figures})" if figures else ""))


def line_of(label: str, events: int, point: Point, first: Point) -> list[str]:
    return [
        label,
        str(point.units),
        f"{events / point.seconds / 1e6:.2f}",
        f"{point.speedup(first):.2f}",
        f"{point.evaluation_speedup():.2f}",
        f"{point.cpu_speedup(first):.2f}",
        f"{point.outcome.copied / events:.2f}",
        f"{point.outcome.forwarded / events:.2f}",
        "receiver" if point.busiest_is_receiver else "unit",
    ]


def measured(claims: Claims, where: str, ticks: Numbers, techniques: Techniques) -> Points:
    """The points by technique; nothing if they could not be measured."""
    points = attempted(partial(compared, techniques))
    return points if claims.add(where, len(ticks), points) else {}


def times(speedups: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {speedup:.2f}" for name, speedup in speedups.items())


# ---- run-based techniques

UNITS = (1, 2, 3, 4, 8, 16)


def figure_8(claims: Claims, sizes: Sizes) -> None:
    query, ticks = query_of("Q8"), prices(sizes.events)
    techniques = baselines(query, ticks)
    for units in UNITS:
        techniques[f"RB {units}"] = partial(round_robin, query, ticks, units)
        techniques[f"RB+ {units}"] = partial(in_batches, query, ticks, units)
    points = measured(claims, "Q8", ticks, techniques)
    claims.show(
        f"Figure 8. RB against RB+, Q8, n = {BATCH:,}, s = {MAX_LENGTH - 1}",
        "RB+ scales much faster than RB, until the network ends it at 10 units",
    )
    if not points:
        return
    first = points["SEQ"]
    speedups = {name: point.speedup(first) for name, point in points.items()}
    by_cpu = {name: point.cpu_speedup(first) for name, point in points.items()}
    ceiling = speedups[CEILING]
    claims.print(f"  {CORES} independent SEQs had {ceiling:.2f} × the throughput of one: so much the cores can give.")
    if CORES >= 2:
        what = "8. RB+ on 2 units at least 1.6 × SEQ"
        claims.judge_time(what, speedups["RB+ 2"] >= 1.6, f"{speedups['RB+ 2']:.2f}", ceiling)
    claims.judge(
        "8. RB+ faster than RB on as many units, from 2 on",
        all(speedups[f"RB+ {units}"] > speedups[f"RB {units}"] for units in UNITS[1:]),
        ", ".join(f"{units}: {speedups[f'RB+ {units}'] / speedups[f'RB {units}']:.2f} ×" for units in UNITS[1:]),
    )
    beyond = {f"{units} units": speedups[f"RB+ {units}"] for units in UNITS if units > CORES}
    if beyond:
        most = max(speedups[f"RB+ {units}"] for units in UNITS if units <= CORES)
        what = f"8. more units than the {CORES} cores gain RB+ nothing (at most 1.15 ×)"
        claims.judge_time(what, max(beyond.values()) <= 1.15 * most, f"{most:.2f}; {times(beyond)}", ceiling)
    what = "8. with a core for each of 8 units, by CPU time: RB+ at least 6, and more than RB"
    is_met = by_cpu["RB+ 8"] >= max(6, by_cpu["RB 8"])
    claims.judge(what, is_met, times({name: by_cpu[name] for name in ("RB+ 8", "RB 8")}))


def figure_9(claims: Claims, sizes: Sizes) -> None:
    ticks = prices(sizes.events)
    at_two, evaluations, by_cpu, ceilings = {}, {}, {}, []
    for name in ("Q1", "Q3", "Q5", "Q6", "Q8", "Q9"):
        query = query_of(name)
        techniques = baselines(query, ticks)
        techniques |= {f"RB+ {units}": partial(in_batches, query, ticks, units) for units in (2, 4, 8, 16)}
        points = measured(claims, name, ticks, techniques)
        if points:
            at_two[name] = points["RB+ 2"].speedup(points["SEQ"])
            ceilings.append(points[CEILING].speedup(points["SEQ"]))
            evaluations[name] = points["RB+ 8"].evaluation_speedup()
            by_cpu[name] = points["RB+ 8"].cpu_speedup(points["SEQ"])
    claims.show(
        "Figure 9. RB+ for several queries",
        "near-linear to 10 units, for all queries alike; Q6 and Q8 are cheap and meet the input path's bound first",
    )
    if not at_two:
        return
    if CORES >= 2:
        what = "9. RB+ on 2 units at least 1.6 × SEQ for each query"
        claims.judge_time(what, min(at_two.values()) >= 1.6, times(at_two), min(ceilings))
    what = "9. with 8 units evaluations divide by at least 7.5 for each query"
    claims.judge(what, min(evaluations.values()) >= 7.5, times(evaluations))
    claims.judge("9. 8 units, by CPU time: at least 6 for each query", min(by_cpu.values()) >= 6, times(by_cpu))


def figure_10(claims: Claims, sizes: Sizes) -> None:
    query, ticks, units = query_of("Q1"), prices(sizes.events), 16
    shares = (99, 250, 500, 1_000, 2_500)
    techniques = {"SEQ": partial(sequential, query, ticks)}
    techniques |= {f"s = {s:,}": partial(in_batches, query, ticks, units, BATCH, s) for s in shares}
    points = measured(claims, "Q1", ticks, techniques)
    claims.show(
        f"Figure 10. RB+ with larger shared parts, Q1, n = {BATCH:,}, {units} units",
        "the size of the shared part does not matter",
    )
    if points:
        kept = {key: points["s = 99"].busiest_seconds / points[key].busiest_seconds for key in list(points)[1:]}
        what = "10. at s = 1,000 at least 0.9 of the throughput of s = 99, by CPU time"
        claims.judge(what, kept["s = 1,000"] >= 0.9, times(kept))


# ---- state-based techniques


def figure_11(claims: Claims, sizes: Sizes) -> None:
    ticks = prices(sizes.events)
    speedups, evaluations, by_cpu = {}, {}, {}
    for name in RIP:
        query = query_of(name)
        points = measured(
            claims, name, ticks, {"SEQ": partial(sequential, query, ticks), "SB": partial(by_state, query, ticks)}
        )
        if points:
            speedups[name] = points["SB"].speedup(points["SEQ"])
            evaluations[name] = points["SB"].evaluation_speedup()
            by_cpu[name] = points["SB"].cpu_speedup(points["SEQ"])
    claims.show(
        "Figure 11. SB: a unit for each variable",
        "close to the number of units for three variables; beyond that more units gain nothing",
    )
    if not speedups:
        return
    wide = {name: by_cpu[name] for name in by_cpu if len(query_of(name).names) > 6}
    what = "11. 13 units gain no more than 13 / 2, by CPU time: the slowest state decides"
    claims.judge(what, max(wide.values()) <= 6.5, times(wide))
    spread = max(evaluations.values()) / min(evaluations.values())
    what = "11. depends on the query: evaluations divide by twice as much for one as for another"
    claims.judge(what, spread >= 2, times(evaluations))
    narrow = {name: by_cpu[name] for name in by_cpu if len(query_of(name).names) == 3}
    what = "11. three variables gain nearly 3 (at least 2), by CPU time"
    claims.judge(what, min(narrow.values()) >= 2, times(narrow))


def table_2(claims: Claims, sizes: Sizes) -> None:
    query, ticks = query_of("Q11"), prices(sizes.events)
    techniques = {
        "SEQ": partial(sequential, query, ticks),
        "SB": partial(by_state, query, ticks),
        "SB+": partial(by_state, query, ticks, first_units=2),
    }
    points = measured(claims, "Q11", ticks, techniques)
    claims.show("Table 2. SB+: two units for the first variable, Q11", "SB 2.32 with 6 units, SB+ 2.99 with 7")
    if points:
        evaluations = {name: points[name].evaluation_speedup() for name in ("SB", "SB+")}
        by_cpu = {name: points[name].cpu_speedup(points["SEQ"]) for name in ("SB", "SB+")}
        figures = f"evaluations: {times(evaluations)}; CPU: {times(by_cpu)}"
        claims.judge(
            "Table 2. SB+ at least 1.2 × SB, by evaluations", evaluations["SB+"] >= 1.2 * evaluations["SB"], figures
        )


# ---- both

DISTRIBUTED = (50, 200, 1_000, 5_000, 10_000, 50_000)


def figure_12(claims: Claims, sizes: Sizes) -> None:
    """RB+ hands out the batches that runs start from, so that for it both sizes of batches are one."""
    query, ticks = query_of("Q7"), prices(sizes.events)
    techniques: dict[str, Callable[[], Outcome]] = {"SEQ": partial(sequential, query, ticks)}
    for size in DISTRIBUTED:
        techniques[f"RB+ 2, batches of {size:,}"] = partial(in_batches, query, ticks, 2, size)
    for size in DISTRIBUTED:
        techniques[f"RB 2, batches of {size:,}"] = partial(round_robin, query, ticks, 2, size)
    for size in DISTRIBUTED:
        techniques[f"SB, batches of {size:,}"] = partial(by_state, query, ticks, size)
    points = measured(claims, "Q7", ticks, techniques)
    claims.show(
        "Figure 12. Batches in which events are handed out, Q7",
        "small ones cost synchronization; 5,000 to 10,000 is best, whatever the query",
    )
    for technique in ("RB+ 2", "RB 2", "SB") if points else ():
        own = {size: points[f"{technique}, batches of {size:,}"].cpu_speedup(points["SEQ"]) for size in DISTRIBUTED}
        middle, figures = max(own[5_000], own[10_000]), ", ".join(f"{size:,} {gain:.2f}" for size, gain in own.items())
        what = f"12. {technique}, by CPU time: batches of 50 gain at most half of what 5,000 or 10,000 do"
        claims.judge(what, own[50] <= middle / 2, figures)
        what = f"12. {technique}, by CPU time: batches of 50,000 gain no more than those (at most 1.1 ×)"
        claims.judge(what, own[50_000] <= 1.1 * middle, figures)


def figure_13(claims: Claims, sizes: Sizes) -> None:
    compare_techniques(
        claims,
        sizes,
        "13",
        "balanced",
        "Figure 13. A balanced query: four variables, each evaluated for every event",
        "run-based techniques are faster even here",
    )


def figure_14(claims: Claims, sizes: Sizes) -> None:
    compare_techniques(
        claims, sizes, "14", "Q1", "Figure 14. Head and shoulders, Q1", "SB 2.64 with 13 units; RB+ about 15 × with 16"
    )


def compare_techniques(claims: Claims, sizes: Sizes, number: str, name: str, title: str, of_paper: str) -> None:
    query, ticks = query_of(name), prices(sizes.events)
    states = len(query.names)
    techniques = baselines(query, ticks) | {
        "SB": partial(by_state, query, ticks),
        "SB+": partial(by_state, query, ticks, first_units=2),
    }
    for units in (2, states):
        techniques[f"RB {units}"] = partial(round_robin, query, ticks, units)
        techniques[f"RB+ {units}"] = partial(in_batches, query, ticks, units)
    points = measured(claims, name, ticks, techniques)
    claims.show(title, of_paper)
    if not points:
        return
    first, many = points["SEQ"], f"RB+ {states}"
    speedups = {key: points[key].speedup(first) for key in ("SB", "RB+ 2", many)}
    by_cpu = {key: points[key].cpu_speedup(first) for key in ("SB", many)}
    claims.judge(f"{number}. RB+ with as many units faster than SB", speedups[many] > speedups["SB"], times(speedups))
    what = f"{number}. RB+ faster than SB with a core for each unit, by CPU time"
    claims.judge(what, by_cpu[many] > by_cpu["SB"], times(by_cpu))


# ---- Kleene itself


def agreement(claims: Claims, sizes: Sizes) -> None:
    """Every technique against Kleene's own engine, matches with their paths."""
    table = uniform_prices(sizes.agreement)
    ticks, lines, differing = prices(sizes.agreement), [], []
    for name in QUERIES:
        query = query_of(name)
        rows = kleene.match_recognize(query.clause).match(table).to_pylist()
        expected = len(rows), checksum_of(query, ((row["first"], row["last"], row["path"]) for row in rows))
        found = {
            "SEQ": sequential(query, ticks, 1_000),
            "RB": round_robin(query, ticks, 3, 1_000),
            "RB+": in_batches(query, ticks, 3, 1_000),
            "SB": by_state(query, ticks, 1_000),
            "SB+": by_state(query, ticks, 1_000, first_units=2),
        }
        wrong = [key for key, outcome in found.items() if outcome.answer != expected]
        differing += [f"{name}: {key}" for key in wrong]
        evaluations = sum(found["SEQ"].evaluations) / len(ticks)
        lines.append(
            [name, str(len(query.names)), f"{len(rows):,}", f"{evaluations:.2f}", ", ".join(wrong) or "all agree"]
        )
    head = ["query", "variables", "matches", "evaluations/event", "SEQ, RB, RB+, SB, SB+"]
    claims.table(f"Kleene's own matches in {len(ticks):,} events, with their paths", head, lines)
    if differing or claims.is_judging:
        claims.verdicts.append(
            ("NOT HELD" if differing else "held", "all techniques find Kleene's matches", ", ".join(differing))
        )


def kleene_rows(query: kleene.Query, table: pa.Table) -> int:
    return int(query.match(table).num_rows)


def kleene_rows_in_ranges(query: kleene.Query, table: pa.Table, ranges: int) -> int:
    """RB+ in Kleene: the table is cut into ranges, as on Spark, and threads match them."""
    rows, plan = prepare(Call(query.definition), table)
    reach = reach_of(plan)
    assert isinstance(reach, Reach), reach
    begins = [rows.num_rows * number // ranges for number in range(ranges)]

    def matched(part: RangeEvents) -> int:
        return sum(found.table.num_rows for found in RangeMatcher(plan, reach).batches(part))

    with ThreadPoolExecutor(ranges) as threads:
        return sum(threads.map(matched, cut_rows(rows, plan, reach, begins)))


def sequential_matches(query: RipQuery, ticks: Numbers) -> int:
    return sequential(query, ticks).matches


def kleene_itself(claims: Claims, sizes: Sizes) -> None:
    table = uniform_prices(sizes.events)
    lines = []
    for name in ("Q1", "Q8"):
        query = kleene.match_recognize(clause_of(name).replace(", array_agg(CLASSIFIER()) AS path", ""))
        runs: dict[str, Callable[[], int]] = {
            "SEQ of this benchmark": partial(sequential_matches, query_of(name), prices(sizes.events)),
            "Kleene": partial(kleene_rows, query, table),
        }
        runs |= {f"Kleene, {n} ranges": partial(kleene_rows_in_ranges, query, table, n) for n in (2, 4)}
        turns = taking_turns(runs, sizes.events)
        lines += [[f"{name} {label}", *figures] for label, figures in turns.items()]
        counts = {label: figures[0] for label, figures in turns.items() if len(figures) > 1}
        if len(set(counts.values())) > 1:
            claims.verdicts.append(("NOT HELD", f"{name}: Kleene finds as much as SEQ", str(counts)))
    claims.table("Kleene's own engine, rows of output included", ["", "matches", "M events/s"], lines)


def taking_turns(runs: Mapping[str, Callable[[], int]], events: int) -> dict[str, list[str]]:
    found = {label: attempted(run) for label, run in runs.items()}
    best: dict[str, float] = {}
    for _ in range(RUNS):
        for label, run in runs.items():
            if not isinstance(found[label], Note):
                begin = time.perf_counter()
                run()
                best[label] = min(best.get(label, float("inf")), time.perf_counter() - begin)
    return {
        label: [count.text] if isinstance(count, Note) else [f"{count:,}", f"{events / best[label] / 1e6:.2f}"]
        for label, count in found.items()
    }


# ---- all of it

EXPERIMENTS: dict[str, Callable[[Claims, Sizes], None]] = {
    "agreement": agreement,
    "8": figure_8,
    "9": figure_9,
    "10": figure_10,
    "11": figure_11,
    "table2": table_2,
    "12": figure_12,
    "13": figure_13,
    "14": figure_14,
    "kleene": kleene_itself,
}


def describe(claims: Claims, sizes: Sizes) -> None:
    packages = {name: version(name) for name in ("numba", "numpy", "kleene")}
    versions = [f"Python {platform.python_version()}", *(f"{name} {number}" for name, number in packages.items())]
    busy = f", load {os.getloadavg()[0]:.1f} before" if hasattr(os, "getloadavg") else ""
    claims.print(f"RIP's techniques in threads. {', '.join(versions)}; {CORES} cores{busy}.")
    claims.print(
        f"{sizes.events:,} events, prices uniform from 50 to 150 (§5.1.1); all matches, MAXLENGTH {MAX_LENGTH}. "
        f"Best of {RUNS} to {MOST_RUNS} turns."
    )
    claims.print(
        f"× SEQ is measured, and ends at {CORES}, the number of cores. evaluations × and CPU × are for a core for each"
        "\nunit: what SEQ takes, over what the busiest unit or the receiver that hands out events takes."
    )
    claims.data["versions"] = packages | {"python": platform.python_version(), "cores": CORES}
    claims.data["sizes"] = asdict(sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs or states in parallel: the experiments of RIP 2013.")
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

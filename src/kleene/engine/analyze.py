"""EXPLAIN ANALYZE: the plan is run, and each operator says what went through it and how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import pyarrow as pa

from kleene.engine.compiled.meter import Measured, Meter
from kleene.engine.run import Runner
from kleene.plan.operators import Pipeline
from kleene.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class Analysis:
    """Lines for operators by the names of their kinds, and lines about the whole."""

    operators: Mapping[str, Sequence[str]]
    whole: Sequence[str]


def analyzed(plan: Plan, table: pa.Table) -> Analysis:
    """Runs the plan, its code made beforehand, and counts."""
    runner = Runner(plan)
    started = perf_counter()
    made = runner.load(table)
    loading = perf_counter() - started
    started = perf_counter()
    rows = sum(part.table.num_rows for part in runner.batches(table))
    seconds = perf_counter() - started
    meter = runner.meter
    whole = [
        f"{table.num_rows:,} events, {rows:,} rows in {_time(seconds)}"
        + (f", {table.num_rows / seconds:,.0f} events a second" if seconds > 0 and table.num_rows else "")
    ]
    if made:
        whole.append(f"machine code: {_time(loading)} to make or load, not counted above")
    if "read" in meter.operators:
        whole.append(f"reading columns: {_time(meter.seconds('read'))}")
    if runner.choice.name == "reference" and plan.pipeline is not None:
        whole.append("the plain interpreter answered, so operators have no figures")
    return Analysis(_of_operators(meter, plan.pipeline), whole)


def _of_operators(meter: Meter, pipeline: Pipeline | None) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    has = set() if pipeline is None else {type(operator).__name__ for operator in pipeline.operators}
    for name, measured in meter.operators.items():
        match name:
            case "SequenceScan":
                most = meter.peaks.get("instances", 0)
                found[name] = [
                    f"→ {measured.taken:,} events, {measured.given:,} of use, at most {most:,} kept"
                    f" at once{_took(measured)}"
                ]
            case "SequenceConstruction":
                ends = meter.operators["accepts"].taken if "accepts" in meter.operators else 0
                found.setdefault(name, []).append(
                    f"→ {ends:,} events that may end a match, {measured.taken:,} tries, "
                    f"{measured.given:,} sequences{_took(measured)}"
                )
            case "RunScan":
                found[name] = [f"→ {measured.taken:,} events, {measured.given:,} matches{_took(measured)}"]
            case "Judge":
                # Runs are judged by negations and HAVING in one go.
                found["Having" if "Having" in has else "NegationFilter"] = [_passed(measured)]
            case "NegationInLastPlace":
                found.setdefault("NegationFilter", []).append(_passed(measured))
            case "NegationIndex" if measured.taken:
                line = f"→ {measured.taken:,} events in the index{_took(measured)}"
                where = "NegationFilter" if "NegationFilter" in has else "SequenceConstruction"
                found.setdefault(where, []).insert(0, line)
            case "Transformation":
                found[name] = [f"→ {measured.given:,} rows{_took(measured)}"]
            case "Selection" | "WindowFilter" | "NegationFilter" | "Having":
                found.setdefault(name, []).append(_passed(measured))
    return found


def _passed(measured: Measured) -> str:
    return f"→ {measured.taken:,} in, {measured.given:,} out{_took(measured)}"


def _took(measured: Measured) -> str:
    return f" · {_time(measured.seconds)}"


def _time(seconds: float) -> str:
    """A time in the unit that shows it best.

    >>> _time(0.0000042), _time(0.0123), _time(2.5)
    ('4 µs', '12.3 ms', '2.50 s')
    """
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"

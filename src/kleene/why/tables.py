"""The parts of an answer as Arrow tables. `row` is always a row of the input, counted from 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from kleene.ir.text import expression_text
from kleene.why.model import Bound, Check, Count, Ending, Match, NearMiss, PredicateCount, Run, Step, Try
from kleene.why.words import ending_word, predicate_text, result_text, types_text, values_text

_INT, _TEXT, _BOOL = pa.int64(), pa.string(), pa.bool_()
_BOUND = pa.list_(pa.struct([("variable", _TEXT), ("row", _INT)]))
_CHECKS = pa.list_(pa.struct([("predicate", _TEXT), ("result", _TEXT), ("values", _TEXT)]))


def _table(rows: Iterable[dict[str, Any]], **columns: pa.DataType) -> pa.Table:
    return pa.Table.from_pylist(list(rows), pa.schema(list(columns.items())))


def predicate_table(counts: Sequence[PredicateCount]) -> pa.Table:
    rows = (
        {
            "variable": count.variable,
            "move": count.move,
            "predicate": types_text(count.types) if count.predicate is None else predicate_text(count.predicate),
            "is_type": count.predicate is None,
            "events": count.events,
            "passed": count.passed,
            "tries": count.tries,
            "held": count.held,
            "stopped": count.stopped,
        }
        for count in counts
    )
    numbers = dict.fromkeys(("events", "passed", "tries", "held", "stopped"), _INT)
    return _table(rows, variable=_TEXT, move=_TEXT, predicate=_TEXT, is_type=_BOOL, **numbers)


def state_table(counts: Sequence[Count]) -> pa.Table:
    return _table(({"state": count.name, "runs": count.runs} for count in counts), state=_TEXT, runs=_INT)


def ending_table(counts: Sequence[Count]) -> pa.Table:
    return _table(({"ending": count.name, "runs": count.runs} for count in counts), ending=_TEXT, runs=_INT)


def near_miss_table(misses: Sequence[NearMiss]) -> pa.Table:
    rows = (
        {
            "run": miss.run,
            "would_match": miss.would_match,
            "reason": miss.kind.value,
            "variable": miss.variable,
            "row": None if miss.event is None else miss.event.row,
            "by_row": None if miss.by is None else miss.by.row,
            "predicate": None if miss.check is None else predicate_text(miss.check.predicate),
            "result": None if miss.check is None else result_text(miss.check),
            "values": None if miss.check is None else values_text(miss.check),
            "bound": _bound(miss.bound),
        }
        for miss in misses
    )
    return _table(
        rows,
        run=_INT,
        would_match=_BOOL,
        reason=_TEXT,
        variable=_TEXT,
        row=_INT,
        by_row=_INT,
        predicate=_TEXT,
        result=_TEXT,
        values=_TEXT,
        bound=_BOUND,
    )


def step_table(runs: Sequence[Run]) -> pa.Table:
    """A row for each event that was tried for a variable; and one, without a move, for how the run ended."""
    return _table(
        (row for place, run in enumerate(runs) for row in _steps(place, run)),
        tale=_INT,
        run=_INT,
        parent=_INT,
        step=_INT,
        row=_INT,
        move=_TEXT,
        variable=_TEXT,
        outcome=_TEXT,
        match=_INT,
        checks=_CHECKS,
        bound=_BOUND,
    )


def _steps(place: int, run: Run) -> Iterable[dict[str, Any]]:
    common = {"tale": place, "run": run.number or None, "parent": run.parent, "bound": _bound(run.bound)}
    for number, step in enumerate(run.steps):
        for one in step.tries:
            yield common | {"step": number, "row": step.event.row, **_try(one, step)}
    for ending in run.endings:
        row = None if ending.by is None else ending.by.row
        yield common | {"step": len(run.steps), "row": row, **_ending(ending)}


def _try(one: Try, step: Step) -> dict[str, Any]:
    against = [objection.kind.value for objection in one.objections] if one.fits else []
    outcome = "selected" if one.holds else "other type" if one.wanted else ": ".join(["refused", *against])
    checks = [*one.checks, *(check for objection in one.objections for check in objection.checks)]
    return {"move": one.move, "variable": one.variable, "outcome": outcome, "checks": _checks(checks)}


def _ending(ending: Ending) -> dict[str, Any]:
    outcome = f"ended: {ending_word(ending.kind)}"
    return {
        "variable": ending.variable,
        "outcome": outcome,
        "match": ending.match,
        "checks": _checks(ending.checks),
    }


def match_table(matches: Sequence[Match]) -> pa.Table:
    rows = (
        {"match": match.number, "variable": variable, "row": event.row}
        for match in matches
        for variable, events in match.bound
        for event in events
    )
    return _table(rows, match=_INT, variable=_TEXT, row=_INT)


def _bound(bound: Bound) -> list[dict[str, Any]]:
    return [{"variable": variable, "row": event.row} for variable, events in bound for event in events]


def _checks(checks: Sequence[Check]) -> list[dict[str, Any]]:
    return [
        {"predicate": expression_text(one.predicate), "result": result_text(one), "values": values_text(one)}
        for one in checks
    ]

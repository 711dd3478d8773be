"""Compares the library's step patterns with the slow checker, on all cases and on random pairs.

    python run_checks.py [--count N] [--seed S] [--timeouts] [--unsettled] [--cases] [--engine NAME]

The library is the `kleene` of the interpreter that runs this. A disagreement is shrunk and printed with the pattern
in shorthand, the builder's calls, the stream and both answers. Matches of the same events, whose order the document
leaves open, may come in either order.
"""

import argparse
import importlib
import random
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from generate import Wishes, random_pattern, random_stream
from shrink import shrink
from steps_brute import Answer, MissingStepError, Timeout, check
from steps_cases import load, match_text
from steps_model import Event, Pattern, positive_steps
from steps_notation import builder_text, calls, render, render_stream, to_builder


@dataclass(frozen=True)
class Said:
    """An answer as texts: matches in output order, timeouts sorted; or the error."""

    matches: tuple[str, ...] = ()
    timeouts: tuple[str, ...] = ()
    error: str | None = None


def table(events: list[Event]) -> pa.Table:
    columns = {
        "type": pa.array([event.letter for event in events], pa.string()),
        "t": pa.array([event.time for event in events], pa.int64()),
        "price": pa.array([event.price for event in events], pa.float64()),
        "id": pa.array([event.name for event in events], pa.string()),
        "key": pa.array([event.key for event in events], pa.string()),
    }
    return pa.table(columns)


def read_result(pattern: Pattern, result: Any) -> Answer:
    """The library's result. A row of a timeout is one whose column `timed_out` is true; its time is not compared."""
    rows: list[dict[str, Any]] = (result if isinstance(result, pa.Table) else pa.table(result)).to_pylist()
    steps = [step.name for step in positive_steps(pattern.parts)]
    found: list[tuple[bool, dict[str, list[str]]]] = []
    for row in rows:
        found.append((bool(row.get("timed_out")), {step: _events(row[step]) for step in steps}))
    return Answer([match for late, match in found if not late], [Timeout(match, None) for late, match in found if late])


def _events(value: Any) -> list[str]:
    if value is None:
        return []
    return [each["id"] for each in (value if isinstance(value, list) else [value])]


def expected(pattern: Pattern, events: list[Event], timeouts: bool) -> Said:
    try:
        return _said(check(pattern, events), timeouts)
    except MissingStepError:
        return Said(error="ExecutionError")


class LeftOutError(Exception):
    """The library says that it does not do this: by this engine, or for a pattern without a window."""


def actual(kleene: Any, pattern: Pattern, events: list[Event], timeouts: bool, engine: str = "auto") -> Said:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            built = to_builder(pattern, kleene)
            options = {**({"timeouts": True} if timeouts else {}), **({} if engine == "auto" else {"engine": engine})}
            return _said(read_result(pattern, built.match(table(events), order_by="t", **options)), timeouts)
    except Exception as error:  # whatever the library raises is its answer
        kind = type(error).__name__
        if kind == "UnsupportedError":
            raise LeftOutError(str(error)) from None
        return Said(error=kind if kind == "ExecutionError" else f"{kind}: {error}")


def _said(answer: Answer, timeouts: bool) -> Said:
    late = sorted(match_text(each.match) for each in answer.timeouts) if timeouts else []
    return Said(tuple(match_text(each) for each in answer.matches), tuple(late))


def agree(one: Said, other: Said, events: list[Event]) -> bool:
    """Whether the answers are the same, up to the order of matches of the same events."""
    if one.error is not None or other.error is not None:
        return one.error == other.error
    position = {event.name: event.position for event in events}

    def ordered(said: Said) -> list[tuple[list[int], str]]:
        return [(_positions(match, position), match) for match in said.matches]

    same_order = [positions for positions, _ in ordered(one)] == [positions for positions, _ in ordered(other)]
    return same_order and sorted(one.matches) == sorted(other.matches) and one.timeouts == other.timeouts


def _positions(match: str, position: dict[str, int]) -> list[int]:
    return sorted(position[name] for binding in match.split() for name in binding.partition("=")[2].split(","))


def report(kleene: Any, pattern: Pattern, events: list[Event], timeouts: bool, engine: str) -> None:
    def differs(pattern: Pattern, events: list[Event]) -> bool:
        try:
            said = actual(kleene, pattern, events, timeouts, engine)
        except LeftOutError:
            return False
        return not agree(expected(pattern, events, timeouts), said, events)

    pattern, events = shrink(pattern, events, differs)
    print(f"pattern   {render(pattern)}")
    print(f"calls     {builder_text(calls(pattern))}")
    print(f"stream    {render_stream(events)}")
    print(f"checker   {expected(pattern, events, timeouts)}")
    print(f"library   {actual(kleene, pattern, events, timeouts, engine)}\n")


def main() -> int:
    arguments = _arguments()
    kleene = importlib.import_module("kleene")
    if not hasattr(kleene, "begin"):
        sys.exit("this version of the library has no builder")
    pairs = _case_pairs() if arguments.cases else _random_pairs(arguments)
    began = time.monotonic()
    checked = wrong = left_out = 0
    for pattern, events in pairs:
        checked += 1
        try:
            said = actual(kleene, pattern, events, arguments.timeouts, arguments.engine)
        except LeftOutError:
            left_out += 1
            continue
        if agree(expected(pattern, events, arguments.timeouts), said, events):
            continue
        wrong += 1
        report(kleene, pattern, events, arguments.timeouts, arguments.engine)
        if wrong >= arguments.most:
            break
    print(f"{checked} pairs, {left_out} of them left out, {wrong} disagreements, {time.monotonic() - began:.1f} s")
    return 1 if wrong else 0


def _case_pairs() -> list[tuple[Pattern, list[Event]]]:
    return [(case.pattern, case.events) for case in load()]


def _random_pairs(arguments: argparse.Namespace) -> Any:
    wishes = Wishes(unsettled=arguments.unsettled)
    for number in range(arguments.count):
        source = random.Random(f"{arguments.seed}-{number}")
        pattern = random_pattern(source, wishes)
        yield pattern, random_stream(source, pattern)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=10, help="disagreements to print before giving up")
    parser.add_argument("--engine", default="auto", help="by which the library is to answer")
    parser.add_argument("--timeouts", action="store_true", help="compare the runs that timed out too")
    parser.add_argument("--unsettled", action="store_true", help="also patterns whose meaning the document leaves open")
    parser.add_argument("--cases", action="store_true", help="the cases of the files instead of random pairs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

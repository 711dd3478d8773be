"""How an analyzed query will be run: which engine, and how the input may be split."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kleene.analysis.analyze import MATCH_END, MATCH_START
from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.errors import UnsupportedError, did_you_mean, listed, shown
from kleene.ir.options import Format, Strategy, WindowUnit
from kleene.plan.choice import choose_pipeline
from kleene.plan.facts import Facts
from kleene.plan.hints import NO_HINTS, Hints, checked_hints
from kleene.plan.limits import NO_LIMITS, Limits
from kleene.plan.operators import Pipeline
from kleene.plan.statistics import UNKNOWN, Statistics, checked_statistics

ENGINES = ("auto", "compiled", "generated", "reference")
ALGORITHMS = ("auto", "basic", "merge", "backtrack")
MODES = ("verbose", "compressed")
DEFAULT_RUN_LIMIT = 1_000_000
MOST_RUNS = 2**40


@dataclass(frozen=True, slots=True)
class ByKey:
    """Events of different keys have nothing to do with each other: each key can be matched anywhere.

    The key is implied where plain equalities, not brackets, tie all components to it.
    """

    columns: tuple[str, ...]
    is_implied: bool = False

    def __str__(self) -> str:
        return f"by key ({', '.join(self.columns)})"


@dataclass(frozen=True, slots=True)
class OneStream:
    """All events must be seen together, in order."""

    reason: str

    def __str__(self) -> str:
        return f"one stream: {self.reason}"


@dataclass(frozen=True, slots=True)
class Plan:
    """`pipeline` is that of a SASE query; row patterns have none."""

    query: AnalyzedQuery | AnalyzedRowPattern
    split: ByKey | OneStream
    engine: str
    format: Format = Format.ALL
    run_limit: int = DEFAULT_RUN_LIMIT
    limits: Limits = NO_LIMITS
    algorithm: str = "auto"
    mode: str = "verbose"
    pipeline: Pipeline | None = None
    hints: Hints = NO_HINTS


def make_plan(
    query: AnalyzedQuery | AnalyzedRowPattern,
    format: str = "all",
    engine: str = "auto",
    run_limit: int = DEFAULT_RUN_LIMIT,
    limits: Limits = NO_LIMITS,
    algorithm: str = "auto",
    mode: str = "verbose",
    plan: Mapping[str, Any] | Hints | None = None,
    statistics: Mapping[str, Any] | Statistics | None = None,
) -> Plan:
    """The plan for a query; which engine can run it shows when its code is made."""
    checked_choice("algorithm", algorithm, ALGORITHMS)
    _checked_mode(mode, query, format)
    hints, known = checked_hints(plan), checked_statistics(statistics)
    pipeline = None
    if isinstance(query, AnalyzedQuery):
        facts = Facts(query, hints, known or UNKNOWN)
        pipeline = choose_pipeline(facts, algorithm, mode, output_columns(query))
    elif hints.given():
        raise UnsupportedError("plan is for SASE queries", hint="Leave it out.")
    return Plan(
        query,
        choose_split(query, pipeline, format),
        checked_choice("engine", engine, ENGINES),
        _checked_format(format),
        _checked_limit(run_limit),
        limits,
        algorithm,
        mode,
        pipeline,
        hints,
    )


def output_columns(query: AnalyzedQuery) -> list[str]:
    if query.measures is not None:
        return [measure.name for measure in query.measures]
    variables = [f"{c.name}[]" if c.is_kleene else c.name for c in query.components if c.named]
    return [*query.key, *variables, MATCH_START, MATCH_END]


def choose_split(
    query: AnalyzedQuery | AnalyzedRowPattern, pipeline: Pipeline | None = None, format_: str = "all"
) -> ByKey | OneStream:
    """By key where PARTITION BY, or equivalence tests that tie every component, negatives included, give one."""
    if query.partition_by:
        return ByKey(query.partition_by)
    if isinstance(query, AnalyzedRowPattern):
        return OneStream("the query has no PARTITION BY")
    implied = () if pipeline is None else _implied_key(query, pipeline, format_)
    if implied:
        return ByKey(implied, is_implied=True)
    if query.strategy is Strategy.STRICT_CONTIGUITY:
        return OneStream("strict contiguity looks at neighbours in the whole input")
    if query.definition.equivalence_tests:
        return OneStream("an event type lacks the attribute of the equivalence test")
    return OneStream("the query has no equivalence test")


def _implied_key(query: AnalyzedQuery, pipeline: Pipeline, format_: str) -> tuple[str, ...]:
    """Attributes on which plain equalities make all events of a match, and all that it forbids, agree.

    Windows of events and non-overlapping matches are about the whole input, which such a key must not cut.
    """
    if format_ != Format.ALL.value or (query.window is not None and query.window.unit is WindowUnit.EVENTS):
        return ()
    agreed = ({*test.attributes, *test.negative} for test in pipeline.tests if test.is_implied)
    return tuple(name for names in agreed if len(names) == 1 for name in names if name is not None)


def _checked_mode(mode: str, query: AnalyzedQuery | AnalyzedRowPattern, format_: str) -> str:
    """Compressed output is for SASE queries, and for all of their matches."""
    checked_choice("mode", mode, MODES)
    if mode == "compressed" and isinstance(query, AnalyzedRowPattern):
        raise UnsupportedError("compressed mode is for SASE queries", hint="Leave mode out.")
    if mode == "compressed" and format_ != Format.ALL.value:
        raise UnsupportedError("compressed mode holds all matches together", hint="Leave format out, or mode.")
    return mode


def checked_choice(what: str, given: str, names: Sequence[str]) -> str:
    if not isinstance(given, str) or given not in names:
        raise UnsupportedError(
            f"there is no {what} {shown(given)}", hint=_choices(f"{what.capitalize()}s", given, names)
        )
    return given


def _choices(what: str, given: object, names: Sequence[str]) -> str:
    return f"{what}: {listed(names)}.{did_you_mean(given, names) if isinstance(given, str) else ''}"


def _checked_format(format_: str) -> Format:
    names = [member.value for member in Format]
    if not isinstance(format_, str) or format_ not in names:
        raise UnsupportedError(f"there is no format {shown(format_)}", hint=_choices("Formats", format_, names))
    return Format(format_)


def _checked_limit(run_limit: int) -> int:
    try:
        limit = operator.index(run_limit)
    except TypeError:
        limit = 0
    if limit < 1 or isinstance(run_limit, bool):
        raise UnsupportedError(f"run_limit is a whole number from 1 up, and {shown(run_limit)} was given")
    return min(limit, MOST_RUNS)

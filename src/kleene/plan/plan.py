"""How an analyzed query will be run: which engine, and how the input may be split."""

from __future__ import annotations

from dataclasses import dataclass

from kleene.analysis.analyzed import MATCH_END, MATCH_START, AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.analysis.steps import AnalyzedSteps
from kleene.analysis.totals import WINDOW_END, WINDOW_START
from kleene.errors import UnsupportedError
from kleene.ir.options import Format, Strategy, Timeouts, WindowUnit
from kleene.options.engine import DEFAULT_RUN_LIMIT, USUAL_ENGINE, EngineOptions, usable_cores
from kleene.options.hints import NO_HINTS, Hints
from kleene.options.limits import NO_LIMITS, Limits
from kleene.options.statistics import UNKNOWN
from kleene.plan.choice import choose_pipeline
from kleene.plan.operators import Facts, Pipeline


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


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Plan:
    """`pipeline` is that of a SASE query; steps and row patterns have none."""

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
    threads: int = 1
    timeouts: Timeouts = Timeouts.NONE


def make_plan(
    query: AnalyzedQuery | AnalyzedRowPattern,
    engine: EngineOptions = USUAL_ENGINE,
    format: Format = Format.ALL,
    mode: str = "verbose",
    timeouts: Timeouts = Timeouts.NONE,
) -> Plan:
    """The plan for a query; which engine can run it shows when its code is made."""
    assert query.definition.window_parameter is None, "a call binds parameters before it plans"
    pipeline = None
    if isinstance(query, AnalyzedSteps):
        _check_options(engine, mode)
    elif isinstance(query, AnalyzedQuery):
        facts = Facts(query, engine.hints, engine.known or UNKNOWN)
        shares = "verbose" if mode == "totals" and format is not Format.ALL else mode
        pipeline = choose_pipeline(facts, engine.algorithm, shares, output_columns(query))
    else:
        _check_options(engine, mode)
    return Plan(
        query,
        choose_split(query, pipeline, format, timeouts),
        engine.name,
        format,
        engine.run_limit,
        engine.limits,
        engine.algorithm,
        mode,
        pipeline,
        engine.hints,
        usable_cores() if engine.threads is None else engine.threads,
        timeouts,
    )


def _check_options(engine: EngineOptions, mode: str) -> None:
    if mode == "compressed":
        raise UnsupportedError("compressed output is for SASE queries", hint="Use match.")
    given = {"algorithm": engine.algorithm != "auto", "plan": engine.hints.given(), "statistics": engine.known}
    name = next((name for name, is_given in given.items() if is_given), None)
    if name is not None:
        raise UnsupportedError(f"{name} is for SASE queries", hint="Leave it out.")


def output_columns(query: AnalyzedQuery) -> list[str]:
    if query.measures is not None:
        return [*_group_columns(query), *(measure.name for measure in query.measures)]
    variables = [f"{c.name}[]" if c.is_kleene else c.name for c in query.components if c.named]
    return [*query.key, *variables, MATCH_START, MATCH_END]


def _group_columns(query: AnalyzedQuery) -> list[str]:
    """What a row of aggregates over all matches is about."""
    grouping = query.definition.grouping
    if grouping is None:
        return []
    found = list(query.key) if grouping.by_event or grouping.by_partition else []
    found += [MATCH_END] if grouping.by_event else []
    return found + ([WINDOW_START, WINDOW_END] if grouping.window is not None else [])


def choose_split(
    query: AnalyzedQuery | AnalyzedRowPattern,
    pipeline: Pipeline | None = None,
    format_: Format = Format.ALL,
    timeouts: Timeouts = Timeouts.NONE,
) -> ByKey | OneStream:
    """By key where PARTITION BY, or equivalence tests that tie every component, negatives included, give one."""
    if query.partition_by:
        return ByKey(query.partition_by)
    if isinstance(query, AnalyzedRowPattern):
        return OneStream("the query has no PARTITION BY")
    if isinstance(query, AnalyzedSteps):
        return OneStream("the pattern has no partition_by")
    # A run that does not complete may hold events of several such keys.
    implied = () if pipeline is None or timeouts is not Timeouts.NONE else _implied_key(query, pipeline, format_)
    if implied:
        return ByKey(implied, is_implied=True)
    if query.strategy is Strategy.STRICT_CONTIGUITY:
        return OneStream("strict contiguity looks at neighbours in the whole input")
    if query.definition.equivalence_tests:
        return OneStream("an event type lacks the attribute of the equivalence test")
    return OneStream("the query has no equivalence test")


def _implied_key(query: AnalyzedQuery, pipeline: Pipeline, format_: Format) -> tuple[str, ...]:
    """Attributes on which plain equalities make all events of a match, and all that it forbids, agree.

    Windows of events and non-overlapping matches are about the whole input, which such a key must not cut.
    """
    if format_ is not Format.ALL or (query.window is not None and query.window.unit is WindowUnit.EVENTS):
        return ()
    agreed = ({*test.attributes, *test.negative} for test in pipeline.tests if test.is_implied)
    return tuple(name for names in agreed if len(names) == 1 for name in names if name is not None)

"""What the engine can be told."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass

from kleene.errors import UnsupportedError, shown
from kleene.options.checks import checked_choice, checked_count
from kleene.options.hints import Hints, checked_hints
from kleene.options.limits import Limits, checked_memory, checked_seconds
from kleene.options.statistics import Statistics, checked_statistics

ENGINES = ("auto", "compiled", "tables", "generated", "reference")
ALGORITHMS = ("auto", "basic", "merge", "backtrack")
DEFAULT_RUN_LIMIT = 1_000_000
MOST_RUNS = 2**40


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Which engine answers, how it plans, and what one call may use.

    >>> EngineOptions("compiled", memory_limit="2 GB").memory_limit
    2000000000
    >>> EngineOptions("compiled", algorithm="merged")
    Traceback (most recent call last):
    ...
    kleene.errors.UnsupportedError: algorithm cannot be 'merged'
    It can be: auto, basic, merge, backtrack. Did you mean 'merge'?

    name: "auto"; "compiled", machine code made for the query, which the first call waits for; "tables", loops that
        serve every query and answer at once; "generated", the query's code as plain Python, to look into; or
        "reference", the plain interpreter. With "auto", tables answer until machine code was made in the background.
    algorithm: for SASE queries on the compiled engine, "auto", "basic", "merge" or "backtrack" (SASE+ 2008 §5.2).
    run_limit: the most partial matches that a partition may have at once, or sequences that one event may complete.
    memory_limit: how much the matches, buffers and results of a call may hold, in bytes or as a text like "2 GB"; by
        default half of the memory that the process may use. On Spark it is the limit of a task.
    match_limit: the most matches of a call; on Spark, of a task; on a stream, of a piece of up to 262,144 events that a
        bucket takes in a micro-batch.
    time_limit: the most seconds that a call may take, compilation included; on Spark, that a task may take for a piece
        of its work. A call that passes one of these limits raises a LimitError, which says what grew and how far the
        call came.
    plan: hints for SASE queries, by name, such as {"operators": "nfa"} or {"scan": "ais"}; see docs/plans.md.
    statistics: {"events": {type: count}, "distinct": {attribute: count}}, used to choose a plan. For tables in this
        process they are measured on a sample.
    threads: how many threads match a large table in this process; by default as many as it may use cores. The rows and
        their order do not depend on it. A task on Spark has one.
    """

    name: str = "auto"
    _: KW_ONLY
    algorithm: str = "auto"
    run_limit: int = DEFAULT_RUN_LIMIT
    memory_limit: int | str | None = None
    match_limit: int | None = None
    time_limit: float | None = None
    plan: Mapping[str, str] | Hints | None = None
    statistics: Mapping[str, Mapping[str, float]] | Statistics | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        checked_choice("engine", self.name, ENGINES)
        checked_choice("algorithm", self.algorithm, ALGORITHMS)
        checked = {
            "run_limit": min(checked_count("run_limit", self.run_limit), MOST_RUNS),
            "memory_limit": checked_memory(self.memory_limit),
            "match_limit": None if self.match_limit is None else checked_count("match_limit", self.match_limit),
            "time_limit": checked_seconds(self.time_limit),
            "plan": checked_hints(self.plan),
            "statistics": checked_statistics(self.statistics),
            "threads": None if self.threads is None else checked_count("threads", self.threads),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def limits(self) -> Limits:
        assert not isinstance(self.memory_limit, str)
        return Limits(self.memory_limit, self.match_limit, self.time_limit)

    @property
    def hints(self) -> Hints:
        return checked_hints(self.plan)

    @property
    def known(self) -> Statistics | None:
        """The statistics that were given."""
        return checked_statistics(self.statistics)


def usable_cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


USUAL_ENGINE = EngineOptions()


def engine_options(given: EngineOptions | str | None) -> EngineOptions:
    """The options that the argument `engine` says: None is not given, and a text is an engine's name."""
    match given:
        case None:
            return USUAL_ENGINE
        case EngineOptions():
            return given
        case str():
            return EngineOptions(given)
    raise UnsupportedError(
        f"engine is the name of an engine or a kleene.EngineOptions, but {shown(given)} was given",
        hint="Write: engine='compiled' or engine=kleene.EngineOptions('compiled', memory_limit='2 GB').",
    )

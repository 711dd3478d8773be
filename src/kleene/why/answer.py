"""The whole answer: readable as text, and as Arrow tables whose rows can be joined with the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from kleene.visible import visible
from kleene.why.counts import Counts
from kleene.why.findings import Findings
from kleene.why.model import Count, Match, NearMiss, PredicateCount, Run
from kleene.why.question import Question
from kleene.why.scope import Looked
from kleene.why.tables import ending_table, match_table, near_miss_table, predicate_table, state_table, step_table
from kleene.why.text import answer_text


@dataclass(frozen=True, slots=True)
class Why:
    """What became of the events: counts first, then what nearly matched, then the runs that were asked for.

    `print` shows all of it. `summary`, `states`, `endings`, `near_misses`, `steps` and `matches` are Arrow tables. What
    was left out, because it would be too much, stands in `notes`.
    """

    query: str
    events: int
    partitions: int
    runs_followed: int
    predicates: tuple[PredicateCount, ...]
    reached: tuple[Count, ...]
    ended: tuple[Count, ...]
    misses: tuple[NearMiss, ...]
    runs: tuple[Run, ...]
    found: tuple[Match, ...]
    notes: tuple[str, ...] = ()
    is_combination: bool = False
    has_runs: bool = True  # whether runs have steps to tell: some events were asked for

    def __str__(self) -> str:
        return visible(answer_text(self), keep="\n")

    @property
    def summary(self) -> pa.Table:
        """For each variable and each of its predicates, how many events passed, and how many runs it stopped."""
        return predicate_table(self.predicates)

    @property
    def states(self) -> pa.Table:
        """How many runs reached each state."""
        return state_table(self.reached)

    @property
    def endings(self) -> pa.Table:
        """How runs ended, and how many did so."""
        return ending_table(self.ended)

    @property
    def near_misses(self) -> pa.Table:
        """Runs that failed by one thing only; those that would have been matches come first."""
        return near_miss_table(self.misses)

    @property
    def steps(self) -> pa.Table:
        """The runs that were asked for, event by event."""
        return step_table(self.runs)

    @property
    def matches(self) -> pa.Table:
        """The matches among the events that were looked at: a row for each event that they selected."""
        return match_table(self.found)


def answer_of(
    text: str,
    counts: Counts,
    looked: Looked,
    findings: Findings,
    runs: tuple[Run, ...],
    notes: Sequence[str],
    question: Question,
) -> Why:
    """The answer of a walk; `text` is the query."""
    return Why(
        text,
        counts.events,
        len(looked.partitions),
        counts.runs,
        counts.predicates(),
        counts.states(),
        counts.endings(),
        tuple(findings.nearest()),
        runs,
        tuple(findings.matches),
        tuple(notes),
        has_runs=question.is_about_some,
    )

"""Which plan runs a query: sequence operators or runs, and among the algorithms of each."""

from __future__ import annotations

from collections.abc import Iterable

from kleene.analysis.analyzed import AnalyzedQuery, Component, Conjunct
from kleene.errors import UnsupportedError
from kleene.ir.may_fail import may_fail
from kleene.ir.options import Strategy, WindowUnit
from kleene.ir.text import expression_text
from kleene.plan.cost import cheaper_runs
from kleene.plan.operators import Facts, Pipeline, basic_pipeline, conjuncts_of, predicates_of, run_pipeline
from kleene.plan.optimizer import optimized


def choose_pipeline(facts: Facts, algorithm: str, mode: str, columns: Iterable[str] = ()) -> Pipeline:
    """The plan for a query, with the reasons for it; an error if what was asked for cannot be.

    >>> _, facts = planned("EVENT SEQ(A a, B b) WHERE [x]")
    >>> choose_pipeline(facts, "auto", "verbose").notes[0]
    'operators: sequence, since the pattern has no Kleene plus and any event may be passed over'
    >>> _, facts = planned("EVENT SEQ(A+ a[], B b) WHERE [x]")
    >>> choose_pipeline(facts, "auto", "verbose").notes[0]
    "operators: nfa, since 'a' is a Kleene plus"
    """
    columns, wanted = tuple(columns), facts.hints.operators
    asked = wanted == "sequence" or _asks_for_sequences(facts)
    reason = why_not_sequences(facts.query) or _why_runs_are_meant(algorithm, mode, asked)
    if asked:
        if reason is not None:
            raise UnsupportedError(
                f"sequence operators cannot run this query: {reason}",
                hint="For this query operators can be: 'nfa'. Leave out the hints for sequence operators.",
            )
        return _sequence(facts, columns, "as requested")
    if wanted is None:
        reason = reason or _why_rather_runs(facts)
        if reason is None:
            why = "since the pattern has no Kleene plus and any event may be passed over"
            return _sequence(facts, columns, why)
    chosen, why = choose_algorithm(facts.query, algorithm)
    runs = optimized(run_pipeline(facts.query, chosen, columns), facts)
    operators = "as requested" if wanted == "nfa" else f"since {reason}"
    return _noted(runs, f"operators: nfa, {operators}", f"runs: {chosen}, {why}")


def _sequence(facts: Facts, columns: Iterable[str], why: str) -> Pipeline:
    return _noted(optimized(basic_pipeline(facts.query, columns), facts), f"operators: sequence, {why}")


def _noted(plan: Pipeline, *notes: str) -> Pipeline:
    return Pipeline(plan.operators, plan.tests, (*notes, *plan.notes), plan.warnings)


def _asks_for_sequences(facts: Facts) -> bool:
    """Whether a hint was given that means something for sequence operators only."""
    return any(name not in ("operators", "negation") for name in facts.hints.given())


def why_not_sequences(query: AnalyzedQuery) -> str | None:
    """What the query has that sequence operators have no meaning for: a clause that fits after "since …"."""
    for component in query.components:
        if component.is_kleene:
            return f"'{component.name}' is a Kleene plus"
    if query.strategy is not Strategy.SKIP_TILL_ANY_MATCH:
        return f"under {query.strategy.value} a match depends on the events that are passed over"
    return None


def _why_runs_are_meant(algorithm: str, mode: str, asked: bool) -> str | None:
    if algorithm != "auto":
        return f"algorithm='{algorithm}' asks for runs"
    if mode == "compressed":
        return "compressed output is made from the match buffer that runs share"
    if mode == "totals" and not asked:
        return "aggregates over all matches are made from the match buffer that runs share"
    return None


def _why_rather_runs(facts: Facts) -> str | None:
    """Why runs are the better choice for a query that sequence operators could run."""
    query = facts.query
    if query.window is not None and query.window.unit is WindowUnit.EVENTS and query.partition_by:
        return "a window of events is counted in each partition, so it cannot prune stacks"
    for conjunct in conjuncts_of(query):
        if may_fail(conjunct.expression, facts.statistics.ranges):
            shown = expression_text(conjunct.expression)
            return f"{shown} can fail, and the walk back from the last event might miss that"
    return _why_untied(facts) or cheaper_runs(facts)


def _why_untied(facts: Facts) -> str | None:
    """Without statistics a walk back is not risked that predicates between earlier events alone would cut short."""
    query = facts.query
    if facts.statistics.events or query.partition_by or len(query.components) < 3:
        return None
    last = len(query.components) - 1
    between = [item for item in predicates_of(query) if not item.is_simple]
    if not between or any(last in item.components for item in between):
        return None
    return "nothing ties the last event to those before it, and no statistics say how many there are"


def choose_algorithm(query: AnalyzedQuery, algorithm: str) -> tuple[str, str]:
    """How runs are followed (SASE+ 2008 §5.2), and why."""
    walked = what_it_walks(query)
    if algorithm != "auto":
        if algorithm in ("merge", "backtrack") and walked is not None:
            raise UnsupportedError(
                f"the algorithm '{algorithm}' cannot be used here: a predicate of '{walked}' looks at every event "
                "of a Kleene variable",
                hint="Use algorithm='basic' or 'auto'.",
            )
        return algorithm, "as requested"
    if walked is not None:
        return (
            "basic",
            f"since a predicate of '{walked}' looks at every event of a Kleene variable",
        )
    return "merge", "since runs in the same state go on as one if they agree in all values that are still read"


def what_it_walks(query: AnalyzedQuery) -> str | None:
    """A predicate that looks at every event of an earlier Kleene variable, which a merged run cannot tell apart."""
    for component in query.components:
        for conjunct in (*component.begin, *component.take, *component.complete):
            if walked_by(conjunct, component, conjunct in component.complete):
                return component.name
    return None


def walked_by(conjunct: Conjunct, own: Component, is_complete: bool) -> list[tuple[str, int]]:
    return [(name, first) for name, first in conjunct.indexed if name != own.name or is_complete]

"""Predicates that contradict each other leave nothing to look for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kleene.analysis.analyzed import Conjunct
from kleene.ir.may_fail import may_fail
from kleene.plan.operators import Facts, NegationFilter, Nothing, Pipeline, RunScan, Selection, Transformation
from kleene.plan.unsatisfiable import why_never


def find_contradictions(plan: Pipeline, facts: Facts) -> Pipeline:
    """The empty plan, with a warning, where no events can satisfy all predicates; negations of nothing are left out.

    >>> plan, facts = planned("EVENT SEQ(A a, B b) WHERE a.x > 5 AND a.x < 3")
    >>> after = find_contradictions(plan, facts)
    >>> print(after)
    TF transformation
    └─ ∅ nothing
          a.x > 5 and a.x < 3 cannot both hold
    >>> after.warnings
    ('the query has no matches: a.x > 5 and a.x < 3 cannot both hold',)
    """
    if any(may_fail(item.expression) for item in _positive_conjuncts(plan)):
        return plan  # whoever asks is told of the error, not that there is nothing
    for part in _needed_together(plan):
        reason = why_never([item.expression for item in part])
        if reason is not None:
            empty = replace(plan, operators=(), warnings=(*plan.warnings, f"the query has no matches: {reason}"))
            return empty.put(Nothing(reason), plan.get(Transformation))
    return _without_vain_negations(plan)


def _positive_conjuncts(plan: Pipeline) -> Iterator[Conjunct]:
    """All that is said of positive components."""
    selection, scan = plan.find(Selection), plan.find(RunScan)
    if selection is not None:
        yield from (item.conjunct for item in selection.predicates)
    if scan is not None:
        for item in scan.components:
            yield from (*item.begin, *item.take, *item.complete)


def _needed_together(plan: Pipeline) -> list[list[Conjunct]]:
    """Lists of conjuncts that must hold together, for the same events, for there to be a match."""
    selection, scan = plan.find(Selection), plan.find(RunScan)
    if selection is not None:
        return [[item.conjunct for item in selection.predicates]]
    if scan is None:
        return []
    return [_said_of_some_event([*item.begin, *item.complete]) for item in scan.components]


def _said_of_some_event(conjuncts: Iterable[Conjunct]) -> list[Conjunct]:
    """Those that do not hold for want of events: a Kleene variable need not have one after its first."""
    return [item for item in conjuncts if all(first == 0 for _, first in item.indexed)]


def _without_vain_negations(plan: Pipeline) -> Pipeline:
    late, kept = plan.find(NegationFilter), []
    if late is None:
        return plan
    for negation in late.negations:
        expressions = [item.expression for item in _said_of_some_event(negation.predicates)]
        reason = None if any(map(may_fail, expressions)) else why_never(expressions)
        if reason is None:
            kept.append(negation)
        else:
            plan = replace(plan, warnings=(*plan.warnings, f"a negation forbids nothing: {reason}"))
    return plan if len(kept) == len(late.negations) else plan.put(replace(late, negations=tuple(kept)))

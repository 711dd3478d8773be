"""Every predicate of a plan, wherever it stands; for plans in which nothing was pushed yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from kleene.analysis.analyzed import AnalyzedQuery, Component, Conjunct
from kleene.plan.operators import NegationFilter, Pipeline, RunScan, Selection

Change = Callable[[Conjunct], Conjunct | None]
"""What becomes of a conjunct; None if it always holds and is not needed."""


def with_conjuncts(plan: Pipeline, change: Change) -> Pipeline:
    """The plan with every conjunct changed."""
    selection, scan, negation = plan.find(Selection), plan.find(RunScan), plan.find(NegationFilter)
    if selection is not None:
        changed = ((item, change(item.conjunct)) for item in selection.predicates)
        kept = tuple(replace(item, conjunct=new) for item, new in changed if new is not None)
        plan = plan.put(replace(selection, predicates=kept))
    if scan is not None:
        plan = plan.put(replace(scan, components=tuple(_changed(item, change) for item in scan.components)))
    if negation is not None:
        negations = tuple(replace(item, predicates=_kept(item.predicates, change)) for item in negation.negations)
        plan = plan.put(replace(negation, negations=negations))
    return plan


def _changed(component: Component, change: Change) -> Component:
    return replace(
        component,
        begin=_kept(component.begin, change),
        take=_kept(component.take, change),
        complete=_kept(component.complete, change),
    )


def _kept(conjuncts: Iterable[Conjunct], change: Change) -> tuple[Conjunct, ...]:
    return tuple(new for new in map(change, conjuncts) if new is not None)


def conjuncts_of(query: AnalyzedQuery) -> Iterator[Conjunct]:
    """What the query says of first events and of events that negations forbid."""
    for component in query.components:
        yield from component.begin
    for negation in query.negations:
        yield from negation.predicates


def positive_conjuncts(plan: Pipeline) -> Iterator[Conjunct]:
    """All that is said of positive components."""
    selection, scan = plan.find(Selection), plan.find(RunScan)
    if selection is not None:
        yield from (item.conjunct for item in selection.predicates)
    if scan is not None:
        for item in scan.components:
            yield from (*item.begin, *item.take, *item.complete)


def needed_together(plan: Pipeline) -> list[list[Conjunct]]:
    """Lists of conjuncts that must hold together, for the same events, for there to be a match."""
    selection, scan = plan.find(Selection), plan.find(RunScan)
    if selection is not None:
        return [[item.conjunct for item in selection.predicates]]
    if scan is None:
        return []
    return [said_of_some_event([*item.begin, *item.complete]) for item in scan.components]


def said_of_some_event(conjuncts: Iterable[Conjunct]) -> list[Conjunct]:
    """Those that do not hold for want of events: a Kleene variable need not have one after its first."""
    return [item for item in conjuncts if all(first == 0 for _, first in item.indexed)]

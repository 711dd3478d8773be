"""A negation is judged before the match is whole, where that saves work (the paper suggests it in §5.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kleene.analysis.analyzed import AnalyzedQuery, Conjunct, NegativeComponent
from kleene.ir.may_fail import may_fail
from kleene.ir.options import Strategy
from kleene.plan.cost import expected_partners
from kleene.plan.operators import Facts, NegationFilter, Pipeline, RunScan, SequenceConstruction, numbers_of, spoken_of

_CONTIGUOUS = (Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY)


def push_negation(plan: Pipeline, facts: Facts) -> Pipeline:
    """The plan with negations in construction, if they can be judged before its walk has come to the first component.

    It saves work where what is left to bind has several partners; where it has fewer than one, a negation is judged
    for less by judging finished sequences. Of that statistics tell; without them it is pushed.

    Under runs, a negation that one event alone decides ends runs when the event comes.

    >>> plan, facts = planned("EVENT SEQ(A a, B b, !(C c), D d) WHERE [x] WITHIN 10")
    >>> print(push_negation(plan, facts))
    TF transformation
    └─ WD window
       │  within 10
       └─ σ selection
          │  [x]
          └─ SC← sequence construction
             │  !(C c)
             │  forbidden events are found by going through all such events
             └─ SS→ sequence scan
                   (A a, B b, D d)
                   runtime stack, a cell for every event
    """
    negation = plan.find(NegationFilter)
    if negation is None or facts.hints.negation_place == "late":
        return plan
    runs, construction = plan.find(RunScan), plan.find(SequenceConstruction)
    if runs is not None:
        return _into_runs(plan, negation, runs, facts)
    assert construction is not None
    pushed = tuple(item for item in negation.negations if _saves_work(item, facts))
    kept = tuple(item for item in negation.negations if item not in pushed)
    return plan.put(replace(construction, negations=pushed, access=negation.access), replace(negation, negations=kept))


def _saves_work(negation: NegativeComponent, facts: Facts) -> bool:
    component = judged_at(negation, facts.query)
    if component <= 0 or facts.hints.negation_place == "construction":
        return component > 0
    to_come = expected_partners(facts, component)
    return to_come is None or to_come > 1


def judged_at(negation: NegativeComponent, query: AnalyzedQuery) -> int:
    """The component that, walking back, must be bound before the negation can be judged; -1: after all of them."""
    if not 0 < negation.gap < len(query.components):
        return -1
    numbers = numbers_of(query)
    return min([negation.gap - 1, *(numbers[name] for name in spoken_of(negation.predicates) if name in numbers)])


def _into_runs(plan: Pipeline, negation: NegationFilter, runs: RunScan, facts: Facts) -> Pipeline:
    in_middle = [item for item in negation.negations if 0 < item.gap < len(runs.components)]
    if facts.query.strategy in _CONTIGUOUS:
        # Nothing lies between neighbours, so that nothing can be forbidden there.
        return plan.put(
            replace(negation, negations=tuple(item for item in negation.negations if item not in in_middle))
        )
    pushed: list[NegativeComponent] = []
    for item in negation.negations:
        if _may_fail(item.predicates, facts):
            break  # an error in it counts for matches that those behind it would forbid
        later = (part for c in runs.components[item.gap :] for part in (c.begin, c.take, c.complete))
        if any(_may_fail(part, facts) for part in later):
            continue  # an error there counts for runs that it would end
        if item in in_middle and {*spoken_of(item.predicates)} <= {item.name}:  # one event alone decides it
            pushed.append(item)
    kept = tuple(item for item in negation.negations if item not in pushed)
    return plan.put(replace(runs, negations=tuple(pushed)), replace(negation, negations=kept))


def _may_fail(conjuncts: Iterable[Conjunct], facts: Facts) -> bool:
    return any(may_fail(item.expression, facts.statistics.ranges) for item in conjuncts)

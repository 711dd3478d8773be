"""Events that negations forbid are looked up by time in an index whose parts go when the window has passed (§3.3)."""

from __future__ import annotations

from dataclasses import replace

from kleene.plan.operators import Facts, NegationFilter, Pipeline


def index_negation(plan: Pipeline, facts: Facts) -> Pipeline:
    """The plan with an index for its negations.

    >>> plan, facts = planned("EVENT SEQ(A a, !(B b), C c) WHERE b.x > a.x")
    >>> print(index_negation(plan, facts).get(NegationFilter))
    NegationFilter
       forbidden events are found by a time-partitioned index
       !(B b) with b.x > a.x
    """
    negation = plan.find(NegationFilter)
    if negation is None:
        return plan
    return plan.put(replace(negation, access=facts.hints.negation or "index"))

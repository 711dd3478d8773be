"""Predicates that contradict each other leave nothing to look for."""

from __future__ import annotations

from dataclasses import replace

from kleene.ir.may_fail import may_fail
from kleene.plan.operators import Facts, NegationFilter, Nothing, Pipeline, Transformation
from kleene.plan.predicates import needed_together, positive_conjuncts, said_of_some_event
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
    if any(may_fail(item.expression) for item in positive_conjuncts(plan)):
        return plan  # whoever asks is told of the error, not that there is nothing
    for part in needed_together(plan):
        reason = why_never([item.expression for item in part])
        if reason is not None:
            empty = replace(plan, operators=(), warnings=(*plan.warnings, f"the query has no matches: {reason}"))
            return empty.put(Nothing(reason), plan.get(Transformation))
    return _without_vain_negations(plan)


def _without_vain_negations(plan: Pipeline) -> Pipeline:
    late, kept = plan.find(NegationFilter), []
    if late is None:
        return plan
    for negation in late.negations:
        expressions = [item.expression for item in said_of_some_event(negation.predicates)]
        reason = None if any(map(may_fail, expressions)) else why_never(expressions)
        if reason is None:
            kept.append(negation)
        else:
            plan = replace(plan, warnings=(*plan.warnings, f"a negation forbids nothing: {reason}"))
    return plan if len(kept) == len(late.negations) else plan.put(replace(late, negations=tuple(kept)))

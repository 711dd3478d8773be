"""Predicates that compare events are judged as soon as all of their events are bound."""

from __future__ import annotations

from dataclasses import replace

from kleene.plan.operators import Facts, Pipeline, Selection, SequenceConstruction


def push_parameterized_predicates(plan: Pipeline, facts: Facts) -> Pipeline:
    """The plan with predicates about several events in construction, which binds events from the last to the first.

    >>> plan, facts = planned("EVENT SEQ(A a, B b, C c) WHERE b.x < c.x AND a.x < c.x")
    >>> print(push_parameterized_predicates(plan, facts))
    TF transformation
    └─ SC← sequence construction
       │  b.x < c.x
       │  a.x < c.x
       └─ SS→ sequence scan
             (A a, B b, C c)
             runtime stack, a cell for every event
    """
    selection = plan.find(Selection)
    if selection is None or facts.hints.parameterized_predicates == "late":
        return plan
    moved = tuple(item for item in selection.predicates if not item.is_simple)
    kept = tuple(item for item in selection.predicates if item.is_simple)
    construction = plan.get(SequenceConstruction)
    return plan.put(
        replace(construction, predicates=(*construction.predicates, *moved)), replace(selection, predicates=kept)
    )

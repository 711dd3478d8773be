"""Predicates about one event are judged when the event is read (§4.2.2)."""

from __future__ import annotations

from dataclasses import replace

from kleene.plan.operators import Facts, Pipeline, Selection, SequenceScan


def push_simple_predicates(plan: Pipeline, facts: Facts) -> Pipeline:
    """The plan with predicates about one event in the scan.

    >>> plan, facts = planned("EVENT SEQ(A a, B b) WHERE a.x > 5 AND a.x < b.x")
    >>> after = push_simple_predicates(plan, facts)
    >>> print(plan.get(SequenceScan), plan.get(Selection), sep="\\n")
    SequenceScan
       (A a, B b)
       runtime stack, a cell for every event
    Selection
       a.x > 5
       a.x < b.x
    >>> print(after.get(SequenceScan), after.get(Selection), sep="\\n")
    SequenceScan
       (A a, B b)
       runtime stack, a cell for every event
       a.x > 5
    Selection
       a.x < b.x
    """
    selection = plan.find(Selection)
    if selection is None or facts.hints.simple_predicates == "late":
        return plan
    simple = tuple(item for item in selection.predicates if item.is_simple)
    others = tuple(item for item in selection.predicates if not item.is_simple)
    scan = plan.get(SequenceScan)
    return plan.put(replace(scan, predicates=(*scan.predicates, *simple)), replace(selection, predicates=others))

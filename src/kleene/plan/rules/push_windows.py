"""The window bounds what the scan keeps and how far construction walks back (§4.3)."""

from __future__ import annotations

from dataclasses import replace

from kleene.plan.operators import Facts, Pipeline, SequenceConstruction, SequenceScan, WindowFilter


def push_windows(plan: Pipeline, facts: Facts) -> Pipeline:
    """The plan with the window in scan and construction, or where the hint wants it.

    >>> plan, facts = planned("EVENT SEQ(A a, B b) WITHIN 100")
    >>> print(push_windows(plan, facts))
    TF transformation
    └─ SC← sequence construction
       │  within 100: the walk back ends there
       └─ SS→ sequence scan
             (A a, B b)
             runtime stack, a cell for every event
             within 100: events out of reach are not kept
    """
    late = plan.find(WindowFilter)
    if late is None or facts.hints.window == "late":
        return plan
    plan = plan.drop(WindowFilter).put(replace(plan.get(SequenceConstruction), window=late.window))
    if facts.hints.window == "construction":
        return plan
    return plan.put(replace(plan.get(SequenceScan), window=late.window))

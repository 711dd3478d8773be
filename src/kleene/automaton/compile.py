"""A plan to the automaton that runs it. EXPLAIN shows it, and the engines are compiled from it."""

from __future__ import annotations

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.automaton.model import Automaton
from kleene.automaton.nfa import nfa_of
from kleene.automaton.positions import positions_of
from kleene.plan.operators import RunScan
from kleene.plan.plan import Plan
from kleene.plan.running import running_query


def automaton_of(plan: Plan) -> Automaton | None:
    """The automaton of the plan; None where sequences are constructed from stacks, or nothing can match."""
    if isinstance(plan.query, AnalyzedRowPattern):
        return positions_of(plan.query)
    assert plan.pipeline is not None
    if plan.pipeline.find(RunScan) is None:
        return None
    return nfa_of(running_query(plan.query, plan.pipeline))

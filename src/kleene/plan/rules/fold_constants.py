"""Constants are computed once, and what always holds is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from kleene.analysis.analyzed import Component, Conjunct
from kleene.errors import ExecutionError
from kleene.ir import expr as ir
from kleene.ir.evaluate import evaluate
from kleene.ir.may_fail import may_fail
from kleene.plan.operators import Facts, NegationFilter, Pipeline, RunScan, Selection
from kleene.schema import BOOLEAN

Change = Callable[[Conjunct], Conjunct | None]
"""What becomes of a conjunct; None if it always holds and is not needed."""
_NO_EVENTS: Any = None
_DEPENDENT = (ir.Attribute, ir.Events, ir.Length, ir.Aggregate, ir.PythonCall)


def fold_constants(plan: Pipeline, facts: Facts) -> Pipeline:
    """The plan with constant parts of predicates computed.

    >>> plan, facts = planned("EVENT SEQ(A a, B b) WHERE a.x > 2 + 3 AND 1 < 2")
    >>> print(plan)
    TF transformation
    └─ σ selection
       │  a.x > 2 + 3
       │  1 < 2
       └─ SC← sequence construction
          └─ SS→ sequence scan
                (A a, B b)
                runtime stack, a cell for every event
    >>> print(fold_constants(plan, facts))
    TF transformation
    └─ σ selection
       │  a.x > 5
       └─ SC← sequence construction
          └─ SS→ sequence scan
                (A a, B b)
                runtime stack, a cell for every event
    """
    return _with_conjuncts(plan, _folded_conjunct)


def _with_conjuncts(plan: Pipeline, change: Change) -> Pipeline:
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


def _folded_conjunct(conjunct: Conjunct) -> Conjunct | None:
    expression = _folded(conjunct.expression)
    if isinstance(expression, ir.Or) and not may_fail(expression):
        expression = _without_constants(expression)
    if isinstance(expression, ir.Literal) and expression.value is True:
        return None
    return conjunct if expression is conjunct.expression else replace(conjunct, expression=expression)


def _without_constants(alternatives: ir.Or) -> ir.Expr:
    """A condition that must be TRUE: alternatives that never are count for nothing, one that always is decides."""
    constants = [item for item in alternatives.operands if isinstance(item, ir.Literal)]
    if any(item.value is True for item in constants):
        return ir.Literal(True, BOOLEAN, type=BOOLEAN, span=alternatives.span)
    others = tuple(item for item in alternatives.operands if item not in constants)
    if not others:
        return ir.Literal(False, BOOLEAN, type=BOOLEAN, span=alternatives.span)
    return others[0] if len(others) == 1 else replace(alternatives, operands=others) if constants else alternatives


def _folded(expression: ir.Expr) -> ir.Expr:
    if isinstance(expression, ir.Literal):
        return expression
    if expression.type is None or any(isinstance(node, _DEPENDENT) for node in ir.walk(expression)):
        return ir.with_children(expression, _folded)
    try:
        value = evaluate(expression, _NO_EVENTS)
    except ExecutionError:
        return expression  # it is an error only where it is needed
    return ir.Literal(value, expression.type, type=expression.type, span=expression.span)

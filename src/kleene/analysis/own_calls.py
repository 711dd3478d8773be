"""Where functions and aggregates of the user's own may be called, and what must be known of them there."""

from __future__ import annotations

from kleene.analysis.scope import Scope
from kleene.analysis.value_types import typed
from kleene.errors import KleeneError, printable
from kleene.ir import expr as ir
from kleene.ir.calls import is_own
from kleene.ir.own import ANNOTATIONS
from kleene.schema import UNKNOWN


def output(expression: ir.Expr, scope: Scope) -> ir.Expr:
    """The expression, typed, as a value of a match: the types of what it calls must be known."""
    found = refuse_vectorized(typed(expression, scope), scope)
    for node in ir.walk(found):
        if is_own(node) and node.type == UNKNOWN:
            called = node.name if isinstance(node, ir.PythonCall) else getattr(node, "function", "")
            kind = "function" if isinstance(node, ir.PythonCall) else "aggregate"
            raise scope.fail(
                f"the {kind} '{printable(called)}' can only be called in predicates: its type is unknown",
                node.span,
                f"Say it with an annotation, -> float; it may be one of {ANNOTATIONS}."
                + ("" if kind == "aggregate" else " Or return its arguments, and call it on the result."),
            )
    return found


def check_vectorized(predicate: ir.Expr, scope: Scope, elsewhere: tuple[type[ir.Expr], ...]) -> None:
    """An error if the predicate calls a vectorized function, but is about several events; those never stand alone."""
    nodes = list(ir.walk(predicate))
    call = next((node for node in nodes if isinstance(node, ir.PythonCall) and node.vectorized), None)
    if call is None:
        return
    events = {(node.variable, node.position) for node in nodes if isinstance(node, ir.Attribute)}
    if len(events) > 1 or any(isinstance(node, elsewhere) for node in nodes):
        raise not_for_one_event(call, scope)
    if not any(isinstance(node, ir.Attribute) for node in ir.walk(call)):
        raise not_for_one_event(call, scope)


def not_for_one_event(call: ir.PythonCall, scope: Scope) -> KleeneError:
    return scope.fail(
        f"the vectorized function '{printable(call.name)}' can only be called in predicates about one event",
        call.span,
        "It takes whole columns of events. For values of several events, or of a match, give a function of plain "
        "values: kleene.function(f) without vectorized=True.",
    )


def refuse_vectorized(expression: ir.Expr, scope: Scope) -> ir.Expr:
    """The expression, which is about a match and not about one event."""
    for node in ir.walk(expression):
        if isinstance(node, ir.PythonCall) and node.vectorized:
            raise not_for_one_event(node, scope)
    return expression

"""Which expressions can be errors."""

from __future__ import annotations

from kleene.ir import expr as ir
from kleene.schema import FLOAT


def may_fail(expression: ir.Expr) -> bool:
    """Whether computing the expression can be an error; it says yes where it is not sure."""
    for node in ir.walk(expression):
        match node:
            case ir.Arithmetic(operator="+" | "-" | "*") | ir.Negate() if node.type != FLOAT:
                return True
            case ir.Cast(implicit=False) | ir.Function(name="abs" | "floor" | "ceil" | "round"):
                return True
            case ir.Aggregate(function="sum") if node.type != FLOAT:
                return True
    return False

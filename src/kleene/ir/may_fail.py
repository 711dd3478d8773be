"""Which expressions can be errors."""

from __future__ import annotations

from collections.abc import Mapping

from kleene.ir import expr as ir
from kleene.ir.functions import times
from kleene.schema import BOOLEAN, FLOAT, INTEGER, LARGEST_INTEGER, SMALLEST_INTEGER, STRING, DecimalType

Range = tuple[int, int]
_MAY_FAIL = frozenset(
    {
        *("floor", "ceil", "round", "lpad", "rpad", "split_part", "regexp_like"),
        *("element_at", "map", "map_from_arrays"),
        *("date_add", "date_diff", "date_part", "date_sub", "date_trunc"),
        *(times.OF_DATE | times.OF_CLOCK),
    }
)
"""Functions that have no value for some arguments: dates outside of the years 1 to 9999 have no parts."""


def may_fail(expression: ir.Expr, ranges: Mapping[str, Range] | None = None) -> bool:
    """Whether computing the expression can be an error; it says yes where it is not sure.

    `ranges` has the least and the greatest value of attributes: of sums and products of those it can be sure.
    """
    for node in ir.walk(expression):
        match node:
            case ir.Arithmetic(operator="+" | "-" | "*") | ir.Negate() if node.type != FLOAT:
                if ranges is None or _range(node, ranges) is None:
                    return True
            case ir.Cast(tries=False) if _can_be_wrong(node):
                return True
            case ir.Function(name="regexp_like", arguments=(_, ir.Literal())):
                pass  # the pattern has been looked at
            case ir.Function(name=name) if name in _MAY_FAIL:
                return True
            case ir.Function(name="abs") if node.type != FLOAT:
                return True
            case ir.Aggregate(function="sum") if node.type != FLOAT:
                return True
            case ir.PythonCall():
                return True
            case ir.Aggregate(own=own) if own is not None:
                return True
    return False


def _can_be_wrong(cast: ir.Cast) -> bool:
    """What analysis put in, to compare or to compute, is only wrong where it reads a text."""
    return not _always_converts(cast) if not cast.implicit else cast.operand.type == STRING and cast.to != STRING


def _always_converts(cast: ir.Cast) -> bool:
    """Whether every value has one in the other type; a decimal may be too wide for its digits."""
    source, target = cast.operand.type, cast.to
    if isinstance(target, DecimalType):
        return False
    return source == target or (source in (INTEGER, FLOAT, BOOLEAN) and target in (FLOAT, BOOLEAN))


def _range(expression: ir.Expr, ranges: Mapping[str, Range]) -> Range | None:
    """The least and the greatest value of a whole number; None if it is not known, or beyond 64 bits."""
    match expression:
        case ir.Literal(value=int() as value) if expression.type == INTEGER:
            return value, value
        case ir.Attribute(name=name) if expression.type == INTEGER:
            return ranges.get(name)
        case ir.Negate(operand=operand):
            found = _range(operand, ranges)
            return None if found is None else _within(-found[1], -found[0])
        case ir.Arithmetic(operator=operator, left=left, right=right) if expression.type == INTEGER:
            sides = _range(left, ranges), _range(right, ranges)
            return None if sides[0] is None or sides[1] is None else _combined(operator, sides[0], sides[1])
    return None


def _combined(operator: str, left: Range, right: Range) -> Range | None:
    match operator:
        case "+":
            return _within(left[0] + right[0], left[1] + right[1])
        case "-":
            return _within(left[0] - right[1], left[1] - right[0])
        case "*":
            products = [one * other for one in left for other in right]
            return _within(min(products), max(products))
    return None


def _within(low: int, high: int) -> Range | None:
    return (low, high) if low >= SMALLEST_INTEGER and high <= LARGEST_INTEGER else None

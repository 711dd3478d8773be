"""Which blocks no event of use can be in, by the bounds of their columns alone.

A condition is weighed for all values between the bounds at once: it may hold for one of them, or it cannot. Where that
is not known, it may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from kleene.engine.column_types import attribute_type
from kleene.engine.events import plain_values
from kleene.errors import KleeneError
from kleene.ir import expr as ir
from kleene.ir.text import expression_text
from kleene.scanning.blocks import Block, Bounds
from kleene.schema import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TimestampType, Type

BoundsOf = Callable[[str], Bounds | None]
"""The bounds of a column of the block at hand."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """The blocks that are read, and those that are not, since no event in them fits the condition."""

    read: tuple[Block, ...]
    left_out: tuple[Block, ...] = ()
    condition: str = ""


def useful_blocks(
    blocks: Sequence[Block], bounds: Callable[[Block, str], Bounds | None], useful: ir.Expr | None
) -> Skipped:
    if useful is None:
        return Skipped(tuple(blocks))
    read = tuple(block for block in blocks if may_hold(useful, partial(bounds, block)))
    is_read = set(read)
    return Skipped(read, tuple(block for block in blocks if block not in is_read), expression_text(useful))


def may_hold(condition: ir.Expr, bounds: BoundsOf) -> bool:
    """Whether the condition may be true of a value between the bounds."""
    match condition:
        case ir.And(operands=operands):
            return all(may_hold(operand, bounds) for operand in operands)
        case ir.Or(operands=operands):
            return any(may_hold(operand, bounds) for operand in operands)
        case ir.IsNull(operand=ir.Attribute(name=name)):
            known = bounds(name)
            return known is None or known.nulls is None or known.nulls > 0
        case ir.In(operand=ir.Attribute() as attribute, choices=choices):
            return any(_may_compare(attribute, "=", choice, bounds) for choice in choices)
        case ir.Comparison(operator=operator, left=ir.Attribute() as attribute, right=ir.Literal() as literal):
            return _may_compare(attribute, operator, literal, bounds)
        case ir.Comparison(operator=operator, left=ir.Literal() as literal, right=ir.Attribute() as attribute):
            return _may_compare(attribute, _TURNED[operator], literal, bounds)
    return True


_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _may_compare(attribute: ir.Attribute, operator: str, other: ir.Expr, bounds: BoundsOf) -> bool:
    if not isinstance(other, ir.Literal) or attribute.type is None or not _compare(attribute.type, other.of_type):
        return True
    if other.value is None:
        return False  # no comparison with NULL is true
    known = bounds(attribute.name)
    if known is None:
        return True
    if known.ends is None:
        return False
    try:
        if attribute_type(known.ends.type) != attribute.type:
            return True
        low, high = plain_values(known.ends, attribute.type, attribute.name)
    except KleeneError:
        return True
    value = other.value
    match operator:
        case "=":
            return bool(low <= value <= high)  # type: ignore[operator]
        case "<":
            return bool(low < value)  # type: ignore[operator]
        case "<=":
            return bool(low <= value)  # type: ignore[operator]
        case ">":
            return bool(high > value)  # type: ignore[operator]
        case ">=":
            return bool(high >= value)  # type: ignore[operator]
    return True


def _compare(one: Type, other: Type) -> bool:
    """Whether plain values of the types compare as the values do."""
    numbers = (INTEGER, FLOAT)
    is_time = isinstance(one, TimestampType) and isinstance(other, TimestampType) and one.unit == other.unit
    return is_time or (one in numbers and other in numbers) or (one == other and one in (STRING, DATE, BOOLEAN))

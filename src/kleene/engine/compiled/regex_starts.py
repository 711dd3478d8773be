"""What predicates of the regular-expression operator read of a match so far, and what that says of many starts at once.

All partial matches that are open took the event before, so Last is the same for all of them. First, and with it Delta,
is fixed when a match begins; Count follows from where it began. The other aggregates change with every event, for each
start in its own way.

>>> from kleene.schema import BOOLEAN, INTEGER
>>> price = ir.Attribute(None, "price", type=INTEGER)
>>> rise = ir.Comparison(">", price, ir.Aggregate("first", price, type=INTEGER), type=BOOLEAN)
>>> possible, certain = bounds_of(rise)
>>> possible.right.function, certain.right.function
('first_low', 'first_high')
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.ir import expr as ir
from kleene.schema import BOOLEAN, DATE, FLOAT, INTEGER, DecimalType, DurationType, TimestampType, Type

_FIXED = ("first", "delta", "count")
LOW, HIGH = "_low", "_high"
"""What is put behind the name of an aggregate that stands for its least or greatest value among several starts."""
_OTHER_END = {LOW: HIGH, HIGH: LOW}


class Starts(Enum):
    """How partial matches that began at different events are kept; the value is how EXPLAIN says it."""

    ONE_PER_STATE = "no predicate depends on where a match began: of each state, only the earliest start is kept"
    IN_BLOCKS = (
        "starts in the same states are tried together, by the least and the greatest First, Delta and Count among them"
    )
    EACH = "each start is tried on its own, so an event costs as much as there are starts"


def starts_of(query: AnalyzedRowPattern) -> Starts:
    conditions = [condition for _, condition in query.conditions]
    if not any(depends_on_start(condition) for condition in conditions) and not _own(query):
        return Starts.ONE_PER_STATE
    if _own(query) or any(bounds_of(condition) is None for condition in conditions):
        return Starts.EACH
    return Starts.IN_BLOCKS


def starts_text(query: AnalyzedRowPattern) -> str:
    """How starts are kept, for EXPLAIN, and why each is tried on its own where that is so."""
    starts = starts_of(query)
    if starts is not Starts.EACH:
        return str(starts.value)
    nodes = [node for _, condition in query.conditions for node in ir.walk(condition)]
    changing = dict.fromkeys(_name(node) for node in [*nodes, *_own(query)] if _changes(node))
    reason = f"{', '.join(changing)} is of its own" if changing else "predicates do not only compare numbers"
    return f"{starts.value} ({reason})"


def _own(query: AnalyzedRowPattern) -> list[ir.Aggregate]:
    expressions = [*(condition for _, condition in query.conditions), *(item.expression for item in query.measures)]
    nodes = (node for expression in expressions for node in ir.walk(expression))
    return [node for node in nodes if isinstance(node, ir.Aggregate) and node.own is not None]


def _changes(node: ir.Expr) -> bool:
    return isinstance(node, ir.Aggregate) and (node.own is not None or node.function not in (*_FIXED, "last"))


def _name(node: ir.Expr) -> str:
    assert isinstance(node, ir.Aggregate)
    if node.own is not None:
        return node.function
    return "Average" if node.function == "avg" else node.function.capitalize()


def depends_on_start(expression: ir.Expr) -> bool:
    """Whether the value can differ between matches that took the same events lately."""
    return any(isinstance(node, ir.Aggregate) and node.function != "last" for node in ir.walk(expression))


# --- bounds ----------------------------------------------------------------------------------------------------------


def bounds_of(condition: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
    """Of many starts: a condition that is TRUE if it may hold for some of them, and one if it holds for all.

    Where FALSE < unknown < TRUE, the first is never less than the condition for a start, and the second never more.
    None where nobody knows such conditions.
    """
    possible, certain = _truth(condition, True), _truth(condition, False)
    return None if possible is None or certain is None else (possible, certain)


def _truth(condition: ir.Expr, is_possible: bool) -> ir.Expr | None:
    if not depends_on_start(condition):
        return condition
    match condition:
        case ir.And(operands=operands) | ir.Or(operands=operands):
            found = [_truth(operand, is_possible) for operand in operands]
            known = tuple(one for one in found if one is not None)
            return replace(condition, operands=known) if len(known) == len(found) else None
        case ir.Not(operand=operand):
            inner = _truth(operand, not is_possible)
            return None if inner is None else replace(condition, operand=inner)
        case ir.Comparison():
            return _comparison(condition, is_possible)
    return None


def _comparison(condition: ir.Comparison, is_possible: bool) -> ir.Expr | None:
    sides = condition.left, condition.right
    if not all(_is_number(side.type) for side in sides):
        return None
    (low, high), (other_low, other_high) = ((_end(side, LOW), _end(side, HIGH)) for side in sides)
    if low is None or high is None or other_low is None or other_high is None:
        return None
    match condition.operator:
        case "<" | "<=":
            left, right = (low, other_high) if is_possible else (high, other_low)
            return replace(condition, left=left, right=right)
        case ">" | ">=":
            left, right = (high, other_low) if is_possible else (low, other_high)
            return replace(condition, left=left, right=right)
        case "=":
            return _equal((low, high), (other_low, other_high), is_possible)
        case "!=":
            equal = _equal((low, high), (other_low, other_high), not is_possible)
            return ir.Not(equal, type=BOOLEAN)
    return None


def _equal(one: tuple[ir.Expr, ir.Expr], other: tuple[ir.Expr, ir.Expr], is_possible: bool) -> ir.Expr:
    """They may be equal if their ranges overlap, and are if both have the same one value."""
    near, far = (0, 1) if is_possible else (1, 0)
    pairs = ((one[near], other[far]), (other[near], one[far]))
    return ir.And(tuple(ir.Comparison("<=", left, right, type=BOOLEAN) for left, right in pairs), type=BOOLEAN)


def _end(value: ir.Expr, end: str) -> ir.Expr | None:
    """The least or the greatest that the value is for any start; None where nobody knows.

    Rounding keeps the order of floats, and a sum that goes too far does so at one of its ends first.
    """
    if not depends_on_start(value):
        return value
    match value:
        case ir.Aggregate(function=function) if function in _FIXED and value.own is None:
            return replace(value, function=function + end)
        case ir.Negate(operand=operand):
            inner = _end(operand, _OTHER_END[end])
            return None if inner is None else replace(value, operand=inner)
        case ir.Cast(operand=operand, to=to, implicit=True) if _is_number(operand.type) and _is_number(to):
            inner = _end(operand, end)
            return None if inner is None else replace(value, operand=inner)
        case ir.Arithmetic(operator="+" | "-" as operator, left=left, right=right):
            sides = _end(left, end), _end(right, end if operator == "+" else _OTHER_END[end])
            return _combined(value, *sides)
        case ir.Arithmetic(operator="*" | "/", left=left, right=right):
            return _scaled(value, left, right, end)
    return None


def _scaled(value: ir.Arithmetic, left: ir.Expr, right: ir.Expr, end: str) -> ir.Expr | None:
    """A product with a constant, or a quotient by one: a negative constant turns the order around."""
    if (sign := _sign(right)) is not None:
        return _combined(value, _end(left, end if sign > 0 else _OTHER_END[end]), right)
    if value.operator == "*" and (sign := _sign(left)) is not None:
        return _combined(value, left, _end(right, end if sign > 0 else _OTHER_END[end]))
    return None


def _combined(value: ir.Arithmetic, left: ir.Expr | None, right: ir.Expr | None) -> ir.Expr | None:
    return None if left is None or right is None else replace(value, left=left, right=right)


def _sign(constant: ir.Expr) -> int | None:
    """1 or -1, by the sign of a constant; None if it is none, or 0."""
    match constant:
        case ir.Cast(operand=operand, implicit=True):
            return _sign(operand)
        case ir.Negate(operand=operand):
            inner = _sign(operand)
            return None if inner is None else -inner
        case ir.Literal(value=number) if _is_number(constant.type) and number is not None:
            return _sign_of(number)
    return None


def _sign_of(number: object) -> int | None:
    if isinstance(number, (bool, str)):
        return None
    return 1 if number > 0 else -1 if number < 0 else None  # type: ignore[operator]


def _is_number(type_: Type | None) -> bool:
    return type_ in (INTEGER, FLOAT, DATE) or isinstance(type_, (DecimalType, TimestampType, DurationType))

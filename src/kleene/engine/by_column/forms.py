"""Which parts of a measure have a column form: what `operators` and `aggregates` compute for all points at once.

Other parts are computed value by value, by the interpreter; EXPLAIN names them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kleene.engine.by_column.numbers import MOST_PLACES, converts
from kleene.engine.by_column.vectors import kind_of
from kleene.ir import expr as ir
from kleene.schema import FLOAT, INTEGER, NULL, DecimalType, Type, is_plain

LEAVES = (ir.Attribute, ir.Navigation, ir.Aggregate, ir.Classifier, ir.MatchNumber)
"""What depends on the rows of a match."""
SPREADS = ("stddev", "stddev_pop", "var_samp", "var_pop")
TAKING = ("any_value", "max", "max_by", "min", "min_by")
"""Aggregates whose value is that of one row."""
COLLECTING = ("array_agg", "collect", "collect_list", "collect_set")
COUNTING = ("count", "count_if", "approx_count_distinct")
REGISTERED = ("avg", "count", "delta", "first", "last", "max", "min", "sum")
"""Aggregates of the regular-expression operator that its matches carry along."""
_AT_ONCE = (*TAKING, *COLLECTING, *COUNTING, *SPREADS, *REGISTERED, "bool_and", "bool_or")
_FUNCTIONS = ("abs", "ceil", "coalesce", "floor", "greatest", "least", "nullif", "sqrt")


def has_column_form(node: ir.Expr) -> bool:
    """Whether the node itself, whatever stands inside it, is computed for all points at once."""
    match node:
        case ir.Aggregate():
            return _is_at_once(node)
        case ir.Literal() | ir.And() | ir.Or() | ir.Not() | ir.IsNull() | ir.Case():
            return True
        case ir.Attribute() | ir.Navigation() | ir.Classifier() | ir.MatchNumber() | ir.Events() | ir.OrderKey():
            return True
        case ir.Comparison(left=left, right=right):
            return _is_simple(left.type) and _is_simple(right.type)
        case ir.In(operand=operand, choices=choices):
            return all(_is_simple(one.type) for one in (operand, *choices))
        case ir.Arithmetic(left=left, right=right):
            kinds = {kind_of(one.type) for one in (left, right) if one.type != NULL}
            return kinds <= {"i", "f"} and len(kinds) < 2 and kind_of(node.type) in "if"
        case ir.Negate(operand=operand):
            return kind_of(operand.type) in "if"
        case ir.Cast(operand=operand, tries=tries):
            is_same = operand.type in (node.type, NULL)
            return not tries and (is_same or converts(operand.type, node.type))
        case ir.Function(name="round", arguments=(operand, *places)):
            return _is_rounded_at_once(operand.type, places)
        case ir.Function(name=name, arguments=arguments) if name in _FUNCTIONS:
            return _is_function_at_once(name, [argument.type for argument in arguments], node.type)
        case ir.PythonCall(vectorized=vectorized):
            return vectorized
    return False


def _is_simple(type_: Type | None) -> bool:
    return is_plain(type_) and kind_of(type_) != "o"


def _is_function_at_once(name: str, arguments: list[Type | None], result: Type | None) -> bool:
    match name:
        case "coalesce":
            return True
        case "abs":
            return kind_of(result) in "if" and arguments == [result]
        case "floor" | "ceil":
            return arguments[0] in (INTEGER, FLOAT)
        case "sqrt":
            return arguments == [FLOAT]
        case "nullif":
            return len(set(arguments)) == 1 and _is_simple(result)
    return all(_is_simple(one) and one in (result, NULL) for one in arguments)


def _is_rounded_at_once(type_: Type | None, places: list[ir.Expr]) -> bool:
    match places:
        case []:
            return type_ in (INTEGER, FLOAT)
        case [ir.Literal(value=int() as value)]:
            return type_ == FLOAT and 0 <= value <= MOST_PLACES
    return False


def _is_at_once(aggregate: ir.Aggregate) -> bool:
    function, argument, is_by = aggregate.function, aggregate.argument, aggregate.function.endswith("_by")
    if aggregate.own is not None or aggregate.order or function not in _AT_ONCE:
        return False
    if function == "count" and aggregate.others:
        return not aggregate.distinct
    if len(aggregate.others) > int(is_by):
        return False
    if function in ("min", "max", "min_by", "max_by"):
        key = aggregate.others[0] if is_by else argument
        return _is_simple(key.type) or key.type == NULL
    if aggregate.distinct or function in ("collect_set", "approx_count_distinct"):
        return _is_simple(argument.type)
    if function in COLLECTING:
        return isinstance(argument, ir.Attribute) or (_is_simple(argument.type) and function != "collect")
    if function in ("sum", "avg", *SPREADS):
        return kind_of(argument.type) in "if"
    return True


def left_to_the_interpreter(expression: ir.Expr) -> Iterator[ir.Expr]:
    """The parts of a measure that are computed value by value, the largest ones only."""
    waiting, is_inner = [expression], False
    while waiting:
        node = waiting.pop()
        is_inner_list = is_inner and isinstance(node, ir.Aggregate) and node.function in COLLECTING
        if is_inner_list or not has_column_form(node):
            yield node
        else:
            waiting.extend(reversed(list(ir.children(node))))
        is_inner = True


def is_list(expression: ir.Expr) -> bool:
    """Whether it is an aggregate that gives lists of its values, which Arrow can make."""
    return isinstance(expression, ir.Aggregate) and expression.function in COLLECTING and has_column_form(expression)


def is_exact_average(aggregate: ir.Aggregate) -> bool:
    """Whether it is an average of decimals, which is a decimal."""
    return isinstance(aggregate.argument.type, DecimalType) and isinstance(aggregate.type, DecimalType)

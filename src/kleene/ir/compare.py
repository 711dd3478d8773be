"""Where two queries differ: the same question asked in two languages differs in options only.

A SASE predicate and a condition of DEFINE are brought to one form: variables are called by their places, a condition is
split at AND, a column without a variable belongs to the row being tried, a lone event type says nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kleene.ir import expr as ir
from kleene.ir.options import Window
from kleene.ir.pattern import Alternation, Pattern, Permutation, Repeat, Sequence, Variable, variables_in
from kleene.ir.query import QueryDefinition

# What is asked; everything else is how it is answered.
QUESTION = ("pattern", "conditions", "partition", "window")


def differences(left: QueryDefinition, right: QueryDefinition) -> set[str]:
    """The names of the parts in which the queries differ."""
    one, other = _parts(left), _parts(right)
    return {name for name in one if one[name] != other[name]}


def _parts(query: QueryDefinition) -> dict[str, Any]:
    order = dict.fromkeys(variable.name for variable in variables_in(query.pattern))
    names = {name: f"v{number}" for number, name in enumerate(order, 1)}
    types = {event_type for variable in variables_in(query.pattern) for event_type in variable.types}
    conditions: list[tuple[str | None, ir.Expr]] = [(None, predicate) for predicate in query.predicates]
    conditions += [(item.variable, item.condition) for item in query.definitions]
    return {
        "pattern": _pattern(query.pattern, names, keep_types=len(types) > 1),
        "conditions": {
            part for owner, condition in conditions for part in _conjuncts(_renamed(condition, owner, names))
        },
        "partition": {test.attribute for test in query.equivalence_tests}
        | {key.name for key in query.partition_by if isinstance(key, ir.Attribute)},
        "constants": {(test.attribute, test.constant) for test in query.equivalence_tests if test.constant},
        "window": _window(query.window) or query.window_parameter,
        "strategy": query.strategy,
        "selection": query.selection,
        "order_by": query.order_by,
        "after_match": query.after_match,
        "rows_per_match": query.rows_per_match,
        "max_length": query.max_length,
        "having": query.having,
        "measures": query.measures,
        "streams": (query.from_streams, query.into_stream),
    }


def _window(window: Window | None) -> tuple[object, ...] | None:
    return None if window is None else (window.size, window.unit)


def _pattern(pattern: Pattern, names: dict[str | None, str], keep_types: bool) -> Pattern:
    match pattern:
        case Variable(name=name, types=types):
            return Variable(names[name], types if keep_types else ())
        case Sequence(elements=(single,)):
            return _pattern(single, names, keep_types)
        case Sequence(elements=parts):
            return Sequence(tuple(_pattern(part, names, keep_types) for part in parts))
        case Permutation(elements=parts):
            return Permutation(tuple(_pattern(part, names, keep_types) for part in parts))
        case Alternation(alternatives=parts):
            return Alternation(tuple(_pattern(part, names, keep_types) for part in parts))
        case Repeat(element=element):
            return replace(pattern, element=_pattern(element, names, keep_types))
    return pattern


def _renamed(expression: ir.Expr, owner: str | None, names: dict[str | None, str]) -> ir.Expr:
    match expression:
        case ir.Attribute(variable=variable):
            return replace(expression, variable=names.get(variable if variable is not None else owner, variable))
    return ir.with_children(expression, lambda child: _renamed(child, owner, names))


def _conjuncts(expression: ir.Expr) -> list[ir.Expr]:
    if isinstance(expression, ir.And):
        return [part for operand in expression.operands for part in _conjuncts(operand)]
    return [expression]

"""Aggregates over all matches: what they name exists, and is a value of one event of one variable."""

from __future__ import annotations

from dataclasses import replace

from kleene.analysis.conversions import type_of
from kleene.analysis.scope import Scope, bare_owner, check_exists, known_variable
from kleene.analysis.value_types import typed
from kleene.errors import AnalysisError, listed, printable
from kleene.ir import expr as ir
from kleene.ir.expr import Position
from kleene.ir.options import Grouping, WindowUnit
from kleene.ir.query import Measure
from kleene.schema import DATE, UNKNOWN, DurationType, Type, a_type, is_numeric

FUNCTIONS = ("count", "sum", "avg", "min", "max")
WINDOW_START, WINDOW_END = "window_start", "window_end"
MICROSECONDS_PER_DAY = 86_400_000_000


def analyzed_totals(totals: tuple[Measure, ...], scope: Scope) -> tuple[Measure, ...]:
    """The aggregates with their references resolved and their types known.

    `count(*)` has an `ir.Events` of no variable as its argument, and `count(a)` that of one.
    """
    names: set[str] = set()
    found: list[Measure] = []
    for total in totals:
        own = replace(scope, source=total.source or scope.source)
        if total.name in names:
            raise own.fail(f"two values are called '{printable(total.name)}'", total.span, "Rename one of them.")
        names.add(total.name)
        found.append(replace(total, expression=_analyzed(total, own)))
    return tuple(found)


def _analyzed(total: Measure, scope: Scope) -> ir.Aggregate:
    aggregate = total.expression
    example = "Write: count(*), count(b), sum(b.weight), avg(b.weight), min(b.weight) or max(b.weight)"
    if not isinstance(aggregate, ir.Aggregate):
        raise scope.fail(f"'{printable(total.name)}' is not an aggregate over all matches", aggregate.span, example)
    if aggregate.function not in FUNCTIONS:
        raise scope.fail(f"{aggregate.function} has no meaning over all matches", aggregate.name_span, example)
    match aggregate.argument:
        case ir.Events(variable=None):
            return replace(aggregate, type=type_of(typed(aggregate, scope)))
        case ir.Events(variable=str() as name, position=position) as events:
            variable = known_variable(name, events.variable_span, scope)
            _check(events, scope, aggregate.function, position)
            if aggregate.function != "count":
                raise _not_counted(events, aggregate.function, variable.name, scope)
            return replace(aggregate, type=type_of(typed(aggregate, scope)))
        case ir.Attribute(variable=None, name=name) as bare if name in scope.variables and not _is_bare(bare, scope):
            if aggregate.function != "count":
                raise _not_counted(bare, aggregate.function, name, scope)
            events = ir.Events(name, Position.ALL, bare.name_span, span=bare.span)
            _check(events, scope, aggregate.function, Position.ALL)
            return _analyzed(replace(total, expression=replace(aggregate, argument=events)), scope)
    argument = _resolved(aggregate.argument, scope, aggregate.function)
    names = {node.variable for node in ir.walk(argument) if isinstance(node, ir.Attribute)}
    if len(names) != 1:
        problem = "names the events of two variables" if names else "names no event"
        raise scope.fail(
            f"an aggregate over all matches is over the events of one variable, but this {problem}",
            aggregate.argument.span,
            example,
        )
    found = typed(replace(aggregate, argument=argument), scope)
    assert isinstance(found, ir.Aggregate)
    if aggregate.function == "sum" and isinstance(type_of(found.argument), DurationType):
        raise scope.fail("sum over all matches needs a number, but this is a duration", argument.span)
    return found


def _not_counted(node: ir.Expr, function: str, variable: str, scope: Scope) -> AnalysisError:
    hint = f"Name an attribute: {function}({printable(variable)}.x)"
    return scope.fail("events themselves can only be counted", node.span, hint)


def _is_bare(attribute: ir.Attribute, scope: Scope) -> bool:
    """Whether a name is that of an attribute, though there is a variable of that name."""
    return scope.only_variable is not None and scope.schema is not None and attribute.name in scope.schema


def _resolved(expression: ir.Expr, scope: Scope, function: str) -> ir.Expr:
    match expression:
        case ir.Attribute(variable=None):
            owner = bare_owner(expression, scope)
            return _resolved(replace(expression, variable=owner), scope, function)
        case ir.Attribute():
            _check(expression, scope, function, expression.position)
            assert expression.variable is not None
            check_exists(expression, scope.variables[expression.variable], scope)
            return replace(expression, position=Position.EACH)
        case ir.Aggregate():
            raise scope.fail("an aggregate cannot contain another", expression.span)
        case ir.Events():
            raise _not_counted(expression, function, expression.variable or "a", scope)
    return ir.with_children(expression, lambda child: _resolved(child, scope, function))


def _check(reference: ir.Attribute | ir.Events, scope: Scope, function: str, position: Position) -> None:
    """The reference is to all events of a positive variable."""
    assert reference.variable is not None
    variable = known_variable(reference.variable, reference.variable_span, scope)
    name = printable(variable.name)
    if variable.is_negative:
        raise scope.fail(f"'{name}' is a negative component: a match has no such event", reference.span)
    if position not in (Position.EACH, Position.ALL):
        attribute = printable(reference.name) if isinstance(reference, ir.Attribute) else "x"
        raise scope.fail(
            f"an aggregate over all matches is over all events of '{name}'",
            reference.span,
            f"Leave the index out: {function}({name}.{attribute})",
        )


def check_grouping(
    grouping: Grouping, key: tuple[str, ...], totals: tuple[Measure, ...], end: str, time_type: Type
) -> None:
    """The groups fit the order key, and no two columns of the result have one name."""
    columns = list(key) if grouping.by_event or grouping.by_partition else []
    columns += [end] if grouping.by_event else []
    columns += [WINDOW_START, WINDOW_END] if grouping.window is not None else []
    twice = next((total.name for total in totals if total.name in columns), None)
    if twice is not None:
        raise AnalysisError(
            f"the output would have two columns '{printable(twice)}': an aggregate and a column of the groups",
            hint=f"Rename the aggregate. Columns of the groups: {listed(columns)}.",
        )
    window = grouping.window
    if window is None or time_type == UNKNOWN:
        return
    if window.size <= 0:
        raise AnalysisError("a window of time must be longer than nothing", hint="Write, for example: per='1 hour'")
    if window.unit is WindowUnit.TIME and is_numeric(time_type):
        raise AnalysisError(
            f"per is a duration, but the order key is {a_type(time_type)}",
            hint="Write the number alone, in the units of the order key: per=100",
        )
    if window.unit is WindowUnit.ORDER_KEY and not is_numeric(time_type):
        raise AnalysisError(
            f"per is a number without a unit, but the order key is {a_type(time_type)}",
            hint=f"Write per='{window.size} seconds' (or minutes, hours, days).",
        )
    if time_type == DATE and window.size % MICROSECONDS_PER_DAY:
        raise AnalysisError("the order key is a date, but per is not a number of days", hint="Write: per='1 day'")

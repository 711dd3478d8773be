"""Types of expressions: `typed` gives every node its type and makes every conversion a `Cast`.

What engines may rely on afterwards: both sides of a comparison, and of an addition, are of one type (decimals of one
scale); conditions are boolean; `Between` is gone; literals of type float hold floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from kleene.analysis.conversions import (
    alike,
    as_type,
    can_cast,
    cast_to,
    check_parameters,
    common_of_two,
    common_type,
    exact_literals,
    need,
    need_equality,
    need_order,
    same_clock,
    scale_of,
    type_of,
)
from kleene.analysis.function_types import typed_call
from kleene.analysis.scope import Scope
from kleene.errors import did_you_mean, listed, printable
from kleene.ir import expr as ir
from kleene.ir.aggregates import AGGREGATES, SYNONYMS, is_of_spark
from kleene.ir.calls import is_own
from kleene.ir.functions.names import FUNCTIONS, is_known
from kleene.schema import (
    BOOLEAN,
    DATE,
    DURATION,
    FLOAT,
    INTEGER,
    MOST_DECIMAL_DIGITS,
    STRING,
    TIME,
    UNKNOWN,
    ArrayType,
    DecimalType,
    DurationType,
    MapType,
    StructType,
    TimestampType,
    Type,
    a_type,
    array,
    average_type,
    decimal,
    duration,
    finer_unit,
    fits_everywhere,
    is_numeric,
    is_plain,
    map_of,
    timestamp,
)
from kleene.source import Span


def typed(expression: ir.Expr, scope: Scope) -> ir.Expr:
    """The expression with types and conversions, or an error at the part that does not fit."""
    match expression:
        case ir.Literal(value=value, of_type=of_type):
            plain = float(value) if of_type is FLOAT and isinstance(value, Decimal) else value
            return replace(expression, value=plain, type=of_type)
        case ir.Parameter():
            return replace(expression, type=UNKNOWN)
        case ir.Attribute(name=name):
            return replace(expression, type=scope.type_of(name))
        case ir.Events() | ir.Length() | ir.MatchNumber():
            return replace(expression, type=INTEGER)
        case ir.Classifier():
            return replace(expression, type=STRING)
        case ir.Navigation(argument=argument):
            inner = typed(argument, scope)
            return replace(expression, argument=inner, type=inner.type)
        case ir.PythonCall(arguments=arguments):
            inners = tuple(typed(argument, scope) for argument in arguments)
            return replace(expression, arguments=inners, type=expression.returns or UNKNOWN)
        case ir.Aggregate():
            return _typed_aggregate(expression, scope)
        case ir.Arithmetic():
            return _typed_arithmetic(expression, scope)
        case ir.Negate(operand=operand):
            inner = typed(operand, scope)
            need(inner, scope, "-", is_numeric(type_of(inner)) or isinstance(inner.type, DurationType), "a number")
            return replace(expression, operand=inner, type=inner.type)
        case ir.Comparison(operator=operator, left=left, right=right):
            first, second = _alike([left, right], scope, f"compare with {operator}", expression.span)
            for side in (first, second):
                need_equality(side, scope, operator)
                if operator not in ("=", "!="):
                    need_order(side, scope, operator)
            return replace(expression, left=first, right=second, type=BOOLEAN)
        case ir.And(operands=operands) | ir.Or(operands=operands):
            return replace(expression, operands=tuple(condition(item, scope) for item in operands), type=BOOLEAN)
        case ir.Not(operand=operand):
            return replace(expression, operand=condition(operand, scope), type=BOOLEAN)
        case ir.IsNull(operand=operand):
            return replace(expression, operand=typed(operand, scope), type=BOOLEAN)
        case ir.In(operand=operand, choices=choices):
            first, *rest = _alike([operand, *choices], scope, "compare with IN", expression.span)
            need_equality(first, scope, "IN")
            return replace(expression, operand=first, choices=tuple(rest), type=BOOLEAN)
        case ir.Between(operand=operand, low=low, high=high):
            at_least = ir.Comparison(">=", operand, low, span=expression.span)
            at_most = ir.Comparison("<=", operand, high, span=expression.span)
            return typed(ir.And((at_least, at_most), span=expression.span), scope)
        case ir.Like(operand=operand, pattern=pattern):
            first, second = (_string(item, scope, "LIKE") for item in (operand, pattern))
            return replace(expression, operand=first, pattern=second, type=BOOLEAN)
        case ir.Case(branches=branches, default=default):
            values = _alike([value for _, value in branches] + [default], scope, "choose with CASE", expression.span)
            conditions = [condition(when, scope) for when, _ in branches]
            pairs = tuple(zip(conditions, values[:-1], strict=True))
            return replace(expression, branches=pairs, default=values[-1], type=common_type(map(type_of, values)))
        case ir.Cast(operand=operand, to=to):
            return _typed_cast(replace(expression, operand=typed(operand, scope)), to, scope)
        case ir.Function():
            return _typed_function(expression, scope)
        case ir.Item(operand=operand, key=key):
            return _typed_item(expression, typed(operand, scope), typed(key, scope), scope)
        case ir.Field(operand=operand):
            return _typed_field(expression, typed(operand, scope), scope)
        case ir.Lambda(body=body):
            if not scope.functions_of_spark or scope.schema is not None:
                raise scope.fail("a lambda can only be an argument of a function of Spark's own", expression.span)
            return replace(expression, body=typed(body, scope), type=UNKNOWN)
        case ir.LambdaVariable():
            return replace(expression, type=UNKNOWN)
    raise AssertionError(f"no typing rule for {type(expression).__name__}")


def _typed_item(item: ir.Item, operand: ir.Expr, key: ir.Expr, scope: Scope) -> ir.Expr:
    match operand.type:
        case ArrayType(element=element):
            need(key, scope, "the place in an array", key.type == INTEGER, "a whole number")
            return replace(item, operand=operand, key=key, type=element)
        case MapType(key=of_keys, value=value):
            found = common_type((of_keys, type_of(key)))
            if found is None:
                raise scope.fail(f"the map has keys of type {of_keys}, but this is {a_type(type_of(key))}", key.span)
            keys_alike = cast_to(operand, map_of(found, value))
            return replace(item, operand=keys_alike, key=cast_to(key, found), type=value)
        case StructType() if isinstance(key, ir.Literal) and isinstance(key.value, str):
            return _typed_field(ir.Field(operand, key.value, key.span, span=item.span), operand, scope)
    _need_parts(operand, scope)
    return replace(item, operand=operand, key=key, type=UNKNOWN)


def _typed_field(field: ir.Field, operand: ir.Expr, scope: Scope) -> ir.Expr:
    match operand.type:
        case StructType(fields=fields):
            names = [name for name, _ in fields]
            alike = [name for name in names if name.lower() == field.name.lower()]
            own = field.name if field.name in names else alike[0] if len(alike) == 1 and not field.exact else None
            if own is None:
                hint = f"Fields: {listed(names)}.{did_you_mean(field.name, names)}"
                raise scope.fail(f"the struct has no field '{printable(field.name)}'", field.name_span, hint)
            return replace(field, operand=operand, name=own, type=dict(fields)[own])
        case MapType():
            key = ir.Literal(field.name, STRING, span=field.name_span, type=STRING)
            return _typed_item(ir.Item(operand, key, span=field.span), operand, key, scope)
    _need_parts(operand, scope)
    return replace(field, operand=operand, type=UNKNOWN)


def _need_parts(operand: ir.Expr, scope: Scope) -> None:
    hint = "A struct has fields (s.field), a list has positions from 0 (x[0]), and a map has keys (m['key'])."
    need(operand, scope, "what a part is taken of", False, "an array, a struct or a map", hint)


def condition(expression: ir.Expr, scope: Scope) -> ir.Expr:
    """The expression, typed, which must be boolean."""
    inner = typed(expression, scope)
    need(inner, scope, "a condition", inner.type == BOOLEAN, "a boolean", "Compare it with something: … > 0")
    return replace(inner, type=BOOLEAN) if is_own(inner) and inner.type == UNKNOWN else inner


def _string(operand: ir.Expr, scope: Scope, who: str) -> ir.Expr:
    inner = as_type(typed(operand, scope), STRING)
    need(inner, scope, who, inner.type == STRING, "a string", "Convert it: CAST(… AS string)")
    return inner


def _alike(operands: Sequence[ir.Expr], scope: Scope, doing: str, span: Span) -> list[ir.Expr]:
    """The operands, typed and converted to the one type that holds them all."""
    return alike(operands, [typed(operand, scope) for operand in operands], scope, doing, span)


def _typed_arithmetic(expression: ir.Arithmetic, scope: Scope) -> ir.Expr:
    operator, span = expression.operator, expression.span
    operands = [expression.left, expression.right]
    left, right = inners = [_in_arithmetic(typed(operand, scope)) for operand in operands]
    for inner in inners:
        need(inner, scope, operator, True, "")
    types = (type_of(left), type_of(right))
    if any(map(fits_everywhere, types)):
        known = next((type_ for type_ in types if not fits_everywhere(type_)), UNKNOWN)
        if UNKNOWN in types and (operator == "*" or not is_numeric(known)):
            known = UNKNOWN  # a time less a time is a duration, a duration times a number too
        elif operator == "/":
            known = FLOAT
        return replace(expression, left=left, right=right, type=known)
    if all(map(is_numeric, types)):
        return _typed_numbers(expression, exact_literals(operands, inners), scope)
    temporal = _typed_temporal(expression, left, right)
    if temporal is None:
        check_parameters(inners, scope, f"compute with {operator}")
        hint = (
            "Join strings with ||."
            if STRING in types and operator == "+"
            else "See the table of operators in docs/language.md."
        )
        raise scope.fail(f"cannot compute {types[0]} {operator} {types[1]}", span, hint)
    return temporal


def _in_arithmetic(operand: ir.Expr) -> ir.Expr:
    """A text of the command line that is no number can only be a duration here."""
    return as_type(operand, DURATION) if operand.type == STRING else operand


def _typed_numbers(expression: ir.Arithmetic, operands: list[ir.Expr], scope: Scope) -> ir.Expr:
    left, right = operands
    common = common_type(map(type_of, operands))
    assert common is not None
    if expression.operator == "/":
        common = FLOAT
    elif expression.operator == "*" and isinstance(common, DecimalType):
        # The digits after the point add up; both sides keep their own.
        places = scale_of(type_of(left)) + scale_of(type_of(right))
        if places > MOST_DECIMAL_DIGITS:
            raise scope.fail(
                f"the product would have {places} digits after the point; a decimal has {MOST_DECIMAL_DIGITS} in all",
                expression.span,
                "Cast one side to float, or to a decimal with fewer digits after the point.",
            )
        return replace(expression, left=left, right=right, type=decimal(places))
    return replace(expression, left=cast_to(left, common), right=cast_to(right, common), type=common)


def _typed_temporal(expression: ir.Arithmetic, left: ir.Expr, right: ir.Expr) -> ir.Expr | None:
    first, second = (cast_to(side, timestamp()) if side.type == DATE else side for side in (left, right))
    if isinstance(first.type, TimestampType) and isinstance(second.type, TimestampType):
        common = common_of_two(first.type, second.type)
        assert common is not None
        if not (same_clock(first, common) and same_clock(second, common)):
            return None
        first, second = cast_to(first, common), cast_to(second, common)
    unit = finer_unit(type_of(first), type_of(second))
    first, second = _in_unit(first, unit), _in_unit(second, unit)
    result: Type | None = None
    match type_of(first), expression.operator, type_of(second):
        case TimestampType(), "-", TimestampType():
            result = duration(unit)
        case one, "-", other if one == other == TIME:
            result = DURATION
        case TimestampType() as one, "+" | "-", DurationType():
            result = one
        case DurationType(), "+", TimestampType() as other:
            result = other
        case DurationType(), "+" | "-", DurationType():
            result = duration(unit)
        case DurationType() as one, "*", other if other == INTEGER:
            result = one
        case one, "*", DurationType() as other if one == INTEGER:
            result = other
        case DurationType(), "/", DurationType():
            result = FLOAT
            first, second = cast_to(first, FLOAT), cast_to(second, FLOAT)
    return None if result is None else replace(expression, left=first, right=second, type=result)


def _in_unit(side: ir.Expr, unit: str) -> ir.Expr:
    match side.type:
        case (TimestampType() | DurationType()) as type_:
            return cast_to(side, replace(type_, unit=unit))
    return side


def _typed_aggregate(expression: ir.Aggregate, scope: Scope) -> ir.Expr:
    if is_of_spark(expression):
        return _typed_aggregate_of_spark(expression, scope)
    argument = typed(expression.argument, scope)
    others = tuple(typed(other, scope) for other in expression.others)
    where = None if expression.condition is None else condition(expression.condition, scope)
    order = tuple(_typed_order(key, scope) for key in expression.order)
    function, found = expression.function, type_of(argument)
    if expression.own is not None:
        returns = expression.own.returns or UNKNOWN
        return replace(expression, argument=argument, condition=where, order=order, type=returns)
    if expression.distinct or function not in _PASSING_ON:
        for item in (argument, *others):
            need(item, scope, function, True, "")
    result = found
    match function:
        case "count" | "count_if" | "approx_count_distinct":
            result = INTEGER
            if function == "count_if":
                need(argument, scope, function, found == BOOLEAN, "a condition")
        case "sum":
            need(argument, scope, "sum", is_numeric(found) or isinstance(found, DurationType), "a number or a duration")
        case "avg" | "median" | "stddev" | "stddev_pop" | "var_pop" | "var_samp":
            need(argument, scope, function, is_numeric(found), "a number")
            result = average_type(found) if function == "avg" else FLOAT
        case "map_agg" | "multimap_agg":
            need(argument, scope, function, is_plain(found), "a plain value as the key")
            own = type_of(others[0])
            result = map_of(found, array(own) if function == "multimap_agg" else own)
        case "map_union":
            need(argument, scope, function, isinstance(found, MapType), "a map")
        case "percentile":
            need(argument, scope, function, is_numeric(found), "a number")
            others, result = (cast_to(_share(others[0], scope), FLOAT),), FLOAT
        case "bit_and" | "bit_or" | "bit_xor":
            need(argument, scope, function, found == INTEGER, "a whole number")
        case "bool_and" | "bool_or":
            need(argument, scope, function, found == BOOLEAN, "a condition")
            result = BOOLEAN
        case "collect" | "array_agg" | "collect_list" | "collect_set":
            result = array(found)
        case "listagg":
            argument, others, result = *_typed_listagg(argument, others, scope), STRING
        case "min" | "max" | "min_by" | "max_by":
            need_order(others[0] if function.endswith("_by") else argument, scope, function)
            if function.endswith("_by"):
                need(others[0], scope, function, True, "")
            if len(others) > int(function.endswith("_by")):
                _need_how_many(others[-1], function, scope)
                result = array(found)
        case "delta":
            temporal = isinstance(found, TimestampType) or found == DATE
            need(argument, scope, "Delta", temporal or is_numeric(found), "a time or a number")
            argument = cast_to(argument, timestamp()) if found == DATE else argument
            result = duration(finer_unit(found, found)) if temporal else found
    return replace(expression, argument=argument, others=others, condition=where, order=order, type=result)


def _share(percentage: ir.Expr, scope: Scope) -> ir.Expr:
    match percentage:
        case ir.Literal(value=(int() | float()) as value) if 0 <= value <= 1:
            return percentage
        case ir.Parameter():
            return percentage
    raise scope.fail("percentile takes a literal number from 0 to 1", percentage.span, "Write: percentile(x, 0.9)")


_PASSING_ON = (*("any_value", "array_agg", "collect", "collect_list", "count", "first", "last", "max_by", "min_by"),)
"""Aggregates that take values of any type, since they do not look at them."""


def _typed_order(key: ir.OrderKey, scope: Scope) -> ir.OrderKey:
    operand = typed(key.operand, scope)
    need(operand, scope, "ORDER BY", True, "")
    need_order(operand, scope, "ORDER BY")
    return replace(key, operand=operand, type=operand.type)


def _typed_listagg(argument: ir.Expr, others: tuple[ir.Expr, ...], scope: Scope) -> tuple[ir.Expr, tuple[ir.Expr, ...]]:
    found = type_of(argument)
    fits = fits_everywhere(found) or can_cast(found, STRING)
    need(argument, scope, "listagg", fits, "a string", "Convert it: CAST(… AS string)")
    for other in others:
        is_text = isinstance(other, ir.Literal) and (other.value is None or other.type == STRING)
        if not is_text and not isinstance(other, ir.Parameter):
            raise scope.fail("what stands between the values must be a literal string", other.span)
    return cast_to(argument, STRING), others


def _need_how_many(other: ir.Expr, function: str, scope: Scope) -> None:
    match other:
        case ir.Literal(value=int() as value) if value >= 1 and not isinstance(value, bool):
            return
        case ir.Parameter():
            return
    raise scope.fail(f"how many values {function} gives must be a literal whole number from 1 up", other.span)


def _typed_aggregate_of_spark(expression: ir.Aggregate, scope: Scope) -> ir.Expr:
    if scope.functions_of_spark and scope.schema is None:
        return replace(expression, type=UNKNOWN)
    raise scope.fail(
        f"{printable(expression.function)} is an aggregate of Spark's own: it can stand in MEASURES only, and on Spark",
        expression.name_span,
        f"Aggregates that may stand anywhere: {listed(sorted([*AGGREGATES, *SYNONYMS]), most=40)}.",
    )


def _typed_function(expression: ir.Function, scope: Scope) -> ir.Expr:
    name = expression.name
    if not is_known(expression) and scope.functions_of_spark and scope.schema is None:
        passed = tuple(typed(argument, scope) for argument in expression.arguments)
        return replace(expression, arguments=passed, type=UNKNOWN)
    if name not in FUNCTIONS:
        known = sorted([*FUNCTIONS, "avg", "collect", "count", "first", "last", "max", "min", "sum"])
        raise scope.fail(
            f"unknown function '{printable(name)}'",
            expression.name_span,
            f"Functions: {listed(known, most=30)}.{did_you_mean(name, known)}"
            + (" On Spark, any of Spark's functions may stand here." if scope.functions_of_spark else "")
            + " Functions of your own are given by functions=[…].",
        )
    least, most = FUNCTIONS[name]
    given = len(expression.arguments)
    if given < least or (most is not None and given > most):
        wanted = f"{least}" if least == most else f"{least} or {most}" if most else f"at least {least}"
        raise scope.fail(
            f"{name} takes {wanted} argument{'' if wanted == '1' else 's'}, not {given}", expression.name_span
        )
    if name == "mod":
        return typed(ir.Arithmetic("%", *expression.arguments, span=expression.span), scope)
    return typed_call(expression, [typed(argument, scope) for argument in expression.arguments], scope)


def _typed_cast(expression: ir.Cast, to: Type, scope: Scope) -> ir.Expr:
    found = type_of(expression.operand)
    need(expression.operand, scope, "CAST", True, "")
    if not (found == to or fits_everywhere(found) or can_cast(found, to)):
        raise scope.fail(f"cannot convert {a_type(found)} to {a_type(to)}", expression.span)
    return replace(expression, type=to)

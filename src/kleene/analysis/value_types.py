"""Types of expressions: `typed` gives every node its type and makes every conversion a `Cast`.

What engines may rely on afterwards: both sides of a comparison, and of an addition, are of one type (decimals of one
scale); conditions are boolean; `Between` is gone; literals of type float hold floats.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Context, Decimal

from kleene.analysis.scope import Scope
from kleene.errors import SchemaError, did_you_mean, listed, printable
from kleene.ir import expr as ir
from kleene.ir.aggregates import AGGREGATES, SYNONYMS, is_of_spark
from kleene.schema import (
    BOOLEAN,
    DATE,
    DURATION,
    FLOAT,
    INTEGER,
    LARGEST_INTEGER,
    MOST_DECIMAL_DIGITS,
    NULL,
    SMALLEST_INTEGER,
    STRING,
    TIME,
    UNKNOWN,
    DecimalType,
    DurationType,
    OpaqueType,
    TimestampType,
    Type,
    a_type,
    array,
    decimal,
    duration,
    finer_unit,
    fits_everywhere,
    is_numeric,
    per_microsecond,
    timestamp,
)
from kleene.source import Span

# What each function takes, and what it gives; see docs/language.md.
FUNCTIONS: dict[str, tuple[int, int | None]] = {
    "abs": (1, 1),
    "ceil": (1, 1),
    "coalesce": (1, None),
    "concat": (1, None),
    "exp": (1, 1),
    "floor": (1, 1),
    "greatest": (2, None),
    "least": (2, None),
    "length": (1, 1),
    "ln": (1, 1),
    "lower": (1, 1),
    "power": (2, 2),
    "round": (1, 2),
    "sqrt": (1, 1),
    "upper": (1, 1),
}
_ALL_DIGITS = Context(prec=1_000)
_DAY = 86_400_000_000
_CASTS = {
    (INTEGER, BOOLEAN),
    (BOOLEAN, INTEGER),
    (DATE, "timestamp"),
    ("timestamp", DATE),
}


def typed(expression: ir.Expr, scope: Scope) -> ir.Expr:
    """The expression with types and conversions, or an error at the part that does not fit."""
    match expression:
        case ir.Literal(value=value, of_type=of_type):
            plain = float(value) if of_type is FLOAT and isinstance(value, Decimal) else value
            return replace(expression, value=plain, type=of_type)
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
            return replace(expression, arguments=inners, type=UNKNOWN)
        case ir.Aggregate():
            return _typed_aggregate(expression, scope)
        case ir.Arithmetic():
            return _typed_arithmetic(expression, scope)
        case ir.Negate(operand=operand):
            inner = typed(operand, scope)
            _need(inner, scope, "-", is_numeric(type_of(inner)) or isinstance(inner.type, DurationType), "a number")
            return replace(expression, operand=inner, type=inner.type)
        case ir.Comparison(operator=operator, left=left, right=right):
            first, second = _alike([left, right], scope, f"compare with {operator}", expression.span)
            return replace(expression, left=first, right=second, type=BOOLEAN)
        case ir.And(operands=operands) | ir.Or(operands=operands):
            return replace(expression, operands=tuple(condition(item, scope) for item in operands), type=BOOLEAN)
        case ir.Not(operand=operand):
            return replace(expression, operand=condition(operand, scope), type=BOOLEAN)
        case ir.IsNull(operand=operand):
            return replace(expression, operand=typed(operand, scope), type=BOOLEAN)
        case ir.In(operand=operand, choices=choices):
            first, *rest = _alike([operand, *choices], scope, "compare with IN", expression.span)
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
            return replace(expression, branches=pairs, default=values[-1], type=_common(map(type_of, values)))
        case ir.Cast(operand=operand, to=to):
            return _typed_cast(replace(expression, operand=typed(operand, scope)), to, scope)
        case ir.Function():
            return _typed_function(expression, scope)
    raise AssertionError(f"no typing rule for {type(expression).__name__}")


def condition(expression: ir.Expr, scope: Scope) -> ir.Expr:
    """The expression, typed, which must be boolean."""
    inner = typed(expression, scope)
    _need(inner, scope, "a condition", inner.type == BOOLEAN, "a boolean", "Compare it with something: … > 0")
    return replace(inner, type=BOOLEAN) if isinstance(inner, ir.PythonCall) else inner


def type_of(expression: ir.Expr) -> Type:
    assert expression.type is not None, "the expression has not been typed"
    return expression.type


def _need(operand: ir.Expr, scope: Scope, who: str, fits: bool, what: str, hint: str | None = None) -> None:
    """The operand must be `what`; NULL always is, and so is an attribute of unknown type."""
    found = type_of(operand)
    if isinstance(found, OpaqueType):
        raise SchemaError(
            f"cannot compute with a value of type {found.name}", scope.source.locate(operand.span), found.advice
        )
    if not fits and not fits_everywhere(found):
        raise scope.fail(f"{who} needs {what}, but this is {a_type(found)}", operand.span, hint)


def _string(operand: ir.Expr, scope: Scope, who: str) -> ir.Expr:
    inner = typed(operand, scope)
    _need(inner, scope, who, inner.type == STRING, "a string", "Convert it: CAST(… AS string)")
    return inner


def _number(operand: ir.Expr, scope: Scope, who: str) -> ir.Expr:
    inner = typed(operand, scope)
    _need(inner, scope, who, is_numeric(type_of(inner)), "a number", "Convert it: CAST(… AS float)")
    return inner


def cast_to(expression: ir.Expr, to: Type) -> ir.Expr:
    """The expression as a value of the type, which is known to be possible; literals are converted at once."""
    found = type_of(expression)
    if found == to or fits_everywhere(found) or fits_everywhere(to):
        return expression
    if isinstance(found, TimestampType) and isinstance(to, TimestampType) and found.zone and to.zone:
        to = found if found.unit == to.unit else replace(to, zone=found.zone)
        if to == found:
            return expression  # an instant is the same in every zone
    if isinstance(expression, ir.Literal) and (literal := _literal_as(expression, to)) is not None:
        return literal
    return ir.Cast(expression, to, implicit=True, span=expression.span, type=to)


def _literal_as(literal: ir.Literal, to: Type) -> ir.Literal | None:
    value = literal.value
    match literal.of_type, to:
        case (t, f) if t == INTEGER and f == FLOAT:
            assert isinstance(value, int)
            return replace(literal, value=float(value), of_type=FLOAT, type=FLOAT)
        case (day, TimestampType(zone=str())) if day == DATE:
            assert isinstance(value, int)
            return replace(literal, value=value * _DAY * per_microsecond(to), of_type=to, type=to)
        case (TimestampType(zone=None), TimestampType()) | (DurationType(), DurationType()):
            # Times without a zone are UTC: on Spark, the zone of a column is only that of the session.
            assert isinstance(value, int)
            factor = per_microsecond(to) // per_microsecond(literal.of_type)
            if factor and SMALLEST_INTEGER <= value * factor <= LARGEST_INTEGER:
                return replace(literal, value=value * factor, of_type=to, type=to)
    return None


def _alike(operands: list[ir.Expr], scope: Scope, doing: str, span: Span) -> list[ir.Expr]:
    """The operands, typed and converted to the one type that holds them all."""
    inners = [typed(operand, scope) for operand in operands]
    for inner in inners:
        _need(inner, scope, doing, True, "")
    exact = _exact_literals(operands, inners)
    common = _common(map(type_of, exact))
    if common is None or not all(_same_clock(inner, common) for inner in exact):
        types = sorted({str(inner.type) for inner in inners if not fits_everywhere(type_of(inner))})
        raise scope.fail(
            f"cannot {doing}: {' and '.join(types)} do not go together", span, _conversion_hint(map(type_of, inners))
        )
    return [cast_to(inner, common) for inner in exact]


def _same_clock(operand: ir.Expr, common: Type) -> bool:
    """A column without a zone cannot be compared with one that has a zone; a literal takes the column's zone."""
    zoneless = operand.type == DATE or (isinstance(operand.type, TimestampType) and operand.type.zone is None)
    needs_zone = isinstance(common, TimestampType) and common.zone is not None
    return not (zoneless and needs_zone) or isinstance(operand, ir.Literal)


def _conversion_hint(types: Iterable[Type]) -> str:
    names = {type_.name for type_ in types}
    if "timestamp" in names and "string" in names:
        return "Write the constant as TIMESTAMP '2024-01-31 10:00:00'."
    if "date" in names and "string" in names:
        return "Write the constant as DATE '2024-01-31'."
    if "duration" in names:
        return "Durations go with durations: 5 minutes, INTERVAL '5' MINUTE."
    return "Convert one of them: CAST(… AS string), CAST(… AS float), CAST(… AS timestamp)."


def _exact_literals(operands: list[ir.Expr], inners: list[ir.Expr]) -> list[ir.Expr]:
    """Beside a decimal, a literal such as 1.05 is the decimal it looks like, not the nearest float."""
    if not any(isinstance(inner.type, DecimalType) for inner in inners):
        return inners
    exact: list[ir.Expr] = []
    for operand, inner in zip(operands, inners, strict=True):
        match operand:
            case ir.Literal(value=Decimal() as value) if _fits_decimal(value):
                scale = max(0, -int(value.normalize(_ALL_DIGITS).as_tuple().exponent))
                unscaled = int(value.scaleb(scale, _ALL_DIGITS))
                exact.append(ir.Literal(unscaled, decimal(scale), span=inner.span, type=decimal(scale)))
            case _:
                exact.append(inner)
    return exact


def _fits_decimal(value: Decimal) -> bool:
    digits, exponent = value.normalize(_ALL_DIGITS).as_tuple()[1:]
    scale = max(0, -int(exponent))
    return scale <= MOST_DECIMAL_DIGITS and len(digits) + max(0, int(exponent)) <= MOST_DECIMAL_DIGITS


def _common(types: Iterable[Type]) -> Type | None:
    common: Type | None = NULL
    for type_ in types:
        common = None if common is None else _common_of_two(common, type_)
    return common


def _common_of_two(left: Type, right: Type) -> Type | None:
    if left == right or fits_everywhere(right):
        return left
    if fits_everywhere(left):
        return right
    match left, right:
        case _ if is_numeric(left) and is_numeric(right):
            if FLOAT in (left, right):
                return FLOAT
            return decimal(max(_scale(left), _scale(right)))
        case (TimestampType() as zoned, TimestampType() as other):
            return replace(zoned if zoned.zone else other, unit=finer_unit(zoned, other))
        case (DurationType(), DurationType()):
            return duration(finer_unit(left, right))
        case (TimestampType() as moment, day) | (day, TimestampType() as moment) if day == DATE:
            return moment
    return None


def _scale(type_: Type) -> int:
    return type_.scale if isinstance(type_, DecimalType) else 0


def _typed_arithmetic(expression: ir.Arithmetic, scope: Scope) -> ir.Expr:
    operator, span = expression.operator, expression.span
    operands = [expression.left, expression.right]
    left, right = inners = [typed(operand, scope) for operand in operands]
    for inner in inners:
        _need(inner, scope, operator, True, "")
    types = (type_of(left), type_of(right))
    if any(map(fits_everywhere, types)):
        known = next((type_ for type_ in types if not fits_everywhere(type_)), UNKNOWN)
        if UNKNOWN in types and (operator == "*" or not is_numeric(known)):
            known = UNKNOWN  # a time less a time is a duration, a duration times a number too
        elif operator == "/":
            known = FLOAT
        return replace(expression, left=left, right=right, type=known)
    if all(map(is_numeric, types)):
        return _typed_numbers(expression, _exact_literals(operands, inners), scope)
    temporal = _typed_temporal(expression, left, right)
    if temporal is None:
        hint = (
            "Join strings with ||."
            if STRING in types and operator == "+"
            else "See the table of operators in docs/language.md."
        )
        raise scope.fail(f"cannot compute {types[0]} {operator} {types[1]}", span, hint)
    return temporal


def _typed_numbers(expression: ir.Arithmetic, operands: list[ir.Expr], scope: Scope) -> ir.Expr:
    left, right = operands
    common = _common(map(type_of, operands))
    assert common is not None
    if expression.operator == "/":
        common = FLOAT
    elif expression.operator == "*" and isinstance(common, DecimalType):
        # The digits after the point add up; both sides keep their own.
        places = _scale(type_of(left)) + _scale(type_of(right))
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
        common = _common_of_two(first.type, second.type)
        assert common is not None
        if not (_same_clock(first, common) and _same_clock(second, common)):
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
    if expression.distinct or function not in _PASSING_ON:
        for item in (argument, *others):
            _need(item, scope, function, True, "")
    result = found
    match function:
        case "count" | "count_if":
            result = INTEGER
            if function == "count_if":
                _need(argument, scope, function, found == BOOLEAN, "a condition")
        case "sum":
            _need(
                argument, scope, "sum", is_numeric(found) or isinstance(found, DurationType), "a number or a duration"
            )
        case "avg" | "median" | "stddev" | "stddev_pop" | "var_pop" | "var_samp":
            _need(argument, scope, function, is_numeric(found), "a number")
            result = FLOAT
        case "bool_and" | "bool_or":
            _need(argument, scope, function, found == BOOLEAN, "a condition")
            result = BOOLEAN
        case "collect" | "array_agg" | "collect_list" | "collect_set":
            result = array(found)
        case "listagg":
            argument, others, result = *_typed_listagg(argument, others, scope), STRING
        case "min" | "max" | "min_by" | "max_by":
            if function.endswith("_by"):
                _need(others[0], scope, function, True, "")
            if len(others) > int(function.endswith("_by")):
                _need_how_many(others[-1], function, scope)
                result = array(found)
        case "delta":
            temporal = isinstance(found, TimestampType) or found == DATE
            _need(argument, scope, "Delta", temporal or is_numeric(found), "a time or a number")
            argument = cast_to(argument, timestamp()) if found == DATE else argument
            result = duration(finer_unit(found, found)) if temporal else found
    return replace(expression, argument=argument, others=others, condition=where, order=order, type=result)


_PASSING_ON = (*("any_value", "array_agg", "collect", "collect_list", "count", "first", "last", "max_by", "min_by"),)
"""Aggregates that take values of any type, since they do not look at them."""


def _typed_order(key: ir.OrderKey, scope: Scope) -> ir.OrderKey:
    operand = typed(key.operand, scope)
    _need(operand, scope, "ORDER BY", True, "")
    return replace(key, operand=operand, type=operand.type)


def _typed_listagg(argument: ir.Expr, others: tuple[ir.Expr, ...], scope: Scope) -> tuple[ir.Expr, tuple[ir.Expr, ...]]:
    found = type_of(argument)
    fits = fits_everywhere(found) or _can_cast(found, STRING)
    _need(argument, scope, "listagg", fits, "a string", "Convert it: CAST(… AS string)")
    for other in others:
        is_text = isinstance(other, ir.Literal) and (other.value is None or other.type == STRING)
        if not is_text:
            raise scope.fail("what stands between the values must be a literal string", other.span)
    return cast_to(argument, STRING), others


def _need_how_many(other: ir.Expr, function: str, scope: Scope) -> None:
    match other:
        case ir.Literal(value=int() as value) if value >= 1 and not isinstance(value, bool):
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
    if name not in FUNCTIONS and scope.functions_of_spark and scope.schema is None:
        passed = tuple(typed(argument, scope) for argument in expression.arguments)
        return replace(expression, arguments=passed, type=UNKNOWN)
    if name not in FUNCTIONS:
        known = sorted([*FUNCTIONS, "avg", "collect", "count", "first", "last", "max", "min", "sum"])
        raise scope.fail(
            f"unknown function '{printable(name)}'",
            expression.name_span,
            f"Functions: {listed(known, most=30)}.{did_you_mean(name, known)}"
            + (" On Spark, any of Spark's functions may stand here." if scope.functions_of_spark else ""),
        )
    least, most = FUNCTIONS[name]
    given = len(expression.arguments)
    if given < least or (most is not None and given > most):
        wanted = f"{least}" if least == most else f"{least} or {most}" if most else f"at least {least}"
        raise scope.fail(
            f"{name} takes {wanted} argument{'' if wanted == '1' else 's'}, not {given}", expression.name_span
        )
    arguments, result = _function_types(expression, scope)
    return replace(expression, arguments=tuple(arguments), type=result)


def _function_types(expression: ir.Function, scope: Scope) -> tuple[list[ir.Expr], Type]:
    name, given = expression.name, list(expression.arguments)
    match name:
        case "lower" | "upper" | "concat":
            who = "||" if name == "concat" else name
            return [_string(item, scope, who) for item in given], STRING
        case "length":
            return [_string(given[0], scope, name)], INTEGER
        case "sqrt" | "ln" | "exp" | "power":
            return [cast_to(_number(item, scope, name), FLOAT) for item in given], FLOAT
        case "floor" | "ceil":
            return [_number(given[0], scope, name)], INTEGER
        case "abs":
            number = typed(given[0], scope)
            _need(number, scope, name, is_numeric(type_of(number)) or isinstance(number.type, DurationType), "a number")
            return [number], type_of(number)
        case "round":
            number, *places = (_number(item, scope, name) for item in given)
            if places and not (isinstance(places[0], ir.Literal) and isinstance(places[0].value, int)):
                raise scope.fail("the number of places to round to must be a literal whole number", places[0].span)
            return [number, *places], type_of(number)
    # least, greatest, coalesce
    arguments = _alike(given, scope, f"use {name}", expression.span)
    common = _common(map(type_of, arguments))
    assert common is not None
    return arguments, common


def _typed_cast(expression: ir.Cast, to: Type, scope: Scope) -> ir.Expr:
    found = type_of(expression.operand)
    _need(expression.operand, scope, "CAST", True, "")
    if not (found == to or fits_everywhere(found) or _can_cast(found, to)):
        raise scope.fail(f"cannot convert {a_type(found)} to {a_type(to)}", expression.span)
    return replace(expression, type=to)


def _can_cast(found: Type, to: Type) -> bool:
    if STRING in (found, to):
        return not isinstance(found, DurationType) and not isinstance(to, DurationType)
    if is_numeric(found) and is_numeric(to):
        return True
    if isinstance(found, TimestampType) and isinstance(to, TimestampType):
        return found.zone == to.zone
    names = (
        found.name if isinstance(found, TimestampType) else found,
        to.name if isinstance(to, TimestampType) else to,
    )
    zoned = [type_ for type_ in (found, to) if isinstance(type_, TimestampType) and type_.zone]
    return names in _CASTS and not zoned

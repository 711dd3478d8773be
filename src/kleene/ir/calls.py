"""Calls of functions and aggregates of the user's own: plain values in, the values that Python expects between, plain
values out. What goes wrong in them is an error that names the function, its arguments and the row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

from kleene.errors import ExecutionError, KleeneWarning, printable, shown
from kleene.ir import expr as ir
from kleene.ir.own import OwnAggregate
from kleene.ir.purity import second_answer_differs
from kleene.ir.query import QueryDefinition
from kleene.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    LARGEST_INTEGER,
    MOST_DECIMAL_DIGITS,
    SMALLEST_INTEGER,
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
    per_microsecond,
)

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_WIDE = Context(prec=1_000)
"""Room for every digit of a float."""


def is_own(expression: ir.Expr) -> bool:
    """Whether it is a call of a function, or an aggregate, of the user's own."""
    return isinstance(expression, ir.PythonCall) or (
        isinstance(expression, ir.Aggregate) and expression.own is not None
    )


def calls_own(definition: QueryDefinition) -> bool:
    """Whether the query calls functions or aggregates of the user's own."""
    expressions = [*definition.predicates, *(item.condition for item in definition.definitions)]
    expressions += [measure.expression for measure in definition.measures or ()]
    expressions += [definition.having] if definition.having is not None else []
    return any(is_own(node) for expression in expressions for node in ir.walk(expression))


def called(call: ir.PythonCall, arguments: Iterable[Any], where: str = "") -> Any:
    """What the user's function says of the values, in the types a Python programmer expects."""
    given: tuple[Any, ...] = ()
    try:
        given = tuple(python_value(value, item.type) for value, item in zip(arguments, call.arguments, strict=True))
        result = call.function(*given)
    except Exception as error:
        raise _failed("function", call.name, error, given, where) from error
    _warn_if_impure("function", call.name, call.function, given, result)
    return plain_result(result, call.type, "function", call.name, given, where)


def folded(aggregate: ir.Aggregate, values: Iterable[Any], where: str = "") -> Any:
    """An aggregate of the user's own over values, which are not NULL."""
    own = aggregate.own
    assert own is not None
    state, is_empty = started(own), True
    for value in values:
        state, is_empty = stepped(own, state, value, aggregate.argument.type, where), False
    return None if is_empty else finished(own, state, aggregate.type, where)


def started(own: OwnAggregate) -> Any:
    """The first state."""
    try:
        return own.started()
    except Exception as error:
        raise _failed("aggregate", own.name, error, (), "") from error


def stepped(own: OwnAggregate, state: Any, value: Any, type_: Type | None, where: str = "") -> Any:
    """The next state."""
    given: tuple[Any, ...] = (state,)
    try:
        given = (state, python_value(value, type_))
        result = own.step(*given)
    except Exception as error:
        raise _failed("aggregate", own.name, error, given, where) from error
    _warn_if_impure("aggregate", own.name, own.step, given, result)
    return result


def finished(own: OwnAggregate, state: Any, type_: Type | None, where: str = "") -> Any:
    """What the aggregate is in the end."""
    result = state
    if own.finish is not None:
        try:
            result = own.finish(state)
        except Exception as error:
            raise _failed("aggregate", own.name, error, (state,), where) from error
        _warn_if_impure("aggregate", own.name, own.finish, (state,), result)
    return plain_result(result, type_, "aggregate", own.name, (state,), where)


def _failed(kind: str, name: str, error: Exception, given: tuple[Any, ...], where: str) -> ExecutionError:
    return ExecutionError(f"the {kind} '{printable(name)}' failed: {shown(error)}", hint=_called_with(given, where))


def _called_with(given: tuple[Any, ...], where: str) -> str:
    return f"It was called with {shown(given)}{where}"


def _warn_if_impure(kind: str, name: str, function: Callable[..., Any], given: tuple[Any, ...], result: object) -> None:
    note = second_answer_differs(function, given, result)
    if note is not None:
        warnings.warn(f"the {kind} '{printable(name)}' {note}", KleeneWarning, stacklevel=2)


# --- from plain values to Python's -----------------------------------------------------------------------------------


def python_value(value: Any, type_: Type | None) -> Any:
    if value is None:
        return None
    match type_:
        case ArrayType(element=element):
            return [python_value(item, element) for item in value]  # a copy, which the function may spoil
        case StructType(fields=fields):
            return {name: python_value(item, own) for (name, own), item in zip(fields, value, strict=True)}
        case MapType(key=key, value=own):
            return {python_value(name, key): python_value(item, own) for name, item in value.items()}
        case DecimalType(scale=scale):
            return Decimal(value).scaleb(-scale, _WIDE)
        case TimestampType():
            return _EPOCH + value // per_microsecond(type_) * _MICROSECOND
        case _ if type_ == DATE:
            return _EPOCH.date() + timedelta(days=value)
        case _ if type_ == TIME:
            return (_EPOCH + value * _MICROSECOND).time()
        case DurationType():
            return value // per_microsecond(type_) * _MICROSECOND
    return value


# --- and back --------------------------------------------------------------------------------------------------------

_ANY_RESULT = "only numbers, strings, booleans, dates and times are used"
_WANTED: dict[Type, str] = {
    BOOLEAN: "a condition is True or False",
    INTEGER: "it says that it returns an int of 64 bits",
    FLOAT: "it says that it returns a float",
    STRING: "it says that it returns a str",
    DATE: "it says that it returns a date",
    TIME: "it says that it returns a time",
}
"""What to say where a function returns something else than its call is of."""


def plain_result(result: Any, type_: Type | None, kind: str, name: str, given: tuple[Any, ...], where: str = "") -> Any:
    """The result as values are held; an error if it is not of the type. Of an unknown type, it says its own."""
    if hasattr(result, "item") and not isinstance(result, (list, dict)):  # a scalar of NumPy
        try:
            result = result.item()
        except Exception:  # an array of several
            result = object()
    if result is None:
        return None
    plain = _plain(result, type_ or UNKNOWN)
    if plain is None:
        raise ExecutionError(
            f"the {kind} '{printable(name)}' returned {shown(result)}, but {_wanted(type_)}",
            hint=_called_with(given, where),
        )
    return plain


def _wanted(type_: Type | None) -> str:
    match type_:
        case DecimalType(scale=scale):
            return f"it says that it returns a Decimal, of up to {scale} digits after the point and 38 in all"
        case TimestampType():
            return "it says that it returns a datetime"
        case DurationType():
            return "it says that it returns a timedelta"
    return _WANTED.get(type_ or UNKNOWN, _ANY_RESULT)


def _plain(result: Any, type_: Type) -> Any:
    """The result as values of the type are held; None if it is not of the type."""
    is_number = isinstance(result, (int, float)) and not isinstance(result, bool)
    is_whole = is_number and isinstance(result, int)
    match type_:
        case _ if type_ == UNKNOWN:
            if isinstance(result, Decimal):
                return _as_float(result)
            own = _own_type(result)
            return None if own is None else _plain(result, own)
        case _ if type_ == BOOLEAN:
            return result if isinstance(result, bool) else None
        case _ if type_ == INTEGER:
            return result if is_whole and SMALLEST_INTEGER <= result <= LARGEST_INTEGER else None
        case _ if type_ == FLOAT:
            return _as_float(result) if is_number else None
        case _ if type_ == STRING:
            return result if isinstance(result, str) and _is_text(result) else None
        case DecimalType(scale=scale):
            return _unscaled(result, scale) if is_whole or isinstance(result, Decimal) else None
        case TimestampType():
            if not isinstance(result, datetime):
                return None
            moment = result if result.tzinfo is None else result.astimezone(UTC).replace(tzinfo=None)
            return (moment - _EPOCH) // _MICROSECOND * per_microsecond(type_)
        case _ if type_ == DATE:
            is_date = isinstance(result, date) and not isinstance(result, datetime)
            return (result - _EPOCH.date()).days if is_date else None
        case _ if type_ == TIME:
            return _of_day(result) if isinstance(result, time) else None
        case DurationType():
            return result // _MICROSECOND * per_microsecond(type_) if isinstance(result, timedelta) else None
    return None


def _own_type(result: Any) -> Type | None:
    """What a result is, where no annotation says it; a decimal is compared as a float is."""
    kinds: tuple[tuple[Any, Type], ...] = (
        (bool, BOOLEAN),
        (int, INTEGER),
        (float, FLOAT),
        (str, STRING),
        (datetime, TimestampType("timestamp")),
        (date, DATE),
        (time, TIME),
        (timedelta, DurationType("duration")),
    )
    return next((type_ for kind, type_ in kinds if isinstance(result, kind)), None)


def _is_text(result: str) -> bool:
    """Whether it can be written in UTF-8, which halves of characters cannot."""
    try:
        result.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_float(result: int | float | Decimal) -> float | None:
    try:
        return float(result)
    except OverflowError:
        return None


def _unscaled(result: int | Decimal, scale: int) -> int | None:
    if isinstance(result, Decimal) and not result.is_finite():
        return None
    whole = Decimal(result).scaleb(scale, _WIDE)
    fits = whole == whole.to_integral_value() and abs(whole) < 10**MOST_DECIMAL_DIGITS
    return int(whole) if fits else None


def _of_day(result: time) -> int:
    return (datetime.combine(_EPOCH.date(), result.replace(tzinfo=None)) - _EPOCH) // _MICROSECOND

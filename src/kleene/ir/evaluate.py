"""The value of an expression for given events, in plain code.

Expressions come typed from analysis, so that a value is never converted here unless a `Cast` says so. NULL is None;
NaN compares as unknown, like NULL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any, Protocol

from kleene.errors import ExecutionError, printable, shown
from kleene.ir import expr as ir
from kleene.ir.calls import called, folded
from kleene.ir.expr import Position
from kleene.ir.functions import nested, regexes, texts, times
from kleene.ir.text import expression_text
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
    ArrayType,
    DecimalType,
    DurationType,
    MapType,
    StructType,
    TimestampType,
    Type,
    a_type,
    is_nested,
    is_numeric,
    per_microsecond,
)

MICROSECONDS_PER_DAY = 86_400_000_000
PlainValue = bool | int | float | str | None
"""How the values of events are held: times as microseconds, dates as days, decimals without their point."""
_EPOCH = datetime(1970, 1, 1)
_WIDE = Context(prec=1_000)
"""Room for every digit of a float."""
_MICROSECOND = timedelta(microseconds=1)
_WITH_NULLS = frozenset(
    {"array", "concat_ws", "greatest", "least", "locate", "map", "named_struct", "nullif", "struct"}
)
_OF_NESTED: dict[str, Callable[..., Any]] = {
    "array_contains": nested.array_contains,
    "array_join": nested.array_join,
    "array_max": nested.array_max,
    "array_min": nested.array_min,
    "element_at": nested.element_at,
    "map_from_arrays": nested.map_of_arrays,
    "map_keys": lambda entries: list(entries),
    "map_values": lambda entries: list(entries.values()),
    "size": len,
}
_OF_TEXTS: dict[str, Callable[..., Any]] = {
    "concat": lambda *parts: "".join(parts),
    "contains": texts.contains,
    "endswith": texts.endswith,
    "instr": texts.instr,
    "left": texts.left,
    "length": len,
    "lower": str.lower,
    "lpad": texts.lpad,
    "ltrim": texts.ltrim,
    "replace": texts.replace,
    "right": texts.right,
    "rpad": texts.rpad,
    "rtrim": texts.rtrim,
    "split_part": texts.split_part,
    "startswith": texts.startswith,
    "substring": texts.substring,
    "trim": texts.trim,
    "upper": str.upper,
}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


class Bindings(Protocol):
    """What an expression is evaluated for: gives the values of the nodes that depend on the events."""

    def value(self, expression: ir.Expr) -> Any: ...


@dataclass(frozen=True, slots=True)
class EventBindings:
    """The events that a SASE run has selected.

    `selected` are the positions of each variable's events, `index` says which of a Kleene variable's events is the
    current one, `column` gives an attribute's values by position, and `is_missing` says whether the event at a
    position is of a type without the attribute.
    """

    selected: Mapping[str, Sequence[int]]
    index: Mapping[str, int]
    column: Callable[[str], Sequence[PlainValue]]
    is_missing: Callable[[int, str], bool]

    @property
    def current_row(self) -> int:
        """That of the event that was selected last."""
        return max(position for positions in self.selected.values() for position in positions)

    def value(self, expression: ir.Expr) -> Any:
        match expression:
            case ir.Attribute():
                position = self.position_of(expression)
                return None if position is None else self.column(expression.name)[position]
            case ir.Length(variable=variable):
                return len(self.selected[variable])
            case ir.PythonCall(arguments=arguments):
                attribute = next(node for one in arguments for node in ir.walk(one) if isinstance(node, ir.Attribute))
                position = self.position_of(attribute)
                return None if position is None else self.column(vectorized_key(expression))[position]
            case ir.Aggregate():
                return self._aggregate(expression)
            case ir.IfPresent(predicate=predicate):
                missing = any(self._is_missing(node) for node in ir.walk(predicate))
                return True if missing else evaluate(predicate, self)
        raise AssertionError(f"no rule to evaluate {type(expression).__name__}")

    def position_of(self, attribute: ir.Attribute) -> int | None:
        """Where the event is; None if the variable has none, as in a run that is not complete."""
        assert attribute.variable is not None
        events = self.selected[attribute.variable]
        if not events:
            return None
        match attribute.position:
            case Position.FIRST:
                return events[0]
            case Position.LAST:
                return events[-1]
            case Position.PREVIOUS:
                return events[self.index[attribute.variable] - 1]
        return events[self.index.get(attribute.variable, 0)]

    def _is_missing(self, node: ir.Expr) -> bool:
        if not isinstance(node, ir.Attribute) or node.position in (Position.ALL, Position.SO_FAR):
            return False
        position = self.position_of(node)
        return position is not None and self.is_missing(position, node.name)

    def _aggregate(self, aggregate: ir.Aggregate) -> Any:
        variable, position = _aggregated(aggregate)
        count = self.index[variable] if position is Position.SO_FAR else len(self.selected[variable])
        if isinstance(aggregate.argument, ir.Events):
            return count
        each = (replace(self, index={variable: index}) for index in range(count))
        values = [evaluate(aggregate.argument, here) for here in each]
        if aggregate.own is not None:
            return folded(aggregate, [value for value in values if value is not None], where(self))
        return values if aggregate.function == "collect" else aggregated(aggregate, values)


def _aggregated(aggregate: ir.Aggregate) -> tuple[str, Position]:
    for node in ir.walk(aggregate.argument):
        if isinstance(node, (ir.Attribute, ir.Events)):
            assert node.variable is not None
            return node.variable, node.position
    raise AssertionError("an aggregate without a reference passed analysis")


def evaluate(expression: ir.Expr, bindings: Bindings) -> Any:
    """The expression's value; None is NULL or, of a condition, unknown."""
    match expression:
        case ir.Literal(value=value):
            return value
        case ir.Comparison(operator=operator, left=left, right=right):
            return compare(operator, evaluate(left, bindings), evaluate(right, bindings))
        case ir.And(operands=operands):
            return _and(evaluate(operand, bindings) for operand in operands)
        case ir.Or(operands=operands):
            return _or(evaluate(operand, bindings) for operand in operands)
        case ir.Not(operand=operand):
            return _not(evaluate(operand, bindings))
        case ir.Arithmetic(left=left, right=right):
            return _arithmetic(expression, evaluate(left, bindings), evaluate(right, bindings))
        case ir.Negate(operand=operand):
            value = evaluate(operand, bindings)
            return None if value is None else in_range(-value, expression)
        case ir.IsNull(operand=operand):
            return evaluate(operand, bindings) is None
        case ir.In(operand=operand, choices=choices):
            value = evaluate(operand, bindings)
            return _or(compare("=", value, evaluate(choice, bindings)) for choice in choices)
        case ir.Like(operand=operand, pattern=pattern):
            return _like(evaluate(operand, bindings), evaluate(pattern, bindings))
        case ir.Case(branches=branches, default=default):
            chosen = (result for condition, result in branches if evaluate(condition, bindings) is True)
            return _as_value(evaluate(next(chosen, default), bindings), expression)
        case ir.Cast(operand=operand, tries=tries):
            return (_try_cast if tries else _cast)(expression, evaluate(operand, bindings))
        case ir.Function(name="coalesce", arguments=arguments):
            known = (value for value in (evaluate(one, bindings) for one in arguments) if value is not None)
            return _as_value(next(known, None), expression)
        case ir.Function(arguments=arguments):
            return _call(expression, [evaluate(argument, bindings) for argument in arguments])
        case ir.Item(operand=operand, key=key):
            return nested.item(evaluate(operand, bindings), evaluate(key, bindings))
        case ir.Field(operand=operand, name=name):
            assert isinstance(operand.type, StructType)
            value = evaluate(operand, bindings)
            return None if value is None else value[[own for own, _ in operand.type.fields].index(name)]
        case ir.PythonCall(arguments=arguments, vectorized=False):
            return called(expression, [evaluate(argument, bindings) for argument in arguments], where(bindings))
    return bindings.value(expression)


def vectorized_key(call: ir.PythonCall) -> str:
    """The name of the column that a vectorized call makes, whatever variable the event is bound to."""
    return f"{call.name}{id(call.function)}({', '.join(repr(of_one_event(argument)) for argument in call.arguments)})"


def of_one_event(expression: ir.Expr) -> ir.Expr:
    """The expression with its attributes freed from variables: `lower(a[i].s)` and `lower(b.s)` are one column."""
    if isinstance(expression, ir.Attribute):
        return replace(expression, variable=None, position=Position.EACH)
    return ir.with_children(expression, of_one_event)


def where(bindings: Bindings) -> str:
    """The row that is looked at, for messages; nothing where the bindings do not know it."""
    row: int | None = getattr(bindings, "current_row", None)
    return "" if row is None else f" at row {row + 1:,}"


def compare(operator: str, left: Any, right: Any) -> bool | None:
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return nested.equal(left, right) is (operator == "=")
    # NaN is the one value that differs from itself.
    if left is None or right is None or left != left or right != right:
        return None
    try:
        return _COMPARE[operator](left, right)
    except TypeError:  # only what a function of the user's gave can be of a wrong type
        raise ExecutionError(
            f"cannot use the result of a function: {shown(left)} {operator} {shown(right)} has no meaning",
            hint="Let the function return the type that the predicate needs.",
        ) from None


def _and(values: Iterable[bool | None]) -> bool | None:
    result: bool | None = True
    for value in values:
        if value is False:
            return False
        if value is None:
            result = None
    return result


def _or(values: Iterable[bool | None]) -> bool | None:
    return _not(_and(_not(value) for value in values))


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _like(value: str | None, pattern: str | None) -> bool | None:
    if value is None or pattern is None:
        return None
    return like(value, pattern)


def like(value: str, pattern: str) -> bool:
    r"""Whether the value is like the pattern: % is any text, _ any character, \ takes the next one literally.

    Each part between two % is sought from the left, which never needs to be taken back.

    >>> like("abc", "a%"), like("abc", "a\\%"), like("aXbXc", "a%b_c")
    (True, False, True)
    """
    first, *others = _like_parts(pattern)
    if not others:
        return first.fullmatch(value) is not None
    found = first.match(value)
    if found is None:
        return False
    position = found.end()
    for part in others[:-1]:
        found = part.search(value, position)
        if found is None:
            return False
        position = found.end()
    last = others[-1]
    start = len(value) - _length_of(last)
    return start >= position and last.fullmatch(value, start) is not None


@lru_cache(maxsize=256)
def _like_parts(pattern: str) -> tuple[re.Pattern[str], ...]:
    """The parts of the pattern between its %, each of a fixed length."""
    parts = [""]
    for item in re.findall(r"\\.|.|\\", pattern, re.DOTALL):
        if item == "%":
            parts.append("")
        else:
            parts[-1] += "." if item == "_" else re.escape(item[-1])
    return tuple(re.compile(part, re.DOTALL) for part in parts)


@lru_cache(maxsize=256)
def _length_of(part: re.Pattern[str]) -> int:
    return len(re.findall(r"\\.|.", part.pattern, re.DOTALL))


def in_range(value: Any, expression: ir.Expr) -> Any:
    """The value, if its type can hold it."""
    match expression.type:
        case DecimalType():
            fits = abs(value) < 10**MOST_DECIMAL_DIGITS
        case TimestampType():
            fits = SMALLEST_INTEGER <= value <= LARGEST_INTEGER
        case _:
            is_whole = expression.type == INTEGER or isinstance(expression.type, DurationType)
            fits = not is_whole or SMALLEST_INTEGER <= value <= LARGEST_INTEGER
    if not fits:
        assert expression.type is not None
        raise ExecutionError(
            f"overflow: {printable(expression_text(expression), 200)} does not fit {a_type(expression.type)}",
            hint="Cast an operand to float, which is approximate but has no such limit."
            if is_numeric(expression.type)
            else None,
        )
    return value


def _as_value(value: Any, expression: ir.Expr) -> Any:
    """A value chosen from several: as a decimal it may be one that only an implicit conversion made too wide."""
    return in_range(value, expression) if isinstance(expression.type, DecimalType) and value is not None else value


def _arithmetic(expression: ir.Arithmetic, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    match expression.operator:
        case "+":
            return in_range(left + right, expression)
        case "-":
            return in_range(left - right, expression)
        case "*":
            return in_range(left * right, expression)
        case "/":
            return None if right == 0 else left / right
        case "%":
            return None if right == 0 else _remainder(left, right)
    raise AssertionError(expression.operator)


def _remainder(left: Any, right: Any) -> Any:
    """What is left after division, with the sign of the dividend."""
    if isinstance(left, float):
        return math.fmod(left, right) if math.isfinite(left) else math.nan
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def aggregated(aggregate: ir.Aggregate, values: list[Any]) -> Any:
    """The aggregate of the values; NULLs are skipped. Sums are made from left to right, as when done incrementally."""
    function = aggregate.function
    values = [value for value in values if value is not None]
    if function == "count":
        return len(values)
    if function in ("min", "max"):
        values = [value for value in values if value == value]  # NaN is neither small nor large
    if not values:
        return None
    match function:
        case "first":
            return values[0]
        case "last":
            return values[-1]
        case "min":
            return min(values)
        case "max":
            return max(values)
    total = values[0]
    for value in values[1:]:
        total = sum_of(aggregate, total, value)
    if function == "sum":
        return total
    assert function == "avg"
    return average_of(aggregate, total, len(values))


def sum_of(aggregate: ir.Aggregate, total: Any, value: Any) -> Any:
    """The sum with one more value; a sum, though not an average, must be of the type of the values."""
    if aggregate.function == "avg":
        return total + value
    return in_range(total + value, ir.Aggregate("sum", aggregate.argument, type=aggregate.argument.type))


def average_of(aggregate: ir.Aggregate, total: Any, count: int) -> int | float:
    """The total divided by the count; of decimals a decimal, rounded half away from zero."""
    source, target = aggregate.argument.type, aggregate.type
    if not (isinstance(source, DecimalType) and isinstance(target, DecimalType)):
        return as_float(total, source) / count
    whole, left = divmod(abs(total) * 10 ** (target.scale - source.scale), count)
    rounded = whole + (2 * left >= count)
    return int(in_range(-rounded if total < 0 else rounded, aggregate))


def as_float(value: Any, type_: Type | None) -> float:
    """A plain number of the type as a float."""
    return value / 10**type_.scale if isinstance(type_, DecimalType) else float(value)


def _cast(cast: ir.Cast, value: Any) -> Any:
    source, target = cast.operand.type, cast.type
    if value is None:
        return value
    try:
        if is_nested(target):
            return _cast_nested(value, source, target)
        if target == STRING:
            return value if source == STRING else text_of(value, source)
        if source == STRING:
            return _within_digits(in_range(_parsed(value, target), cast), cast)
        converted = value if source == target else _converted(value, source, target)
        # What analysis put in, to compare or to compute, is not a value that anybody sees.
        return converted if cast.implicit else _within_digits(in_range(converted, cast), cast)
    except (ValueError, ArithmeticError):
        assert target is not None
        raise ExecutionError(
            f"{printable(expression_text(cast), 200)}: '{printable(str(value))}' is not {a_type(target)}",
            hint="Filter such values out, or convert them before matching.",
        ) from None


def _cast_nested(value: Any, source: Type | None, target: Type | None) -> Any:
    """An array, a struct or a map with its parts converted; analysis puts these in, so that nothing is out of range."""
    if value is None or source == target:
        return value
    match source, target:
        case ArrayType(element=one), ArrayType(element=other):
            return [_cast_nested(item, one, other) for item in value]
        case StructType(fields=ones), StructType(fields=others):
            pairs = zip(ones, others, strict=True)
            types = [(one, other) for (_, one), (_, other) in pairs]
            return tuple(_cast_nested(item, *pair) for item, pair in zip(value, types, strict=True))
        case MapType(), MapType():
            keys = (_cast_nested(key, source.key, target.key) for key in value)
            return dict(
                zip(keys, (_cast_nested(item, source.value, target.value) for item in value.values()), strict=True)
            )
    return text_of(value, source) if target == STRING else _converted(value, source, target)


def _try_cast(cast: ir.Cast, value: Any) -> Any:
    try:
        return _cast(cast, value)
    except ExecutionError:
        return None


def _within_digits(value: Any, cast: ir.Cast) -> Any:
    if isinstance(cast.to, DecimalType) and abs(value) >= 10**cast.digits:
        raise ExecutionError(
            f"overflow: {printable(expression_text(cast), 200)} has more than {cast.digits} digits",
            hint="Cast to a decimal with more digits, or to float.",
        )
    return value


def _converted(value: Any, source: Type | None, target: Type | None) -> Any:
    match target:
        case DecimalType(scale=scale):
            if isinstance(source, DecimalType):
                value = Decimal(value).scaleb(-source.scale, _WIDE)
            exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
            return _rounded(exact, scale, unscaled=True)
        case TimestampType() if source == DATE:
            return value * MICROSECONDS_PER_DAY * per_microsecond(target)
        case TimestampType() | DurationType():
            return value * per_microsecond(target) // per_microsecond(source)
        case _ if target == FLOAT:
            return as_float(value, source)
        case _ if target == INTEGER:
            return int(as_float(value, source)) if source == FLOAT else _truncated(value, source)
        case _ if target == BOOLEAN:
            return value != 0
        case _ if target == DATE:
            return value // (MICROSECONDS_PER_DAY * per_microsecond(source))
    raise AssertionError(f"no conversion from {source} to {target}")


def _truncated(value: int, source: Type | None) -> int:
    power = 10**source.scale if isinstance(source, DecimalType) else 1
    return -(-value // power) if value < 0 else value // power


def _parsed(text: str, target: Type | None) -> Any:
    text = text.strip()
    match target:
        case TimestampType():
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is not None:
                raise ValueError("the text has a zone, but the timestamp has none")
            return (moment - _EPOCH) // _MICROSECOND
        case DecimalType(scale=scale) if text.isascii() and "_" not in text:
            return _rounded(Decimal(text), scale, unscaled=True)
        case _ if target == DATE:
            return (date.fromisoformat(text) - _EPOCH.date()).days
        case _ if target == TIME:
            return (datetime.combine(_EPOCH.date(), time.fromisoformat(text)) - _EPOCH) // _MICROSECOND
        case _ if target == INTEGER and re.fullmatch(r"[+-]?[0-9]+", text):
            return int(text)
        case _ if target == FLOAT and text.isascii() and "_" not in text:
            return float(text)
        case _ if target == BOOLEAN:
            words = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
            if text.lower() in words:
                return words[text.lower()]
    raise ValueError(text)


def text_of(value: Any, type_: Type | None) -> str:
    """A value as CAST(… AS string) writes it."""
    match type_:
        case DecimalType(scale=scale):
            return f"{Decimal(value).scaleb(-scale, _WIDE):f}"
        case TimestampType():
            return timestamp_text(value, type_)
        case _ if type_ == TIME:
            return str((_EPOCH + value * _MICROSECOND).time().isoformat())
        case _ if type_ == DATE:
            return (_EPOCH.date() + timedelta(days=value)).isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


def timestamp_text(value: int, type_: Type | None) -> str:
    """A time as ISO 8601 writes it, with nanoseconds where it has some."""
    whole, finer = divmod(value, per_microsecond(type_))
    if not finer:
        return str((_EPOCH + whole * _MICROSECOND).isoformat(" "))
    return (_EPOCH + whole * _MICROSECOND).isoformat(" ", "microseconds") + f"{finer:03}"


def _rounded(value: Decimal, places: int, unscaled: bool = False) -> Any:
    """The value with that many places, half of the last place away from zero."""
    exponent = int(value.as_tuple().exponent)
    if abs(value.adjusted()) > 400 or abs(places) > 400:
        raise ValueError("out of range")
    if -exponent <= places and not unscaled:
        return value  # there is nothing to round
    shifted = int(_WIDE.scaleb(value, places).quantize(Decimal(1), ROUND_HALF_UP, _WIDE))
    return shifted if unscaled else _WIDE.scaleb(Decimal(shifted), -places)


def _call(call: ir.Function, arguments: list[Any]) -> Any:
    name = call.name
    if name in _WITH_NULLS:
        return _call_with_nulls(call, arguments)
    if any(argument is None for argument in arguments):
        return None
    if isinstance(arguments[0], list) and name in ("concat", "reverse"):
        return arguments[0][::-1] if name == "reverse" else [item for part in arguments for item in part]
    if name in _OF_NESTED:
        return _OF_NESTED[name](*arguments)
    if name in _OF_TEXTS:
        return _OF_TEXTS[name](*arguments)
    if name in times.OF_DATE or name in times.OF_CLOCK:
        return times.part(name, arguments[0], call.arguments[0].type)
    match name:
        case "abs":
            return in_range(abs(arguments[0]), call)
        case "floor" | "ceil":
            return _whole(call, arguments[0])
        case "round":
            return _round(call, arguments[0], *arguments[1:])
        case "reverse":
            return arguments[0][::-1]
        case "regexp_like":
            return _is_found(*arguments)
        case "pmod":
            return _positive_remainder(*arguments)
        case "sign":
            value = arguments[0]
            return math.copysign(1.0, value) if value < 0 or value > 0 else value
    if name.startswith(("date_", "unix_")):
        return _time_function(call, arguments)
    return _float_function(name, arguments)


def _call_with_nulls(call: ir.Function, arguments: list[Any]) -> Any:
    """Functions that may have a value though an argument is NULL."""
    match call.name:
        case "least" | "greatest" as name:
            known = [argument for argument in arguments if argument is not None and argument == argument]
            return _as_value((min if name == "least" else max)(known, default=None), call)
        case "nullif":
            return _nullif(call, *arguments)
        case "locate":
            if len(arguments) == 3 and arguments[2] is None:
                return 0
            return None if None in arguments else texts.locate(*arguments)
        case "concat_ws":
            separator, *parts = arguments
            flat = (item for part in parts for item in (part if isinstance(part, list) else [part]))
            return None if separator is None else separator.join(item for item in flat if item is not None)
        case "array":
            return arguments
        case "struct":
            return tuple(arguments)
        case "named_struct":
            return tuple(arguments[1::2])
    assert call.name == "map"
    return nested.map_of_arrays(arguments[::2], arguments[1::2])


def _nullif(call: ir.Function, value: Any, other: Any) -> Any:
    """NULL if the two are equal, in the type of the second."""
    first, second = call.arguments
    if value is None or other is None:
        return value
    assert second.type is not None
    compared = value if first.type == second.type else _cast(_converting(first, second.type), value)
    return None if compare("=", compared, other) is True else value


def _converting(operand: ir.Expr, to: Type) -> ir.Cast:
    return ir.Cast(operand, to, implicit=True, type=to)


def _is_found(text: str, pattern: str) -> bool:
    try:
        return regexes.is_found(text, pattern)
    except regexes.PatternError as error:
        raise ExecutionError(
            f"the regular expression '{printable(pattern)}' cannot be used: {error}",
            hint="Patterns are what Java and RE2 have in common.",
        ) from None


def _positive_remainder(left: Any, right: Any) -> Any:
    """The remainder; a negative one is brought up by the divisor, as Spark has it."""
    if right == 0:
        return None
    remainder = _remainder(left, right)
    return _remainder(remainder + right, right) if remainder < 0 else remainder


def _time_function(call: ir.Function, arguments: list[Any]) -> Any:
    types = [argument.type for argument in call.arguments]
    match call.name:
        case "date_part":
            return times.part(times.FIELDS[arguments[0].lower()], arguments[1], types[1])
        case "date_trunc":
            found = times.truncated(arguments[0], arguments[1], types[1])
            return None if found is None else in_range(found, call)
        case "unix_timestamp":
            return times.seconds_since_1970(arguments[0], types[0])
        case "date_diff":
            return times.days_of(arguments[0], types[0]) - times.days_of(arguments[1], types[1])
        case "date_add":
            return times.days_later(times.days_of(arguments[0], types[0]), arguments[1])
    assert call.name == "date_sub"
    return times.days_later(times.days_of(arguments[0], types[0]), -arguments[1])


def _float_function(name: str, arguments: list[float]) -> float | None:
    """As Spark has it: the logarithm of what has none is NULL, other results out of range are NaN or infinite."""
    try:
        match name:
            case "sqrt":
                return math.sqrt(arguments[0])
            case "ln":
                return math.log(arguments[0]) if not arguments[0] <= 0 else None
            case "exp":
                return math.exp(arguments[0])
            case "power":
                return math.pow(*arguments)
    except OverflowError:
        negative = name == "power" and arguments[0] < 0 and math.fmod(arguments[1], 2) != 0
        return -math.inf if negative else math.inf
    except ValueError:
        if name == "power" and arguments[0] == 0:
            is_odd = math.fmod(arguments[1], 2) in (1.0, -1.0)
            return math.copysign(math.inf, arguments[0]) if is_odd else math.inf
        return math.nan
    raise AssertionError(f"no function {name}")


def _whole(call: ir.Function, value: Any) -> int | None:
    source = call.arguments[0].type
    if isinstance(source, DecimalType):
        power = 10**source.scale
        return int(in_range(value // power if call.name == "floor" else -(-value // power), call))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    whole = math.floor(value) if call.name == "floor" else math.ceil(value)
    return int(in_range(whole, call))


def _round(call: ir.Function, value: Any, places: int = 0) -> Any:
    if places > 400 or (isinstance(value, float) and not math.isfinite(value)):
        return value
    places = max(places, -400)
    match call.type:
        case DecimalType(scale=scale):
            return in_range(int(_rounded(Decimal(value).scaleb(-scale, _WIDE), places).scaleb(scale)), call)
        case _ if call.type == FLOAT:
            # repr gives the digits a person sees; rounding those is what SQL does.
            return float(_rounded(Decimal(repr(value)), places))
    return in_range(int(_rounded(Decimal(value), places)), call)

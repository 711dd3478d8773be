"""Which types go together, and what makes a value of one of them a value of another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Context, Decimal

from kleene.analysis.scope import Scope
from kleene.errors import SchemaError, printable
from kleene.ir import expr as ir
from kleene.ir.calls import is_own
from kleene.ir.options import duration_of
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
    UNKNOWN,
    ArrayType,
    DecimalType,
    DurationType,
    MapType,
    OpaqueType,
    StructType,
    TimestampType,
    Type,
    a_type,
    advice_on,
    array,
    decimal,
    duration,
    finer_unit,
    fits_everywhere,
    holds_map,
    is_nested,
    is_numeric,
    map_of,
    per_microsecond,
    struct,
)
from kleene.source import Span
from kleene.wording import said

_ALL_DIGITS = Context(prec=1_000)
_DAY = 86_400_000_000
_CASTS = {
    (INTEGER, BOOLEAN),
    (BOOLEAN, INTEGER),
    (DATE, "timestamp"),
    ("timestamp", DATE),
}


def type_of(expression: ir.Expr) -> Type:
    assert expression.type is not None, "the expression has not been typed"
    return expression.type


def need(operand: ir.Expr, scope: Scope, who: str, fits: bool, what: str, hint: str | None = None) -> None:
    """The operand must be `what`; NULL always is, and so is an attribute of unknown type."""
    found = type_of(operand)
    if isinstance(found, OpaqueType):
        raise SchemaError(
            f"cannot compute with a value of type {found.name}", scope.source.locate(operand.span), found.advice
        )
    if not fits and not fits_everywhere(found):
        given = operand.parameter if isinstance(operand, ir.Literal) else None
        this = "this" if given is None else f"the parameter ':{printable(given)}'"
        hint = hint if given is None else "Give the parameter another value."
        raise scope.fail(f"{who} needs {what}, but {this} is {a_type(found)}", operand.span, hint)


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


def alike(written: Sequence[ir.Expr], inners: Sequence[ir.Expr], scope: Scope, doing: str, span: Span) -> list[ir.Expr]:
    """Typed operands, converted to the one type that holds them all; `written` is what they were before."""
    for inner in inners:
        need(inner, scope, doing, True, "")
    inners = as_used(inners)
    exact = exact_literals(written, inners)
    common = common_type(map(type_of, exact))
    if common is None or not all(same_clock(inner, common) for inner in exact):
        check_parameters(inners, scope, doing)
        types = sorted({str(inner.type) for inner in inners if not fits_everywhere(type_of(inner))})
        raise scope.fail(
            f"cannot {doing}: {' and '.join(types)} do not go together", span, _conversion_hint(map(type_of, inners))
        )
    if any(is_own(inner) and inner.type == UNKNOWN for inner in exact):
        return [_beside_unknown(inner) for inner in exact]
    return [cast_to(inner, common) for inner in exact]


def _beside_unknown(operand: ir.Expr) -> ir.Expr:
    """The operand as it can be compared with what a function of the user's own gives, of a type that nobody said."""
    match operand.type:
        case DecimalType():
            return cast_to(operand, FLOAT)
        case (TimestampType() | DurationType()) as type_ if type_.unit != "us":
            return cast_to(operand, replace(type_, unit="us"))
    return operand


def as_used(operands: Sequence[ir.Expr]) -> list[ir.Expr]:
    """The operands, of which literals of the command line are of the type of the others, if they can be."""
    return [
        as_type(operand, _common_of_others(operands, operand))
        if isinstance(operand, ir.Literal) and operand.written is not None
        else operand
        for operand in operands
    ]


def _common_of_others(operands: Sequence[ir.Expr], one: ir.Expr) -> Type:
    return common_type(type_of(operand) for operand in operands if operand is not one) or UNKNOWN


def as_type(operand: ir.Expr, wanted: Type) -> ir.Expr:
    """The operand; one that was written on a command line is a text or a duration, where these are wanted."""
    written = operand.written if isinstance(operand, ir.Literal) else None
    if not isinstance(operand, ir.Literal) or written is None:
        return operand
    if wanted == STRING:
        return replace(operand, value=written, of_type=STRING, type=STRING)
    if isinstance(wanted, DurationType) and (microseconds := duration_of(written)) is not None:
        return replace(operand, value=microseconds, of_type=DURATION, type=DURATION)
    return operand


def check_parameters(operands: Sequence[ir.Expr], scope: Scope, doing: str) -> None:
    """Of operands that do not go together: if one of them is a parameter, an error that names it and says what fits."""
    for operand in operands:
        if isinstance(operand, ir.Literal) and operand.parameter is not None:
            others = {type_of(other) for other in operands if other is not operand}
            wanted = common_type(others)
            name = printable(operand.parameter)
            values = [value for type_, value in _EXAMPLES.items() if wanted is not None and wanted.name == type_]
            said_others = " and ".join(sorted(str(other) for other in others))
            raise scope.fail(
                f"cannot {doing}: the parameter ':{name}' is {a_type(type_of(operand))}, beside {said_others}",
                operand.span,
                said(
                    python=f"Give it such a value: {{'{name}': {values[0]}}}." if values else "Give it another value.",
                    shell="Give it another value, or convert it: CAST(… AS string).",
                ),
            )


_EXAMPLES = {
    "integer": "100",
    "float": "1.5",
    "decimal": "Decimal('1.50')",
    "string": "'text'",
    "boolean": "True",
    "date": "date(2024, 1, 31)",
    "timestamp": "datetime(2024, 1, 31, 10, 0)",
    "time": "time(9, 30)",
    "duration": "timedelta(minutes=5)",
}


def same_clock(operand: ir.Expr, common: Type) -> bool:
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


def exact_literals(operands: Sequence[ir.Expr], inners: Sequence[ir.Expr]) -> list[ir.Expr]:
    """Beside a decimal, a literal such as 1.05 is the decimal it looks like, not the nearest float."""
    if not any(isinstance(inner.type, DecimalType) for inner in inners):
        return list(inners)
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


def common_type(types: Iterable[Type]) -> Type | None:
    common: Type | None = NULL
    for type_ in types:
        common = None if common is None else common_of_two(common, type_)
    return common


def common_of_two(left: Type, right: Type) -> Type | None:
    if left == right or fits_everywhere(right):
        return left
    if fits_everywhere(left):
        return right
    match left, right:
        case _ if is_numeric(left) and is_numeric(right):
            if FLOAT in (left, right):
                return FLOAT
            return decimal(max(scale_of(left), scale_of(right)))
        case (TimestampType() as zoned, TimestampType() as other):
            return replace(zoned if zoned.zone else other, unit=finer_unit(zoned, other))
        case (DurationType(), DurationType()):
            return duration(finer_unit(left, right))
        case (TimestampType() as moment, day) | (day, TimestampType() as moment) if day == DATE:
            return moment
    return _common_of_nested(left, right)


def _common_of_nested(left: Type, right: Type) -> Type | None:
    """Arrays, maps and structs go together where their parts do; what the fields of structs are called is no matter."""
    match left, right:
        case ArrayType(element=one), ArrayType(element=other):
            element = common_of_two(one, other)
            return None if element is None else array(element)
        case MapType(), MapType():
            key, value = common_of_two(left.key, right.key), common_of_two(left.value, right.value)
            return None if key is None or value is None else map_of(key, value)
        case StructType(fields=ones), StructType(fields=others) if len(ones) == len(others):
            pairs = zip(ones, others, strict=True)
            types = [(name, common_of_two(one, other)) for (name, one), (_, other) in pairs]
            known = [(name, type_) for name, type_ in types if type_ is not None]
            return struct(known) if len(known) == len(types) else None
    return None


def scale_of(type_: Type) -> int:
    return type_.scale if isinstance(type_, DecimalType) else 0


def need_order(operand: ir.Expr, scope: Scope, who: str) -> None:
    """The operand must be one of those values that come before or after each other."""
    found = type_of(operand)
    if is_nested(found):
        raise scope.fail(f"{who} needs a plain value, but this is {a_type(found)}", operand.span, advice_on(found))


def need_equality(operand: ir.Expr, scope: Scope, who: str) -> None:
    """The operand must be comparable: all values are, but maps."""
    if holds_map(operand.type):
        raise scope.fail(f"{who} cannot compare maps", operand.span, "Compare map_keys(…) and map_values(…).")


def can_cast(found: Type, to: Type) -> bool:
    if is_nested(found) or is_nested(to):
        return False
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

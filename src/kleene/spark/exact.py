"""Arithmetic, casts and our functions over Spark's columns, with the meaning they have in process.

What Spark does about an overflow or an impossible cast depends on the session (`spark.sql.ansi.enabled`); here it is an
error in every session. The `try_` functions give NULL for both in each of them, which is then told from a NULL operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql import types as st

from kleene.schema import SMALLEST_INTEGER

_LONG, _DOUBLE, _STRING = st.LongType(), st.DoubleType(), st.StringType()
_WHOLE = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_ALL_INTEGERS = st.DecimalType(38, 0)
_END_OF_INTEGERS = 2.0**63
_CHECKED = {"+": F.try_add, "-": F.try_subtract, "*": F.try_multiply}
FUNCTIONS = frozenset({"abs", "ceil", "floor", "greatest", "least", "power", "round"})
"""Our functions by which Spark means something else."""
_TEXTS: dict[type[st.DataType], str] = {
    st.DoubleType: r"(?i)^\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)\s*$",
    st.LongType: r"^\s*[+-]?[0-9]+\s*$",
    st.BooleanType: r"(?i)^\s*(true|t|1|false|f|0)\s*$",
    st.DateType: r"^\s*[0-9]{4}-[0-9]{2}-[0-9]{2}\s*$",
    st.TimestampNTZType: r"^\s*[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?\s*$",
}
"""What a text must look like to be cast: Spark alone would read more, such as '1d' and 'yes'."""


@dataclass(frozen=True, slots=True)
class Value:
    """A column and its type."""

    column: Column
    type: st.DataType

    def wide(self) -> Value:
        """The same; a number is as wide as ours are."""
        wide = _LONG if self.is_whole else _DOUBLE if isinstance(self.type, st.FloatType) else self.type
        return self if wide == self.type else Value(self.column.cast(wide), wide)

    @property
    def is_whole(self) -> bool:
        return isinstance(self.type, _WHOLE)

    @property
    def is_float(self) -> bool:
        return isinstance(self.type, st.DoubleType)


def always_fits(sign: str, left: st.DataType, right: st.DataType) -> bool:
    """Whether no result of the operator is an error, so that each operand is read once."""
    return sign in ("/", "%") or isinstance(common_type(left, right), st.DoubleType)


def arithmetic(sign: str, left: Value, right: Value, complaint: str) -> Column:
    """The result of the operator; the complaint is what the error says if the result does not fit."""
    if sign == "/":
        return F.try_divide(left.column.cast(_DOUBLE), right.column.cast(_DOUBLE))
    if sign == "%":
        return F.try_mod(left.wide().column, right.wide().column)
    if all(isinstance(operand.type, st.NumericType) for operand in (left, right)):
        left, right = left.wide(), right.wide()  # and a date plus an integer is Spark's own
    result = _CHECKED[sign](left.column, right.column)
    return result if always_fits(sign, left.type, right.type) else _or_error(result, [left, right], complaint)


def negated(operand: Value, complaint: str) -> Column:
    operand = operand.wide()
    if operand.is_whole:
        return _or_error(F.try_subtract(F.lit(0).cast(_LONG), operand.column), [operand], complaint)
    return -operand.column


def converted(operand: Value, to: st.DataType, complaint: str | None) -> Column:
    """The operand as another type; the complaint is what the error says of a value that is none of that type.

    Without a complaint it is NULL there.
    """
    operand = operand.wide()
    column, source = operand.column, operand.type
    if isinstance(source, st.NullType):
        return column.cast(to)
    if isinstance(to, st.StringType):
        return _text(operand)
    tried = column.try_cast(to)
    if isinstance(source, st.StringType) and type(to) in _TEXTS:
        tried = F.when(column.rlike(_TEXTS[type(to)]), tried)
    if operand.is_float and isinstance(to, st.LongType):
        tried = F.when(column < _END_OF_INTEGERS, tried)
    return tried if complaint is None else _or_error(tried, [operand], complaint)


def common_type(left: st.DataType, right: st.DataType) -> st.DataType | None:
    """The type of a sum, difference or product, if it is an integer or a float."""
    if isinstance(left, _WHOLE) and isinstance(right, _WHOLE):
        return _LONG
    is_float = any(isinstance(one, (st.DoubleType, st.FloatType)) for one in (left, right))
    return _DOUBLE if is_float and all(isinstance(one, st.NumericType) for one in (left, right)) else None


def function(name: str, arguments: Sequence[Value], complaint: str) -> Column:
    """One of the `FUNCTIONS`."""
    arguments = [argument.wide() for argument in arguments]
    first = arguments[0]
    match name:
        case "abs":
            if not first.is_whole:
                return F.abs(first.column)
            return F.when(first.column == SMALLEST_INTEGER, _error(complaint)).otherwise(F.abs(first.column))
        case "floor" | "ceil":
            return _to_integer(F.floor if name == "floor" else F.ceil, first, complaint)
        case "round":
            return _rounded(first, arguments[1:], complaint)
        case "greatest":
            return F.greatest(*map(_unless_nan, arguments))
        case "least":
            return F.least(*map(_unless_nan, arguments))
        case "power":
            return _power(*(argument.column.cast(_DOUBLE) for argument in arguments))
    raise AssertionError(f"no function {name}")


def _or_error(result: Column, operands: Sequence[Value], complaint: str) -> Column:
    """The result; an error if it is NULL although no operand is."""
    known = F.lit(True)
    for operand in operands:
        known = known & operand.column.isNotNull()
    return F.coalesce(result, F.when(known, _error(complaint)))


def _error(complaint: str) -> Column:
    return F.raise_error(F.lit(complaint))


def _is_infinite(column: Column) -> Column:
    return F.abs(column) == math.inf


def _unless_nan(value: Value) -> Column:
    return F.when(~F.isnan(value.column), value.column) if value.is_float else value.column


def _to_integer(whole: Callable[[Column], Column], value: Value, complaint: str) -> Column:
    column = value.column
    if not value.is_float:
        return _or_error(whole(column).try_cast(_LONG), [value], complaint)
    fits = (column >= -_END_OF_INTEGERS) & (column < _END_OF_INTEGERS)
    is_number = ~(F.isnan(column) | _is_infinite(column))
    return F.when(is_number, F.when(fits, whole(column)).otherwise(_error(complaint)))


def _rounded(value: Value, places: Sequence[Value], complaint: str) -> Column:
    column, given = value.column, [item.column.cast(st.IntegerType()) for item in places]
    if value.is_whole:
        rounded = F.call_function("round", column.cast(_ALL_INTEGERS), *given)
        return _or_error(rounded.try_cast(_LONG), [value, *places], complaint)
    rounded = F.call_function("round", column, *given)
    # Where there is nothing to round, a zero keeps its sign.
    return F.when((column == 0) & (given[0] > 0), column).otherwise(rounded) if value.is_float and given else rounded


def _power(base: Column, exponent: Column) -> Column:
    """In Java 1 to the power of what is no finite number is NaN; in C, and so in Python, it is 1."""
    is_one = (base == 1) | ((base == -1) & _is_infinite(exponent))
    return F.when(is_one & exponent.isNotNull(), F.lit(1.0)).otherwise(F.power(base, exponent))


def _text(value: Value) -> Column:
    column = value.column
    match value.type:
        case st.StringType():
            return column
        case st.DoubleType():
            return _float_text(column)
        case st.DecimalType():
            return column.try_cast(_STRING)  # a plain cast writes an exponent in some sessions
        case st.TimestampNTZType():
            text = column.cast(_STRING)
            return F.when(text.contains("."), F.rpad(text, 26, "0")).otherwise(text)
    return column.cast(_STRING)


def _float_text(column: Column) -> Column:
    """As Python writes it: Java writes an exponent sooner, and with other signs."""
    java, size = column.cast(_STRING), F.abs(column)
    large = _without_zeros(column.try_cast(st.DecimalType(38, 20)))
    small = _without_zeros(column.try_cast(st.DecimalType(38, 30)))
    with_sign = F.regexp_replace(F.regexp_replace(java, r"(\.0)?E", "e"), "e([0-9])", "e+$1")
    scientific = F.regexp_replace(with_sign, "(e[+-])([0-9])$", "$10$2")
    return (
        F.when(F.isnan(column), "nan")
        .when(_is_infinite(column), F.when(column > 0, "inf").otherwise("-inf"))
        .when((size == 0) | ((size >= 1e-3) & (size < 1e7)), java)
        .when((size >= 1e7) & (size < 1e16), large)
        .when((size >= 1e-4) & (size < 1e-3), small)
        .otherwise(scientific)
    )


def _without_zeros(decimal: Column) -> Column:
    return F.regexp_replace(decimal.cast(_STRING), r"(\.[0-9]+?)0*$", "$1")

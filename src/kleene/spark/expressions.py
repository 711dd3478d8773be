"""Expressions to Spark's `Column` values, with our meaning where Spark's is another.

Nothing becomes text on the way: literals are literals, names are names, and functions are called by their name. So
neither a quote in a literal nor a setting of the session changes what an expression means.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql import types as st

from kleene.ir import expr as ir
from kleene.schema import BOOLEAN, DATE, DURATION, FLOAT, INTEGER, STRING, DecimalType, TimestampType, Type
from kleene.spark.names import quoted

_EPOCH = dt.datetime(1970, 1, 1)
_MOST_DIGITS = 38
_OPERATORS: dict[str, Callable[[Column, Column], Column]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: F.try_divide(left.cast(st.DoubleType()), right.cast(st.DoubleType())),
    "%": F.try_mod,
}
_READS_TWICE = (ir.Comparison, ir.In, ir.Between)
_TYPES: dict[Type, st.DataType] = {
    INTEGER: st.LongType(),
    FLOAT: st.DoubleType(),
    STRING: st.StringType(),
    BOOLEAN: st.BooleanType(),
    DATE: st.DateType(),
}


def column_around(expression: ir.Expr, column_of: Callable[[ir.Expr], Column]) -> Column:
    """The expression around the columns of its parts."""
    match expression:
        case ir.Comparison(operator=sign, left=left, right=right):
            return _named([left, right], column_of, lambda one, other: _comparison(sign, one, other))
        case ir.Arithmetic(operator=sign, left=left, right=right):
            return _OPERATORS[sign](column_of(left), column_of(right))
        case ir.Negate(operand=operand):
            return -column_of(operand)
        case ir.And(operands=operands):
            return _balanced(operator.and_, [column_of(operand) for operand in operands])
        case ir.Or(operands=operands):
            return _balanced(operator.or_, [column_of(operand) for operand in operands])
        case ir.Not(operand=operand):
            return ~column_of(operand)
        case ir.IsNull(operand=operand):
            return column_of(operand).isNull()
        case ir.In(operand=operand, choices=choices):
            is_plain = all(isinstance(choice, ir.Literal) for choice in choices)
            return _named([operand, *choices], column_of, _is_listed if is_plain else _is_one_of)
        case ir.Between(operand=operand, low=low, high=high):
            return _named([operand, low, high], column_of, _is_between)
        case ir.Like(operand=operand, pattern=pattern):
            return F.like(column_of(operand), column_of(pattern))
        case ir.Case(branches=branches, default=default):
            return _case(
                [(column_of(condition), column_of(value)) for condition, value in branches], column_of(default)
            )
        case ir.Cast(operand=operand, to=to, digits=digits):
            return column_of(operand).cast(_spark_type(to, digits))
        case ir.Function(name=name, arguments=arguments):
            return called(name, [column_of(argument) for argument in arguments])
    raise AssertionError(f"no column for {type(expression).__name__}")


def called(function: str, arguments: Sequence[Column]) -> Column:
    """A call of a function that Spark knows by this name, which is one name, whatever characters it has."""
    return F.call_function(quoted(function), *arguments)


def _named(operands: Sequence[ir.Expr], column_of: Callable[[ir.Expr], Column], made: Callable[..., Column]) -> Column:
    """What is made of the operands, each of which it reads several times.

    If one of them holds another such node, it gets a name: else a few levels of them would be more than Spark can plan.
    """
    columns = [column_of(operand) for operand in operands]
    if not any(isinstance(node, _READS_TWICE) for operand in operands for node in ir.walk(operand)):
        return made(*columns)
    names = [f"operand_{number}" for number in range(len(columns))]
    row = F.struct(*(column.alias(name) for column, name in zip(columns, names, strict=True)))
    return F.transform(F.array(row), lambda named: made(*(named[name] for name in names)))[0]


def _is_listed(own: Column, *literals: Column) -> Column:
    """Literals are never NaN."""
    return F.when(_is_nan(own), F.lit(None)).otherwise(own.isin(*literals))


def _is_one_of(own: Column, *choices: Column) -> Column:
    return _balanced(operator.or_, [_comparison("=", own, choice) for choice in choices])


def _balanced(joined: Callable[[Column, Column], Column], columns: Sequence[Column]) -> Column:
    """A long chain would be nested deeper than Spark Connect can send."""
    if len(columns) == 1:
        return columns[0]
    half = len(columns) // 2
    return joined(_balanced(joined, columns[:half]), _balanced(joined, columns[half:]))


def _is_between(own: Column, low: Column, high: Column) -> Column:
    return _comparison(">=", own, low) & _comparison("<=", own, high)


def _comparison(sign: str, left: Column, right: Column) -> Column:
    """Spark takes NaN for the largest number; to us a comparison with it is unknown."""
    return F.when(_is_nan(left) | _is_nan(right), F.lit(None)).otherwise(_OPERATORS[sign](left, right))


def _is_nan(column: Column) -> Column:
    # By its text: not every type becomes a number, and the types are not known here.
    return F.typeof(column).isin("double", "float") & (column.cast(st.StringType()) == "NaN")


def _case(branches: Sequence[tuple[Column, Column]], default: Column) -> Column:
    (condition, value), *others = branches
    found = F.when(condition, value)
    for condition, value in others:
        found = found.when(condition, value)
    return found.otherwise(default)


def _spark_type(type_: Type, digits: int) -> st.DataType:
    match type_:
        case DecimalType(scale=scale):
            return st.DecimalType(digits, scale)
        case TimestampType():
            return st.TimestampNTZType()
    return _TYPES[type_]


def literal_column(literal: ir.Literal) -> Column:
    """The literal as Spark's; dates and times go by their ISO form, which no zone changes."""
    value, type_ = literal.value, literal.of_type
    match value:
        case bool() | str() | None:
            return F.lit(value)
        case int() if isinstance(type_, TimestampType):
            return timestamp_column(value)
        case int() if type_ == DATE:
            return F.lit((dt.date(1970, 1, 1) + dt.timedelta(days=value)).isoformat()).cast(st.DateType())
        case int() if type_ == DURATION:
            return F.lit(dt.timedelta(microseconds=value))
        case Decimal():
            return _number(value)
    assert type_ == INTEGER, f"no column for a literal of type {type_}"
    return F.lit(value)


def timestamp_column(microseconds: int) -> Column:
    """A time without a zone."""
    iso = (_EPOCH + dt.timedelta(microseconds=microseconds)).isoformat(" ")
    return F.lit(iso).cast(st.TimestampNTZType())


def _number(value: Decimal) -> Column:
    """As in Spark's SQL, a number with a point is exact and one with an exponent is not."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    precision = max(len(digits), -exponent)
    if "E" in str(value) or precision > _MOST_DIGITS:
        return F.lit(float(value))
    return F.lit(str(value)).cast(st.DecimalType(precision, -exponent))

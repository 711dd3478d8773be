"""A condition on one event to a Spark expression, so that Spark can leave events out, down to the scan of files.

What Spark keeps is judged again in the tasks, so the expression need not mean exactly the same: it must hold wherever
ours does. Comparisons that are unknown to us because of a NaN may be true or false to Spark; since what holds in
three-valued logic holds whatever the unknown parts are, no event is lost by that. All that Spark computes otherwise,
such as arithmetic (overflow, ANSI mode), decimals, casts and collated strings, is left to the tasks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import CharType

from kleene.ir import expr as ir
from kleene.schema import BOOLEAN, DATE, FLOAT, INTEGER, STRING, TimestampType
from kleene.spark.expressions import COMPARE, timestamp_column
from kleene.spark.names import quoted_column
from kleene.spark.schema import is_collated, kept_spark_type

_EXACT_FLOAT = 2**53


def spark_condition(condition: ir.Expr, columns: Mapping[str, pa.Field]) -> Column | None:
    """What Spark can judge of the condition: it holds for every event for which the condition does. None: nothing."""
    match condition:
        case ir.And(operands=operands):
            known = [part for part in (spark_condition(item, columns) for item in operands) if part is not None]
            return reduce(Column.__and__, known) if known else None
        case ir.Or(operands=operands):
            parts = [spark_condition(item, columns) for item in operands]
            known = [part for part in parts if part is not None]
            return reduce(Column.__or__, known) if len(known) == len(parts) else None
    return _atom(condition, columns)


def _atom(condition: ir.Expr, columns: Mapping[str, pa.Field]) -> Column | None:
    """The condition, where Spark means the same by it but for NaN."""
    match condition:
        case ir.IsNull(operand=ir.Attribute() as attribute):
            return quoted_column(attribute.name).isNull() if attribute.name in columns else None
        case ir.Not(operand=ir.IsNull(operand=ir.Attribute() as attribute)):
            return quoted_column(attribute.name).isNotNull() if attribute.name in columns else None
        case ir.Comparison(operator=operator, left=left, right=right):
            return _comparison(operator, left, right, columns)
        case ir.In(operand=ir.Attribute() as attribute, choices=choices):
            values = [_operand(choice, columns) for choice in choices]
            own = _operand(attribute, columns)
            if own is None or any(value is None for value in values) or not _of_one_type([attribute, *choices]):
                return None
            if any(map(_is_zero, choices)):
                return None
            return own.isin(*values)
        case ir.Attribute() if condition.type == BOOLEAN:
            return _operand(condition, columns)
    return None


def _comparison(operator: str, left: ir.Expr, right: ir.Expr, columns: Mapping[str, pa.Field]) -> Column | None:
    one, other = _operand(left, columns), _operand(right, columns)
    if one is None or other is None or not _of_one_type([left, right]):
        return None
    if operator in ("=", "<=", ">=") and (_is_zero(left) or _is_zero(right)):
        return None
    return COMPARE[operator](one, other)


def _is_zero(expression: ir.Expr) -> bool:
    """Files may know their least and greatest values; to some formats -0.0 and 0.0 are two."""
    literal = expression.operand if isinstance(expression, ir.Cast) else expression
    return isinstance(literal, ir.Literal) and expression.type == FLOAT and literal.value == 0


def _of_one_type(operands: list[ir.Expr]) -> bool:
    """Whether nothing has to be converted."""
    return len({item.type for item in operands}) == 1


def _operand(expression: ir.Expr, columns: Mapping[str, pa.Field]) -> Column | None:
    match expression:
        case ir.Attribute(name=name) if name in columns and _is_plain(columns[name], expression):
            return quoted_column(name)
        case ir.Literal():
            return _literal(expression)
        case ir.Cast(operand=ir.Literal(value=int() as value), to=to, implicit=True) if to == FLOAT:
            return F.lit(float(value)) if abs(value) <= _EXACT_FLOAT else None
    return None


def _is_plain(field: pa.Field, attribute: ir.Expr) -> bool:
    """Whether Spark compares such a column as we do: not so strings with a collation, or padded ones."""
    type_ = attribute.type
    if type_ == STRING:
        return not is_collated(field) and not isinstance(kept_spark_type(field), CharType)
    if isinstance(type_, TimestampType):
        return bool(pa.types.is_timestamp(field.type))
    return type_ in (INTEGER, FLOAT, BOOLEAN, DATE)


def _literal(literal: ir.Literal) -> Column | None:
    value, type_ = literal.value, literal.type or literal.of_type
    match value:
        case bool() if type_ == BOOLEAN:
            return F.lit(value)
        case int() if type_ == INTEGER and -(2**63) <= value < 2**63:
            return F.lit(value)
        case int() if type_ == DATE and -700_000 < value < 2_900_000:
            return F.lit(dt.date(1970, 1, 1) + dt.timedelta(days=value))
        case int() if isinstance(type_, TimestampType) and abs(value) < 2**53:
            if type_.zone is not None:
                return F.timestamp_micros(F.lit(value))
            return timestamp_column(value)
        case float() if type_ == FLOAT and value == value:
            return F.lit(value + 0.0)
        case str() if type_ == STRING:
            return F.lit(value)
    return None

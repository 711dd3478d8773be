"""Expressions to Spark's `Column` values, with our meaning where Spark's is another.

Nothing becomes text on the way: literals are literals, names are names, and functions are called by their name. So
neither a quote in a literal nor a setting of the session changes what an expression means.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql import types as st

from kleene.errors import AnalysisError, listed, printable
from kleene.ir import expr as ir
from kleene.ir.functions import regexes
from kleene.ir.functions.names import field_name, is_known
from kleene.schema import BOOLEAN, DATE, DURATION, FLOAT, INTEGER, STRING, DecimalType, TimestampType, Type, a_type
from kleene.source import SourceText
from kleene.spark import exact, functions
from kleene.spark.names import quoted_column

_EPOCH = dt.datetime(1970, 1, 1)
_MOST_DIGITS = 38
COMPARE: dict[str, Callable[[Column, Column], Column]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ARITHMETIC: dict[str, Callable[[Column, Column], Column]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_CONDITIONS = (ir.Comparison, ir.And, ir.Or, ir.Not, ir.IsNull, ir.In, ir.Between, ir.Like)
_RESULTS: dict[str, st.DataType] = {
    **dict.fromkeys(("floor", "ceil"), st.LongType()),
    **dict.fromkeys(("sqrt", "ln", "exp", "power"), st.DoubleType()),
}
_TYPES: dict[Type, st.DataType] = {
    INTEGER: st.LongType(),
    FLOAT: st.DoubleType(),
    STRING: st.StringType(),
    BOOLEAN: st.BooleanType(),
    DATE: st.DateType(),
}


@dataclass(frozen=True, slots=True)
class Columns:
    """Expressions about one row of a frame as columns over it, each made once. The source is for errors to show."""

    frame: DataFrame
    source: SourceText
    _made: dict[int, tuple[ir.Expr, Column]] = field(default_factory=dict)
    _types: dict[int, tuple[ir.Expr, st.DataType]] = field(default_factory=dict)
    _bound: Mapping[str, Column] = field(default_factory=dict)  # parameters of lambdas around the expression

    def of(self, expression: ir.Expr) -> Column:
        if id(expression) not in self._made:
            self._made[id(expression)] = expression, self._column(expression)
        return self._made[id(expression)][1]

    def _column(self, expression: ir.Expr) -> Column:
        match expression:
            case ir.Literal():
                return literal_column(expression)
            case ir.Attribute():
                return quoted_column(self._name_of(expression))
            case ir.Comparison(operator=sign, left=left, right=right):
                return self._named([left, right], lambda one, other: _comparison(sign, one, other))
            case ir.And(operands=operands):
                return _balanced(operator.and_, [self.of(operand) for operand in operands])
            case ir.Or(operands=operands):
                return _balanced(operator.or_, [self.of(operand) for operand in operands])
            case ir.Not(operand=operand):
                return ~self.of(operand)
            case ir.IsNull(operand=operand):
                return self.of(operand).isNull()
            case ir.In(operand=operand, choices=choices):
                is_plain = all(isinstance(choice, ir.Literal) for choice in choices)
                return self._named([operand, *choices], _is_listed if is_plain else _is_one_of)
            case ir.Between(operand=operand, low=low, high=high):
                return self._named([operand, low, high], _is_between)
            case ir.Like(operand=operand, pattern=pattern):
                return F.like(self.of(operand), self.of(pattern))
            case ir.Case(branches=branches, default=default):
                known = [(self.of(condition), self.of(value)) for condition, value in branches]
                return _case(known, self.of(default))
        return self._computed(expression)

    def _computed(self, expression: ir.Expr) -> Column:
        shown = printable(self.source.text[expression.span.start : expression.span.end], 200)
        overflow = f"overflow: {shown} does not fit its type"
        match expression:
            case ir.Arithmetic(operator=sign, left=left, right=right):
                return self._arithmetic(sign, self._with_floats([left, right]), overflow)
            case ir.Negate(operand=operand):
                return self._of_values([operand], lambda value: exact.negated(value, overflow))
            case ir.Cast(operand=operand, to=to, digits=digits, tries=tries):
                type_, complaint = _spark_type(to, digits), f"{shown}: a value is not {a_type(to)}"
                given = None if tries else complaint
                return self._of_values([operand], lambda value: exact.converted(value, type_, given))
            case ir.Item(operand=operand, key=key):
                return self._of_values([operand, key], functions.item)
            case ir.Field(operand=operand, name=name):
                return self._of_values([operand], lambda value: _field(value, name))
            case ir.Function():
                return self._call(expression, overflow)
            case ir.PythonCall(name=name):
                raise AnalysisError(
                    f"a function of Spark's own cannot take what the Python function '{printable(name)}' returns",
                    self.source.locate(expression.span),
                    "Call functions of Spark on columns, and the Python function on what they return.",
                )
        raise AssertionError(f"no column for {type(expression).__name__}")

    def _call(self, call: ir.Function, overflow: str) -> Column:
        name, arguments = call.name, call.arguments
        if any(isinstance(argument, ir.Lambda) for argument in arguments):
            return self._with_lambdas(call)
        if not is_known(call):
            return functions.by_name(name, [self.of(argument) for argument in arguments])
        if name in exact.FUNCTIONS:
            return self._of_values(arguments, lambda *values: exact.function(name, values, overflow))
        if name in functions.OF_VALUES:
            return self._of_values(arguments, functions.OF_VALUES[name])
        match name:
            case "if":
                return F.when(self.of(arguments[0]), self.of(arguments[1])).otherwise(self.of(arguments[2]))
            case "mod":
                return self._arithmetic("%", self._with_floats(arguments), overflow)
            case "nullif":
                return self._named(arguments, _unless_equal)
            case "struct":
                return F.struct(*(self.of(item).alias(field_name(item, at)) for at, item in enumerate(arguments, 1)))
            case "regexp_like":
                self._check_pattern(arguments[1])
        return functions.plain_call(name, [self.of(argument) for argument in arguments])

    def _check_pattern(self, pattern: ir.Expr) -> None:
        try:
            if isinstance(pattern, ir.Literal) and isinstance(pattern.value, str):
                regexes.translated(pattern.value)
        except regexes.PatternError as error:
            location = self.source.locate(pattern.span)
            raise AnalysisError(f"the regular expression cannot be used: {error}", location) from None

    # --- lambdas -------------------------------------------------------------------------------------------------

    def _with_lambdas(self, call: ir.Function) -> Column:
        """A function of Spark's that takes a lambda; what is inside of one is computed as Spark does."""
        function = functions.WITH_LAMBDAS.get(call.name)
        if function is None:
            raise AnalysisError(
                f"no function '{printable(call.name)}' takes a lambda",
                self.source.locate(call.name_span),
                f"Those that do: {listed(sorted(functions.WITH_LAMBDAS), most=20)}.",
            )
        given = (self._lambda(item) if isinstance(item, ir.Lambda) else self.of(item) for item in call.arguments)
        return function(*given)

    def _lambda(self, written: ir.Lambda) -> Callable[..., Column]:
        def made(*parameters: Column) -> Column:
            bound = {**self._bound, **dict(zip(written.parameters, parameters, strict=True))}
            return _InLambda(self.frame, self.source, _bound=bound).of(written.body)

        # PySpark asks a function how many parameters it has.
        with_parameters: dict[int, Callable[..., Column]] = {
            1: lambda x: made(x),
            2: lambda x, y: made(x, y),
            3: lambda x, y, z: made(x, y, z),
        }
        return with_parameters[len(written.parameters)]

    def _name_of(self, attribute: ir.Attribute) -> str:
        """The column as the frame spells it; what is not there, or there twice, is left to Spark to complain about."""
        names, name = self.frame.columns, attribute.name
        alike = [] if attribute.exact or name in names else [one for one in names if one.lower() == name.lower()]
        return alike[0] if len(alike) == 1 else name

    def _arithmetic(self, sign: str, operands: Sequence[ir.Expr], overflow: str) -> Column:
        left, right = (exact.Value(self.of(operand), self._type_of(operand)) for operand in operands)
        if exact.always_fits(sign, left.type, right.type):
            return exact.arithmetic(sign, left, right, overflow)
        return self._of_values(operands, lambda one, other: exact.arithmetic(sign, one, other, overflow))

    def _of_values(self, operands: Sequence[ir.Expr], made: Callable[..., Column]) -> Column:
        operands = self._with_floats(operands)
        types = [self._type_of(operand) for operand in operands]
        return self._named(operands, lambda *columns: made(*map(exact.Value, columns, types)))

    def _with_floats(self, operands: Sequence[ir.Expr]) -> Sequence[ir.Expr]:
        """A literal with a point is a float, but beside a decimal it is one too."""
        others = (operand for operand in operands if not _has_point(operand))
        if any(isinstance(self._type_of(other), st.DecimalType) for other in others):
            return operands
        return [_as_float(operand) for operand in operands]

    def _named(self, operands: Sequence[ir.Expr], made: Callable[..., Column]) -> Column:
        """What is made of the operands, each of which it reads several times.

        What must be computed gets a name: else a few levels would be more than Spark can plan, and what is random
        would be another value each time.
        """
        columns = [self.of(operand) for operand in operands]
        if all(isinstance(operand, (ir.Literal, ir.Attribute)) for operand in operands):
            return made(*columns)
        names = [f"operand_{number}" for number in range(len(columns))]
        row = F.struct(*(column.alias(name) for column, name in zip(columns, names, strict=True)))
        return F.transform(F.array(row), lambda named: made(*(named[name] for name in names)))[0]

    def _type_of(self, expression: ir.Expr) -> st.DataType:
        if id(expression) not in self._types:
            type_ = self._known_type(expression) or self.frame.select(self.of(expression)).schema[0].dataType
            self._types[id(expression)] = expression, type_
        return self._types[id(expression)][1]

    def _known_type(self, expression: ir.Expr) -> st.DataType | None:
        """The type, where it is not worth a question to Spark."""
        match expression:
            case ir.Literal(value=float()):
                return st.DoubleType()
            case ir.Literal(of_type=of_type) if of_type == INTEGER:
                return st.IntegerType()
            case ir.Cast(to=to, digits=digits):
                return _spark_type(to, digits)
            case ir.Arithmetic(operator="/"):
                return st.DoubleType()
            case ir.Arithmetic(left=left, right=right):
                return exact.common_type(self._type_of(left), self._type_of(right))
            case ir.Function(name=name):
                return _RESULTS.get(name)
        return st.BooleanType() if isinstance(expression, _CONDITIONS) else None


def _has_point(expression: ir.Expr) -> bool:
    return isinstance(expression, ir.Literal) and isinstance(expression.value, Decimal)


def _as_float(expression: ir.Expr) -> ir.Expr:
    match expression:
        case ir.Literal(value=Decimal() as value):
            return replace(expression, value=float(value))
    return expression


@dataclass(frozen=True, slots=True)
class _InLambda(Columns):
    """The body of a lambda. Types are not known inside, so Spark's own operators compute there."""

    def _column(self, expression: ir.Expr) -> Column:
        match expression:
            case ir.LambdaVariable(name=name):
                return self._bound[name]
            case ir.Arithmetic(operator="/", left=left, right=right):
                return F.try_divide(self.of(left).cast(st.DoubleType()), self.of(right).cast(st.DoubleType()))
            case ir.Arithmetic(operator="%", left=left, right=right):
                return F.try_mod(self.of(left), self.of(right))
            case ir.Arithmetic(operator=sign, left=left, right=right):
                return ARITHMETIC[sign](self.of(left), self.of(right))
            case ir.Negate(operand=operand):
                return -self.of(operand)
            case ir.Cast(operand=operand, to=to, digits=digits, tries=tries):
                column, type_ = self.of(operand), _spark_type(to, digits)
                return column.try_cast(type_) if tries else column.cast(type_)
            case ir.Item(operand=operand, key=key):
                return self.of(operand)[self.of(key)]
            case ir.Field(operand=operand, name=name):
                return self.of(operand)[name]
            case ir.Function(name=name, arguments=arguments) if not any(
                isinstance(one, ir.Lambda) for one in arguments
            ):
                return functions.by_name(name, [self.of(argument) for argument in arguments])
        return Columns._column(self, expression)

    def _named(self, operands: Sequence[ir.Expr], made: Callable[..., Column]) -> Column:
        return made(*(self.of(operand) for operand in operands))


def _field(value: exact.Value, name: str) -> Column:
    return functions.item(value, exact.Value(F.lit(name), st.StringType()))


def _unless_equal(one: Column, other: Column) -> Column:
    return F.when(F.coalesce(_comparison("=", one, other), F.lit(False)), F.lit(None)).otherwise(one)


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
    return F.when(_is_nan(left) | _is_nan(right), F.lit(None)).otherwise(COMPARE[sign](left, right))


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
        case bool() | str() | float() | None:
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

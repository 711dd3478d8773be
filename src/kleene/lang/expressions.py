"""Expressions in every language: trees of `expressions.lark` to nodes of the IR.

A language's own builder inherits from `ExpressionBuilder` and adds its references, calls and clauses. What all
languages rely on: texts, brackets and expressions are no larger than the limits here.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from lark import Token, Transformer, Tree, UnexpectedCharacters, UnexpectedToken
from lark.exceptions import VisitError
from lark.tree import Meta
from lark.visitors import v_args

from kleene.errors import AnalysisError, KleeneError, QuerySyntaxError, printable, shown
from kleene.ir import expr as ir
from kleene.ir.options import MICROSECONDS, Window, WindowParameter, WindowUnit, duration_of
from kleene.ir.own import NO_FUNCTIONS, Own, OwnAggregate, OwnFunction, takes
from kleene.ir.paths import Step
from kleene.lang.complaints import complaint, find_unclosed
from kleene.lang.grammar import parser_of
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
    Type,
    decimal,
    timestamp,
)
from kleene.source import SourceText, Span

MOST_NESTING = 100
MOST_COMPONENTS = 1_000
MOST_CHARACTERS = 1_000_000
MOST_TOKENS = 20_000
MOST_NODES = 20_000

_CAST_TYPES = {
    **dict.fromkeys(("int", "integer", "bigint", "long", "smallint", "tinyint"), INTEGER),
    **dict.fromkeys(("float", "double", "real"), FLOAT),
    **dict.fromkeys(("string", "varchar", "char", "text"), STRING),
    **dict.fromkeys(("boolean", "bool"), BOOLEAN),
    "date": DATE,
    "time": TIME,
    **dict.fromkeys(("timestamp", "timestamp_ntz"), timestamp()),
    "decimal": decimal(0),
    "numeric": decimal(0),
}
_ASCII_COMPARISONS = {"==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}


Children = list[Any]


def build(builder: ExpressionBuilder, grammars: tuple[str, ...], start: str, text: str | None = None) -> Any:
    """What the builder makes of its source; `text` is the part of it to parse, blanks before it, where not all is."""
    source = builder.source
    parsed = source.text if text is None else text
    if len(parsed) > MOST_CHARACTERS:
        raise QuerySyntaxError(f"the text has {len(parsed):,} characters; a query may have {MOST_CHARACTERS:,}")
    _check_characters(source, parsed)
    unclosed = find_unclosed(source, parsed, MOST_NESTING)
    if unclosed:
        raise unclosed
    try:
        tree = parser_of(grammars, start).parse(parsed)
        builder.look_through(tree)
        return builder.transform(tree)
    except (UnexpectedCharacters, UnexpectedToken) as error:
        raise complaint(error, source, parsed, builder.clauses, builder.expects) from None
    except VisitError as error:
        if isinstance(error.orig_exc, RecursionError):
            raise _nested_too_deep() from None
        raise error.orig_exc from None
    except RecursionError:
        raise _nested_too_deep() from None


def _check_characters(source: SourceText, text: str) -> None:
    """A text that can be written down, and that a parser gets through in a moment."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        location = source.locate(Span(error.start, error.start + 1))
        raise QuerySyntaxError("the text holds half of a surrogate pair, which is not a character", location) from None
    tokens = sum(1 for _ in re.finditer(r"\w+|[^\w\s]", text))
    if tokens > MOST_TOKENS:
        raise QuerySyntaxError(
            f"the text has {tokens:,} words and signs; a query may have {MOST_TOKENS:,}",
            hint="Write it shorter, or split it into several queries.",
        )


def _nested_too_deep() -> QuerySyntaxError:
    return QuerySyntaxError(f"an expression is nested more than {MOST_NESTING} levels deep")


def check_is_text(text: object) -> None:
    if not isinstance(text, str):
        raise QuerySyntaxError(f"a query is text, but {shown(text)} was given")


def span_of(meta: Meta | Token) -> Span:
    if isinstance(meta, Meta) and meta.empty:
        return Span(0, 0)
    assert meta.start_pos is not None
    assert meta.end_pos is not None
    return Span(meta.start_pos, meta.end_pos)


def unquoted(token: Token) -> str:
    """The name or string without its quotes, doubled quotes inside made single."""
    quote = token[0]
    return str(token[1:-1]).replace(quote * 2, quote) if quote in "`'\"" else str(token)


class Name(str):
    """A name that remembers where it stands."""

    span: Span
    quoted: bool

    def __new__(cls, token: Token) -> Name:
        name = super().__new__(cls, unquoted(token))
        name.span = span_of(token)
        name.quoted = token[0] in '`"'
        return name


@v_args(meta=True)
class ExpressionBuilder(Transformer[Token, Any]):
    """A method per rule of the grammar, called from the leaves up.

    `clauses` are those of the language in their order, and `expects` is what to say where the grammar's own list of
    what may follow would not help.
    """

    clauses: tuple[str, ...] = ()
    expects: str | None = None

    def __init__(self, source: SourceText, functions: Mapping[str, Own] = NO_FUNCTIONS) -> None:
        super().__init__()
        self.source, self._functions = source, functions

    def look_through(self, tree: Tree[Token]) -> None:
        """Called before anything is made: what stands later in the text may say what earlier names mean."""

    def fail(self, message: str, span: Span, hint: str | None = None) -> KleeneError:
        return QuerySyntaxError(message, self.source.locate(span), hint)

    # --- functions of the user's own -------------------------------------------------------------------------------

    def own(self, name: Name) -> Own | None:
        """What the user gave under the name."""
        return self._functions.get(name.lower())

    def own_call(self, own: OwnFunction, name: Name, arguments: Children, span: Span) -> ir.PythonCall:
        if takes(own.function, len(arguments)) is False:
            are = "1 argument is" if len(arguments) == 1 else f"{len(arguments)} arguments are"
            raise AnalysisError(
                f"the function '{printable(own.name)}' cannot be called like this: {are} given",
                self.source.locate(name.span),
                f"Its parameters are {printable(str(inspect.signature(own.function)), 200)}.",
            )
        return ir.PythonCall(
            own.name, own.function, tuple(arguments), own.returns, own.vectorized, name.span, span=span
        )

    def check_one_argument(self, own: OwnAggregate, name: Name, arguments: Children) -> None:
        if len(arguments) != 1:
            raise AnalysisError(
                f"the aggregate '{printable(own.name)}' takes one argument, but {len(arguments) or 'none'} "
                f"{'are' if arguments else 'is'} given",
                self.source.locate(name.span),
            )

    def checked(self, expression: ir.Expr) -> ir.Expr:
        """The expression, if it is not nested too deep or too large, and its numbers are in range."""
        depth, size = ir.depth_and_size(expression)
        if depth > MOST_NESTING:
            raise self.fail(
                f"an expression is nested more than {MOST_NESTING} levels deep",
                expression.span,
                "A chain of operators nests as well: put parentheses around parts of a long one.",
            )
        if size > MOST_NODES:
            raise self.fail(f"an expression has more than {MOST_NODES:,} parts", expression.span)
        for node in ir.walk(expression):
            if isinstance(node, ir.Literal) and node.of_type == INTEGER and isinstance(node.value, int):
                self._check_integer(node.value, node.span)
        return expression

    def _check_integer(self, value: int, span: Span) -> None:
        # The smallest integer is a minus and a number that by itself is too large.
        if not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
            raise self.fail(
                "the number is larger than a 64-bit integer",
                span,
                f"Write it as a float: {printable(str(value), 40)}.0",
            )

    # --- predicates --------------------------------------------------------------------------------------------

    def disjunction(self, meta: Meta, children: Children) -> ir.Or:
        return ir.Or(operands_of(children), span=span_of(meta))

    def conjunction(self, meta: Meta, children: Children) -> ir.And:
        return ir.And(operands_of(children), span=span_of(meta))

    def inversion(self, meta: Meta, children: Children) -> ir.Expr:
        operand: ir.Expr = children[-1]
        return operand if len(children) % 2 else replace(inverted(True, operand), span=span_of(meta))

    def comparison(self, meta: Meta, children: Children) -> ir.Comparison:
        left, operator, right = children
        return ir.Comparison(_ASCII_COMPARISONS.get(operator, str(operator)), left, right, span=span_of(meta))

    def is_null(self, meta: Meta, children: Children) -> ir.Expr:
        return inverted(children[2] is not None, ir.IsNull(children[0], span=span_of(meta)))

    def in_list(self, meta: Meta, children: Children) -> ir.Expr:
        operand, negated, _, *choices = children
        return inverted(negated is not None, ir.In(operand, tuple(choices), span=span_of(meta)))

    def between(self, meta: Meta, children: Children) -> ir.Expr:
        operand, negated, _, low, _, high = children
        return inverted(negated is not None, ir.Between(operand, low, high, span=span_of(meta)))

    def like(self, meta: Meta, children: Children) -> ir.Expr:
        operand, negated, _, pattern = children
        return inverted(negated is not None, ir.Like(operand, pattern, span=span_of(meta)))

    def rlike(self, meta: Meta, children: Children) -> ir.Expr:
        operand, negated, word, pattern = children
        found = ir.Function("regexp_like", (operand, pattern), span_of(word), span=span_of(meta))
        return inverted(negated is not None, found)

    # --- values ------------------------------------------------------------------------------------------------

    def chain(self, _: Meta, children: Children) -> ir.Expr:
        left: ir.Expr = children[0]
        for operator, right in zip(children[1::2], children[2::2], strict=True):
            span = left.span.to(right.span)
            if operator == "||":
                left = ir.Function("concat", (left, right), span_of(operator), span=span)
            else:
                left = ir.Arithmetic(str(operator), left, right, span=span)
        return left

    def signed(self, meta: Meta, children: Children) -> ir.Expr:
        operand: ir.Expr = children[-1]
        if sum(sign == "-" for sign in children[:-1]) % 2 == 0:
            return operand
        return _signed(operand, span_of(meta))

    def case(self, meta: Meta, children: Children) -> ir.Case:
        _, operand, *rest = children
        *branches, else_word, default, _ = rest
        if operand is not None:
            branches = [
                (ir.Comparison("=", operand, condition, span=condition.span), value) for condition, value in branches
            ]
        if else_word is None:
            default = ir.Literal(None, NULL, span=span_of(meta))
        return ir.Case(tuple(branches), default, span=span_of(meta))

    def when(self, _: Meta, children: Children) -> tuple[ir.Expr, ir.Expr]:
        return children[1], children[3]

    def cast(self, meta: Meta, children: Children) -> ir.Cast:
        word, operand, _, (to, digits) = children
        return ir.Cast(operand, to, digits=digits, tries=word.type == "TRY_CAST", span=span_of(meta))

    def cast_behind(self, meta: Meta, children: Children) -> ir.Cast:
        operand, (to, digits) = children
        return ir.Cast(operand, to, digits=digits, span=span_of(meta))

    def cast_type(self, _: Meta, children: Children) -> tuple[Type, int]:
        name, precision, scale = children
        type_ = _CAST_TYPES.get(name.lower())
        if type_ is None:
            raise self.fail(
                f"unknown type '{printable(name)}'",
                span_of(name),
                "Types: integer, float, string, boolean, date, time, timestamp, decimal(precision, scale).",
            )
        digits, places = self._precision(type_, precision, scale)
        return decimal(places) if type_ == decimal(0) else type_, digits

    def extract(self, meta: Meta, children: Children) -> ir.Function:
        word, field, _, moment = children
        part = ir.Literal(str(field).upper(), STRING, span=span_of(field))
        return ir.Function("date_part", (part, moment), span_of(word), span=span_of(meta))

    def _precision(self, type_: Type, precision: Token | None, scale: Token | None) -> tuple[int, int]:
        if type_ != decimal(0) or precision is None:
            return MOST_DECIMAL_DIGITS, 0
        digits, places = (self.whole(token) if token is not None else 0 for token in (precision, scale))
        if not (1 <= digits <= MOST_DECIMAL_DIGITS and places <= digits):
            raise self.fail(
                f"a decimal has 1 to {MOST_DECIMAL_DIGITS} digits in all, and no more than that after the point",
                span_of(precision),
                "Write: decimal(10, 2)",
            )
        return digits, places

    def whole(self, token: Token) -> int:
        """The whole number that the token writes out in digits."""
        if not (token.isascii() and token.isdigit()):
            raise self.fail("a whole number is needed here", span_of(token))
        if len(token) > 18:
            raise self.fail("the number is too large", span_of(token))
        return int(token)

    def window(self, size: int | Decimal, unit: WindowUnit, span: Span) -> Window:
        if not 0 < size <= LARGEST_INTEGER:
            raise self.fail("the size of a window must be above 0 and fit into 64 bits", span, "Write: WITHIN 12 hours")
        return Window(size, unit, span)

    def number_window(self, token: Token, span: Span) -> Window:
        """A window in the units of the order key."""
        value = self.exact_number(token)
        whole = value.adjusted() < 19 and value == value.to_integral_value()
        return self.window(int(value) if whole else value, WindowUnit.ORDER_KEY, span)

    def exact_number(self, token: Token) -> Decimal:
        """The number that the token writes, if a 64-bit float can hold it."""
        try:
            value = Decimal(str(token))
        except ArithmeticError:
            raise self.fail("the number is out of the range of a 64-bit float", span_of(token)) from None
        if value and not -330 < value.adjusted() < 310:
            raise self.fail("the number is out of the range of a 64-bit float", span_of(token))
        if math.isinf(float(value)):
            raise self.fail("the number is larger than a 64-bit float", span_of(token))
        return value if value else Decimal("0.0")

    def name(self, _: Meta, children: Children) -> Name:
        return Name(children[0])

    # --- parts of nested values ----------------------------------------------------------------------------------

    def field_step(self, _: Meta, children: Children) -> str:
        return str(children[0])

    def index_step(self, _: Meta, children: Children) -> int:
        token: Token = children[0]
        if len(token) > 9:
            raise self.fail("the position in a list is too large", span_of(token))
        return self.whole(token)

    def key_step(self, _: Meta, children: Children) -> str:
        return unquoted(children[0])

    def computed_step(self, _: Meta, children: Children) -> ir.Expr:
        key: ir.Expr = children[0]
        return key

    def field_of(self, meta: Meta, children: Children) -> ir.Field:
        operand, name = children
        return ir.Field(operand, str(name), name.span, name.quoted, span=span_of(meta))

    def item_of(self, meta: Meta, children: Children) -> ir.Item:
        return ir.Item(*children, span=span_of(meta))

    # --- literals ----------------------------------------------------------------------------------------------

    def number(self, meta: Meta, children: Children) -> ir.Literal:
        text = str(children[0])
        if not text.isdigit():
            return ir.Literal(self.exact_number(children[0]), FLOAT, span=span_of(meta))
        digits = text.lstrip("0") or "0"
        if len(digits) > len(str(LARGEST_INTEGER)):
            raise self.fail("the number is larger than a 64-bit integer", span_of(meta), "Write it as a float, with .0")
        return ir.Literal(int(digits), INTEGER, span=span_of(meta))

    def percent(self, meta: Meta, children: Children) -> ir.Literal:
        number = Token.new_borrow_pos(children[0].type, children[0][:-1], children[0])
        return ir.Literal(self.exact_number(number) / 100, FLOAT, span=span_of(meta))

    def string(self, meta: Meta, children: Children) -> ir.Literal:
        return ir.Literal(unquoted(children[0]), STRING, span=span_of(meta))

    def true(self, meta: Meta, _: Children) -> ir.Literal:
        return ir.Literal(True, BOOLEAN, span=span_of(meta))

    def false(self, meta: Meta, _: Children) -> ir.Literal:
        return ir.Literal(False, BOOLEAN, span=span_of(meta))

    def null(self, meta: Meta, _: Children) -> ir.Literal:
        return ir.Literal(None, NULL, span=span_of(meta))

    def parameter(self, meta: Meta, children: Children) -> ir.Parameter:
        return ir.Parameter(str(children[0][1:]), span=span_of(meta))

    def duration(self, meta: Meta, children: Children) -> ir.Literal:
        return self._duration(str(children[0]), span_of(meta))

    def interval(self, meta: Meta, children: Children) -> ir.Literal:
        return self._duration(" ".join(unquoted(child) for child in children[1:]), span_of(meta))

    def _duration(self, text: str, span: Span) -> ir.Literal:
        found = re.fullmatch(r"\s*-?[\d.]+\s*([a-z]+)\s*", text, re.IGNORECASE)
        if found is None or found[1].lower() not in MICROSECONDS or not re.search(r"\d", text):
            raise self.fail(
                f"'{printable(text)}' is not a duration",
                span,
                "Write it as 5 minutes or INTERVAL '5' MINUTE; "
                "units: week, day, hour, minute, second, millisecond, microsecond.",
            )
        microseconds = duration_of(text)
        if microseconds is None:
            raise self.fail("a duration must be a whole number of microseconds that fits into 64 bits", span)
        return ir.Literal(microseconds, DURATION, span=span)

    def date(self, meta: Meta, children: Children) -> ir.Literal:
        def days(text: str) -> int:
            return (date.fromisoformat(text) - date(1970, 1, 1)).days

        return self._from_iso(days, DATE, meta, children[1], "DATE '2024-01-31'")

    def timestamp(self, meta: Meta, children: Children) -> ir.Literal:
        # What stands behind the microseconds, if it is not nothing, makes a time in nanoseconds.
        finer = re.fullmatch(r"(.*\.\d{6})(\d{1,3})", unquoted(children[1]))
        nanoseconds = int(finer[2].ljust(3, "0")) if finer else 0

        def units(text: str) -> int:
            moment = datetime.fromisoformat(finer[1] if finer else text)
            if moment.tzinfo is not None:  # an instant; without a zone it is one of UTC
                moment = moment.astimezone(UTC).replace(tzinfo=None)
            whole = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
            return whole * 1_000 + nanoseconds if nanoseconds else whole

        type_ = timestamp(unit="ns" if nanoseconds else "us")
        return self._from_iso(units, type_, meta, children[1], "TIMESTAMP '2024-01-31 10:00:00'")

    def time(self, meta: Meta, children: Children) -> ir.Literal:
        def microseconds(text: str) -> int:
            since = datetime.combine(date(1970, 1, 1), time.fromisoformat(text)) - datetime(1970, 1, 1)
            return since // timedelta(microseconds=1)

        return self._from_iso(microseconds, TIME, meta, children[1], "TIME '09:30:00'")

    def _from_iso(
        self, convert: Callable[[str], int], type_: Type, meta: Meta, token: Token, example: str
    ) -> ir.Literal:
        try:
            return ir.Literal(convert(unquoted(token)), type_, span=span_of(meta))
        except (ValueError, TypeError, OverflowError):
            raise self.fail(
                f"'{printable(unquoted(token))}' is not a {type_}", span_of(token), f"Write: {example}"
            ) from None


def window_parameter(token: Token, span: Span) -> WindowParameter:
    """The window that is left open under a name, or under a :name."""
    return WindowParameter(token.removeprefix(":"), token.startswith(":"), span)


def operands_of(children: Children) -> tuple[ir.Expr, ...]:
    return tuple(child for child in children if isinstance(child, ir.Expr))


def inverted(negated: bool, expression: ir.Expr) -> ir.Expr:
    """NOT of the expression, if asked for; NOT NOT x is x in three-valued logic too."""
    if not negated:
        return expression
    return expression.operand if isinstance(expression, ir.Not) else ir.Not(expression, span=expression.span)


def with_steps(column: ir.Expr, steps: list[Step | ir.Expr]) -> ir.Expr:
    """The part of a value that the steps lead to."""
    for step in steps:
        match step:
            case ir.Expr():
                column = ir.Item(column, step, span=column.span.to(step.span))
            case int():
                column = ir.Item(column, ir.Literal(step, INTEGER, span=column.span), span=column.span)
            case str():
                column = ir.Field(column, step, column.span, exact=False, span=column.span)
    return column


def static_steps(steps: list[Step | ir.Expr]) -> tuple[list[Step], list[Step | ir.Expr]]:
    """The steps that are known as written, which make a path into a column; and those behind them."""
    known: list[Step] = []
    for step in steps:
        if isinstance(step, ir.Expr):
            break
        known.append(step)
    return known, steps[len(known) :]


def _signed(operand: ir.Expr, span: Span) -> ir.Expr:
    """The negative of the operand; the sign of a number belongs to the number, also where :: stands behind it."""
    literal = negative_literal(operand, span)
    if literal is not None:
        return literal
    if isinstance(operand, ir.Cast) and operand.span.start == operand.operand.span.start:
        inner = _signed(operand.operand, operand.operand.span)
        if not isinstance(inner, ir.Negate):
            return replace(operand, operand=inner, span=span)
    return ir.Negate(operand, span=span)


def negative_literal(expression: ir.Expr, span: Span) -> ir.Literal | None:
    """The negative of a literal number, as a literal."""
    match expression:
        case ir.Literal(value=int() | Decimal() as value, of_type=of_type) if of_type in (INTEGER, FLOAT, DURATION):
            return ir.Literal(value.copy_negate() if isinstance(value, Decimal) else -value, of_type, span=span)
    return None

"""Expressions in every language: trees of `expressions.lark` to nodes of the IR.

A language's own builder inherits from `ExpressionBuilder` and adds its references, calls and clauses. What all
languages rely on: texts, brackets and expressions are no larger than the limits here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken
from lark.exceptions import VisitError
from lark.tree import Meta
from lark.visitors import v_args

from kleene.errors import KleeneError, QuerySyntaxError, printable
from kleene.ir import expr as ir
from kleene.lang.complaints import complaint, find_unclosed
from kleene.schema import (
    BOOLEAN,
    DATE,
    DURATION,
    FLOAT,
    INTEGER,
    LARGEST_INTEGER,
    MOST_DECIMAL_DIGITS,
    NULL,
    STRING,
    Type,
    decimal,
    timestamp,
)
from kleene.source import SourceText, Span

MOST_NESTING = 100
MOST_COMPONENTS = 1_000
MOST_CHARACTERS = 1_000_000

_MICROSECONDS = {
    **dict.fromkeys(("microsecond", "microseconds"), 1),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
    **dict.fromkeys(("w", "week", "weeks"), 604_800_000_000),
}
_CAST_TYPES = {
    **dict.fromkeys(("int", "integer", "bigint", "long", "smallint", "tinyint"), INTEGER),
    **dict.fromkeys(("float", "double", "real"), FLOAT),
    **dict.fromkeys(("string", "varchar", "char", "text"), STRING),
    **dict.fromkeys(("boolean", "bool"), BOOLEAN),
    "date": DATE,
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
    unclosed = find_unclosed(source, parsed, MOST_NESTING)
    if unclosed:
        raise unclosed
    try:
        return builder.transform(_parser(grammars, start).parse(parsed))
    except (UnexpectedCharacters, UnexpectedToken) as error:
        raise complaint(error, source, parsed) from None
    except VisitError as error:
        if isinstance(error.orig_exc, RecursionError):
            raise _nested_too_deep() from None
        raise error.orig_exc from None
    except RecursionError:
        raise _nested_too_deep() from None


@cache
def _parser(grammars: tuple[str, ...], start: str) -> Lark:
    folder = resources.files("kleene.lang")
    text = "\n".join(folder.joinpath(f"{name}.lark").read_text(encoding="utf-8") for name in grammars)
    return Lark(text, start=start, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _nested_too_deep() -> QuerySyntaxError:
    return QuerySyntaxError(f"an expression is nested more than {MOST_NESTING} levels deep")


def check_is_text(text: object) -> None:
    if not isinstance(text, str):
        raise QuerySyntaxError(f"a query is text, and a {type(text).__name__} was given")


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
    """A method per rule of the grammar, called from the leaves up."""

    def __init__(self, source: SourceText) -> None:
        super().__init__()
        self.source = source

    def fail(self, message: str, span: Span, hint: str | None = None) -> KleeneError:
        return QuerySyntaxError(message, self.source.locate(span), hint)

    def checked(self, expression: ir.Expr) -> ir.Expr:
        """The expression, if it is not nested too deep."""
        if ir.depth(expression) > MOST_NESTING:
            raise self.fail(f"an expression is nested more than {MOST_NESTING} levels deep", expression.span)
        return expression

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
        return negative_literal(operand, span_of(meta)) or ir.Negate(operand, span=span_of(meta))

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
        _, operand, _, name, precision, scale = children
        type_ = _CAST_TYPES.get(name.lower())
        if type_ is None:
            raise self.fail(
                f"unknown type '{printable(name)}'",
                span_of(name),
                "Types: integer, float, string, boolean, date, timestamp, decimal(precision, scale).",
            )
        return ir.Cast(operand, self._with_scale(type_, precision, scale), span=span_of(meta))

    def _with_scale(self, type_: Type, precision: Token | None, scale: Token | None) -> Type:
        if type_ != decimal(0) or precision is None:
            return type_
        digits, places = int(Decimal(precision)), int(Decimal(scale or "0"))
        if not 0 <= places <= digits <= MOST_DECIMAL_DIGITS:
            raise self.fail(f"a decimal has at most {MOST_DECIMAL_DIGITS} digits", span_of(precision))
        return decimal(places)

    def name(self, _: Meta, children: Children) -> Name:
        return Name(children[0])

    # --- literals ----------------------------------------------------------------------------------------------

    def number(self, meta: Meta, children: Children) -> ir.Literal:
        text = str(children[0])
        if text.isdigit():
            if int(text) > LARGEST_INTEGER:
                raise self.fail(
                    "the number is larger than a 64-bit integer", span_of(meta), f"Write it as a float: {text[:40]}.0"
                )
            return ir.Literal(int(text), INTEGER, span=span_of(meta))
        value = Decimal(text)
        if not -400 < value.adjusted() < 309:
            raise self.fail("the number is larger than a 64-bit float", span_of(meta))
        return ir.Literal(value, FLOAT, span=span_of(meta))

    def percent(self, meta: Meta, children: Children) -> ir.Literal:
        return ir.Literal(Decimal(children[0][:-1]) / 100, FLOAT, span=span_of(meta))

    def string(self, meta: Meta, children: Children) -> ir.Literal:
        return ir.Literal(unquoted(children[0]), STRING, span=span_of(meta))

    def true(self, meta: Meta, _: Children) -> ir.Literal:
        return ir.Literal(True, BOOLEAN, span=span_of(meta))

    def false(self, meta: Meta, _: Children) -> ir.Literal:
        return ir.Literal(False, BOOLEAN, span=span_of(meta))

    def null(self, meta: Meta, _: Children) -> ir.Literal:
        return ir.Literal(None, NULL, span=span_of(meta))

    def duration(self, meta: Meta, children: Children) -> ir.Literal:
        return self._duration(str(children[0]), span_of(meta))

    def interval(self, meta: Meta, children: Children) -> ir.Literal:
        return self._duration(" ".join(unquoted(child) for child in children[1:]), span_of(meta))

    def _duration(self, text: str, span: Span) -> ir.Literal:
        found = re.fullmatch(r"\s*(-?(?:\d+(?:\.\d+)?|\.\d+))\s*([a-z]+)\s*", text, re.IGNORECASE)
        scale = _MICROSECONDS.get(found[2].lower()) if found else None
        if found is None or scale is None:
            raise self.fail(
                f"'{printable(text)}' is not a duration",
                span,
                "Write it as 5 minutes or INTERVAL '5' MINUTE; "
                "units: week, day, hour, minute, second, millisecond, microsecond.",
            )
        microseconds = Decimal(found[1]) * scale
        if microseconds != microseconds.to_integral_value() or abs(microseconds) > LARGEST_INTEGER:
            raise self.fail("a duration is a whole number of microseconds, in 64 bits", span)
        return ir.Literal(int(microseconds), DURATION, span=span)

    def date(self, meta: Meta, children: Children) -> ir.Literal:
        def days(text: str) -> int:
            return (date.fromisoformat(text) - date(1970, 1, 1)).days

        return self._from_iso(days, DATE, meta, children[1], "DATE '2024-01-31'")

    def timestamp(self, meta: Meta, children: Children) -> ir.Literal:
        def microseconds(text: str) -> int:
            return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(microseconds=1)

        return self._from_iso(microseconds, timestamp(), meta, children[1], "TIMESTAMP '2024-01-31 10:00:00'")

    def _from_iso(
        self, convert: Callable[[str], int], type_: Type, meta: Meta, token: Token, example: str
    ) -> ir.Literal:
        try:
            return ir.Literal(convert(unquoted(token)), type_, span=span_of(meta))
        except (ValueError, TypeError):
            raise self.fail(
                f"'{printable(unquoted(token))}' is not a {type_}", span_of(token), f"Write: {example}"
            ) from None


def operands_of(children: Children) -> tuple[ir.Expr, ...]:
    return tuple(child for child in children if isinstance(child, ir.Expr))


def inverted(negated: bool, expression: ir.Expr) -> ir.Expr:
    """NOT of the expression, if asked for; NOT NOT x is x in three-valued logic too."""
    if not negated:
        return expression
    return expression.operand if isinstance(expression, ir.Not) else ir.Not(expression, span=expression.span)


def negative_literal(expression: ir.Expr, span: Span) -> ir.Literal | None:
    """The negative of a literal number, as a literal."""
    match expression:
        case ir.Literal(value=int() | Decimal() as value, of_type=of_type) if of_type in (INTEGER, FLOAT, DURATION):
            return ir.Literal(-value, of_type, span=span)
    return None

"""SASE and SASE+ text to `QueryDefinition`.

The grammar is `sase.lark`; this module turns its trees into the shared IR and its complaints into errors that point.
The next stage may rely on: no expression nests deeper than `MOST_NESTING`, no pattern has more than `MOST_COMPONENTS`
components, and every node knows its span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from importlib import resources
from typing import Any

from lark import Lark, Token, Transformer, Tree, UnexpectedCharacters, UnexpectedToken
from lark.exceptions import VisitError
from lark.tree import Meta
from lark.visitors import v_args

from kleene.errors import AnalysisError, KleeneError, QuerySyntaxError, did_you_mean, listed, printable
from kleene.ir import expr as ir
from kleene.ir.options import Strategy, Window, WindowUnit
from kleene.ir.pattern import Negation, Repeat, Sequence, Variable, variable_of
from kleene.ir.query import EquivalenceTest, Measure, QueryDefinition
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

AGGREGATES = ("avg", "collect", "count", "first", "last", "max", "min", "sum")

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


def parse(text: str, parameters: Mapping[str, str | int] | None = None) -> QueryDefinition:
    """The one query in the text.

    >>> parse("EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 12 hours").equivalence_tests
    (EquivalenceTest(attribute='id', constant=None),)
    """
    queries = parse_program(text, parameters)
    if len(queries) > 1:
        raise QuerySyntaxError(
            f"the text holds {len(queries)} queries, and one was expected",
            hint="A text of several queries is read by kleene.program(text).",
        )
    return queries[0]


def parse_program(text: str, parameters: Mapping[str, str | int] | None = None) -> tuple[QueryDefinition, ...]:
    """The queries of a text, in which `;` separates them; `parameters` are the values of names after WITHIN."""
    if not isinstance(text, str):
        raise QuerySyntaxError(f"a query is text, and a {type(text).__name__} was given")
    source = SourceText(text)
    tree = _tree(source)
    try:
        queries: list[QueryDefinition] = _Builder(source, dict(parameters or {})).transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, KleeneError):
            raise error.orig_exc from None
        if isinstance(error.orig_exc, RecursionError):
            raise _nested_too_deep() from None
        raise
    except RecursionError:
        raise _nested_too_deep() from None
    if not queries:
        raise QuerySyntaxError(
            "the text is empty: it holds no query",
            hint="A query begins with EVENT or PATTERN: EVENT SEQ(Shelf a, Exit b) WHERE [id]",
        )
    return tuple(queries)


def _tree(source: SourceText) -> Tree[Token]:
    if len(source.text) > MOST_CHARACTERS:
        raise QuerySyntaxError(f"the text has {len(source.text):,} characters; a query may have {MOST_CHARACTERS:,}")
    unclosed = find_unclosed(source, MOST_NESTING)
    if unclosed:
        raise unclosed
    try:
        return _parser().parse(source.text)
    except (UnexpectedCharacters, UnexpectedToken) as error:
        raise complaint(error, source) from None


@lru_cache(maxsize=1)
def _parser() -> Lark:
    grammar = resources.files("kleene.lang").joinpath("sase.lark").read_text(encoding="utf-8")
    return Lark(grammar, start="program", parser="lalr", propagate_positions=True, maybe_placeholders=True)


def _nested_too_deep() -> QuerySyntaxError:
    return QuerySyntaxError(f"an expression is nested more than {MOST_NESTING} levels deep")


def _span(meta: Meta | Token) -> Span:
    if isinstance(meta, Meta) and meta.empty:
        return Span(0, 0)
    assert meta.start_pos is not None
    assert meta.end_pos is not None
    return Span(meta.start_pos, meta.end_pos)


def _unquoted(token: Token) -> str:
    """The name or string without its quotes, doubled quotes inside made single."""
    quote = token[0]
    return str(token[1:-1]).replace(quote * 2, quote) if quote in "`'\"" else str(token)


class _Name(str):
    """A name that remembers where it stands."""

    span: Span

    def __new__(cls, token: Token) -> _Name:
        name = super().__new__(cls, _unquoted(token))
        name.span = _span(token)
        return name


class _Bracketed(ir.Expr):
    """Equivalence tests where an expression may stand; taken out again before the query leaves this module."""

    tests: tuple[EquivalenceTest, ...]

    def __init__(self, tests: tuple[EquivalenceTest, ...], span: Span) -> None:
        object.__setattr__(self, "tests", tests)
        object.__setattr__(self, "span", span)
        object.__setattr__(self, "type", None)


@dataclass(frozen=True, slots=True)
class _Strategy:
    """A strategy with the variables that it lists."""

    strategy: Strategy
    span: Span
    listed: list[_Name]


Children = list[Any]


@v_args(meta=True)
class _Builder(Transformer[Token, Any]):
    """A method per rule of the grammar, called from the leaves up."""

    def __init__(self, source: SourceText, parameters: dict[str, str | int]) -> None:
        super().__init__()
        self._source = source
        self._parameters = parameters

    def _fail(self, message: str, span: Span, hint: str | None = None) -> KleeneError:
        return QuerySyntaxError(message, self._source.locate(span), hint)

    # --- queries -----------------------------------------------------------------------------------------------

    def program(self, _: Meta, children: Children) -> list[QueryDefinition]:
        return [child for child in children if isinstance(child, QueryDefinition)]

    def query(self, _: Meta, children: Children) -> QueryDefinition:
        definition = QueryDefinition(Sequence(()), source=self._source)
        for clause in children:
            if isinstance(clause, dict):
                strategy = clause.pop("with_variables", None)
                definition = replace(definition, **clause)
                if strategy:
                    self._check_listed_variables(definition, strategy)
        return definition

    def from_clause(self, _: Meta, children: Children) -> dict[str, object]:
        return {"from_stream": str(children[1]), "from_span": children[1].span}

    def into_clause(self, _: Meta, children: Children) -> dict[str, object]:
        return {"into_stream": str(children[1]), "into_span": children[1].span}

    def where_clause(self, _: Meta, children: Children) -> dict[str, object]:
        strategy = next((child for child in children if isinstance(child, _Strategy)), None)
        body = next((child for child in children if isinstance(child, ir.Expr)), None)
        predicates, tests = self._without_tests(body)
        clause: dict[str, object] = {"predicates": predicates, "equivalence_tests": tests}
        if strategy:
            clause |= {"strategy": strategy.strategy, "strategy_span": strategy.span, "with_variables": strategy}
        return clause

    def strategy(self, _: Meta, children: Children) -> _Strategy:
        return _Strategy(Strategy(children[0].lower()), _span(children[0]), [name for name in children[1:] if name])

    def listed_variable(self, _: Meta, children: Children) -> _Name:
        name: _Name = children[0]
        return name

    def _check_listed_variables(self, definition: QueryDefinition, strategy: _Strategy) -> None:
        declared = {variable_of(element).name: element for element in definition.pattern.elements}
        names = [name for name in declared if name]
        for name in strategy.listed:
            if name not in declared:
                raise AnalysisError(
                    f"unknown variable '{printable(name)}' in the list of {strategy.strategy.value}",
                    self._source.locate(name.span),
                    f"Variables of the pattern: {listed(names)}.{did_you_mean(name, names)}",
                )
        for variable, element in declared.items():
            if variable and variable not in strategy.listed and not isinstance(element, Negation):
                raise AnalysisError(
                    f"the list of {strategy.strategy.value} leaves out the variable '{printable(variable)}'",
                    self._source.locate(strategy.span),
                    f"A strategy holds for the whole pattern; list all its variables: {listed(names)}.",
                )

    def _without_tests(self, body: ir.Expr | None) -> tuple[tuple[ir.Expr, ...], tuple[EquivalenceTest, ...]]:
        predicates: list[ir.Expr] = []
        tests: list[EquivalenceTest] = []
        # Parentheses leave conjunctions inside conjunctions; an equivalence test may stand in any of them.
        waiting = [] if body is None else [body]
        while waiting:
            predicate = waiting.pop()
            if isinstance(predicate, _Bracketed):
                tests.extend(predicate.tests)
            elif isinstance(predicate, ir.And):
                waiting.extend(reversed(predicate.operands))
            else:
                predicates.append(self._checked(predicate))
        return tuple(predicates), tuple(tests)

    def _checked(self, expression: ir.Expr) -> ir.Expr:
        """The expression, if it is not too deep and has no equivalence test where none can stand."""
        if ir.depth(expression) > MOST_NESTING:
            raise self._fail(f"an expression is nested more than {MOST_NESTING} levels deep", expression.span)
        for node in ir.walk(expression):
            if isinstance(node, _Bracketed):
                raise self._fail(
                    "an equivalence test holds for the whole match and cannot stand inside another expression",
                    node.span,
                    "Put it beside the other predicates, joined with AND, or write the comparison out: a.id = b.id",
                )
        return expression

    def within_clause(self, _: Meta, children: Children) -> dict[str, object]:
        return {"window": children[1]}

    def window_time(self, meta: Meta, children: Children) -> Window:
        return self._window(children[0].value, WindowUnit.TIME, _span(meta))

    def window_events(self, meta: Meta, children: Children) -> Window:
        size = Decimal(str(children[0]))
        if size != size.to_integral_value():
            raise self._fail("a window in events is a whole number", _span(children[0]))
        return self._window(int(size), WindowUnit.EVENTS, _span(meta))

    def window_number(self, meta: Meta, children: Children) -> Window:
        value = Decimal(str(children[0]))
        whole = value == value.to_integral_value()
        return self._window(int(value) if whole else value, WindowUnit.ORDER_KEY, _span(meta))

    def _window(self, size: int | Decimal, unit: WindowUnit, span: Span) -> Window:
        if not 0 < size <= LARGEST_INTEGER:
            raise self._fail("a window is larger than nothing and no longer than 64 bits can hold", span)
        return Window(size, unit, span)

    def window_parameter(self, meta: Meta, children: Children) -> Window:
        name = str(children[0])
        if name not in self._parameters:
            raise AnalysisError(
                f"the window '{name}' is a parameter without a value",
                self._source.locate(_span(meta)),
                f"Write a size (12 hours, 500 events, 100), or give it: kleene.sase(text, {{'{name}': '12 hours'}})",
            )
        value = str(self._parameters[name])
        try:
            window = parse(f"EVENT A WITHIN {value}").window
        except KleeneError:
            window = None
        if window is None:
            raise self._fail(
                f"the parameter '{name}' is '{printable(value)}', which is not a window",
                _span(meta),
                "Windows look like: 12 hours, 500 events, 100.",
            )
        return replace(window, span=_span(meta))

    def having_clause(self, _: Meta, children: Children) -> dict[str, object]:
        return {"having": self._checked(children[1])}

    def return_clause(self, _: Meta, children: Children) -> dict[str, object]:
        return {"measures": tuple(children[1:])}

    def measure(self, meta: Meta, children: Children) -> Measure:
        expression, _, name = children
        self._checked(expression)
        if name is not None:
            return Measure(str(name), expression, name.span)
        if isinstance(expression, ir.Attribute):
            return Measure(expression.name, expression, _span(meta))
        raise self._fail(
            "a value that is not a plain reference needs a name", _span(meta), "Write: RETURN expression AS name"
        )

    # --- patterns ----------------------------------------------------------------------------------------------

    def pattern(self, meta: Meta, children: Children) -> dict[str, object]:
        elements = tuple(child for child in children if not isinstance(child, Token))
        if len(elements) > MOST_COMPONENTS:
            raise self._fail(
                f"the pattern has {len(elements):,} components; {MOST_COMPONENTS:,} are allowed",
                elements[MOST_COMPONENTS].span,
            )
        return {"pattern": Sequence(elements, span=_span(meta))}

    def positive(self, meta: Meta, children: Children) -> Variable | Repeat:
        types, plus, declared = children
        name: _Name | None = declared[0] if declared else None
        brackets = declared[1] if declared else None
        variable = Variable(
            None if name is None else str(name),
            tuple(str(type_name) for type_name in types),
            name.span if name else _span(meta),
            tuple(type_name.span for type_name in types),
            span=_span(meta),
        )
        if plus and name and not brackets:
            raise self._fail(
                f"the Kleene variable '{printable(name)}' is declared without brackets", name.span, f"Write: {name}[]"
            )
        if name and brackets and not plus:
            raise self._fail(
                f"'{printable(name)}[]' is a Kleene variable, but its type has no +",
                name.span,
                f"Write: {types[0]}+ {name}[]",
            )
        return Repeat(variable, 1, None, span=_span(meta)) if plus else variable

    def declared(self, _: Meta, children: Children) -> Children:
        return children

    def types(self, _: Meta, children: Children) -> list[_Name]:
        return [child for child in children if isinstance(child, _Name)]

    def negative(self, meta: Meta, children: Children) -> Negation:
        element = children[1]
        if isinstance(element, Repeat):
            raise AnalysisError(
                "a negative component cannot be a Kleene plus",
                self._source.locate(_span(meta)),
                "Leave the + out: the negation already says that not one such event occurs.",
            )
        return Negation(element, span=_span(meta))

    # --- predicates --------------------------------------------------------------------------------------------

    def disjunction(self, meta: Meta, children: Children) -> ir.Or:
        return ir.Or(_operands(children), span=_span(meta))

    def conjunction(self, meta: Meta, children: Children) -> ir.And:
        return ir.And(_operands(children), span=_span(meta))

    def inversion(self, meta: Meta, children: Children) -> ir.Expr:
        operand: ir.Expr = children[-1]
        # NOT NOT x is x in three-valued logic too.
        return operand if len(children) % 2 else ir.Not(operand, span=_span(meta))

    def comparison(self, meta: Meta, children: Children) -> ir.Comparison:
        left, operator, right = children
        return ir.Comparison(_ASCII_COMPARISONS.get(operator, str(operator)), left, right, span=_span(meta))

    def is_null(self, meta: Meta, children: Children) -> ir.Expr:
        return _inverted(children[2] is not None, ir.IsNull(children[0], span=_span(meta)))

    def in_list(self, meta: Meta, children: Children) -> ir.Expr:
        operand, negated, _, *choices = children
        return _inverted(negated is not None, ir.In(operand, tuple(choices), span=_span(meta)))

    def between(self, meta: Meta, children: Children) -> ir.Expr:
        operand, negated, _, low, _, high = children
        return _inverted(negated is not None, ir.Between(operand, low, high, span=_span(meta)))

    def like(self, meta: Meta, children: Children) -> ir.Expr:
        operand, negated, _, pattern = children
        return _inverted(negated is not None, ir.Like(operand, pattern, span=_span(meta)))

    def equivalence_tests(self, meta: Meta, children: Children) -> ir.Expr:
        return _Bracketed(tuple(children), _span(meta))

    def equivalence(self, meta: Meta, children: Children) -> EquivalenceTest:
        name, operator, constant = children
        if operator is not None and operator not in ("=", "=="):
            raise self._fail("an equivalence test compares with = only", _span(operator), f"Write: [{name} = …]")
        return EquivalenceTest(str(name), constant, _span(meta))

    def constant(self, meta: Meta, children: Children) -> ir.Literal:
        literal: ir.Literal = children[1]
        if children[0] is None:
            return literal
        negative = _negative(literal, _span(meta))
        if negative is None:
            raise self._fail("only a number can be negative", _span(meta))
        return negative

    # --- values ------------------------------------------------------------------------------------------------

    def chain(self, _: Meta, children: Children) -> ir.Expr:
        left: ir.Expr = children[0]
        for operator, right in zip(children[1::2], children[2::2], strict=True):
            span = left.span.to(right.span)
            if operator == "||":
                left = ir.Function("concat", (left, right), _span(operator), span=span)
            else:
                left = ir.Arithmetic(str(operator), left, right, span=span)
        return left

    def signed(self, meta: Meta, children: Children) -> ir.Expr:
        operand: ir.Expr = children[-1]
        if sum(sign == "-" for sign in children[:-1]) % 2 == 0:
            return operand
        return _negative(operand, _span(meta)) or ir.Negate(operand, span=_span(meta))

    def call(self, meta: Meta, children: Children) -> ir.Expr:
        name, *arguments = children
        arguments = [argument for argument in arguments if argument is not None]
        function = name.lower()
        if function in AGGREGATES:
            if len(arguments) != 1:
                raise self._fail(
                    f"{function} takes one argument, and {len(arguments)} are given",
                    name.span,
                    f"Write: {function}(a[].x) over all events of a, or {function}(a[..i-1].x) over those so far",
                )
            return ir.Aggregate(function, _so_far(arguments[0]), name.span, span=_span(meta))
        return ir.Function(function, tuple(arguments), name.span, span=_span(meta))

    def case(self, meta: Meta, children: Children) -> ir.Case:
        _, operand, *rest = children
        *branches, else_word, default, _ = rest
        if operand is not None:
            branches = [
                (ir.Comparison("=", operand, condition, span=condition.span), value) for condition, value in branches
            ]
        if else_word is None:
            default = ir.Literal(None, NULL, span=_span(meta))
        return ir.Case(tuple(branches), default, span=_span(meta))

    def when(self, _: Meta, children: Children) -> tuple[ir.Expr, ir.Expr]:
        return children[1], children[3]

    def cast(self, meta: Meta, children: Children) -> ir.Cast:
        _, operand, _, name, precision, scale = children
        type_ = _CAST_TYPES.get(name.lower())
        if type_ is None:
            raise self._fail(
                f"unknown type '{printable(name)}'",
                _span(name),
                "Types: integer, float, string, boolean, date, timestamp, decimal(precision, scale).",
            )
        return ir.Cast(operand, self._with_scale(type_, precision, scale), span=_span(meta))

    def _with_scale(self, type_: Type, precision: Token | None, scale: Token | None) -> Type:
        if type_ != decimal(0) or precision is None:
            return type_
        digits, places = int(Decimal(precision)), int(Decimal(scale or "0"))
        if not 0 <= places <= digits <= MOST_DECIMAL_DIGITS:
            raise self._fail(f"a decimal has at most {MOST_DECIMAL_DIGITS} digits", _span(precision))
        return decimal(places)

    # --- references --------------------------------------------------------------------------------------------

    def bare(self, meta: Meta, children: Children) -> ir.Attribute:
        name: _Name = children[0]
        return ir.Attribute(None, str(name), name_span=name.span, span=_span(meta))

    def attribute(self, meta: Meta, children: Children) -> ir.Attribute:
        return _attribute(meta, children[0], ir.Position.EACH, children[1])

    def events(self, meta: Meta, children: Children) -> ir.Events:
        return ir.Events(str(children[0]), ir.Position.ALL, children[0].span, span=_span(meta))

    def events_attribute(self, meta: Meta, children: Children) -> ir.Attribute:
        return _attribute(meta, children[0], ir.Position.ALL, children[2])

    def indexed(self, meta: Meta, children: Children) -> ir.Events:
        variable, index = children
        return ir.Events(str(variable), self._position(variable, index), variable.span, span=_span(meta))

    def indexed_attribute(self, meta: Meta, children: Children) -> ir.Attribute:
        variable, index, name = children
        return _attribute(meta, variable, self._position(variable, index), name)

    def _position(self, variable: _Name, index: tuple[str, Span]) -> ir.Position:
        written, span = index
        positions = {"1": ir.Position.FIRST, "i": ir.Position.CURRENT, "i-1": ir.Position.PREVIOUS}
        positions |= {"..i-1": ir.Position.SO_FAR, f"{variable}.LEN": ir.Position.LAST}
        if written not in positions:
            raise self._fail(
                f"'{printable(variable)}[{printable(written)}]' is not an index",
                span,
                "An index is one of: [1] the first event, [i] an event after the first, [i-1] the one before it, "
                f"[..i-1] those selected so far, [{printable(variable)}.LEN] the last.",
            )
        return positions[written]

    def index_number(self, meta: Meta, children: Children) -> tuple[str, Span]:
        return str(children[0]), _span(meta)

    index_name = index_number

    def index_minus(self, meta: Meta, children: Children) -> tuple[str, Span]:
        return "".join(children), _span(meta)

    index_so_far = index_minus

    def index_length(self, meta: Meta, children: Children) -> tuple[str, Span]:
        return ".".join(children), _span(meta)

    def name(self, _: Meta, children: Children) -> _Name:
        return _Name(children[0])

    type_name = name

    # --- literals ----------------------------------------------------------------------------------------------

    def number(self, meta: Meta, children: Children) -> ir.Literal:
        text = str(children[0])
        if text.isdigit():
            if int(text) > LARGEST_INTEGER:
                raise self._fail(
                    "the number is larger than a 64-bit integer", _span(meta), f"Write it as a float: {text[:40]}.0"
                )
            return ir.Literal(int(text), INTEGER, span=_span(meta))
        value = Decimal(text)
        if not -400 < value.adjusted() < 309:
            raise self._fail("the number is larger than a 64-bit float", _span(meta))
        return ir.Literal(value, FLOAT, span=_span(meta))

    def percent(self, meta: Meta, children: Children) -> ir.Literal:
        return ir.Literal(Decimal(children[0][:-1]) / 100, FLOAT, span=_span(meta))

    def string(self, meta: Meta, children: Children) -> ir.Literal:
        return ir.Literal(_unquoted(children[0]), STRING, span=_span(meta))

    def true(self, meta: Meta, _: Children) -> ir.Literal:
        return ir.Literal(True, BOOLEAN, span=_span(meta))

    def false(self, meta: Meta, _: Children) -> ir.Literal:
        return ir.Literal(False, BOOLEAN, span=_span(meta))

    def null(self, meta: Meta, _: Children) -> ir.Literal:
        return ir.Literal(None, NULL, span=_span(meta))

    def duration(self, meta: Meta, children: Children) -> ir.Literal:
        return self._duration(str(children[0]), _span(meta))

    def interval(self, meta: Meta, children: Children) -> ir.Literal:
        return self._duration(" ".join(_unquoted(child) for child in children[1:]), _span(meta))

    def _duration(self, text: str, span: Span) -> ir.Literal:
        found = re.fullmatch(r"\s*(-?(?:\d+(?:\.\d+)?|\.\d+))\s*([a-z]+)\s*", text, re.IGNORECASE)
        scale = _MICROSECONDS.get(found[2].lower()) if found else None
        if found is None or scale is None:
            raise self._fail(
                f"'{printable(text)}' is not a duration",
                span,
                "Write it as 5 minutes or INTERVAL '5' MINUTE; "
                "units: week, day, hour, minute, second, millisecond, microsecond.",
            )
        microseconds = Decimal(found[1]) * scale
        if microseconds != microseconds.to_integral_value() or abs(microseconds) > LARGEST_INTEGER:
            raise self._fail("a duration is a whole number of microseconds, in 64 bits", span)
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
            return ir.Literal(convert(_unquoted(token)), type_, span=_span(meta))
        except (ValueError, TypeError):
            raise self._fail(
                f"'{printable(_unquoted(token))}' is not a {type_}", _span(token), f"Write: {example}"
            ) from None


def _attribute(meta: Meta, variable: _Name, position: ir.Position, name: _Name) -> ir.Attribute:
    return ir.Attribute(str(variable), str(name), position, variable.span, name.span, span=_span(meta))


def _operands(children: Children) -> tuple[ir.Expr, ...]:
    return tuple(child for child in children if isinstance(child, ir.Expr))


def _inverted(negated: bool, expression: ir.Expr) -> ir.Expr:
    return ir.Not(expression, span=expression.span) if negated else expression


def _negative(expression: ir.Expr, span: Span) -> ir.Literal | None:
    """The negative of a literal number, as a literal."""
    match expression:
        case ir.Literal(value=int() | Decimal() as value, of_type=of_type) if of_type in (INTEGER, FLOAT, DURATION):
            return ir.Literal(-value, of_type, span=span)
    return None


def _so_far(argument: ir.Expr) -> ir.Expr:
    """Inside an aggregate `a[i-1]` means `a[..i-1]`, as SASE+ 2008 writes it in Query 3."""
    match argument:
        case ir.Attribute(position=ir.Position.PREVIOUS) | ir.Events(position=ir.Position.PREVIOUS):
            return replace(argument, position=ir.Position.SO_FAR)
    return ir.with_children(argument, _so_far)

"""The regular-expression operator (MatchRegex 2012): a pattern string and named predicates to `QueryDefinition`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lark import Token
from lark.tree import Meta
from lark.visitors import v_args

from kleene.errors import AnalysisError, KleeneError, QuerySyntaxError, SchemaError, listed, printable, shown
from kleene.ir import expr as ir
from kleene.ir.options import Selection, Strategy
from kleene.ir.own import NO_FUNCTIONS, Own, OwnAggregate, OwnFunction
from kleene.ir.paths import path_text
from kleene.ir.pattern import Pattern, Repeat, Variable, variables_in
from kleene.ir.query import Definition, Measure, QueryDefinition, SortKey
from kleene.lang.expressions import Children, ExpressionBuilder, build, check_is_text, span_of, static_steps, with_steps
from kleene.lang.row_pattern import PatternBuilder
from kleene.source import SourceText, Span

WILDCARD = "."
_AGGREGATES = {
    "average": "avg",
    "collect": "collect",
    "count": "count",
    "delta": "delta",
    "first": "first",
    "last": "last",
    "max": "max",
    "min": "min",
    "sum": "sum",
}


def parse(
    pattern: str,
    partition_by: str | Sequence[str],
    order_by: str | Sequence[str],
    predicates: Mapping[str, str],
    output: Mapping[str, str],
    functions: Mapping[str, Own] = NO_FUNCTIONS,
) -> QueryDefinition:
    """The query; each text is parsed on its own, and an error says in which of them it is.

    >>> parse(". rise+ drop", "symbol", "ts", {"rise": "price > Last(price)", "drop": "price < Last(price)"},
    ...       {"count": "Count()"}).definitions[0].variable
    'rise'
    """
    check_is_text(pattern)
    _check_named(predicates, "predicates", "{'rise': 'price > Last(price)'}")
    _check_named(output, "output", "{'count': 'Count()'}")
    source = SourceText(pattern)
    parsed: Pattern = build(_PatternBuilder(source), ("expressions", "regex_expression", "row_pattern"), "row_pattern")
    for variable in variables_in(parsed):
        if variable.name not in predicates and variable.name != WILDCARD:
            raise AnalysisError(
                f"the pattern names '{printable(variable.name or '')}', which is not a predicate",
                source.locate(variable.name_span),
                f"Predicates: {listed(predicates)}. A dot stands for any event.",
            )
    if not output:
        raise AnalysisError("the output is empty", hint="Name at least one value: output={'count': 'Count()'}")
    return QueryDefinition(
        parsed,
        strategy=Strategy.PARTITION_CONTIGUITY,
        selection=Selection.FIRST_COMPLETED,
        partition_by=tuple(ir.Attribute(None, name) for name in _names(partition_by, "partition_by")),
        order_by=tuple(SortKey(ir.Attribute(None, name)) for name in _names(order_by, "order_by")),
        definitions=tuple(
            Definition(name, _expression(text, f"predicate '{name}'", functions), source=SourceText(text))
            for name, text in predicates.items()
        ),
        measures=tuple(
            Measure(name, _expression(text, f"output '{name}'", functions), source=SourceText(text))
            for name, text in output.items()
        ),
        source=source,
    )


def _check_named(given: object, argument: str, example: str) -> None:
    """A dict from names to texts."""
    if not isinstance(given, Mapping):
        raise AnalysisError(f"{argument} is a dict by name, but {shown(given)} was given", hint=f"Write: {example}")
    for name, value in given.items():
        if not isinstance(name, str) or (argument != "output" and not re.fullmatch(r"[^\W\d]\w*", name)):
            raise AnalysisError(
                f"{argument} is a dict by name, but {shown(name)} is not a name", hint=f"Write: {example}"
            )
        if not isinstance(value, str):
            hint = f"Write: {example}" + ("; Python functions go into functions={…}" if callable(value) else "")
            raise AnalysisError(f"{argument}: '{printable(name)}' is {shown(value)}, but must be text", hint=hint)


def _names(given: str | Sequence[str], argument: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"{argument} takes the name of a column or a list of names, but {shown(given)} was given")
    if argument == "order_by" and not names:
        raise SchemaError("no order key is given", hint="Name the column that orders the events: order_by='ts'")
    return tuple(names)


def parse_condition(text: str, what: str, functions: Mapping[str, Own] = NO_FUNCTIONS) -> ir.Expr:
    """A condition on one event, whose attributes stand by their bare names.

    >>> parse_condition("tag = 7", "filter").operator
    '='
    """
    return _expression(text, what, functions)


def _expression(text: str, what: str, functions: Mapping[str, Own]) -> ir.Expr:
    check_is_text(text)
    if not text.strip():
        raise QuerySyntaxError(f"the {what} is empty")
    builder = _ExpressionBuilder(SourceText(text), functions)
    try:
        return builder.checked(build(builder, ("expressions", "regex_expression"), "expression"))
    except KleeneError as error:
        error.message = f"in the {what}: {error.message}"
        raise


@v_args(meta=True)
class _PatternBuilder(PatternBuilder):
    """Patterns of the operator: id . concatenation | * + ? and groups."""

    # The grammar is shared, and knows more than this language.
    expects = "A pattern is made of names of predicates, '.', '|', '*', '+', '?' and parentheses."

    def wildcard(self, meta: Meta, children: Children) -> Pattern:
        return Variable(WILDCARD, name_span=span_of(meta), span=span_of(meta))

    def repeated(self, element: Pattern, text: str, span: Span, quantifier: Token) -> Pattern:
        if text.startswith("{"):
            raise self.fail("this language has no quantifiers in braces", span_of(quantifier), "Use *, + and ?.")
        repeated: Pattern = Repeat(element, *{"*": (0, None), "+": (1, None), "?": (0, 1)}[text[0]], span=span)
        # a+? is not reluctant here but a+ or nothing.
        return Repeat(repeated, 0, 1, span=span) if len(text) > 1 else repeated

    def permute(self, meta: Meta, children: Children) -> Pattern:
        raise self.fail("this language has no PERMUTE", span_of(meta))

    def exclude(self, meta: Meta, children: Children) -> Pattern:
        raise self.fail("this language has no exclusion", span_of(meta))

    def anchor(self, meta: Meta, children: Children) -> Pattern:
        raise self.fail(f"this language has no anchor '{children[0]}'", span_of(meta))


@v_args(meta=True)
class _ExpressionBuilder(ExpressionBuilder):
    """Predicates and outputs; bare names are attributes, aggregates are calls."""

    def bare(self, meta: Meta, children: Children) -> ir.Expr:
        name, *steps = children
        path, behind = static_steps(steps)
        column = ir.Attribute(None, path_text(str(name), path), name_span=name.span, span=span_of(meta))
        return with_steps(column, behind)

    def call(self, meta: Meta, children: Children) -> ir.Expr:
        name, *arguments = children
        arguments = [argument for argument in arguments if argument is not None]
        own = self.own(name)
        if isinstance(own, OwnFunction):
            return self.own_call(own, name, arguments, span_of(meta))
        if isinstance(own, OwnAggregate):
            self.check_one_argument(own, name, arguments)
            self._check_not_nested(arguments[0])
            return ir.Aggregate(own.name, arguments[0], name_span=name.span, own=own, span=span_of(meta))
        function = _AGGREGATES.get(name.lower())
        if function is None:
            return ir.Function(name.lower(), tuple(arguments), name.span, span=span_of(meta))
        return self._aggregate(function, name, arguments, span_of(meta))

    def _aggregate(self, function: str, name: Any, arguments: Children, span: Span) -> ir.Expr:
        wanted = 0 if function == "count" else 1
        if len(arguments) != wanted:
            raise AnalysisError(
                f"{name} takes {f'{wanted} argument' if wanted else 'no arguments'}, not {len(arguments)}",
                self.source.locate(name.span),
                "Write: Count()" if not wanted else f"Write: {name}(attribute)",
            )
        if function == "count":
            return ir.Aggregate("count", ir.Events(None, ir.Position.ALL), name_span=name.span, span=span)
        self._check_not_nested(arguments[0])
        return ir.Aggregate(function, arguments[0], name_span=name.span, span=span)

    def _check_not_nested(self, argument: ir.Expr) -> None:
        for node in ir.walk(argument):
            if isinstance(node, ir.Aggregate):
                raise AnalysisError("an aggregate cannot contain another", self.source.locate(node.span))

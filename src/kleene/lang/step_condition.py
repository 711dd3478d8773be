"""The condition of a step, as text, to an expression.

`x` is an attribute of the event being tried. `s.x` is one of step s, or a part of the attribute s: which of them shows
when the whole pattern is known, and `with_parts_of_columns` decides it.
"""

from __future__ import annotations

from dataclasses import replace

from lark.tree import Meta
from lark.visitors import v_args

from kleene.errors import AnalysisError, KleeneError, QuerySyntaxError, printable
from kleene.ir import expr as ir
from kleene.ir.paths import path_of, path_text
from kleene.ir.query import QueryDefinition
from kleene.ir.steps import all_steps, steps_of
from kleene.lang.expressions import (
    Children,
    ExpressionBuilder,
    Name,
    build,
    span_of,
    static_steps,
    with_steps,
)
from kleene.source import SourceText, Span

AGGREGATES = ("avg", "count", "first", "last", "max", "min", "sum")
_GRAMMARS = ("expressions", "step_condition")


def parse_condition(text: str, what: str) -> tuple[ir.Expr, SourceText]:
    """The condition, and the text that its parts stand in; `what` is what an error says it is.

    >>> from kleene.ir.text import expression_text
    >>> expression_text(parse_condition("price > LAST(a.price) and COUNT(b.*) < 3", "the condition of 'b'")[0])
    'price > last(a.price) AND count(b.*) < 3'
    """
    if not text.strip():
        raise QuerySyntaxError(f"{what} is empty", hint="Write a condition on the event, such as 'price > 10'.")
    source = SourceText(text)
    builder = _Builder(source)
    try:
        return builder.checked(build(builder, _GRAMMARS, "expression")), source
    except KleeneError as error:
        error.message = f"in {what}: {error.message}"
        raise


@v_args(meta=True)
class _Builder(ExpressionBuilder):
    """A method per rule of step_condition.lark."""

    def reference(self, meta: Meta, children: Children) -> ir.Expr:
        name, *steps = children
        path, behind = static_steps(steps)
        span = span_of(meta)
        if path and isinstance(path[0], str):
            owned = path_text(path[0], path[1:])
            column = ir.Attribute(str(name), owned, variable_span=name.span, name_span=span, span=span)
        else:
            column = ir.Attribute(None, path_text(str(name), path), name_span=name.span, span=span)
        return with_steps(column, behind)

    def events(self, meta: Meta, children: Children) -> ir.Events:
        name = children[0]
        return ir.Events(str(name), ir.Position.EACH, name.span, span=span_of(meta))

    def call(self, meta: Meta, children: Children) -> ir.Expr:
        name, *arguments = children
        arguments = [argument for argument in arguments if argument is not None]
        function = name.lower()
        if function in AGGREGATES:
            return self._aggregate(function, name, arguments, span_of(meta))
        for argument in arguments:
            if isinstance(argument, ir.Events):
                raise self._illegal(f"only COUNT takes *, but this is {printable(name)}", argument.span)
        return ir.Function(function, tuple(arguments), name.span, span=span_of(meta))

    def _aggregate(self, function: str, name: Name, arguments: Children, span: Span) -> ir.Expr:
        example = f"Write: {function.upper()}(s.x), where s is a step and x an attribute."
        if len(arguments) != 1:
            raise self._illegal(f"{function.upper()} takes one argument, not {len(arguments)}", name.span, example)
        [argument] = arguments
        if isinstance(argument, ir.Events) and function != "count":
            raise self._illegal(f"only COUNT takes *, but this is {function.upper()}", argument.span, example)
        if any(isinstance(node, ir.Aggregate) for node in ir.walk(argument)):
            raise self._illegal("an aggregate cannot contain another", span, example)
        return ir.Aggregate(function, argument, name_span=name.span, span=span)

    def _illegal(self, message: str, span: Span, hint: str | None = None) -> KleeneError:
        return AnalysisError(message, self.source.locate(span), hint)


def with_parts_of_columns(definition: QueryDefinition) -> QueryDefinition:
    """The pattern with `payload.user` as a part of the attribute payload wherever no step is called payload."""
    names = {step.name for step in all_steps(steps_of(definition).steps)}

    def change(expression: ir.Expr) -> ir.Expr:
        match expression:
            case ir.Aggregate():  # is over a step, or an error
                return expression
            case ir.Attribute(variable=str() as variable, name=name) if variable not in names:
                path = path_of(name)
                inner = (name,) if path is None else (path.column, *path.steps)
                return replace(expression, variable=None, name=path_text(variable, inner))
        return ir.with_children(expression, change)

    definitions = tuple(replace(item, condition=change(item.condition)) for item in definition.definitions)
    return definition if definitions == definition.definitions else replace(definition, definitions=definitions)

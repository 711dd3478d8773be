"""Names to variables and attributes: after `resolve` an expression refers only to what exists."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

from kleene.errors import AnalysisError, did_you_mean, listed, printable
from kleene.ir import expr as ir
from kleene.ir.expr import Position
from kleene.ir.options import Strategy
from kleene.ir.pattern import Negation, Pattern, Repeat, variable_of
from kleene.schema import UNKNOWN, EventSchema, Type
from kleene.source import SourceText, Span


class Clause(Enum):
    WHERE = "WHERE"
    HAVING = "HAVING"
    RETURN = "RETURN"


@dataclass(frozen=True, slots=True)
class ScopedVariable:
    name: str
    types: tuple[str, ...]
    is_kleene: bool
    is_negative: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables of the pattern and the attributes of the input; without a schema, every attribute exists."""

    source: SourceText
    schema: EventSchema | None
    variables: dict[str, ScopedVariable]
    only_variable: str | None
    """The variable that a bare attribute belongs to: that of a pattern with a single component."""
    functions_of_spark: bool = False
    """Whether an unknown function may be one of Spark's: in SQL, as long as no input says where it will run."""

    def fail(self, message: str, span: Span, hint: str | None = None) -> AnalysisError:
        return AnalysisError(message, self.source.locate(span), hint)

    def type_of(self, attribute: str) -> Type:
        return UNKNOWN if self.schema is None else self.schema.type_of(attribute)

    def knows(self, attribute: str) -> bool:
        """Whether some type of event has the attribute."""
        types = (event_type for variable in self.variables.values() for event_type in variable.types)
        return self.schema is None or self.schema.knows(attribute, types)

    def may_be_missing(self, attribute: ir.Attribute) -> bool:
        """Whether some event that the variable can bind is of a type without the attribute."""
        if self.schema is None or self.schema.by_type is None:
            return False
        assert attribute.variable is not None
        types = self.variables[attribute.variable].types
        return not all(self.schema.has(event_type, attribute.name) for event_type in types)


def make_scope(components: tuple[Pattern, ...], source: SourceText, schema: EventSchema | None) -> Scope:
    variables: dict[str, ScopedVariable] = {}
    scope = Scope(source, schema, variables, None)
    for number, element in enumerate(components, 1):
        variable = variable_of(element)
        name = variable.name or f"#{number}"
        if variable.name is not None and re.search(r"[#\[\]]", variable.name):
            raise scope.fail(
                f"a variable cannot be called '{printable(name)}'",
                variable.name_span,
                "A name may hold anything but '#', '[' and ']'.",
            )
        if name in variables:
            raise scope.fail(
                f"two variables are called '{printable(name)}'",
                variable.name_span,
                "Give each variable a name of its own.",
            )
        _check_types(variable.types, variable.type_spans, scope)
        variables[name] = ScopedVariable(
            name, variable.types, isinstance(element, Repeat), isinstance(element, Negation)
        )
    return replace(scope, only_variable=next(iter(variables)) if len(components) == 1 else None)


def _check_types(types: tuple[str, ...], spans: tuple[Span, ...], scope: Scope) -> None:
    known = scope.schema.event_types if scope.schema else None
    if known is None:
        return
    for event_type, span in zip(types, spans, strict=True):
        if event_type not in known:
            raise scope.fail(
                f"unknown event type '{printable(event_type)}'",
                span,
                f"Event types of the input: {listed(known)}.{did_you_mean(event_type, known)}",
            )


def resolve(expression: ir.Expr, scope: Scope, clause: Clause) -> ir.Expr:
    """The expression with every reference checked: what it names exists and may stand where it stands."""
    match expression:
        case ir.Attribute():
            return _resolve_attribute(expression, scope, clause)
        case ir.Events():
            assert expression.variable is not None, "* stands in count alone"
            known_variable(expression.variable, expression.variable_span, scope)
            raise scope.fail(
                "an event is not a value",
                expression.span,
                f"Name an attribute: {expression.variable}[1].price; or count them: count({expression.variable}[])",
            )
        case ir.Aggregate():
            return _resolve_aggregate(expression, scope, clause)
    return ir.with_children(expression, lambda child: resolve(child, scope, clause))


def known_variable(name: str, span: Span, scope: Scope) -> ScopedVariable:
    if name not in scope.variables:
        names = [variable for variable in scope.variables if not variable.startswith("#")]
        raise scope.fail(
            f"unknown variable '{printable(name)}'",
            span,
            f"Variables of the pattern: {listed(names)}.{did_you_mean(name, names)}",
        )
    return scope.variables[name]


def _resolve_attribute(attribute: ir.Attribute, scope: Scope, clause: Clause) -> ir.Expr:
    if attribute.variable is None:
        attribute = replace(attribute, variable=bare_owner(attribute, scope))
    assert attribute.variable is not None
    variable = known_variable(attribute.variable, attribute.variable_span, scope)
    if attribute.name == "LEN" and attribute.position is Position.EACH and variable.is_kleene:
        return ir.Length(variable.name, span=attribute.span)
    _check_position(attribute, variable, scope, clause)
    if variable.is_negative and clause is not Clause.WHERE:
        raise scope.fail(
            f"'{printable(variable.name)}' is a negative component: a match has no such event",
            attribute.variable_span,
            f"{clause.value} can use the positive variables only.",
        )
    check_exists(attribute, variable, scope)
    return attribute


def bare_owner(attribute: ir.Attribute, scope: Scope) -> str:
    is_attribute = scope.schema is None or attribute.name in scope.schema
    if scope.only_variable is not None and (is_attribute or attribute.name != scope.only_variable):
        return scope.only_variable
    if attribute.name in scope.variables:
        raise scope.fail(
            f"'{printable(attribute.name)}' is a variable, not a value",
            attribute.span,
            f"Name an attribute of it: {attribute.name}.price",
        )
    names = [name for name in scope.variables if not name.startswith("#")]
    if attribute.name.lower() in {strategy.value for strategy in Strategy}:
        raise scope.fail(
            f"the strategy {attribute.name} needs its variables, and its predicates in braces",
            attribute.span,
            f"Write: WHERE {attribute.name}({', '.join(names)}) {{ predicates }}",
        )
    raise scope.fail(
        f"'{printable(attribute.name)}' does not say which event it belongs to",
        attribute.span,
        f"A bare attribute is allowed in a pattern of one component. Write variable.{printable(attribute.name)}; "
        f"variables of the pattern: {listed(names)}.",
    )


def _check_position(attribute: ir.Attribute, variable: ScopedVariable, scope: Scope, clause: Clause) -> None:
    name, position = printable(variable.name), attribute.position
    written = f"{name}{position.value}".replace("LEN", f"{name}.LEN")
    if not variable.is_kleene:
        if attribute.name == "LEN" and scope.schema is not None and "LEN" not in scope.schema:
            raise scope.fail(
                f"'{name}' is one event and has no LEN",
                attribute.span,
                f"Only a Kleene variable, declared as Type+ {name}[], has a length.",
            )
        if position is not Position.EACH:
            raise scope.fail(
                f"'{name}' is one event and has no index",
                attribute.span,
                f"Write {name}.{printable(attribute.name)}. Only a Kleene variable, Type+ {name}[], has an index.",
            )
        return
    if position in (Position.ALL, Position.SO_FAR):
        raise scope.fail(
            f"'{written}.{printable(attribute.name)}' is many values",
            attribute.span,
            f"Put it inside an aggregate: {'collect' if position is Position.ALL else 'avg'}"
            f"({written}.{printable(attribute.name)})",
        )
    if clause is Clause.WHERE:
        return
    if position in (Position.CURRENT, Position.PREVIOUS):
        raise scope.fail(
            f"the index of '{written}' has a meaning in WHERE only",
            attribute.span,
            f"In {clause.value} use {name}[1], {name}[{name}.LEN] or an aggregate over {name}[].",
        )
    if position is Position.EACH:
        attribute_name = printable(attribute.name)
        raise scope.fail(
            f"'{name}.{attribute_name}' is many values: '{name}' is a Kleene variable",
            attribute.span,
            f"Write {name}[1].{attribute_name}, {name}[{name}.LEN].{attribute_name}, an aggregate such as "
            f"avg({name}[].{attribute_name}), or collect({name}[].{attribute_name}).",
        )


def check_exists(attribute: ir.Attribute, variable: ScopedVariable, scope: Scope) -> None:
    schema = scope.schema
    if schema is None or scope.knows(attribute.name):
        return
    types = listed(variable.types)
    exists = schema.attributes_of(variable.types) or tuple(schema)
    plural = "event types {} have" if len(variable.types) > 1 else "event type {} has"
    raise scope.fail(
        f"{plural.format(types)} no attribute '{printable(attribute.name)}'",
        attribute.name_span,
        f"Attributes of {types}: {listed(exists)}.{did_you_mean(attribute.name, exists)}",
    )


def _resolve_aggregate(aggregate: ir.Aggregate, scope: Scope, clause: Clause) -> ir.Expr:
    if isinstance(aggregate.argument, ir.Events) and aggregate.argument.variable is None:
        raise scope.fail(
            f"count(*) counts matches, but {clause.value} is about one match",
            aggregate.span,
            "Count the events of a Kleene variable, count(a[]); or the matches: query.aggregate(events, "
            "{'n': 'count(*)'})",
        )
    references = _references_inside(aggregate, scope)
    names = {reference.variable for reference in references}
    positions = {reference.position for reference in references}
    function = aggregate.function
    for reference in references:
        assert reference.variable is not None
        variable = known_variable(reference.variable, reference.variable_span, scope)
        if not variable.is_kleene:
            raise scope.fail(
                f"{function} is over the events of a Kleene variable, but '{printable(variable.name)}' is one event",
                reference.span,
                f"Use the value itself, or declare the variable as Type+ {printable(variable.name)}[].",
            )
        if reference.position not in (Position.ALL, Position.SO_FAR):
            raise scope.fail(
                f"{function} needs all events of '{printable(variable.name)}' or those selected so far",
                reference.span,
                f"Write {function}({variable.name}[].x) or, in a predicate on {variable.name}[i], "
                f"{function}({variable.name}[..i-1].x).",
            )
        if isinstance(reference, ir.Attribute):
            check_exists(reference, variable, scope)
    if len(names) > 1 or len(positions) > 1:
        raise scope.fail(f"{function} is over the events of one variable", aggregate.span)
    if not references:
        raise scope.fail(
            f"{function} needs the attribute of a Kleene variable", aggregate.span, f"Write: {function}(a[].price)"
        )
    if positions == {Position.SO_FAR} and clause is not Clause.WHERE:
        raise scope.fail(
            f"{function} over the events selected so far has a meaning in WHERE only",
            aggregate.span,
            f"In {clause.value} aggregate all of them: {function}({references[0].variable}[].x)",
        )
    return aggregate


def _references_inside(aggregate: ir.Aggregate, scope: Scope) -> list[ir.Attribute | ir.Events]:
    found: list[ir.Attribute | ir.Events] = []
    for node in ir.walk(aggregate.argument):
        match node:
            case ir.Aggregate():
                raise scope.fail("an aggregate cannot contain another", node.span)
            case ir.Attribute(variable=None):
                raise scope.fail(
                    f"{aggregate.function} is over the events of a Kleene variable, but "
                    f"'{printable(node.name)}' is one value",
                    node.span,
                    f"Write: {aggregate.function}(a[].{printable(node.name)})",
                )
            case ir.Events() if aggregate.function != "count" or node is not aggregate.argument:
                raise scope.fail(
                    "events themselves can only be counted",
                    node.span,
                    f"Name an attribute: {aggregate.function}({node.variable}[].x)",
                )
            case ir.Attribute() | ir.Events():
                found.append(node)
    return found

"""RETURN of whole events: `*`, `a.*` and `a`, written out as the attributes that the input has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kleene.analysis.scope import Scope, ScopedVariable, known_variable
from kleene.errors import printable
from kleene.ir import expr as ir
from kleene.ir.query import Measure
from kleene.schema import STRING, UNKNOWN


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the output; `prefix` stands in front of its name where another has the same."""

    measure: Measure
    prefix: str | None = None


def with_whole_events(measures: tuple[Measure, ...], scope: Scope) -> tuple[Measure, ...]:
    """The measures, with a column for each attribute in the place of a star, and a struct in the place of a variable.

    Columns are called as attributes are; where two would have one name, the variable stands in front: a_price, b_price.
    """
    columns = [column for measure in measures for column in _columns(measure, scope)]
    names = Counter(column.measure.name for column in columns)
    return tuple(
        replace(column.measure, name=f"{column.prefix}_{column.measure.name}")
        if column.prefix is not None and names[column.measure.name] > 1
        else column.measure
        for column in columns
    )


def _columns(measure: Measure, scope: Scope) -> Iterator[_Column]:
    match measure.expression:
        case ir.Events(variable=None, position=ir.Position.EACH):
            for variable in scope.variables.values():
                if not variable.is_negative:
                    yield from _attributes(measure, variable, scope)
        case ir.Events(variable=str() as name, position=ir.Position.EACH) as events:
            yield from _attributes(measure, _returned(name, events, scope), scope)
        case ir.Attribute(variable=None, name=name) as bare if name in scope.variables and not _is_column(name, scope):
            variable = _returned(name, ir.Events(name, ir.Position.EACH, bare.name_span, span=bare.span), scope)
            yield _Column(replace(measure, expression=_struct(measure, variable, scope)))
        case _:
            yield _Column(measure)


def _is_column(name: str, scope: Scope) -> bool:
    """Whether the name is an attribute, which stands without a variable in a pattern of one component."""
    return scope.only_variable is not None and scope.schema is not None and name in scope.schema


def _returned(name: str, events: ir.Events, scope: Scope) -> ScopedVariable:
    variable = known_variable(name, events.variable_span, scope)
    if variable.is_negative:
        raise scope.fail(
            f"'{printable(name)}' is a negative component: a match has no such event",
            events.span,
            "RETURN can use the positive variables only.",
        )
    return variable


def _attributes(measure: Measure, variable: ScopedVariable, scope: Scope) -> Iterator[_Column]:
    if scope.schema is None:  # nobody knows them yet
        unknown = ir.Literal(None, UNKNOWN, span=measure.span)
        yield _Column(replace(measure, name=f"{variable.name}.*", expression=unknown))
        return
    prefix = variable.types[0] if variable.name.startswith("#") else variable.name
    for name in scope.schema.attributes_of(variable.types):
        value: ir.Expr = _attribute(measure, variable, name)
        if variable.is_kleene:
            value = ir.Aggregate("collect", value, span=measure.span)
        yield _Column(Measure(name, value, measure.span), prefix)


def _struct(measure: Measure, variable: ScopedVariable, scope: Scope) -> ir.Expr:
    """The event as a struct; of a Kleene variable, the list of its events."""
    if scope.schema is None:
        return ir.Literal(None, UNKNOWN, span=measure.span)
    arguments: list[ir.Expr] = []
    for name in scope.schema.attributes_of(variable.types):
        arguments += [ir.Literal(name, STRING, span=measure.span), _attribute(measure, variable, name)]
    event = ir.Function("named_struct", tuple(arguments), measure.span, span=measure.span)
    return ir.Aggregate("collect", event, span=measure.span) if variable.is_kleene else event


def _attribute(measure: Measure, variable: ScopedVariable, name: str) -> ir.Attribute:
    position = ir.Position.ALL if variable.is_kleene else ir.Position.EACH
    return ir.Attribute(variable.name, name, position, measure.span, measure.span, span=measure.span)

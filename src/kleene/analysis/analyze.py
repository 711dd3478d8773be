"""A query as said, and the input it is asked of, to an `AnalyzedQuery`, or to an error that points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from kleene.analysis.analyzed import MATCH_END, MATCH_START, AnalyzedQuery, Component, Conjunct, NegativeComponent
from kleene.analysis.own_calls import check_vectorized, output, refuse_vectorized
from kleene.analysis.predicates import Moment, Placed, conjuncts, inverted_inward, place
from kleene.analysis.scope import Clause, Scope, ScopedVariable, make_scope, resolve
from kleene.analysis.steps import analyze_steps
from kleene.analysis.totals import analyzed_totals, check_grouping
from kleene.analysis.value_types import condition, typed
from kleene.analysis.whole_events import with_whole_events
from kleene.errors import SchemaError, did_you_mean, listed, printable
from kleene.ir import expr as ir
from kleene.ir.options import Strategy, WindowUnit
from kleene.ir.paths import path_of
from kleene.ir.pattern import Negation, variable_of
from kleene.ir.query import EquivalenceTest, Measure, QueryDefinition
from kleene.ir.steps import is_steps
from kleene.schema import (
    DATE,
    STRING,
    UNKNOWN,
    EventSchema,
    TimestampType,
    Type,
    a_type,
    advice_on,
    fits_everywhere,
    is_numeric,
    is_plain,
)
from kleene.wording import said


def analyze(
    definition: QueryDefinition, schema: EventSchema | None = None, order_by: tuple[str, ...] = ()
) -> AnalyzedQuery:
    """What the query means for events of the schema in the order of `order_by`.

    Without a schema, or without an order key, everything is checked that does not depend on it.
    """
    time_type = _time_type(schema, order_by)
    if is_steps(definition):
        return analyze_steps(definition, schema, order_by, time_type)
    scope = make_scope(definition.components, definition.source, schema)
    _check_streams(definition, scope)
    _check_pattern(definition, scope)
    key, extra = _equivalence(definition, scope)
    _check_strategy(definition, key, scope)
    _check_window(definition, time_type, scope)
    resolved = [condition(resolve(predicate, scope, Clause.WHERE), scope) for predicate in definition.predicates]
    positive = [name for name, variable in scope.variables.items() if not variable.is_negative]
    order = {name: number for number, name in enumerate(positive)}
    placed: dict[str, list[Placed]] = defaultdict(list)
    for conjunct in conjuncts([*resolved, *extra], order, scope):
        check_vectorized(conjunct, scope, (ir.Aggregate, ir.Length))
        item = place(conjunct, order, scope)
        placed[item.variable].append(item)
    having = definition.having
    if having is not None:
        having = condition(resolve(having, scope, Clause.HAVING), scope)
        having = inverted_inward(refuse_vectorized(having, scope), scope)
    query = AnalyzedQuery(
        definition,
        schema,
        order_by,
        time_type,
        tuple(_component(scope.variables[name], placed[name]) for name in positive),
        _negations(placed, scope),
        key,
        having,
        _measures(definition, scope),
        tuple(_warnings(definition, scope)),
    )
    _check_output_names(query, scope)
    if definition.grouping is not None:
        check_grouping(definition.grouping, key, query.measures or (), MATCH_END, time_type)
    return query


def _time_type(schema: EventSchema | None, order_by: tuple[str, ...]) -> Type:
    if schema is None or not order_by:
        return UNKNOWN
    time_type = schema.type_of(order_by[0])
    if fits_everywhere(time_type):  # a column without a value, as a file has that holds nothing but names
        return UNKNOWN
    if not (isinstance(time_type, TimestampType) or time_type == DATE or is_numeric(time_type)):
        known = "The first order column is a timestamp, a date or a number; further columns may be of any type."
        found, hint = a_type(time_type), known
        if time_type == STRING and path_of(order_by[0]) is None:
            column = printable(order_by[0])
            convert = f"Convert it first: df['{column}'] = pandas.to_datetime(df['{column}'])."
            hint = f"{said(python=convert, shell=f'Add --cast {column}=timestamp.')} {known}"
        if not is_plain(time_type):
            found, hint = f"of type {time_type.name}", f"{advice_on(time_type)} {known}"
        raise SchemaError(f"the order key '{printable(order_by[0])}' is {found}, which is not a time", hint=hint)
    return time_type


def _check_streams(definition: QueryDefinition, scope: Scope) -> None:
    named = definition.from_streams
    for number, (name, span) in enumerate(zip(named, definition.from_spans, strict=True)):
        if name == definition.into_stream:
            raise scope.fail(
                f"the query reads the stream '{printable(name)}', which it makes itself: a cycle",
                span,
                "Give the stream after INTO another name.",
            )
        if name in named[:number]:
            raise scope.fail(f"FROM names the stream '{printable(name)}' twice", span, "Name each stream once.")


def _check_pattern(definition: QueryDefinition, scope: Scope) -> None:
    elements, schema = definition.components, scope.schema
    if all(isinstance(element, Negation) for element in elements):
        raise scope.fail(
            "the pattern has only negative components, so there is nothing to report",
            definition.pattern.span,
            "Add a positive component, an event that makes the absence interesting: SEQ(Shelf a, !(Register b))",
        )
    types = sorted({event_type for element in elements for event_type in variable_of(element).types})
    if schema is not None and schema.type_column is None and len(types) > 1:
        way_out = said(
            python="Name such a column with type_column=…, or give a dict of inputs by event type.",
            shell="Name such a column with --type-column, or give each type its own --input TYPE=PATH.",
        )
        raise SchemaError(
            f"the pattern names several event types ({listed(types)}), but no column of the input tells them apart",
            hint=f"{way_out} Columns: {listed(schema)}.",
        )
    if isinstance(elements[0], Negation):
        _need_time_window(definition, elements[0], "first", scope)
    if isinstance(elements[-1], Negation):
        _need_time_window(definition, elements[-1], "last", scope)


def _need_time_window(definition: QueryDefinition, element: Negation, where: str, scope: Scope) -> None:
    if definition.window_parameter is not None:
        return
    if definition.window is None:
        raise scope.fail(
            f"a negation in {where} place needs a window: it says how far the absence reaches",
            element.span,
            "Add WITHIN, for example: WITHIN 12 hours",
        )
    if definition.window.unit is WindowUnit.EVENTS:
        raise scope.fail(
            f"a negation in {where} place needs a window in time, not in events",
            definition.window.span,
            "Write WITHIN 12 hours, or WITHIN 100 for an order key that is a number.",
        )


def _equivalence(definition: QueryDefinition, scope: Scope) -> tuple[tuple[str, ...], list[ir.Expr]]:
    """The attributes that form the partition, and what the tests demand besides, as predicates."""
    key: dict[str, None] = {}
    extra: list[ir.Expr] = []
    strict = definition.strategy is Strategy.STRICT_CONTIGUITY
    for test in definition.equivalence_tests:
        _check_test(test, scope)
        shared = all(_all_types_have(variable.types, test.attribute, scope) for variable in scope.variables.values())
        if shared:
            key[test.attribute] = None
        if strict or not shared:
            extra += _agreement_with_first(test, scope) if shared else _agreement(test, scope)
        if test.constant is not None:
            extra += [_equals(_each(name, test), test.constant, test, scope) for name in scope.variables]
    return tuple(key), extra


def _check_test(test: EquivalenceTest, scope: Scope) -> None:
    schema = scope.schema
    if schema is None:
        return
    if not scope.knows(test.attribute):
        exists = list(filter(scope.knows, schema))
        raise scope.fail(
            f"no event type has the attribute '{printable(test.attribute)}'",
            test.span,
            f"Attributes: {listed(exists)}.{did_you_mean(test.attribute, exists)}",
        )
    found = schema.type_of(test.attribute)
    if not is_plain(found):
        location = scope.source.locate(test.span)
        raise SchemaError(f"cannot compare values of type {found.name}", location, advice_on(found))


def _all_types_have(types: tuple[str, ...], attribute: str, scope: Scope) -> bool:
    return scope.schema is None or all(scope.schema.has(event_type, attribute) for event_type in types)


def _each(name: str, test: EquivalenceTest) -> ir.Attribute:
    return ir.Attribute(name, test.attribute, span=test.span, name_span=test.span)


def _agreement_with_first(test: EquivalenceTest, scope: Scope) -> list[ir.Expr]:
    """All events agree with the first one on the attribute, which all of them have; a NULL agrees with nothing."""
    first, *others = (name for name, variable in scope.variables.items() if not variable.is_negative)
    others += [name for name, variable in scope.variables.items() if variable.is_negative]
    found = [_equals(_each(first, test), _each(first, test), test, scope)]
    start = _each(first, test)
    if scope.variables[first].is_kleene:
        start = replace(start, position=ir.Position.FIRST)
        found.append(_equals(_each(first, test), start, test, scope))
    return found + [_equals(start, _each(name, test), test, scope) for name in others]


def _agreement(test: EquivalenceTest, scope: Scope) -> list[ir.Expr]:
    """All events agree on the attribute, pair by pair, since any of them may be of a type that lacks it.

    Each event is also compared with itself: a NULL agrees with nothing, even alone.
    """
    names = list(scope.variables)
    found: list[ir.Expr] = []
    for number, name in enumerate(names):
        this = _each(name, test)
        found.append(_equals(this, this, test, scope))
        if scope.variables[name].is_kleene:
            first = replace(this, position=ir.Position.FIRST)
            found.append(_equals(this, first, test, scope))
            previous, current = (replace(this, position=p) for p in (ir.Position.PREVIOUS, ir.Position.CURRENT))
            found.append(_equals(current, previous, test, scope))
        for earlier in names[:number]:
            if not (scope.variables[name].is_negative and scope.variables[earlier].is_negative):
                found.append(_equals(_each(earlier, test), this, test, scope))
    return found


def _equals(left: ir.Expr, right: ir.Expr, test: EquivalenceTest, scope: Scope) -> ir.Expr:
    return typed(ir.Comparison("=", left, right, span=test.span), scope)


def _check_strategy(definition: QueryDefinition, key: tuple[str, ...], scope: Scope) -> None:
    if definition.strategy is not Strategy.PARTITION_CONTIGUITY or key:
        return
    hint = "Add an equivalence test, for example [id], or use strict_contiguity."
    if definition.equivalence_tests:
        hint = (
            "An event type of the pattern lacks the attribute of the equivalence test, so the test forms no partition."
        )
    raise scope.fail(
        "partition_contiguity needs an equivalence test that forms a partition", definition.strategy_span, hint
    )


def _check_window(definition: QueryDefinition, time_type: Type, scope: Scope) -> None:
    window = definition.window
    if window is None or time_type == UNKNOWN or window.unit is WindowUnit.EVENTS:
        return
    if window.unit is WindowUnit.ORDER_KEY and not is_numeric(time_type):
        raise scope.fail(
            f"the window {window.size} has no unit, but the order key is {a_type(time_type)}",
            window.span,
            f"Write WITHIN {window.size} seconds (or minutes, hours, days), or WITHIN {window.size} events.",
        )
    if window.unit is WindowUnit.TIME and is_numeric(time_type):
        raise scope.fail(
            f"the window is a duration, but the order key is {a_type(time_type)}",
            window.span,
            "Write the number alone, in the units of the order key: WITHIN 100; or WITHIN 100 events.",
        )


def _component(variable: ScopedVariable, placed: list[Placed]) -> Component:
    def at(moment: Moment) -> tuple[Conjunct, ...]:
        return tuple(item.conjunct for item in placed if moment in item.moments)

    return Component(
        variable.name,
        not variable.name.startswith("#"),
        variable.types,
        variable.is_kleene,
        at(Moment.BEGIN),
        at(Moment.TAKE),
        at(Moment.COMPLETE),
    )


def _negations(placed: dict[str, list[Placed]], scope: Scope) -> tuple[NegativeComponent, ...]:
    found: list[NegativeComponent] = []
    gap = 0
    for variable in scope.variables.values():
        if variable.is_negative:
            predicates = tuple(item.conjunct for item in placed[variable.name])
            found.append(NegativeComponent(variable.name, variable.types, gap, predicates))
        else:
            gap += 1
    return tuple(found)


def _measures(definition: QueryDefinition, scope: Scope) -> tuple[Measure, ...] | None:
    if definition.measures is None:
        return None
    if definition.grouping is not None:
        return analyzed_totals(definition.measures, scope)
    names: set[str] = set()
    measures = with_whole_events(definition.measures, scope)
    for measure in measures:
        if measure.name in names:
            raise scope.fail(f"two values are called '{printable(measure.name)}'", measure.span, "Rename one with AS.")
        names.add(measure.name)
    return tuple(
        replace(measure, expression=output(resolve(measure.expression, scope, Clause.RETURN), scope))
        for measure in measures
    )


def _check_output_names(query: AnalyzedQuery, scope: Scope) -> None:
    if query.measures is not None:
        return
    for test in query.definition.equivalence_tests:
        if test.attribute in (MATCH_START, MATCH_END) and test.attribute in query.key:
            raise scope.fail(
                f"the output would have two columns '{test.attribute}': the partition key and a column of the match",
                test.span,
                "Rename the column of the input, or choose the columns with RETURN.",
            )
    taken = {**dict.fromkeys(query.key, "the partition key"), MATCH_START: "the match", MATCH_END: "the match"}
    for element in query.definition.components:
        variable = variable_of(element)
        if variable.name in taken and not isinstance(element, Negation):
            raise scope.fail(
                f"the output would have two columns '{printable(variable.name or '')}': "
                f"the variable and a column of {taken[variable.name]}",
                variable.name_span,
                "Rename the variable, or choose the columns with RETURN.",
            )


def _warnings(definition: QueryDefinition, scope: Scope) -> Iterable[str]:
    """What is legal and probably a slip: an attribute that none of the variable's own types has."""
    if scope.schema is None or scope.schema.by_type is None:
        return
    expressions = [*definition.predicates, *filter(None, [definition.having])]
    for expression in expressions:
        for node in ir.walk(expression):
            if isinstance(node, ir.Attribute) and node.variable in scope.variables and node.name in scope.schema:
                types = scope.variables[node.variable].types
                if not any(scope.schema.may_have(event_type, node.name) for event_type in types):
                    yield (
                        f"{node.variable}.{node.name}: events of type {listed(types)} have no such attribute, "
                        "so the comparison always holds"
                    )

"""What of the input a query needs: which columns, for its conditions or for its output, and which events.

The others need not travel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kleene.analysis.analyzed import AnalyzedQuery, Conjunct
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.analysis.steps import AnalyzedSteps
from kleene.ir import expr as ir
from kleene.ir.evaluate import of_one_event
from kleene.ir.expr import Position
from kleene.ir.may_fail import may_fail
from kleene.ir.options import RowsPerMatch, Selection, Strategy, WindowUnit
from kleene.remembered import remembered
from kleene.schema import BOOLEAN, STRING, EventSchema


def columns_read(query: AnalyzedQuery | AnalyzedRowPattern, names: Sequence[str], order: Iterable[str]) -> list[str]:
    """Those of the names that the query reads, in their order; `order` are the columns that events are ordered by."""
    read = _own_columns(query, tuple(names)).union(order)
    return [name for name in names if name in read]


@remembered
def _own_columns(query: AnalyzedQuery | AnalyzedRowPattern, names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_of_rows(query, names) if isinstance(query, AnalyzedRowPattern) else _of_events(query))


def codable_columns(query: AnalyzedQuery | AnalyzedRowPattern) -> frozenset[str]:
    """The columns of types and keys, which may come to engines as codes of words; the order is not one of codes."""
    if isinstance(query, AnalyzedRowPattern):
        return frozenset(query.partition_by).difference(column.name for column in query.order_by)
    types = type_column_of(query.schema)
    return frozenset((*query.key, *(() if types is None else (types,)))).difference(query.order_by)


def type_column_of(schema: EventSchema | None) -> str | None:
    """The column that tells the type of an event, if there is one."""
    return None if schema is None else schema.type_column


def _of_events(query: AnalyzedQuery) -> Iterator[str]:
    schema = query.schema
    assert schema is not None
    if schema.type_column is not None:
        yield schema.type_column
    if schema.kind_column is not None:
        yield schema.kind_column
    yield from query.key
    yield from (test.attribute for test in query.definition.equivalence_tests)
    for component in query.components:
        for conjunct in (*component.begin, *component.take, *component.complete):
            yield from _attributes(conjunct.expression)
    for negation in query.negations:
        for conjunct in negation.predicates:
            yield from _attributes(conjunct.expression)
    if query.having is not None:
        yield from _attributes(query.having)
    for measure in query.measures or ():
        yield from _attributes(measure.expression)
    if isinstance(query, AnalyzedSteps):
        for _, until in query.untils:
            yield from _attributes(until)
        if query.calls_python:
            yield from schema
    if query.measures is None:  # whole events are given out
        for component in query.components:
            if component.named:
                yield from schema.attributes_of(component.types) if component.types else schema


def _of_rows(query: AnalyzedRowPattern, names: Sequence[str]) -> Iterator[str]:
    is_regex = query.definition.selection is Selection.FIRST_COMPLETED
    if query.rows_per_match is not RowsPerMatch.ONE and not is_regex:
        yield from names
    yield from query.partition_by
    yield from (column.name for column in query.order_by)
    for _, expression in (*query.computed, *query.conditions):
        yield from _attributes(expression)
    for measure in query.measures:
        yield from _attributes(measure.expression)


def _attributes(expression: ir.Expr) -> Iterator[str]:
    return (node.name for node in ir.walk(expression) if isinstance(node, ir.Attribute))


# --- which events: a condition on one event ---

SKIPPING = (Strategy.SKIP_TILL_NEXT_MATCH, Strategy.SKIP_TILL_ANY_MATCH)


def useful_event(query: AnalyzedQuery) -> ir.Expr | None:
    """What holds for every event that a component can select or a negation forbid; None if all must be there.

    Contiguity is about neighbours, and a window of events counts all of them.
    """
    is_counted = query.window is not None and query.window.unit is WindowUnit.EVENTS
    if query.strategy not in SKIPPING or is_counted:
        return None
    uses = list(_uses(query))
    if any(use is None for use in uses):
        return None
    distinct = list(dict.fromkeys(use for use in uses if use is not None))
    return distinct[0] if len(distinct) == 1 else ir.Or(tuple(distinct), type=BOOLEAN)


def _uses(query: AnalyzedQuery) -> Iterator[ir.Expr | None]:
    for component in query.components:
        first = (Position.EACH, Position.FIRST)
        yield _use(query, component.types, component.begin, component.name, first)
        if component.is_kleene:
            yield _use(query, component.types, component.take, component.name, (Position.EACH, Position.CURRENT))
    for negation in query.negations:
        yield _use(query, negation.types, negation.predicates, negation.name, (Position.EACH,))


def _use(
    query: AnalyzedQuery, types: tuple[str, ...], conjuncts: Iterable[Conjunct], own: str, positions: Iterable[Position]
) -> ir.Expr | None:
    parts = [] if (test := type_test(query, types)) is None else [test]
    wanted = {(own, position) for position in positions}
    for conjunct in conjuncts:
        if may_fail(conjunct.expression):
            break  # an event for which it is an error must be there to raise it
        if all(_reads_only(node, wanted) for node in ir.walk(conjunct.expression)):
            parts.append(of_one_event(conjunct.expression))
    if len(parts) < 2:
        return parts[0] if parts else None
    return ir.And(tuple(parts), type=BOOLEAN)


def type_test(query: AnalyzedQuery, types: tuple[str, ...]) -> ir.Expr | None:
    """That an event is of one of the types; None where the input knows no types."""
    name = type_column_of(query.schema)
    if name is None:
        return None
    choices = tuple(ir.Literal(text, STRING, type=STRING) for text in types)
    return ir.In(ir.Attribute(None, name, type=STRING), choices, type=BOOLEAN)


def _reads_only(node: ir.Expr, wanted: set[tuple[str, Position]]) -> bool:
    if isinstance(node, ir.Attribute):
        return (node.variable, node.position) in wanted
    return not isinstance(node, (ir.Events, ir.Length, ir.Aggregate))

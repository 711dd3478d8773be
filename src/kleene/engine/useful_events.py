"""Which events a SASE query can use at all, as a condition on one event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kleene.analysis.analyzed import AnalyzedQuery, Conjunct
from kleene.engine.compiled.columns import of_one_event
from kleene.engine.events import TYPE_OF_EVENT
from kleene.ir import expr as ir
from kleene.ir.expr import Position
from kleene.ir.may_fail import may_fail
from kleene.ir.options import Strategy, WindowUnit
from kleene.schema import BOOLEAN, STRING

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
    assert query.schema is not None
    name = TYPE_OF_EVENT if query.schema.by_type is not None else query.schema.type_column
    if name is None:
        return None
    choices = tuple(ir.Literal(text, STRING, type=STRING) for text in types)
    return ir.In(ir.Attribute(None, name, type=STRING), choices, type=BOOLEAN)


def _reads_only(node: ir.Expr, wanted: set[tuple[str, Position]]) -> bool:
    if isinstance(node, ir.Attribute):
        return (node.variable, node.position) in wanted
    return not isinstance(node, (ir.Events, ir.Length, ir.Aggregate))

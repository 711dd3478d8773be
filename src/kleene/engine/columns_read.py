"""Which columns of the input a query reads, for its conditions or for its output; the others need not travel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.events import TYPE_OF_EVENT
from kleene.ir import expr as ir
from kleene.ir.options import RowsPerMatch, Selection


def columns_read(query: AnalyzedQuery | AnalyzedRowPattern, names: Sequence[str], order: Iterable[str]) -> list[str]:
    """Those of the names that the query reads, in their order; `order` are the columns that events are ordered by."""
    own = _of_rows(query, names) if isinstance(query, AnalyzedRowPattern) else _of_events(query)
    read = {*own, *order}
    return [name for name in names if name in read]


def _of_events(query: AnalyzedQuery) -> Iterator[str]:
    schema = query.schema
    assert schema is not None
    yield TYPE_OF_EVENT
    if schema.type_column is not None:
        yield schema.type_column
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
    if query.measures is None:  # whole events are given out
        for component in query.components:
            if component.named:
                yield from schema.attributes_of(component.types)


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

"""Events that a negation forbids: those of its types that satisfy what it asks of one event alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kleene.analysis.analyzed import AnalyzedQuery, NegativeComponent
from kleene.engine.events import plain_values
from kleene.engine.row_reference import RowBindings, Visible
from kleene.errors import KleeneError
from kleene.ir import expr as ir
from kleene.ir.evaluate import evaluate, of_one_event
from kleene.plot.finding import Sight
from kleene.plot.seen import Array
from kleene.why.tally import is_of_one_event

MOST_ASKED = 20_000
"""Events that are asked in plain Python."""


@dataclass(frozen=True, slots=True, eq=False)
class Forbidden:
    """Places of events, and the negated variable of each."""

    places: Array
    variables: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.variables))


NONE = Forbidden(np.empty(0, np.int64), ())


def forbidden_of(sight: Sight, keys: Sequence[int]) -> list[Forbidden]:
    """For each key, the events that negations may forbid in it."""
    query = sight.query
    if not isinstance(query, AnalyzedQuery) or not query.negations:
        return [NONE for _ in keys]
    left = MOST_ASKED
    found = []
    for key in keys:
        places = np.flatnonzero(sight.seen.keys.of_event == key)[: max(left, 0)]
        left -= len(places) * len(query.negations)
        found.append(_of_places(sight, query, places))
    return found


def _of_places(sight: Sight, query: AnalyzedQuery, places: Array) -> Forbidden:
    found: list[int] = []
    names: list[str] = []
    for negation in query.negations:
        for place in _passing(sight, query, negation, places):
            found.append(place)
            names.append(negation.name)
    return Forbidden(np.array(found, np.int64), tuple(names))


def _passing(sight: Sight, query: AnalyzedQuery, negation: NegativeComponent, places: Array) -> list[int]:
    assert query.schema is not None
    table = sight.seen.table.take(places)
    column = query.schema.type_column
    if column is not None and negation.types:
        types = table.column(column).to_pylist()
        kept = [at for at, type_ in enumerate(types) if type_ in negation.types]
    else:
        kept = list(range(len(places)))
    conditions = [
        of_one_event(one.expression) for one in negation.predicates if is_of_one_event(negation.name, "forbid", one)
    ]
    names = {node.name for one in conditions for node in ir.walk(one) if isinstance(node, ir.Attribute)}
    columns = {name: plain_values(table.column(name), query.schema.type_of(name), name) for name in names}
    visible = Visible(0, table.num_rows)

    def holds(at: int) -> bool:
        bindings = RowBindings(columns, visible, {}, (), (), row=at)
        try:
            return all(evaluate(one, bindings) is True for one in conditions)
        except (KleeneError, LookupError, TypeError, AttributeError):  # what needs more than one event decides nothing
            return True

    return [int(places[at]) for at in kept if holds(at)]

"""Events that a negation forbids: those of its types that satisfy what it asks of one event alone.

And where they counted: runs that would have been matches, but for one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kleene.analysis.analyzed import AnalyzedQuery, NegativeComponent
from kleene.engine.events import plain_values
from kleene.engine.row_reference import RowBindings, Visible
from kleene.errors import KleeneError
from kleene.ir import expr as ir
from kleene.ir.evaluate import evaluate, of_one_event
from kleene.plot.seen import Array
from kleene.plot.sight import Sight
from kleene.why.answer import Why
from kleene.why.model import Kind
from kleene.why.question import ROW
from kleene.why.tally import is_of_one_event

MOST_ASKED = 20_000
"""Events that are asked in plain Python."""


@dataclass(frozen=True, slots=True, eq=False)
class Stopped:
    """A run that would have been a match: its events with their variables, and the event that forbids it."""

    places: tuple[int, ...]
    variable: tuple[int, ...]
    by: int


@dataclass(frozen=True, slots=True, eq=False)
class Forbidden:
    """Places of events, and the negated variable of each."""

    places: Array
    variables: tuple[str, ...]
    stopped: tuple[Stopped, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.variables))


NONE = Forbidden(np.empty(0, np.int64), ())


def forbidden_of(sight: Sight, keys: Sequence[int], why: Why | None) -> list[Forbidden]:
    """For each key, the events that negations may forbid in it, and the runs that they stopped."""
    query = sight.query
    if not isinstance(query, AnalyzedQuery) or not query.negations:
        return [NONE for _ in keys]
    left = MOST_ASKED
    stopped = _stopped(sight, why)
    found = []
    for key in keys:
        places = np.flatnonzero(sight.seen.keys.of_event == key)[: max(left, 0)]
        left -= len(places) * len(query.negations)
        own = tuple(one for one in stopped if sight.seen.keys.of_event[one.by] == key)
        found.append(replace(_of_places(sight, query, places), stopped=own))
    return found


def places_of_rows(sight: Sight) -> Array:
    """Of each row of the input, the place of its event."""
    rows = np.asarray(sight.seen.table.column(ROW))
    place_of = np.empty(len(rows), np.int64)
    place_of[rows] = np.arange(len(rows))
    return place_of


def _stopped(sight: Sight, why: Why | None) -> list[Stopped]:
    place_of = places_of_rows(sight)
    number = {name: at for at, name in enumerate(sight.seen.matches.variables)}
    found = []
    for miss in () if why is None else why.misses:
        if miss.kind is Kind.NEGATION and miss.by is not None and miss.would_match:
            bound = [(event.row, number.get(name, 0)) for name, events in miss.bound for event in events]
            places = tuple(int(place_of[row]) for row, _ in bound)
            found.append(Stopped(places, tuple(variable for _, variable in bound), int(place_of[miss.by.row])))
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

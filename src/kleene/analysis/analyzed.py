"""The analyzed query: what every engine and every plan works from.

Names are resolved, types are known, and every predicate stands where SEMANTICS puts it: on the event that begins a
component, on a later event of a Kleene variable, on the variable's completion, or on a negation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kleene.ir.expr import Expr
from kleene.ir.options import Strategy, Window
from kleene.ir.query import Measure, QueryDefinition
from kleene.schema import EventSchema, Type

MATCH_START, MATCH_END = "match_start", "match_end"


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A predicate that must hold.

    `indexed` lists the Kleene variables whose events it speaks of one at a time, each with the first index that
    counts: 0 for `a.price` (every event), 1 for `a[i].price` (every event after the first). It must hold for each
    choice of those events; when it stands on a variable's own begin or take, that variable's choice is the event
    being tried.
    """

    expression: Expr
    indexed: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Component:
    """A positive component: a variable that selects one event, or, where it is a Kleene plus, one or more."""

    name: str  # a variable that the user left without a name is called after its place, which no name can be: "#2"
    named: bool
    types: tuple[str, ...]
    is_kleene: bool
    begin: tuple[Conjunct, ...] = ()  # on its first or only event
    take: tuple[Conjunct, ...] = ()  # on each later event
    complete: tuple[Conjunct, ...] = ()  # on all of them, when the variable is left


@dataclass(frozen=True, slots=True)
class NegativeComponent:
    """No event of these types that satisfies the predicates in the gap before the positive component `gap`.

    Gap 0 is before the first component; the gap with the number of components is after the last.
    """

    name: str
    types: tuple[str, ...]
    gap: int
    predicates: tuple[Conjunct, ...] = ()


@dataclass(frozen=True, slots=True)
class AnalyzedQuery:
    """`key` are the attributes of the equivalence tests that all types have: the first columns of the output."""

    definition: QueryDefinition
    schema: EventSchema | None
    order_by: tuple[str, ...]
    time_type: Type
    components: tuple[Component, ...]
    negations: tuple[NegativeComponent, ...]
    key: tuple[str, ...]
    having: Expr | None
    measures: tuple[Measure, ...] | None
    warnings: tuple[str, ...] = field(default=())

    @property
    def strategy(self) -> Strategy:
        return self.definition.strategy

    @property
    def window(self) -> Window | None:
        return self.definition.window

    @property
    def partition_by(self) -> tuple[str, ...]:
        """What splits the input into partitions: nothing under strict contiguity, which sees one stream."""
        return () if self.strategy is Strategy.STRICT_CONTIGUITY else self.key

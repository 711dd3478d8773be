"""NFA^b: the automaton of SASE+ 2008 §3.1 as a value.

States stand in a line: one for a component that selects a single event, two for a Kleene plus (`a[1]` and `a[i]`),
and the final state F. An edge makes one of four moves under a formula: *begin* and *take* select the event, *ignore*
passes over it, *proceed* looks at it without consuming it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kleene.analysis.analyzed import Conjunct, NegativeComponent
from kleene.ir.options import Window

FINAL = "#F"
"""The final state; no variable can be called so. It is shown as F."""


class Move(Enum):
    BEGIN = "begin"
    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"


class FormulaClass(Enum):
    """What an engine needs in order to decide a predicate."""

    SINGLE_EVENT = "single-event"  # constants and attributes of the event itself
    RUN = "run"  # values that the run has kept
    COMPLETION = "completion"  # all events of a Kleene variable
    PARTITION = "partition"  # an equivalence test that forms the partition


@dataclass(frozen=True, slots=True)
class Predicate:
    conjunct: Conjunct
    formula_class: FormulaClass


@dataclass(frozen=True, slots=True)
class TypeIs:
    """The event is of one of the types."""

    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InWindow:
    """The event, called `event` here, is near enough to the first selected one."""

    event: str
    first: str
    window: Window


@dataclass(frozen=True, slots=True)
class FormulaOf:
    """The formula of another edge: θ of the move at the state."""

    state: str
    move: Move


@dataclass(frozen=True, slots=True)
class NotFormula:
    part: Formula


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Formula, ...] = ()


Formula = Predicate | TypeIs | InWindow | FormulaOf | NotFormula | AllOf | AnyOf
TRUE, FALSE = AllOf(), AnyOf()


def both(left: Formula, right: Formula) -> Formula:
    """The conjunction, flat and without what adds nothing."""
    if FALSE in (left, right):
        return FALSE
    parts = [part for side in (left, right) for part in (side.parts if isinstance(side, AllOf) else (side,))]
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


@dataclass(frozen=True, slots=True)
class Edge:
    source: str
    move: Move
    target: str
    formula: Formula = TRUE


@dataclass(frozen=True, slots=True)
class State:
    """`component` is the number of the positive component whose event the state waits for; None for F."""

    name: str
    component: int | None


@dataclass(frozen=True, slots=True)
class Automaton:
    """States from the start to F; edges in the order begin, take, ignore, proceed at each state."""

    states: tuple[State, ...]
    edges: tuple[Edge, ...]
    negations: tuple[NegativeComponent, ...] = ()

    def edges_at(self, state: str) -> tuple[Edge, ...]:
        return tuple(edge for edge in self.edges if edge.source == state)

    def edge(self, state: str, move: Move) -> Edge | None:
        return next((edge for edge in self.edges if edge.source == state and edge.move is move), None)

"""The automaton of a plan, as a value: one model for SASE+, steps, row patterns and the regular-expression operator.

States are numbered; the first is where runs start and the last is F, where they are matches. An edge makes one of the
four moves of NFA^b (SASE+ 2008 §3.1) under a formula: *begin* and *take* select the event, *ignore* passes over it,
*proceed* goes on without consuming it. The edges of a state are ordered: what SQL prefers comes first.

What differs between languages besides is small: the `Policy`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from kleene.analysis.analyzed import Conjunct, NegativeComponent
from kleene.ir import expr as ir
from kleene.ir.may_fail import may_fail
from kleene.ir.options import AfterMatch, Window


class Move(Enum):
    BEGIN = "begin"
    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"


class FormulaClass(Enum):
    """What an engine needs in order to decide a predicate."""

    SINGLE_EVENT = "single-event"  # constants and attributes of the event itself
    NEIGHBOUR = "neighbour"  # rows at a fixed distance, besides
    RUN = "run"  # values that the run has kept; or the predicate can be an error, which must not come too early
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
class Defined:
    """The row satisfies what DEFINE says of the variable; see `Automaton.definitions`."""

    variable: str


@dataclass(frozen=True, slots=True)
class SoonAfter:
    """The event is less than the window after the event that was selected last, if there is one."""

    window: Window


@dataclass(frozen=True, slots=True)
class AtStart:
    """The next row is the first of its partition."""


@dataclass(frozen=True, slots=True)
class AtEnd:
    """The last row of the partition was passed."""


@dataclass(frozen=True, slots=True)
class FormulaOf:
    """The formula of another edge: θ of the move at the state."""

    state: int
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


Formula = Predicate | TypeIs | InWindow | Defined | SoonAfter | AtStart | AtEnd | FormulaOf | NotFormula | AllOf | AnyOf
TRUE, FALSE = AllOf(), AnyOf()


def all_of(parts: Iterable[Formula]) -> Formula:
    """The conjunction, flat and without what adds nothing."""
    flat = tuple(part for formula in parts for part in parts_of(formula))
    if FALSE in flat:
        return FALSE
    return flat[0] if len(flat) == 1 else AllOf(flat)


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    return formula.parts if isinstance(formula, AllOf) else (formula,)


def predicates_of(formula: Formula) -> tuple[Predicate, ...]:
    """The predicates that must all hold, without those that form the partition."""
    found = (part for part in parts_of(formula) if isinstance(part, Predicate))
    return tuple(part for part in found if part.formula_class is not FormulaClass.PARTITION)


def classified(conjuncts: Iterable[Conjunct], class_of: Callable[[ir.Expr], FormulaClass]) -> tuple[Predicate, ...]:
    """Each conjunct with its class.

    A conjunct that can be an error is decided where it is needed, and those behind it not before it.
    """
    found: list[Predicate] = []
    is_behind_an_error = False
    for conjunct in conjuncts:
        is_behind_an_error = is_behind_an_error or may_fail(conjunct.expression)
        found.append(Predicate(conjunct, FormulaClass.RUN if is_behind_an_error else class_of(conjunct.expression)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Edge:
    move: Move
    target: int
    formula: Formula = TRUE


@dataclass(frozen=True, slots=True)
class State:
    """`variable` is the one whose event the state waits for (NFA^b), or whose row was matched last (row patterns).

    `component` is that variable's number in a SASE pattern. Rows of an excluded state are not given out.
    """

    name: str
    variable: str | None = None
    component: int | None = None
    is_excluded: bool = False


class Accepting(Enum):
    """What a run that reaches F does to the others."""

    EVERY_RUN = "each run that reaches F is a match of its own; the others go on"
    MOST_PREFERRED = "the first run to reach F, in the order of the edges, ends all others with its start"
    LONGEST = "of the runs that reach F at an event, the longest is the match; all others end"


@dataclass(frozen=True, slots=True)
class Policy:
    """`after` says where the next run may start after a match; without it, a run starts at every event."""

    accepting: Accepting = Accepting.EVERY_RUN
    after: AfterMatch | None = None


@dataclass(frozen=True, slots=True)
class Absence:
    """No event in the gap before the positive component `gap` may satisfy all of these predicates."""

    component: NegativeComponent
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Automaton:
    """`edges[s]` are those of state s, most preferred first; F has none.

    `notes` are lines that say what the edges do not.
    """

    states: tuple[State, ...]
    edges: tuple[tuple[Edge, ...], ...]
    policy: Policy = Policy()
    definitions: tuple[tuple[str, Formula], ...] = ()
    negations: tuple[Absence, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def final(self) -> int:
        return len(self.states) - 1

    def edge(self, state: int, move: Move) -> Edge | None:
        return next((edge for edge in self.edges[state] if edge.move is move), None)

"""The operators of a query plan, as values (SASE 2006 §3.1, and the runs of SASE+ beside them).

A plan is a pipeline, bottom first: events go into its first operator, matches come out of its last. An operator shows
what was pushed into it. `basic_pipeline` makes the plan in which nothing was pushed anywhere (the paper's Figure 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar, get_args

from kleene.analysis.analyzed import AnalyzedQuery, Component, Conjunct, NegativeComponent
from kleene.ir import expr as ir
from kleene.ir.options import Window
from kleene.options.hints import NO_HINTS, Hints
from kleene.options.statistics import UNKNOWN, Statistics


@dataclass(frozen=True, slots=True)
class Facts:
    """What rewrites go by besides the plan itself."""

    query: AnalyzedQuery
    hints: Hints = NO_HINTS
    statistics: Statistics = UNKNOWN


@dataclass(frozen=True, slots=True)
class Equivalence:
    """All events of a match agree on a value: `attributes[c]` of component c, `negative[n]` of negation n.

    A negation that is not tied has None. It is implied when the query said it by plain equalities.
    """

    attributes: tuple[str, ...]
    negative: tuple[str | None, ...] = ()
    is_implied: bool = False

    def __str__(self) -> str:
        names = dict.fromkeys([*self.attributes, *filter(None, self.negative)])
        return f"[{' = '.join(names)}]"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A conjunct with the numbers of the components that it speaks of, ascending."""

    conjunct: Conjunct
    components: tuple[int, ...]

    @property
    def is_simple(self) -> bool:
        return len(self.components) == 1


class Printed:
    """Prints as its kind and what it does, a line for each thing."""

    __slots__ = ()

    def __str__(self) -> str:
        from kleene.plan.text import details_of

        return "\n   ".join([type(self).__name__, *details_of(self)])


@dataclass(frozen=True, slots=True)
class SequenceScan(Printed):
    """SS→: reads the stream and keeps the events that a sequence may be made of, on stacks.

    `algorithm`: "basic", a runtime stack with a cell for every event; "ais", active instance stacks; "pais", such
    stacks for every value of an equivalence test. With several `tests` there are stacks for every value of each
    (Multi-PAIS), or, where they are combined, for every combination of their values that occurs.
    """

    components: tuple[Component, ...]
    algorithm: str = "basic"
    tests: tuple[Equivalence, ...] = ()
    is_combined: bool = False
    predicates: tuple[Predicate, ...] = ()
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class SequenceConstruction(Printed):
    """SC←: from an event that ends the pattern, walks the stacks backwards and makes every sequence it ends."""

    tests: tuple[Equivalence, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    window: Window | None = None
    negations: tuple[NegativeComponent, ...] = ()
    access: str = "index"  # how their events are found, as in NegationFilter


@dataclass(frozen=True, slots=True)
class RunScan(Printed):
    """NFA^b: carries runs through the events (SASE+ 2008); `algorithm` is basic, merge or backtrack."""

    components: tuple[Component, ...]
    algorithm: str
    tests: tuple[Equivalence, ...] = ()
    window: Window | None = None
    negations: tuple[NegativeComponent, ...] = ()


@dataclass(frozen=True, slots=True)
class RowScan(Printed):
    """The search for a row pattern, or the regular-expression operator, in words."""

    description: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Selection(Printed):
    """σ: sequences that satisfy the predicates."""

    tests: tuple[Equivalence, ...] = ()
    predicates: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowFilter(Printed):
    """WD: sequences whose first and last event lie within the window."""

    window: Window


@dataclass(frozen=True, slots=True)
class NegationFilter(Printed):
    """NG: sequences for which no event is found that a negative component forbids.

    `access`: "index" looks intervals up in a time-partitioned index (§3.3), "scan_all" goes through all such events.
    """

    negations: tuple[NegativeComponent, ...]
    access: str = "scan_all"


@dataclass(frozen=True, slots=True)
class Having(Printed):
    """σ on finished matches."""

    condition: ir.Expr


@dataclass(frozen=True, slots=True)
class Transformation(Printed):
    """TF: a row for each match, with these columns."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Nothing(Printed):
    """No match can exist, so that no event need be read."""

    reason: str


Operator = (
    Nothing
    | SequenceScan
    | RunScan
    | RowScan
    | SequenceConstruction
    | Selection
    | WindowFilter
    | NegationFilter
    | Having
    | Transformation
)
_ORDER = get_args(Operator)
"""In which they stand in a pipeline."""
Kind = TypeVar("Kind", bound=Operator)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Operators, bottom first; `notes` say what was decided, and why; `tests` are all that negations must respect."""

    operators: tuple[Operator, ...]
    tests: tuple[Equivalence, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def find(self, kind: type[Kind]) -> Kind | None:
        return next((operator for operator in self.operators if isinstance(operator, kind)), None)

    def get(self, kind: type[Kind]) -> Kind:
        found = self.find(kind)
        assert found is not None, f"the plan has no {kind.__name__}"
        return found

    def put(self, *operators: Operator) -> Pipeline:
        """The plan with these in place of those of the same kind; an operator that has nothing left to do is gone."""
        kinds = {type(operator) for operator in operators}
        kept = [operator for operator in self.operators if type(operator) not in kinds]
        added = [operator for operator in operators if not _is_idle(operator)]
        return replace(self, operators=tuple(sorted([*kept, *added], key=lambda item: _ORDER.index(type(item)))))

    def drop(self, kind: type[Operator]) -> Pipeline:
        return replace(self, operators=tuple(item for item in self.operators if not isinstance(item, kind)))

    def noting(self, *notes: str) -> Pipeline:
        return replace(self, notes=(*self.notes, *notes))

    @property
    def is_sequence(self) -> bool:
        return self.find(SequenceScan) is not None

    @property
    def is_empty(self) -> bool:
        return self.find(Nothing) is not None

    def __str__(self) -> str:
        from kleene.plan.text import pipeline_text

        return pipeline_text(self)


def _is_idle(operator: Operator) -> bool:
    match operator:
        case Selection(tests=tests, predicates=predicates):
            return not tests and not predicates
        case NegationFilter(negations=negations):
            return not negations
    return False


def basic_pipeline(query: AnalyzedQuery, columns: Iterable[str] = ()) -> Pipeline:
    """The plan of the paper's Figure 1: sequences by type alone, then all predicates, the window, and negations."""
    components = tuple(replace(component, begin=()) for component in query.components)
    tests = bracketed_tests(query)
    operators: list[Operator] = [SequenceScan(components), SequenceConstruction()]
    operators.append(Selection(tests, tuple(predicates_of(query))))
    if query.window is not None:
        operators.append(WindowFilter(query.window))
    operators.append(NegationFilter(query.negations))
    return _finished(operators, query, columns, tests)


def run_pipeline(query: AnalyzedQuery, algorithm: str, columns: Iterable[str] = ()) -> Pipeline:
    """The plan that carries runs through an automaton: predicates and the window are part of it."""
    tests = bracketed_tests(query)
    scan = RunScan(query.components, algorithm, tests if query.partition_by else (), query.window)
    return _finished([scan, NegationFilter(query.negations)], query, columns, tests)


def _finished(
    operators: list[Operator], query: AnalyzedQuery, columns: Iterable[str], tests: tuple[Equivalence, ...]
) -> Pipeline:
    if query.having is not None:
        operators.append(Having(query.having))
    return Pipeline((), tests).put(*operators, Transformation(tuple(columns)))


def bracketed_tests(query: AnalyzedQuery) -> tuple[Equivalence, ...]:
    count, negative = len(query.components), len(query.negations)
    return tuple(Equivalence((name,) * count, (name,) * negative) for name in query.key)


def predicates_of(query: AnalyzedQuery) -> list[Predicate]:
    """What the query says of first events, each with its components; one that speaks of none belongs to the first."""
    numbers = numbers_of(query)
    conjuncts = (item for component in query.components for item in component.begin)
    return [
        Predicate(item, tuple(sorted({numbers[name] for name in spoken_of([item]) if name in numbers})) or (0,))
        for item in conjuncts
    ]


def numbers_of(query: AnalyzedQuery) -> dict[str | None, int]:
    """The components by their names."""
    return {component.name: number for number, component in enumerate(query.components)}


def spoken_of(conjuncts: Iterable[Conjunct]) -> Iterator[str | None]:
    """The variables that conjuncts speak of; None where one has no name."""
    nodes = (node for item in conjuncts for node in ir.walk(item.expression))
    return (node.variable for node in nodes if isinstance(node, (ir.Attribute, ir.Events, ir.Length)))


def conjuncts_of(query: AnalyzedQuery) -> Iterator[Conjunct]:
    """What the query says of first events and of events that negations forbid."""
    for component in query.components:
        yield from component.begin
    for negation in query.negations:
        yield from negation.predicates


# --- what a plan of runs has left of its query, after rewrites: what is compiled, and what EXPLAIN shows ---


def running_query(query: AnalyzedQuery, pipeline: Pipeline) -> AnalyzedQuery:
    """The query with the predicates and negations that its plan has left."""
    runs, late = pipeline.get(RunScan), pipeline.find(NegationFilter)
    kept = {item.name: item for item in (*runs.negations, *(late.negations if late is not None else ()))}
    negations = tuple(kept[item.name] for item in query.negations if item.name in kept)
    having = pipeline.find(Having)
    return replace(
        query,
        components=runs.components,
        negations=negations,
        having=None if having is None else having.condition,
    )


def run_ending_negations(pipeline: Pipeline) -> frozenset[str]:
    """The names of the negations that end runs."""
    return frozenset(item.name for item in pipeline.get(RunScan).negations)


def negation_access(pipeline: Pipeline) -> str:
    late = pipeline.find(NegationFilter)
    return "index" if late is None else late.access

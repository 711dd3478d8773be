"""What is counted while runs are followed: events that passed, states reached, ends, and what stopped runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kleene.analysis.analyzed import AnalyzedQuery, Conjunct
from kleene.automaton.model import FormulaClass
from kleene.automaton.nfa import reads_alone
from kleene.ir.expr import Position
from kleene.why.counts import Counts
from kleene.why.model import Count, PredicateCount
from kleene.why.partition import Partition, Selected, Verdict

Place = tuple[str, str]
"""A variable, and the move that its predicates decide: begin, take, complete or forbid."""
_ROLES = {
    "begin": (Position.EACH, Position.FIRST),
    "take": (Position.EACH, Position.CURRENT),
    "forbid": (Position.EACH, Position.FIRST),
}


class Tally(Counts):
    """The counts of a SASE query: its predicates by the variable and the move that they decide."""

    def __init__(self, query: AnalyzedQuery) -> None:
        super().__init__((place, conjunct) for place, _, conjunct in places(query))
        self.query = query
        self._reached: Counter[str] = Counter()
        self._of_type: Counter[str] = Counter()

    def look_at(self, partition: Partition) -> None:
        """Counts types, and decides the predicates that need nothing but one event, for all events."""
        self.events += len(partition)
        for name, types in _variables(self.query):
            self._of_type[name] += sum(partition.is_of_type(event, types) for event in range(len(partition)))
        for (name, move), types, conjunct in places(self.query):
            if is_of_one_event(name, move, conjunct):
                index = {variable: first for variable, first in conjunct.indexed if variable == name}
                for event in range(len(partition)):
                    if partition.is_of_type(event, types):
                        selected = {name: (event,) * (1 + max(index.values(), default=0))}
                        verdict = partition.verdict(conjunct, selected, trying=name)
                        self.note(((name, move), conjunct), partition.rows[event], verdict.holds)

    def tried(self, place: Place, verdicts: Sequence[Verdict], row: int) -> None:
        for verdict in verdicts:
            self.note_try((place, verdict.conjunct), row, verdict.holds)

    def reached(self, run: Selected) -> None:
        self.runs += 1
        self._reached[state_name(self.query, run)] += 1

    def predicates(self) -> tuple[PredicateCount, ...]:
        found: list[PredicateCount] = []
        for name, types in _variables(self.query):
            is_negative = any(negation.name == name for negation in self.query.negations)
            move = "forbid" if is_negative else "begin"
            of_type = self._of_type[name]
            found.append(PredicateCount(name, move, None, types, self.events, of_type, self.events, of_type, 0))
            for place, _, conjunct in places(self.query):
                if place[0] == name:
                    found.append(self.count((place, conjunct), name, place[1], conjunct.expression, types))
        return tuple(found)

    def states(self) -> tuple[Count, ...]:
        return tuple(Count(name, self._reached[name]) for name in state_names(self.query))


def places(query: AnalyzedQuery) -> Iterable[tuple[Place, tuple[str, ...], Conjunct]]:
    """Every predicate where it is decided, with the types of the events it is asked of."""
    for component in query.components:
        groups = (("begin", component.begin), ("take", component.take), ("complete", component.complete))
        for move, conjuncts in groups:
            yield from (((component.name, move), component.types, conjunct) for conjunct in conjuncts)
    for negation in query.negations:
        yield from (((negation.name, "forbid"), negation.types, conjunct) for conjunct in negation.predicates)


def _variables(query: AnalyzedQuery) -> Iterable[tuple[str, tuple[str, ...]]]:
    """All variables in the order of the pattern."""
    for gap in range(len(query.components) + 1):
        yield from ((negation.name, negation.types) for negation in query.negations if negation.gap == gap)
        if gap < len(query.components):
            yield query.components[gap].name, query.components[gap].types


def is_of_one_event(name: str, move: str, conjunct: Conjunct) -> bool:
    roles = _ROLES.get(move)
    if roles is None or any(variable != name for variable, _ in conjunct.indexed):
        return False
    return reads_alone(name, *roles)(conjunct.expression) is FormulaClass.SINGLE_EVENT


def state_name(query: AnalyzedQuery, run: Selected) -> str:
    """What the run has bound last: a variable, or the first or a later event of a Kleene variable."""
    component = query.components[len(run) - 1]
    if not component.is_kleene:
        return component.name
    return f"{component.name}[{'1' if len(run[-1]) == 1 else 'i'}]"


def state_names(query: AnalyzedQuery) -> list[str]:
    names: list[str] = []
    for component in query.components:
        names += [f"{component.name}[1]", f"{component.name}[i]"] if component.is_kleene else [component.name]
    return names

"""What is counted while the runs of a pattern in steps are followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.model import FormulaClass
from kleene.automaton.steps import class_of
from kleene.engine.steps.conditions import Bound
from kleene.ir import expr as ir
from kleene.ir.steps import all_steps
from kleene.why.checking import parts_of
from kleene.why.counts import Counts
from kleene.why.model import Count, PredicateCount
from kleene.why.step_partition import StepPartition, until_of

STEP, FORBID, UNTIL = "step", "forbid", "until"


class StepTally(Counts):
    """`parts` are the predicates of each step, and of each until condition by its name in the automaton."""

    def __init__(self, query: AnalyzedSteps) -> None:
        said = dict(query.conditions) | {until_of(label): until for label, until in query.untils}
        self.parts: Mapping[str, Sequence[ir.Expr]] = {name: tuple(parts_of(own)) for name, own in said.items()}
        super().__init__((name, part) for name, parts in self.parts.items() for part in parts)
        self.query = query
        self._reached: Counter[str] = Counter()
        self._of_type: Counter[str] = Counter()

    def look_at(self, partition: StepPartition) -> None:
        """Counts types, and decides the predicates that need nothing but one event, for all events."""
        self.events += len(partition)
        names = [*(step.name for step in all_steps(self.query.pattern.steps)), *map(until_of, dict(self.query.untils))]
        for name in names:
            alone = [part for part in self.parts.get(name, ()) if class_of(part) is FormulaClass.SINGLE_EVENT]
            for place in partition.places:
                if partition.is_of_type(name, place):
                    self._of_type[name] += 1
                    for part in alone:
                        self.note((name, part), partition.row(place), partition.result(part, place, ()) is True)

    def tried(self, partition: StepPartition, name: str, place: int, bound: Bound) -> None:
        """An event of the right type was tried for a step, a negation or an until condition."""
        for part in self.parts.get(name, ()):
            self.note_try((name, part), partition.row(place), partition.result(part, place, bound) is True)

    def reached(self, bound: Bound) -> None:
        self.runs += 1
        self._reached[_state_name(self.query, bound)] += 1

    def predicates(self) -> tuple[PredicateCount, ...]:
        found: list[PredicateCount] = []
        for step in all_steps(self.query.pattern.steps):
            move, of_type = FORBID if step.negative is not None else STEP, self._of_type[step.name]
            numbers = (self.events, of_type, self.events, of_type, 0)
            found.append(PredicateCount(step.name, move, None, step.types, *numbers))
            parts = self.parts.get(step.name, ())
            found += [self.count((step.name, part), step.name, move, part, step.types) for part in parts]
            found += self._until(step.label)
        groups = [label for label, _ in self.query.untils if label not in {one.variable for one in found}]
        return (*found, *(one for label in groups for one in self._until(label)))

    def _until(self, label: str) -> list[PredicateCount]:
        name = until_of(label)
        return [self.count((name, part), label, UNTIL, part) for part in self.parts.get(name, ())]

    def states(self) -> tuple[Count, ...]:
        return tuple(Count(name, self._reached[name]) for name in _state_names(self.query))


def _state_name(query: AnalyzedSteps, bound: Bound) -> str:
    """What the run has bound last: a step, or the first or a later event of a step that can have several."""
    component = query.components[bound[-1][0]]
    if not component.is_kleene:
        return component.name
    return f"{component.name}[{'1' if sum(step == bound[-1][0] for step, _ in bound) == 1 else 'i'}]"


def _state_names(query: AnalyzedSteps) -> list[str]:
    names: list[str] = []
    for component in query.components:
        names += [f"{component.name}[1]", f"{component.name}[i]"] if component.is_kleene else [component.name]
    return names

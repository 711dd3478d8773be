"""What is counted while the runs of a pattern in steps are followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kleene.analysis.steps import AnalyzedSteps
from kleene.engine.steps.conditions import Bound
from kleene.ir.steps import all_steps
from kleene.why.counts import Counts
from kleene.why.model import Check, Count, PredicateCount
from kleene.why.step_partition import StepPartition
from kleene.why.step_states import States, until_of

STEP, FORBID, UNTIL = "step", "forbid", "until"


class StepTally(Counts):
    """Predicates are counted by their numbers; until conditions are those of steps and of groups."""

    def __init__(self, query: AnalyzedSteps, states: States) -> None:
        super().__init__(part.number for parts in states.parts.values() for part in parts)
        self.query, self._states = query, states
        self._reached: Counter[str] = Counter()
        self._of_type: Counter[str] = Counter()

    def look_at(self, partition: StepPartition) -> None:
        """Counts types, and decides the predicates that need nothing but one event, for all events."""
        self.events += len(partition)
        for name in (*(step.name for step in all_steps(self.query.pattern.steps)), *self._states.untils):
            alone = [part for part in self._states.parts_of(name) if part.is_alone]
            for place in partition.places:
                if partition.is_of_type(name, place):
                    self._of_type[name] += 1
                    for part in alone:
                        self.note(part.number, partition.row(place), partition.holds(part, place, ()))

    def tried(self, name: str, row: int, checks: Sequence[Check]) -> None:
        """The event of a row, of the right type, was tried for a step, a negation or an until condition."""
        for part, check in zip(self._states.parts_of(name), checks, strict=True):
            self.note_try(part.number, row, check.holds)

    def reached(self, bound: Bound) -> None:
        self.runs += 1
        self._reached[_state_name(self.query, bound)] += 1

    def predicates(self) -> tuple[PredicateCount, ...]:
        found: list[PredicateCount] = []
        for step in all_steps(self.query.pattern.steps):
            move, of_type = FORBID if step.negative is not None else STEP, self._of_type[step.name]
            numbers = (self.events, of_type, self.events, of_type, 0)
            found.append(PredicateCount(step.name, move, None, step.types, *numbers))
            parts = self._states.parts_of(step.name)
            found += [self.count(part.number, step.name, move, part.predicate, step.types) for part in parts]
            found += self._until(step.label)
        groups = [label for label, _ in self.query.untils if label not in {one.variable for one in found}]
        return (*found, *(one for label in groups for one in self._until(label)))

    def _until(self, label: str) -> list[PredicateCount]:
        parts = self._states.parts_of(until_of(label))
        return [self.count(part.number, label, UNTIL, part.predicate) for part in parts]

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

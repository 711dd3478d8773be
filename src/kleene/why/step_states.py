"""What the states and conditions of a pattern in steps mean to a run, whatever the events: found once for all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.model import Edge, FormulaClass, Move
from kleene.automaton.steps import StepsAutomaton, class_of
from kleene.ir.expr import Expr
from kleene.why.checking import parts_of
from kleene.why.model import Kind


def until_of(label: str) -> str:
    """What the automaton calls the until condition of a step or group."""
    return f"until {label}"


@dataclass(frozen=True, slots=True)
class Part:
    """A predicate of a condition; `is_alone` says that it needs nothing but one event. Its number is its name."""

    number: int
    predicate: Expr
    is_alone: bool


class States:
    def __init__(self, query: AnalyzedSteps, steps: StepsAutomaton) -> None:
        self.steps, self.automaton = steps, steps.automaton
        self.open_after = dict(steps.open_after)
        self.negations = frozenset(negation.name for negation in query.negations)
        self.untils = {until_of(label): label for label, _ in query.untils}
        said = dict(query.conditions) | {until_of(label): until for label, until in query.untils}
        self.parts: dict[str, tuple[Part, ...]] = {}
        for name, condition in said.items():
            count = sum(map(len, self.parts.values()))
            self.parts[name] = tuple(
                Part(count + number, part, class_of(part) is FormulaClass.SINGLE_EVENT)
                for number, part in enumerate(parts_of(condition))
            )

    def parts_of(self, name: str) -> tuple[Part, ...]:
        """The predicates of a step, a negation or an until condition."""
        return self.parts.get(name, ())

    @cached_property
    def reached(self) -> list[list[int]]:
        """The states that proceeds lead to from each state, whatever their formulas."""
        return [self._reached(state) for state in range(len(self.automaton.states))]

    def _reached(self, state: int) -> list[int]:
        found = [state]
        for own in found:
            targets = [edge.target for edge in self.automaton.edges[own] if edge.move is Move.PROCEED]
            found += [target for target in dict.fromkeys(targets) if target not in found]
        return found

    @cached_property
    def may_end(self) -> list[bool]:
        """Whether a run that time ends in a state is a match."""
        return [not self.steps.pending.isdisjoint(reached) for reached in self.reached]

    @cached_property
    def awaited(self) -> list[str | None]:
        """The steps that a run waits for in a state, in words."""
        return [self._awaited(state) for state in range(len(self.automaton.states))]

    def _awaited(self, state: int) -> str | None:
        variables = (self.automaton.states[own].variable for own in self.reached[state])
        return " or ".join(dict.fromkeys(name for name in variables if name is not None)) or None

    def take(self, state: int) -> Edge | None:
        return self.automaton.edge(state, Move.TAKE)

    def bound_kind(self, state: int) -> Kind:
        """Whether a bound on the time since the event before is one inside a repetition: b[2], b[i], but not b[1]."""
        own = self.automaton.states[state]
        numbered = own.name[len(own.variable) :] if own.variable is not None else ""
        return Kind.GAP if numbered.startswith("[") and not numbered.startswith("[1]") else Kind.SINCE

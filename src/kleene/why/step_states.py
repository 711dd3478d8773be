"""What the states of a pattern in steps mean to a run, whatever the events: found once for all partitions."""

from __future__ import annotations

from functools import cached_property

from kleene.automaton.model import Edge, Move
from kleene.automaton.steps import StepsAutomaton
from kleene.why.model import Kind


class States:
    def __init__(self, steps: StepsAutomaton) -> None:
        self.steps, self.automaton = steps, steps.automaton
        self.open_after = dict(steps.open_after)

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

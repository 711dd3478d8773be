"""The automaton of a pattern in steps as tables that a loop follows: conditions are bits, formulas are masks.

An atom is a condition: that of a step, or the one that ends a loop. It has a bit. What an event decides alone is in the
bits of the event; of the other atoms these say whether the event may satisfy them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.model import AllOf, Defined, Edge, Formula, Move, NotFormula, SoonAfter, parts_of
from kleene.automaton.steps import StepsAutomaton
from kleene.engine.compiled.arrays import step_edges as edges_
from kleene.engine.compiled.arrays import step_moves as moves_
from kleene.engine.compiled.arrays import step_states as states_
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.failures import NotExpressibleError
from kleene.ir.options import Window, WindowUnit
from kleene.ir.steps import all_steps

MOST_ATOMS = 60
ALWAYS = 1 << 62
_MOST_MOVES = 10_000
_PLANNED_BITS, _PLANNED_STATES = 6, 64
_MOVES = {
    Move.PROCEED: edges_.STEP_PROCEEDS,
    Move.TAKE: edges_.STEP_TAKES,
    Move.IGNORE: edges_.STEP_IGNORES,
}


@dataclass(frozen=True, slots=True)
class _Masks:
    """What a formula asks for: atoms that hold, atoms that do not, and a bound on the time since the event before."""

    must: int
    never: int
    wait: int


@dataclass(frozen=True, slots=True)
class StepTables:
    """`atoms` are the names that formulas use, in the order of their bits; the derived ones follow them.

    `windows` are the bounds on times between two events, by their numbers.
    """

    atoms: tuple[str, ...]
    windows: tuple[Window, ...]
    edge: Array
    states: Array
    derived: Array
    open_after: Array
    begins: int
    most_moves: int
    leaves_out: bool  # whether events that satisfy nothing need not be there
    plan_width: int  # how many sets of atoms moves are found for beforehand; 0 if they are not
    plans: Array
    moves: Array


def step_tables(query: AnalyzedSteps, steps: StepsAutomaton) -> StepTables:
    return _Tables(query, steps).made()


class _Tables:
    def __init__(self, query: AnalyzedSteps, steps: StepsAutomaton) -> None:
        self.query, self.steps, self.automaton = query, steps, steps.automaton
        self.atoms = [step.name for step in all_steps(query.pattern.steps)]
        self.atoms += [f"until {label}" for label, _ in query.untils]
        self.windows: list[Window] = []
        self.derived: list[tuple[int, int]] = []
        self.masks = [[self._masks(edge.formula) for edge in edges] for edges in self.automaton.edges]
        if len(self.atoms) + len(self.derived) > MOST_ATOMS:
            raise NotExpressibleError(f"a pattern of {len(self.atoms)} conditions")

    def _bit(self, name: str) -> int:
        return 1 << self.atoms.index(name)

    def _masks(self, formula: Formula) -> _Masks:
        must = never = 0
        wait = -1
        for part in parts_of(formula):
            match part:
                case Defined(variable=name):
                    must |= self._bit(name)
                case NotFormula(part=Defined(variable=name)):
                    never |= self._bit(name)
                case NotFormula(part=AllOf() as inner):
                    never |= self._derived_bit(self._masks(inner))
                case SoonAfter(window=window):
                    wait = self._window(window)
                case _:
                    raise AssertionError(f"no mask for {type(part).__name__}")
        return _Masks(must, never, wait)

    def _derived_bit(self, masks: _Masks) -> int:
        own = (masks.must, masks.never)
        if own not in self.derived:
            self.derived.append(own)
        return 1 << (len(self.atoms) + self.derived.index(own))

    def _window(self, window: Window) -> int:
        if window not in self.windows:
            self.windows.append(window)
        return self.windows.index(window)

    # --- what moves depend on ----------------------------------------------------------------------------------------

    def _edges(self, state: int) -> Iterator[tuple[Edge, _Masks]]:
        return zip(self.automaton.edges[state], self.masks[state], strict=True)

    def _closure(self, state: int) -> list[int]:
        """The states that proceed edges lead to, each as often as there are ways."""
        found, at = [state], 0
        while at < len(found):
            found += [edge.target for edge, _ in self._edges(found[at]) if edge.move is Move.PROCEED]
            at += 1
            if len(found) > _MOST_MOVES:
                raise NotExpressibleError("so many ways through the groups of a pattern")
        return found

    def _needs(self, state: int) -> int:
        """The atoms that decide what a run in the state may do, and whether that completes a match."""
        found = 0
        targets = set[int]()
        for own in set(self._closure(state)):
            for edge, masks in self._edges(own):
                found |= masks.must | masks.never
                if edge.move is Move.TAKE:
                    targets.add(edge.target)
        for own in {inner for target in targets for inner in self._closure(target)}:
            for edge, masks in self._edges(own):
                if edge.move is Move.PROCEED:
                    found |= masks.must | masks.never
        return self._plain(found)

    def _plain(self, mask: int) -> int:
        """The atoms themselves, also those that derived ones are made of."""
        for number, (must, never) in enumerate(self.derived):
            if mask >> (len(self.atoms) + number) & 1:
                mask |= must | never
        return mask & ((1 << len(self.atoms)) - 1)

    def _moves_of_nothing(self, state: int) -> list[tuple[Move, int]]:
        """What a run does with an event that satisfies no condition."""
        sat = 0
        for number, (must, _) in enumerate(self.derived):
            sat |= 0 if must else 1 << (len(self.atoms) + number)
        found: list[tuple[Move, int]] = []
        waiting = [state]
        while waiting:
            own = waiting.pop()
            if own == self.steps.stop:
                found.append((Move.PROCEED, own))
            for edge, masks in self._edges(own):
                if sat & masks.must == masks.must and not sat & masks.never:
                    if edge.move is Move.PROCEED:
                        waiting.append(edge.target)
                    else:
                        found.append((edge.move, edge.target))
        return found

    def _loud(self, state: int) -> int:
        """The bits of events that a run in the state does not just ignore; all, if it never does just that."""
        is_quiet = self._moves_of_nothing(state) == [(Move.IGNORE, state)] or self._is_transparent(state)
        return self._needs(state) if is_quiet else ALWAYS

    def _is_transparent(self, state: int) -> bool:
        """Whether an event that satisfies nothing makes no difference, though the run is in other states after it.

        What it can then do from these states together is what it could do from its own, so it may stay there.
        """
        moves = self._moves_of_nothing(state)
        after = {target for move, target in moves if move is Move.IGNORE}
        if not after or any(move is not Move.IGNORE for move, _ in moves) or self.automaton.final in after:
            return False
        if any(self._moves_of_nothing(own) != [(Move.IGNORE, own)] or self.steps.waits[own] for own in after):
            return False
        return self._ways(state) == sorted(way for own in after for way in self._ways(own))

    def _ways(self, state: int) -> list[tuple[int, ...]]:
        """The moves from a state, each with the masks of all formulas on the way to it."""
        found: list[tuple[int, ...]] = []
        waiting = [(state, 0, 0)]
        while waiting:
            own, must, never = waiting.pop()
            for edge, masks in self._edges(own):
                both = (must | masks.must, never | masks.never)
                if edge.move is Move.PROCEED:
                    waiting.append((edge.target, *both))
                else:
                    step = self.automaton.states[own].component
                    found.append((_MOVES[edge.move], edge.target, -1 if step is None else step, *both, masks.wait))
        return sorted(found)

    def may_leave_out(self, states: Array, begins: int) -> bool:
        """Whether events that satisfy nothing need not be looked at: no run changes by them, and none counts them."""
        counts = any(window.unit is WindowUnit.EVENTS for window in self.query.pattern.windows)
        living = states[: self.automaton.final, states_.STEP_STATE_LOUD]
        is_last = np.arange(len(living)) == self.steps.stop
        return not counts and begins != ALWAYS and not bool(((living == ALWAYS) & ~is_last).any())

    # --- the tables --------------------------------------------------------------------------------------------------

    def made(self) -> StepTables:
        count = len(self.automaton.states)
        edge = [
            (_MOVES[own.move], own.target, masks.must, masks.never, masks.wait)
            for state in range(count)
            for own, masks in self._edges(state)
        ]
        states = np.zeros((count, states_.STEP_STATE_COLUMNS), np.int64)
        at, most = 0, 1
        for number, state in enumerate(self.automaton.states):
            closure = self._closure(number)
            wait = self.steps.waits[number]
            states[number] = (
                at,
                at + len(self.automaton.edges[number]),
                self._needs(number),
                self._loud(number),
                -1 if wait is None else self._window(wait),
                -1 if state.component is None else state.component,
                int(any(own in self.steps.pending for own in closure)),
                int(self.automaton.final in closure),
            )
            at += len(self.automaton.edges[number])
            most = max(most, sum(e.move is not Move.PROCEED for own in closure for e in self.automaton.edges[own]))
        begins_always = any(move is Move.TAKE for move, _ in self._moves_of_nothing(0))
        begins = ALWAYS if begins_always else self._needs(0)
        numbers = {name: number for number, name in enumerate(component.name for component in self.query.components)}
        open_after = np.zeros(max(len(numbers), 1), np.int64)
        for name, absent in self.steps.open_after:
            open_after[numbers[name]] = sum(self._bit(other) for other in absent)
        return StepTables(
            tuple(self.atoms),
            tuple(self.windows),
            np.array(edge, np.int64).reshape(-1, edges_.STEP_EDGE_COLUMNS),
            states,
            np.array(self.derived or [(0, 0)], np.int64).reshape(-1),
            open_after,
            begins,
            most,
            self.may_leave_out(states, begins),
            *self._plans(most),
        )

    def _plans(self, most: int) -> tuple[int, Array, Array]:
        """The moves of each state for each set of atoms, where these are few and time decides nothing."""
        bits, count = len(self.atoms) + len(self.derived), len(self.automaton.states)
        if bits > _PLANNED_BITS or count > _PLANNED_STATES or self.windows:
            return 0, np.zeros((1, 2), np.int64), np.zeros((most + 1, moves_.STEP_MOVE_COLUMNS), np.int64)
        plans: list[tuple[int, int]] = []
        moves: list[tuple[int, int, int]] = []
        for state in range(count):
            for sat in range(1 << bits):
                begin = len(moves)
                moves += self._planned(state, sat)
                plans.append((begin, len(moves)))
        return 1 << bits, np.array(plans, np.int64), np.array(moves or [(0, 0, 0)], np.int64).reshape(-1, 3)

    def _planned(self, state: int, sat: int) -> list[tuple[int, int, int]]:
        found: list[tuple[int, int, int]] = []
        stops = False
        waiting = [state]
        while waiting:
            own = waiting.pop()
            stops = stops or own == self.steps.stop
            for number, (edge, masks) in enumerate(self._edges(own)):
                if sat & masks.must != masks.must or sat & masks.never:
                    continue
                if edge.move is Move.PROCEED:
                    waiting.append(edge.target)
                else:
                    completes = edge.move is Move.TAKE and self._completes(edge.target, sat)
                    found.append((self._first_edge(own) + number, own, int(completes)))
        return [(-1, state, 0), *found] if stops else found

    def _first_edge(self, state: int) -> int:
        return sum(map(len, self.automaton.edges[:state]))

    def _completes(self, state: int, sat: int) -> bool:
        """Whether proceed edges lead to the final state."""
        waiting = [state]
        while waiting:
            own = waiting.pop()
            if own == self.automaton.final:
                return True
            for edge, masks in self._edges(own):
                if edge.move is Move.PROCEED and sat & masks.must == masks.must and not sat & masks.never:
                    waiting.append(edge.target)
        return False

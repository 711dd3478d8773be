"""Runs an automaton as the paper defines it, move by move: a check that the compiled formulas mean the query.

It shares only the evaluator of expressions with the plain engine, which does not know the automaton.
"""

from __future__ import annotations

from itertools import product

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.automaton.model import (
    AllOf,
    AnyOf,
    Automaton,
    Formula,
    FormulaOf,
    InWindow,
    Move,
    NotFormula,
    Predicate,
    TypeIs,
)
from kleene.automaton.nfa import nfa_of
from kleene.engine.events import Events
from kleene.ir.evaluate import EventBindings, evaluate
from kleene.ir.options import WindowUnit

Run = tuple[int, tuple[tuple[str, tuple[int, ...]], ...]]  # the state, and the events of each variable


def accepted(query: AnalyzedQuery, events: Events) -> set[tuple[tuple[int, ...], ...]]:
    """The selections of all accepting runs, over the events as one stream."""
    runner = _Runner(query, events, nfa_of(query))
    found: set[tuple[tuple[int, ...], ...]] = set()
    runs: set[Run] = set()
    final = runner.automaton.final
    for event in range(len(events)):
        moved: set[Run] = set()
        for run in [*runs, (0, ())]:
            moved |= runner.step(run, event)
        for state, selected in moved:
            last = selected[-1][1][-1]
            # A Kleene plus in last place proceeds to F right after an event was taken; F consumes nothing.
            if last == event and (state == final or runner.can_finish((state, selected), event)):
                found.add(tuple(positions for _, positions in selected))
        runs = {(state, selected) for state, selected in moved if state != final}
    return found


class _Runner:
    def __init__(self, query: AnalyzedQuery, events: Events, automaton: Automaton) -> None:
        self.query, self.events, self.automaton = query, events, automaton
        self.times, self.types = events.times(), events.types()

    def step(self, run: Run, event: int) -> set[Run]:
        """The runs that the run becomes when it consumes the event."""
        state, selected = run
        found: set[Run] = set()
        for edge in self.automaton.edges[state]:
            if not self._holds(edge.formula, run, event):
                continue
            match edge.move:
                case Move.BEGIN | Move.TAKE:
                    found.add((edge.target, self._selecting(run, event)))
                case Move.IGNORE:
                    found.add(run)
                case Move.PROCEED if edge.target != self.automaton.final:
                    # The event is looked at, not consumed: the next state must begin with it or ignore it. A run that
                    # were to ignore it there has ignored it here already.
                    moved = self.step((edge.target, selected), event)
                    found |= {after for after in moved if after[1] != selected}
        return found

    def can_finish(self, run: Run, event: int) -> bool:
        edge = self.automaton.edge(run[0], Move.PROCEED)
        return edge is not None and edge.target == self.automaton.final and self._holds(edge.formula, run, event)

    def _variable(self, state: int) -> str:
        return self.automaton.states[state].variable

    def _selecting(self, run: Run, event: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
        state, selected = run
        variable = self._variable(state)
        if selected and selected[-1][0] == variable:
            return (*selected[:-1], (variable, (*selected[-1][1], event)))
        return (*selected, (variable, (event,)))

    def _holds(self, formula: Formula, run: Run, event: int) -> bool:
        selected = run[1]
        match formula:
            case AllOf(parts=parts):
                return all(self._holds(part, run, event) for part in parts)
            case AnyOf(parts=parts):
                return any(self._holds(part, run, event) for part in parts)
            case NotFormula(part=part):
                return not self._holds(part, run, event)
            case FormulaOf(state=other, move=move):
                return self._holds(self.automaton.edge(other, move).formula, (other, selected), event)
            case TypeIs(types=types):
                return self.types is None or self.types[event] in types
            case InWindow(window=window, event=name):
                first = selected[0][1][0]
                last = selected[-1][1][-1] if name.endswith(".LEN]") else event
                if window.unit is WindowUnit.EVENTS:
                    return last - first < window.size
                return self.times[last] - self.times[first] < window.size
            case Predicate():
                return self._predicate_holds(formula, run, event)

    def _predicate_holds(self, predicate: Predicate, run: Run, event: int) -> bool:
        completes = predicate.formula_class.value == "completion"
        selected = dict(run[1] if completes else self._selecting(run, event))
        trying = None if completes else self._variable(run[0])
        indexed = predicate.conjunct.indexed
        choices = [
            [len(selected[name]) - 1] if name == trying else range(first, len(selected[name]))
            for name, first in indexed
        ]
        return all(
            evaluate(
                predicate.conjunct.expression,
                EventBindings(
                    selected,
                    dict(zip([name for name, _ in indexed], choice, strict=True)),
                    self.events.values,
                    self._is_missing,
                ),
            )
            is True
            for choice in product(*choices)
        )

    def _is_missing(self, event: int, attribute: str) -> bool:
        return self.types is not None and not self.events.schema.has(self.types[event] or "", attribute)

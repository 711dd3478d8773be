"""A pattern in steps and its events to the answer."""

from __future__ import annotations

from itertools import pairwise

from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.steps import steps_automaton
from kleene.engine.steps.conditions import Bound, Conditions
from kleene.errors import SchemaError, listed, printable
from kleene.ir.options import Window, WindowUnit
from kleene.ir.steps_text import steps_text
from kleene.why.answer import Why
from kleene.why.asked import Asked
from kleene.why.findings import Findings, Limits
from kleene.why.model import Ending, Kind, Run
from kleene.why.partition import Partition
from kleene.why.question import check_rows
from kleene.why.step_combination import StepCombination
from kleene.why.step_partition import StepPartition
from kleene.why.step_states import States
from kleene.why.step_tally import StepTally
from kleene.why.step_walk import TRIES_PER_RUN, StepWalk


def why_of_steps(asked: Asked, max_events: int, limits: Limits) -> Why:
    return _StepAnswer(asked).made(max_events, limits)


class _StepAnswer:
    def __init__(self, asked: Asked) -> None:
        assert isinstance(asked.query, AnalyzedSteps)
        self.asked, self.query = asked, asked.query
        automaton = steps_automaton(self.query)
        self.states = States(self.query, automaton)
        self.conditions = Conditions(self.query, automaton, asked.events)
        self.text = steps_text(self.query.definition)

    def made(self, max_events: int, limits: Limits) -> Why:
        if self.asked.question.combination is not None:
            return self._of_combination(limits)
        tally = StepTally(self.query, self.states)

        def walk(partition: Partition, findings: Findings) -> None:
            StepWalk(self._partition(partition), findings, tally).follow()

        tries = f"{limits.runs:,} runs, max_runs, or {TRIES_PER_RUN} times as many tries"
        return self.asked.answer(self.text, self._window(), max_events, limits, tally, walk, tries)

    def _partition(self, base: Partition) -> StepPartition:
        return StepPartition(base, self.states, self.conditions)

    def _window(self) -> Window | None:
        """How far matches reach: by time, if there is a bound on it."""
        windows = sorted(self.query.pattern.windows, key=lambda window: window.unit is WindowUnit.EVENTS)
        return windows[0] if windows else None

    # --- one combination of events -----------------------------------------------------------------------------------

    def _of_combination(self, limits: Limits) -> Why:
        bound = self._bound()
        group, stranger = self.asked.group_of(place for _, place in bound)
        if stranger is not None:
            told = tuple((self.query.components[step].name, (self.asked.event(place),)) for step, place in bound)
            return self.asked.combination_answer(self.text, Run(0, None, (), told, (), (Ending(Kind.KEY, stranger),)))
        partition = self._partition(self.asked.partition(group))
        twice = next((one[1] for one, other in pairwise(bound) if one[1] == other[1]), None)
        if twice is not None:
            ending = Ending(Kind.ORDER, partition.event(twice))
            run = Run(1, None, partition.base.key_text(), partition.told(bound), (), (ending,))
            return self.asked.combination_answer(self.text, run)
        combination = StepCombination(partition, bound)
        combination.judge()
        endings, notes = tuple(combination.reasons), tuple[str, ...]()
        if not endings:
            endings, notes = self._given_out(partition, bound, limits)
        run = Run(1, None, partition.base.key_text(), partition.told(bound), tuple(combination.steps), endings)
        return self.asked.combination_answer(self.text, run, notes)

    def _given_out(
        self, partition: StepPartition, bound: Bound, limits: Limits
    ) -> tuple[tuple[Ending, ...], tuple[str, ...]]:
        """Whether the complete match is given out, or which other match dropped it."""
        findings = Findings(limits, frozenset())
        walk = StepWalk(partition, findings, StepTally(self.query, self.states))
        walk.follow()
        if any(match.bound == partition.told(bound) for match in findings.matches):
            return (Ending(Kind.MATCH, match=1),), ()
        if bound[0][1] in walk.dropped:
            number = walk.dropped[bound[0][1]]
            return (Ending(Kind.LOST, match=number),), ()
        assert findings.is_cut, "a complete match is given out or dropped"
        return (Ending(Kind.MATCH, match=1),), ("it is complete; whether another match drops it was not looked at",)

    def _bound(self) -> Bound:
        given = dict(self.asked.question.combination or ())
        numbers = {component.name: number for number, component in enumerate(self.query.components)}
        for name, rows in given.items():
            if name not in numbers:
                raise SchemaError(
                    f"at names '{printable(name)}', which no event of a match is bound to",
                    hint=f"Steps of the pattern: {listed(numbers)}.",
                )
            if len(rows) > 1 and not self.query.components[numbers[name]].is_kleene:
                raise SchemaError(
                    f"at names {len(rows):,} rows for '{printable(name)}', which is one event",
                    hint="Only a repeated step, or one in a repeated group, has several.",
                )
        all_rows = [row for part in given.values() for row in part]
        if not all_rows:
            raise SchemaError("at names no row", hint=f"Give steps their rows: {listed(numbers)}.")
        check_rows(all_rows, len(self.asked.rows))
        place_of = {row: place for place, row in enumerate(self.asked.rows)}
        places = [(place_of[row], numbers[name]) for name, part in given.items() for row in part]
        return tuple((number, place) for place, number in sorted(places))

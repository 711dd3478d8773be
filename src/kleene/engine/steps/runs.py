"""The runs of one partition, event by event: what docs/steps.md says of them, in code.

A run is a state and the events that it has bound. Each event gives every run its moves, each in a run of its own; each
step of time ends the runs whose windows have passed. Then after-match decides which complete matches are given out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kleene.analysis.steps import AnalyzedSteps
from kleene.automaton.model import Move
from kleene.automaton.steps import StepsAutomaton
from kleene.engine.events import Events, window_size
from kleene.engine.steps.conditions import Bound, Conditions
from kleene.errors import ExecutionError, listed, printable
from kleene.ir.options import WindowUnit
from kleene.ir.steps import SkipMode

NO_TIME = float("inf")


@dataclass(frozen=True, slots=True)
class Run:
    """`place` is where its first event stands in the partition."""

    state: int
    bound: Bound
    place: int

    @property
    def first(self) -> int:
        return self.bound[0][1]


@dataclass(slots=True)
class Partition:
    """What is alive of a partition.

    `complete` are matches that wait for runs which began before them; `told` are the timeouts of runs that others with
    the same first event may still repeat. `count` is how many events it has seen.
    """

    runs: list[Run] = field(default_factory=list)
    complete: list[Bound] = field(default_factory=list)
    told: set[Bound] = field(default_factory=set)
    count: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.runs and not self.complete

    def rows(self) -> Iterator[int]:
        """The rows that are still needed."""
        for bound in (*(run.bound for run in self.runs), *self.complete, *self.told):
            yield from (row for _, row in bound)

    def renumbered(self, rows: dict[int, int]) -> Partition:
        """The same, for a table in which the rows have other numbers."""

        def moved(bound: Bound) -> Bound:
            return tuple((step, rows[row]) for step, row in bound)

        runs = [replace(run, bound=moved(run.bound)) for run in self.runs]
        return Partition(runs, [moved(own) for own in self.complete], {moved(own) for own in self.told}, self.count)


class Matching:
    """The moves of a query. `found` and `timed_out` are what was given out so far."""

    def __init__(
        self, query: AnalyzedSteps, automaton: StepsAutomaton, conditions: Conditions, times_out: bool
    ) -> None:
        self._query, self._steps, self._conditions = query, automaton, conditions
        self._automaton, self._final = automaton.automaton, automaton.automaton.final
        self._times_out = times_out
        self._open = dict(automaton.open_after)
        self._names = [component.name for component in query.components]
        self._after = query.after
        windows = {window.unit is WindowUnit.EVENTS: window for window in query.pattern.windows}
        self._window = None if False not in windows else window_size(windows[False], query.time_type)
        self._places = None if True not in windows else int(windows[True].size)
        self._waits = [None if own is None else window_size(own, query.time_type) for own in automaton.waits]
        self._may_end = [self._reaches_pending(state) for state in range(len(self._automaton.states))]
        self.events = conditions.events
        self.found: list[Bound] = []
        self.timed_out: list[tuple[Bound, Any]] = []

    # --- one event ---------------------------------------------------------------------------------------------------

    def event(self, partition: Partition, row: int) -> None:
        self.advance(partition, self._conditions.times[row])
        self._pass_places(partition, partition.count)
        runs: dict[tuple[int, Bound], Run] = {}
        complete: dict[Bound, None] = {}
        for run in (*partition.runs, Run(0, (), partition.count)):
            kept, matches = self._moves(run, row)
            for own in kept:
                runs.setdefault((own.state, own.bound), own)
            complete |= dict.fromkeys(matches)
        partition.runs = sorted(runs.values(), key=lambda own: own.first)
        partition.complete += complete
        partition.count += 1
        self._give_out(partition)

    def _moves(self, run: Run, row: int) -> tuple[list[Run], list[Bound]]:
        """The runs that go on, and the matches that the event completes."""
        runs: list[Run] = []
        matches: list[Bound] = []
        is_hit = bool(run.bound) and any(
            self._conditions.satisfies(name, row, run.bound) for name in self._open[self._names[run.bound[-1][0]]]
        )
        waiting, seen = [run.state], {run.state}
        while waiting:
            state = waiting.pop()
            is_hit = is_hit or state == self._steps.stop
            for edge in self._automaton.edges[state]:
                if not self._conditions.holds(edge.formula, row, run.bound):
                    continue
                match edge.move:
                    case Move.PROCEED:
                        if edge.target not in seen:
                            seen.add(edge.target)
                            waiting.append(edge.target)
                    case Move.IGNORE if run.bound:  # the run that is about to begin ignores nothing
                        if edge.target == self._final:
                            matches.append(run.bound)
                        else:
                            runs.append(replace(run, state=edge.target))
                    case Move.TAKE:
                        step = self._automaton.states[state].component
                        assert step is not None
                        bound = (*run.bound, (step, row))
                        if self._reaches_final(edge.target, row, run.bound):
                            matches.append(bound)
                        if edge.target != self._final:
                            runs.append(Run(edge.target, bound, run.place))
        return ([] if is_hit else runs), matches

    def _reaches_final(self, state: int, row: int, before: Bound) -> bool:
        """Whether proceed edges lead to F whose formulas hold for the event and what was bound before it."""
        waiting, seen = [state], {state}
        while waiting:
            own = waiting.pop()
            if own == self._final:
                return True
            for edge in self._automaton.edges[own]:
                if edge.move is not Move.PROCEED or edge.target in seen:
                    continue
                if self._conditions.holds(edge.formula, row, before):
                    seen.add(edge.target)
                    waiting.append(edge.target)
        return False

    def _reaches_pending(self, state: int) -> bool:
        waiting, seen = [state], {state}
        while waiting:
            own = waiting.pop()
            if own in self._steps.pending:
                return True
            targets = [edge.target for edge in self._automaton.edges[own] if edge.move is Move.PROCEED]
            waiting += [target for target in targets if target not in seen]
            seen.update(targets)
        return False

    # --- time --------------------------------------------------------------------------------------------------------

    def deadline(self, run: Run) -> Any:
        """The time at which the run ends, if nothing else ends it before."""
        times, deadline = self._conditions.times, NO_TIME
        if self._window is not None:
            deadline = times[run.first] + self._window
        wait = self._waits[run.state]
        return deadline if wait is None else min(deadline, times[run.bound[-1][1]] + wait)

    def advance(self, partition: Partition, time: Any) -> None:
        """Time moves on: what ends on the way ends in its order, whether time moves in one step or in many."""
        while partition.runs:
            soonest = min(map(self.deadline, partition.runs))
            if soonest > time or soonest == NO_TIME:
                return
            self._end(partition, [run for run in partition.runs if self.deadline(run) == soonest], soonest)

    def _pass_places(self, partition: Partition, place: int) -> None:
        """Runs end that began too many events ago."""
        if self._places is None:
            return
        over = [run for run in partition.runs if place - run.place >= self._places]
        if over:
            self._end(partition, over, None)

    def finish(self, partition: Partition) -> None:
        """The end of the input: time is beyond every window, and no run goes on."""
        self.advance(partition, NO_TIME)
        if self._places is not None:
            for place in sorted({run.place for run in partition.runs}):
                self._pass_places(partition, place + self._places)
        partition.runs = []
        self._give_out(partition)

    def _end(self, partition: Partition, runs: list[Run], time: Any) -> None:
        """The runs are over: those that may be left as they are are matches, the others have timed out."""
        ended = {(run.state, run.bound) for run in runs}
        partition.runs = [run for run in partition.runs if (run.state, run.bound) not in ended]
        partition.complete += dict.fromkeys(run.bound for run in runs if self._may_end[run.state])
        if self._times_out:
            for run in runs:
                if not self._may_end[run.state] and run.bound not in partition.told:
                    partition.told.add(run.bound)
                    self.timed_out.append((run.bound, time))
            alive = {run.first for run in partition.runs}
            partition.told = {bound for bound in partition.told if bound[0][1] in alive}
        self._give_out(partition)

    # --- after a match -----------------------------------------------------------------------------------------------

    def _give_out(self, partition: Partition) -> None:
        """Matches are given out in the order of their first events, each once no run is alive that began before it."""
        if self._after.mode is SkipMode.NO_SKIP:
            self.found += partition.complete
            partition.complete = []
            return
        partition.complete.sort(key=lambda match: match[0][1])
        while partition.complete:
            chosen = partition.complete[0]
            if partition.runs and partition.runs[0].first < chosen[0][1]:
                return
            self.found.append(chosen)
            least = self._first_kept(chosen)
            partition.complete = [match for match in partition.complete[1:] if match[0][1] >= least]
            partition.runs = [run for run in partition.runs if run.first >= least]

    def _first_kept(self, match: Bound) -> int:
        """The first row that what goes on after the match may begin with."""
        match self._after.mode:
            case SkipMode.SKIP_TO_NEXT:
                return match[0][1] + 1
            case SkipMode.SKIP_PAST_LAST_EVENT:
                return match[-1][1] + 1
        own = [row for step, row in match if self._names[step] == self._after.step]
        target = own[0 if self._after.mode is SkipMode.SKIP_TO_FIRST else -1] if own else None
        if self._after.fails and target in (None, match[0][1]):
            raise missing_step(self._query, match, self.events)
        return -1 if target is None else target


def missing_step(query: AnalyzedSteps, match: Bound, events: Events) -> ExecutionError:
    """After the match, skipping goes to a step that it has no event of, or that it begins with."""
    names, step = [component.name for component in query.components], query.after.step
    why = "begins with it" if any(names[own] == step for own, _ in match) else "has no event of it"
    column = events.table.column(query.order_by[0])
    times = [f"{names[own]} at {printable(str(column[row].as_py()))}" for own, row in match]
    return ExecutionError(
        f"after a match, {query.after.mode.value} goes to step '{printable(step or '')}', but the match of "
        f"{listed(times)} {why}",
        hint="Leave missing='error' out to go on without skipping, or choose a step that every match has.",
    )

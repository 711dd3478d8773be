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
    the same first event may still repeat. `shadows` are runs that were dropped between two events: they do nothing,
    but they have timed out if the next event comes no sooner than they would have. `count` is how many events it has
    seen.
    """

    runs: list[Run] = field(default_factory=list)
    complete: list[Bound] = field(default_factory=list)
    told: set[Bound] = field(default_factory=set)
    shadows: list[Run] = field(default_factory=list)
    count: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.runs and not self.complete and not self.shadows

    def rows(self) -> Iterator[int]:
        """The rows that are still needed."""
        for bound in (*(run.bound for run in (*self.runs, *self.shadows)), *self.complete, *self.told):
            yield from (row for _, row in bound)

    def renumbered(self, rows: dict[int, int]) -> Partition:
        """The same, for a table in which the rows have other numbers."""

        def moved(bound: Bound) -> Bound:
            return tuple((step, rows[row]) for step, row in bound)

        runs, shadows = ([replace(run, bound=moved(run.bound)) for run in own] for own in (self.runs, self.shadows))
        complete, told = [moved(own) for own in self.complete], {moved(own) for own in self.told}
        return Partition(runs, complete, told, shadows, self.count)


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
        self._pass_time(partition, self._conditions.times[row], partition.count)
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
        """Time moves on between two events. However often it does, the same is found as if it moved at events only."""
        self._pass_time(partition, time, None)

    def finish(self, partition: Partition) -> None:
        """The end of the input: time is beyond every window, and then no run goes on."""
        self._pass_time(partition, NO_TIME, NO_TIME)
        partition.runs = []
        self._give_out(partition)

    def _pass_time(self, partition: Partition, time: Any, place: float | None) -> None:
        """All runs end whose bounds are reached, by the time or, where an event comes, by its place.

        Those that may be left as they are are matches, the others have timed out; only then are matches given out.
        """
        over = sorted((run for run in partition.runs if self._is_over(run, time, place)), key=self.deadline)
        late = [run for run in partition.shadows if self._is_over(run, time, place)]
        partition.shadows = [run for run in partition.shadows if place is None and run not in late]
        if over:
            ended = {(run.state, run.bound) for run in over}
            partition.runs = [run for run in partition.runs if (run.state, run.bound) not in ended]
            # Of matches that begin together, that comes first which time has made first: watermarks change nothing.
            partition.complete += dict.fromkeys(run.bound for run in over if self._may_end[run.state])
        if self._times_out:
            self._tell_late(partition, sorted([*over, *late], key=self.deadline), time)
        if over:
            dropped = self._give_out(partition)
            if place is None and self._times_out:
                partition.shadows += [run for run in dropped if not self._may_end[run.state]]

    def _is_over(self, run: Run, time: Any, place: float | None) -> bool:
        deadline = self.deadline(run)
        is_late = deadline <= time and deadline != NO_TIME
        return is_late or (place is not None and self._places is not None and place - run.place >= self._places)

    def _tell_late(self, partition: Partition, runs: list[Run], time: Any) -> None:
        """The runs have timed out, by the clock or, where no time is given out, by the number of events."""
        for run in runs:
            if not self._may_end[run.state] and run.bound not in partition.told:
                partition.told.add(run.bound)
                deadline = self.deadline(run)
                self.timed_out.append((run.bound, deadline if deadline <= time and deadline != NO_TIME else None))
        alive = {run.first for run in (*partition.runs, *partition.shadows)}
        partition.told = {bound for bound in partition.told if bound[0][1] in alive}

    # --- after a match -----------------------------------------------------------------------------------------------

    def _give_out(self, partition: Partition) -> list[Run]:
        """Gives matches out in the order of their first events, each once no run is alive that began before it.

        What it returns are the runs that were dropped.
        """
        dropped: list[Run] = []
        if self._after.mode is SkipMode.NO_SKIP:
            self.found += partition.complete
            partition.complete = []
            return dropped
        partition.complete.sort(key=lambda match: match[0][1])
        while partition.complete:
            chosen = partition.complete[0]
            if partition.runs and partition.runs[0].first < chosen[0][1]:
                break
            self.found.append(chosen)
            least = self._first_kept(chosen)
            partition.complete = [match for match in partition.complete[1:] if match[0][1] >= least]
            dropped += [run for run in partition.runs if run.first < least]
            partition.runs = [run for run in partition.runs if run.first >= least]
        return dropped

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

"""A partition of a pattern in steps to its runs: all of them are followed together, event by event, and told.

Together, because a match that is given out may drop the runs of others. A run is told by what it has bound: where it
waits in several states at once, it is one tale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kleene.automaton.model import Defined, NotFormula, parts_of
from kleene.engine.steps.conditions import Bound
from kleene.engine.steps.runs import missing_step
from kleene.ir.steps import SkipMode
from kleene.why.findings import EnoughError, Findings
from kleene.why.model import Ending, Kind, Match, Run, Step, Try
from kleene.why.step_misses import LookAhead, misses_of
from kleene.why.step_node import Near, StepNode
from kleene.why.step_partition import Moves, StepPartition
from kleene.why.step_tally import StepTally

TRIES_PER_RUN = 20


class _Run(NamedTuple):
    state: int
    bound: Bound


class StepWalk:
    """Follows the runs of one partition. `dropped` says which match dropped what began at a place."""

    def __init__(self, partition: StepPartition, findings: Findings, tally: StepTally) -> None:
        self.partition, self.findings, self.tally = partition, findings, tally
        self.query, self.after, self.states = partition.query, partition.query.after, partition.states
        self.dropped: dict[int, int] = {}
        self._runs: list[_Run] = []
        self._nodes: dict[Bound, StepNode] = {}
        self._complete: list[Bound] = []
        self._told: list[StepNode] = []
        self._ahead = LookAhead(partition, tally)

    def follow(self) -> None:
        self.tally.look_at(self.partition)
        try:
            for place in self.partition.places:
                self._pass_time(place)
                self._pass_event(place)
            self._finish()
        except EnoughError:
            self.findings.is_cut = True
        told = sorted(self._told, key=lambda node: node.number or self.tally.runs)
        self.findings.runs += [self._run(node) for node in told]

    # --- time --------------------------------------------------------------------------------------------------------

    def _pass_time(self, place: int) -> None:
        """The runs end whose bounds the time of the event has reached."""
        kept: list[_Run] = []
        complete: list[_Run] = []
        for run in self._runs:
            ending = self.partition.over(run.state, run.bound, place)
            if ending is None:
                kept.append(run)
            elif self.states.may_end[run.state]:
                complete.append(run)
            else:
                node = self._nodes[run.bound]
                node.end(ending)
                self._ahead.look(node, run.state, ending, self.partition.number_of[place])
                if self._is_chosen([place]):
                    self._tell(node)
        self._settle(kept, self._by_deadline(complete))

    def _by_deadline(self, runs: list[_Run]) -> list[Bound]:
        """What time has made a match: of those that begin together, that comes first which was over first."""
        return [run.bound for run in sorted(runs, key=lambda run: self.partition.deadline(*run))]

    def _finish(self) -> None:
        """The end of the input: time is over."""
        complete = self._by_deadline([run for run in self._runs if self.states.may_end[run.state]])
        for run in self._runs:
            self._nodes[run.bound].end(Ending(Kind.END, variable=self.states.awaited[run.state]))
        self._settle([], complete)

    # --- one event ---------------------------------------------------------------------------------------------------

    def _pass_event(self, place: int) -> None:
        kept: dict[_Run, None] = {}
        complete: list[Bound] = []
        for run in [*self._runs, _Run(0, ())]:
            moves = self.partition.moves(run.state, run.bound, place)
            tries = self._try(run, place, moves)
            self._tell_tries(run.bound, place, tries)
            if moves.completes:
                complete.append(run.bound)
            for take in moves.takes:
                bound = (*run.bound, (take.step, place))
                if take.completes:
                    complete.append(bound)
                if take.completes or not moves.hit:
                    self._born(run.bound, bound, tries)
            if not moves.hit:
                kept |= dict.fromkeys(self._left(run, place, moves))
            if run.bound and not moves.goes_on:
                self._die(run, place, moves)
        self._settle(sorted(kept, key=lambda run: run.bound[0][1]), complete)

    def _left(self, run: _Run, place: int, moves: Moves) -> Iterator[_Run]:
        """The runs that the moves lead to, in their order, which decides among matches that begin together."""
        for move in moves.in_order:
            if isinstance(move, int):
                yield _Run(move, run.bound)
            elif move.target != self.states.automaton.final:
                yield _Run(move.target, (*run.bound, (move.step, place)))

    def _try(self, run: _Run, place: int, moves: Moves) -> list[Try]:
        """The event tried for each step that the run waits for; counted, and remembered where it was nearly taken."""
        tries: list[Try] = []
        for state in moves.states:
            if self.states.automaton.states[state].variable is None:
                continue
            if self.tally.tries >= TRIES_PER_RUN * self.findings.limits.runs:
                raise EnoughError
            self.tally.tries += 1
            tried = self.partition.tried(state, run.bound, place)
            if not tried.wanted:
                self.tally.tried(tried.variable, self.partition.row(place), tried.checks)
            self._count_untils(state, run.bound, place)
            if tried not in tries:
                tries.append(tried)
                if run.bound:
                    self._note_refusal(run, state, place, tried)
        self._count_negation(run, place)
        return tries

    def _count_untils(self, state: int, bound: Bound, place: int) -> None:
        take = self.states.take(state)
        for part in () if take is None or not self.states.untils else parts_of(take.formula):
            if isinstance(part, NotFormula) and isinstance(part.part, Defined):
                name = part.part.variable
                if name in self.states.untils:
                    self.tally.tried(name, self.partition.row(place), self.partition.checks(name, place, bound))

    def _count_negation(self, run: _Run, place: int) -> None:
        if run.bound:
            for name in self.states.open_after[self.query.components[run.bound[-1][0]].name]:
                if self.partition.is_of_type(name, place):
                    checks = self.partition.checks(name, place, run.bound)
                    self.tally.tried(name, self.partition.row(place), checks)

    def _note_refusal(self, run: _Run, state: int, place: int, tried: Try) -> None:
        node = self._nodes[run.bound]
        if tried.wanted:
            return
        parts = zip(self.states.parts_of(tried.variable), tried.checks, strict=True)
        node.refused_by.update(part.number for part, check in parts if not check.holds)
        if len(tried.failed) + len(tried.objections) == 1:
            take = self.states.take(state)
            would = take is not None and self.partition.reaches_final(take.target, place, run.bound)
            near = Near(tried, self.partition.event(place), would)
            if not any(near.is_like(other) for other in node.near):
                node.near.append(near)

    def _born(self, before: Bound, bound: Bound, tries: Sequence[Try]) -> None:
        """A run that has bound an event more; the one before went on in it."""
        parent = self._nodes.get(before)
        if parent is not None:
            parent.went_on = True
        if bound in self._nodes:
            return
        if self.tally.runs >= self.findings.limits.runs:
            raise EnoughError
        self.tally.reached(bound)
        step, place = bound[-1]
        name = self.query.components[step].name
        own = tuple(one for one in tries if one.variable == name and one.holds)
        node = StepNode(self.tally.runs, None if parent is None else parent.number, bound, [])
        self._nodes[bound] = node
        if self._is_chosen([place for _, place in bound]):
            self._tell(node)
            node.steps.append(Step(self.partition.event(place), own[:1]))

    def _die(self, run: _Run, place: int, moves: Moves) -> None:
        node = self._nodes[run.bound]
        number = self.partition.number_of[place]
        for ending in self.partition.dead_ends(moves, run.bound, place):
            node.end(ending)
            if ending.kind is Kind.NEGATION:
                self._ahead.look(node, run.state, ending, number)
            elif ending.kind is Kind.CONTIGUITY:
                self._ahead.look(node, run.state, ending, number + 1, most=1)
        if self._is_chosen([place]):
            self._tell(node)

    # --- complete runs -----------------------------------------------------------------------------------------------

    def _settle(self, runs: list[_Run], complete: Sequence[Bound]) -> None:
        """What is left after an event or a step of time; after-match decides what is given out."""
        alive = dict.fromkeys(run.bound for run in (*self._runs, *runs))
        self._runs = runs
        for bound in dict.fromkeys(complete):
            self._nodes[bound].is_complete = True
            self._complete.append(bound)
        self._give_out()
        left = {run.bound for run in self._runs}
        for bound in alive:
            if bound not in left:
                self._end(self._nodes[bound])

    def _give_out(self) -> None:
        self._complete.sort(key=lambda bound: bound[0][1])
        while self._complete:
            chosen = self._complete[0]
            if self.after.mode is not SkipMode.NO_SKIP and self._runs and self._runs[0].bound[0][1] < chosen[0][1]:
                return
            number = len(self.findings.matches) + 1
            self.findings.matches.append(Match(number, self.partition.told(chosen)))
            self._close(self._nodes[chosen], Ending(Kind.MATCH, match=number))
            least = self._first_kept(chosen)
            dropped = [bound for bound in self._complete[1:] if bound[0][1] < least]
            for bound in dropped:
                self._close(self._nodes[bound], Ending(Kind.LOST, match=number))
            self._complete = [bound for bound in self._complete[1:] if bound[0][1] >= least]
            for run in self._runs:
                if run.bound[0][1] < least:
                    self._nodes[run.bound].end(Ending(Kind.DROPPED, match=number, bound=self.after.mode.value))
            began = {bound[0][1] for bound in (*dropped, *(run.bound for run in self._runs))}
            self.dropped |= {place: number for place in began if place < least}
            self._runs = [run for run in self._runs if run.bound[0][1] >= least]

    def _first_kept(self, match: Bound) -> int:
        """The first place that what goes on after the match may begin at."""
        match self.after.mode:
            case SkipMode.NO_SKIP:
                return -1
            case SkipMode.SKIP_TO_NEXT:
                return match[0][1] + 1
            case SkipMode.SKIP_PAST_LAST_EVENT:
                return match[-1][1] + 1
        own = [place for step, place in match if self.query.components[step].name == self.after.step]
        target = own[0 if self.after.mode is SkipMode.SKIP_TO_FIRST else -1] if own else None
        if self.after.fails and target in (None, match[0][1]):
            raise missing_step(self.query, match, self.partition.conditions.events)
        return -1 if target is None else target

    # --- ends --------------------------------------------------------------------------------------------------------

    def _close(self, node: StepNode, ending: Ending) -> None:
        node.endings = [ending]
        self.tally.ends[ending.kind.value] += 1

    def _end(self, node: StepNode) -> None:
        """The run is over in all its states."""
        if node.is_complete:
            return
        if node.went_on:
            node.endings = [Ending(Kind.WENT_ON)]
        self.tally.ends[node.endings[-1].kind.value] += 1
        if not node.went_on and node.endings[-1].kind is not Kind.DROPPED:
            self.tally.stopped(node.refused_by)
            self.findings.misses += misses_of(self.partition, node)

    # --- telling -----------------------------------------------------------------------------------------------------

    def _is_chosen(self, places: Sequence[int]) -> bool:
        return any(self.partition.row(place) in self.findings.chosen for place in places)

    def _tell(self, node: StepNode) -> None:
        if not node.is_told:
            node.is_told = True
            if len(self.findings.runs) + len(self._told) < self.findings.limits.told:
                self._told.append(node)
            else:
                self.findings.untold_runs += 1

    def _tell_tries(self, bound: Bound, place: int, tries: list[Try]) -> None:
        """All events that a told run meets are told, and those that were asked for of any run."""
        node = self._nodes.get(bound)
        is_asked = self._is_chosen([place])
        if node is None:
            if is_asked and not any(one.holds for one in tries) and any(not one.wanted for one in tries):
                begun = StepNode(0, None, (), [], [Ending(Kind.NOT_BEGUN)])
                begun.add(self.partition.event(place), tries)
                self._tell(begun)
        elif is_asked or node.is_told:
            self._tell(node)
            node.add(self.partition.event(place), tries)

    def _run(self, node: StepNode) -> Run:
        key, bound = self.partition.base.key_text(), self.partition.told(node.bound)
        return Run(node.number, node.parent, key, bound, tuple(node.steps), tuple(node.endings))

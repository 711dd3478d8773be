"""A partition to its runs: each is followed from the event that it bound last to its end, and told on the way.

Runs are followed one after the other, and not event by event as the interpreter does it. A run is what it has bound;
an event that it binds makes another run of it, which has this one as its parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kleene.analysis.analyzed import Component
from kleene.errors import ExecutionError
from kleene.ir.options import Format, Strategy
from kleene.why.findings import EnoughError, Findings
from kleene.why.model import Check, Ending, Event, Kind, Match, NearMiss, Run, Step, Try
from kleene.why.node import Node, Tried, failed_alike
from kleene.why.overlaps import winners
from kleene.why.partition import CONTIGUOUS, Partition, Selected, Verdict, failures
from kleene.why.tally import Tally

LOOKS_AHEAD = 200
"""How many events are looked at to find the one that came too late."""


class Walk:
    """Follows the runs of one partition."""

    def __init__(self, partition: Partition, findings: Findings, tally: Tally) -> None:
        self.partition, self.findings, self.query = partition, findings, partition.query
        self.tally = tally
        self._told: list[Node] = []
        self._accepted: list[tuple[Selected, Node]] = []

    def follow(self, format_: Format) -> None:
        """Follows every run, and chooses among the matches."""
        self.tally.look_at(self.partition)
        try:
            for event in self._starts():
                tried = self._try_begin((), event, [])
                if tried.holds:
                    step = self._step(event, [tried], ignored=False) if self._is_chosen([event]) else None
                    self._follow_from(event, [step] if step else [])
                elif tried.is_of_type and self._is_chosen([event]):
                    self._tell_not_begun(event, tried)
        except EnoughError:
            self.findings.is_cut = True
        self._choose(format_)
        self.findings.runs += [self._run(node) for node in self._told]

    def _starts(self) -> list[int]:
        """The events that runs may begin with; those that are asked for come first, as long as runs may be followed."""
        events = range(len(self.partition))
        return sorted(events, key=lambda event: self.partition.rows[event] not in self.findings.chosen)

    def _follow_from(self, event: int, steps: list[Step]) -> None:
        waiting: list[tuple[Selected, int | None, list[Step]]] = [(((event,),), None, steps)]
        while waiting:
            run, parent, born = waiting.pop()
            node = self._new_node(run, parent, born)
            children = self._follow_run(node)
            waiting += [(child, node.number, step) for child, step in reversed(children)]

    def _new_node(self, run: Selected, parent: int | None, steps: list[Step]) -> Node:
        if self.tally.runs >= self.findings.limits.runs:
            raise EnoughError
        self.tally.reached(run)
        node = Node(self.tally.runs, parent, run, steps)
        if self._is_chosen(event for part in run for event in part):
            self._tell(node)
        return node

    # --- one run ---------------------------------------------------------------------------------------------------

    def _follow_run(self, node: Node) -> list[tuple[Selected, list[Step]]]:
        """The runs that continue it, each with the step that made it. Its ends are noted in the node."""
        is_whole = len(node.run) == len(self.query.components)
        unfinished = failures(self.partition.complete_verdicts(node.run)) if is_whole else []
        is_candidate = is_whole and not unfinished
        if is_candidate:
            self._judge(node)
        if is_whole and not self.query.components[-1].is_kleene:
            return []
        children, ending = self._live(node)
        if children:
            ending = Ending(Kind.WENT_ON)
        if not is_candidate:
            node.endings.append(ending)
            self.tally.ends[ending.kind.value] += 1
            if not children:
                self._note_dead_end(node, ending, unfinished)
        return children

    def _live(self, node: Node) -> tuple[list[tuple[Selected, list[Step]]], Ending]:
        """Shows the run one event after the other, until it ends."""
        children: list[tuple[Selected, list[Step]]] = []
        complete: list[Verdict] | None = None
        component = self.query.components[len(node.run) - 1]
        for event in range(node.run[-1][-1] + 1, len(self.partition)):
            if not self.partition.is_in_window(node.run[0][0], event):
                node.ended_at = event
                if self._is_chosen([event]):
                    self._tell(node)
                return children, Ending(Kind.WINDOW, self.partition.event(event))
            if complete is None:
                complete = self._complete(node.run)
            tries = self._tries(node.run, event, complete)
            held = [tried for tried in tries if tried.holds]
            goes_on = self._ignores(component, held)
            self._note_refusals(node, event, tries)
            step = self._tell_step(node, event, tries, goes_on)
            for tried in held:
                born = step or self._born(event, tried)
                children.append((tried.run, [born] if born else []))
            if not goes_on:
                node.ended_at = event
                return children, Ending(Kind.CONTIGUITY, self.partition.event(event))
        return children, Ending(Kind.END)

    def _ignores(self, component: Component, held: list[Tried]) -> bool:
        """Whether the run goes on behind the event, as if it had not been."""
        if self.query.strategy in CONTIGUOUS:
            return False
        if self.query.strategy is Strategy.SKIP_TILL_ANY_MATCH:
            return True
        decisive = "take" if component.is_kleene else "begin"
        return not any(tried.move == decisive for tried in held)

    def _tries(self, run: Selected, event: int, complete: list[Verdict]) -> list[Tried]:
        tries = [self._try_take(run, event)] if self.query.components[len(run) - 1].is_kleene else []
        if len(run) < len(self.query.components):
            tries.append(self._try_begin(run, event, complete))
        return tries

    def _complete(self, run: Selected) -> list[Verdict]:
        verdicts = self.partition.complete_verdicts(run) if len(run) < len(self.query.components) else []
        if verdicts:
            self.tally.tried((self._name(run), "complete"), verdicts, self.partition.rows[run[-1][-1]])
        failures(verdicts)
        return verdicts

    def _name(self, run: Selected) -> str:
        return self.query.components[len(run) - 1].name

    def _try_begin(self, run: Selected, event: int, complete: list[Verdict]) -> Tried:
        component = self.query.components[len(run)]
        tried = Tried("begin", component, (*run, (event,)), self.partition.is_of_type(event, component.types), [])
        if tried.is_of_type:
            verdicts = self.partition.begin_verdicts(run, event)
            if all(verdict.holds for verdict in complete):
                failures(verdicts)
            self.tally.tried((component.name, "begin"), verdicts, self.partition.rows[event])
            left = [((self._name(run), "complete"), verdict) for verdict in complete]
            tried.verdicts = left + [((component.name, "begin"), verdict) for verdict in verdicts]
        return tried

    def _try_take(self, run: Selected, event: int) -> Tried:
        component = self.query.components[len(run) - 1]
        longer = (*run[:-1], (*run[-1], event))
        tried = Tried("take", component, longer, self.partition.is_of_type(event, component.types), [])
        if tried.is_of_type:
            verdicts = self.partition.take_verdicts(run, event)
            failures(verdicts)
            self.tally.tried((component.name, "take"), verdicts, self.partition.rows[event])
            tried.verdicts = [((component.name, "take"), verdict) for verdict in verdicts]
        return tried

    # --- complete runs -----------------------------------------------------------------------------------------------

    def _judge(self, node: Node) -> None:
        """Whether a run that has bound everything is a match, or which negations and conditions of HAVING say no."""
        endings = self._objections(node.run, self.tally)
        if not endings:
            self._accepted.append((node.run, node))
            return
        node.endings += endings
        self.tally.ends[endings[0].kind.value] += 1
        [ending, *others] = endings
        if not others and (ending.kind is Kind.HAVING or self._having_holds(node.run)):
            check = ending.checks[0] if ending.kind is Kind.HAVING else None
            self._miss(node, ending.kind, ending.variable, None, ending.by, check, True)

    def _objections(self, run: Selected, tally: Tally | None = None) -> list[Ending]:
        """Each negation that forbids the run, with the first event that does, and each part of HAVING that fails."""
        found: list[Ending] = []
        for negation in self.query.negations:

            def note(event: int, verdicts: list[Verdict], name: str = negation.name) -> None:
                if tally is not None:
                    tally.tried((name, "forbid"), verdicts, self.partition.rows[event])

            event, verdicts = next(self.partition.forbidding(negation, run, note), (None, []))
            if event is not None:
                checks = tuple(map(self.partition.check, verdicts))
                found.append(Ending(Kind.NEGATION, self.partition.event(event), checks, negation.name))
        if found:
            return found  # HAVING is asked of matches only: in others it may even be an error
        failed = [verdict for verdict in self.partition.having_verdicts(run) if not verdict.holds]
        return [Ending(Kind.HAVING, None, (self.partition.check(verdict),)) for verdict in failed]

    def _having_holds(self, run: Selected) -> bool:
        try:
            return all(verdict.holds for verdict in self.partition.having_verdicts(run))
        except ExecutionError:
            return False

    def _choose(self, format_: Format) -> None:
        """Gives the matches their numbers, and says of those that are not given out which they lost against."""
        runs = [run for run, _ in self._accepted]
        lost_to = winners(runs) if format_ is Format.NON_OVERLAPPING else dict[Selected, Selected]()
        numbers: dict[Selected, int] = {}
        for run in sorted(run for run in runs if run not in lost_to):
            numbers[run] = len(self.findings.matches) + 1
            self.findings.matches.append(Match(numbers[run], self.partition.bound(run)))
        for run, node in self._accepted:
            kind = Kind.LOST if run in lost_to else Kind.MATCH
            node.endings.insert(0, Ending(kind, match=numbers[lost_to.get(run, run)]))
            self.tally.ends[kind.value] += 1

    # --- near misses -------------------------------------------------------------------------------------------------

    def _note_refusals(self, node: Node, event: int, tries: Sequence[Tried]) -> None:
        """Remembers what keeps the run where it is: refusals of what comes next, not of what it may do besides."""
        for tried in tries:
            is_next = tried.move == "begin" or len(node.run) == len(self.query.components)
            if (is_next or self.query.strategy in CONTIGUOUS) and tried.failed:
                node.refused_by.update((place, verdict.conjunct) for place, verdict in tried.failed)
                if len(tried.failed) == 1 and not any(failed_alike(tried, other) for _, other in node.near):
                    node.near.append((event, tried))

    def _note_dead_end(self, node: Node, ending: Ending, unfinished: list[Verdict]) -> None:
        self.tally.stopped(node.refused_by)
        name = self._name(node.run)
        if unfinished:
            self.tally.stopped(((name, "complete"), verdict.conjunct) for verdict in unfinished)
        if len(unfinished) == 1 and not node.near:
            check = self.partition.check(unfinished[0])
            self._miss(node, Kind.PREDICATE, name, None, None, check, not self._objections(node.run))
        for event, tried in node.near:
            [(_, verdict)] = tried.failed
            check = self.partition.check(verdict)
            would = self._would_match(tried.run)
            self._miss(node, Kind.PREDICATE, tried.component.name, event, None, check, would)
        if ending.kind in (Kind.WINDOW, Kind.CONTIGUITY) and not unfinished:
            late = self._too_late(node, ending)
            if late is not None:
                event, tried = late
                would = self._would_match(tried.run)
                self._miss(node, ending.kind, tried.component.name, event, ending.by, None, would)

    def _too_late(self, node: Node, ending: Ending) -> tuple[int, Tried] | None:
        """The first event that would have continued the run, but for the window or for an event in between."""
        is_window = ending.kind is Kind.WINDOW
        is_contiguous = self.query.strategy in CONTIGUOUS
        most = 1 if is_window and is_contiguous else LOOKS_AHEAD
        first = node.ended_at if is_window else node.ended_at + 1
        for event in range(first, min(first + most, len(self.partition))):
            if not is_window and not self.partition.is_in_window(node.run[0][0], event):
                return None
            for tried in self._tries_uncounted(node.run, event):
                is_next = tried.move == "begin" or len(node.run) == len(self.query.components)
                if is_next and tried.holds:
                    return event, tried
        return None

    def _tries_uncounted(self, run: Selected, event: int) -> list[Tried]:
        counts, self.tally = self.tally, Tally(self.query)
        try:
            return self._tries(run, event, self._complete(run))
        finally:
            self.tally = counts

    def _would_match(self, run: Selected) -> bool:
        """Whether the run, had it bound the event, would have been a match."""
        if len(run) < len(self.query.components):
            return False
        return all(verdict.holds for verdict in self.partition.complete_verdicts(run)) and not self._objections(run)

    def _miss(
        self,
        node: Node,
        kind: Kind,
        variable: str | None,
        event: int | None,
        by: Event | None,
        check: Check | None,
        would_match: bool,
    ) -> None:
        key, bound = self.partition.key_text(), self.partition.bound(node.run)
        told = None if event is None else self.partition.event(event)
        self.findings.misses.append(NearMiss(node.number, key, bound, kind, variable, told, by, check, would_match))

    # --- telling -----------------------------------------------------------------------------------------------------

    def _is_chosen(self, events: Iterable[int]) -> bool:
        return any(self.partition.rows[event] in self.findings.chosen for event in events)

    def _tell(self, node: Node) -> None:
        if not node.is_told:
            node.is_told = True
            if len(self.findings.runs) + len(self._told) < self.findings.limits.told:
                self._told.append(node)
            else:
                self.findings.untold_runs += 1

    def _tell_step(self, node: Node, event: int, tries: Sequence[Tried], ignored: bool) -> Step | None:
        """A step that is told: all of them, if the run has bound an event that was asked for."""
        is_asked = self._is_chosen([event])
        if not is_asked and not node.is_told:
            return None
        self._tell(node)
        step = self._step(event, tries, ignored)
        node.steps.append(step)
        return step

    def _born(self, event: int, tried: Tried) -> Step | None:
        return self._step(event, [tried], ignored=False) if self._is_chosen([event]) else None

    def _step(self, event: int, tries: Sequence[Tried], ignored: bool) -> Step:
        return Step(self.partition.event(event), tuple(map(self._try, tries)), ignored)

    def _try(self, tried: Tried) -> Try:
        if not tried.is_of_type:
            return Try(tried.move, tried.component.name, tried.component.types)
        checks = tuple(self.partition.check(verdict) for _, verdict in tried.verdicts)
        return Try(tried.move, tried.component.name, (), checks)

    def _tell_not_begun(self, event: int, tried: Tried) -> None:
        node = Node(0, None, (), [self._step(event, [tried], ignored=False)], [Ending(Kind.NOT_BEGUN)])
        self._tell(node)

    def _run(self, node: Node) -> Run:
        bound = self.partition.bound(node.run)
        key = self.partition.key_text()
        return Run(node.number, node.parent, key, bound, tuple(node.steps), tuple(node.endings))

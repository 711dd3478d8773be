"""A partition of the regular-expression operator to its partial matches, each from the event that it begins with.

All events from there on are in a partial match, so a run is its start; what may come next is a set of states of the
automaton. The interpreter works from the pattern itself, so that the two can be held against each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kleene.automaton.model import Automaton
from kleene.engine.regex_reference import AggregateBindings, Aggregates, aggregates_of
from kleene.ir import expr as ir
from kleene.why.checking import decided, made_check, raise_first
from kleene.why.findings import EnoughError, Findings
from kleene.why.model import Bound, Check, Ending, Kind, Match, NearMiss, Run, Step, Try
from kleene.why.row_partition import RowPartition
from kleene.why.row_tally import RowTally
from kleene.why.rows import TRIES_PER_RUN


@dataclass(slots=True)
class _Partial:
    """A partial match: the states that it can be in, and what was tried for its last event."""

    number: int
    start: int
    states: set[int]
    aggregates: Aggregates
    steps: list[Step] = field(default_factory=list)
    tries: tuple[Try, ...] = ()
    bound: set[str] = field(default_factory=set)


class RegexWalk:
    def __init__(self, partition: RowPartition, automaton: Automaton, findings: Findings, tally: RowTally) -> None:
        self.partition, self.automaton, self.findings, self.tally = partition, automaton, findings, tally
        query = partition.query
        self._aggregates = dict.fromkeys(aggregates_of([condition for _, condition in query.conditions]), True)

    def follow(self) -> None:
        self.tally.events += len(self.partition)
        try:
            self._follow()
        except EnoughError:
            self.findings.is_cut = True

    def _follow(self) -> None:
        partial: list[_Partial] = []  # the oldest first
        runs = self.tally.runs
        for row in range(len(self.partition)):
            runs += 1
            tried = [*partial, _Partial(runs, row, {0}, Aggregates(self._aggregates))]
            partial = [match for match in tried if self._step(match, row)]
            complete = next((match for match in partial if self._is_complete(match)), None)
            if complete is not None:
                number = self._give_out(complete, row)
                for match in partial:
                    kind = Kind.MATCH if match is complete else Kind.LOST
                    self._end(match, row, Ending(kind, self.partition.event(row), match=number))
                partial = []
        for match in partial:
            self._end(match, len(self.partition) - 1, Ending(Kind.END))

    def _step(self, match: _Partial, row: int) -> bool:
        """Shows the event to the partial match; whether it goes on with it."""
        bindings = AggregateBindings(self.partition.columns, row, match.aggregates)
        targets = dict.fromkeys(edge.target for state in sorted(match.states) for edge in self.automaton.edges[state])
        wanted = [
            (target, self.automaton.states[target].variable) for target in targets if target != self.automaton.final
        ]
        tries = {name: self._try(name, bindings, row) for name in dict.fromkeys(name or "" for _, name in wanted)}
        left = {target for target, name in wanted if tries[name or ""].holds}
        match.tries = tuple(tries.values())
        match.steps.append(Step(self.partition.event(row), match.tries, bound=row - match.start))
        if not left:
            self._fail(match, row)
            return False
        match.bound.update(name for name, one in tries.items() if one.holds)
        match.states = left
        match.aggregates.add(bindings)
        return True

    def _try(self, variable: str, bindings: AggregateBindings, row: int) -> Try:
        if self.tally.tries >= TRIES_PER_RUN * self.findings.limits.runs:
            raise EnoughError
        parts = self.tally.parts[variable]
        results = [decided(part, bindings) for part in parts]
        raise_first(results)
        checks = tuple(
            made_check(part, bindings, result, lambda node: self._row_of(node, row))
            for part, result in zip(parts, results, strict=True)
        )
        self.tally.tried(variable, checks, self.partition.rows[row])
        return Try("row", variable, (), checks)

    def _row_of(self, part: ir.Expr, row: int) -> int | None:
        return self.partition.rows[row] if isinstance(part, ir.Attribute) else None

    def _is_complete(self, match: _Partial) -> bool:
        final = self.automaton.final
        return any(edge.target == final for state in match.states for edge in self.automaton.edges[state])

    # --- ends --------------------------------------------------------------------------------------------------------

    def _give_out(self, match: _Partial, row: int) -> int:
        number = len(self.findings.matches) + 1
        self.findings.matches.append(Match(number, self._bound(match, row)))
        return number

    def _bound(self, match: _Partial, row: int) -> Bound:
        """The events so far; several predicates may hold for one of them, so they are not told apart."""
        events = tuple(self.partition.event(at) for at in range(match.start, row + 1))
        return (("events", events),) if events else ()

    def _fail(self, match: _Partial, row: int) -> None:
        """No predicate that may come next holds: partition contiguity lets no event be passed over."""
        failed = [(one.variable, check) for one in match.tries for check in one.failed]
        self.tally.stopped((variable, check.predicate) for variable, check in failed)
        if match.start < row:
            for one in match.tries:
                if len(one.failed) == 1:
                    self._miss(match, row, one.variable, one.failed[0])
        checks = tuple(check for _, check in failed)
        kind = Kind.PREDICATE if match.start < row else Kind.NOT_BEGUN
        self._end(match, row - 1, Ending(kind, self.partition.event(row), checks))

    def _miss(self, match: _Partial, row: int, variable: str, check: Check) -> None:
        targets = {
            edge.target
            for state in match.states
            for edge in self.automaton.edges[state]
            if self.automaton.states[edge.target].variable == variable
        }
        ends = {edge.target for target in targets for edge in self.automaton.edges[target]}
        would = self.automaton.final in ends
        event, bound = self.partition.event(row), self._bound(match, row - 1)
        self.findings.misses.append(
            NearMiss(match.number, self.partition.key, bound, Kind.PREDICATE, variable, event, None, check, would)
        )

    def _end(self, match: _Partial, last: int, ending: Ending) -> None:
        self.tally.reached(match.bound)
        self.tally.ends[ending.kind.value] += 1
        seen = range(match.start, min(last + 2, len(self.partition)))
        if any(self.partition.rows[row] in self.findings.chosen for row in seen):
            bound = self._bound(match, last)
            run = Run(match.number, None, self.partition.key, bound, tuple(match.steps), (ending,))
            self.findings.tell(run)

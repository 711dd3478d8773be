"""A combination of events to the reasons why it is not a match; of no reasons, it is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from kleene.ir.options import Strategy
from kleene.why.model import Ending, Kind, Step, Try
from kleene.why.partition import CONTIGUOUS, Partition, Selected, Verdict, failures


@dataclass(slots=True)
class Combination:
    """The events of one partition, asked one after the other whether they can be what they are said to be."""

    partition: Partition
    run: Selected
    steps: list[Step] = field(default_factory=list)
    reasons: list[Ending] = field(default_factory=list)

    def judge(self) -> None:
        events = [event for part in self.run for event in part]
        for before, event in pairwise(events):
            if event <= before:
                self.reasons.append(Ending(Kind.ORDER, self.partition.event(event)))
                return
        for number in range(len(events)):
            self._select(self._first(number), events[number])
        failed = failures(self.partition.complete_verdicts(self.run))
        self.reasons += [Ending(Kind.PREDICATE, None, (self.partition.check(verdict),)) for verdict in failed]
        if not self.partition.is_in_window(events[0], events[-1]):
            self.reasons.append(Ending(Kind.WINDOW, self.partition.event(events[-1])))
        self._judge_negations()
        if not self.reasons:
            having = self.partition.having_verdicts(self.run)
            failed = [verdict for verdict in having if not verdict.holds]
            self.reasons += [Ending(Kind.HAVING, None, (self.partition.check(verdict),)) for verdict in failed]

    def _first(self, count: int) -> Selected:
        """The run as it is when it has bound that many events."""
        left, bound = count, list[tuple[int, ...]]()
        for part in self.run:
            if left > 0:
                bound.append(part[:left])
                left -= len(part)
        return tuple(bound)

    def _select(self, run: Selected, event: int) -> None:
        """Asks whether the run can bind the event, and pass over all that lies before it."""
        if run:
            self._judge_passed_over(run, event)
        is_take = bool(run) and len(run[-1]) < len(self.run[len(run) - 1])
        component = self.partition.query.components[len(run) - (1 if is_take else 0)]
        move = "take" if is_take else "begin"
        if not self.partition.is_of_type(event, component.types):
            self.steps.append(Step(self.partition.event(event), (Try(move, component.name, component.types),)))
            self.reasons.append(Ending(Kind.TYPE, self.partition.event(event), (), component.name))
            return
        verdicts = self.partition.take_verdicts(run, event) if is_take else self._begin_verdicts(run, event)
        checks = tuple(map(self.partition.check, verdicts))
        self.steps.append(Step(self.partition.event(event), (Try(move, component.name, (), checks),)))
        told = self.partition.event(event)
        self.reasons += [Ending(Kind.PREDICATE, told, (check,), component.name) for check in checks if not check.holds]

    def _begin_verdicts(self, run: Selected, event: int) -> list[Verdict]:
        complete = self.partition.complete_verdicts(run) if run else []
        return complete + self.partition.begin_verdicts(run, event)

    def _judge_passed_over(self, run: Selected, event: int) -> None:
        strategy = self.partition.query.strategy
        for between in range(run[-1][-1] + 1, event):
            if strategy in CONTIGUOUS:
                self.reasons.append(Ending(Kind.CONTIGUITY, self.partition.event(between)))
                return
            if strategy is Strategy.SKIP_TILL_NEXT_MATCH and self._must_select(run, between):
                self.reasons.append(Ending(Kind.NEXT_MATCH, self.partition.event(between)))
                return

    def _must_select(self, run: Selected, event: int) -> bool:
        components = self.partition.query.components
        if not self.partition.is_in_window(run[0][0], event):
            return False  # the window says so already
        component = components[len(run) - 1]
        if component.is_kleene:
            verdicts = self.partition.take_verdicts(run, event)
        elif len(run) < len(components):
            component = components[len(run)]
            verdicts = self._begin_verdicts(run, event)
        else:
            return False
        return self.partition.is_of_type(event, component.types) and not failures(verdicts)

    def _judge_negations(self) -> None:
        for negation in self.partition.query.negations:
            event, verdicts = next(self.partition.forbidding(negation, self.run), (None, []))
            if event is not None:
                checks = tuple(map(self.partition.check, verdicts))
                self.reasons.append(Ending(Kind.NEGATION, self.partition.event(event), checks, negation.name))

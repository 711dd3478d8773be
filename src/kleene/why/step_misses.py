"""What nearly happened to a run of a pattern in steps: what refused it an event, and what it would have come to.

The end of a run is looked behind, for a while: had it not been for the window, for the event in between or for the
negation, which event would the run have bound next?
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleene.engine.steps.conditions import Bound
from kleene.errors import ExecutionError
from kleene.why.model import Ending, Kind, NearMiss
from kleene.why.step_node import Late, StepNode
from kleene.why.step_partition import Moves, StepPartition
from kleene.why.step_tally import StepTally

LOOKS_AHEAD = 50
"""How many events are looked at behind the end of a run."""


class LookAhead:
    """Looks behind the ends of runs; each look counts as a try, so that all of them together are bounded."""

    def __init__(self, partition: StepPartition, tally: StepTally) -> None:
        self.partition, self.tally = partition, tally

    def look(self, node: StepNode, state: int, ending: Ending, number: int, most: int = LOOKS_AHEAD) -> None:
        """Finds what the run would have come to, had it not been for its end: a match, or an event that it binds."""
        places = self.partition.places[number : number + most]
        try:
            if ending.kind is Kind.NEGATION and self.partition.states.may_end[state]:
                node.late.append(Late(ending, None, None, self._would_end_well(node.bound, state, places)))
                return
            late = self._next_event(node.bound, state, ending, places)
        except ExecutionError:
            return  # what never was need not be decided
        if late is not None or ending.kind is Kind.NEGATION:
            node.late.append(late or Late(ending, None, None, False))

    def _next_event(self, bound: Bound, state: int, ending: Ending, places: Sequence[int]) -> Late | None:
        states, is_timed = [state], ending.kind not in (Kind.WINDOW, Kind.GAP, Kind.SINCE)
        for place in places:
            states = [own for own in states if not is_timed or self.partition.over(own, bound, place) is None]
            moves = self._unhindered(bound, states, place, ending)
            takes = [take for own in moves for take in own.takes]
            if takes:
                take = max(takes, key=lambda own: own.completes)
                name = self.partition.query.components[take.step].name
                return Late(ending, self.partition.event(place), name, take.completes)
            states = list(dict.fromkeys(target for own in moves for target in own.ignores))
        return None

    def _would_end_well(self, bound: Bound, state: int, places: Sequence[int]) -> bool:
        """Whether time would have made a match of the run, if no event were one that must not come."""
        states, ending = [state], Ending(Kind.NEGATION)
        for place in places:
            over = [own for own in states if self.partition.over(own, bound, place) is not None]
            if any(self.partition.states.may_end[own] for own in over):
                return True
            moves = self._unhindered(bound, [own for own in states if own not in over], place, ending)
            states = list(dict.fromkeys(target for own in moves for target in own.ignores))
        is_at_end = not places or places[-1] == self.partition.places[-1]
        return is_at_end and any(self.partition.states.may_end[own] for own in states)

    def _unhindered(self, bound: Bound, states: Sequence[int], place: int, ending: Ending) -> list[Moves]:
        """The moves from these states, whatever has ended the run."""
        self.tally.tries += len(states)
        moves = [self.partition.moves(state, bound, place, but_for=ending.kind) for state in states]
        return [own for own in moves if not own.hit]


def misses_of(partition: StepPartition, node: StepNode) -> Iterator[NearMiss]:
    """The near misses of a run that came to nothing."""
    key, bound = partition.base.key_text(), partition.told(node.bound)
    for near in node.near:
        if near.tried.failed:
            kind, check, objection = Kind.PREDICATE, near.tried.failed[0], None
        else:
            [objection] = near.tried.objections
            kind, check = objection.kind, None
        by = None if objection is None else objection.after
        told = (kind, near.tried.variable, near.event, by, check, near.would_match, objection)
        yield NearMiss(node.number, key, bound, *told)
    for late in node.late:
        ending = late.ending
        variable = ending.variable if ending.kind is Kind.NEGATION else late.variable
        objection = ending if ending.kind in (Kind.GAP, Kind.SINCE) else None
        yield NearMiss(
            node.number, key, bound, ending.kind, variable, late.event, ending.by, None, late.would_match, objection
        )

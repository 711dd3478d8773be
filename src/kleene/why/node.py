"""A run while it is followed, and an event that is tried for one of its moves."""

from __future__ import annotations

from dataclasses import dataclass, field

from kleene.analysis.analyzed import Component, Conjunct
from kleene.why.model import Ending, Step
from kleene.why.partition import Selected, Verdict
from kleene.why.tally import Place


@dataclass(slots=True)
class Tried:
    """An event that was tried for a move of a run: the types it is not of, or what its predicates came to."""

    move: str
    component: Component
    run: Selected  # with the event
    is_of_type: bool
    verdicts: list[tuple[Place, Verdict]]

    @property
    def holds(self) -> bool:
        return self.is_of_type and all(verdict.holds for _, verdict in self.verdicts)

    @property
    def failed(self) -> list[tuple[Place, Verdict]]:
        return [item for item in self.verdicts if not item[1].holds] if self.is_of_type else []


@dataclass(slots=True)
class Node:
    """A run that is being followed."""

    number: int
    parent: int | None
    run: Selected
    steps: list[Step]
    endings: list[Ending] = field(default_factory=list)
    near: list[tuple[int, Tried]] = field(default_factory=list)
    refused_by: set[tuple[Place, Conjunct]] = field(default_factory=set)
    ended_at: int = -1  # the event that ended it
    is_told: bool = False


def failed_alike(one: Tried, other: Tried) -> bool:
    return one.move == other.move and one.failed[0][1].conjunct == other.failed[0][1].conjunct

"""Matches of steps as arrays: steps may have no event, and rounds of a group interleave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kleene.engine.matches import Array, FlatMatches
from kleene.engine.steps.conditions import Bound


@dataclass(frozen=True, slots=True)
class StepMatches(FlatMatches):
    """Matches whose first and last events may be of any step."""

    def __getitem__(self, part: slice) -> StepMatches:
        begin, end, _ = part.indices(len(self))
        offsets = self.offsets[begin : end + 1]
        positions = self.positions[offsets[0] : offsets[-1]] if len(offsets) else self.positions[:0]
        return StepMatches(offsets - self.offsets[begin], self.lengths[begin:end], positions)

    @property
    def first(self) -> Array:
        return np.asarray(np.minimum.reduceat(self.positions, self.offsets[:-1]) if len(self) else self.positions[:0])

    @property
    def last(self) -> Array:
        return np.asarray(np.maximum.reduceat(self.positions, self.offsets[:-1]) if len(self) else self.positions[:0])

    @property
    def positions_in_order(self) -> Array:
        numbers = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return np.asarray(self.positions[np.lexsort((self.positions, numbers))])


def step_matches(matches: Sequence[Bound], steps: int) -> StepMatches:
    """The matches in their order; the events of each step stand together."""
    lengths = np.zeros((len(matches), steps), np.int64)
    positions: list[int] = []
    for number, match in enumerate(matches):
        for step, row in sorted(match):
            lengths[number, step] += 1
            positions.append(row)
    offsets = np.concatenate([[0], np.cumsum(lengths.sum(axis=1))]).astype(np.int64)
    return StepMatches(offsets, lengths, np.array(positions, np.int64))


def output_order(match: Bound) -> tuple[object, ...]:
    """By the last event, then the first, then all of them; of equal events, the longer earlier step first."""
    rows, steps = tuple(row for _, row in match), tuple(step for step, _ in match)
    return rows[-1], rows[0], rows, tuple(-steps.count(step) for step in range(max(steps) + 1)), steps

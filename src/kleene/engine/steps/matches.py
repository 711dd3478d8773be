"""Matches of steps as arrays: steps may have no event, and rounds of a group interleave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kleene.engine.compiled.arrangement import chosen_matches, order_of
from kleene.engine.compiled.arrays.orders import OUTPUT_ORDER
from kleene.engine.matches import Array, FlatMatches, joined
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


def joined_steps(parts: Sequence[FlatMatches]) -> StepMatches:
    whole = joined(parts, parts[0].lengths.shape[1])
    return StepMatches(whole.offsets, whole.lengths, whole.positions)


def in_output_order(matches: StepMatches, has_groups: bool, jit: bool) -> StepMatches:
    """The matches sorted; where there are groups, the events of a match are compared as they came."""
    if not has_groups:
        return _chosen(matches, _order(FlatMatches(matches.offsets, matches.lengths, matches.positions), jit))
    numbers = _order(FlatMatches(matches.offsets, matches.lengths, matches.positions_in_order), jit)
    found = _chosen(matches, numbers)
    # Rounds of a group may bind the same events to steps in other ways: then the earlier step has the earlier events.
    first, last, sizes = found.first, found.last, np.diff(found.offsets)
    is_like_next = (first[1:] == first[:-1]) & (last[1:] == last[:-1]) & (sizes[1:] == sizes[:-1])
    if not is_like_next.any():
        return found
    keys = [output_order(_bound(found, number)) for number in range(len(found))]
    return _chosen(found, np.array(sorted(range(len(found)), key=keys.__getitem__), np.int64))


def _order(matches: FlatMatches, jit: bool) -> Array:
    return order_of(matches, np.zeros(len(matches), np.int64), OUTPUT_ORDER, jit)


def _chosen(matches: FlatMatches, numbers: Array) -> StepMatches:
    found = chosen_matches(matches, numbers)
    return StepMatches(found.offsets, found.lengths, found.positions)


def _bound(matches: StepMatches, number: int) -> Bound:
    parts = enumerate(matches.match(number).selected)
    return tuple(sorted(((step, row) for step, rows in parts for row in rows), key=lambda event: event[1]))


def output_order(match: Bound) -> tuple[object, ...]:
    """By the last event, then the first, then all of them; of equal events, the longer earlier step first."""
    rows, steps = tuple(row for _, row in match), tuple(step for step, _ in match)
    return rows[-1], rows[0], rows, tuple(-steps.count(step) for step in range(max(steps) + 1)), steps

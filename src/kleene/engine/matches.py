"""Matches: one, many as arrays, what engines of SASE queries find in a table, and which of them are given out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Match:
    """The selected events: for each positive component, in order, the positions of its events in the table."""

    selected: tuple[tuple[int, ...], ...]

    @property
    def first(self) -> int:
        return self.selected[0][0]

    @property
    def last(self) -> int:
        return self.selected[-1][-1]

    @property
    def positions(self) -> tuple[int, ...]:
        return tuple(position for events in self.selected for position in events)

    @property
    def output_order(self) -> tuple[object, ...]:
        """By the last event, then the first, then all of them; of equal events, the longer earlier variable first."""
        return self.last, self.first, self.positions, self._longer_first

    @property
    def _longer_first(self) -> tuple[int, ...]:
        return tuple(-len(events) for events in self.selected)


@dataclass(frozen=True, slots=True)
class FlatMatches:
    """Many matches as arrays: match m has the positions from offsets[m] to offsets[m + 1].

    lengths[m, c] of them are of component c, and components stand in their order.
    """

    offsets: Array
    lengths: Array
    positions: Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, part: slice) -> FlatMatches:
        begin, end, _ = part.indices(len(self))
        offsets = self.offsets[begin : end + 1]
        positions = self.positions[offsets[0] : offsets[-1]] if len(offsets) else self.positions[:0]
        return FlatMatches(offsets - self.offsets[begin], self.lengths[begin:end], positions)

    @property
    def first(self) -> Array:
        return np.asarray(self.positions[self.offsets[:-1]])

    @property
    def last(self) -> Array:
        return np.asarray(self.positions[self.offsets[1:] - 1])

    @property
    def positions_in_order(self) -> Array:
        """The positions of each match as they ascend."""
        return self.positions

    def begins(self, component: int) -> Array:
        """Where the component's positions begin in `positions`, for each match."""
        return np.asarray(self.offsets[:-1] + self.lengths[:, :component].sum(axis=1))

    def of_component(self, component: int) -> Array:
        """The positions of the component's events, match after match."""
        lengths = self.lengths[:, component]
        ends = np.cumsum(lengths)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
        return np.asarray(self.positions[np.repeat(self.begins(component), lengths) + within])

    def match(self, number: int) -> Match:
        ends = self.offsets[number] + np.cumsum(self.lengths[number])
        parts = np.split(self.positions[: ends[-1]], ends[:-1])
        parts[0] = parts[0][self.offsets[number] :]
        return Match(tuple(tuple(part.tolist()) for part in parts))


def flat_matches(matches: Sequence[Match], components: int) -> FlatMatches:
    lengths = np.array([[len(events) for events in match.selected] for match in matches], np.int64)
    lengths = lengths.reshape(len(matches), components)
    positions = [position for match in matches for position in match.positions]
    offsets = np.concatenate([[0], np.cumsum(lengths.sum(axis=1))]).astype(np.int64)
    return FlatMatches(offsets, lengths, np.array(positions, np.int64))


def joined(parts: Sequence[FlatMatches], components: int) -> FlatMatches:
    if not parts:
        return flat_matches([], components)
    shifts = np.concatenate([[0], np.cumsum([len(part.positions) for part in parts])])
    offsets = [part.offsets[1:] + shift for part, shift in zip(parts, shifts, strict=False)]
    return FlatMatches(
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.positions for part in parts]),
    )


def without_overlaps(matches: Iterable[Match]) -> Iterator[Match]:
    """The matches of one partition of which none begins before the one given out before it has ended.

    They come in the order of their last events.
    """
    ended = -1
    for last, together in groupby(matches, key=lambda match: match.last):
        chosen = min(together, key=_preferred)
        if chosen.first > ended:
            yield chosen
            ended = last


def _preferred(match: Match) -> tuple[object, ...]:
    """Of matches with the same last event: began last, fewer events, smallest positions, longer earlier variable."""
    return -match.first, len(match.positions), match.positions, match._longer_first


# --- what engines find: matches in blocks, so that nobody has to hold all of them ---


@dataclass(frozen=True, slots=True)
class FoundMatches:
    """Some matches, in output order, whose positions are those of the table.

    Matches that end at the same event come together, or in the right order one after the other. Where they are settled,
    all matches up to here come before all that are found later.
    """

    table: pa.Table
    matches: FlatMatches
    is_settled: bool


def size_of(matches: FlatMatches) -> int:
    """Bytes that the matches take."""
    return int(matches.positions.nbytes + matches.lengths.nbytes + matches.offsets.nbytes)


def whole_events(
    parts: Iterable[tuple[FlatMatches, Array]], by_first: bool = False
) -> Iterator[tuple[FlatMatches, Array]]:
    """The same matches, cut so that those with one last event, or one first event, stay together.

    Matches come in the order of those events; each part has an array of as many values beside it.
    """
    held: list[tuple[FlatMatches, Array]] = []
    for part in parts:
        found, values = part
        if not len(found):
            continue
        ends = found.first if by_first else found.last
        begin = int(np.flatnonzero(ends == ends[-1])[0])
        before = held[-1][0] if held else None
        is_same = before is not None and (before.first[-1] if by_first else before.last[-1]) == ends[0]
        if before is not None and not is_same:
            yield _together(held)
            held = []
        if begin > 0:
            yield _together([*held, (found[:begin], values[:begin])])
            held = []
        held.append((found[begin:], values[begin:]))
    if held:
        yield _together(held)


def _together(parts: list[tuple[FlatMatches, Array]]) -> tuple[FlatMatches, Array]:
    if len(parts) == 1:
        return parts[0]
    components = parts[0][0].lengths.shape[1]
    return joined([found for found, _ in parts], components), np.concatenate([values for _, values in parts])

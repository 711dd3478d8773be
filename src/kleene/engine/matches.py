"""Matches, and which of them are given out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby


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


def without_overlaps(matches: Iterable[Match]) -> Iterator[Match]:
    """The matches of one partition of which none begins before the one given out before it has ended."""
    ended = -1
    for last, together in groupby(sorted(matches, key=lambda match: match.last), key=lambda match: match.last):
        chosen = min(together, key=_preferred)
        if chosen.first > ended:
            yield chosen
            ended = last


def _preferred(match: Match) -> tuple[object, ...]:
    """Of matches with the same last event: began last, fewer events, smallest positions, longer earlier variable."""
    return -match.first, len(match.positions), match.positions, match._longer_first

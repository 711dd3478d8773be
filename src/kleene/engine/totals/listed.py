"""What matches add up to that are made one by one, where no graph holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kleene.engine.compiled.columns import Array
from kleene.engine.matches import FlatMatches
from kleene.engine.totals.channels import Channels, Sums


def sums_of_matches(found: FlatMatches, channels: Channels) -> tuple[Array, Sums]:
    """The last events of the matches, each once, and what the matches that end there add up to."""
    ends, places = np.unique(found.last, return_inverse=True)
    matches = np.bincount(places, minlength=len(ends)).astype(object)
    sums = [_added(found, component, brought, places, len(ends)) for component, brought in channels.sums]
    peaks = [_highest(found, component, ranks, places, len(ends)) for component, ranks in channels.peaks]
    return ends, Sums(matches, sums, peaks)


def joined_sums(parts: Sequence[Sums]) -> Sums:
    return Sums(
        np.concatenate([part.matches for part in parts]),
        [np.concatenate(own) for own in zip(*(part.sums for part in parts), strict=True)],
        [np.concatenate(own) for own in zip(*(part.peaks for part in parts), strict=True)],
    )


def _added(found: FlatMatches, component: int, brought: Array, places: Array, count: int) -> Array:
    totals = np.zeros(count, object)
    of_match = np.repeat(places, found.lengths[:, component])
    np.add.at(totals, of_match, brought[found.of_component(component)].astype(object))
    return totals


def _highest(found: FlatMatches, component: int, ranks: Array, places: Array, count: int) -> Array:
    highest = np.full(count, -1, np.int64)
    np.maximum.at(highest, np.repeat(places, found.lengths[:, component]), ranks[found.of_component(component)])
    return highest


def sums_of_groups(sums: Sums, groups: Array, count: int) -> Sums:
    """The same for groups, of which each place has one."""
    return Sums(
        _grouped(sums.matches, groups, count),
        [_grouped(own, groups, count) for own in sums.sums],
        [_highest_of_groups(own, groups, count) for own in sums.peaks],
    )


def _grouped(numbers: Array, groups: Array, count: int) -> Array:
    totals: list[Any] = [0] * count
    for number, group in zip(numbers.tolist(), groups.tolist(), strict=True):
        totals[group] += number
    found = np.empty(count, object)
    found[:] = totals
    return found


def _highest_of_groups(ranks: Array, groups: Array, count: int) -> Array:
    highest = np.full(count, -1, np.int64)
    np.maximum.at(highest, groups, ranks)
    return highest

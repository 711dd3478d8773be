"""Matches in the order in which they are given out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kleene.engine.compiled.arrays.orders import BEST_OF_AN_END_FIRST, OUTPUT_ORDER
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.matches import FlatMatches, joined

ROW = np.int32
"""How rows of matches are held: they are many."""
_EMPTY = np.empty(0, np.int64)


def chosen_matches(found: FlatMatches, numbers: Array) -> FlatMatches:
    """The matches of these numbers, in their order."""
    offsets, places = gathered(found.offsets, numbers)
    return FlatMatches(offsets, found.lengths[numbers], found.positions[places])


def gathered(offsets: Array, numbers: Array) -> tuple[Array, Array]:
    """The offsets that stretches of these numbers have one behind the other, and the places that they come from."""
    lengths = offsets[numbers + 1] - offsets[numbers]
    new = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    within = np.arange(new[-1]) - np.repeat(new[:-1], lengths)
    return new, np.repeat(offsets[numbers], lengths) + within


def as_arguments(found: FlatMatches) -> tuple[Array, Array, Array]:
    """Offsets, lengths and rows, as kernels take them."""
    lengths = np.require(found.lengths, np.int64, ["C", "W"])
    return np.ascontiguousarray(found.offsets), lengths, np.ascontiguousarray(found.positions, ROW)


def order_of(found: FlatMatches, groups: Array, mode: int, jit: bool) -> Array:
    """The numbers of the matches, sorted; `groups` are their partitions, for the mode that keeps these together."""
    order, spare = np.arange(len(found)), np.empty(len(found), np.int64)
    shared_loops(jit)["order_matches"](order, spare, mode, *as_arguments(found), np.ascontiguousarray(groups))
    return order


def ordered(found: FlatMatches, jit: bool) -> FlatMatches:
    """Matches by positions, in output order."""
    return chosen_matches(found, order_of(found, np.zeros(len(found), np.int64), OUTPUT_ORDER, jit))


def arranged(parts: Sequence[FlatMatches], row_order: Array, components: int, jit: bool) -> FlatMatches:
    """The matches of all parts, given by rows, by the rows' positions in the table and in output order."""
    first = np.concatenate([_EMPTY, *(row_order[part.first] for part in parts)])
    last = np.concatenate([_EMPTY, *(row_order[part.last] for part in parts)])
    order = np.lexsort((first, last))
    one, other = order[:-1], order[1:]
    if ((first[one] == first[other]) & (last[one] == last[other])).any():
        # Only then must all events of matches be compared.
        whole = joined(parts, components)
        return ordered(FlatMatches(whole.offsets, whole.lengths, row_order[whole.positions]), jit)
    sizes = np.concatenate([_EMPTY, *(np.diff(part.offsets) for part in parts)])
    lengths = np.concatenate([np.empty((0, components), np.int64), *(part.lengths for part in parts)])
    offsets = np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int64)
    targets = np.empty(len(order), np.int64)
    targets[order] = offsets[:-1]
    positions = np.empty(int(offsets[-1]), ROW)
    at = 0
    for part in parts:
        own = np.ascontiguousarray(targets[at : at + len(part)])
        rows = np.ascontiguousarray(part.positions, ROW)  # what waited in a stream has wide ones
        shared_loops(jit)["place_matches"](own, part.offsets, rows, row_order, positions)
        at += len(part)
    return FlatMatches(offsets, lengths[order], positions)


def without_overlaps(
    found: FlatMatches, partition: Array, first: Array, last: Array, ended: Array, jit: bool
) -> FlatMatches:
    """The matches that are given out, in output order: of those that end together the best, if it begins late enough.

    `first` and `last` are places in the partition, `ended` those where the match given out last ended.
    """
    chosen: list[int] = []
    previous = (-1, -1)
    for number in order_of(found, partition, BEST_OF_AN_END_FIRST, jit).tolist():
        here = (int(partition[number]), int(last[number]))
        if here != previous:
            previous = here
            if first[number] > ended[here[0]]:
                chosen.append(number)
                ended[here[0]] = last[number]
    return ordered(chosen_matches(found, np.array(chosen, np.int64)), jit)

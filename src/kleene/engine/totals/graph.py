"""The matches of merged runs as a graph, and what all ways through it add up to, without going any of them.

A node is an event selected for a component; behind it stands a list of nodes before it. The matches that end at a node
are as many as those of its list, and a list's are those of its first node and of the rest of the list. So one walk
over the nodes, each after those before it, counts all of them, and adds up what their events bring.

A window depends on the first event of a match alone: matches from it may reach all events up to one. First events that
reach equally far share a walk, which ends there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kleene.engine.compiled.arrays.advance_counters import ADVANCE_NODES
from kleene.engine.compiled.arrays.completions import COMPLETION_NODE, COMPLETION_ROW
from kleene.engine.compiled.arrays.nodes import NODE_BEFORE, NODE_COMPONENT, NODE_NEXT, NODE_ROW
from kleene.engine.compiled.arrays.statuses import TOO_LARGE
from kleene.engine.compiled.arrays.windows import NO_WINDOW
from kleene.engine.compiled.buffer import Buffer
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.run_piece import RunPiece
from kleene.engine.totals.channels import Channels, Sums


@dataclass(frozen=True, slots=True)
class MatchGraph:
    """Nodes by number, in the order of their rows; -1 where there is none before, or no rest of the list.

    `reach` is, of a node of a first event, the last row that its matches may come to; of others -1. `order` gives the
    positions of rows in the table. The completions are ordered by their nodes.
    """

    row: Array
    component: Array
    before: Array
    rest: Array
    reach: Array
    done_node: Array
    done_row: Array
    order: Array
    walks: Array
    jit: bool

    def __len__(self) -> int:
        return len(self.row)

    def events_of(self, component: int) -> Array:
        """The positions of the events that were selected for the component."""
        return np.unique(self.order[self.row[self.component == component]])

    @property
    def ends(self) -> Array:
        """The position of the last event of each completion."""
        return np.asarray(self.order[self.done_row])


def graph_of(piece: RunPiece, buffer: Buffer, done: Array, jit: bool) -> MatchGraph:
    nodes = buffer.node[: int(buffer.counts[ADVANCE_NODES])]
    # Between pieces of a stream nodes move; those of one partition are in the order of their rows all the same.
    old = np.argsort(nodes[:, NODE_ROW], kind="stable")
    new = np.empty(len(old) + 1, np.int64)
    new[old], new[-1] = np.arange(len(old)), -1
    nodes = nodes[old]
    row, before = np.ascontiguousarray(nodes[:, NODE_ROW]), new[nodes[:, NODE_BEFORE]]
    reach = np.where(before < 0, _reaches(piece, jit)[row], -1)
    by_node = np.argsort(new[done[:, COMPLETION_NODE]], kind="stable")
    done_node = np.ascontiguousarray(new[done[:, COMPLETION_NODE]][by_node])
    done_row = np.ascontiguousarray(done[by_node, COMPLETION_ROW])
    component, rest = np.ascontiguousarray(nodes[:, NODE_COMPONENT]), new[nodes[:, NODE_NEXT]]
    walks = _walks(row, reach, done_node)
    return MatchGraph(row, component, before, rest, reach, done_node, done_row, piece.grouped.order, walks, jit)


def _reaches(piece: RunPiece, jit: bool) -> Array:
    """For each row the last one that a match from it may come to."""
    found = np.full(len(piece.grouped), len(piece.grouped), np.int64)
    if piece.window.kind != NO_WINDOW:
        shared_loops(jit)["reach_of_rows"](piece.grouped.begins, *piece.window_arguments, found)
    return found


def _walks(row: Array, reach: Array, done_node: Array) -> Array:
    """The first events that reach equally far come one after the other."""
    firsts = np.flatnonzero(reach >= 0)
    begins = firsts[np.flatnonzero(np.diff(reach[firsts], prepend=-1))]
    ends = np.searchsorted(row, reach[begins], "right")
    done = np.searchsorted(done_node, begins)
    is_met = np.searchsorted(done_node, ends) > done  # a walk that meets no completion counts nothing
    walks = np.stack([begins, ends, reach[begins], done], axis=1)
    return np.ascontiguousarray(walks[is_met], np.int64)


def sums_of_graph(graph: MatchGraph, channels: Channels) -> Sums:
    """What all matches of each completion add up to."""
    small = _InMachineCode(graph, channels).sums() if graph.jit else None
    return _InPython(graph, channels).sums() if small is None else small


class _InMachineCode:
    """The walks in 64 bits."""

    def __init__(self, graph: MatchGraph, channels: Channels) -> None:
        self._graph, self._channels = graph, channels
        self._links = (graph.before, graph.rest, graph.reach, graph.walks, graph.done_node, graph.done_row)
        self._room = tuple(np.empty(len(graph), np.int64) for _ in range(4))
        self._positions = graph.order[graph.row]

    def sums(self) -> Sums | None:
        """What they add up to; None if 64 bits are not enough."""
        sums: list[Array] = []
        nothing = np.zeros(int(self._graph.order.max(initial=-1)) + 1, np.int64)
        for component, values in self._channels.sums or [(0, nothing)]:
            if values.dtype == object:
                return None
            matches, totals = (np.zeros(len(self._graph.done_node), np.int64) for _ in range(2))
            brought = self._of_nodes(component, values, 0)
            with np.errstate(over="ignore"):  # the loop notices
                status = shared_loops(True)["add_up_ways"](self._links, brought, self._room, matches, totals)
            if status == TOO_LARGE:
                return None
            sums.append(totals)
        peaks = [self._highest(component, values) for component, values in self._channels.peaks]
        return Sums(matches, sums[: len(self._channels.sums)], peaks)

    def _highest(self, component: int, values: Array) -> Array:
        found = np.full(len(self._graph.done_node), -1, np.int64)
        ranks = self._of_nodes(component, values, -1)
        shared_loops(True)["highest_on_ways"](self._links, ranks, self._room, found)
        return found

    def _of_nodes(self, component: int, values: Array, rest: int) -> Array:
        return np.where(self._graph.component == component, values[self._positions], rest)


class _InPython:
    """The walks in numbers of any size."""

    def __init__(self, graph: MatchGraph, channels: Channels) -> None:
        self._before, self._rest = graph.before.tolist(), graph.rest.tolist()
        self._reach, self._component = graph.reach.tolist(), graph.component.tolist()
        self._done = list(zip(graph.done_node.tolist(), graph.done_row.tolist(), strict=True))
        self._done_node, self._walks = graph.done_node, graph.walks.tolist()
        positions = graph.order[graph.row]
        self._brought = [(component, values[positions].tolist()) for component, values in channels.sums]
        self._ranks = [(component, values[positions].tolist()) for component, values in channels.peaks]
        count = len(self._done)
        self._matches = [0] * count
        self._sums_of = [[0] * count for _ in channels.sums]
        self._peaks_of = [[-1] * count for _ in channels.peaks]

    def sums(self) -> Sums:
        for begin, end, reach, _ in self._walks:
            self._go(begin, end, reach)
        return Sums(
            _objects(self._matches),
            [_objects(found) for found in self._sums_of],
            [np.array(found, np.int64) for found in self._peaks_of],
        )

    def _go(self, begin: int, end: int, reach: int) -> None:
        """Adds the matches whose first events reach to this row, which lie in these nodes."""
        first = int(np.searchsorted(self._done_node, begin))
        last = int(np.searchsorted(self._done_node, end))
        done = [(number, self._done[number][0]) for number in range(first, last) if self._done[number][1] <= reach]
        counts = self._counts(begin, end, reach)
        for number, node in done:
            self._matches[number] += counts[node - begin]
        for totals, (component, brought) in zip(self._sums_of, self._brought, strict=True):
            sums = self._sums(begin, end, counts, component, brought)
            for number, node in done:
                totals[number] += sums[node - begin]
        for totals, (component, ranks) in zip(self._peaks_of, self._ranks, strict=True):
            peaks = self._peaks(begin, end, counts, component, ranks)
            for number, node in done:
                totals[number] = max(totals[number], peaks[node - begin])

    def _counts(self, begin: int, end: int, reach: int) -> list[int]:
        before, rest, reaches = self._before, self._rest, self._reach
        own, lists = [0] * (end - begin), [0] * (end - begin)
        for node in range(begin, end):
            at, link, after = node - begin, before[node], rest[node]
            count = (1 if reaches[node] == reach else 0) if link < 0 else lists[link - begin] if link >= begin else 0
            own[at] = count
            lists[at] = count + lists[after - begin] if after >= begin else count
        return own

    def _sums(self, begin: int, end: int, counts: list[int], component: int, brought: list[int]) -> list[int]:
        before, rest, components = self._before, self._rest, self._component
        own, lists = [0] * (end - begin), [0] * (end - begin)
        for node in range(begin, end):
            at, link, after = node - begin, before[node], rest[node]
            total = lists[link - begin] if link >= begin else 0
            if components[node] == component:
                total += counts[at] * brought[node]
            own[at] = total
            lists[at] = total + lists[after - begin] if after >= begin else total
        return own

    def _peaks(self, begin: int, end: int, counts: list[int], component: int, ranks: list[int]) -> list[int]:
        before, rest, components = self._before, self._rest, self._component
        own, lists = [-1] * (end - begin), [-1] * (end - begin)
        for node in range(begin, end):
            at, link, after = node - begin, before[node], rest[node]
            peak = lists[link - begin] if link >= begin else -1
            if components[node] == component and counts[at] and ranks[node] > peak:
                peak = ranks[node]
            own[at] = peak
            lists[at] = max(peak, lists[after - begin]) if after >= begin else peak
        return own


def _objects(numbers: list[int]) -> Array:
    found = np.empty(len(numbers), object)
    found[:] = numbers
    return found

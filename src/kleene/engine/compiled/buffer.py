"""The match buffer of SASE+ runs: its arrays, how they grow, and how freed places are used again.

`arrays` says what the columns of `node`, `edge`, `version`, `done` and of the runs mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kleene.engine.compiled.arrays import Counters
from kleene.engine.compiled.arrays.completions import COMPLETION_COLUMNS
from kleene.engine.compiled.arrays.edges import EDGE_BEFORE, EDGE_COLUMNS, EDGE_NEXT, EDGE_VERSION
from kleene.engine.compiled.arrays.nodes import (
    NODE_BEFORE,
    NODE_COLUMNS,
    NODE_COMPONENT,
    NODE_EDGES,
    NODE_LIST_START,
    NODE_NEXT,
    NODE_ROW,
    NODE_START,
    NODE_WAY_BEFORE,
    NODE_WAY_LENGTH,
)
from kleene.engine.compiled.arrays.runs import RUN_HEAD, RUN_START, RUN_STATE, RUN_VERSION
from kleene.engine.compiled.arrays.versions import VERSION_COLUMNS, VERSION_ORIGIN, VERSION_PREFIX
from kleene.engine.compiled.batches import grown
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import SharedLoops
from kleene.engine.compiled.open_runs import Runs
from kleene.engine.compiled.registers import Registers
from kleene.engine.saved_parts import SavedParts, require, require_older, require_within

ROOM = 1024
Root = tuple[Array, Array]
"""An array of runs, and the rows of it that are in use."""


class Buffer:
    """The match buffer and the runs of all partitions, as arrays with room to grow."""

    def __init__(self, registers: Registers) -> None:
        self.st = Counters("advance_counters")
        self.slots = np.zeros(4096, np.int64)  # as many as a power of two
        columns = (NODE_COLUMNS, EDGE_COLUMNS, VERSION_COLUMNS, COMPLETION_COLUMNS)
        self.node, self.edge, self.version, self.done = (np.zeros((ROOM, count), np.int64) for count in columns)
        self.stored, self.kept, self.runs, self.new = (Runs.empty(ROOM, registers) for _ in range(4))

    @property
    def counts(self) -> Array:
        """The counters as the kernel takes them."""
        return self.st.array

    @property
    def all_runs(self) -> tuple[Array, ...]:
        """The arrays of runs, as the kernel takes them."""
        return (*self.stored, *self.kept, *self.runs, *self.new)

    @property
    def graph(self) -> tuple[Array, ...]:
        """The others, as the kernel takes them."""
        return self.node, self.edge, self.version, self.done, self.slots

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in (*self.all_runs, *self.graph))

    def saved(self, runs: int) -> dict[str, Array]:
        """The parts of a snapshot; so many runs are stored."""
        graph = {name: getattr(self, name)[:used] for name, used in self._used.items()}
        return graph | self.stored.saved(runs)

    @property
    def _used(self) -> dict[str, int]:
        """How many nodes, edges and versions there are."""
        return {"node": self.st.nodes, "edge": self.st.edges, "version": self.st.versions}

    def _use(self, nodes: int, edges: int, versions: int) -> None:
        self.st.nodes, self.st.edges, self.st.versions = nodes, edges, versions

    def make_larger(self, times: int) -> None:
        for name in ("node", "edge", "version", "done"):
            setattr(self, name, grown(getattr(self, name), times * ROOM))

    def grow(self, waiting_runs: int) -> None:
        """Doubles the room of what is more than half full; `waiting_runs` must fit when they are loaded."""
        need = 2 * self.st.runs + 2
        for name, used in {**self._used, "done": 0}.items():
            array = getattr(self, name)
            if 2 * (used + need) > len(array):
                setattr(self, name, grown(array, 2 * max(len(array), used + need)))
        runs = max(self.st.runs, waiting_runs)
        for name, used in (("runs", 3 * runs + 3), ("new", 2 * runs + 2), ("kept", self.st.kept + runs)):
            if 2 * used > len(getattr(self, name).i):
                setattr(self, name, getattr(self, name).grown(4 * used))
        while len(self.slots) < 4 * (3 * runs + 3):
            self.slots = np.zeros(2 * len(self.slots), np.int64)

    def collect_garbage(self, roots: list[Root], is_merged: bool, window: tuple[Any, ...], loops: SharedLoops) -> None:
        """Keeps only what the runs reach, moves it together, and tells the runs where it is now."""
        heads = np.ascontiguousarray(np.concatenate([runs[rows, RUN_HEAD] for runs, rows in roots]))
        if is_merged:
            self._keep_lists(roots, heads, window, loops)
        else:
            self._keep_versions(roots, heads, loops)

    def _keep_lists(self, roots: list[Root], heads: Array, window: tuple[Any, ...], loops: SharedLoops) -> None:
        nodes = self.st.nodes
        loops["live_heads"](heads, self.node, *window)
        now = np.full(max(nodes, 1), -1, np.int64)
        np.maximum.at(now, heads, self.node[heads, NODE_ROW])
        loops["mark_merged"](self.node, nodes, now, *window)
        self.st.nodes = loops["pack_merged"](self.node, nodes, now)
        _renumber(roots, RUN_HEAD, now[heads])

    def _keep_versions(self, roots: list[Root], heads: Array, loops: SharedLoops) -> None:
        labels = np.ascontiguousarray(np.concatenate([runs[rows, RUN_VERSION] for runs, rows in roots]))
        marks = [np.zeros(used + 1, np.int64) for used in self._used.values()]
        loops["mark_versions"](heads, labels, self.node, self.edge, self.version, *marks)
        node_numbers, edge_numbers, version_numbers = (_numbers(mark) for mark in marks)
        edges, versions = self.st.edges, self.st.versions
        followers, origins = np.empty(edges + 1, np.int64), np.empty(versions + 1, np.int64)
        followers[-1] = origins[-1] = -1  # so that -1 stays -1
        loops["resolve"](np.ascontiguousarray(self.edge[:edges, EDGE_NEXT]), marks[1], followers)
        loops["resolve"](np.ascontiguousarray(self.version[:versions, VERSION_ORIGIN]), marks[2], origins)
        node, edge, version = (
            array[np.flatnonzero(mark[:-1])]
            for array, mark in zip((self.node, self.edge, self.version), marks, strict=True)
        )
        first = node[:, NODE_EDGES]
        node[:, NODE_EDGES] = edge_numbers[np.where(marks[1][first] > 0, first, followers[first])]
        edge[:, EDGE_VERSION] = version_numbers[edge[:, EDGE_VERSION]]
        edge[:, EDGE_BEFORE] = node_numbers[edge[:, EDGE_BEFORE]]
        edge[:, EDGE_NEXT] = edge_numbers[followers[np.flatnonzero(marks[1][:-1])]]
        version[:, VERSION_ORIGIN] = version_numbers[origins[np.flatnonzero(marks[2][:-1])]]
        version[:, VERSION_PREFIX] = version_numbers[version[:, VERSION_PREFIX]]
        for name, kept in (("node", node), ("edge", edge), ("version", version)):
            getattr(self, name)[: len(kept)] = kept
        self._use(len(node), len(edge), len(version))
        _renumber(roots, RUN_HEAD, node_numbers[heads])
        _renumber(roots, RUN_VERSION, version_numbers[labels])


def loaded_buffer(
    parts: SavedParts, registers: Registers, kept: int, kleene: Sequence[bool], is_merged: bool, strings: int
) -> Buffer:
    """The saved buffer, if every way back in it ends, and at an event that is kept."""
    node = parts.array("node", None, NODE_COLUMNS)
    edge = parts.array("edge", None, EDGE_COLUMNS)
    version = parts.array("version", None, VERSION_COLUMNS)
    stored = Runs.load(parts, registers)
    stored_i = stored.i
    require_within(node[:, NODE_ROW], 0, kept, "node")
    require_within(node[:, NODE_COMPONENT], 0, len(kleene), "node")
    require_within(node[:, NODE_START], 0, kept, "node")
    if is_merged:
        _require_lists(node, kept, kleene)
    else:
        _require_versions(node, edge, version, kleene)
        require_within(stored_i[:, RUN_VERSION], 0, len(version), "stored_i")
    require_within(stored_i[:, RUN_HEAD], 0, len(node), "stored_i")
    require(bool((stored_i[:, RUN_STATE] == node[stored_i[:, RUN_HEAD], NODE_COMPONENT]).all()), "stored_i")
    require_within(stored_i[:, RUN_START], 0, kept, "stored_i")
    registers.require_values(stored_i, strings, len(node))
    buffer = Buffer(registers)
    buffer._use(len(node), len(edge), len(version))
    for name, array in (("node", node), ("edge", edge), ("version", version)):
        setattr(buffer, name, grown(array, max(2 * len(array), ROOM)))
    buffer.stored = stored.grown(max(len(stored_i), ROOM))
    return buffer


def _require_lists(node: Array, kept: int, kleene: Sequence[bool]) -> None:
    component, before, other = node[:, NODE_COMPONENT], node[:, NODE_BEFORE], node[:, NODE_NEXT]
    only, last = node[:, NODE_WAY_LENGTH], node[:, NODE_WAY_BEFORE]
    require_within(node[:, NODE_LIST_START], 0, kept, "node")
    for links in (before, other, last):
        require_older(links, "node")
    listed = other >= 0
    require(bool((component[other[listed]] == component[listed]).all()), "node")
    follows = before >= 0
    _require_steps(node, np.flatnonzero(follows), before[follows], kleene)
    require(bool((component[~follows] == 0).all()), "node")
    # Where there is one way only, it is written by its length.
    require_within(only, 0, len(node) + 1, "node")
    require(bool(((only[~follows] == 1) & (last[~follows] == -1)).all()), "node")
    alone = follows & (only > 0)
    source = before[alone]
    require(bool(((only[source] == only[alone] - 1) & (only[source] > 0) & (other[source] < 0)).all()), "node")
    same = component[source] == component[alone]
    require(bool((last[alone] == np.where(same, last[source], source)).all()), "node")


def _require_versions(node: Array, edge: Array, version: Array, kleene: Sequence[bool]) -> None:
    require_older(version[:, VERSION_ORIGIN], "version")
    require_older(version[:, VERSION_PREFIX], "version")
    require_older(edge[:, EDGE_NEXT], "edge")
    require_within(edge[:, EDGE_VERSION], 0, len(version), "edge")
    require_within(edge[:, EDGE_BEFORE], -1, len(node), "edge")
    require_within(node[:, NODE_EDGES], 0, len(edge), "node")
    owner = np.full(len(edge), -1, np.int64)
    nodes, edges = np.arange(len(node)), node[:, NODE_EDGES]
    while len(edges):
        require(bool((owner[edges] < 0).all()) and len(np.unique(edges)) == len(edges), "edge")
        owner[edges] = nodes
        more = edge[edges, EDGE_NEXT] >= 0
        nodes, edges = nodes[more], edge[edges[more], EDGE_NEXT]
    require(bool((owner >= 0).all()), "edge")
    follows = edge[:, EDGE_BEFORE] >= 0
    require(bool((node[owner[~follows], NODE_COMPONENT] == 0).all()), "edge")
    require(bool((edge[follows, EDGE_BEFORE] < owner[follows]).all()), "edge")
    _require_steps(node, owner[follows], edge[follows, EDGE_BEFORE], kleene)


def _require_steps(node: Array, after: Array, before: Array, kleene: Sequence[bool]) -> None:
    """Each step leads from an event to a later one, of the next component, or of the same if that is a Kleene plus."""
    step = node[after, NODE_COMPONENT] - node[before, NODE_COMPONENT]
    stays = (step == 0) & np.array(kleene, np.bool_)[node[after, NODE_COMPONENT]]
    require(bool(((step == 1) | stays).all()), "node")
    require(bool((node[after, NODE_ROW] > node[before, NODE_ROW]).all()), "node")


def _numbers(marks: Array) -> Array:
    """The new numbers of what is marked, -1 for the rest. The last place stands for -1, and stays -1."""
    found = np.where(marks > 0, np.cumsum(marks > 0) - 1, -1)
    found[-1] = -1
    return found


def _renumber(roots: list[Root], column: int, values: Array) -> None:
    at = 0
    for runs, rows in roots:
        runs[rows, column] = values[at : at + len(rows)]
        at += len(rows)

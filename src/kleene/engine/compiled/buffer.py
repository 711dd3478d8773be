"""The match buffer of SASE+ runs: its arrays, how they grow, and how freed places are used again.

What the columns of `node`, `edge` and `version` mean is said in `loops/expansion.py` and `loops/runs.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.compiled.batches import grown
from kleene.engine.compiled.columns import Array, times_array
from kleene.engine.compiled.loading import SharedLoops
from kleene.engine.compiled.registers import Registers
from kleene.engine.events import window_size
from kleene.engine.saved_parts import SavedParts, require, require_older, require_within
from kleene.ir.options import WindowUnit
from kleene.schema import FLOAT

ROOM = 1024
Time = int | float
"""A time in the units of the order key."""
LAST_TIME = 2**62
Root = tuple[Array, Array]
"""An array of runs, and the rows of it that are in use."""


@dataclass(frozen=True, slots=True)
class Window:
    """The window as the loops of `expansion.py` take it."""

    kind: int
    size: int
    float_size: float

    @property
    def in_time(self) -> int | float | None:
        """How long it is, if it is a time."""
        return self.float_size if self.kind == 3 else self.size if self.kind == 2 else None

    def is_over(self, latest: Any, times: Array) -> Array:
        """Whether no event after `latest` can lie before the end of a window that began at the times.

        Floats are compared as negations compare them; whole numbers so that nothing overflows.
        """
        found: Array = latest >= times + self.float_size if self.kind == 3 else latest - times >= self.size
        return found

    @classmethod
    def of(cls, query: AnalyzedQuery) -> Window:
        window = query.window
        if window is None:
            return cls(0, 0, 0.0)
        if window.unit is WindowUnit.EVENTS:
            return cls(1, int(window.size), 0.0)
        size = window_size(window, query.time_type)
        if query.time_type == FLOAT:
            return cls(3, 0, float(size))
        if isinstance(size, Decimal) and size != int(size):
            size = int(size) + 1
        return cls(2, min(int(size), 2**63 - 1), 0.0)


def latest_of(times: Array, now: Time | None) -> Any:
    """The time that a stream has come to, as the times have it."""
    if not len(times):
        return times.dtype.type(0 if now is None else now)
    latest = times.max()
    return latest if now is None or not now > latest else times.dtype.type(now)


def wakes_at(window: Window, query: AnalyzedQuery, kept: pa.Table | None, waiting_since: Array) -> Time | None:
    """When time alone may complete a match that waits, or free the events that are kept; None if it never does.

    `waiting_since`: where among the events kept those are whose windows matches wait for.
    """
    size = window.in_time
    if size is None or kept is None or not kept.num_rows:
        return None
    times = times_array(kept, query.order_by[0], query.time_type)
    if not len(waiting_since):
        return wake_time(times.max(), 2 * size)
    return wake_time(times[waiting_since].min(), size)


def wake_time(time: Any, size: Time) -> Time | None:
    """When a window that began then is over; None where no clock shows it."""
    found: Time = time.item() + size
    return found if abs(found) < LAST_TIME else None


@dataclass(slots=True)
class Buffer:
    """The match buffer and the runs of all partitions, as arrays with room to grow."""

    integers: int
    floats: int
    counts: Array = field(default_factory=lambda: np.zeros(13, np.int64))
    node: Array = field(default_factory=lambda: np.zeros((ROOM, 8), np.int64))
    edge: Array = field(default_factory=lambda: np.zeros((ROOM, 3), np.int64))
    version: Array = field(default_factory=lambda: np.zeros((ROOM, 4), np.int64))
    done: Array = field(default_factory=lambda: np.zeros((ROOM, 4), np.int64))
    slots: Array = field(default_factory=lambda: np.zeros(4096, np.int64))  # as many as a power of two
    ri: Array = field(init=False)
    rf: Array = field(init=False)
    ni: Array = field(init=False)
    nf: Array = field(init=False)
    kept_i: Array = field(init=False)
    kept_f: Array = field(init=False)
    stored_i: Array = field(init=False)
    stored_f: Array = field(init=False)

    def __post_init__(self) -> None:
        for name in ("r", "n", "kept_", "stored_"):
            setattr(self, f"{name}i", np.zeros((ROOM, self.integers), np.int64))
            setattr(self, f"{name}f", np.zeros((ROOM, max(self.floats, 1)), np.float64))

    @property
    def bytes(self) -> int:
        names = ("node", "edge", "version", "done", "slots", "ri", "rf", "ni", "nf", "kept_i", "kept_f", "stored_i")
        return int(sum(getattr(self, name).nbytes for name in names))

    def make_larger(self, times: int) -> None:
        for name in ("node", "edge", "version", "done"):
            setattr(self, name, grown(getattr(self, name), times * ROOM))

    def grow(self, waiting_runs: int) -> None:
        """Twice the room for what is more than half full; `waiting_runs` must fit when they are loaded."""
        counts = self.counts
        need = 2 * counts[2] + 2
        for name, used in (("node", counts[3]), ("edge", counts[4]), ("version", counts[5]), ("done", 0)):
            array = getattr(self, name)
            if 2 * (used + need) > len(array):
                setattr(self, name, grown(array, 2 * max(len(array), used + need)))
        runs = max(int(counts[2]), waiting_runs)
        for prefix, used in (("r", 3 * runs + 3), ("n", 2 * runs + 2), ("kept_", int(counts[8]) + runs)):
            if 2 * used > len(getattr(self, f"{prefix}i")):
                for kind in "if":
                    array = getattr(self, f"{prefix}{kind}")
                    setattr(self, f"{prefix}{kind}", grown(array, 4 * used))
        while len(self.slots) < 4 * (3 * runs + 3):
            self.slots = np.zeros(2 * len(self.slots), np.int64)

    def collect_garbage(self, roots: list[Root], is_merged: bool, window: tuple[Any, ...], loops: SharedLoops) -> None:
        """Keeps only what the runs reach, moved together, and tells the runs where it is now."""
        heads = np.ascontiguousarray(np.concatenate([runs[rows, 1] for runs, rows in roots]))
        if is_merged:
            self._keep_lists(roots, heads, window, loops)
        else:
            self._keep_versions(roots, heads, loops)

    def _keep_lists(self, roots: list[Root], heads: Array, window: tuple[Any, ...], loops: SharedLoops) -> None:
        nodes = int(self.counts[3])
        loops["live_heads"](heads, self.node, *window)
        now = np.full(max(nodes, 1), -1, np.int64)
        np.maximum.at(now, heads, self.node[heads, 0])
        loops["mark_merged"](self.node, nodes, now, *window)
        self.counts[3] = loops["pack_merged"](self.node, nodes, now)
        _renumber(roots, 1, now[heads])

    def _keep_versions(self, roots: list[Root], heads: Array, loops: SharedLoops) -> None:
        labels = np.ascontiguousarray(np.concatenate([runs[rows, 2] for runs, rows in roots]))
        marks = [np.zeros(int(self.counts[at]) + 1, np.int64) for at in (3, 4, 5)]
        loops["mark_versions"](heads, labels, self.node, self.edge, self.version, *marks)
        node_numbers, edge_numbers, version_numbers = (_numbers(mark) for mark in marks)
        edges, versions = int(self.counts[4]), int(self.counts[5])
        followers, origins = np.empty(edges + 1, np.int64), np.empty(versions + 1, np.int64)
        followers[-1] = origins[-1] = -1  # so that -1 stays -1
        loops["resolve"](np.ascontiguousarray(self.edge[:edges, 2]), marks[1], followers)
        loops["resolve"](np.ascontiguousarray(self.version[:versions, 0]), marks[2], origins)
        node, edge, version = (
            array[np.flatnonzero(mark[:-1])]
            for array, mark in zip((self.node, self.edge, self.version), marks, strict=True)
        )
        first = node[:, 2]
        node[:, 2] = edge_numbers[np.where(marks[1][first] > 0, first, followers[first])]
        edge[:, 0], edge[:, 1] = version_numbers[edge[:, 0]], node_numbers[edge[:, 1]]
        edge[:, 2] = edge_numbers[followers[np.flatnonzero(marks[1][:-1])]]
        version[:, 0] = version_numbers[origins[np.flatnonzero(marks[2][:-1])]]
        version[:, 3] = version_numbers[version[:, 3]]
        for name, kept in (("node", node), ("edge", edge), ("version", version)):
            getattr(self, name)[: len(kept)] = kept
        self.counts[3:6] = len(node), len(edge), len(version)
        _renumber(roots, 1, node_numbers[heads])
        _renumber(roots, 2, version_numbers[labels])


def loaded_buffer(
    parts: SavedParts, registers: Registers, kept: int, kleene: Sequence[bool], is_merged: bool, strings: int
) -> Buffer:
    """The buffer that was saved, if it is one in which every way back comes to an end, at an event that is kept."""
    node = parts.array("node", None, 8)
    edge, version = parts.array("edge", None, 3), parts.array("version", None, 4)
    stored_i = parts.array("stored_i", None, registers.first_integer + registers.integers)
    stored_f = parts.array("stored_f", len(stored_i), max(registers.floats, 1), kind="f")
    require_within(node[:, 0], 0, kept, "node")
    require_within(node[:, 1], 0, len(kleene), "node")
    require_within(node[:, 4], 0, kept, "node")
    if is_merged:
        _require_lists(node, kept, kleene)
    else:
        _require_versions(node, edge, version, kleene)
        require_within(stored_i[:, 2], 0, len(version), "stored_i")
    require_within(stored_i[:, 1], 0, len(node), "stored_i")
    require(bool((stored_i[:, 0] == node[stored_i[:, 1], 1]).all()), "stored_i")
    require_within(stored_i[:, 4], 0, kept, "stored_i")
    registers.require_values(stored_i, strings, len(node))
    buffer = Buffer(stored_i.shape[1], stored_f.shape[1])
    for at, name, array in ((3, "node", node), (4, "edge", edge), (5, "version", version)):
        buffer.counts[at] = len(array)
        setattr(buffer, name, grown(array, max(2 * len(array), ROOM)))
    buffer.stored_i, buffer.stored_f = (grown(array, max(len(array), ROOM)) for array in (stored_i, stored_f))
    return buffer


def _require_lists(node: Array, kept: int, kleene: Sequence[bool]) -> None:
    component, before, other, only, last = node[:, 1], node[:, 2], node[:, 3], node[:, 6], node[:, 7]
    require_within(node[:, 5], 0, kept, "node")
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
    require_older(version[:, 0], "version")
    require_older(version[:, 3], "version")
    require_older(edge[:, 2], "edge")
    require_within(edge[:, 0], 0, len(version), "edge")
    require_within(edge[:, 1], -1, len(node), "edge")
    require_within(node[:, 2], 0, len(edge), "node")
    owner = np.full(len(edge), -1, np.int64)
    nodes, edges = np.arange(len(node)), node[:, 2]
    while len(edges):
        require(bool((owner[edges] < 0).all()) and len(np.unique(edges)) == len(edges), "edge")
        owner[edges] = nodes
        more = edge[edges, 2] >= 0
        nodes, edges = nodes[more], edge[edges[more], 2]
    require(bool((owner >= 0).all()), "edge")
    follows = edge[:, 1] >= 0
    require(bool((node[owner[~follows], 1] == 0).all()), "edge")
    require(bool((edge[follows, 1] < owner[follows]).all()), "edge")
    _require_steps(node, owner[follows], edge[follows, 1], kleene)


def _require_steps(node: Array, after: Array, before: Array, kleene: Sequence[bool]) -> None:
    """Each way leads from an event to a later one, of the next component, or of the same if that is a Kleene plus."""
    step = node[after, 1] - node[before, 1]
    stays = (step == 0) & np.array(kleene, np.bool_)[node[after, 1]]
    require(bool(((step == 1) | stays).all()), "node")
    require(bool((node[after, 0] > node[before, 0]).all()), "node")


def _numbers(marks: Array) -> Array:
    """The new number of what is marked, -1 for the rest, and for -1, which stands last."""
    found = np.where(marks > 0, np.cumsum(marks > 0) - 1, -1)
    found[-1] = -1
    return found


def _renumber(roots: list[Root], column: int, values: Array) -> None:
    at = 0
    for runs, rows in roots:
        runs[rows, column] = values[at : at + len(rows)]
        at += len(rows)


def version_text(label: int, version: Array) -> str:
    """A version as the Dewey number that it is: 3.0.2."""
    digits: list[str] = []
    while label >= 0:
        digits.append(str(int(version[label, 1])))
        label = int(version[label, 3])
    return ".".join(reversed(digits))

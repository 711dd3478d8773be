"""The stacks of sequence scan and construction: arrays with room to grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from kleene.engine.compiled.arrangement import ROW
from kleene.engine.compiled.arrays.cells import (
    CELL_COLUMNS,
    CELL_FORWARD,
    CELL_LOOP,
    CELL_ROW,
    CELL_START,
    FROM_THE_START,
)
from kleene.engine.compiled.arrays.instances import INSTANCE_BELOW, INSTANCE_RIP, INSTANCE_ROW, INSTANCE_START, LINKS
from kleene.engine.matches import Array
from kleene.engine.saved_parts import SavedParts, require, require_within

FIRST_ROOM, MOST_EXPECTED = 1 << 10, 1 << 18
SEQUENCES = 1 << 14
"""How many sequences go from one operator to the next at a time."""


class Stacks:
    """The active instances, or the cells of the runtime stack, as `arrays/instances.py` and `arrays/cells.py` say."""

    def __init__(self, components: int, stacked: int, is_basic: bool) -> None:
        self.components, self.stacked, self.is_basic = components, stacked, is_basic
        self.stack = np.zeros((max(components - 1, 1), FIRST_ROOM, _columns(stacked)), np.int64)
        self.node = np.zeros((FIRST_ROOM if is_basic else 1, CELL_COLUMNS), np.int64)
        self.base, self.top = np.zeros(components, np.int64), np.zeros(components, np.int64)
        self.heads = np.full((stacked, 1, components), -1, np.int64)

    def load(self, parts: SavedParts, rows: int) -> None:
        """Loads saved stacks. Every instance must be of a kept event, and linked to earlier instances."""
        components = self.components
        self.base = parts.array("base", components, low=0)
        self.top = parts.array("top", components, low=0)
        require(bool((self.base <= self.top).all()), "base")
        self.heads = parts.array("heads", self.stacked, None, components, low=-1)
        ends = self.top[0] if self.is_basic else self.top
        require(self.heads.shape[1] >= 1 and bool((self.heads < ends).all()), "heads")
        self.stack = parts.array("stack", max(components - 1, 1), None, _columns(self.stacked))
        self.node = parts.array("node", None, CELL_COLUMNS)
        require(self._size.bit_count() == 1 and self._used <= self._size, "stack")
        require(len(self.node) >= 1 and self.stack.shape[1] >= 1, "stack")
        if not self.is_basic:
            require(self.base[-1] == self.top[-1] or components == 1, "top")
        for number, (array, places) in enumerate(self.live()):
            instances = np.arange(self.base[number], self.top[number])
            for column in self.row_columns:
                require_within(array[places, column], 0, rows, "stack")
            below = [INSTANCE_BELOW + LINKS * test for test in range(self.stacked)]
            for column in [CELL_LOOP, CELL_FORWARD] if self.is_basic else below:
                require_within(array[places, column], FROM_THE_START, instances, "stack")
            if self.is_basic:
                continue
            require_within(array[places, -1], 0, 2**31 - 1, "stack")
            before = int(self.top[number - 1]) if number else 0
            for test in range(self.stacked):
                require_within(array[places, INSTANCE_RIP + LINKS * test], -1, before, "stack")

    @property
    def _size(self) -> int:
        """How many instances a stack has room for."""
        return len(self.node) if self.is_basic else int(self.stack.shape[1])

    @property
    def _used(self) -> int:
        """How many instances the fullest stack has."""
        return int((self.top - self.base).max())

    @property
    def room(self) -> int:
        """How many instances may come before a stack can be full."""
        return self._size - self._used

    def grow(self) -> None:
        self._resize(2 * self._size)

    def expect(self, instances: int) -> None:
        """Room for so many instances from the beginning, as long as they are not very many."""
        wanted = self._used + min(instances, MOST_EXPECTED)
        if not self.is_basic and wanted > self._size * 3 // 4:
            self._resize(1 << (wanted * 4 // 3).bit_length())

    def shrink(self) -> None:
        """Frees room that is mostly empty."""
        size, used = self._size, self._used
        while size > FIRST_ROOM and 8 * used < size:
            size //= 2
        self._resize(size)

    def packed(self) -> tuple[Array, Array]:
        """The instances, or the nodes, in rings no larger than need be, for a snapshot."""
        size = 1 << max(self._used - 1, 0).bit_length()
        if self.is_basic:
            return self.stack[:, :1], _moved(self.node[None], self.base[:1], self.top[:1], size)[0]
        return _moved(self.stack, self.base, self.top, size), self.node

    def _resize(self, size: int) -> None:
        """Makes room for so many instances. They keep their numbers, and so get new places."""
        if self.is_basic:
            self.node = _moved(self.node[None], self.base[:1], self.top[:1], size)[0]
        else:
            self.stack = _moved(self.stack, self.base, self.top, size)

    def keep_keys(self, test: int, used: Array) -> None:
        """Drops the heads of values that are not used."""
        remaining = self.heads[test, : len(used)][used]
        self.heads[test] = -1
        self.heads[test, : len(remaining)] = remaining

    def more_keys(self, count: int) -> None:
        missing = count - self.heads.shape[1]
        if missing > 0:
            more = np.full((self.stacked, max(missing, self.heads.shape[1]), self.components), -1, np.int64)
            self.heads = np.ascontiguousarray(np.concatenate([self.heads, more], axis=1))

    def live(self) -> list[tuple[Array, Array]]:
        """Arrays of instances, each with the places in use."""
        if self.is_basic:
            return [(self.node, np.arange(self.base[0], self.top[0]) & (len(self.node) - 1))]
        ring = self.stack.shape[1] - 1
        return [
            (self.stack[c], np.arange(self.base[c], self.top[c]) & ring) for c in range(max(self.components - 1, 0))
        ]

    def heights(self, rows: int) -> Array:
        """Room for the height of each event on its stack; events that are on a stack have theirs."""
        if self.is_basic or self.components < 3:
            return np.empty((max(self.components - 1, 1), 0), np.int32)
        found = np.empty((self.components - 1, rows), np.int32)
        for c, (array, places) in enumerate(self.live()):
            found[c, array[places, INSTANCE_ROW]] = array[places, -1]
        return found

    def prune(self, times: Array, latest: Any, size: int | float) -> None:
        """Drops instances, from the bottom, that cannot be in one window with anything after `latest`."""
        for number, (array, places) in enumerate(self.live()):
            with np.errstate(invalid="ignore"):  # times may be infinite
                is_open = latest - times[array[places, self.row_columns[0 if self.is_basic else 1]]] < size
            self.base[number] += int(np.argmax(is_open)) if is_open.any() else len(places)

    @property
    def row_columns(self) -> tuple[int, int]:
        """Where an instance has rows of events."""
        return (CELL_ROW, CELL_START) if self.is_basic else (INSTANCE_ROW, INSTANCE_START)

    @property
    def bytes(self) -> int:
        return int(self.stack.nbytes + self.node.nbytes + self.heads.nbytes)


def _columns(stacked: int) -> int:
    """How many columns an instance has that is on so many stacks; the last one is its height."""
    return INSTANCE_BELOW + LINKS * stacked + 1


def _moved(stack: Array, base: Array, top: Array, size: int) -> Array:
    before = stack.shape[1]
    if size == before:
        return stack
    moved = np.zeros((stack.shape[0], size, stack.shape[2]), np.int64)
    for c in range(stack.shape[0]):
        numbers = np.arange(base[c], top[c])
        moved[c, numbers & (size - 1)] = stack[c, numbers & (before - 1)]
    return moved


class Scratch:
    """Room for the walk back and for the sequences that it finds."""

    def __init__(self, components: int, stacked: int) -> None:
        self.found = np.empty((SEQUENCES, components), ROW)
        self.rows, self.cursor, self.size = np.zeros((3, components), np.int64)
        self.at = np.zeros(stacked, np.int64)
        self.stack = np.zeros((max(components - 1, 1), FIRST_ROOM, _columns(1)), np.int64)

    def grow(self) -> None:
        shape = self.stack.shape
        self.stack = np.zeros((shape[0], 2 * shape[1], shape[2]), np.int64)

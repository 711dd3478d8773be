"""Steps to pieces: tables of events in order, each later than the one before. One is read while another is matched."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa

from kleene.engine.compiled.columns import Array
from kleene.engine.protocol import Time
from kleene.engine.row_output import NUMBER
from kleene.scanning.blocks import Block
from kleene.scanning.order import Steps

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Reading:
    """How blocks become tables: `read` gives those of blocks as the input has them, `sort` puts a table in order.

    `by_time_alone`: whether events of equal times stand as in the input, and no further column decides.
    """

    read: Callable[[tuple[Block, ...]], pa.Table]
    sort: Callable[[pa.Table], pa.Table]
    times: Callable[[pa.Table], Array]
    by_time_alone: bool


def pieces(steps: Steps, reading: Reading) -> Iterator[pa.Table]:
    """The events in order. Events of equal order keys stand as in the input, whatever file they are in."""
    held: pa.Table | None = None
    # Of events of one time, those that are read later then come later: they need not wait for each other.
    side: Literal["left", "right"] = "right" if steps.keeps_order and reading.by_time_alone else "left"
    for step in steps.steps:
        table = reading.read(step.blocks)
        if not steps.keeps_order:
            table = table.append_column(NUMBER, numbers_in_input(step.blocks))
        if held is not None:
            table = pa.concat_tables([held, table])
        if not steps.keeps_order:
            table = _as_in_input(table)
        table = reading.sort(table)
        until = table.num_rows if step.before is None else _place(reading.times(table), step.before, side)
        held = table.slice(until) if until < table.num_rows else None
        ready = table.slice(0, until)
        if ready.num_rows:
            yield ready if steps.keeps_order else ready.drop_columns([NUMBER])


def numbers_in_input(blocks: Sequence[Block]) -> pa.ChunkedArray:
    """The numbers that the rows of the blocks have in the input, which is how they are read."""
    in_input = sorted(blocks, key=lambda block: block.first)
    parts = [pa.array(np.arange(block.first, block.first + block.rows)) for block in in_input]
    return pa.chunked_array(parts, pa.int64())


def _as_in_input(table: pa.Table) -> pa.Table:
    numbers = table.column(NUMBER).to_numpy()
    if (numbers[1:] > numbers[:-1]).all():
        return table
    return table.take(pa.array(np.argsort(numbers, kind="stable")))


def _place(times: Array, before: Time, side: Literal["left", "right"]) -> int:
    return int(np.searchsorted(times, times.dtype.type(before), side))


# --- one item ahead --------------------------------------------------------------------------------------------------


class _End:
    pass


@contextmanager
def made_ahead(items: Iterator[Item], most: int = 1) -> Iterator[Iterator[Item]]:
    """The items, made by another thread while earlier ones are in use. Its errors are raised here."""
    made: queue.Queue[Item | BaseException | _End] = queue.Queue(most)
    is_over = threading.Event()

    def put(item: Item | BaseException | _End) -> bool:
        while not is_over.is_set():
            try:
                made.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def make() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(_End())
        except BaseException as error:  # told where the items are used
            put(error)

    def taken() -> Iterator[Item]:
        while not isinstance(item := _got(made), _End):
            if isinstance(item, BaseException):
                raise item
            yield item

    thread = threading.Thread(target=copy_context().run, args=(make,), name="kleene-ahead", daemon=True)
    thread.start()
    try:
        yield taken()
    finally:
        is_over.set()
        thread.join()


def _got(made: queue.Queue[Item]) -> Item:
    while True:
        try:
            return made.get(timeout=0.1)  # so that Ctrl-C is noticed
        except queue.Empty:
            continue

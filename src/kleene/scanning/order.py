"""Blocks to the steps in which they are read, so that events come out in the order of time.

Blocks are read by the times at which they begin. Once a block is read, all events before the beginning of the next are
there, and can be given out in order; the others are held until then. So no more is held than overlaps in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.protocol import Time
from kleene.engine.tasks import order_times
from kleene.scanning.blocks import Block, Bounds

AnyQuery = AnalyzedQuery | AnalyzedRowPattern


@dataclass(frozen=True, slots=True)
class TimedBlock:
    """A block and the times between which its events lie, in the units in which engines count."""

    block: Block
    low: Time
    high: Time


@dataclass(frozen=True, slots=True)
class Step:
    """Blocks that are read next. Then all events before the time are there; None: all that there are."""

    blocks: tuple[Block, ...]
    before: Time | None


@dataclass(frozen=True, slots=True)
class Steps:
    """`most_rows` is how many rows may be in memory at once. `keeps_order`: whether a block that begins earlier is also
    earlier in the input.
    """

    steps: tuple[Step, ...]
    most_rows: int
    keeps_order: bool


def timed_blocks(
    blocks: Sequence[Block], bounds: Sequence[Bounds], query: AnyQuery, time: str
) -> list[TimedBlock] | None:
    """The blocks by the times at which they begin, and then as the input has them; None if times are too large."""
    ends = [bound.ends for bound in bounds]
    known = [end for end in ends if end is not None]
    try:
        times = order_times(pa.table({time: pa.chunked_array(known)}), query) if known else np.empty(0, np.int64)
    except GaveUpError:
        return None
    found = iter(times.reshape(-1, 2).tolist())
    # A block whose times are all missing is read like any other, and is then an error.
    timed = [
        TimedBlock(block, *(next(found) if end is not None else (times.min(initial=0).item(),) * 2))
        for block, end in zip(blocks, ends, strict=True)
    ]
    return sorted(timed, key=lambda one: (one.low, one.block.first))


def steps_of(timed: Sequence[TimedBlock], rows_at_once: int) -> Steps:
    """About so many rows a step.

    >>> times = [(0, 4), (3, 8), (9, 9)]
    >>> blocks = [TimedBlock(Block(0, n, 10 * n, 10), low, high) for n, (low, high) in enumerate(times)]
    >>> [([block.number for block in step.blocks], step.before) for step in steps_of(blocks, 10).steps]
    [([0], 3), ([1], 9), ([2], None)]
    """
    steps: list[Step] = []
    held: list[TimedBlock] = []
    taken: list[TimedBlock] = []
    most = 0
    for number, one in enumerate(timed):
        taken.append(one)
        is_last = number == len(timed) - 1
        if is_last or sum(other.block.rows for other in taken) >= rows_at_once:
            before = None if is_last else timed[number + 1].low
            steps.append(Step(tuple(other.block for other in taken), before))
            most = max(most, sum(other.block.rows for other in (*held, *taken)))
            held = [] if before is None else [other for other in (*held, *taken) if other.high >= before]
            taken = []
    firsts = [one.block.first for one in timed]
    return Steps(tuple(steps), most, all(one < other for one, other in pairwise(firsts)))


def count_overlaps(timed: Sequence[TimedBlock]) -> int:
    """How many blocks have events at times before the end of one that begins earlier."""
    count, latest = 0, None
    for one in timed:
        count += latest is not None and one.low < latest
        latest = one.high if latest is None else max(latest, one.high)
    return count

"""How a scan is matched in this process, and why: all at once, in the order of time, or after a detour over the disk.

The choice is made from footers; nothing else of the files is read for it, unless they do not tell the times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.budget import available_memory
from kleene.engine.events import null_order_key
from kleene.engine.needs import useful_event
from kleene.engine.progress import PreparedQuery
from kleene.engine.protocol import Time
from kleene.errors import UnsupportedError
from kleene.ir import expr as ir
from kleene.ir.paths import path_of
from kleene.plan.plan import ByKey, Plan
from kleene.scanning.blocks import Block, Bounds
from kleene.scanning.opening import Opened
from kleene.scanning.order import Steps, TimedBlock, count_overlaps, steps_of, timed_blocks
from kleene.scanning.reaching import MOST_AGAIN, reach_back
from kleene.scanning.scan import Scan, counted
from kleene.scanning.skipping import Skipped, useful_blocks
from kleene.schema import DATE, FLOAT, INTEGER, TimestampType

ROWS_AT_ONCE = 1 << 20
"""About so many events a piece has: enough that the work of beginning one does not count."""
LEAST_AT_ONCE = 1 << 16
"""However wide they are."""
MOST_OF_MEMORY = 8
"""What overlaps in time may take this part of the memory of the call."""
GUESSED_WIDTH = 16
"""Bytes of a value, where nobody knows."""


@dataclass(frozen=True, slots=True)
class Whole:
    """All events are read, and matched as one table."""

    blocks: tuple[Block, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class InOrder:
    """Events are read in the order of time, piece by piece.

    With a `reach`, a match depends on no more than so much time before its last event.
    """

    steps: Steps
    reason: str
    reach: Time | None = None


@dataclass(frozen=True, slots=True)
class ByFolder:
    """Each folder has keys of its own: folders are matched one after the other."""

    groups: tuple[tuple[Block, ...], ...]
    columns: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Spilled:
    """Events are written to disk by their keys, or, without a key, in order; and are matched from there."""

    blocks: tuple[Block, ...]
    key: tuple[str, ...]
    reason: str


Way = Whole | InOrder | ByFolder | Spilled


@dataclass(frozen=True, slots=True)
class Choice:
    way: Way
    skipped: Skipped


def choose_way(opened: Opened, plan: Plan, columns: pa.Schema) -> Choice:
    """The way of a plan; `columns` are those of the tables that it reads."""
    scan = opened.scan
    if scan.is_text:
        return Choice(_of_text(scan, opened, plan, columns), Skipped(()))
    skipped = useful_blocks(scan.blocks, _bounds(opened), _useful(opened, plan))
    for name in opened.strict:
        if name in scan.columns.names:
            _check_times(
                name, [bounds for block in skipped.left_out if (bounds := scan.bounds(block, name)) is not None]
            )
    return Choice(_of_blocks(opened, plan, columns, skipped.read), skipped)


def _of_blocks(opened: Opened, plan: Plan, columns: pa.Schema, blocks: tuple[Block, ...]) -> Way:
    rows = sum(block.rows for block in blocks)
    if rows <= ROWS_AT_ONCE:
        return Whole(blocks, f"{counted(rows, 'event')} {'is' if rows == 1 else 'are'} matched at once")
    why_not = why_not_in_pieces(opened, plan, columns)
    if why_not is not None:
        return Whole(blocks, why_not)
    time = opened.order_columns[0]
    bounds = [_known_bounds(opened, block, time) for block in blocks]
    _check_times(time, bounds)
    timed = timed_blocks(blocks, bounds, opened.query, time)
    if timed is None:
        return Whole(blocks, "some times are too large to be compared")
    steps, overlaps = steps_of(timed, rows_at_once(columns)), count_overlaps(timed)
    if steps.most_rows <= most_rows(plan, columns):
        files = len({block.file for block in blocks})
        if not overlaps:
            follow = "1 file is in the order of time" if files == 1 else f"{files:,} files follow one another in time"
            return InOrder(steps, f"in place, because {follow}", _reach(plan, timed))
        return InOrder(
            steps,
            f"in the order of time: {overlaps:,} of {counted(len(blocks), 'block')} overlap with earlier ones, and at "
            f"most {steps.most_rows:,} events are held at once",
            _reach(plan, timed),
        )
    overlap = f"{overlaps:,} of {counted(len(blocks), 'block')} overlap in time"
    return _apart(opened, plan, blocks, columns, overlap if overlaps else "blocks are too large to be held")


def _reach(plan: Plan, timed: Sequence[TimedBlock]) -> Time | None:
    """How far a match reaches back, if few events are that near: these are matched again with the next piece."""
    reach, rows = reach_back(plan), sum(one.block.rows for one in timed)
    lasts = max(one.high for one in timed) - min(one.low for one in timed)
    return reach if reach is not None and rows * reach <= MOST_AGAIN * lasts else None


def _of_text(scan: Scan, opened: Opened, plan: Plan, columns: pa.Schema) -> Way:
    if 8 * scan.bytes <= memory(plan):
        return Whole((), f"{scan.bytes / 1e6:,.1f} MB of text are read at once")
    why_not = why_not_in_pieces(opened, plan, columns)
    return (
        Whole((), why_not)
        if why_not is not None
        else Spilled((), _key(plan), "text files do not tell the times of their events")
    )


def _apart(opened: Opened, plan: Plan, blocks: tuple[Block, ...], columns: pa.Schema, overlap: str) -> Way:
    """What cannot be read in the order of time: by folder if these are keys, and else over the disk."""
    own = [name for name in opened.scan.found.folders.names if name in _key(plan)]
    if own:
        files = opened.scan.found.files
        groups: dict[tuple[object, ...], list[Block]] = {}
        for block in blocks:
            given = dict(files[block.file].values)
            groups.setdefault(tuple(given[name] for name in own), []).append(block)
        largest = max(sum(block.rows for block in group) for group in groups.values())
        if largest * plan.threads <= most_rows(plan, columns):
            parts = tuple(map(tuple, groups.values()))
            return ByFolder(parts, tuple(own), f"{overlap}, and {counted(len(parts), 'folder')} have keys of their own")
    return Spilled(blocks, _key(plan), overlap)


def _key(plan: Plan) -> tuple[str, ...]:
    return plan.split.columns if isinstance(plan.split, ByKey) else ()


def why_not_in_pieces(opened: Opened, plan: Plan, columns: pa.Schema) -> str | None:
    """Why the events must be matched as one table; None if they can be matched piece by piece."""
    query = opened.query
    if not opened.order_columns:
        return "without ORDER BY, the order is that of the input"
    if plan.mode != "verbose":
        return "what matches share is made of a whole table"
    if isinstance(query, AnalyzedRowPattern) and (
        query.order_by[0].descending or query.order_by[0].nulls_first is not None
    ):
        return "the order descends, or has a place for NULLs"
    if query.time_type not in (INTEGER, FLOAT, DATE) and not isinstance(query.time_type, TimestampType):
        return "files are put in order by numbers and times, but the order key is neither"
    if opened.order_columns[0] not in opened.scan.columns.names:
        return f"the order key '{opened.order_columns[0]}' is computed from columns of the files"
    try:
        PreparedQuery(plan, columns, opened.order_columns)
    except UnsupportedError as error:
        return error.message
    return None


def memory(plan: Plan) -> int:
    """The bytes that a call may hold."""
    return available_memory() // 2 if plan.limits.memory is None else plan.limits.memory


def row_width(columns: pa.Schema) -> int:
    """About how many bytes a row takes."""
    return sum(type_.bit_width // 8 if _is_plain(type_) else 2 * GUESSED_WIDTH for type_ in columns.types) + 8


def _is_plain(type_: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(type_))


def most_rows(plan: Plan, columns: pa.Schema) -> int:
    return memory(plan) // MOST_OF_MEMORY // row_width(columns)


def rows_at_once(columns: pa.Schema) -> int:
    """Fewer where they are wide."""
    return max(min(ROWS_AT_ONCE, (64 << 20) // row_width(columns)), LEAST_AT_ONCE)


def _useful(opened: Opened, plan: Plan) -> ir.Expr | None:
    if opened.call.schema is not None or not isinstance(plan.query, AnalyzedQuery):
        return None  # attributes that a type lacks are NULL, which bounds do not tell
    return useful_event(plan.query)


def _bounds(opened: Opened) -> Callable[[Block, str], Bounds | None]:
    names = set(opened.scan.columns.names)

    def bounds(block: Block, name: str) -> Bounds | None:
        return opened.scan.bounds(block, name) if name in names and path_of(name) is None else None

    return bounds


def _known_bounds(opened: Opened, block: Block, time: str) -> Bounds:
    told = opened.scan.bounds(block, time)
    return opened.scan.measured_bounds(block, time) if told is None else told


def _check_times(time: str, bounds: Sequence[Bounds]) -> None:
    missing = sum(one.nulls or 0 for one in bounds)
    if missing:
        raise null_order_key(time, missing)

"""What is to be done with the events of a bucket of keys on a stream; what it holds in Spark's state store, and how.

Nothing here knows Spark but for the shape of its state variables.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from kleene.engine.progress import CheckedProgress, PreparedQuery
from kleene.engine.progress_kinds import progress_of
from kleene.engine.tasks import Array, Time, order_times
from kleene.errors import SnapshotError
from kleene.schema import FLOAT, INTEGER
from kleene.spark.streaming.packing import packed_table, unpacked_table
from kleene.spark.tasks.task import Task

FORMAT = 3
"""Of what lies in the state store; the engine's snapshot has a number of its own."""

_CODEC = pa.Codec("zstd", compression_level=1)
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Clock:
    """How events of a stream get their order, and when they are matched."""

    in_arrival_order: bool = False
    has_watermark: bool = True
    lag: int = 0  # milliseconds that what it reads may come behind the watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTask(Task):
    """What is shipped to every task."""

    clock: Clock
    fingerprint: str

    def times(self, events: pa.Table) -> Array:
        """The times of events as engines have them: microseconds, or the order key itself where it is a number."""
        return order_times(events, self.plan.query)

    def time(self, milliseconds: int) -> Time:
        """A watermark as a time: all events up to it are there."""
        return milliseconds * self._times_in_a_millisecond

    def milliseconds(self, time: Time) -> int:
        """The first watermark that has passed the time."""
        return -int(-time // self._times_in_a_millisecond)

    @property
    def _times_in_a_millisecond(self) -> int:
        return 1 if self.plan.query.time_type in (FLOAT, INTEGER) else 1000


def compressed(data: bytes) -> bytes:
    """The bytes as they are stored. What goes to Spark's state store and back costs far more there than to compress it.

    >>> bytes(decompressed(compressed(b"event")))
    b'event'
    """
    return _LENGTH.pack(len(data)) + bytes(_CODEC.compress(data, asbytes=True))


def decompressed(stored: bytes) -> pa.Buffer:
    (length,) = _LENGTH.unpack_from(stored)
    return _CODEC.decompress(memoryview(stored)[_LENGTH.size :], decompressed_size=length)


def stored_table(table: pa.Table) -> bytes:
    return compressed(packed_table(table))


def read_table(stored: bytes, columns: pa.Schema) -> pa.Table:
    return unpacked_table(decompressed(stored), columns)


class Value(Protocol):
    """A state variable with one value."""

    def get(self) -> Any: ...
    def update(self, newValue: Any) -> None: ...  # noqa: N803  # Spark's name
    def clear(self) -> None: ...


class Values(Protocol):
    """A state variable with values by key."""

    def getValue(self, key: Any) -> Any: ...  # noqa: N802  # Spark's name
    def updateValue(self, key: Any, value: Any) -> None: ...  # noqa: N802
    def removeKey(self, key: Any) -> None: ...  # noqa: N802


class Timers(Protocol):
    """What wakes a bucket when the watermark has come to a time, in milliseconds."""

    def registerTimer(self, expiryTimestampMs: int) -> None: ...  # noqa: N802, N803
    def deleteTimer(self, expiryTimestampMs: int) -> None: ...  # noqa: N802, N803


@dataclass(frozen=True, slots=True)
class BucketState:
    """The state variables of the bucket at hand, and its timers, if there is a watermark."""

    head: Value
    engine: Value
    since: Values
    waiting: Values
    timers: Timers | None


@dataclass(slots=True)
class Head:
    """What must be known of a bucket before anything else of it is read."""

    fingerprint: str
    format: int = FORMAT
    passed: Time | None = None  # up to which time events are matched
    watermark: int = 0  # how late it is, in milliseconds; 0 while nobody knows
    timer: int | None = None
    chunk: int = 0  # the number of the next chunk
    chunks: list[tuple[int, Time, int, int]] = field(default_factory=list)  # number, least time, events, bytes
    engine_bytes: int = 0
    since: list[tuple[int, int]] = field(default_factory=list)  # chunks matched since the snapshot: number, bytes
    since_until: Time | None = None  # how late it was then
    runs: int = 0
    kept: int = 0
    wakes: int | None = None  # the watermark at which time alone has an effect on the engine

    @property
    def waiting(self) -> int:
        return sum(chunk[2] for chunk in self.chunks)

    @property
    def since_bytes(self) -> int:
        return sum(size for _, size in self.since)

    @property
    def bytes(self) -> int:
        return self.engine_bytes + self.since_bytes + sum(chunk[3] for chunk in self.chunks)


def written_head(head: Head) -> bytes:
    return json.dumps(asdict(head)).encode()


_ANEW = "start over with a new checkpoint and a new output"  # fits Python as well as the command line


def read_head(stored: bytes, fingerprint: str) -> Head:
    found = json.loads(stored)
    if found["format"] != FORMAT:
        raise SnapshotError(
            f"the checkpoint was written in format {found['format']} of Kleene's state, but this version reads "
            f"format {FORMAT}",
            hint=f"Go on with the version of Kleene that wrote it, or {_ANEW}.",
        )
    if found["fingerprint"] != fingerprint:
        raise SnapshotError(
            "the checkpoint was written by another query, by other options, or for other columns",
            hint=f"Go on with the query, options and columns that it was written with, or {_ANEW}.",
        )
    lists = {name: [tuple(chunk) for chunk in found[name]] for name in ("chunks", "since")}
    return Head(**found | lists)


# --- the engine's progress: its snapshot, and beside it the events matched since it was made
# As long as these are few, the snapshot stays as it is, so that keys of which nothing is heard are not written again
# with every micro-batch.


MOST_SINCE, TIMES_SMALLER = 8, 8
"""Chunks of events that are kept beside a snapshot, and how many times smaller than it they must be."""
MOST_READY = 8
_ready: dict[str, PreparedQuery] = {}


def ready_query(task: StreamTask) -> PreparedQuery:
    """The query made ready, once in a process: Spark starts every task with a new copy of all there is."""
    if task.fingerprint not in _ready:
        if len(_ready) >= MOST_READY:
            _ready.pop(next(iter(_ready)))
        _ready[task.fingerprint] = PreparedQuery(task.plan, task.reads.columns)
    return _ready[task.fingerprint]


def restored_progress(task: StreamTask, head: Head, state: BucketState) -> CheckedProgress:
    query, columns = ready_query(task), task.reads.columns
    kind = progress_of(task.plan)
    if not head.engine_bytes:
        return kind(query)
    progress = kind.restore(query, bytes(decompressed(state.engine.get()[0])))
    if head.since_until is not None:
        stored = [state.since.getValue((number,)) for number, _ in head.since]
        events = [columns.empty_table(), *(read_table(part[0], columns) for part in stored)]
        # What they complete was given out when they came.
        for _ in progress.batches(pa.concat_tables(events), False, now=head.since_until):
            pass
    return progress


def store_progress(
    progress: CheckedProgress, events: pa.Table, now: Time | None, head: Head, state: BucketState
) -> None:
    """Stores it; `events` are those it has been fed since it was restored, up to the time `now`."""
    held = progress.held()
    head.runs, head.kept = held.runs, held.events
    if not _added_since(events, now, head, state):
        snapshot = compressed(progress.snapshot())
        state.engine.update((snapshot,))
        head.engine_bytes = len(snapshot)
        _forget_since(head, state)


def forget_progress(head: Head, state: BucketState) -> None:
    if head.engine_bytes:
        state.engine.clear()
    head.engine_bytes = head.runs = head.kept = 0
    _forget_since(head, state)


def _added_since(events: pa.Table, now: Time | None, head: Head, state: BucketState) -> bool:
    """Keeps the events beside the snapshot, if they are few; else a new one is to be made."""
    if not head.engine_bytes or now is None or len(head.since) >= MOST_SINCE:
        return False
    payload = stored_table(events)
    if TIMES_SMALLER * (head.since_bytes + len(payload)) > head.engine_bytes:
        return False
    if events.num_rows:
        state.since.updateValue((head.chunk,), (payload,))
        head.since.append((head.chunk, len(payload)))
        head.chunk += 1
    head.since_until = now
    return True


def _forget_since(head: Head, state: BucketState) -> None:
    for number, _ in head.since:
        state.since.removeKey((number,))
    head.since, head.since_until = [], None

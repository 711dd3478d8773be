"""A bucket of keys on a stream: its events wait until the watermark has passed them, then they are matched in order.

What a bucket holds lies in the state store in three places: its head, a few numbers; the engine's snapshot, which is
rewritten only when events are matched; and the events that wait, in a chunk for each micro-batch that brought some.
Nothing here knows Spark but for the shape of its state variables.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from kleene.engine.compiled.buffer import Time
from kleene.engine.compiled.columns import Array, times_array
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.progress import Progress, ProgressQuery
from kleene.engine.run import ResultBatch, with_match_ids
from kleene.errors import ExecutionError, SnapshotError
from kleene.plan.plan import Plan
from kleene.schema import FLOAT, INTEGER
from kleene.spark.gathering import TaskOrder
from kleene.spark.packing import packed_table, unpacked_table

FORMAT = 1
"""Of what lies in the state store; the engine's snapshot has a number of its own."""
END_OF_TIME = 253_370_764_800_000
"""A watermark, in milliseconds, at which a stream is over: the year 9999 has begun."""
MATCHED_AT_ONCE = 1 << 18
MOST_READY = 8


_CODEC = pa.Codec("zstd", compression_level=1)
_LENGTH = struct.Struct("<Q")


def compressed(data: bytes) -> bytes:
    """The bytes as they are stored. What goes to Spark's state store and back costs far more there than to compress it.

    >>> bytes(decompressed(compressed(b"event")))
    b'event'
    """
    return _LENGTH.pack(len(data)) + bytes(_CODEC.compress(data, asbytes=True))


def decompressed(stored: bytes) -> pa.Buffer:
    (length,) = _LENGTH.unpack_from(stored)
    return _CODEC.decompress(memoryview(stored)[_LENGTH.size :], decompressed_size=length)


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
    waiting: Values
    timers: Timers | None


@dataclass(frozen=True, slots=True)
class StreamMatcher:
    """What is to be done with the events of a bucket; it is shipped to every task."""

    plan: Plan
    columns: pa.Schema
    order: TaskOrder
    result: pa.Schema
    in_arrival_order: bool
    has_watermark: bool
    fingerprint: str
    id_columns: tuple[str, ...] | None = None

    @property
    def time_column(self) -> str:
        return self.order.columns[0].name

    def times(self, events: pa.Table) -> Array:
        """The times of events as engines have them: microseconds, or the order key itself where it is a number."""
        return times_array(events, self.time_column, self.plan.query.time_type)

    def time(self, milliseconds: int) -> Time:
        """A watermark as a time: all events up to it are there."""
        return milliseconds * self._times_in_a_millisecond

    def milliseconds(self, time: Time) -> int:
        """The first watermark that has passed the time."""
        return -int(-time // self._times_in_a_millisecond)

    @property
    def _times_in_a_millisecond(self) -> int:
        return 1 if self.plan.query.time_type in (FLOAT, INTEGER) else 1000


@dataclass(slots=True)
class Head:
    """What must be known of a bucket before anything else of it is read."""

    format: int
    fingerprint: str
    passed: Time | None = None  # up to which time events are matched
    watermark: int = 0  # how late it is, in milliseconds; 0 while nobody knows
    timer: int | None = None
    chunk: int = 0  # the number of the next chunk
    chunks: list[tuple[int, Time, int, int]] = field(default_factory=list)  # number, least time, events, bytes
    engine_bytes: int = 0
    runs: int = 0
    kept: int = 0
    wakes: int | None = None  # the watermark at which time alone has an effect on the engine

    @property
    def waiting(self) -> int:
        return sum(chunk[2] for chunk in self.chunks)

    @property
    def bytes(self) -> int:
        return self.engine_bytes + sum(chunk[3] for chunk in self.chunks)


_ready: dict[str, ProgressQuery] = {}


def ready_query(matcher: StreamMatcher) -> ProgressQuery:
    """The query made ready, once in a process: Spark starts every task with a new copy of all there is."""
    if matcher.fingerprint not in _ready:
        if len(_ready) >= MOST_READY:
            _ready.pop(next(iter(_ready)))
        _ready[matcher.fingerprint] = ProgressQuery(matcher.plan, matcher.columns)
    return _ready[matcher.fingerprint]


class Bucket:
    """The bucket whose state is at hand."""

    def __init__(self, matcher: StreamMatcher, state: BucketState) -> None:
        self._matcher, self._state = matcher, state
        self.head = self._read_head()
        self.late = 0  # events that came too late this time

    def _read_head(self) -> Head:
        matcher, stored = self._matcher, self._state.head.get()
        if stored is None:
            return Head(FORMAT, matcher.fingerprint)
        found = json.loads(bytes(stored[0]))
        if found["format"] != FORMAT:
            raise SnapshotError(
                f"the checkpoint was written in format {found['format']} of Kleene's state, and this version reads "
                f"format {FORMAT}",
                hint="Go on with the version of Kleene that wrote it, or begin anew with another checkpointLocation.",
            )
        if found["fingerprint"] != matcher.fingerprint:
            raise SnapshotError(
                "the checkpoint was written by another query, by other options, or for other columns",
                hint="Go on with what it was written with, or begin anew with another checkpointLocation.",
            )
        return Head(**found | {"chunks": [tuple(chunk) for chunk in found["chunks"]]})

    def advance(self, events: pa.Table, watermark: int, is_woken: bool = False) -> Iterator[pa.Table]:
        """Takes in the events, and matches what the watermark (in milliseconds) has passed: results, in pieces.

        `is_woken`: whether it is the timer that calls.
        """
        head = self.head
        head.watermark = max(head.watermark, watermark)
        is_over = head.watermark >= END_OF_TIME
        events = self._timely(events)
        ready = self._arrived(events) if self._matcher.in_arrival_order else self._passed(events)
        if ready.num_rows or is_over or (head.wakes is not None and head.wakes <= head.watermark):
            yield from self._matched(ready, is_over)
        self._set_timer(is_woken)
        self._state.head.update((json.dumps(asdict(head)).encode(),))

    def _timely(self, events: pa.Table) -> pa.Table:
        """The events that do not come too late; those that do are counted."""
        passed = self.head.passed
        if passed is None or not events.num_rows:
            return events
        times = self._matcher.times(events)
        if self._matcher.in_arrival_order:
            self._check_arrival(events, times, passed)
            return events
        is_late = times <= passed
        self.late = int(is_late.sum())
        return events.filter(pa.array(~is_late)) if self.late else events

    def _check_arrival(self, events: pa.Table, times: Array, passed: Time) -> None:
        first = int(np.argmin(times))
        if times[first] < passed:
            name = self._matcher.time_column
            raise ExecutionError(
                f"order='arrival' was given, and an event with {name} = {events.column(name)[first].as_py()} came "
                f"after events of a later {name}",
                hint=f"Let events wait for those that are late: df.withWatermark('{name}', '10 seconds') and "
                "order='time'.",
            )

    def _arrived(self, events: pa.Table) -> pa.Table:
        """The events at once: of a micro-batch it is not known which came first."""
        if events.num_rows:
            self.head.passed = self._matcher.times(events).max().item()
        return self._matcher.order.sorted_by_time(events)

    def _passed(self, events: pa.Table) -> pa.Table:
        """The events that the watermark has passed, in their order; the others wait."""
        matcher, head = self._matcher, self.head
        if not head.watermark:
            self._keep_waiting(events, [])
            return events.slice(0, 0)
        until = head.passed = matcher.time(head.watermark)
        parts = [events] if events.num_rows else []
        free: list[int] = []
        for chunk in [chunk for chunk in head.chunks if chunk[1] <= until]:
            stored = self._state.waiting.getValue((chunk[0],))
            parts.append(unpacked_table(decompressed(stored[0]), matcher.columns))
            free.append(chunk[0])
            head.chunks.remove(chunk)
        if not parts:
            return matcher.columns.empty_table()
        together = pa.concat_tables(parts)
        is_ready = matcher.times(together) <= until
        self._keep_waiting(together.filter(pa.array(~is_ready)), free)
        for number in free:
            self._state.waiting.removeKey((number,))
        return matcher.order.sorted_by_time(together.filter(pa.array(is_ready)).combine_chunks())

    def _keep_waiting(self, events: pa.Table, free: list[int]) -> None:
        """Stores the events as a chunk, over one of those that are free, if there are any."""
        head = self.head
        if not events.num_rows:
            return
        payload = compressed(packed_table(events))
        if free:
            number = free.pop()
        else:
            number = head.chunk
            head.chunk += 1
        self._state.waiting.updateValue((number,), (payload,))
        least = self._matcher.times(events).min().item()
        head.chunks.append((number, least, events.num_rows, len(payload)))

    def _matched(self, events: pa.Table, is_over: bool) -> Iterator[pa.Table]:
        progress, now = self._progress(), self._now()
        begin = 0
        while True:
            piece = events.slice(begin, MATCHED_AT_ONCE)
            begin += MATCHED_AT_ONCE
            is_end = begin >= events.num_rows
            try:
                for part in progress.batches(piece, is_over and is_end, now=now if is_end else None):
                    if part.table.num_rows:
                        yield self._finished(part)
            except GaveUpError as error:
                raise ExecutionError(error.message, hint=error.hint) from None
            if is_end:
                break
        self._store(None if is_over else progress)

    def _now(self) -> Time | None:
        head = self.head
        now = self._matcher.time(head.watermark) if head.watermark else None
        if not self._matcher.in_arrival_order or head.passed is None:
            return now
        return head.passed if now is None else max(now, head.passed)

    def _finished(self, part: ResultBatch) -> pa.Table:
        matcher, rows = self._matcher, part.table
        if matcher.id_columns is not None:
            rows = with_match_ids(rows, part.events, part.matches, matcher.plan, matcher.id_columns)
        return rows.cast(matcher.result)

    def _progress(self) -> Progress:
        query = ready_query(self._matcher)
        if not self.head.engine_bytes:
            return Progress(query)
        return Progress.restore(query, bytes(decompressed(self._state.engine.get()[0])))

    def _store(self, progress: Progress | None) -> None:
        head = self.head
        head.wakes, head.runs, head.kept = None, 0, 0
        if progress is None or progress.is_idle:
            if head.engine_bytes:
                self._state.engine.clear()
            head.engine_bytes = 0
            return
        snapshot = compressed(progress.snapshot())
        self._state.engine.update((snapshot,))
        head.engine_bytes, head.runs, head.kept = len(snapshot), progress.open_runs, progress.kept_events
        wakes = progress.wakes_at()
        head.wakes = None if wakes is None else self._matcher.milliseconds(wakes)

    def _set_timer(self, is_woken: bool) -> None:
        """For when there will be something to do, should nothing happen before.

        A timer that has run out is called after all events of a micro-batch have come, unless it is deleted by then:
        what it is for is done already. One that calls is deleted by Spark.
        """
        head, timers = self.head, self._state.timers
        if timers is None:
            return
        times = [] if head.wakes is None else [head.wakes]
        if head.chunks:
            times.append(self._matcher.milliseconds(min(chunk[1] for chunk in head.chunks)))
        if head.engine_bytes:
            times.append(END_OF_TIME)
        wanted = max(min(times), 1) if times else None
        if head.timer == wanted:
            return
        if head.timer is not None and not (is_woken and head.timer <= head.watermark):
            timers.deleteTimer(head.timer)
        if wanted is not None:
            timers.registerTimer(wanted)
        head.timer = wanted

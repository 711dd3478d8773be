"""A bucket of keys on a stream: its events wait until the watermark has passed them, then they are matched in order.

What a bucket holds lies in the state store in several places: its head, a few numbers; the engine's snapshot, and the
events matched since it was made, which are few beside it, so that keys of which nothing is heard are not written again
with every micro-batch; and the events that wait, in a chunk for each micro-batch that brought some.
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

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.compiled.columns import Array, times_array
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.events import window_time
from kleene.engine.output import as_schema
from kleene.engine.progress import Progress, ProgressQuery
from kleene.engine.protocol import Time
from kleene.engine.results import ResultBatch
from kleene.engine.timeouts import TIMED_OUT, timed_out_runs
from kleene.errors import ExecutionError, SnapshotError
from kleene.plan.plan import Plan
from kleene.schema import FLOAT, INTEGER
from kleene.spark.gathering import TaskOrder
from kleene.spark.match_order import NO_EXTRA_COLUMNS, ExtraColumns
from kleene.spark.packing import packed_table, unpacked_table

FORMAT = 1
"""Of what lies in the state store; the engine's snapshot has a number of its own."""
END_OF_TIME = 253_370_764_800_000
"""A watermark, in milliseconds, at which a stream is over: the year 9999 has begun."""
MATCHED_AT_ONCE = 1 << 18
MOST_READY = 8
MOST_SINCE, TIMES_SMALLER = 8, 8
"""Chunks of events that are kept beside a snapshot, and how many times smaller than it they must be."""


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
    since: Values
    waiting: Values
    recent: Value
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
    extra: ExtraColumns = NO_EXTRA_COLUMNS
    with_times: bool = False
    timeouts: bool = False  # whether runs that time out are given out
    lag: int = 0  # milliseconds that what it reads may come behind the watermark

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
    since: list[tuple[int, int]] = field(default_factory=list)  # chunks matched since the snapshot: number, bytes
    since_until: Time | None = None  # how late it was then
    runs: int = 0
    kept: int = 0
    closed: Time | None = None  # up to where runs have been given out that timed out
    recent: int = 0  # bytes of events that are kept for them
    wakes: int | None = None  # the watermark at which time alone has an effect on the engine

    @property
    def waiting(self) -> int:
        return sum(chunk[2] for chunk in self.chunks)

    @property
    def since_bytes(self) -> int:
        return sum(size for _, size in self.since)

    @property
    def bytes(self) -> int:
        return self.engine_bytes + self.since_bytes + self.recent + sum(chunk[3] for chunk in self.chunks)


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
        lists = {name: [tuple(chunk) for chunk in found[name]] for name in ("chunks", "since")}
        return Head(**found | lists)

    def advance(self, events: pa.Table, watermark: int, is_woken: bool = False) -> Iterator[pa.Table]:
        """Takes in the events, and matches what the watermark (in milliseconds) has passed: results, in pieces.

        `is_woken`: whether it is the timer that calls.
        """
        head = self.head
        head.watermark = max(head.watermark, watermark - self._matcher.lag)
        is_over = head.watermark >= END_OF_TIME
        events = self._timely(events)
        ready = self._arrived(events) if self._matcher.in_arrival_order else self._passed(events)
        if ready.num_rows or is_over or (head.wakes is not None and head.wakes <= head.watermark):
            yield from self._matched(ready, is_over)
            if self._matcher.timeouts:
                yield from self._timed_out(ready, is_over)
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
        matcher, progress, now = self._matcher, self._progress(), self._now()
        begin = 0
        while True:
            piece = events.slice(begin, MATCHED_AT_ONCE)
            begin += MATCHED_AT_ONCE
            is_end = begin >= events.num_rows
            try:
                for part in progress.batches(piece, is_over and is_end, matcher.with_times, now if is_end else None):
                    if part.table.num_rows:
                        yield self._finished(part)
            except GaveUpError as error:
                raise ExecutionError(error.message, hint=error.hint) from None
            if is_end:
                break
        self._store(None if is_over else progress, events, now)

    def _now(self) -> Time | None:
        head = self.head
        now = self._matcher.time(head.watermark) if head.watermark else None
        if not self._matcher.in_arrival_order or head.passed is None:
            return now
        return head.passed if now is None else max(now, head.passed)

    def _finished(self, part: ResultBatch) -> pa.Table:
        matcher = self._matcher
        rows = matcher.extra.added(part, matcher.plan, matcher.result)
        if matcher.timeouts:
            rows = rows.append_column(TIMED_OUT, pa.array(np.zeros(rows.num_rows, np.bool_)))
        return as_schema(rows, matcher.result)

    def _timed_out(self, events: pa.Table, is_over: bool) -> Iterator[pa.Table]:
        """The runs whose windows have ended; events are kept as long as a run may have them."""
        matcher, head, query = self._matcher, self.head, self._matcher.plan.query
        assert isinstance(query, AnalyzedQuery)
        assert query.window is not None
        now = self._now()
        if head.recent:
            kept = unpacked_table(decompressed(self._state.recent.get()[0]), matcher.columns)
            events = pa.concat_tables([kept, events])
        if now is None or not events.num_rows:
            return
        events = matcher.order.sorted_by_time(events.combine_chunks())
        limit = matcher.plan.run_limit
        rows = timed_out_runs(query, events, head.closed, now, matcher.with_times, limit)
        if rows.num_rows:
            yield rows.append_column(TIMED_OUT, pa.array(np.ones(rows.num_rows, np.bool_))).cast(matcher.result)
        head.closed = now
        size = window_time(query.window, query.time_type)
        events = events.filter(pa.array(matcher.times(events) + size > now))
        if not events.num_rows or is_over:
            head.recent = 0
            self._state.recent.clear()
            return
        payload = compressed(packed_table(events))
        self._state.recent.update((payload,))
        head.recent = len(payload)
        first = matcher.milliseconds(matcher.times(events).min().item() + size)
        head.wakes = first if head.wakes is None else min(head.wakes, first)

    def _progress(self) -> Progress:
        query, head, columns = ready_query(self._matcher), self.head, self._matcher.columns
        if not head.engine_bytes:
            return Progress(query)
        progress = Progress.restore(query, bytes(decompressed(self._state.engine.get()[0])))
        if head.since_until is not None:
            stored = [self._state.since.getValue((number,)) for number, _ in head.since]
            events = [columns.empty_table(), *(unpacked_table(decompressed(part[0]), columns) for part in stored)]
            # What they complete was given out when they came.
            for _ in progress.batches(pa.concat_tables(events), False, now=head.since_until):
                pass
        return progress

    def _store(self, progress: Progress | None, events: pa.Table, now: Time | None) -> None:
        head = self.head
        head.wakes, head.runs, head.kept = None, 0, 0
        held = None if progress is None else progress.held()
        if progress is None or held is None or held.is_idle:
            if head.engine_bytes:
                self._state.engine.clear()
            head.engine_bytes = 0
            self._forget_since()
            return
        head.runs, head.kept = held.runs, held.events
        wakes = held.wakes_at
        if wakes is not None and self._matcher.milliseconds(wakes) > head.watermark:
            head.wakes = self._matcher.milliseconds(wakes)  # else it waits for more than time, for NEXT
        if not self._added_since(events, now):
            snapshot = compressed(progress.snapshot())
            self._state.engine.update((snapshot,))
            head.engine_bytes = len(snapshot)
            self._forget_since()

    def _added_since(self, events: pa.Table, now: Time | None) -> bool:
        """Keeps the events beside the snapshot, if they are few; else a new one is to be made."""
        head = self.head
        if not head.engine_bytes or now is None or len(head.since) >= MOST_SINCE:
            return False
        payload = compressed(packed_table(events))
        if TIMES_SMALLER * (head.since_bytes + len(payload)) > head.engine_bytes:
            return False
        if events.num_rows:
            self._state.since.updateValue((head.chunk,), (payload,))
            head.since.append((head.chunk, len(payload)))
            head.chunk += 1
        head.since_until = now
        return True

    def _forget_since(self) -> None:
        for number, _ in self.head.since:
            self._state.since.removeKey((number,))
        self.head.since, self.head.since_until = [], None

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
        if head.engine_bytes or head.recent:
            times.append(END_OF_TIME)
        wanted = max(min(times), 1) + self._matcher.lag if times else None
        if head.timer == wanted:
            return
        if head.timer is not None and not (is_woken and head.timer <= head.watermark + self._matcher.lag):
            timers.deleteTimer(head.timer)
        if wanted is not None:
            timers.registerTimer(wanted)
        head.timer = wanted

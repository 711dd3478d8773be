"""A bucket of keys on a stream: its events wait until the watermark has passed them, then they are matched in order.

What a bucket holds lies in the state store in several places: its head, a few numbers; the progress of the engine; and
the events that wait, in a chunk for each micro-batch that brought some.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kleene.engine.tasks import Array, Time, plain_errors
from kleene.errors import ExecutionError
from kleene.spark.streaming.state import (
    BucketState,
    Head,
    StreamTask,
    forget_progress,
    read_head,
    read_table,
    restored_progress,
    store_progress,
    stored_table,
    written_head,
)

END_OF_TIME = 253_370_764_800_000
"""A watermark, in milliseconds, at which a stream is over: the year 9999 has begun."""
MATCHED_AT_ONCE = 1 << 18


class Bucket:
    """The bucket whose state is at hand."""

    def __init__(self, task: StreamTask, state: BucketState) -> None:
        self._task, self._state = task, state
        stored = state.head.get()
        self.head = Head(task.fingerprint) if stored is None else read_head(bytes(stored[0]), task.fingerprint)
        self.late = 0  # events that came too late this time

    def advance(self, events: pa.Table, watermark: int, is_woken: bool = False) -> Iterator[pa.Table]:
        """Takes in the events, and matches what the watermark (in milliseconds) has passed: results, in pieces.

        `is_woken`: whether it is the timer that calls.
        """
        head = self.head
        head.watermark = max(head.watermark, watermark - self._task.clock.lag)
        is_over = head.watermark >= END_OF_TIME
        events = self._timely(events)
        ready = self._arrived(events) if self._task.clock.in_arrival_order else self._passed(events)
        if ready.num_rows or is_over or (head.wakes is not None and head.wakes <= head.watermark):
            yield from self._matched(ready, is_over)
        self._set_timer(is_woken)
        self._state.head.update((written_head(head),))

    def _timely(self, events: pa.Table) -> pa.Table:
        """The events that do not come too late; those that do are counted."""
        passed = self.head.passed
        if passed is None or not events.num_rows:
            return events
        times = self._task.times(events)
        if self._task.clock.in_arrival_order:
            self._check_arrival(events, times, passed)
            return events
        is_late = times <= passed
        self.late = int(is_late.sum())
        return events.filter(pa.array(~is_late)) if self.late else events

    def _check_arrival(self, events: pa.Table, times: Array, passed: Time) -> None:
        first = int(np.argmin(times))
        if times[first] < passed:
            name, came = self._task.reads.shown_time, events.column(self._task.reads.time_column)[first].as_py()
            raise ExecutionError(
                f"events are matched in the order of arrival, but an event with {name} = "
                f"{came} came after events of a later {name}",
                # This is said in a task, so it fits Python as well as the command line.
                hint="Use a watermark instead of the order of arrival, such as 10 seconds: it says how long to wait "
                "for late events.",
            )

    def _arrived(self, events: pa.Table) -> pa.Table:
        """The events at once: of a micro-batch it is not known which came first."""
        if events.num_rows:
            self.head.passed = self._task.times(events).max().item()
        return self._task.order.sorted_by_time(events)

    def _passed(self, events: pa.Table) -> pa.Table:
        """The events that the watermark has passed, in their order; the others wait."""
        task, head = self._task, self.head
        if not head.watermark:
            self._keep_waiting(events, [])
            return events.slice(0, 0)
        until = head.passed = task.time(head.watermark)
        parts = [events] if events.num_rows else []
        free: list[int] = []
        for chunk in [chunk for chunk in head.chunks if chunk[1] <= until]:
            stored = self._state.waiting.getValue((chunk[0],))
            parts.append(read_table(stored[0], task.reads.columns))
            free.append(chunk[0])
            head.chunks.remove(chunk)
        if not parts:
            return task.reads.columns.empty_table()
        together = pa.concat_tables(parts)
        is_ready = task.times(together) <= until
        self._keep_waiting(together.filter(pa.array(~is_ready)), free)
        for number in free:
            self._state.waiting.removeKey((number,))
        return task.order.sorted_by_time(together.filter(pa.array(is_ready)).combine_chunks())

    def _keep_waiting(self, events: pa.Table, free: list[int]) -> None:
        """Stores the events as a chunk, over one of those that are free, if there are any."""
        head = self.head
        if not events.num_rows:
            return
        payload = stored_table(events)
        if free:
            number = free.pop()
        else:
            number = head.chunk
            head.chunk += 1
        self._state.waiting.updateValue((number,), (payload,))
        least = self._task.times(events).min().item()
        head.chunks.append((number, least, events.num_rows, len(payload)))

    def _matched(self, events: pa.Table, is_over: bool) -> Iterator[pa.Table]:
        task, head, now = self._task, self.head, self._now()
        progress = restored_progress(task, head, self._state)
        for begin in range(0, max(events.num_rows, 1), MATCHED_AT_ONCE):
            piece = events.slice(begin, MATCHED_AT_ONCE)
            is_end = begin + MATCHED_AT_ONCE >= events.num_rows
            with plain_errors():
                found = progress.batches(piece, is_over and is_end, task.output.with_times, now if is_end else None)
                yield from (task.given_out(part) for part in found if part.table.num_rows)
        head.wakes, held = None, progress.held()
        if is_over or held.is_idle:
            forget_progress(head, self._state)
            return
        store_progress(progress, events, now, head, self._state)
        wakes = held.wakes_at
        if wakes is not None and task.milliseconds(wakes) > head.watermark:
            head.wakes = task.milliseconds(wakes)  # else it waits for more than time, for NEXT

    def _now(self) -> Time | None:
        head = self.head
        now = self._task.time(head.watermark) if head.watermark else None
        if not self._task.clock.in_arrival_order or head.passed is None:
            return now
        return head.passed if now is None else max(now, head.passed)

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
            times.append(self._task.milliseconds(min(chunk[1] for chunk in head.chunks)))
        if head.engine_bytes:
            times.append(END_OF_TIME)
        wanted = max(min(times), 1) + self._task.clock.lag if times else None
        if head.timer == wanted:
            return
        if head.timer is not None and not (is_woken and head.timer <= head.watermark + self._task.clock.lag):
            timers.deleteTimer(head.timer)
        if wanted is not None:
            timers.registerTimer(wanted)
        head.timer = wanted

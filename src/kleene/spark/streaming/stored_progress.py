"""The engine's progress in a bucket: its snapshot, and beside it the events matched since it was made.

As long as these are few, the snapshot stays as it is, so that keys of which nothing is heard are not written again with
every micro-batch.
"""

from __future__ import annotations

import pyarrow as pa

from kleene.engine.progress import CheckedProgress, PreparedQuery
from kleene.engine.tasks import Time
from kleene.spark.streaming.state import BucketState, Head, compressed, decompressed, read_table, stored_table
from kleene.spark.streaming.task import StreamTask

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
    if not head.engine_bytes:
        return CheckedProgress(query)
    progress = CheckedProgress.restore(query, bytes(decompressed(state.engine.get()[0])))
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

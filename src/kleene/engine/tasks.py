"""What a task on another machine needs of the compiled engine besides matching: times, keys, and errors to tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.batches import Grouped, group, one_group, partition_codes
from kleene.engine.compiled.columns import Array, times_array
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.protocol import Time
from kleene.errors import ExecutionError

__all__ = ["Array", "Grouped", "Time", "grouped_by", "key_codes", "order_times", "plain_errors"]


@contextmanager
def plain_errors() -> Iterator[None]:
    """While open, the engine's own errors become those that users know: a task's error is found by its name."""
    try:
        yield
    except GaveUpError as error:
        raise ExecutionError(error.message, hint=error.hint) from None


def order_times(events: pa.Table, query: AnalyzedQuery | AnalyzedRowPattern) -> Array:
    """The order key as engines count it: microseconds of times and dates, else the number itself."""
    first = query.order_by[0]
    return times_array(events, first if isinstance(first, str) else first.name, query.time_type)


def key_codes(events: pa.Table, key: Sequence[str]) -> tuple[Array, int]:
    """The number of each event's key, and how many there may be."""
    return partition_codes(events, key, null_is_a_key=True)


def grouped_by(events: pa.Table, key: Sequence[str]) -> Grouped:
    """The events of each key together; all of them, if there is no key."""
    return group(*key_codes(events, key), jit=True) if key else one_group(events.num_rows)

"""The window of a query as kernels take it, and when windows are over."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.compiled.arrays import windows
from kleene.engine.compiled.columns import Array, Layout, times_array
from kleene.engine.events import window_size
from kleene.engine.protocol import Time
from kleene.ir.options import WindowUnit
from kleene.schema import FLOAT

LAST_TIME = 2**62


@dataclass(frozen=True, slots=True)
class KernelWindow:
    """The window as the shared loops take it; `kind` is what it is measured in."""

    kind: int
    size: int
    float_size: float

    @property
    def is_float(self) -> bool:
        return self.kind == windows.WINDOW_IN_FLOAT_TIME

    @property
    def in_time(self) -> int | float | None:
        """How long it is, if it is a time."""
        return self.float_size if self.is_float else self.size if self.kind == windows.WINDOW_IN_WHOLE_TIME else None

    def is_over(self, latest: Any, times: Array) -> Array:
        """Whether no event after `latest` can lie before the end of a window that began at the times.

        Floats are compared as negations compare them; whole numbers so that nothing overflows.
        """
        found: Array = latest >= times + self.float_size if self.is_float else latest - times >= self.size
        return found

    def code(self, layout: Layout) -> str:
        """The code that reads its size."""
        return layout.given_float(self.float_size) if self.is_float else layout.given_integer(self.size)

    def function(self, layout: Layout, arguments: str, apart: str, time_apart: str) -> str:
        """The source of `in_window`; how far two rows are apart is code, for a window of events and for one of time."""
        head = f"def in_window(start, row, {arguments}, ki, kf):\n    return "
        if self.kind == windows.NO_WINDOW:
            return head + "True"
        return head + f"{apart if self.kind == windows.WINDOW_IN_EVENTS else time_apart} < {self.code(layout)}"

    @classmethod
    def of(cls, query: AnalyzedQuery | AnalyzedRowPattern) -> KernelWindow:
        window = query.window if isinstance(query, AnalyzedQuery) else query.definition.window
        if window is None:
            return cls(windows.NO_WINDOW, 0, 0.0)
        if window.unit is WindowUnit.EVENTS:
            return cls(windows.WINDOW_IN_EVENTS, int(window.size), 0.0)
        size = window_size(window, query.time_type)
        if query.time_type == FLOAT:
            return cls(windows.WINDOW_IN_FLOAT_TIME, 0, float(size))
        if isinstance(size, Decimal) and size != int(size):
            size = int(size) + 1  # times are whole, and less than 2.5 is less than 3
        return cls(windows.WINDOW_IN_WHOLE_TIME, min(int(size), 2**63 - 1), 0.0)


def latest_of(times: Array, now: Time | None) -> Any:
    """The time that a stream has come to, as the times have it."""
    if not len(times):
        return times.dtype.type(0 if now is None else now)
    latest = times.max()
    return latest if now is None or not now > latest else times.dtype.type(now)


def wakes_at(window: KernelWindow, query: AnalyzedQuery, kept: pa.Table | None, waiting_since: Array) -> Time | None:
    """When time alone may complete a waiting match, or free kept events; None if it never does.

    `waiting_since` are the kept events whose windows matches wait for.
    """
    size = window.in_time
    if size is None or kept is None or not kept.num_rows:
        return None
    times = times_array(kept, query.order_by[0], query.time_type)
    if not len(waiting_since):
        return wake_time(times.max(), 2 * size)
    return wake_time(times[waiting_since].min(), size)


def wake_time(time: Any, size: Time) -> Time | None:
    """When a window that began then is over; None if that is no time of a clock."""
    found: Time = time.item() + size
    return found if abs(found) < LAST_TIME else None

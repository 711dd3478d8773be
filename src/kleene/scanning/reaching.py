"""Pieces of a scan as tables of their own: before each piece stands what a match of it can reach back to.

A match of a SASE query with a window in time depends on nothing but the events within the window before its last one.
So nothing but these events goes from piece to piece, and a piece is matched as a table is, by all threads. An engine
that takes runs from piece to piece spends two times as much on each event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.steps import AnalyzedSteps
from kleene.engine.budget import Budget, table_bytes
from kleene.engine.choice import choose
from kleene.engine.compiled.batches import nullable_names
from kleene.engine.events import window_time
from kleene.engine.protocol import Time
from kleene.engine.tasks import order_times
from kleene.engine.threads import Pool, run_behind
from kleene.ir.options import Format, Timeouts, WindowUnit
from kleene.plan.plan import Plan

ROWS_AT_ONCE, BYTES_AT_ONCE = 1 << 21, 1 << 27
"""So many events, or bytes of them, are matched together: enough that all threads have work."""
MOST_AGAIN = ROWS_AT_ONCE // 8
"""Where a match can reach over more events than this, too many would be looked at again."""


def reach_back(plan: Plan) -> Time | None:
    """How much time before its last event decides about a match; None if more than that does."""
    query = plan.query
    if not isinstance(query, AnalyzedQuery) or isinstance(query, AnalyzedSteps):
        return None
    window = query.window
    if window is None or window.unit is WindowUnit.EVENTS:
        return None
    waits = any(negation.gap == len(query.components) for negation in query.negations)
    depends_on_others = plan.format is not Format.ALL or plan.timeouts is not Timeouts.NONE
    # With a limit, matches that are found twice would count twice.
    if waits or depends_on_others or plan.limits.matches is not None or choose(plan).compiled is None:
        return None
    return window_time(window, query.time_type)


class ReachingMatcher:
    """Matches pieces that follow one another in time, each with the events before it that it can reach."""

    def __init__(self, plan: Plan, reach: Time, id_columns: Sequence[str] | None, budget: Budget) -> None:
        self._plan, self._reach, self._id_columns, self._budget = plan, reach, id_columns, budget
        self._nullable = frozenset[str]()

    def tables(self, pieces: Iterator[tuple[int, pa.Table]]) -> Iterator[tuple[int, pa.Table, int]]:
        """What is matched together: how many events were read for it, and a table with the row where new ones begin."""
        held: list[pa.Table] = []
        again, read, size = 0, 0, 0
        for rows, table in pieces:
            held.append(table)
            read, size = read + rows, size + table_bytes(table)
            if sum(map(len, held)) - again >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
                whole = _joined(held)
                yield read, whole, again
                held = [whole.slice(self._first_in_reach(whole))]
                again, read, size = len(held[0]), 0, 0
        if read:
            yield read, _joined(held), again

    def _first_in_reach(self, table: pa.Table) -> int:
        """The first row that an event behind the table can reach."""
        times = order_times(table, self._plan.query)
        return int(np.searchsorted(times, times[-1] - self._reach, "right")) if len(times) else 0

    def rows(self, pool: Pool, table: pa.Table, first: int) -> pa.Table:
        """The rows of the matches that events from the row `first` on complete."""
        self._nullable |= nullable_names(table)
        found = run_behind(self._plan, table, first, self._nullable, self._id_columns, pool, self._budget)
        self._budget.restart()  # what was held for the table is free again
        self._budget.count(found.num_rows)
        return found


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()

"""Row patterns that run out of time: start rows whose search was still open when their window had passed.

Rows are bound one after the other, so a way is open if it has bound every row of its window and another row could have
gone on with it. Of a row without a match the most preferred of these ways is given out; where all matches are asked
for, every one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.budget import Budget
from kleene.engine.compiled.kernel_window import LAST_TIME
from kleene.engine.events import times_of, window_time
from kleene.engine.protocol import Time
from kleene.engine.row_output import OutputRow, computed_measures, measures_of_part
from kleene.engine.row_reference import PartitionMatcher
from kleene.engine.rows import plain_columns, row_partitions
from kleene.engine.saved_parts import SavedParts
from kleene.engine.timeouts import latest_time
from kleene.errors import UnsupportedError
from kleene.ir import expr as ir
from kleene.ir.options import Timeouts
from kleene.ir.pattern import has_anchor
from kleene.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class FoundRowTimeouts:
    """Rows of the output for starts that are out of time, in the order of their last rows."""

    table: pa.Table
    rows: list[OutputRow]
    closes: list[Time]
    is_settled: bool = True


def check_piece_by_piece(query: AnalyzedRowPattern) -> None:
    """An error if a row that is out of time cannot be told from the rows of its window, and some before it."""
    hint = "Match a whole table instead, or leave timeouts out."
    if has_anchor(query.definition.pattern, at_start=True):
        raise UnsupportedError("piece by piece, timeouts of a pattern with `^` are not known", hint=hint)
    if any(isinstance(node, ir.MatchNumber) for _, own in query.conditions for node in ir.walk(own)):
        raise UnsupportedError("piece by piece, timeouts of conditions with MATCH_NUMBER() are not known", hint=hint)


class RowTimeouts:
    """The rows of a row pattern from which a search may still be open, and those before them that it may look at."""

    def __init__(self, plan: Plan) -> None:
        query = plan.query
        assert isinstance(query, AnalyzedRowPattern)
        assert query.definition.window is not None
        self._plan, self._query = plan, query
        self._size = window_time(query.definition.window, query.time_type)
        shifts = [
            node.shift or 0 for own in query.expressions for node in ir.walk(own) if isinstance(node, ir.Navigation)
        ]
        self._ahead, self._behind = max([0, *shifts]), -min([0, *shifts])
        self._kept: pa.Table | None = None
        self._is_start = np.zeros(0, np.int64)  # of each row that is kept: whether it is still to be tried
        self._wakes_at: Time | None = None

    def closed(self, events: pa.Table, now: Time | None, is_last: bool, budget: Budget) -> Iterator[FoundRowTimeouts]:
        """The starts whose windows have passed. Up to the time `now` all rows are there; they come in order."""
        table = events if self._kept is None else pa.concat_tables([self._kept, events])
        is_start = np.concatenate([self._is_start, np.ones(events.num_rows, np.int64)])
        times = self._times(table)
        latest = latest_time(times, now)
        columns = self._columns(table)
        found: list[tuple[OutputRow, Time]] = []
        kept = np.zeros(table.num_rows, np.bool_)
        for positions in row_partitions(self._query, table):
            here = {name: [values[position] for position in positions] for name, values in columns.items()}
            own = _Partition(
                self, here, positions, [times[position] for position in positions], latest, is_last, budget
            )
            start = int(np.argmax(np.append(is_start[positions], 1)))
            start = own.search(start, found)
            is_start[positions[:start]] = 0
            kept[positions[max(start - self._behind, 0) :]] = True
        self._keep(table, kept & (not is_last), is_start, times)
        if found:
            found.sort(key=lambda item: item[0].order)
            yield FoundRowTimeouts(table, [row for row, _ in found], [closes for _, closes in found])

    @property
    def gives_all(self) -> bool:
        return self._plan.timeouts is Timeouts.ALL

    def _columns(self, table: pa.Table) -> dict[str, Any]:
        query = self._query
        assert query.schema is not None
        assert query.measured_column is not None
        used = [condition for _, condition in query.conditions] + computed_measures(query)
        return plain_columns(used, query.schema, table, {query.measured_column: query.time_type})

    def _times(self, table: pa.Table) -> list[Any]:
        """The times of rows, turned around where they descend; None where a row has none."""
        query = self._query
        assert query.schema is not None
        assert query.measured_column is not None
        name, sign = query.measured_column, -1 if query.order_by[0].descending else 1
        values = plain_columns([], query.schema, table, {name: query.time_type})[name]
        return [None if time is None else sign * time for time in times_of(values, query.time_type)]

    def _keep(self, table: pa.Table, kept: Any, is_start: Any, times: list[Any]) -> None:
        self._kept, self._is_start = table.filter(pa.array(kept)).combine_chunks(), is_start[kept]
        waiting = (times[row] for row in np.flatnonzero(kept & (is_start > 0)))
        first = min((time + self._size for time in waiting if time is not None), default=None)
        self._wakes_at = first if first is not None and abs(first) < LAST_TIME else None

    def held(self) -> tuple[int, int, Time | None]:
        """How many rows are kept, their bytes, and when the next window closes."""
        return (0, 0, None) if self._kept is None else (self._kept.num_rows, self._kept.nbytes, self._wakes_at)

    def saved(self) -> dict[str, Any]:
        return {"timeouts_table": self._kept, "timeouts_starts": self._is_start}

    def load(self, parts: SavedParts) -> None:
        self._kept = parts.table("timeouts_table")
        self._is_start = parts.array("timeouts_starts", parts.rows_of("timeouts_table"), low=0, high=2)
        if self._kept is not None:
            times = self._times(self._kept)
            self._keep(self._kept, np.ones(len(times), np.bool_), self._is_start, times)


@dataclass(frozen=True, slots=True)
class _Partition:
    """The rows of a partition that are at hand."""

    of: RowTimeouts
    columns: dict[str, Any]
    positions: list[int]
    times: list[Any]
    latest: Any
    is_last: bool
    budget: Budget

    def search(self, start: int, found: list[tuple[OutputRow, Time]]) -> int:
        """Follows matching from the row as far as windows have passed; the row where it has to wait."""
        query, plan, count = self.of._query, self.of._plan, len(self.positions)
        matcher = PartitionMatcher(query, self.columns, count, plan.run_limit, self.budget)
        number = 1
        while start < count and self._is_decided(matcher, start):
            self.budget.check_time()
            match, opened = matcher.open_ways(start, number)
            for place, part in enumerate(opened):
                self.budget.count(1)
                measures = measures_of_part(query, part, self.columns, self.positions)
                order = (self.positions[part.last], self.positions[start], number, place)
                found.append((OutputRow(self.positions[start], measures, order), self.times[start] + self.of._size))
            number += match is not None
            start = start + 1 if match is None else matcher.resume(match)
        return start

    def _is_decided(self, matcher: PartitionMatcher, start: int) -> bool:
        """Whether all rows that a search from the row may look at are there."""
        time = self.times[start]
        if time is not None and not (self.is_last and self.of.gives_all) and time + self.of._size > self.latest:
            return False
        return self.is_last or not self.of._ahead or matcher.window_end(start) + self.of._ahead <= len(self.positions)

"""Tables of events in order, put together by whole groups or in parts of a large one, and matched so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.match_order import RowOrder
from kleene.engine.progress import CheckedProgress, PreparedQuery
from kleene.engine.results import ResultBatch
from kleene.engine.run import Runner
from kleene.engine.sorting import sorted_table
from kleene.errors import UnsupportedError
from kleene.plan.plan import Plan
from kleene.spark.marks import GROUP


@dataclass(frozen=True, slots=True)
class Groups:
    """Events of whole groups."""

    table: pa.Table


@dataclass(frozen=True, slots=True)
class GroupPart:
    """A part of one group, too large to be held at once; the parts come in order."""

    table: pa.Table
    is_last: bool


def slices_of(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same events in tables of at most so many rows."""
    for table in tables:
        for at in range(0, table.num_rows, rows):
            yield table.slice(at, rows)


AT_ONCE = 1 << 18
"""Rows that are looked at together: tables of whole groups have about twice as many, or more where a group does."""
LARGE = 1 << 20
"""A group of more rows than this comes in parts."""


def groups_of(tables: Iterable[pa.Table], at_once: int = AT_ONCE, large: int = LARGE) -> Iterator[Groups | GroupPart]:
    """Tables in which each group stands together, put together again so that no group is cut without need."""
    ready: list[pa.Table] = []  # whole groups
    held: list[pa.Table] = []  # the group that may go on
    held_group: int | None = None
    is_parted = False
    for table in slices_of(tables, at_once):
        numbers = table.column(GROUP).to_numpy()
        changes = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        goes_on = held_group is not None and numbers[0] == held_group
        if goes_on and not len(changes):
            held.append(table)
        else:
            first = int(changes[0]) if goes_on else 0
            last = int(changes[-1]) if len(changes) else 0
            held.append(table.slice(0, first))
            if is_parted:
                yield GroupPart(pa.concat_tables(held), True)
            else:
                ready += held
            ready.append(table.slice(first, last - first))
            held, held_group, is_parted = [table.slice(last)], int(numbers[-1]), False
        if sum(part.num_rows for part in held) > (0 if is_parted else large):
            if ready:
                yield Groups(pa.concat_tables(ready))
                ready = []
            yield GroupPart(pa.concat_tables(held), False)
            held, is_parted = [table.slice(0, 0)], True
        if sum(part.num_rows for part in ready) > at_once:
            yield Groups(pa.concat_tables(ready))
            ready = []
    if is_parted:
        yield GroupPart(pa.concat_tables(held), True)
        held = []
    if ready or held:
        yield Groups(pa.concat_tables([*ready, *held]))


class GroupMatcher:
    """Matches whole groups together; one that comes in parts as it comes, if the engine can do that, else whole."""

    def __init__(
        self,
        plan: Plan,
        columns: pa.Schema,
        with_times: bool,
        mixed_by: tuple[str, ...],
        row_order: RowOrder | None = None,
    ) -> None:
        self._plan, self._columns, self._with_times, self._mixed_by = plan, columns, with_times, mixed_by
        self._row_order = row_order
        self._runner = Runner(plan)
        self._progress: CheckedProgress | None = None
        self._held: list[pa.Table] = []
        self._can_flow = plan.mode == "verbose" and not _needs_all(plan)

    def found(self, part: Groups | GroupPart) -> Iterator[ResultBatch]:
        events = part.table.drop_columns([GROUP])
        return self._of_part(events, part.is_last) if isinstance(part, GroupPart) else self._matches(events)

    def _matches(self, events: pa.Table) -> Iterator[ResultBatch]:
        if not events.num_rows:
            return iter(())
        if self._mixed_by:
            events = sorted_table(events, self._mixed_by)
        return self._runner.batches(events, self._with_times, in_order=False, row_order=self._row_order)

    def _of_part(self, events: pa.Table, is_last: bool) -> Iterator[ResultBatch]:
        if self._progress is None and self._can_flow and not self._held:
            try:
                self._progress = CheckedProgress(PreparedQuery(self._plan, self._columns))
            except UnsupportedError:
                self._can_flow = False
        if self._progress is not None:
            found = self._progress.batches(events, is_last, self._with_times, row_order=self._row_order)
            self._progress = None if is_last else self._progress
            return found
        self._held.append(events)
        if not is_last:
            return iter(())
        whole, self._held = pa.concat_tables(self._held), []
        return self._matches(whole)


def _needs_all(plan: Plan) -> bool:
    """Whether only the interpreter, which needs all events, may have an answer: where order keys may be NULL."""
    query = plan.query
    return isinstance(query, AnalyzedRowPattern) and any(key.nulls_first is not None for key in query.order_by[:1])

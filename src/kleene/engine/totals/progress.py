"""Aggregates over all matches of events that come piece by piece.

The graph that open runs share is kept between pieces, as for matches. The rows of events come with the piece that they
are in, those of windows of time once time has passed them, and all others in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.totals import WINDOW_END
from kleene.engine.budget import Budget
from kleene.engine.compiled.run_engine import RunProgress
from kleene.engine.events import plain_values, times_of, window_time
from kleene.engine.match_order import RowOrder
from kleene.engine.progress import CheckedProgress, PreparedQuery
from kleene.engine.protocol import Held, Time
from kleene.engine.results import ResultBatch
from kleene.engine.saved_parts import SavedParts
from kleene.engine.totals.groups import Totals, grouping_of, no_columns, totals_table
from kleene.engine.totals.partial import no_totals, partial_schema, partial_table, put_together
from kleene.engine.totals.totals import totals_of_found, totals_of_piece, why_match_by_match
from kleene.errors import UnsupportedError


class TotalsProgress(CheckedProgress):
    """Feed it tables of events, each later than the one before; it gives back rows of groups that are complete."""

    def __init__(self, query: PreparedQuery) -> None:
        super().__init__(query)
        why = why_match_by_match(query.plan, query.choice, frozenset(query.columns.names))
        self._by_graph = why is None and isinstance(self._engine, RunProgress)
        assert isinstance(query.plan.query, AnalyzedQuery)
        self._analyzed, self._grouping = query.plan.query, grouping_of(query.plan.query)
        self._delay = self._longest_wait()
        self._open: pa.Table | None = None  # groups that are not complete, with what is known of them

    def _longest_wait(self) -> Time:
        """How long after its last event a match may become certain."""
        query = self._analyzed
        if query.window is None or not any(own.gap == len(query.components) for own in query.negations):
            return 0
        if self._grouping.by_event:
            raise UnsupportedError(
                "aggregates by event cannot be added up piece by piece: with a negation in last place, the matches of "
                "an event become certain one after the other, each when its own window has passed",
                hint="Group by a window of time, or aggregate a whole table.",
            )
        return window_time(query.window, query.time_type)

    def batches(
        self,
        table: pa.Table,
        is_last: bool,
        with_times: bool = False,
        now: Time | None = None,
        row_order: RowOrder | None = None,
    ) -> Iterator[ResultBatch]:
        self._engine.budget = Budget(self._plan.limits, table.num_rows)
        found = self._of_graph(table, now, is_last) if self._by_graph else self._of_matches(table, now, is_last)
        if not self._grouping.by_event:
            found = self._completed(found, table, now, is_last)
        if found.cells or is_last:
            made = partial_table if self._grouping.is_partial else totals_table
            yield ResultBatch(made(self._analyzed, found, self._columns))

    def _of_graph(self, table: pa.Table, now: Time | None, is_last: bool) -> Totals:
        engine = self._engine
        assert isinstance(engine, RunProgress)
        piece, done = engine.completions(table, is_last, now)
        assert engine.buffer is not None
        found = totals_of_piece(self._analyzed, piece, engine.buffer, done, engine.engine.jit)
        if not is_last:
            engine.go_on(piece)
        return found

    def _of_matches(self, table: pa.Table, now: Time | None, is_last: bool) -> Totals:
        """The same where no graph holds all matches: from matches that are made one by one."""
        return totals_of_found(self._analyzed, self._engine.feed(table, now, is_last), table)

    def _completed(self, found: Totals, table: pa.Table, now: Time | None, is_last: bool) -> Totals:
        """What is known of groups that no event to come belongs to; the others wait."""
        new, columns = partial_table(self._analyzed, found, self._columns), self._columns
        known = put_together(self._analyzed, [new] if self._open is None else [self._open, new], new.schema)
        if known is None:
            return Totals(found.groups, [])
        self._open = None
        if is_last:
            return known
        waits = [True] * len(known.cells)
        times = self._times(table.slice(max(table.num_rows - 1, 0))) + ([] if now is None else [now])
        if self._grouping.window is not None and times:
            latest = max(times)
            waits = [latest < end + self._delay for end in self._times(known.groups, WINDOW_END)]
        later = _chosen(known, waits)
        self._open = partial_table(self._analyzed, later, columns) if later.cells else None
        return _chosen(known, [not wait for wait in waits])

    def _times(self, table: pa.Table, name: str | None = None) -> list[Any]:
        name, type_ = name or self._analyzed.order_by[0], self._analyzed.time_type
        return times_of(plain_values(table.column(name), type_, name), type_)

    def held(self) -> Held:
        held = super().held()
        if self._open is None:
            return held
        wakes = [] if held.wakes_at is None else [held.wakes_at]
        if self._grouping.window is not None:
            wakes += [end + self._delay for end in self._times(self._open, WINDOW_END)]
        return replace(held, bytes=held.bytes + self._open.nbytes, wakes_at=min(wakes, default=None), is_idle=False)

    def saved(self) -> dict[str, Any]:
        return {**super().saved(), "totals": self._open}

    def load(self, parts: SavedParts) -> None:
        super().load(parts)
        self._open = parts.table("totals", partial_schema(self._analyzed, self._columns))
        if self._open is not None:
            # A part that was forged is noticed here, and not when it is needed.
            known = put_together(self._analyzed, [self._open], self._open.schema) or no_totals(self._analyzed)
            totals_table(self._analyzed, known, self._columns)


def _chosen(known: Totals, wanted: list[bool]) -> Totals:
    cells = [own for own, is_wanted in zip(known.cells, wanted, strict=True) if is_wanted]
    places = pa.array([place for place, is_wanted in enumerate(wanted) if is_wanted], pa.int64())
    return Totals(known.groups.take(places) if known.groups.num_columns else no_columns(len(cells)), cells)

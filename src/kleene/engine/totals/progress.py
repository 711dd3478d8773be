"""Aggregates over all matches of events that come piece by piece.

The graph that open runs share is kept between pieces, as for matches. The rows of events come with the piece that they
are in, those of windows of time once time has passed them, and all others in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.totals import WINDOW_END
from kleene.engine.budget import Budget
from kleene.engine.compiled.run_engine import RunProgress
from kleene.engine.events import plain_values, times_of
from kleene.engine.match_order import RowOrder
from kleene.engine.progress import CheckedProgress, PreparedQuery
from kleene.engine.protocol import Time
from kleene.engine.results import ResultBatch
from kleene.engine.saved_parts import SavedParts
from kleene.engine.totals.groups import Totals, grouping_of, no_columns, totals_table
from kleene.engine.totals.partial import no_totals, partial_schema, partial_table, put_together
from kleene.engine.totals.totals import totals_of_piece, why_match_by_match
from kleene.errors import UnsupportedError


class TotalsProgress(CheckedProgress):
    """Feed it tables of events, each later than the one before; it gives back rows of groups that are complete."""

    def __init__(self, query: PreparedQuery) -> None:
        why = why_match_by_match(query.plan, query.choice, frozenset(query.columns.names))
        super().__init__(query)
        if why is None and not isinstance(self._engine, RunProgress):
            why = "no match can exist"
        if why is not None:
            raise UnsupportedError(
                f"aggregates over all matches cannot be added up piece by piece, since {why}",
                hint="Aggregate whole tables, with Query.aggregate, or what progress gives out without aggregates.",
            )
        assert isinstance(query.plan.query, AnalyzedQuery)
        self._analyzed, self._grouping = query.plan.query, grouping_of(query.plan.query)
        self._open: pa.Table | None = None  # groups that are not complete, with what is known of them

    def batches(
        self,
        table: pa.Table,
        is_last: bool,
        with_times: bool = False,
        now: Time | None = None,
        row_order: RowOrder | None = None,
    ) -> Iterator[ResultBatch]:
        engine = self._engine
        assert isinstance(engine, RunProgress)
        engine.budget = Budget(self._plan.limits, table.num_rows)
        piece, done = engine.completions(table, is_last)
        assert engine.buffer is not None
        found = totals_of_piece(self._analyzed, piece, engine.buffer, done, engine.engine.jit)
        if not is_last:
            engine.go_on(piece)
        if not self._grouping.by_event:
            found = self._completed(found, table, is_last)
        whole = totals_table(self._analyzed, found, self._columns) if found.cells or is_last else None
        if whole is not None:
            yield ResultBatch(whole)

    def _completed(self, found: Totals, table: pa.Table, is_last: bool) -> Totals:
        """What is known of groups that no event to come belongs to; the others wait."""
        new, columns = partial_table(self._analyzed, found, self._columns), self._columns
        known = put_together(self._analyzed, [new] if self._open is None else [self._open, new], new.schema)
        if known is None:
            return Totals(found.groups, [])
        self._open = None
        if is_last:
            return known
        waits = [True] * len(known.cells)
        if self._grouping.window is not None and table.num_rows:
            ends, latest = self._times(known.groups, WINDOW_END), self._times(table.slice(table.num_rows - 1))[0]
            waits = [latest < end for end in ends]
        later = _chosen(known, waits)
        self._open = partial_table(self._analyzed, later, columns) if later.cells else None
        return _chosen(known, [not wait for wait in waits])

    def _times(self, table: pa.Table, name: str | None = None) -> list[Any]:
        name, type_ = name or self._analyzed.order_by[0], self._analyzed.time_type
        return times_of(plain_values(table.column(name), type_, name), type_)

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

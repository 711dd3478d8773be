"""Compressed output of events that come piece by piece: the rows of the events that complete matches in a piece.

The graph that open runs share is kept between pieces, as for matches, and a structure is the part of it that an event's
matches are made of.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.budget import Budget
from kleene.engine.compiled.run_engine import RunProgress
from kleene.engine.compressed import CompressedMatches
from kleene.engine.match_order import RowOrder
from kleene.engine.progress import CheckedProgress, PreparedQuery
from kleene.engine.protocol import Time
from kleene.engine.results import ResultBatch, table_batches
from kleene.errors import UnsupportedError


class CompressedProgress(CheckedProgress):
    """Feed it tables of events, each later than the one before; it gives back rows of compressed output."""

    def __init__(self, query: PreparedQuery) -> None:
        super().__init__(query)
        analyzed = query.plan.query
        assert isinstance(analyzed, AnalyzedQuery)
        self._analyzed = analyzed
        if any(negation.gap == len(analyzed.components) for negation in analyzed.negations):
            raise UnsupportedError(
                "compressed output holds all matches of an event together, but with a negation in last place they "
                "become certain one after the other, each when its own window has passed",
                hint="Use match, or compress a whole table.",
            )
        if not isinstance(self._engine, RunProgress) and query.choice.name != "nothing":
            raise UnsupportedError(
                f"compressed output needs the match buffer that runs share, but the query is run by "
                f"{query.choice.reason}",
                hint="Use match, or choose another engine or algorithm.",
            )

    def batches(
        self,
        table: pa.Table,
        is_last: bool,
        with_times: bool = False,
        now: Time | None = None,
        row_order: RowOrder | None = None,
    ) -> Iterator[ResultBatch]:
        engine = self._engine
        if not isinstance(engine, RunProgress):  # nothing can match
            return
        budget = engine.budget = Budget(self._plan.limits, table.num_rows)
        piece, done = engine.completions(table, is_last, now)
        assert engine.buffer is not None
        if len(done):
            found = CompressedMatches(self._analyzed, engine.engine, piece, engine.buffer, done, budget)
            yield from table_batches(found.to_table())
        if not is_last:
            engine.go_on(piece)

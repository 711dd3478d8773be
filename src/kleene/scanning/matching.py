"""Pieces of a scan to the rows of its matches.

Each thread has a progress of its own, which takes the events of some keys through all pieces; without a key there is
one. While they match a piece, the next one is read. Beside each row stands what tells the place of the event that
completes its match, so that rows can be put in output order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Lock

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.budget import Budget
from kleene.engine.compiled.meter import Meter
from kleene.engine.event_types import MissingTypes
from kleene.engine.needs import useful_event
from kleene.engine.progress import CheckedProgress, PreparedQuery
from kleene.engine.protocol import Time
from kleene.engine.results import PLACED, RowWriter
from kleene.engine.row_output import NUMBER
from kleene.engine.threads import Pool
from kleene.engine.ties import IN_PROCESS, TieCounter, tie_rule
from kleene.engine.useful import only_useful
from kleene.ir.options import Timeouts
from kleene.plan.plan import ByKey, Plan
from kleene.scanning.reaching import ReachingMatcher
from kleene.scanning.shares import KeyShares
from kleene.scanning.sweep import made_ahead


class PieceMatcher:
    """A plan made ready for pieces, whose columns are the given ones and the number of each event.

    What is to be told of the events is known when all have come.
    """

    def __init__(
        self,
        plan: Plan,
        columns: pa.Schema,
        order_columns: Sequence[str],
        has_tie_break: bool,
        id_columns: Sequence[str] | None,
        budget: Budget,
    ) -> None:
        self.plan, self.budget = plan, budget
        self._columns = columns.append(pa.field(NUMBER, pa.int64()))
        self._prepared = PreparedQuery(plan, self._columns, order_columns)
        self._order_columns, self._id_columns = tuple(order_columns), id_columns
        self._rule = tie_rule(plan, tuple(columns.names), has_tie_break)
        self._ties, self.types = 0, MissingTypes(plan)
        self._is_empty = True
        self._empty = self._columns.empty_table()  # with the types that pieces have: some texts are codes
        self._useful = useful_event(plan.query) if isinstance(plan.query, AnalyzedQuery) else None

    # --- in the order of time: events are numbered as they come ---

    def in_order(self, pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The rows of pieces that follow one another, each with the number of the event that completes its match."""
        shares = shares_of(self.plan)
        progresses = [CheckedProgress(self._prepared) for _ in range(shares.count)]
        writer, budgets = self._writer(NUMBER), self.budget.for_threads(shares.count)

        def fed(parts: Sequence[pa.Table], is_last: bool, share: int) -> list[pa.Table]:
            if not parts[share].num_rows and not is_last:
                return []
            found = progresses[share].written(parts[share], is_last, writer, budgets[share])
            return [batch.table for batch in found if batch.table.num_rows]

        # One piece is read, one is dealt out, and one is matched, each by threads of its own.
        with (
            self._threads(shares.count) as pool,
            made_ahead(pieces) as read,
            made_ahead(self._numbered(read, shares)) as ready,
        ):
            for rows, parts in ready:
                yield from self._given(pool.map(partial(fed, parts, False), range(shares.count)))
                self.budget.passed(rows)
            yield from self._given(pool.map(partial(fed, [self._empty] * shares.count, True), range(shares.count)))

    def _numbered(self, pieces: Iterator[pa.Table], shares: KeyShares) -> Iterator[tuple[int, list[pa.Table]]]:
        """How many events each piece has, and those of each share."""
        first = 0
        for table in self._looked_at(pieces):
            numbers = pa.array(np.arange(first, first + table.num_rows))
            first += table.num_rows
            of_use = only_useful(table.append_column(NUMBER, numbers), self._useful)
            self._empty = of_use.schema.empty_table()
            yield table.num_rows, shares.split(of_use)

    def _looked_at(self, pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The pieces, of which ties and types are noted on their way."""
        counter = None if self._rule is None else TieCounter(self._rule)
        for table in pieces:
            if counter is not None:
                counter.add(table)
            self.types.look_at(table)
            yield table
        self._ties += 0 if counter is None else counter.finish()

    def reaching_back(self, pieces: Iterator[pa.Table], reach: Time) -> Iterator[pa.Table]:
        """The same, where a match depends on no more than so much time before its last event; rows count themselves."""
        matcher = ReachingMatcher(self.plan, reach, self._id_columns, self.budget)
        of_use = ((table.num_rows, only_useful(table, self._useful)) for table in self._looked_at(pieces))
        given = 0
        with self._threads(self.plan.threads) as pool, made_ahead(matcher.tables(of_use)) as ready:
            for rows, table, first in ready:
                found = matcher.rows(pool, table, first)
                places = pa.array(np.arange(given, given + found.num_rows))
                given += found.num_rows
                yield from self._given([[found.append_column(f"{PLACED}0", places)] if found.num_rows else []])
                self.budget.passed(rows)

    # --- by groups of keys: events have the numbers that they have in the input ---

    def by_groups(self, groups: Sequence[Callable[[], Iterator[pa.Table]]]) -> Iterator[pa.Table]:
        """The rows of groups that have no key in common: pieces that follow one another, made when they are needed.

        Beside each row stand the order columns and the number of the event that completes its match.
        """
        if not groups:
            return
        threads = min(self.plan.threads, len(groups))
        writer, budgets = self._writer(*self._order_columns, NUMBER), self.budget.for_threads(threads)

        looking = Lock()

        def matched(group: int) -> tuple[list[pa.Table], int]:
            progress, found = CheckedProgress(self._prepared), list[pa.Table]()
            counter = None if self._rule is None else TieCounter(self._rule)
            budget = budgets[group % threads]
            for piece in groups[group]():
                if counter is not None:
                    counter.add(piece)
                with looking:
                    self.types.look_at(piece)
                piece = only_useful(piece, self._useful)
                found += [batch.table for batch in progress.written(piece, False, writer, budget)]
                self.budget.passed(piece.num_rows)
            found += [batch.table for batch in progress.written(self._empty, True, writer, budget)]
            ties = 0 if counter is None else counter.finish()
            return [table for table in found if table.num_rows], ties

        with self._threads(threads) as pool:
            for at in range(0, len(groups), threads):
                done = pool.map(matched, range(at, min(at + threads, len(groups))))
                self._ties += sum(ties for _, ties in done)
                yield from self._given([found for found, _ in done])

    # --- both ---

    def notes(self) -> list[str]:
        """What is to be told of the events, once all rows were taken."""
        told = [] if self._rule is None or not self._ties else [self._rule.told(self._ties, IN_PROCESS)]
        return [*told, *self.types.notes(self._is_empty)]

    @contextmanager
    def _threads(self, count: int) -> Iterator[Pool]:
        with ThreadPoolExecutor(count, "kleene") as threads:
            try:
                yield Pool(threads, count, self.budget)
            except BaseException:
                self.budget.end()  # also where the user has pressed Ctrl-C: whoever still works gives up
                raise

    def _writer(self, *placed_by: str) -> RowWriter:
        return RowWriter(self.plan, self._prepared.measures, Meter(), id_columns=self._id_columns, placed_by=placed_by)

    def _given(self, found: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]:
        for tables in found:
            self._is_empty = self._is_empty and not tables
            yield from tables
        self.budget.check_time()


def shares_of(plan: Plan) -> KeyShares:
    # The last of all events tells which runs are out of time, so that these are found together.
    is_apart = isinstance(plan.split, ByKey) and plan.timeouts is Timeouts.NONE
    names = plan.split.columns if isinstance(plan.split, ByKey) else ()
    return KeyShares(names, isinstance(plan.query, AnalyzedRowPattern), plan.threads if is_apart else 1)

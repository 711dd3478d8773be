"""How the events of one call come to its threads: in shares of whole partitions, or in ranges of one partition.

A layout is a value. Its parts can be matched apart, each by any thread, and it puts the rows of all parts together in
output order, which is the same whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.budget import Budget, table_bytes
from kleene.engine.choice import CompiledEngine
from kleene.engine.compiled.columns import Array
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.compiled.row_engine import RowEngine
from kleene.engine.merging import Made, chained, in_order, merged
from kleene.engine.range_shares import Found, Ranges, chosen_of, cut_by_range, has_one_key
from kleene.engine.ranges import is_choosing
from kleene.engine.row_ends import Packed, packed_matches, searched_columns, table_of_matches
from kleene.engine.run import Runner
from kleene.engine.share_keys import Result, Workers
from kleene.engine.shares import Cut, cut_by_key
from kleene.engine.unencoded import with_texts
from kleene.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class Maker:
    """How the events of a call become rows, whatever part of them it is. `nullable` are columns that have NULLs.

    Of matches that events before the row `first` complete, no rows are wanted.
    """

    plan: Plan
    nullable: frozenset[str]
    schema: pa.Schema
    with_times: bool
    id_columns: Sequence[str] | None
    first: int = 0

    def made(self, table: pa.Table, budget: Budget) -> Made:
        """The rows of the matches in the table; without places, where rows come partition by partition."""
        runner, held, places = Runner(self.plan, self.nullable), list[pa.Table](), list[Array]()
        for batch in runner.batches(table, self.with_times, self.id_columns, budget=budget, holds_all=True):
            held.append(batch.table)
            if batch.places is not None:
                places.append(batch.places)
            else:
                assert self.goes_by_partition, "rows that are merged have places"
            budget.add("its result", table_bytes(batch.table))
        return self.together(held, places)

    def together(self, tables: Sequence[pa.Table], places: Sequence[Array]) -> Made:
        """Tables of rows that follow each other."""
        rows = pa.concat_tables(tables) if tables else pa.Table.from_batches([], self.schema)
        return Made(rows, np.concatenate(places) if places else np.empty(0, np.int64))

    @property
    def goes_by_partition(self) -> bool:
        return isinstance(self.plan.query, AnalyzedRowPattern) and self.plan.query.frame is not None


class Layout(Protocol[Result]):
    def __len__(self) -> int:
        """How many parts there are."""

    def made(self, number: int, budget: Budget) -> Result:
        """What a part gives: its rows, or what they are made of."""

    def joined(self, made: Sequence[Result], workers: Workers, budget: Budget) -> pa.Table:
        """The rows of all parts, in output order."""


@dataclass(frozen=True, slots=True)
class InShares:
    """Each part has whole partitions."""

    maker: Maker
    cut: Cut
    jit: bool

    def __len__(self) -> int:
        return len(self.cut)

    def made(self, number: int, budget: Budget) -> Made:
        share = self.cut.share(number)
        found = self.maker.made(share.table, budget)
        if not len(found.places):
            return found
        return in_order(Made(found.rows, share.positions[found.places])).behind(self.maker.first)

    def joined(self, made: Sequence[Made], workers: Workers, budget: Budget) -> pa.Table:
        if self.maker.goes_by_partition:
            # Its rows come partition by partition; texts that are keys may still be codes.
            return pa.concat_tables([part.rows.cast(self.maker.schema) for part in made])
        budget.hold("its result, put in order", sum(table_bytes(part.rows) for part in made))
        return merged(made, self.maker.schema, shared_loops(self.jit), workers)


@dataclass(frozen=True, slots=True)
class ByEnds:
    """Each part has whole partitions, and gives the ends of its matches; their rows are made of the whole table."""

    maker: Maker
    table: pa.Table
    cut: Cut
    engine: RowEngine

    def __len__(self) -> int:
        return len(self.cut)

    def made(self, number: int, budget: Budget) -> Packed:
        share, loops = self.cut.share(number), shared_loops(self.engine.jit)
        return packed_matches(self.engine, share, self.maker.nullable, loops, budget)

    def joined(self, made: Sequence[Packed], workers: Workers, budget: Budget) -> pa.Table:
        assert isinstance(self.maker.plan.query, AnalyzedRowPattern)
        matches = sum(len(part.last) for part in made)
        budget.hold("its result, put in order", 8 * (self.table.num_rows + matches * len(self.maker.schema)))
        loops = shared_loops(self.engine.jit)
        return table_of_matches(self.maker.plan.query, self.table, self.maker.schema, made, loops, workers)


@dataclass(frozen=True, slots=True)
class InRanges:
    """Each part is a slice of the table, and its own matches begin there.

    Where matches are chosen among candidates, `chosen` has those of each part.
    """

    maker: Maker
    ranges: Ranges
    chosen: list[Found] | None = None

    def __len__(self) -> int:
        return len(self.ranges)

    def made(self, number: int, budget: Budget) -> Made:
        found = self.ranges.candidates(number, budget) if self.chosen is None else self.chosen[number]
        made = self.maker.together(*self.ranges.rows(number, found, self.maker.with_times, budget))
        return made.behind(self.maker.first)

    def joined(self, made: Sequence[Made], workers: Workers, budget: Budget) -> pa.Table:
        return chained(made, self.maker.schema)


def choose_layout(
    maker: Maker, table: pa.Table, engine: CompiledEngine, workers: Workers, budget: Budget
) -> Layout[Any] | None:
    """How the table is spread over the workers; None where its events are matched together."""
    is_one = has_one_key(maker.plan, table)
    if not is_one:
        searched = searched_columns(maker.plan, table)
        cut = cut_by_key(maker.plan, table, engine.jit, workers, budget, searched)
        if cut is not None and searched is not None:
            assert isinstance(engine, RowEngine)
            return ByEnds(maker, table, cut, engine)
        if cut is not None:
            return InShares(maker, cut, engine.jit)
    if workers.count == 1 or maker.id_columns is not None:
        return None
    table = with_texts(table)
    is_one = has_one_key(maker.plan, table)
    ranges = cut_by_range(maker.plan, table, workers, maker.nullable, is_one)
    if isinstance(ranges, str):
        return None
    return InRanges(maker, ranges, _chosen(ranges, engine.jit, workers, budget) if is_choosing(maker.plan) else None)


def _chosen(ranges: Ranges, jit: bool, workers: Workers, budget: Budget) -> list[Found]:
    """The matches of each range, where they are chosen among the candidates of all."""
    budgets = budget.for_threads(len(ranges))
    found = workers.map(lambda number: ranges.candidates(number, budgets[number]), range(len(ranges)))
    budget.restart()  # what was counted there were candidates
    chosen = chosen_of(ranges, found, shared_loops(jit))
    budget.count(sum(len(part.matches) for part in chosen))
    return chosen

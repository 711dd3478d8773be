"""What runs inside a Spark task: sorted Arrow batches of events to Arrow batches of matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.events import check_order_key, null_order_key
from kleene.engine.rows import with_computed_keys
from kleene.engine.run import Runner
from kleene.engine.sorting import sorted_table
from kleene.plan.plan import Plan
from kleene.spark.match_order import match_order_column
from kleene.spark.names import plain_names

NO_ORDER_KEY = "__kleene_no_order_key"
"""A flag that Spark computes: the event has no place in the order. Such events come first."""


@dataclass(frozen=True, slots=True)
class KeyAdder:
    """A function from batches to batches that adds the keys that are expressions."""

    query: AnalyzedRowPattern
    columns: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            known = table.rename_columns(self.columns.names).cast(self.columns)
            keys = with_computed_keys(self.query, known).select([name for name, _ in self.query.computed])
            for name, column in zip(keys.column_names, keys.columns, strict=True):
                table = table.append_column(name, column)
            yield from table.rename_columns(plain_names(table.column_names)).to_batches()


@dataclass(frozen=True, slots=True)
class Matcher:
    """A function from batches to batches, shipped to every task.

    Batches come sorted by key and order, and a key is in one task only. What is held at a time is one batch and the
    rest of the key that was not complete in the one before.
    """

    plan: Plan
    columns: pa.Schema
    key: tuple[str, ...]
    order_by: tuple[str, ...]
    sort_columns: tuple[str, ...] | None
    result: pa.Schema
    with_times: bool
    mixed_by: tuple[str, ...] = ()  # the order to put the events of several keys in, if the query has no partitions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        runner = Runner(self.plan)
        for table in self._complete_keys(self._checked(batches)):
            if self.mixed_by:
                table = sorted_table(table, self.mixed_by)
            yield from self._matches(runner, table)

    def _checked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The batches with the columns that the plan knows; an error if any event has no place in the order."""
        unordered: list[pa.Table] = []
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns([*self.columns.names, NO_ORDER_KEY])
            flags = table.column(NO_ORDER_KEY)
            table = table.drop_columns([NO_ORDER_KEY]).cast(self.columns)
            if pc.any(flags).as_py():
                unordered.append(table.filter(flags))
            elif unordered:
                break
            else:
                yield table
        if unordered:
            table = pa.concat_tables(unordered)
            check_order_key(table, self.order_by)
            raise null_order_key(self.order_by[0], table.num_rows)

    def _complete_keys(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Tables of whole keys: the events of the last key wait until the key changes or the input ends."""
        waiting: list[pa.Table] = []
        for table in tables:
            start = self._start_of_last_key(table)
            continues = start > 0 or not waiting or self._same_key(waiting[0], table)
            if continues and start > 0:
                yield pa.concat_tables([*waiting, table.slice(0, start)])
                waiting = [table.slice(start)]
            elif continues:
                waiting.append(table)
            else:
                yield pa.concat_tables(waiting)
                waiting = [table]
        if waiting:
            yield pa.concat_tables(waiting)

    def _start_of_last_key(self, table: pa.Table) -> int:
        if not self.key or not table.num_rows:
            return 0
        same = [_equals_last(table.column(name)) for name in self.key]
        return int(table.num_rows - pc.sum(reduce(pc.and_, same)).as_py())

    def _same_key(self, left: pa.Table, right: pa.Table) -> bool:
        both = pa.concat_tables([left.select(self.key).slice(0, 1), right.select(self.key).slice(0, 1)])
        return all(_equals_last(both.column(name))[0].as_py() for name in self.key)

    def _matches(self, runner: Runner, table: pa.Table) -> Iterator[pa.RecordBatch]:
        for part in runner.batches(table, self.with_times):
            rows = part.table
            if self.sort_columns is not None:
                assert part.matches is not None
                order = match_order_column(table, part.matches, self.sort_columns)
                rows = rows.append_column(self.result.field(self.result.names[-1]), order.cast(self.result.types[-1]))
            yield from rows.cast(self.result).to_batches()


def _equals_last(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which values are the same key as the last one; NULL is the same as NULL, and NaN as NaN."""
    last = column[len(column) - 1]
    if not last.is_valid:
        return pc.is_null(column)
    if pa.types.is_floating(column.type) and pc.is_nan(last).as_py():
        return pc.fill_null(pc.is_nan(column), False)
    return pc.fill_null(pc.equal(column, last), False)

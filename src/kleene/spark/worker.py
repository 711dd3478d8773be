"""What runs inside a Spark task: Arrow batches of events to Arrow batches of matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.events import check_order_key, null_order_key
from kleene.engine.progress import Progress
from kleene.engine.rows import with_computed_keys
from kleene.engine.run import ResultBatch, Runner
from kleene.engine.sorting import sorted_table
from kleene.errors import ExecutionError, UnsupportedError, printable
from kleene.plan.plan import Plan
from kleene.spark.gathering import GROUP, Groups, TaskOrder, groups_of, sorted_tables
from kleene.spark.handover import Sorting
from kleene.spark.match_order import match_order_column
from kleene.spark.names import plain_names


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
    """A function from batches to batches, shipped to every task. A group of events is in one task only.

    What is held at a time is bounded: whole groups together, or the state of one group that is too large for that.
    """

    plan: Plan
    columns: pa.Schema
    sorting: Sorting
    order: TaskOrder
    strict: tuple[str, ...]
    result: pa.Schema
    carried: tuple[str, ...] | None = None  # the columns that a match's place in the output is told by
    with_times: bool = False
    mixed_by: tuple[str, ...] = ()  # the order to put the events of several keys in, if the query has no partitions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = self._checked(batches)
        if self.sorting is Sorting.TASK:
            tables = sorted_tables(tables, self.order)
        elif self.sorting is Sorting.PRESORTED:
            tables = checked_order(tables, self.order)
        runner, large = Runner(self.plan), _LargeGroup(self.plan, self.columns, self.with_times)
        for part in groups_of(tables):
            events = part.table.drop_columns([GROUP])
            if isinstance(part, Groups):
                yield from self._given_out(self._matches(runner, events))
            else:
                whole = large.add(events, part.is_last)
                yield from self._given_out(whole if whole is not None else self._matches(runner, large.events()))

    def _matches(self, runner: Runner, events: pa.Table) -> Iterator[ResultBatch]:
        if self.mixed_by:
            events = sorted_table(events, self.mixed_by)
        return runner.batches(events, self.with_times)

    def _checked(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The batches with the columns that the plan knows; an error if any event has no place in the order."""
        schema = self.columns.append(pa.field(GROUP, pa.int64()))
        unordered: list[pa.Table] = []
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema)
            missing = table.column(GROUP)
            if missing.null_count:
                unordered.append(table.filter(missing.is_null()))
            elif not unordered:
                yield table
        if unordered:
            table = pa.concat_tables(unordered)
            check_order_key(table, self.strict)
            raise null_order_key(self.strict[0], table.num_rows)

    def _given_out(self, parts: Iterable[ResultBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            rows = part.table
            if self.carried is not None:
                assert part.matches is not None
                order = match_order_column(part.events, part.matches, self.carried)
                rows = rows.append_column(self.result.field(self.result.names[-1]), order.cast(self.result.types[-1]))
            yield from rows.cast(self.result).to_batches()


class _LargeGroup:
    """A group that comes in parts: it is matched as it comes where the engine can do that, else put together."""

    def __init__(self, plan: Plan, columns: pa.Schema, with_times: bool) -> None:
        self._plan, self._columns, self._with_times = plan, columns, with_times
        self._progress: Progress | None = None
        self._held: list[pa.Table] = []
        self._can_flow = plan.mode == "verbose"

    def add(self, events: pa.Table, is_last: bool) -> Iterator[ResultBatch] | None:
        """The matches that the part completes; None where the group is whole now, and not matched yet."""
        if self._progress is None and self._can_flow and not self._held:
            try:
                self._progress = Progress(self._plan, self._columns)
            except UnsupportedError:
                self._can_flow = False
        if self._progress is None:
            self._held.append(events)
            return None if is_last else iter(())
        found = self._progress.batches(events, is_last, self._with_times)
        if is_last:
            self._progress = None
        return found

    def events(self) -> pa.Table:
        whole = pa.concat_tables(self._held)
        self._held = []
        return whole


def checked_order(tables: Iterable[pa.Table], order: TaskOrder) -> Iterator[pa.Table]:
    """The tables as they are; an error where a group does not stand together, or its events are not in order."""
    done: set[int] = set()
    last: pa.Table | None = None
    for table in tables:
        if not table.num_rows:
            continue
        together = table if last is None else pa.concat_tables([last, table])
        numbers, times = order.keys(together)
        changes = numbers[1:] != numbers[:-1]
        here = [int(numbers[0]), *numbers[1:][changes].tolist()]
        name = printable(order.columns[0].name)
        if (~changes & (times[1:] < times[:-1])).any() or order.breaks_ties(together):
            raise ExecutionError(
                f"presorted=True was given, and events of one key are not in the order of '{name}'",
                hint="Leave presorted out, or sort first: df.repartition(key).sortWithinPartitions(key, order).",
            )
        if not done.isdisjoint(here) or len(set(here)) < len(here):
            raise ExecutionError(
                "presorted=True was given, and the events of a key do not stand together",
                hint="Leave presorted out, or sort by the key first: df.sortWithinPartitions(key, order).",
            )
        done.update(here[:-1])
        last = table.slice(table.num_rows - 1)
        yield table

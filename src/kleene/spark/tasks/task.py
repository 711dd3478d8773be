"""What runs inside Spark tasks: Arrow batches of events to Arrow batches of matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from kleene.engine.events import check_order_key, null_order_key
from kleene.engine.output import as_schema
from kleene.engine.results import ResultBatch
from kleene.engine.tasks import plain_errors
from kleene.plan.plan import ByKey, Plan
from kleene.spark.marks import GROUP
from kleene.spark.output import Output
from kleene.spark.reads import Reads
from kleene.spark.shipping import ShippedCode
from kleene.spark.tasks.groups import GroupMatcher, groups_of
from kleene.spark.tasks.order import TaskOrder

Arrange = Callable[[Iterable[pa.Table], TaskOrder], Iterable[pa.Table]]


def table_of(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """The batch with the columns that the plan knows: Spark has plain names, and types of its own."""
    return pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema)


def as_they_come(tables: Iterable[pa.Table], _: TaskOrder) -> Iterable[pa.Table]:
    """Events that Spark has put in order."""
    return tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is shipped to every task."""

    plan: Plan
    reads: Reads
    output: Output
    code: ShippedCode = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", ShippedCode(self.plan))

    @property
    def order(self) -> TaskOrder:
        return TaskOrder(self.reads.order)

    @property
    def mixed_by(self) -> tuple[str, ...]:
        """The order to put the events of several keys in.

        A key that the query did not say forms no partitions: its engine sees one stream, which must be in order. Time
        is enough: sorting is stable, and each key is in order already.
        """
        split = self.plan.split
        return (self.reads.time_column,) if isinstance(split, ByKey) and split.is_implied else ()

    def only_ordered(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The tables; in the end an error if any event has no place in the order."""
        unordered: list[pa.Table] = []
        for table in tables:
            missing = table.column(GROUP)
            if missing.null_count:
                unordered.append(table.filter(missing.is_null()))
            elif not unordered:
                yield table
        if unordered:
            raise self.no_place(pa.concat_tables(unordered))

    def no_place(self, events: pa.Table) -> Exception:
        """The error about events that have no place in the order."""
        first, *others = self.reads.strict
        shown = (self.reads.shown_time if first == self.reads.time_column else first, *others)
        check_order_key(events.select(list(self.reads.strict)).rename_columns(list(shown)), shown)
        return null_order_key(shown[0], events.num_rows)

    def given_out(self, part: ResultBatch) -> pa.Table:
        return as_schema(self.output.rows(part, self.plan).columns, self.output.result)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTask(Task):
    """A function from batches to batches. The events of a group are all in one task.

    What is held at a time is bounded: whole groups together, or the state of one group that is too large for that.
    """

    arrange: Arrange

    @property
    def arriving(self) -> pa.Schema:
        return self.reads.columns.append(pa.field(GROUP, pa.int64()))

    @property
    def leaving(self) -> pa.Schema:
        return self.output.result

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.matched(self.in_order(batches))

    def matched(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """The rows of the output for events in their order."""
        with plain_errors():
            for table in self.found(tables):
                yield from table.to_batches()

    def in_order(self, batches: Iterator[pa.RecordBatch]) -> Iterable[pa.Table]:
        """The events as the engine needs them."""
        schema = self.arriving
        return self.arrange(self.only_ordered(table_of(batch, schema) for batch in batches), self.order)

    def found(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        groups = self.groups()
        for part in groups_of(tables):
            yield from map(self.given_out, groups.found(part))

    def groups(self) -> GroupMatcher:
        output = self.output
        return GroupMatcher(self.plan, self.reads.columns, output.with_times, self.mixed_by, output.row_order)

    def own_events(self, events: pa.Table) -> pa.Table:
        """Each event in one task only."""
        return events

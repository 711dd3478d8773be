"""Of the runs that tasks give out as open, those whose windows the last event of the whole input has passed.

A task knows the last event of its own keys only, so it gives out every run that is open in the end, with the time when
its window closes. Spark finds the latest time of all events, and keeps the runs that are out of time by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.engine.events import plain_values, times_of
from kleene.engine.tasks import plain_errors
from kleene.engine.timeouts import CLOSES, closing_type
from kleene.plan.plan import Plan
from kleene.spark.names import quoted_column
from kleene.spark.reads import Reads
from kleene.spark.schema import spark_schema
from kleene.spark.tasks.task import table_of

LATEST = "__kleene_latest"


def closed_only(found: DataFrame, events: DataFrame, plan: Plan, reads: Reads) -> DataFrame:
    """The matches, and the runs that are out of time; `events` are all events, also those that the query leaves out."""
    first = reads.order[0]
    column = quoted_column(first.name)
    latest = events.agg((F.min(column) if first.descending else F.max(column)).alias(LATEST))
    task = LatestTask(plan=plan, arriving=pa.schema([reads.columns.field(first.name)]), descending=first.descending)
    counted = latest.mapInArrow(task, spark_schema(task.leaving))
    is_closed = F.col(CLOSES).isNull() | (F.col(CLOSES) <= F.col(LATEST))
    return found.crossJoin(F.broadcast(counted)).where(is_closed).drop(CLOSES, LATEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestTask:
    """A function from batches to batches: a time as Spark has it, to the time as engines count it."""

    plan: Plan
    arriving: pa.Schema
    descending: bool

    @property
    def leaving(self) -> pa.Schema:
        return pa.schema([pa.field(LATEST, closing_type(self.plan.query))])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        type_, [name] = self.plan.query.time_type, self.arriving.names
        with plain_errors():
            for batch in batches:
                column = table_of(batch, self.arriving).column(name)
                times = times_of(plain_values(column, type_, name), type_)
                turned = [-time if self.descending and time is not None else time for time in times]
                yield from pa.table([turned], schema=self.leaving).to_batches()

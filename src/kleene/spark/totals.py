"""Aggregates over all matches on Spark.

Tasks add up the matches of their keys. Where a group has several keys, what they know of it is put together, as exactly
as in one process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.call import Call
from kleene.engine.tasks import plain_errors
from kleene.engine.totals.groups import spreads, totals_schema, totals_table
from kleene.engine.totals.partial import no_totals, partial_table, put_together
from kleene.plan.plan import Plan
from kleene.spark.job import Events, Job, make_job
from kleene.spark.layouts.stream import Stream
from kleene.spark.names import quoted_column
from kleene.spark.notes import with_notes_of
from kleene.spark.schema import spark_schema
from kleene.spark.tasks.task import table_of


def totals(call: Call, events: Events) -> DataFrame:
    job = make_job(call, events)
    if isinstance(job.layout, Stream) or not spreads(job.plan):
        return job.matches()
    grouping = call.definition.grouping
    assert grouping is not None
    partial = replace(call, definition=replace(call.definition, grouping=replace(grouping, is_partial=True)))
    return _put_together(make_job(partial, events), job.plan)


def explanation(plan: Plan) -> str:
    return "sums of all keys are put together by group, exactly" if spreads(plan) else "each group is of one task"


def _put_together(job: Job, whole: Plan) -> DataFrame:
    found, partial, query = job.matches(), job.plan.query, whole.query
    assert isinstance(partial, AnalyzedQuery)
    assert isinstance(query, AnalyzedQuery)
    columns, schema = job.reads.columns, totals_schema(partial, job.reads.columns)
    groups = schema.names[:-1]
    if groups:
        together = found.repartition(*map(quoted_column, groups))
    else:
        # Without a match there is a row, too.
        nothing = partial_table(partial, no_totals(partial), columns).to_pylist()
        session = found.sparkSession
        together = found.union(session.createDataFrame(nothing, spark_schema(schema))).repartition(1)
    task = TogetherTask(query=query, arriving=schema, columns=columns)
    return with_notes_of([found], together.mapInArrow(task, spark_schema(totals_schema(query, columns))))


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherTask:
    """A function from batches to batches, shipped to every task: what is known of groups to their rows."""

    query: AnalyzedQuery
    arriving: pa.Schema
    columns: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            found = put_together(self.query, (table_of(batch, self.arriving) for batch in batches), self.arriving)
            if found is not None:
                yield from totals_table(self.query, found, self.columns).to_batches()

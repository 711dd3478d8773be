"""Layout: the input is sorted by key and order already. Nothing travels; whether it is so is checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.errors import ExecutionError, printable
from kleene.spark.layouts.shuffled import with_groups
from kleene.spark.marks import GROUP
from kleene.spark.reads import Sort, handed_over
from kleene.spark.schema import spark_schema
from kleene.spark.settings import explained
from kleene.spark.tasks.order import TaskOrder
from kleene.spark.tasks.task import GroupTask

if TYPE_CHECKING:
    from kleene.spark.job import Job

_SORTED = Sort(True, "none: presorted, and checked")


@dataclass(frozen=True, slots=True)
class Presorted:
    def found(self, job: Job) -> DataFrame:
        task = self.task(job)
        found = self.frame(job).mapInArrow(task, spark_schema(task.leaving))
        return found.union(self._keys_in_two_places(job, found)) if job.reads.key else found

    def frame(self, job: Job) -> DataFrame:
        events = with_groups(job.frame, job.reads)
        return handed_over(events if job.reads.key else events.coalesce(1), job.reads, _SORTED)

    def task(self, job: Job) -> GroupTask:
        reads = replace(job.reads, order=job.reads.order[: job.reads.order_key])
        return GroupTask(plan=job.plan, reads=reads, output=job.output, arrange=checked_order)

    def lines(self, job: Job) -> list[str]:
        uncut = "none: presorted input stays where it is"
        return explained(job.frame, spreads=False, shuffle="none: presorted", sort=_SORTED.text, ranges=uncut)

    def _keys_in_two_places(self, job: Job, found: DataFrame) -> DataFrame:
        """No rows; an error if a key is in several Spark partitions, which no task can see."""
        places = self.frame(job).select(GROUP, F.spark_partition_id().alias("place")).distinct()
        counted = places.groupBy(GROUP).count()
        text = (
            "kleene.errors.ExecutionError: layout='presorted' was given, but the events of a key are in several Spark "
            "partitions\nLeave the layout out, or bring them together first: df.repartition(key).sortWithinPartitions"
            "(key, order).\n\n"
        )
        # As a condition: a column that nobody reads is not computed. Hashed: a cast would be taken for NULL.
        error = F.hash(F.raise_error(F.lit(text))) == 0
        wrong = counted.where(F.when(F.col("count") > 1, error).otherwise(False))
        # Behind a function, so that no filter of the user's is moved in front of the check.
        return wrong.select(GROUP).mapInArrow(_no_rows, found.schema)


def _no_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads all, and gives out nothing."""
    for _ in batches:
        pass
    return iter(())


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
                f"layout='presorted' was given, but events of one key are not in the order of '{name}'",
                hint="Leave the layout out, or sort first: df.repartition(key).sortWithinPartitions(key, order).",
            )
        if not done.isdisjoint(here) or len(set(here)) < len(here):
            raise ExecutionError(
                "layout='presorted' was given, but the events of a key are not next to each other",
                hint="Leave the layout out, or sort by the key first: df.sortWithinPartitions(key, order).",
            )
        done.update(here[:-1])
        last = table.slice(table.num_rows - 1)
        yield table

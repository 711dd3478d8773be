"""Layout: the events of each key travel to one task. Without a key, all of them travel to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from kleene.spark.marks import GROUP
from kleene.spark.names import quoted_column
from kleene.spark.notes import matched_and_counted
from kleene.spark.reads import Reads, Sort, events_read, group_of, handed_over
from kleene.spark.settings import explained
from kleene.spark.tasks.order import sorted_tables
from kleene.spark.tasks.task import Arrange, GroupTask, as_they_come

if TYPE_CHECKING:
    from kleene.spark.job import Job


@dataclass(frozen=True, slots=True)
class Shuffled:
    sort: Sort
    uncut: str  # why no key is cut into ranges

    def found(self, job: Job) -> DataFrame:
        return matched_and_counted(self.frame(job), self.task(job), job.output.ties)

    def frame(self, job: Job) -> DataFrame:
        events = with_groups(job.frame, job.reads)
        together = events.repartition(quoted_column(GROUP)) if job.reads.key else events.repartition(1)
        return handed_over(together, job.reads, self.sort)

    def task(self, job: Job) -> GroupTask:
        return GroupTask(plan=job.plan, reads=job.reads, output=job.output, arrange=arrangement(self.sort))

    def lines(self, job: Job) -> list[str]:
        said = {"shuffle": destination(job.reads), "sort": self.sort.text, "ranges": f"none: {self.uncut}"}
        return explained(job.frame, spreads=bool(job.reads.key), **said)


def with_groups(frame: DataFrame, reads: Reads) -> DataFrame:
    """The columns that are read of the events that are, and the group of each."""
    return events_read(frame, reads).select(*map(quoted_column, reads.columns.names), group_of(reads))


def arrangement(sort: Sort) -> Arrange:
    return sorted_tables if sort.in_tasks else as_they_come


def destination(reads: Reads) -> str:
    """Where events travel, for EXPLAIN."""
    return f"by a hash of {', '.join(reads.key)}" if reads.key else "to one Spark partition"

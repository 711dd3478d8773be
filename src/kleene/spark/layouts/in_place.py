"""Layout: pieces of the input are matched where they lie. What lies at their edges travels, by key, and meets there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.engine.ranges import Reach, is_choosing
from kleene.spark.candidates import chosen_matches
from kleene.spark.layouts.piece_tasks import BOUNDS, RANK, EdgeTask, PieceTask
from kleene.spark.layouts.shuffled import destination
from kleene.spark.marks import GROUP, MARK
from kleene.spark.names import plain_names
from kleene.spark.reads import Sort, events_read, group_of
from kleene.spark.schema import spark_schema
from kleene.spark.settings import explained

if TYPE_CHECKING:
    from kleene.spark.job import Job


@dataclass(frozen=True, slots=True)
class InPlace:
    sort: Sort
    reach: Reach

    def found(self, job: Job) -> DataFrame:
        edges = self.edge_task(job)
        found = self.frame(job).mapInArrow(edges, spark_schema(edges.leaving))
        return found if edges.chooses else chosen_matches(found, job.plan, job.output.result)

    def task(self, job: Job) -> PieceTask:
        return PieceTask(plan=job.plan, reads=job.reads, output=job.output, reach=self.reach)

    def edge_task(self, job: Job) -> EdgeTask:
        # Without a key all candidates meet in one task anyway, so that one chooses.
        chooses = is_choosing(job.plan) and not job.reads.key
        return EdgeTask(plan=job.plan, reads=job.reads, output=job.output, reach=self.reach, chooses=chooses)

    def travelled(self, job: Job) -> DataFrame:
        """What is found in the pieces of the input where they lie, and what must travel from there."""
        task = self.task(job)
        lying = events_read(job.frame, job.reads).toDF(*plain_names(job.reads.columns.names))
        return lying.mapInArrow(task, spark_schema(task.travelling))

    def frame(self, job: Job) -> DataFrame:
        """What travelled: bounds to one place, rows of output to any, events by group; or all to one place."""
        reads, travelled = job.reads, self.travelled(job)
        events = travelled.columns[len(self.task(job).leaving) :]
        at = dict(zip([*reads.columns.names, MARK, RANK, BOUNDS], events, strict=True))

        def column(name: str) -> Column:
            return F.col(at[name])

        together = travelled.withColumn(GROUP, group_of(reads, column=column))
        if self.edge_task(job).chooses:
            return together.repartition(1)
        anywhere = F.when(column(MARK).isNull(), F.spark_partition_id().cast("long"))
        return together.repartition(F.when(column(BOUNDS).isNotNull(), 0).otherwise(F.coalesce(anywhere, F.col(GROUP))))

    def lines(self, job: Job) -> list[str]:
        shuffle = f"of what lies at the edges of pieces, {destination(job.reads)}"
        ranges = f"the pieces of the input, where they lie; each reads on for {self.reach}"
        has_key = bool(job.reads.key)
        return explained(job.frame, spreads=has_key, shuffle=shuffle, sort=self.sort.text, ranges=ranges)

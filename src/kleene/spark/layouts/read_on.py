"""Layout: each task reads its own blocks of files, and on into those behind them as far as its matches can reach.

A match begins in the blocks of one task. So no event travels, and there is no second pass: a task reads the edges of
its neighbours with Arrow, which costs less than Spark's stage for sending them. It is for SASE queries with a window in
time, which look back at nothing; row patterns look at rows around a match, however far away these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.matches import Array
from kleene.engine.protocol import Time
from kleene.engine.ranges import Extent, RangeEvents, Reach, is_choosing
from kleene.engine.tasks import grouped_by, order_times, plain_errors
from kleene.engine.unencoded import with_texts
from kleene.engine.useful import only_useful
from kleene.plan.plan import Plan
from kleene.scanning.order import TimedBlock
from kleene.scanning.scan import counted
from kleene.spark.candidates import CandidateFinder, candidate_schema, chosen_matches
from kleene.spark.reads import Sort
from kleene.spark.scans import FileReader, Group, reading_frame
from kleene.spark.settings import explained
from kleene.spark.tasks.order import compacted, places, ranks_of
from kleene.spark.tasks.task import Task

if TYPE_CHECKING:
    from kleene.spark.job import Job


@dataclass(frozen=True, slots=True)
class Ahead:
    """What a task reads behind its own blocks: the events of these before a time."""

    groups: tuple[Group, ...]
    before: Time


@dataclass(frozen=True, slots=True)
class ReadOn:
    sort: Sort
    reach: Reach
    reader: FileReader
    ahead: tuple[Ahead, ...]
    reason: str
    skipped: int

    def found(self, job: Job) -> DataFrame:
        task = ReadOnTask(
            plan=job.plan,
            reads=job.reads,
            output=job.output,
            reach=self.reach,
            reader=self.reader,
            ahead=self.ahead,
        )
        candidates = reading_frame(job.frame.sparkSession, self.reader, task, task.leaving)
        return chosen_matches(candidates, job.plan, job.output.result)

    def lines(self, job: Job) -> list[str]:
        chosen = " of events; candidates travel by key, and matches are chosen among them"
        return explained(
            job.frame,
            spreads=is_choosing(job.plan),
            files=f"{counted(len(self.reader.tasks), 'task')} read them with Arrow, {self.reason}",
            **({"skipped": skipped_text(self.skipped)} if self.skipped else {}),
            shuffle=f"none{chosen if is_choosing(job.plan) else ''}",
            sort=self.sort.text,
            ranges=f"the blocks of each task, where they lie; each reads on for {self.reach}",
        )


def skipped_text(skipped: int) -> str:
    return f"{counted(skipped, 'block')}, in which no event can be of use, by their bounds"


def can_read_on(plan: Plan, reach: Reach) -> bool:
    """Whether what decides about a match lies in a stretch of time behind its first event."""
    return isinstance(plan.query, AnalyzedQuery) and reach.back == Extent() and not reach.ahead.rows


def ahead_of(tasks: Sequence[Sequence[Sequence[TimedBlock]]], reach: Reach) -> tuple[Ahead, ...]:
    """What each task reads on; groups of all tasks follow one another in time, and have no time in common."""
    assert reach.ahead.time is not None
    found = []
    for number, task in enumerate(tasks):
        before = max(one.high for group in task for one in group) + reach.ahead.time
        later = [group for other in tasks[number + 1 :] for group in other if min(one.low for one in group) < before]
        found.append(Ahead(tuple(tuple(one.block for one in group) for group in later), before))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOnTask(Task):
    """A function from numbers of tasks to the candidates that begin in their blocks."""

    reach: Reach
    reader: FileReader
    ahead: tuple[Ahead, ...]

    @property
    def leaving(self) -> pa.Schema:
        return candidate_schema(self.plan, self.output.result)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        finder = CandidateFinder(self, self.reach)
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            with plain_errors():
                for found in finder.found(self._events(number)):
                    yield from found.to_batches()

    def _events(self, number: int) -> RangeEvents:
        names, ahead = self.reads.columns.names, self.ahead[number]
        own = [self._of_use(table) for table in self.reader.tables(number, names)]
        further = [self._of_use(self._before(group, ahead.before)) for group in ahead.groups]
        events = self.order.sorted_by_time(compacted(pa.concat_tables([*own, *further])))
        is_own = np.arange(len(events)) < sum(map(len, own))
        return RangeEvents(events, is_own, self._places(events), grouped_by(events, ()))

    def _of_use(self, table: pa.Table) -> pa.Table:
        return with_texts(only_useful(table, self.reads.useful))

    def _before(self, group: Group, before: Time) -> pa.Table:
        """The events of the group before the time. Where they are in order, no others are decoded."""
        names, time = self.reads.columns.names, self.reads.time_column
        times = self._times(self.reader.table(group, [time]))
        if len(group) == 1 and bool((times[1:] >= times[:-1]).all()):
            return self.reader.first_rows(group[0], names, int(np.searchsorted(times, before)))
        return self.reader.table(group, names).filter(pa.array(times < before))

    def _times(self, events: pa.Table) -> Array:
        return order_times(events, self.plan.query)

    def _places(self, events: pa.Table) -> Array:
        """Where events stand in the order of their key, if matches are to be chosen by that."""
        if not is_choosing(self.plan):
            return np.broadcast_to(np.zeros((1, 2), np.int64), (len(events), 2))
        grouped = grouped_by(events, self.reads.key)
        ranks = np.empty(len(events), np.int64)
        ranks[grouped.order] = ranks_of(grouped.permuted(self._times(events)), grouped.begins)
        return places(self._times(events), ranks)

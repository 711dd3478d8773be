"""Files where they lie: tasks read them with Arrow and match them in place. What travels is matches, and edges.

It is the layout in place, but for its first pass: no row of the input becomes one of Spark's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from kleene.engine.ranges import Reach
from kleene.engine.sorting import sorted_table
from kleene.engine.unencoded import with_texts
from kleene.engine.useful import only_useful
from kleene.ir import expr as ir
from kleene.plan.plan import Plan
from kleene.scanning.blocks import Block
from kleene.scanning.order import TimedBlock, timed_blocks
from kleene.scanning.scan import Scan, counted
from kleene.scanning.skipping import useful_blocks
from kleene.spark.layouts.in_place import InPlace, PieceTask
from kleene.spark.layouts.read_on import ReadOn, ahead_of, can_read_on, skipped_text
from kleene.spark.reads import Reads, Sort
from kleene.spark.scans import FileReader, dealt, reading_frame, rows_of_a_task

if TYPE_CHECKING:
    from kleene.spark.job import Job

EDGES = 16
"""A task has at least so many times the events that a match can reach over, so that few lie at edges, and travel."""
MOST_TOGETHER = 1 << 22
"""Blocks that overlap in time are read by one task, up to so many rows."""


@dataclass(frozen=True, slots=True)
class Files(InPlace):
    reader: FileReader
    reason: str
    skipped: int

    def travelled(self, job: Job) -> DataFrame:
        piece = self.task(job)
        given = {field.name: getattr(piece, field.name) for field in fields(piece) if field.init}
        task = FileTask(**given, reader=self.reader)
        return reading_frame(job.frame.sparkSession, self.reader, task, task.travelling)

    def lines(self, job: Job) -> list[str]:
        tasks = f"files      {counted(len(self.reader.tasks), 'task')} read them with Arrow, {self.reason}"
        skipped = [f"skipped    {skipped_text(self.skipped)}"] if self.skipped else []
        return [tasks, *skipped, *InPlace.lines(self, job)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask(PieceTask):
    """The first pass over files; what arrives is the number of a task."""

    reader: FileReader

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            yield from self.of_partition(self._read(number), number)

    def _pieces(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """All events of the task as one piece, since they are in order: each further piece would have edges."""
        together = list(tables)
        if together:
            yield pa.concat_tables(together)

    def _read(self, number: int) -> Iterator[pa.RecordBatch]:
        for table in self.reader.tables(number, self.reads.columns.names):
            # Every event has an order key here: that is known by the bounds of its block.
            useful = with_texts(only_useful(table, self.reads.useful))
            in_order = sorted_table(useful, (self.reads.time_column,))
            yield from in_order.combine_chunks().to_batches()


def files_or_reason(whole: Scan, plan: Plan, reads: Reads, sort: Sort, reach: Reach) -> Files | ReadOn | str:
    """The layout of a scan, if its files can be matched where they lie; else why not."""
    computed = next((name for name in reads.columns.names if name not in whole.columns.names), None)
    if whole.is_text:
        return "text files do not tell the times of their events"
    if computed is not None:
        return "Spark computes some of what the query reads"
    skipped = useful_blocks(whole.blocks, whole.bounds, reads.useful)
    time = reads.time_column
    bounds = [whole.bounds(block, time) or whole.measured_bounds(block, time) for block in skipped.read]
    if any(bound.nulls != 0 for bound in bounds):
        return "some events may have no order key"  # the shuffle counts them
    timed = timed_blocks(skipped.read, bounds, plan.query, time)
    if timed is None:
        return "some times are too large to be compared"
    groups = _overlapping(timed)
    most = _most_rows(groups)
    if most > MOST_TOGETHER:
        what = "blocks of {:,} events overlap in time" if len(groups) < len(timed) else "a block has {:,} events"
        return what.format(most)
    files = len({block.file for block in skipped.read})
    follow = f"{counted(files, 'file')} follow{'s' if files == 1 else ''} one another in time"
    if files == 1:
        follow = "the file is in the order of time"
    if len(groups) < len(skipped.read):
        follow += ", but for blocks that overlap and are read together"
    rows, coded = _rows_of_a_task(timed, reach, rows_of_a_task(whole)), _tested_words(whole, reads)
    told = f"in place, because {follow}", len(skipped.left_out)
    apart = _overlapping(timed, touches=True)
    if can_read_on(plan, reach) and _most_rows(apart) <= MOST_TOGETHER:
        by_block = {one.block: one for one in timed}
        tasks = dealt(apart, rows)
        ahead = ahead_of([[[by_block[block] for block in group] for group in task] for task in tasks], reach)
        return ReadOn(sort, reach, FileReader.of(whole, tasks, coded), ahead, *told)
    return Files(sort, reach, FileReader.of(whole, dealt(groups, rows), coded), *told)


def _most_rows(groups: Sequence[Sequence[Block]]) -> int:
    return max((sum(block.rows for block in group) for group in groups), default=0)


def _tested_words(whole: Scan, reads: Reads) -> frozenset[str]:
    """Columns of a few words that tell which events are of use: only those of such events become texts."""
    tested = () if reads.useful is None else ir.walk(reads.useful)
    names = {node.name for node in tested if isinstance(node, ir.Attribute)} - {reads.time_column}
    return frozenset(name for name in names if whole.few_words(name))


def _rows_of_a_task(timed: list[TimedBlock], reach: Reach, usual: int) -> int:
    """More than usual where else too many of them would lie at edges."""
    rows = sum(one.block.rows for one in timed)
    lasts = max((one.high for one in timed), default=0) - min((one.low for one in timed), default=0)
    within_reach = rows * min(1.0, (reach.ahead.time or 0) / lasts) if lasts else 0
    return min(max(int(EDGES * within_reach), usual), MOST_TOGETHER)


def _overlapping(timed: list[TimedBlock], touches: bool = False) -> list[tuple[Block, ...]]:
    """Blocks that have times in common, directly or by way of others; one time is enough where that `touches`."""
    groups: list[list[Block]] = []
    latest = None
    for one in timed:
        if latest is not None and (one.low < latest or (touches and one.low == latest)):
            groups[-1].append(one.block)
        else:
            groups.append([one.block])
        latest = one.high if latest is None else max(latest, one.high)
    return [tuple(group) for group in groups]

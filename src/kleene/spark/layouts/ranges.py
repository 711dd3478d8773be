"""Layout: heavy keys, or a whole input without a key, are cut into ranges of runs, and each range travels to a task.

How many events lie in each slot of the order key is counted, for heavy keys only; ranges are made of whole slots, and
every event is sent to the range that owns its slot and to those that read on, or back, into it. All of it is part of
the query's own plan: nothing runs beforehand, and nothing is collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import and_
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.engine.ranges import RangeEvents, Reach
from kleene.engine.sorting import order_numbers
from kleene.engine.tasks import grouped_by
from kleene.errors import ExecutionError
from kleene.spark.candidates import CandidateFinder, candidate_schema, chosen_matches
from kleene.spark.layouts.shuffled import arrangement, destination
from kleene.spark.layouts.slots import SLOTS, Cutting, SlotRange, ranges_of_slots
from kleene.spark.marks import GROUP, MARK, are_own, mark, range_group, told_by
from kleene.spark.names import quoted_column
from kleene.spark.notes import matched_and_counted, with_notes_of
from kleene.spark.reads import Sort, comparable, events_read, group_of, handed_over, keys_of
from kleene.spark.settings import explained
from kleene.spark.tasks.groups import GroupPart, Groups, groups_of
from kleene.spark.tasks.order import places, ranks_of
from kleene.spark.tasks.task import GroupTask

if TYPE_CHECKING:
    from kleene.spark.job import Job

MOST_SPAN, LEAST_WIDTH = 2.0**62, 1e-200
_KEY, _NUMBER, _ID, _LEAST, _WIDTH, _SLOT, _COUNT, _RANGE = (
    f"__kleene_{name}" for name in ("key", "number", "id", "least", "width", "slot", "count", "range")
)


@dataclass(frozen=True, slots=True)
class Ranges:
    sort: Sort
    cutting: Cutting

    def found(self, job: Job) -> DataFrame:
        found = matched_and_counted(self.frame(job), self.task(job), job.output.ties)
        return with_notes_of([found], chosen_matches(found, job.plan, job.output.result))

    def frame(self, job: Job) -> DataFrame:
        reads, first = job.reads, job.reads.time_column
        order = comparable(quoted_column(first), reads.type_of(first))
        sent = _sent_to_ranges(events_read(job.frame, reads), self.cutting, keys_of(reads), order)
        group = group_of(reads, quoted_column(_RANGE))
        events = sent.select(*map(quoted_column, reads.columns.names), group, quoted_column(MARK))
        return handed_over(events.repartition(quoted_column(GROUP)), reads, self.sort, MARK)

    def task(self, job: Job) -> RangeTask:
        arrange, reach = arrangement(self.sort), self.cutting.reach
        return RangeTask(plan=job.plan, reads=job.reads, output=job.output, arrange=arrange, reach=reach)

    def lines(self, job: Job) -> list[str]:
        shuffle = destination(job.reads) if job.reads.key else "by range"
        return explained(job.frame, spreads=True, shuffle=shuffle, sort=self.sort.text, ranges=f"{self.cutting}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeTask(GroupTask):
    """A function from batches to batches: the events of whole keys, and of ranges, to matches and candidates."""

    reach: Reach

    @property
    def arriving(self) -> pa.Schema:
        return pa.schema([*self.reads.columns, pa.field(GROUP, pa.int64()), pa.field(MARK, pa.int64())])

    @property
    def leaving(self) -> pa.Schema:
        return candidate_schema(self.plan, self.output.result)

    def found(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        groups, finder = self.groups(), CandidateFinder(self, self.reach)
        held: list[pa.Table] = []  # of a range that comes in parts: it is matched whole
        for part in groups_of(tables):
            if isinstance(part, GroupPart) and (held or _is_cut(part.table)):
                held.append(part.table)
                if not part.is_last:
                    continue
                part, held = Groups(pa.concat_tables(held)), []
            cut, whole = _split(part.table)
            for events in _by_group(cut):
                yield from finder.found(self._range(events))
            yield from map(finder.of_matches, groups.found(replace(part, table=whole.drop_columns([MARK]))))

    def own_events(self, events: pa.Table) -> pa.Table:
        marks = events.column(MARK).fill_null(0).to_numpy()
        return events.filter(pa.array(are_own(marks)))

    def _range(self, events: pa.Table) -> RangeEvents:
        """The range of which these are all events."""
        marks = events.column(MARK).to_numpy()
        own = are_own(marks)
        if own.sum() != told_by(marks[:1])[0]:
            raise ExecutionError(
                f"the input changed between two readings: a range has {own.sum():,} events, but had another number "
                "before",
                hint="Write the input to files, or cache it; or match it in one piece: SparkOptions('shuffled').",
            )
        table = events.select(self.reads.columns.names)
        alone = grouped_by(table, ())
        # Slots are whole: all events of a time are here, and have the ranks that they have in any other range.
        numbers = order_numbers(table.column(self.reads.time_column))
        return RangeEvents(table, own, places(numbers, ranks_of(numbers, alone.begins)), alone)


def _is_cut(events: pa.Table) -> bool:
    """Whether the events of a group are a range's. The last part of a group may have none."""
    return bool(events.num_rows and events.column(MARK)[0].is_valid)


def _split(events: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The events of ranges, and those whose keys are whole."""
    is_cut = events.column(MARK).is_valid()
    if not pc.any(is_cut).as_py():
        return events.slice(0, 0), events
    return events.filter(is_cut), events.filter(pc.invert(is_cut))


def _by_group(events: pa.Table) -> Iterator[pa.Table]:
    """The events of each group, which stand together."""
    numbers = events.column(GROUP).to_numpy()
    begins = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
    for begin, end in pairwise(begins):
        if begin < end:
            yield events.slice(begin, end - begin)


def _sent_to_ranges(frame: DataFrame, cutting: Cutting, key: Sequence[Column], order: Column) -> DataFrame:
    """The events, each as often as ranges read it, with the range's group and MARK, both NULL where nothing is cut."""
    names = [f"{_KEY}{number}" for number in range(len(key))]
    events = frame.select("*", *(column.alias(name) for column, name in zip(key, names, strict=True)))
    is_float = pa.types.is_floating(cutting.order_type)
    number = order_number(order, cutting.order_type).cast("double" if is_float else "long")
    events = events.withColumn(_NUMBER, number)
    heavy = _heavy_keys(events, names, cutting)
    wanted = [quoted_column(name) for name in frame.columns]
    if not names:
        return _sent_to_ranges_of_all(events, heavy, cutting).select(*wanted, f"{_RANGE}.*")
    slots = _slots(events, heavy, names, cutting)
    known = _joined(events, heavy, names, "left").withColumn(_SLOT, F.when(_is_there(cutting), _slot()))
    sent = known.join(F.broadcast(slots), [_ID, _SLOT], "left")
    return sent.select(*wanted, _RANGE, MARK)


def _sent_to_ranges_of_all(events: DataFrame, bounds: DataFrame, cutting: Cutting) -> DataFrame:
    """Where there is no key, what is known of the order are a few values: no join is needed for them."""
    slot = F.when(_is_there(cutting), _slot(bounds.select(_LEAST).scalar(), bounds.select(_WIDTH).scalar()))
    counts = events.where(slot.isNotNull()).groupBy(slot.alias(_SLOT)).agg(F.count(F.lit(1)).alias(_COUNT))
    together = counts.agg(F.array_sort(F.collect_list(F.struct(_SLOT, _COUNT))).alias("counts")).select(
        F.lit(0).cast("long").alias(_ID), bounds.select(_WIDTH).scalar().alias(_WIDTH), "counts"
    )
    ranges = together.mapInArrow(RangeMaker(cutting, of_all=True), _SLOTS_OF_ALL)
    read_by = F.get(ranges.scalar(), slot)
    return events.select("*", F.explode_outer(read_by).alias(_RANGE))


def order_number(column: Column, type_: pa.DataType) -> Column:
    """A number in the order of the column: microseconds for times; of those without a zone, whole seconds."""
    if pa.types.is_timestamp(type_):
        if type_.tz is not None:
            return F.unix_micros(column)
        days = F.datediff(column.cast("date"), F.lit("1970-01-01").cast("date")).cast("long")
        return ((days * 24 + F.hour(column)) * 60 + F.minute(column)) * 60_000_000 + F.second(column) * 1_000_000
    return F.datediff(column, F.lit("1970-01-01").cast("date")) if pa.types.is_date(type_) else column


def _heavy_keys(events: DataFrame, names: Sequence[str], cutting: Cutting) -> DataFrame:
    """Keys with more than so many events: the number of the key, its least time, the width of its slots."""
    number = F.col(_NUMBER)
    counted = (
        events.where(_is_there(cutting))
        .groupBy(*names)
        .agg(F.count(F.lit(1)).alias(_COUNT), F.min(number).alias(_LEAST), F.max(number).alias("most"))
    )
    # In floating point, since the difference of whole numbers may not fit; beyond this, a key is not cut.
    span = F.col("most").cast("double") - F.col(_LEAST).cast("double")
    heavy = counted.where((F.col(_COUNT) > cutting.least) & (span < MOST_SPAN))
    width = span / SLOTS * (1 + 1e-9)
    width = F.when(width > LEAST_WIDTH, width).otherwise(F.lit(1.0))
    if not names:
        return heavy.select(_LEAST, width.alias(_WIDTH))
    # In one Spark partition and in order, so that a key has the same number wherever this is computed.
    alone = heavy.coalesce(1).sortWithinPartitions(*names)
    numbered = alone.withColumn(_ID, F.monotonically_increasing_id())
    return numbered.select(*names, _ID, _LEAST, width.alias(_WIDTH))


def _joined(events: DataFrame, heavy: DataFrame, names: Sequence[str], how: str) -> DataFrame:
    renamed = heavy.select(
        *(F.col(name).alias(f"{name}_of_heavy") for name in names), *(F.col(name) for name in (_ID, _LEAST, _WIDTH))
    )
    same = [F.col(name).eqNullSafe(F.col(f"{name}_of_heavy")) for name in names]
    return events.join(F.broadcast(renamed), reduce(and_, same), how)


def _is_there(cutting: Cutting) -> Column:
    number = F.col(_NUMBER)
    return number.isNotNull() & ~F.isnan(number) if pa.types.is_floating(cutting.order_type) else number.isNotNull()


def _slot(least: Column | None = None, width: Column | None = None) -> Column:
    """The difference first: of large numbers that lie close together it is exact."""
    least, width = F.col(_LEAST) if least is None else least, F.col(_WIDTH) if width is None else width
    return F.floor((F.col(_NUMBER) - least).cast("double") / width).cast("int")


def _slots(events: DataFrame, heavy: DataFrame, names: Sequence[str], cutting: Cutting) -> DataFrame:
    """For each slot of a heavy key, the ranges that read it."""
    of_heavy = _joined(events.select(*names, _NUMBER), heavy, names, "inner")
    of_heavy = of_heavy.where(_is_there(cutting))
    counts = of_heavy.groupBy(_ID, _slot().alias(_SLOT), _WIDTH).agg(F.count(F.lit(1)).alias(_COUNT))
    by_key = counts.groupBy(_ID, _WIDTH).agg(F.array_sort(F.collect_list(F.struct(_SLOT, _COUNT))).alias("counts"))
    return by_key.mapInArrow(RangeMaker(cutting), _SLOTS_OF_KEYS)


_SLOTS_OF_KEYS = f"{_ID} LONG, {_SLOT} INT, {_RANGE} LONG, {MARK} LONG"
_SLOTS_OF_ALL = f"slots ARRAY<ARRAY<STRUCT<{_RANGE} LONG, {MARK} LONG>>>"
_OF_ALL = pa.list_(pa.list_(pa.struct([(_RANGE, pa.int64()), (MARK, pa.int64())])))


@dataclass(frozen=True, slots=True)
class RangeMaker:
    """A function from the counted slots of heavy keys to the ranges that read them, for a Spark task."""

    cutting: Cutting
    of_all: bool = False  # there is no key: all slots together are one value

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                slots = [pair[_SLOT] for pair in row["counts"]]
                counts = [pair[_COUNT] for pair in row["counts"]]
                ranges = ranges_of_slots(slots, counts, row[_WIDTH], self.cutting) if slots else []
                read = list(self._read(row[_ID], slots, ranges))
                yield _slots_of_all(read) if self.of_all else _slots_of_key(row[_ID], read)

    def _read(self, key: int, slots: list[int], ranges: list[SlotRange]) -> Iterator[tuple[int, int, int]]:
        """A slot, the group of a range that reads it, and how its events are marked there."""
        for number, part in enumerate(ranges):
            group = range_group(key, number, self.cutting.partitions)
            for at in part.read:
                yield slots[at], group, mark(part.size, at in part.own)


def _slots_of_all(read: list[tuple[int, int, int]]) -> pa.RecordBatch:
    by_slot: list[list[tuple[int, int]]] = [[] for _ in range(1 + max((slot for slot, *_ in read), default=-1))]
    for slot, group, marked in read:
        by_slot[slot].append((group, marked))
    return pa.record_batch([pa.array([by_slot], _OF_ALL)], names=["slots"])


def _slots_of_key(key: int, read: list[tuple[int, int, int]]) -> pa.RecordBatch:
    slots, groups, marks = zip(*read, strict=True) if read else ((), (), ())
    columns = [([key] * len(read), pa.int64()), (slots, pa.int32()), (groups, pa.int64()), (marks, pa.int64())]
    return pa.record_batch([pa.array(*column) for column in columns], names=[_ID, _SLOT, _RANGE, MARK])

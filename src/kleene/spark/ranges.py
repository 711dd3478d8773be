"""Heavy keys, or a whole input without a key, cut into ranges of runs by Spark (RIP 2013 §4.2).

The order key is divided into slots of equal width. How many events each slot has is counted, for heavy keys only;
ranges are made of whole slots, about equally many events each; and every event is sent to the range that owns its slot
and to those that read on, or back, into it. All of it is part of the query's own plan: nothing runs beforehand, and
nothing is collected.
"""

from __future__ import annotations

import contextlib
import io
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.engine.ranges import Extent, Reach, Uncut
from kleene.errors import UnsupportedError
from kleene.ir.evaluate import MICROSECONDS_PER_DAY
from kleene.options.spark import MOST_RANGES, SparkOptions
from kleene.spark.names import quoted_column

INFO = "__kleene_range"
"""Of an event sent to a range, as text: the range's number, how many events of the key come before its own, and how
many its own are. Where there is no key, a group's number says it, and there is no such column."""
SIZE_BITS, SPARE_BITS = 12, 14
"""It has, below how many events come before, so many bits of how many the range's own are; then spare ones."""
FOREIGN = 1 << 62
"""In a group's number: the event is not one of the range's own."""
KEY_BITS = 32
"""The number of a range has the number of its key in the bits above these."""
SLOTS = MOST_RANGES
RANGE_SIZE = 1 << 18
LEAST_BYTES, LEAST_BYTES_BY_KEY = 32 << 20, 512 << 20
"""Inputs that Spark takes for smaller are not cut: there is little to gain, the less so where keys divide it anyway."""
LEAST_PARTITIONS = 4
"""Counting slots and sending events by range was measured to cost about what a second task saves."""
MOST_SPAN, LEAST_WIDTH = 2.0**62, 1e-200
MOST_COPIED = 0.25
"""Ranges are made larger until at most this part of the events is sent twice."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """How an input is cut: each key of more than `least` events into ranges of about `size`, or into `count`."""

    reach: Reach
    order_type: pa.DataType
    least: int
    size: int
    count: int | None
    partitions: int

    def __str__(self) -> str:
        what = f"{self.count} ranges for each key" if self.count else f"ranges of about {self.size:,} events"
        which = "" if self.count else f", where a key has more than {self.least:,}"
        return f"{what}{which}; each reads on for {self.reach}"


def choose_cutting(
    frame: DataFrame,
    reach: Reach | Uncut,
    order_type: pa.DataType,
    given: SparkOptions,
    has_key: bool,
) -> Cutting | Uncut:
    """How to cut, or why not."""
    if not given.may_cut:
        return Uncut(f"layout='{given.layout}'")
    if isinstance(reach, Uncut):
        if given.must_cut:
            raise UnsupportedError(f"the query cannot be cut into ranges: {reach.reason}", hint="Leave the layout out.")
        return reach
    partitions = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    if not given.must_cut and given.range_size is None:
        if partitions < LEAST_PARTITIONS:  # asked first: an estimate costs a run of Spark's optimizer
            return Uncut(f"with spark.sql.shuffle.partitions = {partitions} they would cost more than they save")
        size, least = _estimated_bytes(frame), LEAST_BYTES_BY_KEY if has_key else LEAST_BYTES
        if size is None:
            return Uncut(
                "Spark does not know how large the input is; say SparkOptions('ranges') or SparkOptions(range_size=…)"
            )
        if size < least:
            return Uncut(f"the input is small, {size >> 20:,} MiB by Spark's estimate")
    events, count = given.range_size or RANGE_SIZE, given.ranges
    least_events = 1 if count else events if given.range_size else 2 * events
    return Cutting(reach, order_type, least_events, events, count, partitions)


def _estimated_bytes(frame: DataFrame) -> int | None:
    """What Spark's optimizer thinks the size is, without running anything; None where it has no idea."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            frame.explain(mode="cost")
    except PySparkException:  # the optimizer computes what is constant, and that may be an error: not ours to raise
        return None
    found = re.search(r"sizeInBytes=([\d.]+)(?:E\+(\d+))? (\w+)", said.getvalue())
    if found is None or found[0].endswith("=8.0 EiB"):
        return None
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    if found[3] not in units:
        return None
    return int(float(found[1]) * 10.0 ** int(found[2] or 0) * 1024 ** units.index(found[3]))


def with_ranges(frame: DataFrame, cutting: Cutting, key: Sequence[Column], order: Column) -> DataFrame:
    """The events, each as often as ranges read it, with group (PLACE) and INFO, both NULL where nothing is cut."""
    names = [f"{_KEY}{number}" for number in range(len(key))]
    events = frame.select("*", *(column.alias(name) for column, name in zip(key, names, strict=True)))
    is_float = pa.types.is_floating(cutting.order_type)
    number = order_number(order, cutting.order_type).cast("double" if is_float else "long")
    events = events.withColumn(_NUMBER, number)
    heavy = _heavy_keys(events, names, cutting)
    wanted = [quoted_column(name) for name in frame.columns]
    if not names:
        return _with_ranges_of_all(events, heavy, cutting).select(*wanted, PLACE)
    slots = _slots(events, heavy, names, cutting)
    known = _joined(events, heavy, names, "left").withColumn(_SLOT, F.when(_is_there(cutting), _slot()))
    sent = known.join(F.broadcast(slots), [_ID, _SLOT], "left")
    return sent.select(*wanted, PLACE, INFO)


def _with_ranges_of_all(events: DataFrame, bounds: DataFrame, cutting: Cutting) -> DataFrame:
    """Where there is no key, what is known of the order are a few values: no join is needed for them."""
    slot = F.when(_is_there(cutting), _slot(bounds.select(_LEAST).scalar(), bounds.select(_WIDTH).scalar()))
    counts = events.where(slot.isNotNull()).groupBy(slot.alias(_SLOT)).agg(F.count(F.lit(1)).alias(_COUNT))
    together = counts.agg(F.array_sort(F.collect_list(F.struct(_SLOT, _COUNT))).alias("counts")).select(
        F.lit(0).cast("long").alias(_ID), bounds.select(_WIDTH).scalar().alias(_WIDTH), "counts"
    )
    ranges = together.mapInArrow(RangeMaker(cutting, of_all=True), RangeMaker.result_of_all())
    read_by = F.get(ranges.scalar(), slot)
    return events.select("*", F.explode_outer(read_by).alias(PLACE))


PLACE = "__kleene_place"
_KEY, _NUMBER, _ID, _LEAST, _WIDTH, _SLOT, _COUNT = (
    f"__kleene_{name}" for name in ("key", "number", "id", "least", "width", "slot", "count")
)


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
    return events.join(F.broadcast(renamed), reduce(Column.__and__, same), how)


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
    return by_key.mapInArrow(RangeMaker(cutting), RangeMaker.result())


@dataclass(frozen=True, slots=True)
class RangeMaker:
    """A function from the counted slots of heavy keys to the ranges that read them, for a Spark task."""

    cutting: Cutting
    of_all: bool = False  # there is no key: all slots together are one value

    @staticmethod
    def result() -> str:
        return f"{_ID} LONG, {_SLOT} INT, {PLACE} LONG, {INFO} STRING"

    @staticmethod
    def result_of_all() -> str:
        return "slots ARRAY<ARRAY<LONG>>"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                slots = [pair[_SLOT] for pair in row["counts"]]
                counts = [pair[_COUNT] for pair in row["counts"]]
                ranges = ranges_of_slots(slots, counts, row[_WIDTH], self.cutting) if slots else []
                yield self._all(slots, ranges) if self.of_all else self._of_key(row[_ID], slots, ranges)

    def _all(self, slots: list[int], ranges: list[SlotRange]) -> pa.RecordBatch:
        """For each slot the groups that read it."""
        by_slot: list[list[int]] = [[] for _ in range(slots[-1] + 1 if ranges else 0)]
        for number, part in enumerate(ranges):
            told = (part.base << SIZE_BITS) | (part.size & ((1 << SIZE_BITS) - 1))
            place = balanced_place(told << SPARE_BITS, number, self.cutting.partitions)
            for at in part.read:
                by_slot[slots[at]].append(place if at in part.own else place | FOREIGN)
        return pa.record_batch([pa.array([by_slot], pa.list_(pa.list_(pa.int64())))], names=["slots"])

    def _of_key(self, key: int, slots: list[int], ranges: list[SlotRange]) -> pa.RecordBatch:
        """A row for each slot and each range that reads it."""
        found: list[tuple[int, int, int, str]] = []
        for number, part in enumerate(ranges):
            name = (key << KEY_BITS) | number
            place = balanced_place((name % (1 << 40)) << SPARE_BITS, key + number, self.cutting.partitions)
            info = f"{name}:{part.base}:{part.size}"
            for at in part.read:
                found.append((key, slots[at], place if at in part.own else place | FOREIGN, info))
        names, types = (_ID, _SLOT, PLACE, INFO), (pa.int64(), pa.int32(), pa.int64(), pa.string())
        columns = [pa.array([row[n] for row in found], type_) for n, type_ in enumerate(types)]
        return pa.record_batch(columns, names=list(names))


@dataclass(frozen=True, slots=True)
class SlotRange:
    """A range of slots, by their places among those that have events: its own, and all that it reads."""

    own: range
    read: range
    base: int
    size: int


def ranges_of_slots(slots: list[int], counts: list[int], width: float, cutting: Cutting) -> list[SlotRange]:
    """The ranges of a key; none where cutting would send too much twice."""
    total = sum(counts)
    wanted = cutting.count or -(-total // cutting.size)
    if not cutting.count and wanted > cutting.partitions:
        wanted = -(-wanted // cutting.partitions) * cutting.partitions
    while wanted > 1:
        found = _cut(slots, counts, width, in_order_numbers(cutting.reach, cutting.order_type), wanted)
        copied = sum(sum(counts[at] for at in part.read if at not in part.own) for part in found)
        if cutting.count or copied <= MOST_COPIED * total:
            return found if len(found) > 1 else []
        wanted //= 2
    return []


def _cut(slots: list[int], counts: list[int], width: float, reach: Reach, wanted: int) -> list[SlotRange]:
    before = np.concatenate([[0], np.cumsum(counts)]).tolist()
    total = before[-1]
    begins = sorted({bisect_left(before, total * number / wanted) for number in range(wanted)} - {len(slots)})
    found = []
    for begin, end in zip(begins, [*begins[1:], len(slots)], strict=True):
        low, high = _back(slots, before, width, reach.back, begin), _ahead(slots, before, width, reach.ahead, end)
        found.append(SlotRange(range(begin, end), range(low, high), before[begin], before[end] - before[begin]))
    return found


def _ahead(slots: list[int], before: list[int], width: float, extent: Extent, end: int) -> int:
    """The place behind the last slot that a range reads whose own end before the place `end`."""
    # A slot more than the time needs: times may be rounded on their way to slots.
    high = end if extent.time is None else bisect_left(slots, slots[end - 1] + 2 + _slots_in(extent.time, width), end)
    return min(bisect_left(before, before[high] + extent.rows, high), len(slots))


def _back(slots: list[int], before: list[int], width: float, extent: Extent, begin: int) -> int:
    """The place of the first slot that a range reads whose own begin at the place `begin`."""
    low = begin
    if extent.time is not None:
        low = bisect_left(slots, slots[begin] - 2 - _slots_in(extent.time, width), 0, begin)
    return max(bisect_right(before, before[low] - extent.rows) - 1, 0)


def _slots_in(time: float, width: float) -> int:
    slots = time / width + 1
    return SLOTS if slots > SLOTS else int(slots)


def in_order_numbers(reach: Reach, type_: pa.DataType) -> Reach:
    """The reach in the units of `order_number`."""

    def of(extent: Extent) -> Extent:
        if extent.time is None or not pa.types.is_date(type_):
            # Whole seconds for times without a zone: up to one is lost at either end.
            lost = 2_000_000 if pa.types.is_timestamp(type_) and type_.tz is None else 0
            return extent if extent.time is None else Extent(extent.time + lost, extent.rows)
        return Extent(extent.time / MICROSECONDS_PER_DAY + 1, extent.rows)

    return Reach(of(reach.back), of(reach.ahead))


def balanced_place(high: int, number: int, partitions: int) -> int:
    """The number with spare bits by which Spark's hash sends one range after the other to other Spark partitions."""
    tries = high | np.arange(1, 1 << SPARE_BITS)
    fits = np.flatnonzero(spark_hash(tries) % partitions == number % partitions)
    return int(tries[fits[0]] if len(fits) else tries[0])


def spark_hash(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Spark's hash of whole numbers of 64 bits, by which rows find their Spark partition (Murmur3, seed 42)."""
    bits = numbers.astype(np.int64).view(np.uint64)
    found = np.full(len(bits), 42, np.uint32)
    with np.errstate(over="ignore"):
        for half in ((bits & 0xFFFFFFFF).astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)):
            mixed = _turned(half * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
            found = _turned(found ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        found ^= np.uint32(8)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            found = (found ^ (found >> np.uint32(shift))) * np.uint32(factor)
        found ^= found >> np.uint32(16)
    return found.view(np.int32).astype(np.int64)


def _turned(bits: np.ndarray[Any, Any], by: int) -> np.ndarray[Any, Any]:
    turned: np.ndarray[Any, Any] = (bits << np.uint32(by)) | (bits >> np.uint32(32 - by))
    return turned

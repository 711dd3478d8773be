"""What travels from Spark to the tasks: which columns of which events, in which Spark partition, in which order.

Each event carries the number of its group, a hash of its key, by which events are brought together; the key itself
decides in the task, should two hashes be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.row_pattern import SortColumn
from kleene.engine.ranges import Uncut
from kleene.engine.sorting import is_sortable
from kleene.ir import expr as ir
from kleene.ir.text import expression_text
from kleene.spark.gathering import GROUP, has_order_numbers
from kleene.spark.names import plain_names, quoted_column
from kleene.spark.pieces import BOUNDS, RANK, SENT, InPlace
from kleene.spark.pushdown import spark_condition
from kleene.spark.ranges import FOREIGN, INFO, PLACE, Cutting, with_ranges
from kleene.spark.schema import has_map, is_collated

UNDECIDED = Uncut("not decided yet")


class Sorting(Enum):
    """Who puts the events of a Spark partition in order."""

    TASK = "task"
    SPARK = "spark"
    PRESORTED = "presorted"


@dataclass(frozen=True, slots=True)
class Handover:
    """How events come to the tasks. `order` begins with the order key; the columns behind it decide between equals."""

    columns: pa.Schema
    key: tuple[str, ...]
    order: tuple[SortColumn, ...]
    strict: tuple[str, ...]  # columns of the order key that must not be missing
    needs_key: bool  # whether an event without a key is of no use
    useful: ir.Expr | None  # what holds for all events that are of use
    sorting: Sorting
    why: str
    cutting: Cutting | InPlace | Uncut = UNDECIDED

    @property
    def further_columns(self) -> tuple[str, ...]:
        """What an event carries besides the query's columns."""
        return (GROUP, INFO) if isinstance(self.cutting, Cutting) and self.key else (GROUP,)

    def __str__(self) -> str:
        names = ", ".join(self.columns.names)
        lines = [f"columns    {names}"]
        if self.useful is not None:
            lines.append(f"filter     {expression_text(self.useful)}")
        where = f"by a hash of {', '.join(self.key)}" if self.key else "to one Spark partition"
        if not self.key and isinstance(self.cutting, Cutting):
            where = "by range"
        elif isinstance(self.cutting, InPlace):
            where = f"of what lies at the edges of pieces, {where}"
        lines.append(f"shuffle    {'none: presorted' if self.sorting is Sorting.PRESORTED else where}")
        lines.append(f"sort       {self.why}")
        cut = self.cutting
        lines.append(f"ranges     {f'none: {cut.reason}' if isinstance(cut, Uncut) else cut}")
        return "\n".join(lines)


USUAL_BATCH = 10_000
MOST_BYTES, NO_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch", 2**31 - 1
"""As long as there is a limit, Spark measures the batch at every event, about half of the time of the hand-over."""


def settings_text(frame: DataFrame, handover: Handover) -> str:
    """The settings of the session that matter here, as they are; Kleene changes none."""
    conf = frame.sparkSession.conf
    lines = []
    if handover.sorting is not Sorting.PRESORTED and (handover.key or isinstance(handover.cutting, Cutting)):
        partitions = conf.get("spark.sql.shuffle.partitions")
        lines.append(f"spark.sql.shuffle.partitions = {partitions}: so many tasks at most")
    batch = int(conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") or 0)
    if 0 < batch < USUAL_BATCH:
        name = "spark.sql.execution.arrow.maxRecordsPerBatch"
        lines.append(
            f"{name} = {batch}: fewer events are handed over at a time than by Spark's default, {USUAL_BATCH:,}"
        )
    if conf.get(MOST_BYTES, str(NO_LIMIT)) != str(NO_LIMIT):
        lines.append(
            f"{MOST_BYTES} = {conf.get(MOST_BYTES)}: looked at with every event; {NO_LIMIT} is about twice as fast"
        )
    return "\n".join(f"{'settings' if not number else '':<10} {line}" for number, line in enumerate(lines))


def choose_sorting(columns: pa.Schema, order: Iterable[SortColumn], strict: tuple[str, ...]) -> tuple[Sorting, str]:
    """In the tasks where that can be done on numbers, which is faster than Spark's sort of rows; else in Spark."""
    first = next(iter(order))
    if first.name not in strict or not has_order_numbers(columns.field(first.name).type):
        return Sorting.SPARK, f"in Spark: {first.name} is not a number or a time that is always there"
    nested = next((column.name for column in columns if not is_sortable(column.type)), None)
    if nested is not None:
        return Sorting.SPARK, f"in Spark: {nested} is a nested column, and may decide between equal order keys"
    return Sorting.TASK, f"in the tasks, by {first.name}"


def chosen_events(frame: DataFrame, handover: Handover, kept: Column | None = None) -> tuple[DataFrame, Column]:
    """The columns and events that travel, and the group of each; NULL where an event has no place in the order.

    Events for which `kept` holds are not left out, whatever they are.
    """
    types = {column.name: column.type for column in handover.columns}
    unordered, keys = _unordered(handover, quoted_column), _keys(handover, quoted_column)
    useful = None if handover.useful is None else spark_condition(handover.useful, _fields(handover.columns))
    if handover.needs_key and handover.key:
        has_key = ~_any(_is_missing(quoted_column(name), types[name]) for name in handover.key)
        useful = has_key if useful is None else useful & has_key
    if useful is not None:
        if kept is not None:
            useful = useful | kept
        frame = frame.where(unordered | useful)  # the error about a missing order key counts all of them
    group = _hash(keys)
    frame = frame.select(*map(_by_code_points, handover.columns))
    if isinstance(handover.cutting, Cutting):
        first = handover.order[0].name
        frame = with_ranges(frame, handover.cutting, keys, _normal(quoted_column(first), types[first]))
        group = F.coalesce(quoted_column(PLACE), group)
    return frame, F.when(unordered, F.lit(None)).otherwise(group).alias(GROUP)


def _unordered(handover: Handover, column: Callable[[str], Column]) -> Column:
    """Whether an event has no place in the order. `column` finds the columns by their names."""
    return _any(_is_missing(column(name), handover.columns.field(name).type) for name in handover.strict)


def _keys(handover: Handover, column: Callable[[str], Column]) -> list[Column]:
    return [_normal(column(name), handover.columns.field(name).type) for name in handover.key]


def _hash(keys: list[Column]) -> Column:
    return F.xxhash64(*keys) if keys else F.lit(0).cast("long")


def as_it_lies(frame: DataFrame, handover: Handover) -> DataFrame:
    """The columns and events that the tasks read, where they are."""
    frame, _ = chosen_events(frame, handover)
    return frame.toDF(*plain_names(handover.columns.names))


def brought_together(travelled: DataFrame, handover: Handover, output: int, in_one_place: bool) -> DataFrame:
    """What travelled: bounds to one place, rows of output, so many columns, to any, events by group; or all to one."""
    names = travelled.columns
    at = dict(zip([*handover.columns.names, SENT, RANK, BOUNDS], names[output:], strict=True))

    def column(name: str) -> Column:
        return F.col(at[name])

    group = F.when(~_unordered(handover, column), _hash(_keys(handover, column)))
    together = travelled.withColumn(GROUP, group)
    if in_one_place:
        return together.repartition(1)
    anywhere = F.when(column(SENT).isNull(), F.spark_partition_id().cast("long"))
    return together.repartition(F.when(column(BOUNDS).isNotNull(), 0).otherwise(F.coalesce(anywhere, F.col(GROUP))))


def handed_over(frame: DataFrame, handover: Handover) -> DataFrame:
    """The frame whose Spark partitions the tasks read: the columns under plain names, and the group."""
    frame, group = chosen_events(frame, handover)
    names, types = handover.columns.names, {column.name: column.type for column in handover.columns}
    further = [name for name in handover.further_columns if name != GROUP]
    frame = frame.select(
        *(quoted_column(name) for name in names),
        group,
        *(quoted_column(name) for name in further),
    )
    if handover.sorting is not Sorting.PRESORTED:
        is_one = not handover.key and not isinstance(handover.cutting, Cutting)
        frame = frame.repartition(1) if is_one else frame.repartition(_without_marks(handover))
    elif not handover.key:
        frame = frame.coalesce(1)
    if handover.sorting is Sorting.SPARK:
        place = _without_marks(handover)
        frame = frame.sortWithinPartitions(place.asc_nulls_first(), *_sorting(types, handover.order))
    return frame.toDF(*plain_names(names), *handover.further_columns)


def _without_marks(handover: Handover) -> Column:
    """The group that an event is sent to: whether it is the range's own makes no difference."""
    group = quoted_column(GROUP)
    return group.bitwiseAND(F.lit(~FOREIGN)) if isinstance(handover.cutting, Cutting) else group


def _by_code_points(field: pa.Field) -> Column:
    """The column; strings that Spark would compare by a collation are compared as they are from here on."""
    column = quoted_column(field.name)
    return F.collate(column, "UTF8_BINARY").alias(field.name) if is_collated(field) else column


def _fields(schema: pa.Schema) -> dict[str, pa.Field]:
    return {column.name: column for column in schema}


def _sorting(types: dict[str, pa.DataType], order: Iterable[SortColumn]) -> Iterable[Column]:
    for item in order:
        column = _normal(quoted_column(item.name), types[item.name])
        if item.descending:
            yield column.desc_nulls_first() if item.nulls_first else column.desc_nulls_last()
        else:
            yield column.asc_nulls_first() if item.nulls_first else column.asc_nulls_last()


def _any(conditions: Iterable[Column]) -> Column:
    found = F.lit(False)
    for condition in conditions:
        found = found | condition
    return found


def _is_missing(column: Column, type_: pa.DataType) -> Column:
    return column.isNull() | F.isnan(column) if pa.types.is_floating(type_) else column.isNull()


def _normal(column: Column, type_: pa.DataType) -> Column:
    """The column for comparing: -0.0 and 0.0 are one value, and adding zero makes them one; maps have no order."""
    if pa.types.is_floating(type_):
        return column + F.lit(0.0)
    return F.to_json(column) if has_map(type_) else column

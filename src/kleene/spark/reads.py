"""What a query reads of a DataFrame: which columns of which events, which of them belong together, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.row_pattern import SortColumn
from kleene.engine.sorting import is_sortable
from kleene.ir import expr as ir
from kleene.ir.text import expression_text
from kleene.spark.hashing import key_hash
from kleene.spark.marks import GROUP
from kleene.spark.names import plain_names, quoted_column
from kleene.spark.pushdown import spark_condition
from kleene.spark.schema import has_map, is_collated
from kleene.spark.tasks.order import has_order_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What is read. `order` begins with the order key; the columns behind it decide between equals."""

    columns: pa.Schema
    key: tuple[str, ...]
    order: tuple[SortColumn, ...]
    order_key: int  # how many columns of the order are its key
    strict: tuple[str, ...]  # columns of the order key that must not be missing
    needs_key: bool = False  # whether an event without a key is of no use
    useful: ir.Expr | None = None  # what holds for all events that are of use
    is_by_all: bool = False  # whether the order is by all columns, since the query gives none
    time_name: str | None = None  # what the user calls the time, if the column is called otherwise

    @property
    def time_column(self) -> str:
        return self.order[0].name

    @property
    def shown_time(self) -> str:
        return self.time_name or self.time_column

    def type_of(self, name: str) -> pa.DataType:
        return self.columns.field(name).type

    def lines(self) -> list[str]:
        """For EXPLAIN."""
        shown = (name for name in self.columns.names if not name.startswith("__kleene_"))
        lines = [f"columns    {', '.join(shown)}"]
        if self.is_by_all:
            lines.append(f"order      by all columns: {', '.join(item.name for item in self.order)}")
        return lines if self.useful is None else [*lines, f"filter     {expression_text(self.useful)}"]


@dataclass(frozen=True, slots=True)
class Sort:
    """Where the events of a Spark partition are put in order: in the tasks, or by Spark before."""

    in_tasks: bool
    text: str


def choose_sort(reads: Reads) -> Sort:
    """In the tasks where that can be done on numbers, which is faster than Spark's sort of rows; else in Spark."""
    first = reads.time_column
    if reads.is_by_all:
        return Sort(False, "in Spark, by all columns: the query has no ORDER BY")
    if first not in reads.strict or not has_order_numbers(reads.type_of(first)):
        return Sort(False, f"in Spark: {reads.shown_time} is not a number or a time that is always there")
    nested = next((column.name for column in reads.columns if not is_sortable(column.type)), None)
    if nested is not None:
        return Sort(False, f"in Spark: {nested} is a nested column, and may decide between equal order keys")
    return Sort(True, f"in the tasks, by {reads.shown_time}")


def events_read(frame: DataFrame, reads: Reads, kept: Column | None = None) -> DataFrame:
    """The columns and events that are read. Events for which `kept` holds are not left out, whatever they are."""
    useful = None
    if reads.useful is not None:
        useful = spark_condition(reads.useful, {column.name: column for column in reads.columns})
    if reads.needs_key and reads.key:
        has_key = ~_any(_is_missing(quoted_column(name), reads.type_of(name)) for name in reads.key)
        useful = has_key if useful is None else useful & has_key
    if useful is not None:
        useful = useful if kept is None else useful | kept
        # The error about a missing order key counts all of them.
        frame = frame.where(_is_unordered(reads, quoted_column) | useful)
    return frame.select(*map(_by_code_points, reads.columns))


def group_of(
    reads: Reads, range_group: Column | None = None, column: Callable[[str], Column] = quoted_column
) -> Column:
    """The group of an event: that of its range, if there is one, else of its key. `column` finds columns by name."""
    group = key_hash(keys_of(reads, column))
    if range_group is not None:
        group = F.coalesce(range_group, group)
    return F.when(~_is_unordered(reads, column), group).alias(GROUP)


def keys_of(reads: Reads, column: Callable[[str], Column] = quoted_column) -> list[Column]:
    return [comparable(column(name), reads.type_of(name)) for name in reads.key]


def handed_over(frame: DataFrame, reads: Reads, sort: Sort, *further: str) -> DataFrame:
    """The frame whose Spark partitions the tasks read: sorted, unless the tasks do it, and under plain names."""
    if not sort.in_tasks:
        frame = frame.sortWithinPartitions(quoted_column(GROUP).asc_nulls_first(), *spark_order(reads))
    return frame.toDF(*plain_names(reads.columns.names), GROUP, *further)


def comparable(column: Column, type_: pa.DataType) -> Column:
    """The column for comparing: -0.0 and 0.0 are one value, and adding zero makes them one; maps have no order."""
    if pa.types.is_floating(type_):
        return column + F.lit(0.0)
    return F.to_json(column) if has_map(type_) else column


def spark_order(reads: Reads) -> Iterable[Column]:
    for item in reads.order:
        column = comparable(quoted_column(item.name), reads.type_of(item.name))
        if item.descending:
            yield column.desc_nulls_first() if item.nulls_first else column.desc_nulls_last()
        else:
            yield column.asc_nulls_first() if item.nulls_first else column.asc_nulls_last()


def _is_unordered(reads: Reads, column: Callable[[str], Column]) -> Column:
    """Whether an event has no place in the order."""
    return _any(_is_missing(column(name), reads.type_of(name)) for name in reads.strict)


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions, F.lit(False))


def _is_missing(column: Column, type_: pa.DataType) -> Column:
    return column.isNull() | F.isnan(column) if pa.types.is_floating(type_) else column.isNull()


def _by_code_points(field: pa.Field) -> Column:
    """The column; strings that Spark would compare by a collation are compared as they are from here on."""
    column = quoted_column(field.name)
    return F.collate(column, "UTF8_BINARY").alias(field.name) if is_collated(field) else column

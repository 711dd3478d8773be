"""Matching in place in this process: what Spark's tasks do, with an input that lies in any pieces."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn
from kleene.engine.compiled.batches import partition_codes
from kleene.engine.ranges import Uncut, is_choosing
from kleene.engine.run import result_schema
from kleene.plan.plan import ByKey, Plan
from kleene.spark.candidates import CHOICE, Chooser, choice_order
from kleene.spark.layouts.choosing import in_place_reach
from kleene.spark.layouts.in_place import EdgeTask, PieceTask
from kleene.spark.output import Output
from kleene.spark.reads import Reads, Sort
from kleene.spark.tasks.order import TaskOrder, has_order_numbers


def task_order(plan: Plan, table: pa.Table, order_columns: tuple[str, ...]) -> TaskOrder:
    """The order in which Spark's tasks put events: columns decide between those of equal keys."""
    query = plan.query
    if isinstance(query, AnalyzedRowPattern):
        ordered = {column.name for column in query.order_by}
        return TaskOrder(
            (*query.order_by, *(SortColumn(name, False, False) for name in table.column_names if name not in ordered))
        )
    names = dict.fromkeys([*order_columns, *table.column_names])
    return TaskOrder(tuple(SortColumn(name, False, None) for name in names))


def in_place_task(plan: Plan, table: pa.Table, order: TaskOrder) -> PieceTask | Uncut:
    first = order.columns[0].name
    if not has_order_numbers(table.schema.field(first).type):
        return Uncut("the order key is neither a number nor a time")
    split = plan.split
    reads = Reads(
        columns=table.schema,
        key=split.columns if isinstance(split, ByKey) else (),
        order=order.columns,
        order_key=1,
        strict=(first,),
    )
    output = Output(result=result_schema(plan, table.schema))
    return PieceTask(plan=plan, reads=reads, output=output, reach=in_place_reach(plan, Sort(True, "")))


def matched_in_place(task: PieceTask, pieces: list[pa.Table], random: Random) -> tuple[pa.Table, int]:
    """The rows of the result, in no particular order; and how many were found in the pieces, where they lie."""
    travelled = []
    for partition, piece in enumerate(pieces):
        batches = iter(piece.to_batches(max_chunksize=random.randrange(1, 50)))
        travelled += task.of_partition(batches, partition)
    sent = travelled[0].schema.names[len(task.leaving) + len(task.reads.columns)]
    together = with_groups(task, pa.Table.from_batches(travelled))
    early = pc.sum(pc.and_(together.column(sent).is_null(), together.column(-2).is_null())).as_py() or 0
    random.shuffle(order := list(range(together.num_rows)))
    shuffled = together.take(pa.array(order, pa.int64()))
    chooses = is_choosing(task.plan) and not task.reads.key
    edges = EdgeTask(plan=task.plan, reads=task.reads, output=task.output, reach=task.reach, chooses=chooses)
    found = list(edges(iter(shuffled.to_batches(max_chunksize=random.randrange(1, 50)))))
    rows = pa.Table.from_batches(found, edges.leaving) if found else edges.leaving.empty_table()
    return (chosen(task, rows) if is_choosing(task.plan) and not chooses else rows), early


def with_groups(task: PieceTask, travelled: pa.Table) -> pa.Table:
    """What Spark adds: a number for the key. Two keys are given the same one."""
    begin, columns = len(task.leaving), task.reads.columns
    events = pa.table(travelled.columns[begin : begin + len(columns)], names=columns.names)
    groups, _ = partition_codes(events, task.reads.key, null_is_a_key=True)
    return travelled.append_column("group", pa.array(groups // 2))


def chosen(task: PieceTask, rows: pa.Table) -> pa.Table:
    query, result = task.plan.query, task.output.result
    by = [(column.name, "descending" if column.descending else "ascending") for column in choice_order(query)]
    in_order = rows.take(pc.sort_indices(rows, [(CHOICE[0], "ascending"), *by]))
    batches = list(Chooser(query, result)(iter(in_order.to_batches())))
    return pa.Table.from_batches(batches, result) if batches else result.empty_table()


def lying(table: pa.Table, random: Random) -> list[pa.Table]:
    """A sorted table in pieces, of which some are not quite in order."""
    cuts = sorted({0, table.num_rows, *(random.randrange(table.num_rows) for _ in range(random.randrange(4)))})
    pieces = [table.slice(begin, end - begin) for begin, end in pairwise(cuts)]
    random.shuffle(pieces)
    return [disturbed(piece, random) if random.random() < 0.3 else piece for piece in pieces]


def disturbed(piece: pa.Table, random: Random) -> pa.Table:
    rows = list(range(piece.num_rows))
    at = random.randrange(len(rows))
    rows[at : at + 3] = reversed(rows[at : at + 3])
    return piece.take(pa.array(rows, pa.int64()))


def longer(table: pa.Table, name: str, times: int) -> pa.Table:
    """The table several times in the order of a column; or as it is, where that is no number or time."""
    column = table.column(name)
    type_ = column.type
    if column.null_count or not table.num_rows or not has_order_numbers(type_):
        return table
    numbers = column.cast(pa.int32()) if pa.types.is_date32(type_) else column
    numbers = numbers if pa.types.is_floating(type_) else numbers.cast(pa.int64())
    low, high = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    if not abs(low) + abs(high) < 2**50 or high - low > 10**6 * 10**9:
        return table
    parts = []
    for number in range(times):
        moved = pc.add(numbers, pa.scalar(number * (high - low), numbers.type))
        if pa.types.is_date32(type_):
            moved = moved.cast(pa.int32())
        parts.append(table.set_column(table.column_names.index(name), name, moved.cast(type_)))
    return pa.concat_tables(parts)

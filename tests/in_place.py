"""Matching in place in this process: what Spark's tasks do, with an input that lies in any pieces."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn
from kleene.engine.compiled.batches import partition_codes
from kleene.engine.ranges import Reach, Uncut
from kleene.engine.run import result_schema
from kleene.plan.plan import ByKey, Plan
from kleene.spark.batch import in_place
from kleene.spark.choosing import CHOICE, Chooser, choice_order
from kleene.spark.gathering import TaskOrder, has_order_numbers
from kleene.spark.handover import Sorting
from kleene.spark.pieces_worker import EdgeMatcher, InPlaceMatcher, PieceMatcher
from kleene.spark.worker import Matcher


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


def in_place_matcher(plan: Plan, table: pa.Table, order: TaskOrder) -> InPlaceMatcher | Uncut:
    first = order.columns[0].name
    if not has_order_numbers(table.schema.field(first).type):
        return Uncut("the order key is neither a number nor a time")
    reach = in_place(plan, Sorting.TASK, "").reach
    assert isinstance(reach, Reach)
    split = plan.split
    matcher = Matcher(
        plan,
        table.schema,
        Sorting.TASK,
        order,
        (first,),
        result_schema(plan, table.schema),
        mixed_by=(first,) if isinstance(split, ByKey) and split.is_implied else (),
        reach=reach,
        in_place=True,
    )
    return InPlaceMatcher(matcher, split.columns if isinstance(split, ByKey) else ())


def matched_in_place(common: InPlaceMatcher, pieces: list[pa.Table], random: Random) -> tuple[pa.Table, int]:
    """The rows of the result, in no particular order; and how many were found in the pieces, where they lie."""
    travelled = []
    for partition, piece in enumerate(pieces):
        batches = iter(piece.to_batches(max_chunksize=random.randrange(1, 50)))
        travelled += PieceMatcher(common).of_partition(batches, partition)
    sent = travelled[0].schema.names[len(common.matcher.output) + len(common.matcher.columns)]
    together = with_groups(common, pa.Table.from_batches(travelled))
    early = pc.sum(pc.and_(together.column(sent).is_null(), together.column(-2).is_null())).as_py() or 0
    random.shuffle(order := list(range(together.num_rows)))
    shuffled = together.take(pa.array(order, pa.int64()))
    is_choosing = common.matcher.is_choosing
    chooses = is_choosing and not common.key
    found = list(EdgeMatcher(common, chooses)(iter(shuffled.to_batches(max_chunksize=random.randrange(1, 50)))))
    output = common.matcher.result if chooses else common.matcher.output
    rows = pa.Table.from_batches(found, output) if found else output.empty_table()
    return (chosen(common, rows) if is_choosing and not chooses else rows), early


def with_groups(common: InPlaceMatcher, travelled: pa.Table) -> pa.Table:
    """What Spark adds: a number for the key. Two keys are given the same one."""
    begin = len(common.matcher.output)
    events = pa.table(
        travelled.columns[begin : begin + len(common.matcher.columns)], names=common.matcher.columns.names
    )
    groups, _ = partition_codes(events, common.key, null_is_a_key=True)
    return travelled.append_column("group", pa.array(groups // 2))


def chosen(common: InPlaceMatcher, rows: pa.Table) -> pa.Table:
    plan = common.matcher.plan
    by = [(column.name, "descending" if column.descending else "ascending") for column in choice_order(plan.query)]
    in_order = rows.take(pc.sort_indices(rows, [(CHOICE[0], "ascending"), *by]))
    batches = list(Chooser(plan.query, common.matcher.result)(iter(in_order.to_batches())))
    return pa.Table.from_batches(batches, common.matcher.result) if batches else common.matcher.result.empty_table()


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

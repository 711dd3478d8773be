"""The task of ranges, without Spark: ranges and whole keys in one Spark partition, also where they come in parts."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest

import kleene
from flat_options import call_of
from kleene.analysis.row_pattern import SortColumn
from kleene.api import prepare
from kleene.engine.ranges import Reach, reach_of
from kleene.engine.run import result_schema
from kleene.engine.threads import run
from kleene.spark.candidates import CHOICE, Chooser
from kleene.spark.layouts import ranges
from kleene.spark.layouts.ranges import RangeTask
from kleene.spark.marks import GROUP, MARK, mark
from kleene.spark.output import Output
from kleene.spark.reads import Reads
from kleene.spark.tasks.groups import groups_of
from kleene.spark.tasks.order import sorted_tables

EVENTS = pa.table({"k": [1] * 30 + [2] * 30, "t": [*range(30), *range(30)], "x": [n * n % 7 for n in range(60)]})
CLAUSE = "PARTITION BY k ORDER BY t MEASURES A.t AS a, B.t AS b PATTERN (A B) DEFINE B AS B.x > A.x"


def task() -> RangeTask:
    table, plan = prepare(call_of(kleene.match_recognize(CLAUSE).definition, engine="generated"), EVENTS)
    reach = reach_of(plan)
    assert isinstance(reach, Reach)
    order = tuple(SortColumn(name, False, None) for name in ("t", "k", "x"))
    reads = Reads(columns=table.schema, key=("k",), order=order, order_key=1, strict=("t",))
    output = Output(result=result_schema(plan, table.schema))
    return RangeTask(plan=plan, reads=reads, output=output, arrange=sorted_tables, reach=reach)


def sent(of_key: int, group: int, own: range, read: range, size: int | None = None) -> pa.Table:
    """The events of a range; without a size, of a key that is not cut."""
    begin = 30 * (of_key - 1)
    events = EVENTS.slice(begin + read.start, len(read))
    marks = [None if size is None else mark(size, n in own) for n in read]
    events = events.append_column(GROUP, pa.array([group] * len(read)))
    return events.append_column(MARK, pa.array(marks, pa.int64()))


def batches(size: int = 15) -> list[pa.RecordBatch]:
    parts = [
        sent(1, 10, range(15), range(20), size),
        sent(1, 20, range(15, 30), range(10, 30), size),
        sent(2, 15, range(30), range(30)),
    ]
    return pa.concat_tables(parts).to_batches()


@pytest.mark.parametrize("at_once", [5, 6, 1 << 18])
def test_ranges_and_whole_keys_in_parts(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "groups_of", partial(groups_of, at_once=at_once, large=2 * at_once))
    own = task()
    found = pa.Table.from_batches(own(iter(batches())), own.leaving)
    in_order = found.sort_by([(name, "ascending") for name in CHOICE[:3]])
    chosen = pa.Table.from_batches(Chooser(own.plan.query, own.output.result)(iter(in_order.to_batches())))
    assert sorted(map(str, chosen.to_pylist())) == sorted(map(str, run(own.plan, EVENTS).to_pylist()))
    assert chosen.num_rows > 10


def test_an_input_that_changed_meanwhile_is_an_error() -> None:
    with pytest.raises(kleene.ExecutionError, match="the input changed between two readings"):
        list(task()(iter(batches(size=16))))

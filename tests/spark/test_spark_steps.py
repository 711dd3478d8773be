"""Patterns in steps on Spark tables and streams: what they find in one process."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kleene
import steps_cases
from flat_options import call_of
from kleene.api import prepare
from kleene.engine.threads import run
from on_stream import matched_on_stream, task_of
from run_checks import read_result
from run_checks import table as documented
from step_cases import StepCase, events_of, load_steps
from steps_notation import to_builder

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
CASES = [case for case in load_steps() if not case.item.keys() & {"illegal", "error"}]


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("case", CASES[::2], ids=lambda case: case.name)
def test_case_of_steps_on_a_stream(case: StepCase) -> None:
    pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="Spark's tester came after PySpark 4.0")
    is_timed = "timed_out" in case.item
    engine = "reference" if is_timed else "generated"
    call = call_of(case.pattern.definition, order_by="t", timeouts=is_timed, engine=engine)
    table, plan = prepare(call, case.events)
    expected = rows_of(run(plan, task_of(plan, table).order.sorted_by_time(table)))
    for seed in range(2):
        assert rows_of(matched_on_stream(plan, table, Random(seed))) == expected


def keyed(streams: list[str]) -> pa.Table:
    """The streams side by side, each under a key of its own; no two events are at the same time."""
    rows = [
        {**row, "t": 10 * row["t"] + n, "k": n} for n, one in enumerate(streams) for row in events_of(one).to_pylist()
    ]
    return pa.Table.from_pylist(rows)


def test_tables_are_shuffled_by_key(spark: SparkSession) -> None:
    """Loops, an optional step, a function, timeouts: one job."""

    def costs_more(row: dict[str, Any], bound: dict[str, list[dict[str, Any]]]) -> bool:
        return row["price"] is None or row["price"] >= len(bound["b"])

    pattern = (
        kleene.begin("a", type="a")
        .followed_by_any("b", type="b")
        .where(costs_more)
        .one_or_more()
        .followed_by("c", type="c")
        .optional()
        .within(80)
        .partition_by("k")
    )
    events = keyed(["a1 b1 b2 x1 b3 c1", "a1@0 b1=0@2 x1@30", "b1 c1 b2", "a1 a2 b1=5 c1 b2=1 b3=3", "a1@3 x1@40"])
    options: dict[str, Any] = {"order_by": "t", "timeouts": True}
    expected = pattern.match(events, **options).to_pylist()
    found = pattern.match(spark.createDataFrame(events), **options, match_order=True)
    assert "by key (k)" in pattern.explain(spark.createDataFrame(events), **options)
    rows = found.orderBy("match_order").drop("match_order").toArrow().to_pylist()
    assert [row for row in rows if not row["timed_out"]] == [row for row in expected if not row["timed_out"]]
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    assert {row["timed_out"] for row in rows} == {True, False}


def test_code_travels_to_the_tasks(spark: SparkSession) -> None:
    pattern = kleene.begin("a", type="a").followed_by("b", type="b").where("COUNT(b.*) < 2").one_or_more()
    pattern = pattern.after_match("skip_past_last_event").partition_by("k")
    events = keyed(["a1 b1 b2 x1 b3 c1", "b1 a1 b2 a2 b3", "a1 x1"])
    found = pattern.match(spark.createDataFrame(events), order_by="t", engine="generated").toArrow()
    assert rows_of(found) == rows_of(pattern.match(events, order_by="t", engine="reference"))


def test_a_pattern_without_a_window_is_refused_on_a_stream(spark: SparkSession) -> None:
    rates = spark.readStream.format("rate").load().selectExpr("'a' AS type", "timestamp AS t", "value AS price")
    stream = rates.withWatermark("t", "1 second")
    pattern = kleene.begin("a").followed_by("b").one_or_more().until("price > 3")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    try:
        with pytest.raises(kleene.UnsupportedError, match="no within says when a run is over"):
            pattern.match(stream, order_by="t")
        assert "bounded for each key" in pattern.within("1 minute").explain(stream, order_by="t")
    finally:
        spark.conf.unset("spark.sql.streaming.stateStore.providerClass")


ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.mark.parametrize("following", ["x1@10", "x1@11", "x1@40"])
def test_a_run_that_a_match_drops_between_events_times_out_on_a_stream_as_on_a_table(following: str) -> None:
    """The match of a1 is given out at 10 and drops the run of a2, whose time would have been over at 11."""
    pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="Spark's tester came after PySpark 4.0")
    pattern = kleene.begin("a", type="a").followed_by("b", type="b").where("price > LAST(a.price)")
    pattern = pattern.not_followed_by("n", type="n").within(10).after_match("skip_past_last_event")
    events = events_of(f"a1=1@0 a2=9@1 b1=5@2 {following}")
    table, plan = prepare(call_of(pattern.definition, order_by="t", timeouts=True, engine="reference"), events)
    expected = rows_of(run(plan, table))
    assert any("'timed_out': True" in row for row in expected) is (following != "x1@10")
    for seed in range(4):
        assert rows_of(matched_on_stream(plan, table, Random(seed))) == expected


SHARES = 8


@pytest.mark.parametrize("share", [0, *(pytest.param(share, marks=pytest.mark.heavy) for share in range(1, SHARES))])
def test_cases_of_the_document_on_a_stream(share: int) -> None:
    """Those that were written from the document alone, on streams that are cut at random."""
    pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="Spark's tester came after PySpark 4.0")
    for case in [case for case in steps_cases.load() if case.matches is not None][share::SHARES]:
        if len({event.time for event in case.events}) < len(case.events):
            continue  # a stream has no order of the input, by which events of one time would go
        pattern = to_builder(case.pattern, kleene)
        table, plan = prepare(call_of(pattern.definition, order_by="t", engine="reference"), documented(case.events))
        found = read_result(case.pattern, matched_on_stream(plan, table, Random(case.name)))
        assert sorted(map(steps_cases.match_text, found.matches)) == sorted(case.matches or ()), case.name

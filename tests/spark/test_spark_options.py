"""Options that do not fit a Spark DataFrame or a stream are errors of every call alike."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import kleene
from calls import calls_of, error_of
from kleene import EngineOptions, SparkOptions, StreamOptions

PAIR = kleene.sase("EVENT SEQ(A a, B b) WHERE [id] WITHIN 1 minute RETURN a.id AS id")


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.range(4).selectExpr("'A' AS type", "timestamp_seconds(id) AS ts", "id % 2 AS id")


@pytest.fixture(scope="module")
def stream(spark: SparkSession) -> DataFrame:
    rows = spark.readStream.format("rate").load()
    return rows.selectExpr("'A' AS type", "timestamp AS ts", "value AS id")


ON_SPARK = ("match", "explain", "compressed", "program", "program, explained")
IN_PROCESS = {"match_batches": "match_batches reads events in this process", "progress": "progress reads events in"}


@pytest.mark.parametrize("call", ON_SPARK)
def test_stream_options_are_for_streams(frame: DataFrame, call: str) -> None:
    error = error_of(lambda: calls_of(PAIR)[call](frame, order_by="ts", stream=StreamOptions(order="arrival")))
    assert str(error) == "stream is for streams, but the input is a table\nLeave stream out."


@pytest.mark.parametrize("call", IN_PROCESS)
def test_what_reads_events_in_process_names_match(frame: DataFrame, call: str) -> None:
    error = error_of(lambda: calls_of(PAIR)[call](frame, order_by="ts"))
    assert error is not None
    assert error.message.startswith(IN_PROCESS[call])
    assert "Use match" in (error.hint or "")


@pytest.mark.parametrize("call", ["match", "explain", "program", "program, explained"])
@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (SparkOptions("presorted"), "layout='presorted' is for tables", "StreamOptions(order='arrival')"),
        (SparkOptions("ranges", ranges=4), "layout='ranges' is for tables", "Leave layout='ranges' out."),
        (SparkOptions("in place"), "layout='in place' is for tables", "Leave layout='in place' out."),
        (SparkOptions(range_size=9), "range_size is for tables", "Leave range_size out."),
    ],
)
def test_layouts_are_for_tables(stream: DataFrame, call: str, options: Any, message: str, hint: str) -> None:
    error = error_of(lambda: calls_of(PAIR)[call](stream, order_by="ts", spark=options))
    assert error is not None
    assert message in error.message
    assert hint in (error.hint or "")


SAME = [
    {},
    {"order_by": "ts"},
    {"order_by": "x"},
    {"order_by": "ts", "match_order": True},
    {"order_by": "ts", "match_id": True},
    {"order_by": "ts", "engine": "reference"},
    {"order_by": "ts", "engine": EngineOptions(plan={"second_test": "multi_pais"})},
    {"order_by": "ts", "spark": SparkOptions(pushdown=False)},
    {"order_by": "ts", "spark": SparkOptions("presorted")},
    {"order_by": "ts", "spark": SparkOptions("ranges", ranges=4)},
    {"order_by": "type", "spark": SparkOptions("in place")},
    {"order_by": "ts", "stream": StreamOptions(watermark="1 minute")},
    {"order_by": "ts", "stream": StreamOptions(order="arrival"), "timeouts": True},
]


@pytest.mark.parametrize("options", SAME, ids=repr)
def test_explain_refuses_what_match_refuses(
    frame: DataFrame, stream: DataFrame, monkeypatch: pytest.MonkeyPatch, options: dict
) -> None:
    # The session is that of other tests.
    monkeypatch.setattr("kleene.spark.layouts.stream._check_session", lambda _: None)
    for events in (frame, stream):
        expected = error_of(lambda events=events: PAIR.match(events, **options))
        found = error_of(lambda events=events: PAIR.explain(events, **options))
        assert (type(found), str(found)) == (type(expected), str(expected))


def test_a_program_uses_the_layout_for_what_it_reads(frame: DataFrame) -> None:
    program = kleene.program(
        """EVENT SEQ(A a, A b) WHERE [id] WITHIN 1 minute RETURN a.id AS id INTO Pair;
        FROM Pair EVENT SEQ(Pair x, Pair y) WITHIN 1 minute RETURN x.id AS one, y.id AS other"""
    )
    together = frame.repartition(1).sortWithinPartitions("id", "ts")
    found = program.match(together, order_by="ts", spark=SparkOptions("presorted"))
    assert "shuffle    none: presorted" in program.explain(together, order_by="ts", spark=SparkOptions("presorted"))
    expected = program.match(frame.toArrow(), order_by="ts")
    assert {name: rows.count() for name, rows in found.items()} == {name: t.num_rows for name, t in expected.items()}

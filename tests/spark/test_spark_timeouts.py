"""Timeouts on Spark tables are those of one process: a run is out of time by the last event of all keys."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kleene
from case_files import Case, check_rows_of_any_order, load, near
from kleene.spark.schema import spark_schema

CASES = load("timeouts.toml")[::3]
SILENT = pa.table({"type": ["A", "B", "X", "A"], "t": [1, 2, 6, 30], "id": [1, 1, 2, 3], "x": [0.5, 1.5, 2.5, 3.5]})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_on_spark(case: Case, spark: SparkSession) -> None:
    frame = spark.createDataFrame(case.inputs, spark_schema(case.inputs.schema))
    found = kleene.sase(case.query).match(frame, **case.options, engine="generated")
    check_rows_of_any_order(case, near(found.toArrow().to_pylist()))


@pytest.mark.parametrize("order", ["t", "x", "CAST(t AS DATE)", "timestamp_seconds(t)", "CAST(t AS DECIMAL(9, 2))"])
def test_a_key_that_falls_silent_times_out(spark: SparkSession, order: str) -> None:
    """The last event of key 1 is at 2; that of all is at 30."""
    if order == "CAST(t AS DATE)":
        order = "date_add(DATE'2024-01-01', CAST(t AS INT))"
    frame = spark.createDataFrame(SILENT).selectExpr("type", "id", "t", f"{order} AS k")
    window = "5 days" if "date" in order else "5 seconds" if "timestamp" in order else "1" if order == "x" else "5"
    query = kleene.sase(f"EVENT SEQ(A a, B b, C c) WHERE [id] WITHIN {window} RETURN a.id AS id, a.t AS a, b.t AS b")
    options: dict[str, Any] = {"order_by": "k", "timeouts": True, "engine": "generated"}
    found = query.match(frame, **options, match_id=True, match_order=True)
    assert found.columns == ["id", "a", "b", "timed_out", "match_id", "match_order"]
    rows = found.orderBy("match_order").drop("match_id", "match_order").toArrow().to_pylist()
    assert rows == query.match(frame.toArrow(), **options).to_pylist()
    assert [(row["id"], row["b"]) for row in rows] == ([(1, None)] if order == "x" else [(1, None), (1, 2)])


@pytest.mark.parametrize("descending", [False, True])
def test_row_patterns(spark: SparkSession, descending: bool) -> None:
    query = kleene.match_recognize(
        f"""PARTITION BY id ORDER BY t {"DESC" if descending else ""}
        MEASURES A.t AS a, LAST(B.t) AS b, upper(LAST(B.type)) AS upper PATTERN (A B* C) WITHIN 5
        DEFINE A AS type = 'A', C AS FALSE"""
    )
    frame = spark.createDataFrame(SILENT)
    found = query.match(frame, timeouts=True, match_order=True, engine="generated")
    rows = found.orderBy("match_order").drop("match_order").toArrow().to_pylist()
    expected = query.match(SILENT, timeouts=True).to_pylist()
    assert rows == expected
    assert [row["a"] for row in rows] == [30 if descending else 1]


def test_layouts_that_cut_keys_are_refused(spark: SparkSession) -> None:
    query = kleene.sase("EVENT SEQ(A a, C c) WHERE [id] WITHIN 5 RETURN a.t AS a, c.t AS c")
    frame = spark.createDataFrame(SILENT)
    presorted = frame.repartition(1).sortWithinPartitions("id", "t")
    found = query.match(presorted, order_by="t", timeouts=True, spark=kleene.SparkOptions("presorted"))
    assert [row.a for row in found.collect()] == [1]
    for layout in ("ranges", "in place"):
        with pytest.raises(kleene.UnsupportedError, match="out of time are found where all events of a key are"):
            query.match(frame, order_by="t", timeouts=True, spark=kleene.SparkOptions(layout))
    with pytest.raises(kleene.UnsupportedError, match="which a table function does not see"):
        query.match(frame, order_by="t", timeouts=True, schema=frame.schema)

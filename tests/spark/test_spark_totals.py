"""Aggregates over all matches on Spark are those in process."""

from __future__ import annotations

import tomllib
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kleene
from case_files import FOLDER, read_table, shown_value
from kleene.spark.schema import spark_schema

EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "A", "B", "B"] * 40,
        "t": range(240),
        "id": [n % 5 for n in range(240)],
        "x": [n * 7 % 11 if n % 9 else None for n in range(240)],
        "y": [0.1 * n for n in range(240)],
    }
)
ASKED = {"n": "count(*)", "sum": "sum(a.x)", "mean": "avg(a.y)", "most": "max(b.x)", "exact": "sum(a.y)"}
KEYED = "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 100"


@pytest.mark.parametrize("per", [None, "event", "partition", 50, ["partition", 50]], ids=str)
@pytest.mark.parametrize(
    "text", [KEYED, "PATTERN SEQ(A a, B b) WHERE a.id = b.id WITHIN 100", "PATTERN SEQ(A+ a[], B b) WITHIN 40"]
)
def test_spark_gives_what_a_process_gives(spark: SparkSession, text: str, per: Any) -> None:
    query, frame = kleene.sase(text), spark.createDataFrame(EVENTS)
    options: dict[str, Any] = {"per": per, "order_by": "t", "engine": "generated"}
    expected, found = query.aggregate(EVENTS, ASKED, **options), query.aggregate(frame, ASKED, **options).toArrow()
    assert found.column_names == expected.column_names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def test_without_a_match_there_is_one_row_over_all(spark: SparkSession) -> None:
    query, frame = kleene.sase("PATTERN SEQ(A a, B b) WHERE [id] AND a.x > 100"), spark.createDataFrame(EVENTS)
    assert query.aggregate(frame, {"n": "count(*)", "x": "max(a.x)"}, order_by="t").collect() == [("0", None)]
    assert query.aggregate(frame, {"n": "count(*)"}, per="partition", order_by="t").collect() == []


TEXTS = tomllib.loads((FOLDER / "totals" / "return_text.toml").read_text(encoding="utf-8"))["case"][::3]


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: str(case["name"]))
def test_aggregates_of_the_text(spark: SparkSession, case: dict[str, Any]) -> None:
    table = read_table(case.get("columns", "type:string t:int"), case["events"])
    options = {name: case[name] for name in ("per", "params", "format") if name in case}
    frame = spark.createDataFrame(table, spark_schema(table.schema))
    found = kleene.sase(case["query"]).aggregate(frame, order_by="t", tie_break="n", engine="generated", **options)
    rows = [{name: shown_value(value) for name, value in row.items()} for row in found.toArrow().to_pylist()]
    assert sorted(map(repr, rows)) == sorted(map(repr, case["rows"]))

"""Plans on Spark: keys that equalities imply, hints, statistics, contradictions."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kleene
from flat_options import arguments

CHANCE = random.Random(8)
COUNT = 300
EVENTS = pa.table(
    {
        "type": [CHANCE.choice("ABC") for _ in range(COUNT)],
        "t": [CHANCE.randrange(400) for _ in range(COUNT)],
        "n": range(COUNT),
        "x": [None if CHANCE.random() < 0.05 else CHANCE.randrange(12) for _ in range(COUNT)],
        "y": [CHANCE.randrange(3) for _ in range(COUNT)],
    }
)
IMPLIED = [
    "EVENT SEQ(A a, B b) WHERE a.x = b.x WITHIN 60",
    "EVENT SEQ(A a, !(C c), B b) WHERE a.x = b.x AND c.x = b.x WITHIN 60",
    "EVENT SEQ(!(C c), A a, B b) WHERE a.x = b.x AND c.x = b.x WITHIN 40",
    "EVENT SEQ(A a, B b, !(C c)) WHERE a.x = b.x AND c.x = a.x AND a.y <= b.y WITHIN 40",
]


def rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def matched(spark: SparkSession, text: str, **options: Any) -> pa.Table:
    frame = spark.createDataFrame(EVENTS).repartition(3)
    return kleene.sase(text).match(frame, order_by="t", tie_break="n", **arguments(options)).toArrow()


@pytest.mark.parametrize("engine", ["reference", "generated"])
@pytest.mark.parametrize("text", IMPLIED)
def test_a_key_that_equalities_imply_splits_the_work_and_changes_nothing(
    spark: SparkSession, text: str, engine: str
) -> None:
    query = kleene.sase(text)
    expected = query.match(EVENTS, order_by="t", tie_break="n", engine="reference")
    assert expected.num_rows > 5
    assert "by key (x)" in query.explain(spark.createDataFrame(EVENTS), order_by="t")
    assert rows(matched(spark, text, engine=engine)) == rows(expected)


@pytest.mark.parametrize(
    "hints",
    [
        {"scan": "basic", "window": "late"},
        {"scan": "ais", "second_test": "selection"},
        {"second_test": "multi_pais"},
        {"second_test": "combined"},
        {"negation": "scan_all", "negation_place": "late"},
        {"operators": "nfa"},
    ],
)
def test_hints_do_not_change_the_matches(spark: SparkSession, hints: dict[str, str]) -> None:
    text = "EVENT SEQ(A a, B b, !(C c), B d) WHERE [x, y] WITHIN 200"
    expected = kleene.sase(text).match(EVENTS, order_by="t", tie_break="n", engine="reference")
    assert expected.num_rows > 5
    assert rows(matched(spark, text, plan=hints, engine="generated")) == rows(expected)


def test_statistics_and_contradictions(spark: SparkSession) -> None:
    frame = spark.createDataFrame(EVENTS)
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE [x, y]")
    known = {"distinct": {"x": 3, "y": 90}}
    assert "pais by [y]" in query.explain(frame, order_by="t", engine=kleene.EngineOptions(statistics=known))
    with pytest.warns(kleene.KleeneWarning, match="no matches"):
        found = kleene.sase("EVENT SEQ(A a, B b) WHERE a.y > 5 AND a.y < 2").match(frame, order_by="t")
    assert found.count() == 0
    assert found.columns == ["a", "b", "match_start", "match_end"]


def test_a_composed_query_with_an_implied_key(spark: SparkSession) -> None:
    program = kleene.program("""EVENT SEQ(A p, B q) WITHIN 9 RETURN p.x AS x INTO P;
        FROM P EVENT SEQ(P a, P b) WHERE a.x = b.x WITHIN 60 RETURN a.x AS x INTO Q""")
    expected = program.match(EVENTS, order_by="t", tie_break="n")["Q"]
    found = program.match(spark.createDataFrame(EVENTS), order_by="t", tie_break="n")["Q"].toArrow()
    assert expected.num_rows > 5
    assert rows(found) == rows(expected)

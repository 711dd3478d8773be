"""The compiled engine and compressed output in Spark tasks."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kleene
from flat_options import arguments

EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "A", "B", "B"] * 40,
        "t": range(240),
        "id": [n % 5 for n in range(240)],
        "x": [n * 7 % 11 for n in range(240)],
    }
)
TEXT = """PATTERN SEQ(A+ a[], B b)
WHERE skip_till_any_match(a[], b) { [id] AND a[i].x > a[i-1].x } WITHIN 60
RETURN count(a[]) AS n, a[1].t AS a, b.t AS b"""


@pytest.fixture
def frame(spark: SparkSession):
    return spark.createDataFrame(EVENTS)


@pytest.mark.parametrize(
    "options", [{"engine": "compiled"}, {"engine": "generated", "algorithm": "basic"}, {"algorithm": "backtrack"}]
)
def test_an_engine_in_spark_finds_what_the_reference_finds_in_process(frame, options: dict[str, str]) -> None:
    query = kleene.sase(TEXT)
    expected = query.match(EVENTS, order_by="t", engine="reference").to_pylist()
    found = query.match(frame, **arguments({"order_by": "t", **options})).toArrow().to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert len(found) > 100


def test_compressed_rows_carry_what_their_matches_are_made_of(frame) -> None:
    query = kleene.sase(TEXT)
    rows = query.compressed(frame, order_by="t", engine="generated").toArrow().to_pylist()
    assert list(rows[0]) == ["id", "match_end", "match_count", "structure"]
    expected = query.match(EVENTS, order_by="t", engine="reference").to_pylist()
    found = [match for row in rows for match in kleene.expand(row["structure"]).to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert sum(int(row["match_count"]) for row in rows) == len(expected)

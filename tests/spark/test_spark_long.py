"""The long form on Spark has the rows that it has in process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import kleene

EVENTS = pa.table(
    {"type": ["A", "A", "B", "C"], "t": [1, 2, 3, 4], "id": [7, 7, 7, 7], "x": pa.array([5, 6, 7, None], pa.int64())}
)


def test_long_rows_are_those_in_process(spark) -> None:
    frame = spark.createDataFrame(EVENTS.to_pandas().astype({"x": "Int64"}), "type string, t long, id long, x long")
    sase = kleene.sase("PATTERN SEQ(A+ a[], B, C c) WHERE [id] RETURN c.t AS at")
    here = sase.match(EVENTS, order_by="t", long=True)
    there = sase.match(frame, order_by="t", long=True, match_order=True)
    assert there.columns == [*here.schema.names, "match_order"]
    rows = there.orderBy("match_order", "match_position").drop("match_order").collect()
    assert [row.asDict() for row in rows] == here.to_pylist()
    regex = kleene.regex(pattern=". rise", order_by="t", predicates={"rise": "x > Last(x)"}, output={"n": "Count()"})
    here, there = regex.match(EVENTS, long=True), regex.match(frame, long=True)
    assert there.columns == here.schema.names
    assert [row.asDict() for row in there.orderBy("match_position").collect()] == here.to_pylist()
    clause = kleene.match_recognize(
        "PARTITION BY id ORDER BY t MEASURES A.t AS a ALL MATCHES PATTERN (A B+) DEFINE B AS B.x > A.x"
    )
    found = clause.match(frame, long=True)
    local = clause.match(EVENTS, long=True)
    assert found.columns == local.schema.names

    def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(rows, key=lambda row: (row["match_id"], row["match_position"]))

    assert ordered([row.asDict() for row in found.collect()]) == ordered(local.to_pylist())
    steps = kleene.begin("a", type="A").next("o", type="O").optional().followed_by("c", type="C")
    here, there = steps.match(EVENTS, order_by="t", long=True), steps.match(frame, order_by="t", long=True)
    assert sorted(map(tuple, there.select(here.schema.names).fillna(0).collect())) == sorted(
        tuple(0 if value is None else value for value in row.values()) for row in here.to_pylist()
    )
    assert here.num_rows == 4

"""A row for each selected event, wherever and in whatever language matches are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import kleene
from strategies import Events, event_table, queries_with_events
from structured_query import StructuredQuery

EVENTS = pa.table(
    {"type": ["A", "A", "B", "C"], "t": [1, 2, 3, 4], "id": [7, 7, 7, 7], "x": pa.array([5, 6, 7, None], pa.int64())}
)
MANY = kleene.sase("PATTERN SEQ(A+ a[], B, C c) WHERE [id] HAVING a.LEN = 2 RETURN c.t AS at")


def rows_of(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.select(list(names)).to_pylist()]


def test_every_selected_event_is_a_row_with_its_place_in_the_match() -> None:
    found = MANY.match(EVENTS, order_by="t", long=True)
    assert found.schema.names == ["match_id", "match_variable", "match_position", *EVENTS.schema.names]
    assert [found.schema.field(name).type for name in EVENTS.schema.names] == EVENTS.schema.types
    assert rows_of(found, "match_variable", "match_position", "t", "x") == [
        ("a", 1, 1, 5),
        ("a", 2, 2, 6),
        (None, 3, 3, 7),  # a component without a variable is selected all the same
        ("c", 4, 4, None),
    ]


@settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(queries_with_events(all_named=True))
def test_long_rows_are_those_of_the_matches(case: tuple[StructuredQuery, Events]) -> None:
    query, events = case
    options = {"order_by": "t", "format": query.format, "engine": "reference"}
    sase, table = kleene.sase(str(query)), event_table(events)
    expected = []
    for row in sase.match(table, match_id=True, **options).to_pylist():
        selected = [
            (part.variable, event)
            for part in query.positives
            for event in (row[part.variable] if part.is_kleene else [row[part.variable]])
        ]
        for place, (variable, event) in enumerate(selected, 1):
            expected.append((row["match_id"], variable, place, event["n"], event["x"], event["s"]))
    found = sase.match(table, long=True, **options)
    assert rows_of(found, "match_id", "match_variable", "match_position", "n", "x", "s") == expected


def test_batches_and_scans_give_the_same_rows(tmp_path: Path) -> None:
    found = MANY.match(EVENTS, order_by="t", long=True)
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    scan = kleene.scan(str(tmp_path / "events.parquet"))
    assert MANY.match_batches(EVENTS, order_by="t", long=True).read_all() == found
    assert MANY.match(scan, order_by="t", long=True) == found
    assert MANY.match_batches(scan, order_by="t", long=True).read_all() == found
    assert isinstance(MANY.match(EVENTS.to_pandas(), order_by="t", long=True), pd.DataFrame)


def test_without_matches_the_columns_are_there() -> None:
    nothing = EVENTS.slice(0, 2)
    found = MANY.match(nothing, order_by="t", long=True)
    assert (found.num_rows, found.schema) == (0, MANY.match(EVENTS, order_by="t", long=True).schema)
    assert MANY.match_batches(nothing, order_by="t", long=True).read_all() == found


def test_attributes_that_a_type_lacks_are_null() -> None:
    inputs = {"Shelf": pa.table({"t": [1], "size": [3]}), "Exit": pa.table({"t": [2], "door": ["x"]})}
    found = kleene.sase("PATTERN SEQ(Shelf a, Exit b)").match(inputs, order_by="t", long=True)
    assert rows_of(found, "match_variable", "t", "size", "door") == [("a", 1, 3, None), ("b", 2, None, "x")]


def test_a_step_that_was_passed_over_has_no_row() -> None:
    pattern = kleene.begin("a", type="A").next("o", type="O").optional().followed_by("c", type="C")
    found = pattern.match(EVENTS, order_by="t", long=True)
    assert rows_of(found, "match_variable", "match_position", "t") == [
        ("a", 1, 1),
        ("c", 2, 4),
        ("a", 1, 2),
        ("c", 2, 4),
    ]


def test_rows_of_row_patterns_carry_their_variable_and_number() -> None:
    table = pa.table({"k": ["x", "x", "x", "y", "x"], "t": [1, 2, 3, 1, 4], "p": [5, 6, 7, 1, 2]})
    falls = kleene.match_recognize(
        "PARTITION BY k ORDER BY t MEASURES A.p AS low PATTERN (A UP* ) DEFINE UP AS UP.p > PREV(UP.p)"
    )
    found = falls.match(table, long=True)
    assert found.schema.names == ["match_id", "match_variable", "match_position", "k", "t", "p"]
    assert sorted(rows_of(found, "k", "match_id", "match_variable", "match_position", "t")) == [
        ("x", 1, "A", 1, 1),
        ("x", 1, "UP", 2, 2),
        ("x", 1, "UP", 3, 3),
        ("x", 2, "A", 1, 4),
        ("y", 1, "A", 1, 1),
    ]
    assert falls.match_batches(table, long=True).read_all() == found


def test_a_column_that_is_named_twice_is_there_once() -> None:
    table = pa.table({"k": ["x", "x"], "t": [1, 2]})
    found = kleene.match_recognize("PARTITION BY k ORDER BY k, t PATTERN (A B) DEFINE A AS TRUE").match(
        table, long=True
    )
    assert found.column_names == ["match_id", "match_variable", "match_position", "k", "t"]
    assert rows_of(found, "match_variable", "t") == [("A", 1), ("B", 2)]


def test_events_of_regular_expressions_keep_their_columns_and_types(tmp_path: Path) -> None:
    day = pa.array([19_000, 19_001, 19_002, None], pa.int32()).cast(pa.date32())
    events = EVENTS.append_column("day", day).append_column("small", pa.array([1, 2, 3, 4], pa.int8()))
    pairs = kleene.regex(pattern=". rise", order_by="t", predicates={"rise": "x > Last(x)"}, output={"n": "Count()"})
    found = pairs.match(events, long=True)
    assert found.schema.names == ["match_id", "match_variable", "match_position", *events.schema.names]
    assert found.select(events.schema.names) == events.slice(0, 2)
    assert rows_of(found, "match_variable", "match_position") == [(None, 1), (None, 2)]
    assert found.column("match_id").unique().to_pylist() != [None]
    pq.write_table(events, tmp_path / "events.parquet")
    scan = kleene.scan(str(tmp_path / "events.parquet"))
    assert pairs.match(scan, long=True) == found
    assert pairs.match_batches(events, long=True).read_all() == found
    assert pairs.match(events.slice(0, 1), long=True).schema == found.schema


def test_what_has_no_long_form_says_so() -> None:
    window = kleene.pattern_window(
        "ORDER BY t MEASURES A.t AS a ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING PATTERN (A)"
    )
    with pytest.raises(kleene.UnsupportedError, match="has no long form"):
        window.match(EVENTS, long=True)
    with pytest.raises(kleene.UnsupportedError, match="timeouts are runs"):
        kleene.sase("PATTERN SEQ(A a, B b) WITHIN 5").match(EVENTS, order_by="t", long=True, timeouts=True)
    clashing = EVENTS.append_column("match_position", EVENTS.column("t"))
    with pytest.raises(kleene.SchemaError, match="adds a column 'match_position'"):
        kleene.sase("PATTERN SEQ(A a, B b)").match(clashing, order_by="t", long=True)

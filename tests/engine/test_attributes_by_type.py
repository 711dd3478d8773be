"""`kleene.Schema`: the attributes of each event type, in every call of a query, in process and on Spark."""

from __future__ import annotations

import pickle
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import kleene
from calls import error_of

EVENTS = pa.table(
    {
        "type": ["Shelf", "Shelf", "Exit", "Exit", "Door"],
        "t": [1, 2, 3, 4, 5],
        "id": [7, 8, 7, 8, 9],
        "size": [3, 9, 1, 2, 1],  # what an exit says of it does not count
    }
)
TYPES = kleene.Schema({"Shelf": ["id", "size"], "Exit": ["id"]})
LARGE = kleene.sase(
    "PATTERN SEQ(Shelf a, ANY(Exit, Door) b) WHERE b.size > 2 RETURN a.t AS a, b.t AS b, b.size AS size"
)
CALL: dict[str, Any] = {"order_by": "t", "schema": TYPES}
EXPECTED = [
    {"a": 1, "b": 3, "size": None},
    {"a": 2, "b": 3, "size": None},
    {"a": 1, "b": 4, "size": None},
    {"a": 2, "b": 4, "size": None},
]


def test_every_call_takes_it() -> None:
    assert LARGE.match(EVENTS, order_by="t").num_rows == 0
    assert LARGE.match(EVENTS, **CALL).to_pylist() == EXPECTED
    assert LARGE.match_batches(EVENTS, **CALL).read_all().to_pylist() == EXPECTED
    assert kleene.Program((LARGE,)).match(EVENTS, **CALL)["query_1"].to_pylist() == EXPECTED
    frame = LARGE.match(EVENTS.to_pandas(), **CALL)
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 4
    assert LARGE.aggregate(EVENTS, "count(*) AS n", **CALL).to_pylist() == [{"n": "4"}]


def test_pieces_and_compressed_matches() -> None:
    progress = LARGE.progress(EVENTS, **CALL)
    pieces = [EVENTS.slice(0, 3), EVENTS.slice(3)]
    assert [row for piece in pieces for row in progress.feed(piece).to_pylist()] == EXPECTED
    compressed = LARGE.compressed(EVENTS, **CALL)
    assert compressed.count() == 4
    structures = compressed.to_table().column("structure").to_pylist()
    assert [row for one in structures for row in kleene.expand(one).to_pylist()] == EXPECTED


def test_explain_shows_the_attributes_of_a_type() -> None:
    query = kleene.sase("PATTERN SEQ(Shelf a, Exit b) WHERE [size] RETURN *")
    assert "a_id, size, b_type" in query.explain(EVENTS, **CALL)
    assert "partitioned by" not in query.explain(EVENTS, **CALL)


def test_parts_of_a_column_belong_to_its_types() -> None:
    events = EVENTS.append_column("payload", pa.array([{"weight": n} for n in range(5)]))
    query = kleene.sase("PATTERN ANY(Shelf, Exit) v WHERE v.payload.weight > 0 RETURN v.t AS t, v.payload.weight AS w")
    schema = kleene.Schema({"Shelf": ["payload"], "Exit": ["id"]})
    found = query.match(events, order_by="t", schema=schema).to_pylist()
    assert found == [{"t": 2, "w": 1}, {"t": 3, "w": None}, {"t": 4, "w": None}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"A": "id"}, "the attributes of 'A' are a list of names, but 'id' was given"),
        ({"A": [1]}, "the attributes of 'A' are a list of names, but [1] was given"),
        ({"A": None}, "the attributes of 'A' are a list of names, but None was given"),
        ({"A": {"id": "int"}}, "the attributes of 'A' are a list of names"),
        ({"A": ["id", "x", "id"]}, "the attribute 'id' of 'A' is given twice"),
        ({1: ["id"]}, "an event type is a name, but 1 was given"),
        ([("A", ["id"])], "attributes are given by event type, but"),
    ],
)
def test_a_wrong_schema_is_an_error_where_it_is_made(given: Any, message: str) -> None:
    error = error_of(lambda: kleene.Schema(given))
    assert isinstance(error, kleene.SchemaError)
    assert message in error.message


def test_a_schema_is_a_value() -> None:
    assert kleene.Schema({"A": iter(["x"])}) == kleene.Schema({"A": ("x",)})
    assert pickle.loads(pickle.dumps(TYPES)) == TYPES
    assert repr(TYPES) == "Schema({'Shelf': ['id', 'size'], 'Exit': ['id']})"


def test_what_is_no_schema() -> None:
    for call in (LARGE.match, LARGE.progress, LARGE.explain, kleene.Program((LARGE,)).match):
        error = error_of(lambda call=call: call(EVENTS, order_by="t", schema={"Exit": ["id"]}))
        assert error is not None
        assert "schema is a kleene.Schema, but" in error.message
        assert "kleene.Schema({" in (error.hint or "")
    with_columns = kleene.Schema({"Exit": ["id"]}, columns=EVENTS.schema)
    assert "for match and table_function on Spark" in str(error_of(lambda: LARGE.progress(EVENTS, schema=with_columns)))
    rows = kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A) DEFINE A AS A.size > 1")
    assert "a row pattern knows no types" in str(error_of(lambda: rows.match(EVENTS, schema=TYPES)))


def test_a_query_by_itself_reads_one_stream() -> None:
    error = error_of(lambda: kleene.sase("FROM a, b PATTERN SEQ(a x, b y)"))
    assert isinstance(error, kleene.UnsupportedError)
    assert (error.line, error.column) == (1, 9)
    assert "kleene.program(text)" in (error.hint or "")

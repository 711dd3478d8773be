"""Parameters in every call: values of every type, never as text; and what a call says of a value that does not fit."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kleene
from kleene.ir.written import Written
from kleene.lang.parameters import bind

EVENTS = pa.table({"type": ["A", "B", "A", "B"], "t": [1, 2, 3, 4], "x": [1, 5, 7, 9], "s": ["u", "v", "u", "12"]})
PAIRS = kleene.sase("EVENT SEQ(A a, B b) WHERE a.x > :least WITHIN :size RETURN a.t AS a, b.t AS b")
VALUES = {"least": 2, "size": 10}
FOUND = [{"a": 3, "b": 4}]


def test_every_call_takes_parameters() -> None:
    options: dict[str, Any] = {"order_by": "t", "params": VALUES}
    assert PAIRS.match(EVENTS, **options).to_pylist() == FOUND
    assert [row for batch in PAIRS.match_batches(EVENTS, **options) for row in batch.to_pylist()] == FOUND
    assert PAIRS.compressed(EVENTS, **options).count() == 1
    progress = PAIRS.progress(EVENTS, **options)
    assert progress.feed(EVENTS).to_pylist() + progress.finish().to_pylist() == FOUND
    assert "a.x > 2" in PAIRS.explain(EVENTS, **options)
    assert "WITHIN 10" in PAIRS.explain(params=VALUES)
    program = kleene.program("EVENT A a WHERE a.x > :least INTO S; FROM S EVENT S s WITHIN T")
    found = program.match(EVENTS, order_by="t", params={"least": 2, "T": 5})
    assert [table.num_rows for table in found.values()] == [1, 1]


def test_stored_structures_of_compressed_output_hold_the_values() -> None:
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) WHERE b.s = :s AND b.x > -:low RETURN b.t AS b")
    rows = query.compressed(EVENTS, order_by="t", params={"s": "12", "low": -1}).to_table().to_pylist()
    assert {row["b"] for one in rows for row in kleene.expand(one["structure"]).to_pylist()} == {4}


MIDNIGHT = dt.datetime(2024, 1, 31)
TYPED = {
    "int": (5, pa.array([4, 5])),
    "int of numpy": (np.int32(5), pa.array([4, 5])),
    "float": (1.5, pa.array([1.0, 1.5])),
    "float of numpy": (np.float64(1.5), pa.array([1.0, 1.5])),
    "str": ("it's", pa.array(["its", "it's"])),
    "bool": (True, pa.array([False, True])),
    "Decimal": (Decimal("1.50"), pa.array([Decimal("1.51"), Decimal("1.50")])),
    "date": (dt.date(2024, 1, 31), pa.array([dt.date(2024, 1, 30), dt.date(2024, 1, 31)])),
    "datetime": (MIDNIGHT, pa.array([dt.datetime(2024, 1, 30), MIDNIGHT])),
    "datetime with a zone": (
        dt.datetime(2024, 1, 31, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        pa.array([dt.datetime(2024, 1, 31, 1), MIDNIGHT], pa.timestamp("us", "UTC")),
    ),
    "Timestamp of pandas": (
        pd.Timestamp("2024-01-31 00:00:00.000000001"),
        pa.array([1706659200000000000, 1706659200000000001], pa.timestamp("ns")),
    ),
    "time": (dt.time(9, 30), pa.array([dt.time(9), dt.time(9, 30)])),
    "timedelta": (dt.timedelta(seconds=2), pa.array([dt.timedelta(seconds=1), dt.timedelta(seconds=2)])),
}


@pytest.mark.parametrize("engine", ["reference", "auto"])
@pytest.mark.parametrize(("value", "column"), TYPED.values(), ids=TYPED)
def test_a_value_of_each_type_finds_its_equal(value: object, column: pa.Array, engine: str) -> None:
    events = pa.table({"t": [1, 2], "x": column})
    row = kleene.match_recognize("ORDER BY t MEASURES A.t AS t PATTERN (A) DEFINE A AS A.x = :value")
    regex = kleene.regex(pattern="a", order_by="t", predicates={"a": "x = :value"}, output={"t": "t"})
    sase = kleene.sase("EVENT A a WHERE a.x = :value RETURN a.t")
    for query, options in ((row, {}), (regex, {}), (sase, {"order_by": "t", "type_column": None})):
        found = query.match(events, engine=engine, params={"value": value}, **options)
        assert found.to_pylist() == [{"t": 2}]


REFUSED = {
    "a list": ([1], "which is not a single value", "IN (:x_1, :x_2)"),
    "a dict": ({}, "which is not a single value", "Decimal, date"),
    "bytes": (b"x", "which is not a single value", "int, float, str"),
    "a large integer": (1 << 63, "an integer has 64 bits", ""),
    "not a number": (float("nan"), "a number in a query is finite", ""),
    "an infinite decimal": (Decimal("Infinity"), "a number in a query is finite", ""),
    "a long decimal": (Decimal(10) ** 40, "a decimal has up to 38 digits", ""),
    "a time with a zone": (dt.time(9, tzinfo=dt.UTC), "a time of the day has no zone", ""),
    "half a character": ("\ud800", "surrogates not allowed", ""),
}


@pytest.mark.parametrize(("value", "says", "hint"), REFUSED.values(), ids=REFUSED)
def test_a_value_that_no_query_can_hold_is_refused_where_it_stands(value: object, says: str, hint: str) -> None:
    with pytest.raises(kleene.AnalysisError) as caught:
        kleene.sase("EVENT A a WHERE a.x = :x").match(EVENTS, order_by="t", params={"x": value})
    assert says in caught.value.message
    assert hint in str(caught.value)
    assert (caught.value.line, caught.value.column) == (1, 23)


def test_params_that_are_no_dict_are_refused() -> None:
    with pytest.raises(kleene.AnalysisError, match="params are a dict of values by name"):
        PAIRS.match(EVENTS, order_by="t", params=[1])


def test_a_query_with_open_parameters_can_be_made_shown_and_checked() -> None:
    query = kleene.match_recognize(
        """PARTITION BY id ORDER BY t
           MEASURES round(x, :places) AS r, percentile(x, :share) AS p, date_part(:part, d) AS n
           PATTERN (A) WITHIN :size DEFINE A AS :on AND x + :more > 3 AND s LIKE :like AND s RLIKE :pattern"""
    )
    assert ":places" in repr(query)
    assert kleene.match_recognize(repr(query).removeprefix("<kleene.Query\n").removesuffix(">")) == query


def test_equal_values_of_other_types_are_other_values() -> None:
    query = kleene.sase("EVENT A a RETURN :x AS x")
    found = [query.match(EVENTS, order_by="t", params={"x": x}).column("x")[0].as_py() for x in (1, 1.0, True)]
    assert [(value, type(value)) for value in found] == [(1, int), (1.0, float), (True, bool)]


def test_a_query_is_bound_once_to_the_same_values() -> None:
    definition = (kleene.sase("EVENT A a WHERE a.x > :x").definition,)
    assert bind(definition, {"x": 5})[0] is bind(definition, {"x": 5})[0]
    assert bind(definition, {"x": 5})[0] is not bind(definition, {"x": 5.0})[0]


WRITTEN = {
    "a number for a string": ("a.s = :v", "12", False),
    "a number for a number": ("a.x = :v", "7", True),
    "a text for a string": ("a.s = :v", "u", True),
    "a number for LIKE": ("a.s LIKE :v", "12", False),
    "a number with zeros in front for a string": ("a.s || '' = :v", "0012", False),
    "true for a condition": ("a.x = 7 AND :v", "true", True),
    "a date for a date": ("a.d = :v", "2024-01-31", True),
    "a date for a string": ("CAST(a.d AS string) = :v", "2024-01-31", True),
    "a moment": ("a.d < :v", "2024-01-31T10:00", True),
    "a duration": ("a.d + :v > TIMESTAMP '2024-01-31 00:00:00'", "5 minutes", True),
    "a clock": ("TIME '09:30:00' = :v", "09:30", True),
    "a decimal": ("a.x - 0.5 = :v", "6.5", True),
}


@pytest.mark.parametrize(("condition", "text", "holds"), WRITTEN.values(), ids=WRITTEN)
def test_a_value_of_the_command_line_has_the_type_of_its_use(condition: str, text: str, holds: bool) -> None:
    events = pa.table({"t": [1], "x": [7], "s": ["u"], "d": [dt.date(2024, 1, 31)]})
    query = kleene.sase(f"EVENT A a WHERE {condition}")
    for engine in ("reference", "auto"):
        found = query.match(events, order_by="t", type_column=None, params={"v": Written(text)}, engine=engine)
        assert found.num_rows == holds


def test_arguments_of_sql_are_values_inside_of_clauses_too() -> None:
    pytest.importorskip("duckdb")
    text = """SELECT *, :more AS more FROM events MATCH_RECOGNIZE (
        ORDER BY t MEASURES A.t AS a PATTERN (A?) DEFINE A AS A.x > :least AND s = :s) WHERE a > :more"""
    found = kleene.sql(text, tables={"events": EVENTS}, args={"least": 2, "s": "u", "more": 1})
    assert found.to_pylist() == [{"a": 3, "more": 1}]
    window = """SELECT t, last(x) OVER w AS top FROM events WINDOW w AS (
        ORDER BY t ROWS BETWEEN CURRENT ROW AND :n FOLLOWING PATTERN (A B+) DEFINE B AS B.x > :least)"""
    found = kleene.sql(window, tables={"events": EVENTS}, args={"n": 1, "least": 6})
    assert found.column("top").to_pylist() == [None, 7, None, None]
    for args, says in (
        ({"s": "u", "more": 1}, r"line 2, column \d+: the parameter ':least' has no value"),
        ([2], "args gives values without names"),
        (None, "the parameter ':least' has no value"),
    ):
        with pytest.raises(kleene.AnalysisError, match=says):
            kleene.sql(text, tables={"events": EVENTS}, args=args)
    with pytest.raises(kleene.QuerySyntaxError, match="written :name"):
        kleene.sql(text.replace(":least", "?"), tables={"events": EVENTS}, args={"s": "u", "more": 1})


def test_return_of_a_variable_gives_the_event() -> None:
    for engine in ("reference", "auto"):
        found = kleene.sase("EVENT SEQ(A a, B b) WITHIN 2 RETURN a, b.s AS s").match(
            EVENTS, order_by="t", engine=engine
        )
        assert found.to_pylist()[0] == {"a": {"type": "A", "t": 1, "x": 1, "s": "u"}, "s": "v"}


@pytest.mark.parametrize("returned", ["*", "a.*", "a, b.*", "a AS first, b.*"])
def test_return_of_whole_events_reads_back_as_an_equal_query(returned: str) -> None:
    query = kleene.sase(f"EVENT SEQ(A a, B+ b[]) RETURN {returned}")
    assert kleene.sase(repr(query).removeprefix("<kleene.Query\n").removesuffix(">")) == query
    assert query.match(EVENTS, order_by="t").num_rows == 4


def test_a_column_that_two_stars_give_is_an_error() -> None:
    with pytest.raises(kleene.AnalysisError, match="two values are called"):
        kleene.sase("EVENT SEQ(A a, B b) RETURN b.*, *").match(EVENTS, order_by="t")

"""Options: wrong values are errors where they are made, and options that do not fit are errors of every call alike."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kleene
from calls import calls_of, error_of
from kleene import EngineOptions, SparkOptions, StreamOptions

EVENTS = pa.table({"type": ["A", "A", "B", "C"], "t": [1, 2, 3, 9], "id": [7, 8, 7, 8]})
PAIR = kleene.sase("EVENT SEQ(A a, B b) WHERE [id] RETURN a.t AS a, b.t AS b")
ROWS = kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A B) DEFINE B AS B.t > A.t")
OPEN = kleene.sase("EVENT SEQ(A a, A b) WITHIN T RETURN a.t AS a, b.t AS b")


# --- values ----------------------------------------------------------------------------------------------------------

WRONG = [
    (lambda: EngineOptions("compild"), "engine cannot be 'compild'", "Did you mean 'compiled'?"),
    (lambda: EngineOptions(None), "engine cannot be None", "It can be: auto, compiled, tables, generated, reference."),
    (lambda: EngineOptions(algorithm="merged"), "algorithm cannot be 'merged'", "Did you mean 'merge'?"),
    (lambda: EngineOptions(run_limit=0), "run_limit is a whole number from 1 up, but 0 was given", None),
    (lambda: EngineOptions(run_limit=True), "run_limit is a whole number from 1 up, but True was given", None),
    (lambda: EngineOptions(memory_limit="2 XB"), "memory_limit is a number of bytes from 1,000,000 up", "'2 GB'"),
    (lambda: EngineOptions(match_limit=2.5), "match_limit is a whole number from 1 up, but 2.5 was given", None),
    (lambda: EngineOptions(time_limit=-1), "time_limit is a number of seconds above 0, but -1 was given", None),
    (lambda: EngineOptions(time_limit=float("inf")), "time_limit is a number of seconds above 0", None),
    (lambda: EngineOptions(plan={"scam": "ais"}), "there is no hint 'scam'", "Did you mean 'scan'?"),
    (lambda: EngineOptions(plan={"scan": "aas"}), "the hint 'scan' cannot be 'aas'", "Did you mean 'ais'?"),
    (lambda: EngineOptions(plan="ais"), "plan is a dict of hints, but 'ais' was given", "Hints: operators, "),
    (lambda: EngineOptions(plan={"operators": "nfa", "scan": "ais"}), "'scan' is for sequence operators", "nfa"),
    (lambda: EngineOptions(statistics={"event": {}}), "statistics has no 'event'", "events, distinct"),
    (lambda: EngineOptions(statistics={"events": {"A": -1}}), "is -1, but a count is a number from 0 up", None),
    (lambda: SparkOptions("range"), "layout cannot be 'range'", "Did you mean 'ranges'?"),
    (lambda: SparkOptions(4), "layout cannot be 4", "It can be: auto, shuffled, presorted, ranges, in place, files."),
    (lambda: SparkOptions("ranges", ranges=0), "ranges is a number from 1 to 4,096, but 0 was given", None),
    (lambda: SparkOptions("ranges", ranges="off"), "ranges is a number from 1 to 4,096, but 'off' was given", None),
    (lambda: SparkOptions(range_size="x"), "range_size is a number of events from 1 up, but 'x' was given", None),
    (lambda: SparkOptions(pushdown="no"), "pushdown is True or False, but 'no' was given", None),
    (lambda: SparkOptions(ranges=4), "ranges is for layout='ranges', but layout='auto' was given", "ranges=4"),
    (lambda: SparkOptions("presorted", ranges=4), "but layout='presorted' was given", "leave ranges out"),
    (lambda: SparkOptions("in place", range_size=5), "range_size is for ranges that are cut", "Leave one of them out."),
    (lambda: SparkOptions("shuffled", range_size=5), "range_size is for ranges that are cut", "Leave one of them out."),
    (lambda: SparkOptions("ranges", ranges=4, range_size=5), "cannot both be given", "Give only one of them."),
    (lambda: StreamOptions(order="arival"), "order is 'time' or 'arrival', but 'arival' was given", "'arrival'?"),
    (lambda: StreamOptions(unbounded_state=True), "unbounded_state is 'refuse' or 'allow', but True was given", None),
    (lambda: StreamOptions(buckets=0), "buckets is a number from 1 up, but 0 was given", None),
    (lambda: StreamOptions(watermark="soon"), "'soon' is not a length of time", 'watermark="10 minutes"'),
    (lambda: StreamOptions(watermark="1 s", max_ahead=5), "5 is not a length of time", 'max_ahead="1 hour"'),
    (lambda: StreamOptions(max_ahead="1 hour"), "max_ahead was given without watermark", 'max_ahead="1 hour"'),
]


@pytest.mark.parametrize(("make", "message", "hint"), WRONG, ids=[message for _, message, _ in WRONG])
def test_a_wrong_value_is_an_error_where_it_is_made(make: Callable[[], Any], message: str, hint: str | None) -> None:
    error = error_of(make)
    assert isinstance(error, kleene.UnsupportedError)
    assert message in error.message
    assert hint is None or hint in (error.hint or "")


RIGHT = [
    EngineOptions("compiled", run_limit=np.int64(5), memory_limit="2 GB", plan={"scan": "ais"}),
    EngineOptions(statistics={"events": {"A": 3}, "distinct": {"id": 2}}, time_limit=1),
    SparkOptions("ranges", ranges=4, pushdown=False),
    SparkOptions("ranges", range_size=1_000),
    SparkOptions(range_size=1_000),
    StreamOptions(order="arrival", max_ahead="1 hour"),
    StreamOptions(watermark="1 minute 30 seconds", buckets=4),
]


@pytest.mark.parametrize("options", RIGHT, ids=repr)
def test_options_are_values(options: Any) -> None:
    assert pickle.loads(pickle.dumps(options)) == options
    with pytest.raises(AttributeError):
        setattr(options, fields(options)[0].name, None)


# --- calls -----------------------------------------------------------------------------------------------------------


CALLS = tuple(calls_of(PAIR))
MISFITS = [
    ({"spark": SparkOptions()}, "spark is for Spark DataFrames, but the input is in this process", "Leave spark out."),
    ({"stream": StreamOptions()}, "stream is for streams, but the input is a table", "Leave stream out."),
    ({"spark": "ranges"}, "spark is a kleene.SparkOptions, but 'ranges' was given", "kleene.SparkOptions('ranges', "),
    ({"stream": {"order": "time"}}, "stream is a kleene.StreamOptions, but ", "kleene.StreamOptions(watermark="),
    ({"engine": "compild"}, "engine cannot be 'compild'", "Did you mean 'compiled'?"),
    ({"engine": {"name": "auto"}}, "engine is the name of an engine or a kleene.EngineOptions, but ", "engine='compil"),
    ({"params": {"T": 5}}, "the query has no parameter 'T'", "Its parameters: none."),
    ({"params": 5}, "params are a dict of values by name, but 5 was given", "{'T': '12 hours'}"),
    ({"order_by": 5}, "order_by takes the name of a column or a list of names", "order_by='ts'"),
    ({"order_by": "x"}, "the input has no column 'x' to order by", "Columns: type, t, id."),
    ({"tie_break": {"t"}}, "tie_break takes the name of a column or a list of names", "tie_break="),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("options", "message", "hint"), MISFITS, ids=[message for _, message, _ in MISFITS])
def test_every_call_refuses_what_does_not_fit_a_table(call: str, options: dict, message: str, hint: str) -> None:
    error = error_of(lambda: calls_of(PAIR)[call](EVENTS, **{"order_by": "t", **options}))
    assert error is not None
    assert message in error.message
    assert hint in (error.hint or "")


@pytest.mark.parametrize("call", ["match", "match_batches", "explain", "progress", "program", "program, explained"])
def test_every_call_knows_the_formats(call: str) -> None:
    error = error_of(lambda: calls_of(PAIR)[call](EVENTS, order_by="t", format="non_overlaping"))
    assert error is not None
    assert str(error) == (
        "format cannot be 'non_overlaping'\nIt can be: all, non_overlapping. Did you mean 'non_overlapping'?"
    )


@pytest.mark.parametrize("call", ["match", "explain"])
def test_match_order_is_for_spark(call: str) -> None:
    error = error_of(lambda: calls_of(PAIR)[call](EVENTS, order_by="t", match_order=True))
    assert str(error) == (
        "match_order is for Spark DataFrames, but the input is in this process, where rows are in order\n"
        "Leave match_order out."
    )


@pytest.mark.parametrize("call", ["match", "match_batches", "explain", "progress"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order_by": "t"}, "this query sets its own order"),
        ({"format": "non_overlapping"}, "format is for SASE queries"),
        ({"engine": EngineOptions(algorithm="basic")}, "algorithm is for SASE queries"),
        ({"engine": EngineOptions(plan={"scan": "ais"})}, "plan is for SASE queries"),
        ({"engine": EngineOptions(statistics={"events": {"A": 1}})}, "statistics is for SASE queries"),
    ],
)
def test_options_of_sase_queries_on_row_patterns(call: str, options: dict, message: str) -> None:
    error = error_of(lambda: calls_of(ROWS)[call](EVENTS, **options))
    assert error is not None
    assert message in error.message


def test_options_that_were_not_given_are_no_error() -> None:
    unsaid = {"tie_break": None, "params": None, "engine": None, "spark": None, "stream": None}
    for name, call in calls_of(PAIR).items():
        assert error_of(lambda call=call: call(EVENTS, order_by="t", **unsaid)) is None, name


SAME = [
    {},
    {"order_by": "t"},
    {"order_by": "x"},
    {"order_by": "t", "tie_break": "y"},
    {"order_by": "t", "type_column": "kind"},
    {"order_by": "t", "type_column": 5},
    {"order_by": "t", "params": {"T": 5}},
    {"order_by": "t", "params": {"U": 5}},
    {"order_by": "t", "params": {"T": "x"}},
    {"order_by": "t", "params": {"T": "5 seconds"}},
    {"order_by": "t", "format": "none"},
    {"order_by": "t", "format": "non_overlapping", "match_id": True},
    {"order_by": "t", "match_id": "yes"},
    {"order_by": "t", "match_order": True},
    {"order_by": "t", "engine": "reference"},
    {"order_by": "t", "engine": EngineOptions("generated", algorithm="backtrack")},
    {"order_by": "t", "engine": EngineOptions("generated", plan={"scan": "pais"})},
    {"order_by": "t", "engine": EngineOptions("reference", plan={"scan": "ais"})},
    {"order_by": "t", "spark": SparkOptions()},
    {"order_by": "t", "stream": StreamOptions()},
    {"match_id": True},
    {"match_order": True},
    {"engine": EngineOptions(statistics={"distinct": {"id": 3}})},
]
CALLABLE = kleene.regex(
    pattern="a b", order_by="t", predicates={"a": "odd(t)", "b": "t > 0"}, output={"n": "Count()"},
    functions={"odd": lambda t: t % 2 == 1},
)  # fmt: skip
QUERIES = {"sase": PAIR, "parameter": OPEN, "rows": ROWS, "callable": CALLABLE}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("options", SAME, ids=repr)
def test_explain_refuses_what_match_refuses(name: str, options: dict) -> None:
    query = QUERIES[name]
    expected = error_of(lambda: query.match(EVENTS, **options))
    found = error_of(lambda: query.explain(EVENTS, **options))
    assert (type(found), str(found)) == (type(expected), str(expected))
    if set(options) <= {"order_by", "tie_break", "type_column", "params", "engine", "spark", "stream"}:
        expected = error_of(lambda: query.compressed(EVENTS, **options))
        found = error_of(lambda: query.explain(EVENTS, **options, compressed=True))
        assert (type(found), str(found)) == (type(expected), str(expected))


def test_explain_explains_the_options() -> None:
    said = PAIR.explain(EVENTS, order_by="t", engine=EngineOptions("generated", plan={"operators": "nfa"}))
    assert "NFA" in said
    assert "NFA" not in PAIR.explain(EVENTS, order_by="t")
    assert "NFA" in PAIR.explain(EVENTS, order_by="t", compressed=True)


# --- parameters ------------------------------------------------------------------------------------------------------


def test_each_call_binds_a_parameter_by_its_value() -> None:
    assert repr(OPEN) == "<kleene.Query\nPATTERN SEQ(A a, A b)\nWITHIN T\nRETURN a.t AS a, b.t AS b>"
    for name, call in calls_of(OPEN).items():
        missing = error_of(lambda call=call: call(EVENTS, order_by="t"))
        assert missing is not None, name
        assert missing.message == "the window 'T' is a parameter without a value"
        assert missing.line == 1
        call(EVENTS, order_by="t", params={"T": 5})
    found = [OPEN.match(EVENTS, order_by="t", params={"T": size}).num_rows for size in (1, 2, "2", "2 events")]
    assert found == [0, 1, 1, 1]
    assert "WITHIN 2 events" in OPEN.explain(params={"T": "2 events"})


def test_a_parameter_of_another_name_is_guessed() -> None:
    query = kleene.sase("EVENT A a WITHIN window_size")
    error = error_of(lambda: query.match(EVENTS, order_by="t", params={"windowsize": 5}))
    assert str(error) == (
        "the query has no parameter 'windowsize'\nIts parameters: window_size. Did you mean 'window_size'?"
    )


def test_the_queries_of_a_program_share_parameters() -> None:
    program = kleene.program(
        "EVENT SEQ(A x, A y) WITHIN T RETURN x.t AS n INTO P; EVENT SEQ(A x, C y) WITHIN U RETURN x.t AS n"
    )
    found = program.match(EVENTS, order_by="t", params={"T": 2, "U": 10})
    assert {name: table.num_rows for name, table in found.items()} == {"P": 1, "query_2": 2}
    error = error_of(lambda: program.match(EVENTS, order_by="t", params={"T": 2}))
    assert error is not None
    assert error.message == "the window 'U' is a parameter without a value"
    assert "WITHIN 10" in program.explain(params={"T": 2, "U": 10})


# --- the kind of table -----------------------------------------------------------------------------------------------

KINDS = {
    "arrow": (EVENTS, pa.Table),
    "batch": (EVENTS.to_batches()[0], pa.Table),
    "pandas": (EVENTS.to_pandas(), pd.DataFrame),
    "polars": (pl.from_arrow(EVENTS), pl.DataFrame),
}


def by_type(convert: Callable[[pa.Table], Any]) -> dict[str, Any]:
    return {name: convert(EVENTS.filter(pa.compute.field("type") == name)) for name in ("A", "B")}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_kind_of_table_comes_out(kind: str) -> None:
    events, expected = KINDS[kind]
    assert type(PAIR.match(events, order_by="t")) is expected
    assert type(kleene.Program((PAIR,)).match(events, order_by="t")["query_1"]) is expected
    assert isinstance(PAIR.match_batches(events, order_by="t"), pa.RecordBatchReader)
    progress = PAIR.progress(events, order_by="t")
    assert type(progress.feed(events)) is expected
    assert type(progress.finish()) is expected


def test_a_dict_of_one_kind_gives_that_kind() -> None:
    assert isinstance(PAIR.match(by_type(pa.Table.to_pandas), order_by="t"), pd.DataFrame)
    assert isinstance(PAIR.match(by_type(pl.from_arrow), order_by="t"), pl.DataFrame)
    mixed = by_type(pa.Table.to_pandas) | {"B": EVENTS}
    assert isinstance(PAIR.match(mixed, order_by="t"), pa.Table)


def test_whole_numbers_in_pandas_stay_whole() -> None:
    events = pd.DataFrame({"type": ["A", "B"], "t": [1, 2], "x": pd.array([None, 3], "Int64")})
    query = kleene.sase("EVENT SEQ(A a, B b) RETURN a.x AS x, b.x AS y")
    found = query.match(events, order_by="t")
    assert found.dtypes.astype(str).to_dict() == {"x": "Int64", "y": "int64"}
    assert found.equals(query.match(pa.Table.from_pandas(events), order_by="t", as_="pandas"))

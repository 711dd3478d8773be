"""Whatever holds events can be matched, and columns that a query does not read never matter."""

import io

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import kleene

TABLE = pa.table({"type": ["A", "B", "A"], "t": [1, 2, 3], "x": [5, 6, 7]})
PAIR = kleene.sase("PATTERN SEQ(A a, B b) RETURN a.x AS a, b.x AS b")
FOUND = [{"a": 5, "b": 6}]


def pandas_table(**changes):
    return TABLE.to_pandas().assign(**changes)


def odd(type_, values):
    return TABLE.append_column("odd", pa.array(values, type_))


SOURCES = {
    "table": TABLE,
    "batch": TABLE.to_batches()[0],
    "reader": lambda: TABLE.to_reader(),
    "dataset": pa.dataset.dataset(TABLE),
    "scanner": pa.dataset.dataset(TABLE).scanner(),
    "rows": TABLE.to_pylist(),
    "pandas": TABLE.to_pandas(),
    "polars": pl.from_arrow(TABLE),
    "lazy": pl.from_arrow(TABLE).lazy(),
    "duckdb_relation": lambda: duckdb.from_arrow(TABLE),
    "duckdb_result": lambda: duckdb.connect().execute("SELECT * FROM (VALUES ('A', 1, 5), ('B', 2, 6)) v(type, t, x)"),
    "categorical": pl.from_arrow(TABLE).with_columns(pl.col("type").cast(pl.Categorical)),
    "enum": pl.from_arrow(TABLE).with_columns(pl.col("type").cast(pl.Enum(["A", "B"]))),
    "pandas_category": pandas_table(type=pd.Categorical(["A", "B", "A"])),
    "string_view": TABLE.set_column(0, "type", TABLE["type"].cast(pa.string_view())),
    "run_ends": TABLE.set_column(0, "type", pa.RunEndEncodedArray.from_arrays([1, 2, 3], ["A", "B", "A"])),
    "large_string": TABLE.set_column(0, "type", TABLE["type"].cast(pa.large_string())),
}


@pytest.mark.parametrize("events", SOURCES.values(), ids=SOURCES.keys())
def test_every_kind_of_input_is_matched(events):
    found = PAIR.match(events() if callable(events) else events, order_by="t", as_="arrow")
    assert found.to_pylist() == FOUND


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_path_is_read(ending, tmp_path):
    path = tmp_path / f"events.{ending}"
    if ending == "parquet":
        pa.parquet.write_table(TABLE, path)
    elif ending == "csv":
        TABLE.to_pandas().to_csv(path, index=False)
    else:
        TABLE.to_pandas().to_json(path, orient="records", lines=True)
    assert PAIR.match(path, order_by="t").to_pylist() == FOUND
    assert PAIR.match(str(path), order_by="t").to_pylist() == FOUND


def test_a_dataset_is_read_only_where_the_query_reads(tmp_path):
    pa.parquet.write_table(TABLE.append_column("broken", pa.array([b"\xff"] * 3)), tmp_path / "events.parquet")
    dataset = pa.dataset.dataset(tmp_path / "events.parquet")
    assert PAIR.match(dataset, order_by="t").to_pylist() == FOUND


def test_an_index_of_pandas_is_used_when_it_is_asked_for_by_name():
    frame = TABLE.to_pandas().set_index("t")
    assert PAIR.match(frame, order_by="t").to_dict("records") == FOUND
    times = pd.DatetimeIndex(["2024-01-01", "2024-01-02", "2024-01-03"], name="when")
    assert PAIR.match(TABLE.to_pandas().set_index(times), order_by="when").to_dict("records") == FOUND


def test_an_index_without_a_name_is_told_of():
    frame = TABLE.to_pandas().drop(columns="t").set_index(pd.DatetimeIndex(["2024-01-01"] * 3))
    with pytest.raises(kleene.SchemaError, match=r"call reset_index\(\) first"):
        PAIR.match(frame, order_by="t")


UNREAD = {
    "a_name_twice": pa.table([*TABLE.columns, TABLE["x"], TABLE["x"]], [*TABLE.column_names, "y", "y"]),
    "half_floats": odd(pa.float16(), np.array([1, 2, 3], np.float16)),
    "intervals": odd(pa.month_day_nano_interval(), [None, None, None]),
    "unions": TABLE.append_column(
        "odd", pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, 3])])
    ),
    "text_that_is_none": TABLE.append_column(
        "odd",
        pa.Array.from_buffers(
            pa.string(), 3, [None, pa.array([0, 1, 1, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
        ),
    ),
    "pandas_objects": pandas_table(odd=[object(), 1, "x"]),
    "pandas_name_twice": pd.DataFrame([["A", 1, 5, 0, 0], ["B", 2, 6, 0, 0]], columns=["type", "t", "x", "y", "y"]),
    "pandas_number_as_name": pandas_table(x=[5, 6, 7]).rename(columns={"y": 0}).assign(**{"0": 1}),
    "polars_objects": pl.from_arrow(TABLE).with_columns(pl.Series("odd", [object(), 1, 2], dtype=pl.Object)),
}


@pytest.mark.parametrize("events", UNREAD.values(), ids=UNREAD.keys())
def test_a_column_that_is_not_read_does_not_matter(events):
    found = PAIR.match(events, order_by="t", as_="arrow")
    assert found.to_pylist() == FOUND


@pytest.mark.parametrize(
    ("events", "says"),
    [
        (UNREAD["a_name_twice"], "two columns 'y'"),
        (UNREAD["pandas_objects"], "the column 'odd'"),
        (UNREAD["text_that_is_none"], "the column 'odd'"),
    ],
)
def test_a_column_that_is_read_and_cannot_be_is_named(events, says):
    with pytest.raises(kleene.SchemaError, match=says):
        kleene.sase("PATTERN SEQ(A a, B b)").match(events, order_by="t")


def test_columns_of_other_types_matter_only_where_they_are_read():
    inputs = {
        "A": pa.table({"t": [1], "x": [5], "note": [1]}),
        "B": pa.table({"t": [2], "x": [6], "note": ["text"]}),
    }
    assert PAIR.match(inputs, order_by="t").to_pylist() == FOUND
    with pytest.raises(kleene.SchemaError, match="'note' is int64 in input 'A' and string in input 'B'"):
        kleene.sase("PATTERN SEQ(A a, B b)").match(inputs, order_by="t")


KINDS = {"arrow": pa.Table, "pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("events", [TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE)], ids=KINDS)
def test_the_result_is_of_the_kind_that_is_asked_for(events, kind):
    assert type(PAIR.match(events, order_by="t", as_=kind)) is KINDS[kind]
    progress = PAIR.progress(events, order_by="t", as_=kind)
    assert type(progress.feed(events)) is type(progress.finish()) is KINDS[kind]
    program = kleene.program("EVENT A a")
    assert type(program.match(events, order_by="t", as_=kind)["query_1"]) is KINDS[kind]


def test_lazy_polars_comes_back_as_polars():
    assert type(PAIR.match(pl.from_arrow(TABLE).lazy(), order_by="t")) is pl.DataFrame


def test_an_unknown_kind_is_refused():
    with pytest.raises(kleene.KleeneError, match="as_"):
        PAIR.match(TABLE, order_by="t", as_="excel")


@pytest.mark.parametrize("events", [5, None, object(), io.BytesIO(b"x"), [1, 2], "no/such/file.parquet"])
def test_what_holds_no_events_is_refused_in_a_sentence(events):
    with pytest.raises(kleene.SchemaError):
        PAIR.match(events, order_by="t")


SEVERITY = pd.Categorical(["low", "high", "low"], categories=["low", "high"], ordered=True)


@pytest.mark.parametrize(
    "text",
    [
        "EVENT A a WHERE a.x > 'low' RETURN a.t AS t",
        "EVENT A a WHERE a.x BETWEEN 'a' AND 'b' RETURN a.t AS t",
        "EVENT A+ a[] HAVING max(a[].x) = 'low' RETURN count(a[]) AS n",
    ],
)
def test_categories_with_an_order_of_their_own_are_told_of_where_they_are_compared(text):
    levels = pl.Series("x", ["low", "high", "low"], dtype=pl.Enum(["low", "high"]))
    for events in (pandas_table(x=SEVERITY), pl.from_arrow(TABLE).with_columns(levels)):
        with pytest.warns(kleene.KleeneWarning, match="'x' is of categories that have an order of their own"):
            kleene.sase(text).match(events, order_by="t")
    kleene.sase("EVENT A a WHERE a.x = 'low' RETURN a.t AS t").match(pandas_table(x=SEVERITY), order_by="t")


def test_whole_numbers_of_pandas_stay_whole_beside_nulls():
    large = [2**60 + 1, 2**60 + 3, None]
    events = pandas_table(x=pd.array(large, dtype="Int64"))
    found = kleene.sase("EVENT ANY(A, B) a RETURN a.x AS x, a.t AS t").match(events, order_by="t")
    assert (str(found.x.dtype), str(found.t.dtype)) == ("Int64", "int64")
    assert found.x.tolist()[:2] == large[:2]


def test_a_text_that_means_a_missing_value_is_told_of(tmp_path):
    (tmp_path / "temps.csv").write_text("type,t,x\nA,1,9\nB,2,NA\n")
    with pytest.warns(kleene.KleeneWarning, match="'x' holds texts, since the file has 'NA' in it"):
        PAIR.match(tmp_path / "temps.csv", order_by="t")


def test_an_instant_may_be_written_with_its_zone():
    t = pa.array([1_711_796_400_000_000], pa.timestamp("us", "Europe/Berlin"))  # noon of 2024-03-30 in Berlin
    table = pa.table({"type": ["A"], "t": t})
    for text in ("2024-03-30 12:00:00+01:00", "2024-03-30T11:00:00Z", "2024-03-30 11:00:00"):
        assert kleene.sase(f"EVENT A a WHERE a.t = TIMESTAMP '{text}'").match(table, order_by="t").num_rows == 1


def test_an_order_of_strings_is_told_how_to_mend():
    with pytest.raises(kleene.SchemaError, match=r"pandas\.to_datetime"):
        PAIR.match(TABLE.set_column(1, "t", pa.array(["2024-01-01"] * 3)), order_by="t")

"""Parts of nested columns on Spark, and columns that no query reads; the same answers as in process."""

import warnings

import pyarrow as pa
import pytest

import kleene

PAYLOAD = pa.struct([("user", pa.struct([("id", pa.int64()), ("Name", pa.string())])), ("ts", pa.int64())])
EVENTS = pa.table(
    {
        "type": ["A", "B", "B", "B", "A", "B"],
        "payload": pa.array([{"user": {"id": n % 2, "Name": f"n{n}"}, "ts": n} for n in range(6)], PAYLOAD),
        "tags": pa.array([["x", "y"], [], None, ["y"], ["z"], ["x"]], pa.list_(pa.string())),
        "scores": pa.array([[("k", n)] if n % 3 else [] for n in range(6)], pa.map_(pa.string(), pa.int64())),
    }
)
SASE = [
    "PATTERN SEQ(A a, B b) WHERE [payload.user.id] RETURN a.payload.user.`Name`, b.tags[0] AS tag, b.scores['k'] AS k",
    "PATTERN SEQ(A a, B+ b[]) WHERE b[i].payload.ts > b[i-1].payload.ts AND b[1].scores['k'] > 0 "
    "RETURN collect(b[].payload.ts) AS ts",
    "PATTERN SEQ(A a, B b) WHERE [payload.user.id] AND b.tags[7] IS NULL AND b.payload.user.id = 0",
]
ROWS = [
    "PARTITION BY payload.user.id ORDER BY payload.ts MEASURES LAST(UP.payload.ts) AS x, FIRST(tags[0]) AS tag "
    "PATTERN (S UP+) DEFINE UP AS UP.payload.ts > PREV(UP.payload.ts) AND UP.scores['none'] IS NULL",
    "ORDER BY payload.ts MEASURES UPPER(A.tags[0]) AS tag, reverse(payload.user.name) AS name PATTERN (A)",
]


def as_set(table):
    return sorted(map(str, table.to_pylist()))


@pytest.fixture(scope="module")
def frame(classic_spark):
    return classic_spark.createDataFrame(EVENTS).repartition(3)


@pytest.mark.parametrize("text", SASE)
def test_sase_reads_parts(text, frame):
    query = kleene.sase(text)
    expected = query.match(EVENTS, order_by="payload.ts")
    found = query.match(frame, order_by="payload.ts").toArrow()
    assert expected.num_rows
    assert found.column_names == expected.column_names
    assert as_set(found) == as_set(expected)


def test_row_patterns_read_parts(frame):
    query = kleene.match_recognize(ROWS[0])
    assert as_set(query.match(frame).toArrow()) == as_set(query.match(EVENTS))


def test_parts_stand_inside_of_functions_of_spark(frame):
    found = kleene.match_recognize(ROWS[1]).match(frame).toArrow().to_pylist()
    assert found[0] == {"tag": "X", "name": "0n"}
    assert {row["tag"] for row in found} == {"X", "Y", "Z", None}


def test_sql_reads_parts(frame, classic_spark):
    """A worked example of the standard's extension: a field of a struct behind a variable."""
    prices = [20, 22, 25, 27, 24, 22, 25]
    table = pa.table({"t": range(1, 8), "r": pa.array([{"p": price} for price in prices])})
    classic_spark.createDataFrame(table).createOrReplaceTempView("nested_prices")
    found = kleene.sql(
        classic_spark,
        """SELECT x FROM nested_prices MATCH_RECOGNIZE (ORDER BY t MEASURES LAST(UP.r.p) AS x
           PATTERN (S UP+) DEFINE UP AS UP.r.p > PREV(UP.r.p))""",
    )
    assert sorted(row.x for row in found.collect()) == [25, 27]
    classic_spark.catalog.dropTempView("nested_prices")


def test_inputs_by_type_have_parts(frame):
    inputs = {name: frame.where(frame.type == name).drop("type") for name in "AB"}
    query = kleene.sase(SASE[0])
    assert as_set(query.match(inputs, order_by="payload.ts").toArrow()) == as_set(
        query.match(EVENTS, order_by="payload.ts")
    )


def test_a_path_that_leads_nowhere_is_an_error(frame):
    with pytest.raises(kleene.SchemaError, match="'payload' has no field 'usr'"):
        kleene.sase("EVENT A a WHERE a.payload.usr = 1").match(frame, order_by="payload.ts")


def test_columns_that_are_not_read_do_not_matter(frame, classic_spark):
    query = kleene.sase("PATTERN SEQ(A a, B b) WHERE [payload.user.id] RETURN b.payload.ts AS ts")
    odd = frame.selectExpr("*", "1 AS twice", "2 AS twice", "3 AS TWICE", "parse_json('1') AS variant")
    expected = as_set(query.match(EVENTS, order_by="payload.ts"))
    assert as_set(query.match(odd, order_by="payload.ts").toArrow()) == expected
    with pytest.raises(kleene.SchemaError, match="twice"):
        kleene.sase("PATTERN SEQ(A a, B b)").match(odd, order_by="payload.ts")


@pytest.mark.filterwarnings("ignore")
def test_pandas_on_spark_comes_back_as_such(frame):
    if frame.sparkSession.version < "4.1":
        pytest.skip("pandas on Spark works in ANSI mode since Spark 4.1")
    query = kleene.sase("PATTERN SEQ(A a, B b) WHERE a.x = b.x RETURN b.t AS t")
    flat = frame.selectExpr("type", "payload.ts AS t", "payload.user.id AS x")
    found = query.match(flat.pandas_api(), order_by="t")
    assert type(found).__module__ == "pyspark.pandas.frame"
    assert sorted(found.to_pandas()["t"]) == sorted(
        row["t"] for row in query.match(flat.toArrow(), order_by="t").to_pylist()
    )
    assert "on Spark" in query.explain(flat.pandas_api(), order_by="t")


def test_another_kind_is_for_events_in_process(frame):
    with pytest.raises(kleene.UnsupportedError, match="as_ is for events in this process"):
        kleene.sase("EVENT A a").match(frame, order_by="payload.ts", as_="pandas")


def test_times_that_are_written_out_are_told_of_in_a_session_of_another_zone(classic_spark):
    classic_spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = classic_spark.sql("SELECT 'A' AS type, TIMESTAMP '2024-01-31 08:00:00' AS ts")
        query = kleene.sase("EVENT A a WHERE a.ts >= TIMESTAMP '2024-01-31 10:00:00' RETURN a.type AS a")
        with pytest.warns(kleene.KleeneWarning, match="is a time in UTC, but the session's zone is America/New_York"):
            assert query.match(frame, order_by="ts").count() == 1
        zoned = kleene.sase("EVENT A a WHERE a.ts >= TIMESTAMP '2024-01-31 10:00:00-05:00' RETURN a.type AS a")
        with warnings.catch_warnings():
            warnings.simplefilter("error", kleene.KleeneWarning)
            assert zoned.match(frame, order_by="ts").count() == 0
    finally:
        classic_spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_declared_schema_may_have_columns_that_nobody_reads(classic_spark):
    if classic_spark.version < "4.1":
        pytest.skip("table functions on Arrow came with PySpark 4.1")
    odd = classic_spark.sql("SELECT 'A' AS type, 1L AS t, parse_json('1') AS v, INTERVAL '2' MONTH AS i")
    query = kleene.sase("EVENT A a RETURN a.t AS t")
    assert query.match(odd, order_by="t", schema=odd.schema).count() == 1
    with pytest.raises(kleene.SchemaError, match="'v' of type variant"):
        kleene.sase("EVENT A a").match(odd, order_by="t", schema=odd.schema)

"""What is particular to Spark: laziness, schemas, zones, errors, and order."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql import types as st

import kleene
from kleene.spark.session import kleene_error


@pytest.fixture
def spark(either_spark):
    return either_spark


SHOPLIFTING = kleene.sase("EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [id] WITHIN 10")
EVENTS = pa.table({"type": ["Shelf", "Exit", "Shelf"], "t": [1, 5, 6], "id": ["x", "x", "y"]})


def test_schema_is_known_before_anything_runs(spark) -> None:
    broken = spark.createDataFrame(EVENTS).selectExpr("type", "t", "raise_error('this ran') AS id")
    result = SHOPLIFTING.match(broken.selectExpr("type", "t", "CAST(id AS STRING) AS id"), order_by="t")
    event = st.StructType(
        [
            st.StructField("type", st.StringType()),
            st.StructField("t", st.LongType()),
            st.StructField("id", st.StringType()),
        ]
    )
    assert result.schema == st.StructType(
        [
            st.StructField("id", st.StringType()),
            st.StructField("a", event),
            st.StructField("b", event),
            st.StructField("match_start", st.LongType()),
            st.StructField("match_end", st.LongType()),
        ]
    )


def test_result_composes_with_other_dataframe_operations(spark) -> None:
    result = SHOPLIFTING.match(spark.createDataFrame(EVENTS), order_by="t")
    assert result.where("b.t > 4").selectExpr("id AS tag").collect()[0]["tag"] == "x"


def test_types_of_columns_survive_to_the_output(spark) -> None:
    table = spark.sql(
        "SELECT CAST(1 AS TINYINT) AS t, CAST(2 AS SMALLINT) AS s, CAST(3 AS INT) AS i, CAST(1.5 AS FLOAT) AS f, "
        "CAST(1.25 AS DECIMAL(5, 2)) AS d, DATE '2024-01-01' AS day, TIMESTAMP '2024-01-01 10:00:00' AS ts, "
        "TIMESTAMP_NTZ '2024-01-01 10:00:00' AS ntz, INTERVAL '5' MINUTE AS gap, true AS b, X'01' AS bytes, "
        "array(1, 2) AS list, map('k', 1) AS pairs, named_struct('x', 1) AS nested"
    )
    found = kleene.sase("EVENT A a").match(table, order_by="t")
    assert [field.dataType for field in found.schema["a"].dataType.fields] == [
        *(field.dataType for field in table.schema.fields)
    ]
    row = found.collect()[0]["a"].asDict(recursive=True)
    assert row == table.collect()[0].asDict(recursive=True)


def test_unsupported_type_is_named_before_anything_runs(spark) -> None:
    table = spark.sql("SELECT 1 AS t, parse_json('{}') AS v")
    with pytest.raises(kleene.SchemaError, match="column 'v' of type variant cannot be handed"):
        kleene.sase("EVENT A a").match(table, order_by="t")


def test_literal_timestamps_are_utc_whatever_the_session_zone(spark) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        table = spark.sql(
            "SELECT * FROM VALUES (TIMESTAMP '2024-07-01 10:00:00'), (TIMESTAMP '2024-07-01 12:00:00') AS v(ts)"
        )
        query = kleene.sase("EVENT A a WHERE ts > TIMESTAMP '2024-07-01 15:00:00' RETURN a.ts AS ts")
        found = query.match(table, order_by="ts")
        assert [row["ts"] for row in found.selectExpr("CAST(ts AS STRING) AS ts").collect()] == ["2024-07-01 12:00:00"]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_null_order_keys_are_counted_over_all_spark_partitions(spark) -> None:
    rows = [("Shelf", None if n % 4 == 0 else n, str(n % 7)) for n in range(100)]
    table = spark.createDataFrame(rows, "type STRING, t BIGINT, id STRING").repartition(5)
    with pytest.raises(Exception, match="order key") as caught:
        SHOPLIFTING.match(table, order_by="t").collect()
    error = kleene_error(caught.value)
    assert isinstance(error, kleene.ExecutionError)
    assert error.message == "25 rows have no order key: the column 't' is NULL there"
    assert "Filter them out" in error.hint


def test_null_order_key_is_an_error_also_where_the_key_is_null(spark) -> None:
    table = spark.createDataFrame([("Shelf", None, None)], "type STRING, t BIGINT, id STRING")
    with pytest.raises(Exception, match="1 row has no order key"):
        SHOPLIFTING.match(table, order_by="t").collect()


def test_run_limit_names_the_partition(spark) -> None:
    table = spark.createDataFrame([("A", t, "heavy") for t in range(50)], "type STRING, t BIGINT, id STRING")
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) WHERE [id]")
    with pytest.raises(Exception, match="more than 100 partial matches") as caught:
        query.match(
            table, order_by="t", engine=kleene.EngineOptions("generated", algorithm="basic", run_limit=100)
        ).collect()
    assert "id = 'heavy'" in kleene_error(caught.value).message


def test_ties_are_ordered_by_the_remaining_columns(spark) -> None:
    rows = [("A", 1, "p", "first"), ("B", 1, "p", "second"), ("A", 1, "q", "z"), ("B", 1, "q", "a")]
    query = kleene.sase("PATTERN SEQ(A a, B b) WHERE [id] RETURN a.id AS id")
    for order in (rows, rows[::-1]):
        table = spark.createDataFrame(order, "type STRING, t BIGINT, id STRING, note STRING").repartition(3)
        # The columns after the order key are compared from left to right: type decides here.
        assert sorted(row["id"] for row in query.match(table, order_by="t").collect()) == ["p", "q"]
        backwards = query.match(table, order_by="t", tie_break="note").collect()
        assert [row["id"] for row in backwards] == ["p"]


def test_negative_zero_and_zero_are_one_key(spark) -> None:
    table = spark.createDataFrame(
        [("Shelf", 1, -0.0), ("Exit", 2, 0.0), ("Exit", 3, float("nan"))], "type STRING, t BIGINT, id DOUBLE"
    )
    assert SHOPLIFTING.match(table, order_by="t").count() == 1


def test_names_with_dots_backticks_and_spaces(spark) -> None:
    table = spark.createDataFrame([("A", 1, 7), ("B", 2, 7)], ["the.type", "t `o` f", "the key"])
    query = kleene.sase("PATTERN SEQ(A `an a`, B b) WHERE [`the key`] AND b.`t ``o`` f` > 1")
    found = query.match(table, order_by="t `o` f", type_column="the.type")
    assert found.columns == ["the key", "an a", "b", "match_start", "match_end"]
    assert found.count() == 1


def test_inputs_whose_columns_differ_in_case_only_are_an_error(either_spark) -> None:
    frames = {"A": either_spark.sql("SELECT 1 AS t, 2 AS X"), "B": either_spark.sql("SELECT 1 AS t, 2 AS x")}
    with pytest.raises(kleene.SchemaError, match="Spark cannot tell these columns of the inputs apart"):
        kleene.sase("EVENT SEQ(A a, B b)").match(frames, order_by="t")


def test_empty_input(spark) -> None:
    table = spark.createDataFrame([], "type STRING, t BIGINT, id STRING")
    assert SHOPLIFTING.match(table, order_by="t").count() == 0


def test_dict_of_dataframes_and_tables_cannot_be_mixed(spark) -> None:
    with pytest.raises(kleene.SchemaError, match="some inputs are Spark DataFrames"):
        SHOPLIFTING.match({"Shelf": spark.createDataFrame(EVENTS), "Exit": EVENTS}, order_by="t")


def test_many_keys_in_one_spark_partition_and_one_key_over_many_batches(spark) -> None:
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    kept = spark.conf.get(setting)
    spark.conf.set(setting, "7")
    try:
        rows = [("Shelf" if t % 2 == 0 else "Exit", t, f"k{t % 40}" if t < 200 else "heavy") for t in range(400)]
        rows = [(kind, t, key) for kind, t, key in rows]
        table = spark.createDataFrame(rows, "type STRING, t BIGINT, id STRING")
        expected = SHOPLIFTING.match(
            pa.table({"type": [r[0] for r in rows], "t": [r[1] for r in rows], "id": [r[2] for r in rows]}),
            order_by="t",
        )
        found = SHOPLIFTING.match(table, order_by="t", match_order=True).orderBy("match_order").drop("match_order")
        assert found.toArrow().to_pylist() == expected.to_pylist()
        assert expected.num_rows > 0
    finally:
        spark.conf.set(setting, kept)


def test_composition_feeds_dataframes_to_dataframes(spark) -> None:
    text = """EVENT SEQ(Shelf a, Exit b) WHERE [id] RETURN a.id AS id, b.t - a.t AS took INTO Trip;
              FROM Trip PATTERN SEQ(Trip p, Trip q) WHERE p.took < q.took RETURN p.id AS first, q.id AS second"""
    rows = [("Shelf", 1, "x"), ("Shelf", 2, "y"), ("Exit", 3, "x"), ("Exit", 9, "y")]
    table = spark.createDataFrame(rows, "type STRING, t BIGINT, id STRING")
    results = kleene.program(text).match(table, order_by="t")
    assert results["Trip"].columns == ["id", "took"]
    assert [row.asDict() for row in results["query_2"].collect()] == [{"first": "x", "second": "y"}]


def test_durations_and_zoned_timestamps_are_computed_in_tasks(spark) -> None:
    table = spark.sql(
        "SELECT * FROM VALUES ('A', TIMESTAMP '2024-01-01 10:00:00'), ('B', TIMESTAMP '2024-01-01 10:04:59') "
        "AS v(type, ts)"
    )
    query = kleene.sase(
        "PATTERN SEQ(A a, B b) WHERE b.ts - a.ts < 5 minutes WITHIN 1 hour RETURN b.ts - a.ts AS took, a.ts AS ts"
    )
    row = query.match(table, order_by="ts").collect()[0]
    assert row["took"] == dt.timedelta(minutes=4, seconds=59)


def test_nested_columns_break_ties_too(spark) -> None:
    one, other = (spark.sql(f"SELECT 1 AS t, array({n}) AS xs, map('k', {n}) AS m") for n in (2, 1))
    query = kleene.sase("PATTERN SEQ(E p, E q) RETURN p.xs AS first, q.xs AS second")
    for frame in (one.union(other), other.union(one)):
        assert [tuple(row) for row in query.match(frame, order_by="t").collect()] == [([1], [2])]


def test_void_columns_are_collected(spark):
    events = spark.sql("select id as t, if(id % 2 = 0, 'A', 'B') as type, null as x from range(4)")
    pairs = {"pattern": "A B", "predicates": {"A": "t % 2 = 0", "B": "t % 2 = 1"}, "order_by": "t"}
    found = kleene.regex(**pairs, output={"n": "Collect(x)", "s": "Sum(x)"}).match(events)
    assert [(row.n, row.s) for row in found.collect()] == [([None, None], None)] * 2
    text = "EVENT SEQ(A a, B+ b[]) WITHIN 2 RETURN collect(b[].x) AS n"
    assert [row.n for row in kleene.sase(text).match(events, order_by="t").collect()] == [[None]] * 2


def test_limits_are_those_of_a_task(spark) -> None:
    pairs = kleene.sase("EVENT SEQ(Shelf a, Shelf b) RETURN a.t AS a, b.t AS b")
    frame = spark.createDataFrame(pa.table({"type": ["Shelf"] * 9, "t": range(9)}))
    assert pairs.match(frame, order_by="t", engine=kleene.EngineOptions(match_limit=36)).count() == 36
    with pytest.raises(Exception, match="more matches than the match limit of 35"):
        pairs.match(frame, order_by="t", engine=kleene.EngineOptions(match_limit=35)).collect()
    with pytest.raises(kleene.UnsupportedError, match="match_batches reads events in this process"):
        pairs.match_batches(frame, order_by="t")

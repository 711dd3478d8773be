"""`match` and `kleene.sql` with a declared schema: the matches of `match`, without one question to Spark."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

import kleene

pytestmark = pytest.mark.skipif(not hasattr(F, "arrow_udtf"), reason="PySpark 4.1 brought table functions on Arrow")

SCHEMA = StructType(
    [
        StructField("tag", StringType()),
        StructField("t", LongType()),
        StructField("type", StringType()),
        StructField("price", LongType()),
    ]
)
PAIRS = kleene.sase(
    """EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [tag] AND a.price > 2 WITHIN 100
       RETURN a.tag AS tag, a.t AS a, b.t AS b"""
)
KEYLESS = kleene.sase("EVENT SEQ(Shelf a, Exit b) WHERE a.price > b.price WITHIN 3 RETURN a.t AS a, b.t AS b")
FALLS = """PARTITION BY tag ORDER BY t MEASURES A.price AS top, LAST(B.price) AS bottom
    PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)"""
RISES = kleene.regex(
    pattern=". rise+ drop",
    partition_by="tag",
    order_by="t",
    predicates={"rise": "price > Last(price)", "drop": "price < First(price)"},
    output={"tag": "tag", "top": "Max(price)"},
)


def generated(count: int = 1500) -> pa.Table:
    chance = random.Random(11)
    return pa.table(
        {
            "tag": [f"tag {chance.randrange(23)}" for _ in range(count)],
            "t": pa.array(range(count), pa.int64()),
            "type": [chance.choice(["Shelf", "Register", "Exit"]) for _ in range(count)],
            "price": [chance.randint(1, 9) for _ in range(count)],
        }
    )


EVENTS = generated()


def listed(rows) -> list[str]:
    return sorted(map(repr, rows))


def found(frame) -> list[str]:
    return listed(row.asDict(recursive=True) for row in frame.collect())


@pytest.fixture
def events(either_spark):
    return either_spark.createDataFrame(EVENTS).repartition(3)


@pytest.fixture
def no_analysis(either_spark, monkeypatch):
    """What a pipeline does: whoever asks by Spark Connect gets an error."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("analyzed")

    if type(either_spark).__module__.startswith("pyspark.sql.connect"):
        monkeypatch.setattr(either_spark.client, "_analyze", refused)


@pytest.mark.parametrize(
    ("query", "arguments"),
    [(PAIRS, {"order_by": "t"}), (KEYLESS, {"order_by": "t"}), (kleene.match_recognize(FALLS), {}), (RISES, {})],
    ids=["sase", "keyless", "rows", "regex"],
)
def test_finds_what_match_finds_and_asks_nothing(events, no_analysis, query, arguments) -> None:
    expected = listed(query.match(EVENTS, **arguments).to_pylist())
    assert len(expected) > 20
    matches = query.match(events, schema=SCHEMA, **arguments)
    assert found(matches) == expected


def test_attributes_by_type_beside_the_columns(events, no_analysis) -> None:
    query = kleene.sase(
        "EVENT SEQ(Shelf a, Exit b) WHERE [tag] AND b.price > 9 WITHIN 50 RETURN a.t AS a, b.price AS b"
    )
    types = {"Exit": ["tag"]}
    expected = listed(query.match(EVENTS, order_by="t", schema=kleene.Schema(types)).to_pylist())
    assert len(expected) > 20  # though no price is above 9
    matches = query.match(events, order_by="t", schema=kleene.Schema(types, columns=SCHEMA))
    assert found(matches) == expected


def test_ties_are_decided_as_without_schema(spark) -> None:
    rows = [("x", 1, "Shelf", 3), ("x", 1, "Exit", 2), ("x", 1, "Register", 1), ("x", 2, "Exit", 9)]
    frame = spark.createDataFrame(rows * 2, SCHEMA)
    query = kleene.match_recognize("""PARTITION BY tag ORDER BY t
        MEASURES MATCH_NUMBER() AS n ALL ROWS PER MATCH PATTERN (A B+) DEFINE B AS B.price >= PREV(B.price)""")
    assert found(query.match(frame, schema=SCHEMA)) == found(query.match(frame))


def test_columns_that_are_not_read_need_not_be_declared(spark) -> None:
    frame = spark.createDataFrame(EVENTS).withColumn("other", F.lit(1))
    schema = StructType([field for field in SCHEMA.fields if field.name != "other"])
    assert found(PAIRS.match(frame, order_by="t", schema=schema)) == found(PAIRS.match(frame, order_by="t"))


def test_sql_over_one_clause(either_spark, no_analysis) -> None:
    either_spark.createDataFrame(EVENTS).createOrReplaceTempView("declared_readings")
    text = f"""WITH some AS (SELECT * FROM declared_readings WHERE price > :least)
        SELECT tag, count(*) AS n FROM some MATCH_RECOGNIZE ({FALLS}) WHERE top > bottom GROUP BY tag"""
    try:
        matches = kleene.sql(either_spark, text, {"least": 1}, schema=SCHEMA)
        rows = {row["tag"]: row["n"] for row in matches.collect()}
    finally:
        either_spark.catalog.dropTempView("declared_readings")
    kept = EVENTS.filter(pa.compute.greater(EVENTS.column("price"), 1))
    expected = kleene.match_recognize(FALLS).match(kept).column("tag").value_counts().to_pylist()
    assert rows == {pair["values"]: pair["counts"] for pair in expected}


def told(raised) -> tuple[str, str | None]:
    return raised.value.message, raised.value.hint


def test_schema_that_a_classic_data_frame_does_not_have(spark) -> None:
    frame = spark.createDataFrame(EVENTS.drop_columns(["type"]))
    with pytest.raises(kleene.SchemaError) as raised:
        PAIRS.match(frame, order_by="t", schema=SCHEMA)
    assert told(raised) == (
        "the DataFrame has no column 'type', which the declared schema has",
        "Columns: tag, t, price.",
    )
    other = StructType([*SCHEMA.fields[:3], StructField("price", DoubleType())])
    with pytest.raises(kleene.SchemaError) as raised:
        PAIRS.match(spark.createDataFrame(EVENTS), order_by="t", schema=other)
    assert told(raised) == (
        "the column 'price' of the DataFrame is int64, but the declared schema says double",
        "Declare the columns as they are.",
    )


def test_streams_are_refused(either_spark) -> None:
    stream = either_spark.readStream.format("rate").load()
    schema = StructType([StructField("value", LongType()), StructField("timestamp", StringType())])
    query = kleene.match_recognize("ORDER BY value MEASURES A.value AS v PATTERN (A)")
    with pytest.raises(kleene.UnsupportedError) as raised:
        query.match(stream.where("value > 1"), schema=schema)
    assert raised.value.message == (
        "the DataFrame is a stream, but schema was given: a table function keeps nothing between micro-batches, so it "
        "would miss matches"
    )
    assert raised.value.hint is not None
    assert raised.value.hint.startswith("In a pipeline, make it a materialized view")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"spark": kleene.SparkOptions("in place")},
            "schema was given, so the query runs as a table function, which has one layout only",
        ),
        ({"stream": kleene.StreamOptions()}, "stream is for streams, but schema is for tables"),
    ],
)
def test_options_that_do_not_fit(spark, arguments, message) -> None:
    with pytest.raises(kleene.UnsupportedError) as raised:
        PAIRS.match(spark.createDataFrame(EVENTS), order_by="t", schema=SCHEMA, **arguments)
    assert raised.value.message == message


def test_inputs_that_do_not_fit(spark) -> None:
    with pytest.raises(kleene.UnsupportedError) as raised:
        PAIRS.match(EVENTS, order_by="t", schema=SCHEMA)
    assert told(raised) == ("schema is for Spark DataFrames, but the input is in this process", "Leave schema out.")
    frame = spark.createDataFrame(EVENTS)
    with pytest.raises(kleene.UnsupportedError) as raised:
        PAIRS.match({"Shelf": frame, "Exit": frame}, order_by="t", schema=SCHEMA)
    assert raised.value.message == "schema declares the columns of one DataFrame, but a dict was given"


def test_what_needs_spark_is_refused(spark) -> None:
    frame = spark.createDataFrame(EVENTS)
    kurtosis = kleene.match_recognize("ORDER BY t MEASURES kurtosis(A.t) AS m PATTERN (A{2})")
    with pytest.raises(kleene.UnsupportedError) as raised:
        kurtosis.match(frame, schema=SCHEMA)
    assert told(raised) == (
        "'kurtosis' is not a function of Kleene, and a table function cannot ask Spark for it",
        "Compute it as a column of the table first, or from the measures afterwards.",
    )
    assert (raised.value.line, raised.value.column) == (1, 21)
    computed = kleene.match_recognize("PARTITION BY upper(tag) ORDER BY t MEASURES A.t AS t1 PATTERN (A)")
    with pytest.raises(kleene.UnsupportedError) as raised:
        computed.match(frame, schema=SCHEMA)
    assert raised.value.message == ("the key 'upper(tag)' is an expression, but with schema, keys must be columns")
    clause = f"MATCH_RECOGNIZE ({FALLS})"
    text = f"SELECT * FROM declared_readings {clause} a JOIN declared_readings {clause} b ON a.tag = b.tag"
    frame.createOrReplaceTempView("declared_readings")
    with pytest.raises(kleene.UnsupportedError) as raised:
        kleene.sql(spark, text, schema=SCHEMA)
    spark.catalog.dropTempView("declared_readings")
    assert raised.value.message == (
        "schema declares the columns of one table, but the text has several MATCH_RECOGNIZE clauses"
    )


def test_older_spark_that_analyzes_the_text_around_a_clause(spark, monkeypatch) -> None:
    """As in a pipeline of PySpark 4.1 and 4.2, where the tables of the pipeline are not known yet."""
    monkeypatch.setattr("pyspark.__version__", "4.2.0")
    spark.createDataFrame(EVENTS).createOrReplaceTempView("declared_readings")
    text = f"SELECT * FROM declared_readings MATCH_RECOGNIZE ({FALLS}) JOIN no_such_table USING (tag)"
    with pytest.raises(kleene.UnsupportedError) as raised:
        kleene.sql(spark, text, schema=SCHEMA)
    spark.catalog.dropTempView("declared_readings")
    assert raised.value.message.startswith(
        "Spark analyzes the text around the clause at once: [TABLE_OR_VIEW_NOT_FOUND] The table or view `no_such_table`"
    )
    assert raised.value.hint is not None
    assert raised.value.hint.startswith("In a pipeline, kleene.sql needs PySpark 4.3 or newer; ")

"""Queries as table functions of Spark: the matches of `match`, and errors where partitions or order do not fit."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StringType, StructField, StructType

import kleene
from kleene.spark.session import kleene_error

pytestmark = pytest.mark.skipif(not hasattr(F, "arrow_udtf"), reason="PySpark 4.1 brought table functions on Arrow")


def generated(count: int = 3000, tags: int = 17, seed: int = 5) -> pa.Table:
    chance = random.Random(seed)
    return pa.table(
        {
            "tag": [f"tag {chance.randrange(tags)}" for _ in range(count)],
            "store": [chance.choice(["north", "south"]) for _ in range(count)],
            "t": pa.array(range(count), pa.int64()),
            "type": [chance.choice(["Shelf", "Register", "Exit"]) for _ in range(count)],
            "price": [chance.randint(1, 9) for _ in range(count)],
        }
    )


EVENTS = generated()
SCHEMA = StructType(
    [
        StructField("tag", StringType()),
        StructField("store", StringType()),
        StructField("t", LongType()),
        StructField("type", StringType()),
        StructField("price", LongType()),
    ]
)
SASE = kleene.sase(
    "EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [tag] WITHIN 200 RETURN a.tag AS tag, a.t AS a, b.t AS b"
)
WHOLE = kleene.sase("EVENT SEQ(Shelf a, Exit b) WHERE [tag] AND a.price > b.price WITHIN 40")
KEYLESS = kleene.sase("EVENT SEQ(Shelf a, Exit b) WHERE a.price > b.price WITHIN 4 RETURN a.t AS a, b.t AS b")
FALLS = kleene.match_recognize("""PARTITION BY tag ORDER BY t
    MEASURES A.price AS top, LAST(B.price) AS bottom, MATCH_NUMBER() AS n
    PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)""")
ALL_ROWS = kleene.match_recognize("""PARTITION BY tag ORDER BY t ALL ROWS PER MATCH
    PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)""")
RISES = kleene.regex(
    pattern=". rise+ drop",
    partition_by="tag",
    order_by="t",
    predicates={"rise": "price > Last(price)", "drop": "price < First(price)"},
    output={"tag": "tag", "top": "Max(price)", "events": "Count()"},
)
KEYED = "PARTITION BY tag ORDER BY t"
COARSE = "PARTITION BY pmod(hash(tag), 3) ORDER BY t"
SINGLE = "WITH SINGLE PARTITION ORDER BY t"


@pytest.fixture(scope="module", autouse=True)
def readings(classic_spark):
    classic_spark.createDataFrame(EVENTS).repartition(3).createOrReplaceTempView("function_readings")
    yield
    classic_spark.catalog.dropTempView("function_readings")


@pytest.fixture
def small_batches(classic_spark):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = classic_spark.conf.get(name)
    classic_spark.conf.set(name, "100")
    yield
    classic_spark.conf.set(name, before)


@pytest.fixture
def register(classic_spark):
    """Registers a query under a name that goes with the test."""
    names = []

    def registered(query: kleene.Query, schema=SCHEMA, **arguments) -> str:
        names.append(f"found_{len(names)}")
        classic_spark.udtf.register(names[-1], query.table_function(schema, **arguments))
        return names[-1]

    yield registered
    for name in names:
        classic_spark.sql(f"DROP TEMPORARY FUNCTION {name}")


def listed(rows) -> list[str]:
    return sorted(map(repr, rows))


def in_process(query: kleene.Query, **arguments) -> list[str]:
    return listed(query.match(EVENTS, **arguments).to_pylist())


def by_sql(spark, name: str, clauses: str) -> list[str]:
    found = spark.sql(f"SELECT * FROM {name}(TABLE(function_readings) {clauses})")
    return listed(row.asDict(recursive=True) for row in found.collect())


def error_of(spark, text: str) -> kleene.KleeneError:
    with pytest.raises(Exception) as raised:  # noqa: PT011  # Spark's, of several kinds
        spark.sql(text).collect()
    found = kleene_error(raised.value)
    assert found is not None, str(raised.value)
    return found


@pytest.mark.parametrize(
    ("query", "arguments", "clauses"),
    [
        (SASE, {"order_by": "t"}, KEYED),
        (SASE, {"order_by": "t"}, COARSE),
        (SASE, {"order_by": "t", "match_id": True}, SINGLE),
        (WHOLE, {"order_by": "t"}, KEYED),
        (KEYLESS, {"order_by": "t"}, SINGLE),
        (FALLS, {}, KEYED),
        (FALLS, {}, COARSE),
        (ALL_ROWS, {}, KEYED),
        (RISES, {}, KEYED),
        (RISES, {}, SINGLE),
    ],
)
def test_function_finds_what_match_finds(spark, register, small_batches, query, arguments, clauses) -> None:
    expected = in_process(query, **arguments)
    assert len(expected) > 50
    assert by_sql(spark, register(query, **arguments), clauses) == expected


def test_schema_of_the_result_is_that_of_match(spark, register) -> None:
    frame = spark.table("function_readings")
    for query, arguments in [(WHOLE, {"order_by": "t", "match_order": True}), (FALLS, {})]:
        found = spark.sql(f"SELECT * FROM {register(query, **arguments)}(TABLE(function_readings) {KEYED})")
        assert found.schema == query.match(frame, **arguments).schema


@pytest.mark.parametrize("schema", [EVENTS.schema, "tag STRING, t LONG, price LONG, type STRING"])
def test_schema_is_arrow_or_text(spark, register, schema) -> None:
    assert by_sql(spark, register(SASE, schema, order_by="t"), KEYED) == in_process(SASE, order_by="t")


def test_keys_that_are_expressions_are_computed_inside(spark, register) -> None:
    query = kleene.match_recognize("""PARTITION BY upper(tag) ORDER BY t
        MEASURES A.t AS a PATTERN (A B) DEFINE B AS B.price < A.price""")
    clauses = "PARTITION BY upper(tag) ORDER BY t"
    assert by_sql(spark, register(query), clauses) == in_process(query)


def test_function_on_a_data_frame_by_either_spark(either_spark) -> None:
    frame = either_spark.createDataFrame(EVENTS.slice(0, 300))
    function = SASE.table_function(SCHEMA, order_by="t")
    found = function(frame.asTable().partitionBy("tag").orderBy("t")).collect()
    expected = SASE.match(EVENTS.slice(0, 300), order_by="t").to_pylist()
    assert listed(row.asDict() for row in found) == listed(expected)
    assert expected


def test_one_function_twice_in_a_task(spark, register) -> None:
    """Each use has keys of its own, though one task runs both."""
    name = register(SASE, order_by="t")
    once = f"SELECT * FROM {name}(TABLE(function_readings) {KEYED})"
    both = spark.sql(f"{once} UNION ALL {once}").coalesce(1)
    assert both.count() == 2 * len(in_process(SASE, order_by="t"))


def test_nulls_in_the_key(spark, register) -> None:
    rows = [(None, 1, "Shelf"), (None, 2, "Exit"), ("x", 3, "Shelf"), ("x", 4, "Exit")]
    frame = spark.createDataFrame(rows, "tag STRING, t LONG, type STRING")
    function = WHOLE.table_function("tag STRING, t LONG, type STRING, price LONG", order_by="t")
    frame = frame.withColumn("price", 10 - F.col("t"))
    assert [row["tag"] for row in function(frame.asTable().partitionBy("tag").orderBy("t")).collect()] == ["x"]


@pytest.mark.parametrize(
    ("query", "clauses", "hint"),
    [
        (SASE, "PARTITION BY tag", "Write: TABLE(…) PARTITION BY tag ORDER BY t"),
        (SASE, "PARTITION BY tag ORDER BY t DESC", "Write: TABLE(…) PARTITION BY tag ORDER BY t"),
        (KEYLESS, "WITH SINGLE PARTITION ORDER BY price", "Write: TABLE(…) WITH SINGLE PARTITION ORDER BY t"),
    ],
)
def test_events_out_of_order(spark, register, query, clauses, hint) -> None:
    error = error_of(spark, f"SELECT * FROM {register(query, order_by='t')}(TABLE(function_readings) {clauses})")
    assert error.message == "events of one partition of the table are not in the order of 't'"
    assert error.hint == hint


def test_order_of_several_columns(spark, register) -> None:
    query = kleene.match_recognize("""PARTITION BY store, tag ORDER BY price DESC, t
        MEASURES A.t AS a PATTERN (A B) DEFINE B AS B.price < A.price""")
    name = register(query)
    right = "PARTITION BY (store, tag) ORDER BY (price DESC, t)"
    assert by_sql(spark, name, right) == in_process(query)
    error = error_of(spark, f"SELECT * FROM {name}(TABLE(function_readings) PARTITION BY (store, tag) ORDER BY t)")
    assert error.message == "events of one partition of the table are not in the order of 'price'"
    assert error.hint == f"Write: TABLE(…) {right}"


def test_partitions_finer_than_the_key(spark, register) -> None:
    name = register(SASE, order_by="t")
    found = f"{name}(TABLE(function_readings) PARTITION BY (tag, store) ORDER BY t)"
    error = error_of(spark, f"SELECT * FROM {found}")
    assert error.message == "the events of one tag are in several partitions of the table"
    assert error.hint == "Write: TABLE(…) PARTITION BY tag ORDER BY t"


def test_partitions_of_a_query_without_a_key(spark, register) -> None:
    name = register(KEYLESS, order_by="t")
    error = error_of(spark, f"SELECT * FROM {name}(TABLE(function_readings) {KEYED})")
    assert error.message == "the events of the query, which has no key, are in several partitions of the table"
    assert error.hint == "Write: TABLE(…) WITH SINGLE PARTITION ORDER BY t"


def test_missing_order_key(spark, register) -> None:
    name = register(SASE, order_by="t")
    nulls = "(SELECT tag, store, nullif(t, 7) AS t, type, price FROM function_readings)"
    error = error_of(spark, f"SELECT * FROM {name}(TABLE{nulls} {KEYED})")
    assert error.message == "1 row has no order key: the column 't' is NULL there"


def test_table_that_is_not_as_declared(spark, register) -> None:
    name = register(SASE, order_by="t")
    text = f"SELECT * FROM {name}(TABLE(SELECT {{}} FROM function_readings) PARTITION BY 1 ORDER BY 1)"
    error = error_of(spark, text.format("tag, t"))
    assert (error.message, error.hint) == (
        "the table has no column 'type', which the declared schema has",
        "Columns: tag, t.",
    )
    error = error_of(spark, text.format("tag, CAST(t AS STRING) AS t, type"))
    assert error.message == "the column 't' of the table is string, but the declared schema says int64"
    assert isinstance(error, kleene.SchemaError)


def test_large_partition_flows_in_parts() -> None:
    """The same matches, whatever the pieces; in this process, as a task would do it."""
    from dataclasses import replace

    from kleene.call import read_call
    from kleene.spark.declared import declared_columns
    from kleene.spark.table_function import table_task
    from kleene.spark.tasks.table import TableMatcher

    plain = {"order_by": None, "type_column": "type", "tie_break": None, "params": None}
    for query, order in [(SASE, "t"), (FALLS, None), (RISES, None)]:
        call = read_call(query.definition, **plain | {"order_by": order}, engine="generated", spark=None, stream=None)
        task = replace(table_task(call, declared_columns(SCHEMA, call, "UTC")), at_once=250)
        matcher = TableMatcher(task).start()
        found = [table for batch in EVENTS.to_batches(100) for table in matcher.feed(batch)]
        assert found  # before the end
        found += matcher.finish()
        assert listed(pa.concat_tables(found).to_pylist()) == in_process(
            query, **({"order_by": order} if order else {})
        )


def test_errors_before_anything_runs() -> None:
    def message(*arguments, **named) -> tuple[str, str | None]:
        with pytest.raises(kleene.KleeneError) as raised:
            SASE.table_function(*arguments, **named)
        return raised.value.message, raised.value.hint

    assert message(SCHEMA) == (
        "no order key is given",
        "Name the column that orders the events: tag, store, t, type, price.",
    )
    assert message(SCHEMA, order_by="ts")[0] == "the schema has no column 'ts' to order by"
    assert message(7, order_by="t")[0] == "schema takes the columns of the input, but 7 was given"
    assert message(StructType([StructField("__kleene_x", LongType())]), order_by="t")[0].startswith(
        "the schema has a column '__kleene_x'"
    )
    assert message(pa.schema([("t", pa.time64("ns"))]), order_by="t")[0].startswith("the column 't' of type time")


def test_text_that_spark_cannot_read(spark) -> None:
    with pytest.raises(kleene.SchemaError, match="Spark cannot read the schema: "):
        SASE.table_function("tag STRING t", order_by="t")
    with pytest.raises(kleene.SchemaError, match="the schema is int, but columns are wanted"):
        SASE.table_function("INT", order_by="t")


def test_older_pyspark(monkeypatch) -> None:
    monkeypatch.delattr(F, "arrow_udtf")
    with pytest.raises(kleene.UnsupportedError) as raised:
        SASE.table_function(SCHEMA, order_by="t")
    assert raised.value.message == "table functions on Arrow came with PySpark 4.1, but an older one is installed"
    assert raised.value.hint == "Install a newer one: pip install 'pyspark[sql]>=4.1,<5'"

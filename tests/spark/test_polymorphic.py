"""`kleene_match` in SQL: any query text, over any table."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import NullType
from pyspark.sql.udtf import AnalyzeArgument

import kleene
from kleene.spark.polymorphic import Arguments, prepared_for
from kleene.spark.schema import spark_schema

COUNT = 800
WIDE = pa.schema(
    [
        ("tag", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("type", pa.string()),
        ("price", pa.float64()),
        ("cost", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("clock", pa.timestamp("us")),
        ("seen", pa.list_(pa.int64())),
        ("at", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("a.b `c`", pa.int64()),
    ]
)


def generated() -> pa.Table:
    chance = random.Random(3)
    start = dt.datetime(2024, 10, 27, 0, 30)  # an hour that is there twice in Berlin lies in it
    rows = [
        {
            "tag": f"tag {chance.randrange(9)}",
            "t": (start + dt.timedelta(seconds=20 * number)).replace(tzinfo=dt.UTC),
            "type": chance.choice(["Shelf", "Register", "Exit"]),
            "price": float(chance.randint(1, 9)),
            "cost": Decimal(number) / 4,
            "day": dt.date(2024, 1, 1) + dt.timedelta(number),
            "clock": start + dt.timedelta(seconds=number),
            "seen": [number, None],
            "at": {"x": number, "y": None if number % 3 else "y"},
            "a.b `c`": chance.randint(1, 5),
        }
        for number in range(COUNT)
    ]
    return pa.Table.from_pylist(rows, schema=WIDE)


EVENTS = generated()
WHOLE = "EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [tag] AND a.price > b.price WITHIN 1 hour"
KEYLESS = "EVENT SEQ(Shelf a, Exit b) WHERE a.price > b.price WITHIN 2 minutes RETURN a.price AS a, b.price AS b"
FALLS = """PARTITION BY tag ORDER BY t MEASURES A.price AS top, LAST(B.price) AS bottom, LAST(B.seen) AS seen
    PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)"""
ODD = """PARTITION BY tag ORDER BY "a.b `c`" DESC, t MEASURES A."a.b `c`" AS "x y"
    PATTERN (A B) DEFINE B AS B.price < A.price"""


@pytest.fixture(scope="module", autouse=True)
def readings(classic_spark):
    kleene.register(classic_spark)
    classic_spark.createDataFrame(EVENTS, spark_schema(WIDE)).repartition(3).createOrReplaceTempView("many_readings")
    yield
    classic_spark.catalog.dropTempView("many_readings")
    classic_spark.sql("DROP TEMPORARY FUNCTION kleene_match")


def listed(rows) -> list[str]:
    return sorted(map(repr, rows))


def in_sql(spark, text: str, more: str = "", **args) -> list[str]:
    found = spark.sql(f"SELECT * FROM kleene_match(TABLE(many_readings), :query{more})", {"query": text, **args})
    return listed(found.toArrow().to_pylist())


@pytest.mark.parametrize(
    ("text", "more", "order_by"),
    [
        (WHOLE, ", order_by => 't'", "t"),
        (KEYLESS, ", order_by => array('t'), type_column => 'type', language => 'sase'", "t"),
        (FALLS, "", None),
        (f"-- falls\nMATCH_RECOGNIZE ({FALLS})", ", language => 'match_recognize'", None),
        (ODD, "", None),
    ],
)
def test_function_finds_what_match_finds(spark, text, more, order_by) -> None:
    query = kleene.sase(text) if order_by else kleene.match_recognize(text)
    expected = query.match(EVENTS, **({"order_by": order_by} if order_by else {}))
    assert expected.num_rows > 20
    assert in_sql(spark, text, more) == listed(expected.to_pylist())


def test_schema_of_the_result_is_that_of_match(spark) -> None:
    found = spark.sql("SELECT * FROM kleene_match(TABLE(many_readings), :query)", {"query": FALLS})
    assert found.schema == kleene.match_recognize(FALLS).match(spark.table("many_readings")).schema


def test_by_spark_connect_and_under_another_name(remote_spark, monkeypatch) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    kleene.register(remote_spark, "found_by", engine=kleene.EngineOptions(match_limit=10_000))
    remote_spark.createDataFrame(EVENTS.select(["tag", "t", "price", "seen"])).createOrReplaceTempView("far_readings")
    found = remote_spark.sql("SELECT * FROM found_by(TABLE(far_readings), :query)", args={"query": FALLS}).collect()
    remote_spark.sql("DROP TEMPORARY FUNCTION found_by")
    remote_spark.catalog.dropTempView("far_readings")
    assert len(found) == kleene.match_recognize(FALLS).match(EVENTS).num_rows


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            "TABLE(many_readings), 'EVENT SEQ(Shelf a, Exit b) WHERE [tagg]', order_by => 't'",
            """line 1, column 35: no event type has the attribute 'tagg'
    EVENT SEQ(Shelf a, Exit b) WHERE [tagg]
                                      ^^^^
Attributes: tag, t, type, price, cost, day, clock, seen, at, a.b `c`. Did you mean 'tag'?""",
        ),
        (
            "TABLE(many_readings), 'EVENT SEQ(Shelf a, Exit b', order_by => 't'",
            "line 1, column 10: '(' is never closed\n    EVENT SEQ(Shelf a, Exit b\n             ^\nClose it with ')'.",
        ),
        ("1, 'EVENT A a'", "the first argument of kleene_match is a table\nWrite: kleene_match(TABLE(name), '…')"),
    ],
)
def test_errors_come_as_analysis_exceptions_with_our_text_first(spark, arguments, text) -> None:
    with pytest.raises(AnalysisException) as raised:
        spark.sql(f"SELECT * FROM kleene_match({arguments})")
    told = str(raised.value).partition("Failed to analyze the Python user defined table function: ")[2]
    assert told.startswith(text), told


def constant(value: object) -> AnalyzeArgument:
    return AnalyzeArgument(NullType(), value, False, True)


@pytest.mark.parametrize(
    ("query", "named", "message"),
    [
        (constant("EVENT Shelf a"), {}, "no order key is given"),
        (constant("EVENT Shelf a"), {"language": constant("perl")}, "language takes a name, but 'perl' was given"),
        (
            constant("EVENT Shelf a"),
            {"order_by": constant(7)},
            "order_by takes the name of a column or an array of names, but 7 was given",
        ),
        (constant("EVENT Shelf a"), {"order_by": constant(["x"])}, "the schema has no column 'x' to order by"),
        (constant(7), {}, "query takes a text, but 7 was given"),
        (
            AnalyzeArgument(NullType(), None, False, False),
            {},
            "query must be a constant, since the columns of the result depend on it",
        ),
        (
            constant("PARTITION BY upper(tag) ORDER BY t MEASURES A.t AS t1 PATTERN (A)"),
            {},
            "the key 'upper(tag)' is an expression, but kleene_match splits and sorts by columns",
        ),
        (
            constant("ORDER BY t MEASURES kurtosis(A.t) AS m PATTERN (A)"),
            {},
            "'kurtosis' is not a function of Kleene, and a table function cannot ask Spark for it",
        ),
    ],
)
def test_words_of_the_errors(query, named, message) -> None:
    """Straight from what Spark calls: each error in SQL costs a worker."""
    table = AnalyzeArgument(spark_schema(WIDE), None, True, False)
    further = {name: named.get(name) for name in ("order_by", "type_column", "tie_break", "language")}
    with pytest.raises(kleene.KleeneError) as raised:
        prepared_for(Arguments.of(table, query, **further), "UTC")
    assert raised.value.message == message


def test_names_are_quoted_in_what_spark_is_told() -> None:
    table = AnalyzeArgument(spark_schema(WIDE), None, True, False)
    text = ODD.replace("PARTITION BY tag", 'PARTITION BY price, "a.b `c`"')
    found = prepared_for(Arguments.of(table, constant(text), None, None, None, None), "UTC")
    assert [column.name for column in found.partitionBy] == ["pmod(xxhash64((`price` + 0.0D), `a.b ``c```), 64)"]
    assert [(column.name, column.alias) for column in found.select] == [
        ("unix_micros(`t`)", "t"),
        ("`price`", "price"),
        ("`a.b ``c```", "a.b `c`"),
    ]
    assert next((column.name, column.ascending) for column in found.orderBy) == ("`a.b ``c```", False)


def test_name_that_is_none(spark) -> None:
    with pytest.raises(kleene.SchemaError) as raised:
        kleene.register(spark, "a b")
    assert raised.value.message == "name takes the name of a function, but 'a b' was given"

"""Functions and aggregates of one's own on Spark: in tables, in SQL, and on streams."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import kleene
from function_cases import FunctionCase, by_name, is_program, load_functions
from kleene.datasets import tweets
from kleene.options import StreamOptions
from kleene.spark.schema import spark_schema

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
EVENTS = pa.table(
    {"type": ["A", "A", "A", "B"], "t": [1, 2, 3, 4], "price": [1.0, 2.0, 9.0, 3.0], "k": ["x", "x", "x", "x"]}
)


def own_functions() -> list:
    """Made anew, so that they travel whole: tasks cannot import this module."""

    def near(left: float, right: float) -> bool:
        return abs(left - right) < 1.5

    def loud(text: str) -> str:
        return text.upper()

    def weighed(state: float, value: float) -> float:
        return 0.5 * state + 0.5 * value

    big = kleene.function(lambda prices: pc.greater(prices, 0.5), "big", vectorized=True)
    return [near, loud, big, kleene.aggregate("ewma", 0.0, weighed)]


QUERIES = {
    "sase": lambda: (
        kleene.sase(
            """PATTERN SEQ(A+ a[], B b)
            WHERE [k] AND big(b.price) AND near(a[i].price, a[i-1].price) AND ewma(a[].price) > 0.6
            RETURN ewma(a[].price) AS x, loud(b.k) AS k""",
            functions=own_functions(),
        ),
        {"order_by": "t"},
    ),
    "rows": lambda: (
        kleene.match_recognize(
            """PARTITION BY k ORDER BY t MEASURES ewma(price) AS x, loud(LAST(k)) AS l
            PATTERN (A B+) DEFINE B AS near(B.price, PREV(B.price)) AND ewma(A.price) > 0""",
            functions=own_functions(),
        ),
        {},
    ),
    "regex": lambda: (
        kleene.regex(
            pattern=". b+ c",
            partition_by="k",
            order_by="t",
            predicates={"b": "near(price, Last(price))", "c": "ewma(price) > 0"},
            output={"x": "ewma(price)", "k": "loud(k)"},
            functions=own_functions(),
        ),
        {},
    ),
}


def rows_of(found: pa.Table) -> list:
    return sorted(map(repr, found.to_pylist()))


@pytest.mark.parametrize("language", QUERIES)
def test_functions_travel_to_the_tasks(language: str, spark: SparkSession) -> None:
    query, options = QUERIES[language]()
    expected = rows_of(query.match(EVENTS, **options))
    assert expected
    frame = spark.createDataFrame(EVENTS, spark_schema(EVENTS.schema))
    assert rows_of(query.match(frame, **options).toArrow()) == expected


def test_clauses_of_sql_call_functions_on_spark_and_in_process(spark: SparkSession) -> None:
    spark.createDataFrame(EVENTS, spark_schema(EVENTS.schema)).createOrReplaceTempView("own_events")
    text = """SELECT x + 1 AS y, l FROM own_events MATCH_RECOGNIZE (
        PARTITION BY k ORDER BY t MEASURES ewma(price) AS x, loud(LAST(k)) AS l
        PATTERN (A B+) DEFINE B AS near(B.price, PREV(B.price)))"""
    functions = own_functions()
    expected = [{"y": 2.25, "l": "X"}]
    assert kleene.sql(spark, text, functions=functions).toArrow().to_pylist() == expected
    assert kleene.sql(text, tables={"own_events": EVENTS}, functions=functions).to_pylist() == expected


@pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
@pytest.mark.parametrize("case", load_functions(errors=False)[::12], ids=by_name)
def test_case_on_spark(case: FunctionCase, spark: SparkSession) -> None:
    """A few of them: tasks run the same engine, and get the functions as those above."""
    if is_program(case) or isinstance(case.events, dict):
        pytest.skip("a program, or several inputs")
    frame = spark.createDataFrame(case.events, spark_schema(case.events.schema))
    found = case.query().match(frame, **case.options, match_order=case.is_sase)
    if case.is_sase:
        found = found.coalesce(1).sortWithinPartitions("match_order").drop("match_order")
    case.check(found.toArrow())


# --- streams ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def streaming(classic_spark: SparkSession) -> Iterator[SparkSession]:
    partitions = classic_spark.conf.get("spark.sql.shuffle.partitions")
    classic_spark.conf.set(PROVIDER, ROCKSDB)
    classic_spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield classic_spark
    classic_spark.conf.unset(PROVIDER)
    classic_spark.conf.set("spark.sql.shuffle.partitions", partitions)


def tweet_query(name: str) -> kleene.Query:
    """Figure 2 of MatchRegex 2012, and its twitter2 (Table 5)."""

    def tags(text: str) -> list[str]:
        return sorted(re.findall(r"#\w+", text))

    def tags_eq(left: str, right: str) -> bool:
        return tags(left) == tags(right)

    def tags_disjoint(left: str, right: str) -> bool:
        return not set(tags(left)) & set(tags(right))

    said = {
        "twitter1": {
            "pattern": ". sameTags+ sameTags5th",
            "predicates": {
                "sameTags": "tagsEq(content, First(content))",
                "sameTags5th": "Count() == 4 && tagsEq(content, First(content))",
            },
            "output": {"author": "author", "count": "Count()", "all": "Collect(content)"},
        },
        "twitter2": {
            "pattern": ".+ disjointTags",
            "predicates": {"disjointTags": "tagsDisjoint(content, First(content))"},
            "output": {"author": "author", "count": "Count()"},
        },
    }[name]
    functions = {"tagsEq": tags_eq, "tagsDisjoint": tags_disjoint}
    return kleene.regex(**said, partition_by="author", order_by="ts", functions=functions)


@pytest.mark.parametrize("name", ["twitter1", "twitter2"])
def test_functions_over_several_events_on_a_stream(name: str, streaming: SparkSession, tmp_path: Path) -> None:
    table = tweets(240, authors=8)
    query = tweet_query(name)
    expected = rows_of(query.match(table))
    assert expected
    (tmp_path / "in").mkdir()
    for number in range(2):
        path = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(table.slice(number * 120, 120), path)
        os.utime(
            path, (1_700_000_000 + number, 1_700_000_000 + number)
        )  # Spark reads files in the order of their times
    reader = streaming.readStream.schema(spark_schema(table.schema)).option("maxFilesPerTrigger", 1)
    options = StreamOptions(order="arrival", unbounded_state="allow")
    found = query.match(reader.parquet(str(tmp_path / "in")), stream=options)
    writer = found.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    assert rows_of(streaming.read.parquet(str(tmp_path / "out")).toArrow()) == expected

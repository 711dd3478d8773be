"""On Spark the result depends on the events alone: not on how they are split, ordered or handed over."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import kleene
from case_files import near
from independent_checker import result_rows
from kleene.spark.schema import spark_schema
from strategies import EVENT_SCHEMA, Events, event_table, queries_with_events, some_examples
from structured_query import StructuredQuery

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
RECORDS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
COPIES = 15
# Seeds from which a wanted example is drawn soon: by key, and without.
SEEDS = {True: (2, 24), False: (16, 25)}

Example = tuple[StructuredQuery, Events]


@cache
def generated_case(is_keyed: bool, choice: int) -> Example:
    """A query with a predicate and some matches, the same in every run; by key, for many of them."""

    def is_wanted(case: Example) -> bool:
        query, events = case
        has_wanted_shape = bool(query.keys) == is_keyed and len(query.positives) > 1 and query.predicates
        has_times = len({event["t"] for event in events}) > 3
        return has_wanted_shape and has_times and 3 <= len(result_rows(query, events)) <= 30

    query, events = some_examples(queries_with_events("all", all_named=True), is_wanted, 1, SEEDS[is_keyed][choice])[0]
    return query, with_more_keys(events) if is_keyed else events


def with_more_keys(events: Events) -> Events:
    """The same events for many ids, so that every Spark partition has some."""
    return [
        event | {"id": event["id"] and event["id"] + 10 * copy, "n": event["n"] + 100 * copy}
        for copy in range(COPIES)
        for event in events
    ]


@pytest.mark.parametrize(("input_partitions", "is_keyed"), [(1, False), (3, True), (8, False), (8, True)])
def test_result_does_not_depend_on_spark_partitions_and_rows_of_the_input(
    spark: Any, input_partitions: int, is_keyed: bool
) -> None:
    query, events = generated_case(is_keyed, 0)
    shuffled = random.Random(input_partitions).sample(events, len(events))
    assert spark_rows(query, shuffled, spark, input_partitions) == arrow_rows(query, events)


@pytest.mark.parametrize("is_keyed", [True, False])
def test_ties_without_a_tie_break_do_not_depend_on_spark_partitions_and_rows_of_the_input(
    spark: Any, is_keyed: bool
) -> None:
    query, events = generated_case(is_keyed, 1)
    simultaneous = [event | {"t": event["t"] // 4} for event in events]
    shuffled = random.Random(4).sample(simultaneous, len(events))
    one_layout = spark_rows(query, simultaneous, spark, 1, tie_break=None)
    assert one_layout
    assert spark_rows(query, shuffled, spark, 5, tie_break=None) == one_layout


@pytest.mark.parametrize(("count", "is_keyed"), [(1, True), (2, True), (7, True), (7, False)])
def test_result_does_not_depend_on_shuffle_partitions(spark: Any, count: int, is_keyed: bool) -> None:
    query, events = generated_case(is_keyed, 0)
    query = replace(query, format="non_overlapping")
    with setting(spark, SHUFFLE_PARTITIONS, count):
        assert spark_rows(query, events, spark) == arrow_rows(query, events)


@pytest.mark.parametrize(("count", "is_keyed"), [(1, False), (1, True), (2, True), (10_000, True)])
def test_result_does_not_depend_on_records_per_batch(spark: Any, count: int, is_keyed: bool) -> None:
    query, events = generated_case(is_keyed, 1)
    with setting(spark, RECORDS_PER_BATCH, count):
        assert spark_rows(query, events, spark) == arrow_rows(query, events)


@contextmanager
def setting(spark: Any, name: str, value: int) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, str(value))
    try:
        yield
    finally:
        spark.conf.set(name, before)


def arrow_rows(query: StructuredQuery, events: Events) -> Any:
    rows = found(query, event_table(events), "n").to_pylist()
    assert rows
    return near(rows)


def spark_rows(
    query: StructuredQuery, events: Events, spark: Any, input_partitions: int = 2, tie_break: str | None = "n"
) -> Any:
    input_frame = spark.createDataFrame(event_table(events), spark_schema(EVENT_SCHEMA)).repartition(input_partitions)
    result = found(query, input_frame, tie_break, match_order=True)
    return near(result.orderBy("match_order").drop("match_order").toArrow().to_pylist())


def found(query: StructuredQuery, events: Any, tie_break: str | None, **options: Any) -> Any:
    return kleene.sase(str(query)).match(events, order_by="t", tie_break=tie_break, format=query.format, **options)

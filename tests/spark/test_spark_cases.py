"""Every matching case on Spark, classic and by Spark Connect.

The rows are those of the Arrow result, in the order that the result's rows can restore.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pytest

import kleene
from case_files import Case, check, functions_of, load_all, near, run_case
from kleene.spark.schema import spark_schema

CASES = load_all()


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_case_on_spark(number: int, either_spark) -> None:
    case, expected = CASES[number], found_in_process(number)
    found = spark_result(case, either_spark)
    assert found.column_names == expected.column_names
    if case.is_program:  # whose results on Spark have no order
        assert sorted(map(repr, near(found.to_pylist()))) == sorted(map(repr, near(expected.to_pylist())))
        return
    check(case, found.column_names, found.to_pylist())
    assert near(found.to_pylist()) == near(expected.to_pylist())


@cache
def found_in_process(number: int) -> pa.Table:
    """Once for both kinds of Spark."""
    return run_case(CASES[number])


def to_spark(table: pa.Table, spark):
    """The table with timestamps without a zone kept as such; by itself Spark would read them in the session's zone."""
    return spark.createDataFrame(table, spark_schema(table.schema))


def spark_result(case: Case, spark) -> pa.Table:
    if isinstance(case.inputs, dict):
        events = {name: to_spark(table, spark) for name, table in case.inputs.items()}
    else:
        events = to_spark(case.inputs, spark)
    if case.is_program:
        results = kleene.program(case.query, functions=functions_of(case.functions)).match(events, **case.options)
        return (results[case.result] if case.result else list(results.values())[-1]).toArrow()
    query = kleene.sase(case.query, functions=functions_of(case.functions))
    found = query.match(events, **case.options, match_order=True)
    # Sorted in one task: to sort in several, Spark would run the query twice.
    return found.coalesce(1).sortWithinPartitions("match_order").drop("match_order").toArrow()

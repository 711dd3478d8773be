"""The papers' own queries: RIP's Q1 to Q12 against the automaton, MatchRegex's benchmarks on Spark and in process."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

import kleene
import workloads
from kleene.analysis.row_pattern import analyze_row_pattern
from kleene.automaton.positions import positions_of
from kleene.datasets import prices, trades, tweets
from kleene.engine.column_types import attributes_of
from kleene.engine.row_reference import RowBindings, Visible
from kleene.ir.evaluate import evaluate
from kleene.schema import EventSchema
from kleene.spark.schema import spark_schema
from planted_ticks import PLANTED
from row_automaton_runner import ways
from workloads import MATCH_REGEX, RIP, regex_arguments, rip_clause

# The tasks cannot import this module of the benchmarks; its functions travel whole.
cloudpickle.register_pickle_by_value(workloads)


def ticks(name: str) -> pa.Table:
    drawn = prices(200, seed=3).column("price").to_pylist() + PLANTED.get(name, [])
    return pa.table({"t": list(range(len(drawn))), "price": drawn})


@pytest.mark.parametrize("name", RIP)
def test_all_matches_of_rip_are_the_accepting_runs_of_the_automaton(name: str) -> None:
    table = ticks(name)
    query = kleene.match_recognize(rip_clause(name, 14))
    found = query.match(table).to_pylist()
    analyzed = analyze_row_pattern(query.definition, EventSchema(attributes_of(table.schema)))
    automaton, conditions = positions_of(analyzed), dict(analyzed.conditions)
    columns = {"price": table.column("price").to_pylist()}

    def fits(start: int, path: tuple[str, ...], variable: str) -> bool:
        if len(path) >= 14:
            return False
        rows, variables = range(start, start + len(path) + 1), (*path, variable)
        bindings = RowBindings(columns, Visible(0, table.num_rows), analyzed.members, rows, variables)
        return variable not in conditions or evaluate(conditions[variable], bindings) is True

    expected = {
        (start, path)
        for start in range(table.num_rows)
        for path in ways(automaton, start, table.num_rows, lambda path, name, start=start: fits(start, path, name))
    }
    assert {(row["first"], tuple(row["path"])) for row in found} == expected
    assert len(found) == len(expected) > 0


@pytest.mark.parametrize("name", MATCH_REGEX)
def test_match_regex_benchmark_finds_the_same_on_spark_and_in_process(name: str, spark) -> None:
    query = kleene.regex(**regex_arguments(name))
    frame = benchmark_input(name, spark)
    # An event's place among equal times must be the same in both.
    table = frame.orderBy(*frame.columns).toArrow()
    expected = query.match(table).to_pylist()
    found = query.match(frame).toArrow().to_pylist()
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert expected


def benchmark_input(name: str, spark):
    if name.startswith("twitter"):
        table = tweets(1_500)
        return spark.createDataFrame(table, spark_schema(table.schema))
    table = trades(4_000, symbols=20)
    frame = spark.createDataFrame(table, spark_schema(table.schema))
    if name == "finance3":
        return with_average_price(frame)
    return by_minute(frame) if name == "finance4" else frame


def with_average_price(frame):
    """Trades beside the volume-weighted average price of the last hundred of their symbol."""
    last = Window.partitionBy("symbol").orderBy("ts").rowsBetween(-100, 0)
    return frame.withColumn("vwap", F.sum(F.col("price") * F.col("size")).over(last) / F.sum("size").over(last))


def by_minute(frame):
    """The highest and lowest price of each symbol in each minute."""
    grouped = frame.groupBy("symbol", F.date_trunc("minute", "ts").alias("minute"))
    return grouped.agg(F.max("price").alias("high"), F.min("price").alias("low"))

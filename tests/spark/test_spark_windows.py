"""Cases of pattern windows on Spark: all but those that differ from others in frames and skips alone."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import kleene
from kleene.spark.schema import spark_schema
from row_cases import check_rows
from window_cases import TABLES, WindowCase, load_windows

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
OF_ENGINES = ("frames.toml", "skips.toml", "systematic.toml")
"""What these show is up to the engines, which run in tasks as they do in process."""


def named(session, tables: dict[str, pa.Table]) -> None:
    for name, table in tables.items():
        session.createDataFrame(table, spark_schema(table.schema)).createOrReplaceTempView(name)


@pytest.fixture(scope="module")
def session(spark) -> Iterator:
    named(spark, TABLES)
    yield spark
    for name in TABLES:
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("case", load_windows("spark", leaving_out=OF_ENGINES), ids=lambda case: case.name)
def test_pattern_window_case_on_spark(case: WindowCase, session) -> None:
    named(session, case.own_tables)
    try:
        check_rows(case.as_rows, kleene.sql(session, case.sql).toArrow())
    finally:
        named(session, {name: TABLES[name] for name in case.own_tables if name in TABLES})

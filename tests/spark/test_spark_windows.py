"""Every case of pattern windows on Spark."""

from __future__ import annotations

import pytest

import kleene
from kleene.spark.schema import spark_schema
from row_cases import check_rows
from window_cases import WindowCase, load_windows

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


@pytest.mark.parametrize("case", load_windows("spark"), ids=lambda case: case.name)
def test_pattern_window_case_on_spark(case: WindowCase, spark) -> None:
    for name, table in case.tables.items():
        spark.createDataFrame(table, spark_schema(table.schema)).createOrReplaceTempView(name)
    check_rows(case.as_rows, kleene.sql(spark, case.sql).toArrow())

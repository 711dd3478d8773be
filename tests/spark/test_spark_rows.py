"""Every row-pattern and regular-expression case on Spark; some of them also by Spark Connect."""

from __future__ import annotations

import re

import pytest

import kleene
from kleene.spark.schema import spark_schema
from row_cases import RowCase, check_rows, clause_of, load_rows, params_of, regex_of
from tweets import TWEETS

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


CASES = load_rows("rows", where="spark")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_row_pattern_case_on_spark(case: RowCase, classic_spark) -> None:
    check_on(classic_spark, case)


# What they add is computed in the tasks, which do not know how Spark was reached.
@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.name.startswith("more_")][::3], ids=lambda case: case.name
)
def test_row_pattern_case_by_connect(case: RowCase, remote_spark, monkeypatch) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    check_on(remote_spark, case)


def check_on(session, case: RowCase) -> None:
    frame = session.createDataFrame(case.table, spark_schema(case.table.schema))
    check_rows(case, clause_of(case).match(frame, **params_of(case)).toArrow())


@pytest.mark.parametrize("case", load_rows("regex", where="spark"), ids=lambda case: case.name)
def test_regex_case_on_spark(case: RowCase, either_spark) -> None:
    frame = either_spark.createDataFrame(case.table, spark_schema(case.table.schema))
    check_rows(case, regex_of(case).match(frame, **params_of(case)).toArrow())


def test_python_function_is_shipped_to_the_tasks(either_spark) -> None:
    def same_tags(left: str, right: str) -> bool:
        return sorted(re.findall(r"#\w+", left)) == sorted(re.findall(r"#\w+", right))

    query = kleene.regex(
        pattern=". sameTags",
        partition_by="author",
        order_by="t",
        predicates={"sameTags": "tagsEq(content, First(content))"},
        output={"author": "author", "n": "Count()"},
        functions={"tagsEq": same_tags},
    )
    found = query.match(either_spark.createDataFrame(TWEETS)).collect()
    assert sorted(row["author"] for row in found) == ["ann", "ann", "ann"]

"""Which tests go together where several processes share them (`pytest -n 2`), and in what order they are handed out."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

SPARK = "spark"
WITH_SPARK = (
    "tests/spark/",
    "tests/cli/test_cli.py",
    "tests/cli/test_cli_sql.py",
    "tests/test_examples.py",
    "tests/test_workloads.py",
)
WITHOUT_SPARK = (
    "tests/spark/test_spark_cluster.py",
    "tests/spark/test_stream_soak.py",
    "tests/spark/test_pipelines.py",
    "tests/spark/test_gathering.py",
    "tests/spark/test_stream_bucket.py",
    "tests/spark/test_stream_cases.py",
    "tests/spark/test_stream_generated.py",
)
"""Of those: the first three start a Spark of their own."""
LONG = (*WITHOUT_SPARK[:3], "tests/engine/compiled/", "tests/engine/", "tests/plan/")


class BySpark(LoadScopeScheduling):
    """One process runs all tests that need Spark, so that it starts once. All else is handed out by files."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(test: str) -> str:
    """The name of what is run by one process: of all that needs Spark, else of the file.

    >>> group_of("tests/spark/test_spark_sql.py::test_star[classic]")
    'spark'
    >>> group_of("tests/lang/test_regex.py::TestErrors::test_position")
    'tests/lang/test_regex.py'
    """
    is_with_spark = test.startswith(WITH_SPARK) and not test.startswith(WITHOUT_SPARK)
    return SPARK if is_with_spark else test.partition("::")[0]


def place_of(test: str) -> int:
    """What takes long is handed out first, so that the processes end together."""
    if group_of(test) == SPARK:
        return -1
    return next((place for place, start in enumerate(LONG) if test.startswith(start)), len(LONG))

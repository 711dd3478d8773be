from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kleene.spark.session import embedded_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One embedded Spark for the whole run."""
    session = embedded_session("kleene-tests", cores="2")
    yield session
    session.stop()

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kleene.spark.session import embedded_session


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Machine code made by the tests stays with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KLEENE_CACHE_DIR", str(tmp_path_factory.mktemp("machine_code")))
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One embedded Spark for the whole run."""
    session = embedded_session("kleene-tests", cores="2")
    yield session
    session.stop()


MOST_SECONDS = 30  # a machine may be slow; what hangs, hangs for longer


@pytest.fixture
def in_time() -> Iterator[None]:
    """Fails a test that hangs."""

    def too_slow(*_: object) -> None:
        pytest.fail(f"took longer than {MOST_SECONDS} seconds", pytrace=False)

    before = signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)

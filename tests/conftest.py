from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession

import messages
import quick
import quick_daemon
from kleene.spark.session import embedded_session
from quick_jvm import QUICK_JVM

if TYPE_CHECKING:
    from sharing import BySpark


SPARK_TESTS = Path(__file__).parent / "spark"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out tests that need Spark and slow ones, and skip a test where it would make machine code",
    )
    parser.addoption("--all-cases", action="store_true", help="run every case by Spark Connect, too")
    parser.addoption("--messages", metavar="FOLDER", help="write down every error and warning that the tests meet")


def pytest_configure(config: pytest.Config) -> None:
    # What compiles beside the tests would slow them down, and leave it to chance which tier answers.
    os.environ["KLEENE_BACKGROUND"] = "0"
    if config.getoption("quick"):
        config.pluginmanager.register(quick)
    if config.getoption("messages"):
        messages.pytest_configure(config)
    if hasattr(config, "workerinput"):
        # Processes that pytest starts are told how wide a terminal is; tests of the command line say that themselves.
        for name in ("COLUMNS", "LINES"):
            os.environ.pop(name, None)


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.getoption("messages"):
        messages.write(Path(config.getoption("messages")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> BySpark | None:
    if config.getoption("quick"):
        return None  # without Spark, any process may run any test
    from sharing import BySpark

    config.option.loadscopereorder = False  # the order is that of `place_of`
    return BySpark(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "classic_spark" in getattr(item, "fixturenames", ()) or item.path.is_relative_to(SPARK_TESTS):
            item.add_marker(pytest.mark.spark)
    if not config.getoption("all_cases"):
        kept = [item for item in items if not is_spared(item)]
        config.hook.pytest_deselected(items=[item for item in items if is_spared(item)])
        items[:] = kept
    if hasattr(config, "workerinput") and not config.getoption("quick"):
        put_in_order(items)


def is_spared(item: pytest.Item) -> bool:
    """Of the cases that run on Spark, a third runs by Connect, too: tasks do not know how Spark was reached."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if parameters.get("either_spark") != "connect" or not parameters.keys() & {"case", "number"}:
        return False
    return zlib.crc32(item.nodeid.encode()) % 3 != 0


def put_in_order(items: list[pytest.Item]) -> None:
    """As several processes run them."""
    from sharing import SPARK, group_of, place_of

    for item in items:
        if "classic_spark" in getattr(item, "fixturenames", ()) and group_of(item.nodeid) != SPARK:
            raise pytest.UsageError(
                f"{item.nodeid} needs Spark: add its file to WITH_SPARK in tests/support/sharing.py"
            )
    items.sort(key=lambda item: place_of(item.nodeid))


@pytest.fixture(scope="session", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Machine code made by the tests stays with them; the processes of one run share it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "machine_code"
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KLEENE_CACHE_DIR", str(folder))
        yield


@pytest.fixture(scope="session")
def classic_spark() -> Iterator[SparkSession]:
    """One embedded Spark for the whole run, which serves Spark Connect besides."""
    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": 0,  # one that is free when Spark binds it
        "spark.python.daemon.module": quick_daemon.__name__,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {QUICK_JVM}".strip())
        submitted = " ".join(f"--conf {name}={value}" for name, value in settings.items())
        patch.setenv("PYTHONPATH", str(Path(quick_daemon.__file__).parent), prepend=os.pathsep)
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{submitted} pyspark-shell")
        session = embedded_session("kleene-tests", cores="2")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_port(classic_spark: SparkSession) -> int:
    services: Any = classic_spark.sparkContext._jvm.org.apache.spark.sql.connect.service  # type: ignore[union-attr]
    return int(getattr(getattr(services, "SparkConnectService$"), "MODULE$").localPort())


@pytest.fixture(scope="session")
def spark(classic_spark: SparkSession) -> SparkSession:
    """What most tests use; a file of tests may put `either_spark` in its place."""
    return classic_spark


@pytest.fixture(scope="session")
def remote_spark(connect_port: int) -> Iterator[SparkSession]:
    """A client of the embedded Spark that knows it by Spark Connect only; for use in `either_spark`."""
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    session = RemoteSession.builder.remote(f"sc://127.0.0.1:{connect_port}").getOrCreate()
    yield session
    session.stop()


@pytest.fixture(params=["classic", "connect"])
def either_spark(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, classic_spark: SparkSession
) -> SparkSession:
    """The embedded Spark, once as it is and once by Spark Connect."""
    if request.param == "classic":
        return classic_spark
    session = request.getfixturevalue("remote_spark")
    # PySpark's functions look here for which kind of columns to make: by itself a process uses one kind only.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    return session


MOST_WORK = 30  # seconds of processors; several times what any test needs
MOST_TIME = 300  # seconds on the clock, for what hangs without working; a busy machine is slow


@pytest.fixture
def in_time() -> Iterator[None]:
    """Fails a test that hangs."""
    limits = [(signal.SIGPROF, signal.ITIMER_PROF, MOST_WORK), (signal.SIGALRM, signal.ITIMER_REAL, MOST_TIME)]

    def too_slow(number: int, _: object) -> None:
        limit = f"{MOST_WORK} seconds of work" if number == signal.SIGPROF else f"{MOST_TIME} seconds"
        pytest.fail(f"took longer than {limit}", pytrace=False)

    before = {number: signal.signal(number, too_slow) for number, _, _ in limits}
    for _, timer, seconds in limits:
        signal.setitimer(timer, seconds)
    yield
    for number, timer, _ in limits:
        signal.setitimer(timer, 0)
        signal.signal(number, before[number])

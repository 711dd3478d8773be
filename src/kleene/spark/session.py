"""An embedded Spark for the command line, the examples and the tests: how far it is, and what it complains about."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark import java_gateway
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from kleene import errors
from kleene.errors import ExecutionError, KleeneError
from kleene.spark.settings import MOST_BYTES, NO_LIMIT
from kleene.sqltext.subqueries import too_many_rows


def embedded_session(name: str = "kleene", cores: str = "*") -> SparkSession:
    """A Spark inside this process; quiet, without a web page, with as many shuffle partitions as cores."""
    # Spark's Python workers must be this interpreter, with Kleene in it.
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ.setdefault(variable, sys.executable)
    partitions = (os.cpu_count() or 2) if cores == "*" else int(cores)
    builder = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(partitions))
        .config(MOST_BYTES, str(NO_LIMIT))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    with resources.as_file(resources.files("kleene.spark").joinpath("log4j2.properties")) as logging:
        return _started(
            builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging.as_uri()}")
        )


def _started(builder: SparkSession.Builder) -> SparkSession:
    with _chatter_of_start() as chatter, _ended_if_interrupted():
        try:
            return builder.getOrCreate()
        except PySparkRuntimeError as error:
            said = chatter.read_text(errors="replace").strip().splitlines()
            raise ExecutionError(
                f"Spark did not start: {said[0] if said else error}",
                hint="Spark needs Java 17 or newer: install it, or set JAVA_HOME to where it is.",
            ) from None


@contextmanager
def _ended_if_interrupted() -> Iterator[None]:
    """While open, Ctrl-C ends the JVM that is being started; by itself it would stay, since nobody knows it yet."""
    begun: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            begun.append(self)

    launcher: Any = java_gateway
    before, launcher.Popen = launcher.Popen, Noted
    try:
        yield
    except BaseException:
        for process in begun:
            process.kill()
        raise
    finally:
        launcher.Popen = before


@contextmanager
def _chatter_of_start() -> Iterator[Path]:
    """While open, what is written to standard error goes to a file: the JVM and its launcher greet at length."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder, "start")
        kept = os.dup(2)
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
            try:
                yield path
            finally:
                os.dup2(kept, 2)
                os.close(kept)


def kleene_error(error: BaseException) -> KleeneError | None:
    """The error that Kleene raised inside a Spark task, found in the text of what Spark raised.

    >>> kleene_error(RuntimeError("Traceback …\\nkleene.errors.ExecutionError: 3 rows have no order key\\nDrop them."))
    ExecutionError('3 rows have no order key')
    """
    if "[SCALAR_SUBQUERY_TOO_MANY_ROWS]" in str(error):
        return too_many_rows()
    found = re.search(r"kleene\.errors\.(\w+): (.*?)(?:\n\n|\n\s+at |\Z| SQLSTATE)", str(error), re.DOTALL)
    if found is None:
        return None
    message, _, hint = found[2].strip().partition("\n")
    kind: Any = getattr(errors, found[1], None)
    if not (isinstance(kind, type) and issubclass(kind, KleeneError)):  # the text may hold anything
        kind = ExecutionError
    raised: KleeneError = kind(message, hint=hint or None)
    return raised


class TaskCounter:
    """While open, tells `report` every quarter of a second how many tasks are done, of how many that are known."""

    def __init__(self, session: SparkSession, report: Callable[[int, int], None]) -> None:
        self._tracker = session.sparkContext.statusTracker()
        self._report = report
        self._stages: dict[int, tuple[int, int]] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> TaskCounter:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._closed.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(0.25):
            for stage in self._tracker.getActiveStageIds():
                info = self._tracker.getStageInfo(stage)
                if info is not None:
                    self._stages[stage] = (info.numCompletedTasks, info.numTasks)
            active = set(self._tracker.getActiveStageIds())
            done = sum(total if stage not in active else part for stage, (part, total) in self._stages.items())
            self._report(done, sum(total for _, total in self._stages.values()))

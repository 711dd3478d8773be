"""An embedded Spark for the command line, the examples and the tests, and how to read what it complains about."""

from __future__ import annotations

import os
import re
import sys

from pyspark.sql import SparkSession

from kleene import errors
from kleene.errors import ExecutionError, KleeneError

# The fork server of Spark's Python workers must find this interpreter, with Kleene in it.
_PYTHON = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


def embedded_session(name: str = "kleene", cores: str = "*") -> SparkSession:
    """A Spark inside this process; quiet, without a web page, with as many shuffle partitions as cores."""
    for variable in _PYTHON:
        os.environ.setdefault(variable, sys.executable)
    partitions = (os.cpu_count() or 2) if cores == "*" else int(cores)
    return (
        SparkSession.builder.master(f"local[{cores}]")
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(partitions))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )


def kleene_error(error: BaseException) -> KleeneError | None:
    """The error that Kleene raised inside a Spark task, found in the text of what Spark raised.

    >>> kleene_error(RuntimeError("Traceback …\\nkleene.errors.ExecutionError: 3 rows have no order key\\nFilter them."))
    ExecutionError('3 rows have no order key')
    """
    found = re.search(r"kleene\.errors\.(\w+): (.*?)(?:\n\n|\n\s+at |\Z| SQLSTATE)", str(error), re.DOTALL)
    if found is None:
        return None
    message, _, hint = found[2].strip().partition("\n")
    kind = getattr(errors, found[1], ExecutionError)
    raised: KleeneError = kind(message, hint=hint or None)
    return raised

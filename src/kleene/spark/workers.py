"""Whether Spark's Python workers can import Kleene: asked before the first job of each session.

Workers may run another Python than the driver, as in a notebook, or where a virtual environment is used without being
activated. Spark would then fail in its tasks, with Kleene's name somewhere in hundreds of lines.
"""

from __future__ import annotations

import subprocess
import sys
from types import FunctionType
from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.errors import UnsupportedError, printable

# A folder called kleene beside a script can be imported, too, and is empty: it has no origin.
_FOUND = "from importlib.util import find_spec as f; import sys; s = f('kleene'); sys.exit(not (s and s.origin))"
_fine: WeakSet[Any] = WeakSet()


def check_workers(session: SparkSession) -> None:
    """An error, in a sentence, if the session's workers cannot import Kleene."""
    if session not in _fine:
        problem = _problem(session)
        if problem is not None:
            raise problem  # and asked again next time: the package may have been shipped by then
        _fine.add(session)


def _problem(session: SparkSession) -> UnsupportedError | None:
    context = getattr(session, "_sc", None)  # by Spark Connect there is none
    python = None if context is None or not str(context.master).startswith("local") else str(context.pythonExec)
    if python is not None and _is_fine_here(python):
        return None
    try:
        lacking = session.range(1).coalesce(1).select(F.udf(_by_value(_ask), "string", useArrow=False)("id")).collect()
    except Exception:  # what keeps this job from running elsewhere will be told by the next one
        return None if python is None else _cannot_import(python)
    return _cannot_import(lacking[0][0]) if lacking[0][0] else None


def _is_fine_here(python: str) -> bool:
    """The workers are processes of this machine: their Python is asked without Spark, which takes a moment only.

    Where it knows no Kleene, a worker still may, since Spark can ship packages.
    """
    if python == sys.executable:
        return True
    try:
        asked = subprocess.run([python, "-c", _FOUND], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return True  # Spark will say it best
    return asked.returncode == 0


def _ask(_: int) -> str:
    """The Python that runs this, if it cannot import Kleene."""
    import importlib.util
    import sys

    found = importlib.util.find_spec("kleene")
    return "" if found is not None and found.origin is not None else sys.executable


def _by_value(function: Any) -> FunctionType:
    """The function as one that belongs to no module, so that its code travels: a worker without Kleene can run it."""
    return FunctionType(function.__code__, {"__builtins__": __builtins__, "__name__": "__main__"}, function.__name__)


def _cannot_import(python: str) -> UnsupportedError:
    return UnsupportedError(
        f"Spark's workers run {printable(python, 200)}, which cannot import kleene",
        hint="Let them run the Python of this process, before the session is made: "
        "import os, sys; os.environ['PYSPARK_PYTHON'] = sys.executable. On a cluster, install kleene where its workers "
        "run, or ship it with spark.addArtifact('kleene.zip', pyfile=True).",
    )

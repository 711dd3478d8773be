"""Workers that cannot import Kleene are noticed before the job, and told of in a sentence."""

import os
import subprocess
import sys
import textwrap
import venv
from pathlib import Path

import pytest

import kleene
from kleene.spark import workers


@pytest.mark.slow
def test_another_python_is_told_of_before_the_job(tmp_path: Path) -> None:
    """As in a notebook: the driver's Python has Kleene, and `python3` of the path has not."""
    venv.create(tmp_path / "other", symlinks=True)
    script = textwrap.dedent("""
        import kleene, pyarrow as pa
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        frame = spark.createDataFrame([("A", 1)], "type string, t long")
        try:
            kleene.sase("EVENT A a").match(frame, order_by="t")
        except kleene.KleeneError as error:
            print("told:", error)
        spark.stop()
    """)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    environment["PATH"] = f"{tmp_path / 'other' / 'bin'}{os.pathsep}{environment['PATH']}"
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert "told: Spark's workers run" in done.stdout, done.stdout + done.stderr
    assert "which cannot import kleene" in done.stdout
    assert "os.environ['PYSPARK_PYTHON'] = sys.executable" in done.stdout


def test_workers_of_another_machine_are_asked_by_a_job(spark, monkeypatch) -> None:
    monkeypatch.setattr(workers, "_is_fine_here", lambda python: False)
    assert workers._problem(spark) is None


def test_what_a_worker_without_kleene_answers_becomes_an_error(spark, monkeypatch) -> None:
    monkeypatch.setattr(workers, "_is_fine_here", lambda python: False)
    monkeypatch.setattr(workers, "_ask", lambda _: "/usr/bin/python3")
    problem = workers._problem(spark)
    assert isinstance(problem, kleene.UnsupportedError)
    assert "/usr/bin/python3, which cannot import kleene" in str(problem)


def test_a_session_is_asked_once(spark, monkeypatch) -> None:
    workers.check_workers(spark)
    monkeypatch.setattr(workers, "_problem", lambda session: 1 / 0)
    workers.check_workers(spark)

"""The example of Spark Declarative Pipelines, run as users run it, with a file of refused views beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

import kleene
from kleene.datasets import retail_store
from quick_jvm import QUICK_JVM

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "pipeline"
COMMAND = Path(sys.executable).parent / "spark-pipelines"

# In a query function nothing may be analyzed: what is refused there must be refused in our words.
REFUSED = """
import json
from pathlib import Path

import kleene
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

spark = SparkSession.active()
SCHEMA = StructType([StructField("shelf_id", LongType())])
ROWS = kleene.match_recognize("ORDER BY shelf_id MEASURES A.shelf_id AS a PATTERN (A)")
CLAUSE = "MATCH_RECOGNIZE (ORDER BY shelf_id MEASURES A.shelf_id AS a PATTERN (A))"
ATTEMPTS = {
    "stream": lambda: ROWS.match(spark.readStream.table("readings"), schema=SCHEMA),
    "text": lambda: ROWS.match(spark.read.table("readings"), schema="shelf_id LONG"),
    "two": lambda: kleene.sql(spark, f"SELECT * FROM readings {CLAUSE} a, readings {CLAUSE} b", schema=SCHEMA),
    "none": lambda: ROWS.match(spark.read.table("readings")),
}

@dp.materialized_view
def attempts():
    told = {}
    for name, attempt in ATTEMPTS.items():
        try:
            attempt()
        except kleene.KleeneError as error:
            told[name] = error.message
    Path(__file__).with_name("told.json").write_text(json.dumps(told))
    return spark.range(1)
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 3):
        pytest.skip("kleene.sql in a pipeline needs PySpark 4.3")
    pytest.importorskip("yaml", reason="spark-pipelines needs pyyaml")
    folder = tmp_path_factory.mktemp("pipeline") / "retail_store"
    shutil.copytree(EXAMPLE, folder)
    spec = folder / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/kleene_retail_store", (folder / "storage").as_uri()))
    (folder / "transformations" / "refused.py").write_text(REFUSED)
    environment = os.environ | {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": QUICK_JVM,
    }
    done = subprocess.run(
        [COMMAND, "run"], cwd=folder, capture_output=True, text=True, timeout=300, env=environment, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    assert "Run is COMPLETED" in done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_example_finds_what_match_finds(ran: Path) -> None:
    store = retail_store(items=400)
    thefts = pq.read_table(ran / "spark-warehouse" / "thefts")
    assert set(thefts.column("id").to_pylist()) == store.stolen
    query = (EXAMPLE.parent / "queries" / "shoplifting.sase").read_text()
    expected = kleene.sase(query).match(store.readings, order_by="ts")
    assert sorted(map(repr, thefts.to_pylist())) == sorted(map(repr, expected.to_pylist()))
    by_hour = pq.read_table(ran / "spark-warehouse" / "thefts_by_hour")
    assert sum(by_hour.column("stolen").to_pylist()) == len(store.stolen)


@pytest.mark.slow
def test_clause_in_sql_text(ran: Path) -> None:
    readings = pq.read_table(ran / "spark-warehouse" / "readings")
    clause = """PARTITION BY id ORDER BY ts MEASURES A.shelf_id AS from_shelf, B.shelf_id AS to_shelf
        AFTER MATCH SKIP TO LAST B PATTERN (A B)
        DEFINE A AS A.type = 'SHELF-READING', B AS B.type = 'SHELF-READING' AND B.shelf_id <> A.shelf_id"""
    expected = kleene.match_recognize(clause).match(readings)
    moves = pq.read_table(ran / "spark-warehouse" / "moves")
    assert sorted(map(repr, moves.to_pylist())) == sorted(map(repr, expected.to_pylist()))
    assert moves.num_rows > 20


@pytest.mark.slow
def test_what_is_refused_is_refused_in_our_words(ran: Path) -> None:
    told = json.loads((ran / "transformations" / "told.json").read_text())
    assert told == {
        "stream": "the DataFrame is a stream, but schema was given: a table function keeps nothing between "
        "micro-batches, so it would miss matches",
        "text": "a query function of a pipeline cannot use Spark's parser to read a schema",
        "two": "schema declares the columns of one table, but the text has several MATCH_RECOGNIZE clauses",
        "none": "a query function of a pipeline cannot ask Spark for the columns of a DataFrame",
    }

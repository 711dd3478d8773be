"""`make test-install`: what the extras install is enough for what they promise, from the wheel, in empty environments.

Each extra gets an environment of its own under .venvs, with nothing but the wheel and what it asks for.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = ROOT / ".venvs" / "install"
MATCH = """
import kleene
events = [{"type": "A", "t": 1}, {"type": "B", "t": 2}]
assert kleene.sase("PATTERN SEQ(A a, B b) RETURN b.t AS t").match(events, order_by="t").to_pylist() == [{"t": 2}]
"""
SPARK = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
import kleene
from pyspark.sql import SparkSession
rocksdb = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.conf.set("spark.sql.streaming.stateStore.providerClass", rocksdb)
frame = spark.createDataFrame([("A", 1), ("B", 2)], "type string, t long")
query = kleene.sase("PATTERN SEQ(A a, B b) RETURN b.t AS t")
assert [row.t for row in query.match(frame, order_by="t").collect()] == [2]
"""
STREAM = (
    SPARK
    + """
import pathlib, tempfile
place = pathlib.Path(tempfile.mkdtemp())
frame.selectExpr("type", "timestamp_seconds(t) AS t").write.parquet(str(place / "in"))
read = spark.readStream.schema("type string, t timestamp").parquet(str(place / "in")).withWatermark("t", "1 second")
found = kleene.sase("PATTERN SEQ(A a, B b) WITHIN 1 minute RETURN a.type AS a").match(
    read, order_by="t", stream=kleene.StreamOptions(buckets=1)
)
running = found.writeStream.format("parquet").option("checkpointLocation", str(place / "state"))
running.trigger(availableNow=True).start(str(place / "out")).awaitTermination()
spark.stop()
"""
)
CONNECT = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
import kleene
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[1]").getOrCreate()
frame = spark.createDataFrame([("A", 1), ("B", 2)], "type string, t long")
query = kleene.sase("PATTERN SEQ(A a, B b) RETURN b.t AS t")
assert [row.t for row in query.match(frame, order_by="t").collect()] == [2]
spark.stop()
"""
PIPELINES = """
import os, runpy, subprocess, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
subprocess.run(["spark-pipelines", "--help"], check=True, stdout=subprocess.DEVNULL)
import kleene, pyspark.pipelines
"""
SQL = """
import kleene, pyarrow as pa
text = "SELECT b FROM x MATCH_RECOGNIZE (ORDER BY t MEASURES B.t AS b PATTERN (A B) DEFINE B AS B.t > PREV(B.t))"
assert kleene.sql(text, tables={"x": pa.table({"t": [1, 2]})}).to_pylist() == [{"b": 2}]
"""
EDITOR = """
from kleene.editor.server import make_server
assert make_server("0").name == "kleene"
"""
PLOT = """
import kleene
events = [{"type": "A", "t": 1}, {"type": "B", "t": 2}]
assert "<svg" in kleene.sase("PATTERN SEQ(A a, B b)").plot(events, order_by="t").svg()
"""
CHECKS = {
    "": [("match", MATCH), ("command line", "import kleene.cli")],
    "sql": [("query", SQL)],
    "editor": [("server", EDITOR)],
    "plot": [("picture", PLOT)],
    "spark": [("table", SPARK), ("stream", STREAM)],
    "connect": [("connect", CONNECT)],
    "pipelines": [("pipelines", PIPELINES)],
}


def main() -> None:
    wheel = made_wheel(made_source())
    for extra, scripts in CHECKS.items():
        python = environment(extra or "core", f"{wheel}[{extra}]" if extra else str(wheel))
        for name, script in scripts:
            done = subprocess.run([python, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
            print(f"{'ok    ' if done.returncode == 0 else 'FAILED'} {extra or 'core'}: {name}", flush=True)
            if done.returncode != 0:
                print(done.stderr[-3000:])
                sys.exit(1)


def made_source() -> Path:
    """The source distribution, which is what the wheel is made of: what it lacks would be lost."""
    folder = PLACES / "source"
    shutil.rmtree(folder, ignore_errors=True)
    build = environment("build", "build")
    subprocess.run(
        [build, "-m", "build", "--sdist", "--outdir", str(folder), str(ROOT)], check=True, stdout=subprocess.DEVNULL
    )
    return next(folder.glob("kleene-*.tar.gz"))


def made_wheel(source: Path) -> Path:
    folder = PLACES / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)],
        check=True,
    )
    return next(folder.glob("kleene-*.whl"))


def environment(name: str, wanted: str) -> str:
    place = PLACES / name
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
    pip = [str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, wanted, "--constraint", str(ROOT / "constraints.txt")], check=True)
    return str(place / "bin" / "python")


if __name__ == "__main__":
    main()

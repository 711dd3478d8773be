"""A client of Spark Connect in a process of its own, which has nothing of classic Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def test_client_of_spark_connect_needs_no_java(remote_spark, connect_port, tmp_path) -> None:
    script = textwrap.dedent(
        f"""
        import kleene
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.remote("sc://127.0.0.1:{connect_port}").create()
        rows = [("Shelf", 1, "x"), ("Exit", 5, "x"), ("Shelf", 6, "y")]
        events = spark.createDataFrame(rows, "type STRING, t BIGINT, id STRING")
        query = kleene.sase("EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [id] WITHIN 10")
        print(query.match(events, order_by="t").selectExpr("id", "a.t", "b.t").collect())
        events.createOrReplaceTempView("events")
        clause = "MATCH_RECOGNIZE (ORDER BY t MEASURES max(A.t) AS m, median(A.t) AS mid PATTERN (A{{2}}) )"
        print(kleene.sql(spark, f"WITH e AS (SELECT * FROM events) SELECT m, mid FROM e {{clause}}").collect())
        spark.stop()
        """
    )
    environment = {name: value for name, value in os.environ.items() if name != "PATH"} | {"JAVA_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=180, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-2:] == ["[Row(id='x', t=1, t=5)]", "[Row(m=5, mid=3.0)]"]

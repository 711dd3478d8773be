"""A store's readings, the thefts among them, and how many there were each hour, as materialized views."""

from __future__ import annotations

import pyarrow as pa
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampNTZType

import kleene
from kleene.datasets import retail_store

spark = SparkSession.active()

# Query functions may not ask Spark for columns, so the pipeline says what they are.
READINGS = StructType(
    [
        StructField("type", StringType()),
        StructField("ts", TimestampNTZType()),
        StructField("id", StringType()),
        StructField("shelf_id", LongType()),
        StructField("counter_id", LongType()),
        StructField("door_id", LongType()),
    ]
)

# Items that were on a shelf and then left the store without passing a counter (SASE 2006, Q2).
SHOPLIFTING = kleene.sase("""
    EVENT SEQ(SHELF-READING x, !(COUNTER-READING y), EXIT-READING z)
    WHERE [id]
    WITHIN 12 hours
    RETURN x.id AS id, x.shelf_id AS shelf, z.door_id AS door, x.ts AS taken, z.ts AS gone
""")


def generated_readings() -> pa.Table:
    by_type = retail_store(items=400).readings
    typed = [table.append_column("type", pa.array([name] * len(table))) for name, table in by_type.items()]
    return pa.concat_tables(typed, promote_options="default").select(READINGS.names)


@dp.materialized_view
def readings() -> DataFrame:
    return spark.createDataFrame(generated_readings(), READINGS)


@dp.materialized_view
def thefts() -> DataFrame:
    return SHOPLIFTING.match(spark.read.table("readings"), order_by="ts", schema=READINGS)


@dp.materialized_view
def thefts_by_hour() -> DataFrame:
    hour = F.date_trunc("hour", F.col("gone")).alias("hour")
    return spark.read.table("thefts").groupBy(hour).agg(F.countDistinct("id").alias("stolen"))


@dp.materialized_view
def moves() -> DataFrame:
    """Items that one shelf read, and then another one."""
    return kleene.sql(
        spark,
        """SELECT id, from_shelf, to_shelf
           FROM readings MATCH_RECOGNIZE (
             PARTITION BY id ORDER BY ts
             MEASURES A.shelf_id AS from_shelf, B.shelf_id AS to_shelf
             AFTER MATCH SKIP TO LAST B
             PATTERN (A B)
             DEFINE A AS A.type = 'SHELF-READING', B AS B.type = 'SHELF-READING' AND B.shelf_id <> A.shelf_id
           )
           WHERE to_shelf IS NOT NULL""",
        schema=READINGS,
    )

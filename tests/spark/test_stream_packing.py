from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from kleene.spark.streaming.packing import bucket_names


@pytest.mark.parametrize(("buckets", "partitions"), [(16, 2), (16, 16), (64, 8), (6, 3), (1, 1)])
def test_partitions_of_spark_get_equally_many_buckets(spark: SparkSession, buckets: int, partitions: int) -> None:
    names = [(name,) for name in bucket_names(buckets).tolist()]
    placed = spark.createDataFrame(names, "bucket LONG").repartition(partitions, "bucket")
    found = Counter(row[0] for row in placed.select(F.spark_partition_id()).collect())
    assert set(found.values()) == {buckets // partitions}
    assert len(found) == partitions
    assert len(set(names)) == buckets

"""Files of events and of matches, read and written by Spark."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import ArrayType, MapType, StructType

from kleene.files import EventFiles, FileKind, output_kind
from kleene.spark.names import quoted_column


def read_spark(session: SparkSession, found: EventFiles) -> DataFrame:
    """The events of the files; types of CSV columns are found by looking at them."""
    paths = [str(file.resolve()) for file in found.files]
    match found.kind:
        case FileKind.PARQUET:
            return session.read.parquet(*paths)
        case FileKind.CSV:
            return session.read.csv(paths, header=True, inferSchema=True)
    return session.read.option("inferTimestamp", "true").json(paths)


def write_spark(frame: DataFrame, path: Path, overwrite: bool) -> None:
    """The rows as a folder of files, as Spark writes them: each task its own."""
    kind = output_kind(path)
    if kind is FileKind.CSV:
        frame = frame.select(*(_flat(frame, name) for name in frame.columns))
    writer = frame.write.mode("overwrite" if overwrite else "error")
    match kind:
        case FileKind.PARQUET:
            writer.parquet(str(path.resolve()))
        case FileKind.CSV:
            writer.csv(str(path.resolve()), header=True)
        case FileKind.JSON:
            writer.json(str(path.resolve()))


def _flat(frame: DataFrame, name: str) -> Column:
    """CSV has no nested values: structs and arrays are written as JSON."""
    column = quoted_column(name)
    nested = isinstance(frame.schema[name].dataType, (ArrayType, MapType, StructType))
    return F.to_json(column).alias(name) if nested else column

"""Files of events and of matches, read and written by Spark."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import ArrayType, MapType, StructType

from kleene.files import EventFiles, FileKind, endings_of, output_kind
from kleene.spark.names import quoted_column


def read_spark(session: SparkSession, found: EventFiles) -> DataFrame:
    """The events of the files; types of CSV columns are found by looking at them."""
    paths = [_exact(file) for file in found.files]
    match found.kind:
        case FileKind.PARQUET:
            return session.read.parquet(*paths)
        case FileKind.CSV:
            return session.read.csv(paths, header=True, inferSchema=True)
    return session.read.option("inferTimestamp", "true").json(paths)


def read_stream(session: SparkSession, found: EventFiles, most_files: int | None = None) -> DataFrame:
    """The folder as a stream: the files that are there say what columns it has, and those that come are read as such.

    most_files: how many files a micro-batch takes at most; they are taken by the time of their last change.
    """
    reader = session.readStream.schema(read_spark(session, found).schema)
    # Only files of the kind: writers give a file its name when it is whole.
    reader = reader.option("pathGlobFilter", _names_of(found.kind)).option("recursiveFileLookup", "true")
    if most_files is not None:
        reader = reader.option("maxFilesPerTrigger", most_files)
    if found.kind is FileKind.CSV:
        reader = reader.option("header", "true")
    return reader.format(found.kind.value).load(_exact(found.path))


def _exact(path: Path) -> str:
    """The path as Spark reads no pattern into it: a file called {a,b}.csv is one file."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path.resolve().as_posix())


def _names_of(kind: FileKind) -> str:
    """A pattern of file names as Hadoop reads it, in letters of either case."""
    endings = ["".join(f"[{a}{a.upper()}]" if a.isalpha() else a for a in ending) for ending in endings_of(kind)]
    return f"*{{{','.join(endings)}}}"


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

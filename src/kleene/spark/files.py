"""Files of events and of matches on Spark, in the types and with the parsers and writers that Arrow has in process.

Text files are read, and all files written, by Arrow inside Spark's tasks: Spark's own readers and writers have another
mind about types, empty fields and durations. Parquet files Spark reads itself, so that it can leave columns out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.errors import SchemaError, printable
from kleene.files import EventFiles, FileKind, check_replaceable, endings_of, output_kind, replaced_folder
from kleene.files.reading import file_batches, file_schema
from kleene.files.replacing import told
from kleene.files.types import check_zone_fits, common_column, common_schema, common_type, holds, is_nanosecond
from kleene.files.writing import write_rows
from kleene.spark.names import plain_names, plain_schema, quoted_column
from kleene.spark.schema import arrow_schema, spark_schema, spark_type

_BINARY_FILE = "path STRING, modificationTime TIMESTAMP, length LONG, content BINARY"


def session_in_utc(session: SparkSession) -> SparkSession:
    """A session of its own in which times are the same as in process."""
    own = session.newSession()
    own.conf.set("spark.sql.session.timeZone", "UTC")
    return own


def read_spark(session: SparkSession, found: EventFiles) -> DataFrame:
    """The events of the files."""
    schema = _schema(found)
    if found.kind is FileKind.PARQUET:
        return _in_common_types(_parquet(session, found), schema, found)
    paths = [(str(file.resolve()),) for file in found.files]
    return _read_in_tasks(session.createDataFrame(paths, "path string").repartition(len(paths)), found, schema)


def _parquet(session: SparkSession, found: EventFiles) -> DataFrame:
    reader = session.read.option("mergeSchema", str(len(found.files) > 1).lower())
    return reader.parquet(*(_literal(file) for file in found.files))


def read_stream(session: SparkSession, found: EventFiles, most_files: int | None = None) -> DataFrame:
    """The folder as a stream: the files that are there say what columns it has, and those that come are read as such.

    most_files: how many files a micro-batch takes at most; they are taken by the time of their last change.
    """
    schema = _schema(found)
    # Only files of the kind: writers give a file its name when it is whole.
    reader = session.readStream.option("pathGlobFilter", _names_of(found.kind)).option("recursiveFileLookup", "true")
    if most_files is not None:
        reader = reader.option("maxFilesPerTrigger", most_files)
    if found.kind is FileKind.PARQUET:
        frame = reader.schema(_parquet(session, found).schema).parquet(_literal(found.path))
        return _in_common_types(frame, schema, found)
    # Of a file only its path is asked for; Spark then does not read what is in it.
    paths = reader.format("binaryFile").schema(_BINARY_FILE).load(_literal(found.path)).select("path")
    return _read_in_tasks(paths, found, schema)


def _schema(found: EventFiles) -> pa.Schema:
    schema = file_schema(found)
    check_zone_fits(schema, found.zone)
    fine = [field.name for field in schema if holds(field.type, is_nanosecond)]
    if fine:
        raise SchemaError(
            f"the column '{printable(fine[0])}' has nanoseconds, but Spark's times end at microseconds",
            hint="Match with --in-process, or round the column to microseconds.",
        )
    return schema


def _read_in_tasks(paths: DataFrame, found: EventFiles, schema: pa.Schema) -> DataFrame:
    kind, zone, form = found.kind, found.zone, found.form
    target = common_schema(plain_schema(schema))

    def read(paths: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in paths:
            for path in batch.column(0).to_pylist():
                for rows in file_batches(_local(path), kind, schema, form):
                    columns = [common_column(pa.chunked_array([column]), zone) for column in rows.columns]
                    yield from pa.table(columns, schema=target).to_batches()

    return paths.mapInArrow(read, spark_schema(target)).toDF(*schema.names)


def _local(path: str) -> Path:
    """A path as Spark's file sources tell it, or as we told it ourselves."""
    return Path(path.removeprefix("file://").removeprefix("file:"))


def _literal(path: Path) -> str:
    """The path as Spark takes it, no letter of which is a pattern."""
    return "".join(f"\\{letter}" if letter in "{}[]*?\\" else letter for letter in str(path.resolve()))


def _names_of(kind: FileKind) -> str:
    """A pattern of file names as Hadoop reads it, in letters of either case."""
    endings = ["".join(f"[{a}{a.upper()}]" if a.isalpha() else a for a in ending) for ending in endings_of(kind)]
    return f"*{{{','.join(endings)}}}"


# --- types -----------------------------------------------------------------------------------------------------------


def _in_common_types(frame: DataFrame, schema: pa.Schema, found: EventFiles) -> DataFrame:
    """What Spark read from Parquet files, in the types that Arrow's reader gives the columns."""
    told = {name: spark_type(type_) for name, type_ in found.form.types}
    columns = {field.name: _common(quoted_column(field.name), field.type, found.zone) for field in schema}
    return frame.select(
        *((column.cast(told[name]) if name in told else column).alias(name) for name, column in columns.items())
    )


def _common(column: Column, type_: pa.DataType, zone: str) -> Column:
    if pa.types.is_timestamp(type_) and type_.tz is None and zone != "UTC":
        column = F.convert_timezone(F.lit(zone), F.lit("UTC"), column)
    if pa.types.is_duration(type_):  # Parquet has no such type: Spark sees whole numbers
        per_second = {"s": 1, "ms": 1_000, "us": 1_000_000}[type_.unit]
        return F.make_dt_interval(F.lit(0), F.lit(0), F.lit(0), column.cast("decimal(38, 6)") / F.lit(per_second))
    is_plain = common_type(type_) == type_ or holds(type_, pa.types.is_duration)
    return column if is_plain else column.cast(spark_type(common_type(type_)))


# --- writing ---------------------------------------------------------------------------------------------------------


def write_spark(frame: DataFrame, path: Path) -> None:
    """The rows as a folder of files, each task writing its own, in place of what is there."""
    kind = output_kind(path)
    schema = arrow_schema(frame.schema, "UTC")
    plain = pa.schema([(field.name, field.type) for field in schema])
    with replaced_folder(path, partial(check_replaceable, endings=tuple(endings_of(kind)))) as draft:
        numbered = frame.toDF(*plain_names(frame.columns))
        written = numbered.mapInArrow(partial(_written, str(draft), str(path), kind, plain), "rows long").count()
        if not written:
            _write_part(draft / f"part-00000.{kind.value}", str(path), kind, plain, ())
        (draft / "_SUCCESS").touch()


def _written(
    folder: str, target: str, kind: FileKind, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """How many rows the task has written to its file; a task without rows writes none."""
    rest = iter(batches)
    first = next((batch for batch in rest if batch.num_rows), None)
    if first is None:
        return
    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    tables = (
        pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema) for batch in chain([first], rest)
    )
    place = Path(folder, f"part-{number:05}.{kind.value}")
    rows = _write_part(place, target, kind, schema, (batch for table in tables for batch in table.to_batches()))
    yield pa.RecordBatch.from_pydict({"rows": pa.array([rows], pa.int64())})


def _write_part(place: Path, target: str, kind: FileKind, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """A file of the output that will be called by its target."""
    with told(Path(target)), place.open("wb") as file:
        count = write_rows(schema, batches, kind, file)
        file.flush()
        os.fsync(file.fileno())
    return count

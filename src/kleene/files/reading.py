"""Files of events to one Arrow table, or to batches of a schema that is known beforehand, as Spark's tasks need them.

Both ways read a file with the same parser into the same types, so that a command gives one answer wherever it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from kleene.errors import SchemaError, listed, printable
from kleene.files.csv_files import MisfitError, csv_batches, csv_table, settled_csv
from kleene.files.found import EventFiles, FileKind
from kleene.files.json_files import json_batches, json_schema
from kleene.files.types import common_table

_PARQUET = pyarrow.dataset.ParquetFileFormat(coerce_int96_timestamp_unit="us")


def read_arrow(found: EventFiles) -> pa.Table:
    """The events of the files as one table."""
    with _told(found):
        match found.kind:
            case FileKind.PARQUET:
                paths, schema = [str(file) for file in found.files], file_schema(found)
                table = pyarrow.dataset.dataset(paths, schema=schema, format=_PARQUET).to_table()
            case FileKind.CSV:
                table = pa.concat_tables(settled_csv(found.files, csv_table)[1])
            case FileKind.JSON:
                schema = file_schema(found)
                batches = [batch for file in found.files for batch in json_batches(file, schema)]
                table = pa.Table.from_batches(batches, schema)
        return common_table(table, found.zone)


def file_schema(found: EventFiles) -> pa.Schema:
    """The columns as the files have them: of text files, with types that fit all their values."""
    with _told(found):
        if found.kind is FileKind.PARQUET:
            schema = pa.unify_schemas(list(map(_parquet_schema, found.files)), promote_options="permissive")
        elif found.kind is FileKind.CSV:
            schema, _ = settled_csv(found.files, _looked_through)
        else:
            schema = json_schema(found.files)
    if not len(schema):
        raise SchemaError(f"'{printable(str(found.path))}' is empty: nothing tells what columns there are")
    return schema


def _parquet_schema(file: Path) -> pa.Schema:
    """The columns of the file; times in the old form of 96 bits are instants, which Arrow does not know."""
    with pyarrow.parquet.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        schema: pa.Schema = opened.schema_arrow.remove_metadata()
        old = {
            column.path
            for column in map(opened.schema.column, range(len(opened.schema)))
            if column.physical_type == "INT96"
        }
    return pa.schema([f.with_type(pa.timestamp("us", "UTC")) if f.name in old else f.remove_metadata() for f in schema])


def _looked_through(file: Path, schema: pa.Schema) -> None:
    for _ in csv_batches(file, schema):
        pass


def text_batches(file: Path, kind: FileKind, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV or JSON file; an error if a value does not fit the schema."""
    batches = csv_batches if kind is FileKind.CSV else json_batches
    try:
        yield from batches(file, schema)
    except MisfitError as misfit:
        raise SchemaError(
            str(misfit), hint=f"The files that were there at the start say what columns there are: {_columns(schema)}."
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, kind, error) from None


def _columns(schema: pa.Schema) -> str:
    return listed(f"{field.name} {field.type}" for field in schema)


def unreadable(path: Path, kind: FileKind, error: Exception) -> SchemaError:
    words = (str(error).splitlines() or [type(error).__name__])[0]
    return SchemaError(f"'{printable(str(path))}' cannot be read as {kind.value}: {printable(words, 300)}")


@contextmanager
def _told(found: EventFiles) -> Iterator[None]:
    try:
        yield
    except MisfitError as misfit:
        raise SchemaError(str(misfit), hint="Did the file change while it was read?") from None
    except (pa.ArrowException, OSError) as error:
        raise unreadable(found.path, found.kind, error) from None

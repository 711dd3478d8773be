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

from kleene.errors import SchemaError, did_you_mean, listed, printable
from kleene.files.csv_files import PLAIN, MisfitError, csv_batches, csv_table, settled_csv, warn_of_missing
from kleene.files.found import EventFiles, FileKind, Form, is_text
from kleene.files.json_files import json_batches, json_schema
from kleene.files.types import common_column, common_table

_PARQUET = pyarrow.dataset.ParquetFileFormat(coerce_int96_timestamp_unit="us")


def read_arrow(found: EventFiles) -> pa.Table:
    """The events of the files as one table."""
    with _told(found):
        match found.kind:
            case FileKind.PARQUET:
                paths, schema = [str(file) for file in found.files], file_schema(found)
                table = pyarrow.dataset.dataset(paths, schema=schema, format=_PARQUET).to_table()
            case FileKind.ARROW:
                schema = file_schema(found)
                table = pa.Table.from_batches(
                    [one for file in found.files for one in arrow_batches(file, schema)], schema
                )
            case FileKind.CSV:
                table = pa.concat_tables(settled_csv(found.files, found.form, csv_table)[1])
                warn_of_missing(table)
            case FileKind.JSON:
                schema = file_schema(found)
                batches = [batch for file in found.files for batch in json_batches(file, schema)]
                table = pa.Table.from_batches(batches, schema)
        return _as_told(common_table(table, found.zone), found)


def _as_told(table: pa.Table, found: EventFiles) -> pa.Table:
    """The table with the types that the caller told for columns; those of text files are read as such already."""
    for name, type_ in found.form.types:
        if name not in table.column_names:
            raise SchemaError(
                f"'{printable(str(found.path))}' has no column '{printable(name)}' to convert",
                hint=f"Columns: {listed(table.column_names)}.{did_you_mean(name, table.column_names)}",
            )
        if not is_text(found.kind):
            number, column = table.column_names.index(name), table.column(name)
            try:
                table = table.set_column(number, name, common_column(column.cast(type_), found.zone))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                words = printable(str(error).splitlines()[0], 200)
                raise SchemaError(f"the column '{printable(name)}' is not of type {type_}: {words}") from None
    return table


def file_schema(found: EventFiles) -> pa.Schema:
    """The columns as the files have them: of text files, with types that fit all their values."""
    with _told(found):
        if found.kind is FileKind.PARQUET:
            schema = pa.unify_schemas(list(map(parquet_schema, found.files)), promote_options="permissive")
        elif found.kind is FileKind.ARROW:
            schema = pa.unify_schemas(list(map(_arrow_schema, found.files)), promote_options="permissive")
        elif found.kind is FileKind.CSV:
            schema, _ = settled_csv(found.files, found.form, _looked_through)
        else:
            told = dict(found.form.types)
            schema = json_schema(found.files)
            schema = pa.schema([f.with_type(told[f.name]) if f.name in told else f for f in schema])
    if not len(schema):
        raise SchemaError(f"'{printable(str(found.path))}' is empty, so its columns are unknown")
    return schema


def parquet_schema(file: Path) -> pa.Schema:
    with pyarrow.parquet.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        return schema_of_parquet(opened)


def schema_of_parquet(opened: pyarrow.parquet.ParquetFile) -> pa.Schema:
    """The columns of the file; times in the old form of 96 bits are instants, which Arrow does not know."""
    schema: pa.Schema = opened.schema_arrow.remove_metadata()
    old = {
        column.path
        for column in map(opened.schema.column, range(len(opened.schema)))
        if column.physical_type == "INT96"
    }
    return pa.schema([f.with_type(pa.timestamp("us", "UTC")) if f.name in old else f.remove_metadata() for f in schema])


def _arrow_schema(file: Path) -> pa.Schema:
    with pa.OSFile(str(file)) as opened_file:
        return unencoded_schema(pa.ipc.open_file(opened_file).schema)


def unencoded_schema(schema: pa.Schema) -> pa.Schema:
    """The columns without what says how they are held in a file: dictionaries differ from file to file."""
    types = (field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in schema)
    return pa.schema(list(zip(schema.names, types, strict=True)))


def arrow_batches(file: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file by the names of their columns: NULL where the file has none."""
    with pa.OSFile(str(file)) as opened_file:
        opened = pa.ipc.open_file(opened_file)
        for number in range(opened.num_record_batches):
            yield from as_schema(pa.Table.from_batches([opened.get_batch(number)]), schema).to_batches()


def as_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of the schema, NULL where the table has none."""
    there = set(table.column_names)
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in there
        else pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _looked_through(file: Path, schema: pa.Schema, form: Form) -> None:
    for _ in csv_batches(file, schema, form):
        pass


def file_batches(file: Path, kind: FileKind, schema: pa.Schema, form: Form = PLAIN) -> Iterator[pa.RecordBatch]:
    """The rows of a file that is not Parquet; an error if a value does not fit the schema."""
    try:
        match kind:
            case FileKind.CSV:
                yield from csv_batches(file, schema, form)
            case FileKind.JSON:
                yield from json_batches(file, schema)
            case _:
                yield from arrow_batches(file, schema)
    except MisfitError as misfit:
        raise SchemaError(
            str(misfit), hint=f"The columns come from the files that were there at the start: {_columns(schema)}."
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

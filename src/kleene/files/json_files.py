"""JSON lines as Arrow tables, a few megabytes of lines at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.json

from kleene.errors import SchemaError, printable
from kleene.files.csv_files import TIMES, MisfitError

_BLOCK = 8 << 20
_LOCAL = (pa.date32(), pa.timestamp("us"), pa.timestamp("ns"), pa.string())
_ZONED = (pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"), pa.string())
"""What texts may be: times without a zone or with one, but not some with and some without."""


def json_schema(files: Sequence[Path]) -> pa.Schema:
    """The columns of all the files, each with a type that fits its values; all files are read for that.

    A column of texts is one of times if all its values are; texts inside nested values stay texts.
    """
    schema = pa.schema([])
    texts: dict[str, pa.DataType] = {}
    for file in files:
        for block in _blocks(file):
            table = _inferred(block, [field for field in schema if field.type == pa.string()])
            schema = _unified(schema, table.schema, file)
            for name in table.column_names:
                column = table.column(name)
                if column.type == pa.string() and column.null_count < len(column):
                    texts[name] = _text_type(column, texts.get(name))
    return pa.schema([(field.name, texts.get(field.name, field.type)) for field in schema])


def json_batches(file: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the file as they fit the schema; a value that does not fit raises a `MisfitError`."""
    raw = pa.schema([(f.name, pa.string() if f.type in TIMES else f.type) for f in schema])
    options = pyarrow.json.ParseOptions(explicit_schema=raw, unexpected_field_behavior="ignore")
    for block in _blocks(file):
        table = _parsed(block, options).select(schema.names)
        columns = [_as_times(table.column(field.name), field, file) for field in schema]
        yield from pa.table(columns, schema=schema).to_batches()


def _as_times(column: pa.ChunkedArray, field: pa.Field, file: Path) -> pa.ChunkedArray:
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid:
        text = next(value for value in column.drop_null() if not _fits(pa.chunked_array([[value.as_py()]]), field.type))
        where = f"the column '{printable(field.name)}' of '{printable(str(file))}'"
        raise MisfitError(
            field.name, f"{where} has '{printable(text.as_py())}', which is not of type {field.type}"
        ) from None


def _inferred(block: bytes, texts: list[pa.Field]) -> pa.Table:
    """The block with the types that its values have; Arrow takes some texts for times, with or without a zone."""
    table = _parsed(block, pyarrow.json.ParseOptions(explicit_schema=pa.schema(texts)))
    plain = pa.schema([(field.name, _without_times(field.type)) for field in table.schema])
    if plain == table.schema:
        return table
    return _parsed(block, pyarrow.json.ParseOptions(explicit_schema=plain))


def _without_times(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.string()
    if pa.types.is_list(type_):
        return pa.list_(_without_times(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _without_times(field.type)) for field in type_])
    return type_


def _unified(schema: pa.Schema, more: pa.Schema, file: Path) -> pa.Schema:
    try:
        return pa.unify_schemas([schema, more], promote_options="permissive")
    except pa.ArrowTypeError as error:
        words = str(error).removeprefix("Unable to merge: ")
        raise SchemaError(
            f"'{printable(str(file))}' has values of another kind than those before: {words}",
            hint="Write a column with values of one kind.",
        ) from None


def _text_type(column: pa.ChunkedArray, before: pa.DataType | None) -> pa.DataType:
    """The first type that fits the texts, and those before, which were of the given type."""
    types = (*_LOCAL[:-1], *_ZONED)
    if before is not None:
        chain = _LOCAL if before in _LOCAL else _ZONED
        types = chain[chain.index(before) :]
    return next(type_ for type_ in types if _fits(column, type_))


def _fits(column: pa.ChunkedArray, type_: pa.DataType) -> bool:
    if type_ == column.type:
        return True
    # The first few alone, since Arrow words an error for each value that is amiss.
    few = column.slice(0, 1_000).drop_null().slice(0, 10)
    try:
        few.cast(type_)
        column.cast(type_)
    except pa.ArrowInvalid:
        return False
    return True


def _parsed(block: bytes, options: pyarrow.json.ParseOptions) -> pa.Table:
    whole = pyarrow.json.ReadOptions(block_size=max(len(block), 1))
    return pyarrow.json.read_json(pa.BufferReader(block), read_options=whole, parse_options=options)


def _blocks(file: Path) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time."""
    rest = b""
    with pa.input_stream(str(file), compression="detect") as stream:
        while piece := stream.read(_BLOCK):
            end = piece.rfind(b"\n") + 1
            if end:
                yield from _checked(rest + piece[:end], file)
                rest = piece[end:]
            else:
                rest += piece
    yield from _checked(rest, file)


def _checked(block: bytes, file: Path) -> Iterator[bytes]:
    """The block, if there is anything in it; Arrow itself does not look whether texts are UTF-8."""
    block = block.removeprefix(b"\xef\xbb\xbf")
    if not block or block.isspace():
        return
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        raise SchemaError(f"'{printable(str(file))}' is not UTF-8 text") from None
    yield block

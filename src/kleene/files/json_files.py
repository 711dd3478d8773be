"""JSON lines as Arrow tables, a few megabytes of lines at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.json

from kleene.errors import SchemaError, printable
from kleene.files.csv_files import TIMES, MisfitError
from kleene.files.exact import decoded, has_large, rounded
from kleene.files.types import holds

_BLOCK = 8 << 20
_LOCAL = (pa.date32(), pa.timestamp("us"), pa.timestamp("ns"), pa.string())
_ZONED = (pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"), pa.string())
"""What texts may be: times without a zone or with one, but not some with and some without."""
_NUMBERS = {b"kleene": b"numbers as they are written"}
"""Marks a column of texts that are numbers in the files."""
_DEEPEST = 50
"""How deep values may be nested: Arrow's own parser fails on some thousands, and its messages on 64."""
_SHAPE = b'"[]{}\n'
_NO_SHAPE = bytes(sorted(set(range(256)) - set(_SHAPE)))


def json_schema(files: Sequence[Path]) -> pa.Schema:
    """The columns of all the files, each with a type that fits its values; all files are read for that.

    A column of texts is one of times if all its values are; texts inside nested values stay texts. A column of numbers
    is one of texts if a float would round a whole number in it.
    """
    schema = pa.schema([])
    texts: dict[str, pa.DataType] = {}
    large: set[str] = set()
    for file in files:
        for block in _blocks(file):
            table = _inferred(block, [field for field in schema if field.type == pa.string()])
            schema = _unified(schema, table.schema, file)
            for name in table.column_names:
                column = table.column(name)
                if name not in large and has_large(column, with_integers=True):
                    large.add(name)
                if column.type == pa.string() and column.null_count < len(column):
                    texts[name] = _text_type(column, texts.get(name))
    schema = pa.schema([(field.name, texts.get(field.name, field.type)) for field in schema])
    return _with_exact_numbers(schema, large, files)


def _with_exact_numbers(schema: pa.Schema, large: set[str], files: Sequence[Path]) -> pa.Schema:
    """The schema with columns of texts for the floats that would round; only those with large numbers are looked at."""
    floats = {f.name: f.type for f in schema if f.name in large and holds(f.type, pa.types.is_float64)}
    texts: set[str] = set()
    for file in files if floats else ():
        for block in _blocks(file):
            for name, text in rounded(block, {name: floats[name] for name in floats.keys() - texts}):
                if pa.types.is_nested(floats[name]):
                    words = f"{_rounding(name, text, file)} inside its values"
                    raise SchemaError(words, hint="Write such numbers as strings.")
                texts.add(name)
    return pa.schema([pa.field(f.name, pa.string(), metadata=_NUMBERS) if f.name in texts else f for f in schema])


def _rounding(name: str, text: str, file: Path) -> str:
    where = f"the column '{printable(name)}' of '{printable(str(file))}'"
    return f"{where} has {printable(text)}, which is too large to be exact as a float"


def json_batches(file: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the file as they fit the schema; a value that does not fit raises a `MisfitError`."""
    numbers = [field.name for field in schema if field.metadata == _NUMBERS]
    raw = pa.schema([(f.name, pa.string() if f.type in TIMES else f.type) for f in schema if f.name not in numbers])
    options = pyarrow.json.ParseOptions(explicit_schema=raw, unexpected_field_behavior="ignore")
    for block in _blocks(file):
        table = _parsed(block, options).select(raw.names)
        floats = {field.name: field.type for field in raw if has_large(table.column(field.name))}
        for name, text in rounded(block, floats):
            raise MisfitError(name, _rounding(name, text, file))
        for name, column in _as_written(block, numbers).items():
            table = table.append_column(name, column)
        columns = [_as_times(table.column(field.name), field, file) for field in schema]
        yield from pa.table(columns, schema=schema).to_batches()


def _as_written(block: bytes, names: list[str]) -> dict[str, pa.Array]:
    rows = list(decoded(block)) if names else []
    return {name: pa.array([row.get(name) for row in rows], pa.string()) for name in names}


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
            f"'{printable(str(file))}' has values of another kind than the files before: {words}",
            hint="Give each column values of one kind.",
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
    rest: list[bytes] = []
    line = 1
    with pa.input_stream(str(file), compression="detect") as stream:
        while piece := stream.read(_BLOCK):
            end = piece.rfind(b"\n") + 1
            if end:
                block = b"".join((*rest, piece[:end]))
                rest = []
                yield from _checked(block, file, line)
                line += block.count(b"\n")
            rest.append(piece[end:])
    yield from _checked(b"".join(rest), file, line)


def _checked(block: bytes, file: Path, line: int) -> Iterator[bytes]:
    """The block, if there is anything in it; Arrow itself looks neither for UTF-8 nor at how deep values are nested."""
    block = block.removeprefix(b"\xef\xbb\xbf")
    if not block or block.isspace():
        return
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        raise SchemaError(f"'{printable(str(file))}' is not UTF-8 text") from None
    lines_before = _lines_before_too_deep(block)
    if lines_before is not None:
        raise SchemaError(
            f"line {line + lines_before:,} of '{printable(str(file))}' has values nested more than {_DEEPEST} deep",
            hint="Write what is inside as a string.",
        )
    yield block


def _lines_before_too_deep(block: bytes) -> int | None:
    """How many lines of the block come before one that is nested too deep; None if none is."""
    shape = np.frombuffer(block.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _NO_SHAPE), np.uint8)
    is_outside = np.logical_xor.accumulate(shape == ord('"')) ^ True
    opens = is_outside & ((shape == ord("[")) | (shape == ord("{")))
    closes = is_outside & ((shape == ord("]")) | (shape == ord("}")))
    too_deep = np.flatnonzero(np.cumsum(opens.astype(np.int8) - closes, dtype=np.int32) > _DEEPEST)
    return int((shape[: too_deep[0]] == ord("\n")).sum()) if len(too_deep) else None

"""Files to blocks, the parts of them that can be read by themselves: row groups of Parquet, record batches of Arrow.

A footer says how many rows a block has and, in Parquet, between which values its columns lie. What it does not say is
measured, by reading that one column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from kleene.errors import SchemaError, printable
from kleene.files import FileKind
from kleene.files.reading import schema_of_parquet, unencoded_schema
from kleene.files.types import common_column
from kleene.scanning.found import ScanFile, named

AT_ONCE = 16
"""Footers that are read at the same time: most of it is waiting."""

BYTES_OF_A_NUMBER = 3
"""What a number of a word takes in Parquet at most, with its part of the words."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that are read together. `first` is where its first row stands in the input."""

    file: int
    number: int
    first: int
    rows: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value of a column in a block, an array of both; None where it has only NULLs.

    No value lies outside, but the bounds themselves need not be values. NULLs that nobody counted are None.
    """

    ends: pa.Array | None
    nulls: int | None


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says about itself: its columns, the rows of each block, and Parquet's own."""

    schema: pa.Schema
    rows: tuple[int, ...]
    parquet: pq.FileMetaData | None = None


def read_footers(filesystem: pafs.FileSystem, files: Sequence[ScanFile], kind: FileKind) -> list[Footer]:
    read = partial(_parquet_footer if kind is FileKind.PARQUET else _arrow_footer, filesystem)
    if len(files) == 1:
        return [read(files[0])]
    with ThreadPoolExecutor(min(AT_ONCE, len(files)), "kleene-footers") as pool:
        return list(pool.map(read, files))


def _parquet_footer(filesystem: pafs.FileSystem, file: ScanFile) -> Footer:
    with unreadable(file, FileKind.PARQUET), open_file(filesystem, file) as opened, pq.ParquetFile(opened) as parquet:
        metadata = parquet.metadata
        rows = tuple(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
        return Footer(schema_of_parquet(parquet), rows, metadata)


def _arrow_footer(filesystem: pafs.FileSystem, file: ScanFile) -> Footer:
    with unreadable(file, FileKind.ARROW), open_file(filesystem, file) as opened:
        arrow = pa.ipc.open_file(opened)
        if not len(arrow.schema):
            return Footer(arrow.schema, ())
        # Batches tell their rows only themselves; of columns but the first nothing is read.
        plain = pa.ipc.open_file(opened, options=pa.ipc.IpcReadOptions(included_fields=[0]))
        rows = tuple(plain.get_batch(number).num_rows for number in range(arrow.num_record_batches))
        return Footer(unencoded_schema(arrow.schema), rows)


def blocks_of(footers: Sequence[Footer]) -> tuple[Block, ...]:
    """All blocks in the order of the input; those without rows are left out."""
    return tuple(_blocks(footers))


def _blocks(footers: Sequence[Footer]) -> Iterator[Block]:
    first = 0
    for file, footer in enumerate(footers):
        for number, rows in enumerate(footer.rows):
            if rows:
                yield Block(file, number, first, rows)
            first += rows


# --- opening files ---------------------------------------------------------------------------------------------------


class unreadable:  # noqa: N801  # reads as a word where it is used
    """While open, whatever goes wrong with the file is an error that names it."""

    def __init__(self, file: ScanFile, kind: FileKind) -> None:
        self._file, self._kind = file, kind

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, (pa.ArrowException, OSError)) and not isinstance(error, SchemaError):
            words = (str(error).splitlines() or [type(error).__name__])[0]
            path = named(self._file.path)
            raise SchemaError(
                f"{path} cannot be read as {self._kind.value}: {printable(words, 300)}",
                hint="Is the file whole? A writer that is still at work, or was stopped, leaves half a file.",
            ) from None


def open_file(filesystem: pafs.FileSystem, file: ScanFile) -> pa.NativeFile:
    """The file, if it is still the one that was found."""
    [now] = filesystem.get_file_info([file.path])
    path = named(file.path)
    if now.type != pafs.FileType.File:
        raise SchemaError(f"the file {path} is gone: it was there when the scan was made", hint="Make the scan anew.")
    if now.size != file.size or now.mtime_ns != file.modified:
        raise SchemaError(f"the file {path} has changed since the scan was made", hint="Make the scan anew.")
    # Not as a map of memory: were the file cut short while it is read, that would end the process.
    return filesystem.open_input_file(file.path)


# --- bounds that a footer of Parquet tells ---------------------------------------------------------------------------


def told_bounds(footer: Footer, number: int, name: str, target: pa.DataType, zone: str) -> Bounds | None:
    """The bounds of a column in a row group, in the common type; None where the footer does not tell them."""
    if footer.parquet is None:
        return None
    if name not in footer.schema.names:
        return Bounds(None, footer.rows[number])  # all its rows are NULL there
    at = _column_of(footer, name)
    column = None if at is None else footer.parquet.row_group(number).column(at)
    if column is None or not column.is_stats_set or column.statistics is None:
        return None
    told = column.statistics
    nulls = told.null_count if told.has_null_count else None
    if nulls == footer.rows[number]:
        return Bounds(None, nulls)
    if not told.has_min_max:
        return None
    try:
        ends = _ends(told, footer.schema.field(name).type)
        made = None if ends is None else common_column(pa.chunked_array([ends]), zone).cast(target).combine_chunks()
    except (pa.ArrowException, ValueError, OverflowError):
        return None
    return None if made is None else Bounds(made.chunk(0) if isinstance(made, pa.ChunkedArray) else made, nulls)


def has_few_words(footer: Footer, number: int, name: str) -> bool:
    """Whether a column of texts in a row group is stored as numbers of a few words."""
    at = None if footer.parquet is None or name not in footer.schema.names else _column_of(footer, name)
    if at is None or not pa.types.is_string(footer.schema.field(name).type):
        return False
    assert footer.parquet is not None
    column = footer.parquet.row_group(number).column(at)
    # A writer that meets many words goes over to the texts themselves, and nothing but the size tells that.
    few = BYTES_OF_A_NUMBER * column.num_values
    return bool(column.has_dictionary_page) and column.total_uncompressed_size <= few


def _column_of(footer: Footer, name: str) -> int | None:
    """The number of a plain column among those of Parquet, which also counts the parts of nested ones."""
    assert footer.parquet is not None
    columns = footer.parquet.schema
    found = [n for n in range(len(columns)) if columns.column(n).path == name]
    return found[0] if len(found) == 1 else None  # a part of a nested column may be called like a plain one


_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


def _ends(told: pq.Statistics, type_: pa.DataType) -> pa.Array | None:
    if pa.types.is_timestamp(type_):
        logical = json.loads(told.logical_type.to_json())
        unit = _UNITS.get(logical.get("timeUnit", ""))
        if unit is None:
            return None
        return pa.array([told.min_raw, told.max_raw], pa.int64()).cast(pa.timestamp(unit, type_.tz))
    if pa.types.is_date32(type_):
        return pa.array([told.min_raw, told.max_raw], pa.int32()).cast(type_)
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_large_string)
    if any(is_kind(type_) for is_kind in kinds):
        return pa.array([told.min, told.max], type_)
    return None

"""`kleene.scan`: files as events that are not read yet. Only footers are, so that what is needed can be planned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from kleene.engine.sources import Source
from kleene.engine.unencoded import CODES
from kleene.errors import SchemaError, UnsupportedError, listed, printable, shown
from kleene.files import FileKind
from kleene.files.found import is_text
from kleene.files.types import common_column, common_schema
from kleene.options.checks import checked_choice
from kleene.scanning.blocks import (
    Block,
    Bounds,
    Footer,
    blocks_of,
    has_few_words,
    open_file,
    read_footers,
    told_bounds,
    unreadable,
)
from kleene.scanning.found import Found, ScanFile, find, named

Report = Callable[[int, int, str], None]
NO_NAMES = frozenset[str]()


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """Files of events, for `Query.match` and wherever else events are taken. `kleene.scan` makes it.

    `columns` are those of all files together, in the types that Kleene knows; those that folders are stand last.
    """

    found: Found
    columns: pa.Schema
    footers: tuple[Footer, ...]  # none for text files
    blocks: tuple[Block, ...]
    on_progress: Report | None = None
    session: Any = None  # of Spark, if tasks of it are to read the files

    def __repr__(self) -> str:
        files = self.found.files
        rows = f", {self.rows:,} events" if not self.is_text else ""
        what = f"{counted(len(files), 'file')} of {self.found.kind.value}{rows}"
        return f"<kleene.Scan of {what}: {listed(self.columns.names)}>"

    @property
    def is_text(self) -> bool:
        return is_text(self.found.kind)

    @property
    def rows(self) -> int:
        return sum(block.rows for block in self.blocks)

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.found.files)

    def source(self, blocks: Sequence[Block] | None = None, coded: frozenset[str] = NO_NAMES) -> Source:
        """The events of these blocks, or all, which are read once columns are asked for; some as codes of words."""
        chosen = self.blocks if blocks is None else blocks

        def read(names: Sequence[str]) -> pa.Table:
            is_text = self.is_text and blocks is None
            return self.text_table(names) if is_text else self.table(chosen, names, coded)

        return Source(self.columns, read)

    def table(self, blocks: Sequence[Block], names: Sequence[str], coded: frozenset[str] = NO_NAMES) -> pa.Table:
        """The columns of the blocks, in the order of the input; those of `coded`, texts, as codes of their words."""
        wanted = self._wanted(names, coded)
        parts = [
            self._of_file(self.found.files[file], list(own), wanted)
            for file, own in groupby(sorted(blocks, key=lambda block: block.first), lambda block: block.file)
        ]
        return pa.concat_tables(parts) if parts else wanted.empty_table()

    def first_rows(self, block: Block, names: Sequence[str], rows: int, coded: frozenset[str] = NO_NAMES) -> pa.Table:
        """The columns of the first so many rows of the block; in Parquet, no others are decoded."""
        if self.found.kind is not FileKind.PARQUET or not 0 < rows < block.rows:
            return self.table([block], names, coded).slice(0, rows)
        file, wanted = self.found.files[block.file], self._wanted(names, coded)
        inside = [name for name in self.footers[block.file].schema.names if name in wanted.names]
        with unreadable(file, self.found.kind), open_file(self.found.filesystem, file) as opened:
            read = None
            if inside:
                with self._parquet(opened, block.file, wanted) as parquet:
                    batches = parquet.iter_batches(rows, row_groups=[block.number], columns=inside)
                    read = pa.Table.from_batches([next(batches)])
            return self._as_wanted(file, wanted, read, rows)

    def _wanted(self, names: Sequence[str], coded: frozenset[str]) -> pa.Schema:
        return pa.schema([pa.field(name, CODES) if name in coded else self.columns.field(name) for name in names])

    def _parquet(self, opened: pa.NativeFile, file: int, wanted: pa.Schema) -> pq.ParquetFile:
        return pq.ParquetFile(
            opened,
            metadata=self.footers[file].parquet,
            read_dictionary=[field.name for field in wanted if field.type == CODES],
            coerce_int96_timestamp_unit="us",
            pre_buffer=False,
        )

    def _of_file(self, file: ScanFile, blocks: list[Block], wanted: pa.Schema) -> pa.Table:
        footer, numbers = self.footers[blocks[0].file], [block.number for block in blocks]
        inside = [name for name in footer.schema.names if name in wanted.names]
        rows = sum(block.rows for block in blocks)
        with unreadable(file, self.found.kind), open_file(self.found.filesystem, file) as opened:
            if self.found.kind is FileKind.PARQUET:
                with self._parquet(opened, blocks[0].file, wanted) as parquet:
                    read = parquet.read_row_groups(numbers, columns=inside) if inside else None
            else:
                read = _arrow_table(opened, numbers, inside)
            if read is not None and read.num_rows != rows:
                raise SchemaError(f"the file {named(file.path)} has changed since the scan was made")
            return self._as_wanted(file, wanted, read, rows)

    def _as_wanted(self, file: ScanFile, wanted: pa.Schema, read: pa.Table | None, rows: int) -> pa.Table:
        """The columns that were read, those that folders tell, and NULLs for those that the file lacks."""
        given, there = dict(file.values), () if read is None else read.column_names

        def column(field: pa.Field) -> pa.ChunkedArray:
            if read is not None and field.name in there:
                own = read.column(field.name)
                if field.type != CODES:
                    return common_column(own, "UTC").cast(field.type)
                return own if own.type == CODES else common_column(own, "UTC").cast(pa.string()).dictionary_encode()
            if field.name in given:
                return pa.chunked_array([pa.repeat(pa.scalar(given[field.name], field.type), rows)])
            return pa.chunked_array([pa.nulls(rows, field.type)])

        return pa.table([column(field) for field in wanted], schema=wanted)

    def few_words(self, name: str) -> bool:
        """Whether the files have a column of texts as numbers of a few words, and so can be read as such."""
        return name in self.columns.names and all(
            has_few_words(self.footers[block.file], block.number, name) for block in self.blocks
        )

    def text_table(self, names: Sequence[str]) -> pa.Table:
        """Text files, which are read whole."""
        wanted = pa.schema([self.columns.field(name) for name in names])
        return pa.concat_tables([pa.Table.from_batches([], wanted), *self.text_tables(names)])

    def text_tables(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of text files, some megabytes at a time, in the order of the input."""
        from kleene.scanning.texts import text_tables

        return text_tables(self, names)

    def bounds(self, block: Block, name: str) -> Bounds | None:
        """Between which values a column of the block lies, if its file or its folders tell."""
        target, file = self.columns.field(name).type, self.found.files[block.file]
        given = dict(file.values)
        if name in given:
            is_null = given[name] is None
            return Bounds(None if is_null else pa.array([given[name]] * 2, target), block.rows if is_null else 0)
        return told_bounds(self.footers[block.file], block.number, name, target, "UTC")

    def measured_bounds(self, block: Block, name: str) -> Bounds:
        """The same, found by reading the column."""
        column = self.table([block], [name]).column(name)
        if column.null_count == len(column):
            return Bounds(None, len(column))
        ends = pc.min_max(column)
        return Bounds(pa.concat_arrays([pa.repeat(ends[name], 1) for name in ("min", "max")]), column.null_count)


def _arrow_table(opened: pa.NativeFile, numbers: Sequence[int], names: Sequence[str]) -> pa.Table | None:
    schema = pa.ipc.open_file(opened).schema
    included = [schema.get_field_index(name) for name in names]
    if not included:
        return None
    reader = pa.ipc.open_file(opened, options=pa.ipc.IpcReadOptions(included_fields=included))
    return pa.Table.from_batches([reader.get_batch(number) for number in numbers], reader.schema)


def counted(count: int, what: str) -> str:
    """A number with its word.

    >>> counted(1, "file"), counted(1200, "file")
    ('1 file', '1,200 files')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def scan(
    source: Any,
    *,
    format: str | None = None,
    filesystem: Any = None,
    partitioning: str | None = "hive",
    on_progress: Report | None = None,
    spark: Any = None,
) -> Scan:
    """See `kleene.scan`."""
    kind = None if format is None else FileKind(checked_choice("format", format, [kind.value for kind in FileKind]))
    if partitioning is not None:
        checked_choice("partitioning", partitioning, ("hive",))
    if on_progress is not None and not callable(on_progress):
        raise SchemaError(f"on_progress is a function, but {shown(on_progress)} was given")
    if isinstance(source, pads.Dataset):
        made = _of_dataset(source)
    else:
        if filesystem is not None and not isinstance(filesystem, pafs.FileSystem):
            raise SchemaError(
                f"filesystem is a pyarrow.fs.FileSystem, but {shown(filesystem)} was given",
                hint="One of fsspec is made one by pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(it)).",
            )
        made = _of_files(find(source, kind, filesystem, partitioning is not None))
    return replace(made, on_progress=on_progress, session=spark)


def _of_files(found: Found, given: pa.Schema | None = None) -> Scan:
    if is_text(found.kind):
        from kleene.scanning.texts import text_schema

        own = text_schema(found)
        footers: tuple[Footer, ...] = (Footer(own, ()),)
    else:
        footers = tuple(read_footers(found.filesystem, found.files, found.kind))
        for file, footer in zip(found.files, footers, strict=True):
            _check_names(file, footer.schema)
        own = _one_schema(found.files, [common_schema(footer.schema) for footer in footers])
    if not len(own):
        raise SchemaError(f"{named(found.files[0].path)} is empty, so its columns are unknown")
    common = common_schema(own if given is None else given)
    # A column that files have wins over a folder of its name.
    folders = [field for field in found.folders if field.name not in own.names]
    apart = {field.name for field in folders}
    files = tuple(
        replace(file, values=tuple((name, value) for name, value in file.values if name in apart))
        for file in found.files
    )
    found = replace(found, files=files, folders=pa.schema(folders))
    return Scan(found, pa.schema([*common, *folders]), footers, blocks_of(footers))


def _check_names(file: ScanFile, schema: pa.Schema) -> None:
    twice = next((name for number, name in enumerate(schema.names) if name in schema.names[:number]), None)
    if twice is not None:
        raise SchemaError(
            f"the file {named(file.path)} has two columns '{printable(twice)}'", hint="Rename one of them."
        )


def _one_schema(files: Sequence[ScanFile], schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The columns of all files; numbers of different sizes become those that hold both."""
    whole = schemas[0]
    for file, own in zip(files, schemas, strict=True):
        try:
            whole = pa.unify_schemas([whole, own], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            odd = next(
                (field for field in own if field.name in whole.names and _differ(whole.field(field.name), field)), None
            )
            what = "other columns" if odd is None else f"'{printable(odd.name)}' as {odd.type}"
            first = "" if odd is None else f"; {named(files[0].path)} has it as {whole.field(odd.name).type}"
            raise SchemaError(
                f"the file {named(file.path)} has {what}{first}",
                hint="Scan files of one schema at a time.",
            ) from None
    return whole


def _differ(one: pa.Field, other: pa.Field) -> bool:
    try:
        pa.unify_schemas([pa.schema([one]), pa.schema([other])], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return True
    return False


_FORMATS = ((pads.ParquetFileFormat, FileKind.PARQUET), (pads.IpcFileFormat, FileKind.ARROW))


def _of_dataset(dataset: pads.Dataset) -> Scan:
    """The files of a dataset, with the columns that its folders are."""
    own_format = getattr(dataset, "format", None)
    kind = next((kind for of_format, kind in _FORMATS if isinstance(own_format, of_format)), None)
    if not isinstance(dataset, pads.FileSystemDataset) or kind is None:
        raise UnsupportedError(
            f"a scan reads datasets of files of Parquet or Arrow, but {shown(dataset)} was given",
            hint="Give the paths of its files; or match the dataset itself, which is read whole.",
        )
    if getattr(dataset, "_scan_options", None):
        raise UnsupportedError(
            "the dataset has a filter, and a scan reads whole files",
            hint="Give it without the filter, and put the condition into the query; or match the dataset itself.",
        )
    fragments = list(dataset.get_fragments())
    infos = dataset.filesystem.get_file_info([fragment.path for fragment in fragments])
    values: list[Mapping[str, Any]] = [pads.get_partition_keys(fragment.partition_expression) for fragment in fragments]
    names = list(dict.fromkeys(name for own in values for name in own))
    files = tuple(
        ScanFile(info.path, info.size or 0, info.mtime_ns, tuple((name, own.get(name)) for name in names))
        for info, own in zip(infos, values, strict=True)
    )
    folders = common_schema(pa.schema([dataset.schema.field(name) for name in names]))
    own = pa.schema([field for field in dataset.schema if field.name not in names])
    made = _of_files(Found(kind, dataset.filesystem, files, folders), own)
    counts = [len(fragment.row_groups) for fragment in fragments] if kind is FileKind.PARQUET else []
    if any(count != len(footer.rows) for count, footer in zip(counts, made.footers, strict=False)):
        raise UnsupportedError(
            "the dataset has some row groups of its files only, and a scan reads whole files",
            hint="Match the dataset itself.",
        )
    return made

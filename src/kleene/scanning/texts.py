"""Text files of a scan. Nothing tells where anything in them is, so that they are read from their beginning."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pafs

from kleene.files import EventFiles
from kleene.files.reading import file_batches, file_schema
from kleene.files.types import common_column
from kleene.scanning.blocks import open_file, unreadable
from kleene.scanning.found import Found, ScanFile

if TYPE_CHECKING:
    from kleene.scanning.scan import Scan


def text_schema(found: Found) -> pa.Schema:
    """The columns of the files, with types that fit all their values: for that, all of them are read."""
    with _local_files(found, found.files) as paths:
        place = paths[0] if len(paths) == 1 else paths[0].parent
        return file_schema(EventFiles(place, found.kind, tuple(paths)))


def text_tables(scan: Scan, names: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of the files, some megabytes at a time."""
    found = scan.found
    wanted = pa.schema([scan.columns.field(name) for name in names])
    own = scan.footers[0].schema
    for file in found.files:
        given = dict(file.values)
        with _local_files(found, [file]) as [path]:
            for batch in file_batches(path, found.kind, own):
                columns = [
                    common_column(pa.chunked_array([batch.column(name)]), "UTC")
                    if name in own.names
                    else pa.chunked_array([pa.repeat(pa.scalar(given[name], wanted.field(name).type), batch.num_rows)])
                    for name in names
                ]
                yield pa.table(columns, schema=wanted)


@contextmanager
def _local_files(found: Found, files: Sequence[ScanFile]) -> Iterator[list[Path]]:
    """The files where Python can open them: those that lie elsewhere are copied for the time being."""
    if isinstance(found.filesystem, pafs.LocalFileSystem):
        for file in files:
            open_file(found.filesystem, file).close()
        yield [Path(file.path) for file in files]
        return
    with tempfile.TemporaryDirectory(prefix="kleene-") as folder:
        paths = []
        for number, file in enumerate(files):
            open_file(found.filesystem, file).close()
            path = Path(folder, str(number), Path(file.path).name)  # so that messages show its name
            path.parent.mkdir()
            opened = found.filesystem.open_input_stream
            with unreadable(file, found.kind), opened(file.path, compression=None) as read, path.open("wb") as copy:
                shutil.copyfileobj(read, copy)
            paths.append(path)
        yield paths

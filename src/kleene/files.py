"""Files of events and of matches: Parquet, CSV and JSON lines, alone or in folders; read and written with Arrow."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.json
import pyarrow.parquet

from kleene.errors import SchemaError, listed


class FileKind(Enum):
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"


_KINDS = {
    ".parquet": FileKind.PARQUET,
    ".csv": FileKind.CSV,
    ".json": FileKind.JSON,
    ".jsonl": FileKind.JSON,
    ".ndjson": FileKind.JSON,
}
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".snappy")


@dataclass(frozen=True, slots=True)
class EventFiles:
    """A file, or a folder of files of one kind."""

    path: Path
    kind: FileKind
    files: tuple[Path, ...]


def find_files(path: Path) -> EventFiles:
    """What the path holds; an error that says what was found if it cannot be read as events."""
    if not path.exists():
        raise SchemaError(f"there is no file or folder '{path}'")
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if _is_data(file))
    by_kind: dict[FileKind | None, list[Path]] = {}
    for file in files:
        by_kind.setdefault(file_kind(file), []).append(file)
    kinds = [kind for kind in by_kind if kind is not None]
    if len(kinds) == 1:
        return EventFiles(path, kinds[0], tuple(by_kind[kinds[0]]))
    known = "Known endings: .parquet, .csv, .json, .jsonl, .ndjson (the last four also compressed, as .csv.gz)."
    if kinds:
        found = listed(kind.value for kind in kinds)
        raise SchemaError(f"the folder '{path}' mixes kinds of files: {found}", hint="Give one kind at a time.")
    raise SchemaError(f"'{path}' holds nothing that can be read as events", hint=known)


def _is_data(file: Path) -> bool:
    # Spark leaves _SUCCESS and .crc files beside the data.
    return file.is_file() and not file.name.startswith(("_", "."))


def file_kind(path: Path) -> FileKind | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return _KINDS.get(suffixes[-1]) if suffixes else None


def endings_of(kind: FileKind) -> list[str]:
    """All that names of files of the kind may end in.

    >>> endings_of(FileKind.CSV)
    ['.csv', '.csv.gz', '.csv.bz2', '.csv.zst', '.csv.snappy']
    """
    plain = [ending for ending, its_kind in _KINDS.items() if its_kind is kind]
    return [ending + compression for ending in plain for compression in ("", *_COMPRESSIONS)]


def output_kind(path: Path) -> FileKind:
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        raise SchemaError(f"cannot tell what to write to '{path}'", hint="End the name in .parquet, .csv or .json.")
    return kind


def read_arrow(found: EventFiles) -> pa.Table:
    """The events of the files as one table."""
    try:
        if found.kind is FileKind.PARQUET:
            return pyarrow.dataset.dataset([str(file) for file in found.files], format="parquet").to_table()
        read = pyarrow.csv.read_csv if found.kind is FileKind.CSV else pyarrow.json.read_json
        return pa.concat_tables([read(file) for file in found.files], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OSError) as error:
        raise SchemaError(
            f"'{found.path}' cannot be read as {found.kind.value}: {str(error).splitlines()[0]}"
        ) from None


def write_arrow(table: pa.Table, path: Path) -> None:
    kind = output_kind(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():  # what Spark wrote under the name before
        shutil.rmtree(path)
    if kind is FileKind.PARQUET:
        pyarrow.parquet.write_table(table, path)
    elif kind is FileKind.CSV:
        pyarrow.csv.write_csv(_flat(table), path)
    else:
        lines = (json_text(row) + "\n" for row in table.to_pylist())
        path.write_text("".join(lines), encoding="utf-8")


def json_text(value: Any) -> str:
    """The value as JSON, which has no NaN and no infinity: they are null there."""
    return json.dumps(_finite(value), default=str, ensure_ascii=False)


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {name: _finite(item) for name, item in value.items()}
        case list():
            return [_finite(item) for item in value]
        case float() if not math.isfinite(value):
            return None
    return value


def _flat(table: pa.Table) -> pa.Table:
    """CSV has no nested values: structs and arrays are written as JSON."""
    for number, column in enumerate(table.schema):
        if pa.types.is_nested(column.type):
            values: list[Any] = table.column(number).to_pylist()
            texts = [None if value is None else json_text(value) for value in values]
            table = table.set_column(number, column.name, pa.array(texts, pa.string()))
    return table

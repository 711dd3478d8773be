"""Paths to files of events of one kind, alone or in folders."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePath

import pyarrow as pa

from kleene.errors import SchemaError, listed, printable


class FileKind(Enum):
    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


_KINDS = {
    ".parquet": FileKind.PARQUET,
    ".csv": FileKind.CSV,
    ".json": FileKind.JSON,
    ".jsonl": FileKind.JSON,
    ".ndjson": FileKind.JSON,
    ".arrow": FileKind.ARROW,
    ".feather": FileKind.ARROW,
    ".ipc": FileKind.ARROW,
}
_COMPRESSIONS = (".gz", ".bz2", ".zst")


@dataclass(frozen=True, slots=True)
class Form:
    """What a caller says about files: how CSV is written, and the types of columns that are not to be guessed."""

    delimiter: str = ","
    nulls: tuple[str, ...] = ("",)
    types: tuple[tuple[str, pa.DataType], ...] = ()


@dataclass(frozen=True, slots=True)
class EventFiles:
    """A file, or a folder of files of one kind; times in them that have no zone are of `zone`."""

    path: Path
    kind: FileKind
    files: tuple[Path, ...]
    zone: str = "UTC"
    form: Form = Form()


def find_files(path: Path, zone: str = "UTC", form: Form | None = None) -> EventFiles:
    """What the path holds; an error that says what was found if it cannot be read as events."""
    shown = printable(str(path))
    try:
        files = _files_of(path)
    except OSError as error:
        raise SchemaError(f"'{shown}' cannot be read: {error.strerror}") from None
    by_kind: dict[FileKind | None, list[Path]] = {}
    for file in files:
        by_kind.setdefault(file_kind(file), []).append(file)
    kinds = [kind for kind in by_kind if kind is not None]
    if len(kinds) == 1:
        return EventFiles(path, kinds[0], tuple(by_kind[kinds[0]]), zone, form or Form())
    known = (
        "Known endings: .parquet, .arrow, .feather, .ipc, and .csv, .json, .jsonl, .ndjson (these also compressed, as "
        ".csv.gz)."
    )
    if kinds:
        found = listed(kind.value for kind in kinds)
        raise SchemaError(f"the folder '{shown}' mixes kinds of files: {found}", hint="Give one kind at a time.")
    raise SchemaError(f"'{shown}' holds nothing that can be read as events", hint=known)


def _files_of(path: Path) -> list[Path]:
    if not path.exists():
        raise SchemaError(f"there is no file or folder '{printable(str(path))}'")
    if not path.is_dir():
        return [path]
    list(path.iterdir())  # a folder that may not be read is an error, and not an empty one
    return sorted(file for file in path.rglob("*") if _is_data(file, path))


def _is_data(file: Path, folder: Path) -> bool:
    # Spark leaves _SUCCESS and .crc files beside the data, and unfinished files in _temporary.
    hidden = any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)
    return not hidden and file.is_file()


def file_kind(path: PurePath) -> FileKind | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return _KINDS.get(suffixes[-1]) if suffixes else None


def is_text(kind: FileKind) -> bool:
    """Whether files of the kind must be read from the beginning to know where anything in them is."""
    return kind in (FileKind.CSV, FileKind.JSON)


def endings_of(kind: FileKind) -> list[str]:
    """All that names of files of the kind may end in.

    >>> endings_of(FileKind.CSV)
    ['.csv', '.csv.gz', '.csv.bz2', '.csv.zst']
    """
    plain = [ending for ending, its_kind in _KINDS.items() if its_kind is kind]
    return [ending + compression for ending in plain for compression in ("", *_COMPRESSIONS)]


def output_kind(path: Path) -> FileKind:
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        raise SchemaError(
            f"cannot tell the format of '{printable(str(path))}'",
            hint="End the name in .parquet, .csv, .json or .arrow.",
        )
    return kind

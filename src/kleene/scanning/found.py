"""What a caller names, a path, a pattern, a folder, a list of them or a dataset, to the files that it means.

Files are in the order of their paths, which is the order of the input where the order key leaves one open. Folders
called `name=value` are columns, as Hive and Spark write them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from kleene.errors import SchemaError, did_you_mean, listed, printable, shown
from kleene.files import FileKind, endings_of, file_kind

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Hive and Spark call the folder of rows whose value is NULL."""
LONGEST = 500
"""Letters of a path that messages show: the end of it tells the file."""


@dataclass(frozen=True, slots=True)
class ScanFile:
    """A file as it was when it was found; `values` are those that its folders give to all its rows."""

    path: str
    size: int
    modified: int | None  # nanoseconds
    values: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    kind: FileKind
    filesystem: pafs.FileSystem
    files: tuple[ScanFile, ...]
    folders: pa.Schema  # the columns that folders are


def named(path: str) -> str:
    """The path as messages name it: as seen from here, if it is below."""
    here = os.getcwd() + os.sep
    return f"'{printable(path.removeprefix(here), LONGEST)}'"


def find(source: Any, kind: FileKind | None, filesystem: pafs.FileSystem | None, with_folders: bool) -> Found:
    """The files; an error says what was looked for, and what is there."""
    names = [source] if isinstance(source, (str, os.PathLike)) else source
    if not isinstance(names, Sequence) or not names or not all(isinstance(one, (str, os.PathLike)) for one in names):
        raise SchemaError(
            f"a scan reads paths, but {shown(source)} was given",
            hint="Give a path, a folder, a pattern such as 'events/*.parquet', a list of those, or a "
            "pyarrow.dataset.Dataset.",
        )
    found: dict[str, tuple[pafs.FileInfo, str]] = {}
    places = [_place(os.fspath(name), filesystem) for name in names]
    common_place = places[0][0]
    for place, path in places:
        if not place.equals(common_place):
            raise SchemaError(
                f"the paths of a scan are in one place, but {named(places[0][1])} and {named(path)} are in two",
                hint="Scan one place at a time.",
            )
        for info, base in _infos(place, path):
            found.setdefault(info.path, (info, base))
    chosen = _one_kind(list(found), names, kind)
    all_kinds = kind is not None
    there = [found[path] for path in sorted(found) if all_kinds or file_kind(PurePosixPath(path)) is chosen]
    if not there:
        raise _nothing(names)
    values = [_folder_values(info.path, base) if with_folders else {} for info, base in there]
    folders, columns = _typed(values, [info.path for info, _ in there])
    files = tuple(
        ScanFile(info.path, info.size or 0, info.mtime_ns, tuple(own.items()))
        for (info, _), own in zip(there, columns, strict=True)
    )
    return Found(chosen, common_place, files, folders)


def _place(name: str, filesystem: pafs.FileSystem | None) -> tuple[pafs.FileSystem, str]:
    """Where the name is, and what it is called there."""
    if filesystem is not None:
        return filesystem, name.rstrip("/") or name
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name):
        try:
            # A pattern may have signs that no address has, so that only what is before them is read as one.
            base, pattern = _split_pattern(name)
            filesystem, path = pafs.FileSystem.from_uri(base)
        except (pa.ArrowException, ValueError, OSError) as error:
            raise SchemaError(f"'{printable(name)}' cannot be opened: {_first_line(error)}") from None
        return filesystem, f"{path.rstrip('/')}/{pattern}" if pattern else path
    return pafs.LocalFileSystem(), os.path.abspath(os.path.expanduser(name))


def _split_pattern(path: str) -> tuple[str, str]:
    """The folders before the first that is a pattern, and the rest.

    >>> _split_pattern("/data/day=*/part-?.parquet"), _split_pattern("/data/a.parquet")
    (('/data', 'day=*/part-?.parquet'), ('/data/a.parquet', ''))
    """
    at = re.search(r"[*?\[]", path)
    if at is None:
        return path, ""
    folder = path.rfind("/", 0, at.start())
    return path[:folder] if folder > 0 else "/", path[folder + 1 :]


def _infos(filesystem: pafs.FileSystem, path: str) -> Iterator[tuple[pafs.FileInfo, str]]:
    """The files that a path means, each with the folder below which its folders are columns."""
    try:
        [info] = filesystem.get_file_info([path])
        if info.type == pafs.FileType.File:
            yield info, str(PurePosixPath(path).parent)
        elif info.type == pafs.FileType.Directory:
            yield from ((one, path) for one in _below(filesystem, path) if not _is_hidden(one.path, path))
        else:
            base, pattern = _split_pattern(path)
            if not pattern:
                raise SchemaError(
                    f"there is no file or folder {named(path)}",
                    hint=_neighbours(filesystem, path) or None,
                )
            wanted = _pattern(pattern)
            if filesystem.get_file_info([base])[0].type == pafs.FileType.Directory:
                for one in _below(filesystem, base):
                    if wanted.fullmatch(one.path[len(base) :].lstrip("/")) and not _is_hidden(one.path, base):
                        yield one, base
    except (pa.ArrowException, OSError) as error:
        raise SchemaError(f"{named(path)} cannot be read: {_first_line(error)}") from None


def _below(filesystem: pafs.FileSystem, folder: str) -> list[pafs.FileInfo]:
    found = filesystem.get_file_info(pafs.FileSelector(folder, recursive=True))
    return [info for info in found if info.type == pafs.FileType.File]


def _is_hidden(path: str, base: str) -> bool:
    """Spark leaves _SUCCESS and .crc files beside the data, and unfinished files in _temporary."""
    parts = PurePosixPath(path[len(base) :].lstrip("/")).parts
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


def _pattern(text: str) -> re.Pattern[str]:
    """The pattern of a shell: `**/` is any number of folders, and no other sign goes beyond one.

    >>> bool(_pattern("**/part-?.parquet").fullmatch("a/b/part-1.parquet")), bool(_pattern("*").fullmatch("a/b"))
    (True, False)
    """
    parts, at = [], 0
    while at < len(text):
        if text.startswith("**/", at):
            parts.append("(?:[^/]+/)*")
            at += 3
            continue
        if text.startswith("**", at):
            parts.append(".*")
            at += 2
            continue
        sign, end = text[at], text.find("]", at + 2)
        if sign == "[" and end > 0:
            inside = text[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            parts.append(f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]")
            at = end
        else:
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign)))
        at += 1
    try:
        return re.compile("".join(parts))
    except re.error as error:
        raise SchemaError(f"'{printable(text, LONGEST)}' is not a pattern of paths: {error}") from None


def _one_kind(paths: list[str], names: Sequence[Any], given: FileKind | None) -> FileKind:
    if given is not None:
        return given
    kinds = list(dict.fromkeys(kind for path in paths if (kind := file_kind(PurePosixPath(path))) is not None))
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        raise SchemaError(
            f"the files are of several kinds: {listed(kind.value for kind in kinds)}", hint="Give one kind at a time."
        )
    if paths:
        raise SchemaError(
            f"nothing tells the format of {named(paths[0])}",
            hint=f"Say it: format='parquet'. It can be {listed(kind.value for kind in FileKind)}; known endings are "
            f"{listed(ending for kind in FileKind for ending in endings_of(kind) if ending.count('.') == 1)}.",
        )
    raise _nothing(names)


def _nothing(names: Sequence[Any]) -> SchemaError:
    told = listed(f"'{printable(os.fspath(name))}'" for name in names)
    return SchemaError(f"there are no files of events in {told}", hint="Empty folders and hidden files do not count.")


def _neighbours(filesystem: pafs.FileSystem, path: str) -> str:
    """What is called nearly so in the same folder."""
    folder, name = str(PurePosixPath(path).parent), PurePosixPath(path).name
    try:
        there = filesystem.get_file_info(pafs.FileSelector(folder))
    except (pa.ArrowException, OSError):
        return ""
    return did_you_mean(name, [PurePosixPath(info.path).name for info in there]).strip()


def _first_line(error: BaseException) -> str:
    return printable((str(error).splitlines() or [type(error).__name__])[0], 200)


# --- folders that are columns ----------------------------------------------------------------------------------------


def _folder_values(path: str, base: str) -> dict[str, str | None]:
    """What the folders below the base say.

    >>> _folder_values("/data/day=2024-01-31/site=a%2Fb/part-0.parquet", "/data")
    {'day': '2024-01-31', 'site': 'a/b'}
    """
    found: dict[str, str | None] = {}
    for part in PurePosixPath(path[len(base) :].lstrip("/")).parts[:-1]:
        name, is_value, text = part.partition("=")
        if is_value and name:
            found[unquote(name)] = None if text == NO_VALUE else unquote(text)
    return found


def _typed(values: Sequence[Mapping[str, str | None]], paths: Sequence[str]) -> tuple[pa.Schema, list[dict[str, Any]]]:
    """The columns that folders are: of whole numbers where all values are, and else of texts."""
    names = list(values[0]) if values else []
    odd = next((path for path, own in zip(paths, values, strict=True) if list(own) != names), None)
    if odd is not None:
        raise SchemaError(
            f"the folders of {named(paths[0])} say {listed(names) or 'nothing'}, and those of {named(odd)} "
            "something else",
            hint="Scan one tree of folders at a time, or use partitioning=None, which reads nothing from their names.",
        )
    whole = {name: all(_is_whole(own[name]) for own in values) for name in names}
    columns = [
        {name: int(text) if whole[name] and text is not None else text for name, text in own.items()} for own in values
    ]
    return pa.schema([(name, pa.int64() if whole[name] else pa.string()) for name in names]), columns


def _is_whole(text: str | None) -> bool:
    return text is None or bool(re.fullmatch(r"-?(0|[1-9]\d{0,17})", text))

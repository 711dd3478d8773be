"""Where matches go: names that are safe, and apart from everything that is read."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

from kleene.cli.reading import Inputs, parts_of
from kleene.errors import SchemaError, printable
from kleene.files import check_replaceable, endings_of, output_kind

_LONGEST_NAME = 255
"""Bytes that the name of a file may have, on nearly all file systems."""


def output_paths(
    names: Sequence[str], query: Path | None, path: Path | None, overwrite: bool, files: Inputs
) -> dict[str, Path]:
    """Where each query's matches go: of several queries, each to a name of its own. `query` is the file of the text."""
    if path is None:
        return {}
    endings = tuple(endings_of(output_kind(path)))
    paths = _named(names, path)
    for target in paths.values():
        check_apart(target, files, query, "output")
        _check_writable(target)
        if os.path.exists(target) and not _is_device(target):
            if not overwrite:
                raise SchemaError(
                    f"the output '{printable(str(target))}' exists", hint="Choose another name, or add --overwrite."
                )
            check_replaceable(target, endings)
    return paths


def _named(names: Iterable[str], path: Path) -> dict[str, Path]:
    names = list(names)
    if len(names) == 1:
        return {names[0]: path}
    found: dict[str, Path] = {}
    taken: dict[str, str] = {}
    for name in names:
        file_name = f"{path.stem}.{in_file_name(name)}{path.suffix}"
        if len(os.fsencode(file_name)) > _LONGEST_NAME:
            raise SchemaError(
                f"the stream '{printable(name)}' has a name that is too long for a file",
                hint="Give it a shorter one with INTO.",
            )
        # Some file systems take letters of either case, and accents written in either way, for the same.
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", file_name).casefold())
        if folded in taken:
            raise SchemaError(
                f"the streams '{printable(taken[folded])}' and '{printable(name)}' would be written to one file",
                hint="Give them names that differ in more than the case of letters.",
            )
        taken[folded] = name
        found[name] = path.with_name(file_name)
    return found


def in_file_name(name: str) -> str:
    """The name of a stream as part of a file's name: letters, digits, _ and - as they are, the rest as in a URL.

    >>> in_file_name("x/../y"), in_file_name("Kühl-Alarm_2")
    ('x%2F%2E%2E%2Fy', 'Kühl-Alarm_2')
    """
    return "".join(
        letter if letter.isalnum() or letter in "_-" else "".join(f"%{byte:02X}" for byte in letter.encode("utf-8"))
        for letter in name
    )


def check_apart(target: Path, files: Inputs, query: Path | None, what: str) -> None:
    """An error if writing there could change what is read, under whatever name it goes."""
    shown, place = printable(str(target)), _real(target)
    own, above = _identity(place), {_identity(parent) for parent in place.parents}
    for part in parts_of(files):
        item = _real(part.path)
        is_within = item in place.parents or place in item.parents or _identity(item) in above
        holds = own is not None and own in {_identity(parent) for parent in item.parents}
        if place == item or is_within or holds:
            raise SchemaError(f"the {what} '{shown}' is an input, or lies in one", hint="Choose another name.")
        if own is not None and own in map(_identity, (item, *part.files)):
            raise SchemaError(f"the {what} '{shown}' is an input under another name", hint="Choose another name.")
    if own is not None and query is not None and own == _identity(query):
        raise SchemaError(f"the {what} '{shown}' is the file of the query", hint="Choose another name.")


def _real(path: Path) -> Path:
    # Not Path.resolve, which has no answer for links that lead to themselves.
    return Path(os.path.realpath(path))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_device(path: Path) -> bool:
    return not os.path.isfile(path) and not os.path.isdir(path)


def _check_writable(target: Path) -> None:
    """What can be known before the work begins, which may take long."""
    shown = printable(str(target))
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(target)) and not os.path.exists(target.parent):
        raise SchemaError(
            f"'{shown}' is not on this machine, but the command line writes to local files only",
            hint="Write to a local path and copy it from there, or use Query.match on Spark from Python.",
        )
    try:
        os.lstat(target)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # a name that is too long, or a folder that may not be looked into
        raise SchemaError(
            f"the output '{shown}' cannot be written: {error.strerror}", hint="Choose another name."
        ) from None
    folder = next(parent for parent in _real(target).parents if os.path.exists(parent))
    if not os.path.isdir(folder):
        raise SchemaError(f"the output '{shown}' cannot be written: '{printable(str(folder))}' is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK) and not (os.path.exists(target) and _is_device(target)):
        raise SchemaError(f"the output '{shown}' cannot be written: no permission in '{printable(str(folder))}'")

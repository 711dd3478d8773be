"""Files and folders that replace what was there only once they are whole.

What is written goes to a draft beside the target, is synced to the disk, and is then renamed: whatever fails before,
the disk being full included, leaves the old file as it was, and no draft behind. A draft is its user's alone
until it is whole, since what it replaces may be.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from kleene.errors import ExecutionError, SchemaError, printable

Check = Callable[[Path], None]
_MARK = ".kleene-"
_BESIDE = re.compile(r"_SUCCESS|\._SUCCESS\.crc|\.part-[^/]*\.crc|_spark_metadata(/\.?\d+(\.compact)?(\.crc)?)?")
"""What Spark writes beside the files of an output."""


@contextmanager
def replaced_file(path: Path, check: Check | None = None) -> Iterator[BinaryIO]:
    """A file to write to; at the end of the block it stands at the path.

    A link is followed, and the file that it leads to is replaced. A device or a pipe is not replaced but written to.
    check: raises an error if a folder that was there may not be removed.
    """
    with told(path):
        if _is_standard_output(path) or _is_special(path):
            with tempfile.TemporaryFile() as draft:
                yield draft
                draft.seek(0)
                with _opened(path) as sink:
                    shutil.copyfileobj(draft, sink)
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        place = _draft_beside(target)
        try:
            with open(place, "xb", opener=_private) as file:
                yield file
                file.flush()
                _set_rights(target, file.fileno())
                os.fsync(file.fileno())
            _put(place, target, check)
        finally:
            place.unlink(missing_ok=True)


@contextmanager
def replaced_folder(path: Path, check: Check | None = None) -> Iterator[Path]:
    """A folder to write files into; at the end of the block it stands at the path, in place of what was there.

    Who writes a file into it syncs that file. check: raises an error if a folder that was there may not be removed.
    """
    with told(path):
        target = Path(os.path.realpath(path))
        if _is_special(path):
            raise SchemaError(f"'{printable(str(path))}' is not a place for a folder", hint="Choose another name.")
        target.parent.mkdir(parents=True, exist_ok=True)
        place = _draft_beside(target)
        try:
            place.mkdir(0o700)
            yield place
            place.chmod(_mode_of(target) if os.path.isdir(target) else 0o777 & ~_umask())
            _sync(place)
            _put(place, target, check)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """The text as the file, in place of what is there."""
    with replaced_file(path) as file:
        file.write(text.encode("utf-8"))


def check_replaceable(path: Path, endings: tuple[str, ...]) -> None:
    """An error if a folder at the path holds more than an earlier output: it would be lost."""
    if not os.path.isdir(path):
        return
    foreign = next((file for file in path.rglob("*") if not _is_own(file, path, endings)), None)
    if foreign is not None:
        raise SchemaError(
            f"the output '{printable(str(path))}' is a folder that holds other things: '{printable(foreign.name)}'",
            hint="Choose another name, or empty the folder yourself.",
        )


def _is_own(file: Path, folder: Path, endings: tuple[str, ...]) -> bool:
    name = file.relative_to(folder).as_posix()
    is_part = name.startswith("part-") and name.lower().endswith(endings) and os.path.isfile(file)
    return _BESIDE.fullmatch(name) is not None or (is_part and "/" not in name)


def _is_special(target: Path) -> bool:
    # Not the methods of Path, which fail on a name that is too long, or a folder that may not be looked into.
    return os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target)


def _is_standard_output(path: Path) -> bool:
    """Whether the path leads to where standard output goes, be it a file: a new file would not be what is read."""
    try:
        return os.path.samestat(path.stat(), os.fstat(1))
    except OSError:
        return False


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.dup(1), "wb") if _is_standard_output(path) else path.open("wb")


def _draft_beside(target: Path) -> Path:
    return target.with_name(f"{_MARK}{secrets.token_hex(8)}.draft")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _set_rights(target: Path, draft: int) -> None:
    """A file that is replaced keeps its mode and, where we may give it away, its owner; a new one has the usual."""
    if not os.path.isfile(target):
        os.fchmod(draft, 0o666 & ~_umask())
        return
    old, new = target.stat(), os.fstat(draft)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with suppress(OSError):
            os.fchown(draft, old.st_uid, old.st_gid)
    os.fchmod(draft, _mode_of(target))


def _mode_of(target: Path) -> int:
    """Who may read, write and enter; not the bits that lend the owner's rights to whoever runs the file."""
    return target.stat().st_mode & 0o777


def _umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found


def _put(draft: Path, target: Path, check: Check | None = None) -> None:
    """Renames the draft to the target; a folder is in the way of any name, so it steps aside first."""
    if not os.path.isdir(target) and not (os.path.isdir(draft) and os.path.exists(target)):
        draft.replace(target)
        _sync(target.parent)
        return
    aside = _draft_beside(target)
    try:
        target.rename(aside)
        draft.replace(target)
    except BaseException:  # an interrupt included, which may come between any two steps
        if os.path.lexists(aside) and not os.path.lexists(target):
            aside.rename(target)
        raise
    _sync(target.parent)
    _remove(aside, target, check)


def _remove(aside: Path, target: Path, check: Check | None) -> None:
    """Removes what has stepped aside, unless something was put there meanwhile that nobody can make again."""
    if not os.path.isdir(aside):
        aside.unlink(missing_ok=True)
        return
    try:
        if check is not None:
            check(aside)
    except SchemaError:
        raise ExecutionError(
            f"while '{printable(str(target))}' was being written, other things were put into the folder it replaces",
            hint=f"The output is whole. What was there before is kept as '{printable(str(aside), 300)}'.",
        ) from None
    shutil.rmtree(aside, ignore_errors=True)


def _sync(path: Path) -> None:
    # Some file systems know no fsync of folders; then a crash of the machine may undo the renaming.
    with suppress(OSError):
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What the system cannot write, as an error that names the path."""
    try:
        yield
    except OSError as error:
        hint = "What was there before is unchanged." if os.path.isfile(path) or os.path.isdir(path) else None
        raise ExecutionError(
            f"'{printable(str(path))}' cannot be written: {error.strerror or error}", hint=hint
        ) from None

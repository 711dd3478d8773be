"""Files and folders that replace what was there only once they are whole.

What is written goes to a draft beside the target, is synced to the disk, and is then renamed: whatever fails before,
the disk being full included, leaves the old file as it was, and no draft behind.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from kleene.errors import ExecutionError, SchemaError, printable

_MARK = ".kleene-"


@contextmanager
def replaced_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to; at the end of the block it stands at the path.

    A link is followed, and the file that it leads to is replaced. A device or a pipe is not replaced but written to.
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
            with place.open("xb") as file:
                yield file
                file.flush()
                _keep_rights(target, file.fileno())
                os.fsync(file.fileno())
            _put(place, target)
        finally:
            place.unlink(missing_ok=True)


@contextmanager
def replaced_folder(path: Path) -> Iterator[Path]:
    """A folder to write files into; at the end of the block it stands at the path, in place of what was there.

    Who writes a file into it syncs that file.
    """
    with told(path):
        target = Path(os.path.realpath(path))
        if _is_special(path):
            raise SchemaError(f"'{printable(str(path))}' is not a place for a folder", hint="Choose another name.")
        target.parent.mkdir(parents=True, exist_ok=True)
        place = _draft_beside(target)
        try:
            place.mkdir()
            yield place
            if target.is_dir():
                place.chmod(stat.S_IMODE(target.stat().st_mode))
            _sync(place)
            _put(place, target)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """The text as the file, in place of what is there."""
    with replaced_file(path) as file:
        file.write(text.encode("utf-8"))


def check_replaceable(path: Path, endings: tuple[str, ...]) -> None:
    """An error if a folder at the path holds more than an earlier output: it would be lost."""
    if not path.is_dir():
        return
    for file in path.rglob("*"):
        is_own = file.name.startswith(("_", ".")) or file.name.lower().endswith(endings)
        if not is_own or file.is_dir():
            raise SchemaError(
                f"the output '{printable(str(path))}' is a folder with other things in it: '{printable(file.name)}'",
                hint="Choose another name, or empty the folder yourself.",
            )


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file() and not target.is_dir()


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


def _keep_rights(target: Path, draft: int) -> None:
    """A file that is replaced keeps its mode and, where we may give it away, its owner."""
    if not target.is_file():
        return
    old, new = target.stat(), os.fstat(draft)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        with suppress(OSError):
            os.fchown(draft, old.st_uid, old.st_gid)
    os.fchmod(draft, stat.S_IMODE(old.st_mode))


def _put(draft: Path, target: Path) -> None:
    """Renames the draft to the target; a folder is in the way of any name, so it steps aside first."""
    aside = None
    if target.is_dir() or (draft.is_dir() and target.exists()):
        aside = _draft_beside(target)
        target.rename(aside)
    try:
        draft.replace(target)
    except OSError:
        if aside is not None:
            aside.rename(target)
        raise
    _sync(target.parent)
    if aside is not None and aside.is_dir():
        shutil.rmtree(aside, ignore_errors=True)
    elif aside is not None:
        aside.unlink(missing_ok=True)


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
        hint = "What was there before is as it was." if path.is_file() or path.is_dir() else None
        raise ExecutionError(
            f"'{printable(str(path))}' cannot be written: {error.strerror or error}", hint=hint
        ) from None

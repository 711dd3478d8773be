"""The folder in which machine code and parsers wait for the next process: who may write there, and how large it grows.

Whoever can write there decides what we execute, so every folder, named or not, belongs to the user alone, and so does
every file that is read. A checksum tells damage from a whole file. It has no key: whoever could forge a file could read
the key beside it, so a key would protect nothing that the owner and the mode do not.

Whatever goes wrong with the folder costs time, not the answer.
"""

from __future__ import annotations

import atexit
import functools
import getpass
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import uuid
import warnings
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kleene.errors import KleeneWarning, printable

DAY = 24 * 60 * 60
_WRITES_BETWEEN_LOOKS = 100  # at the size of the folder
_OURS = (".bin", ".py")
_NAME = re.compile(r"[0-9a-f]{32}\.")

_writes: dict[Path, int] = defaultdict(int)
_complained: set[str] = set()


def cache_folder() -> Path | None:
    """The folder of the machine code, made if need be: KLEENE_CACHE_DIR, else the user's cache folder.

    Where that is not safe, or cannot be written to, a folder of the user among the temporary files; None where nothing
    can be written.
    """
    named = os.environ.get("KLEENE_CACHE_DIR")
    if named:
        folder = Path(os.path.expanduser(named)).absolute()
        problem = _problem_with(folder)
        if problem is None:
            return folder
        _complain(named, problem)
    for place in [_temporary_folder] if named else [_user_folder, _temporary_folder]:
        with suppress(OSError, RuntimeError):  # there is no home, no place for temporary files
            folder = place()
            if _problem_with(folder) is None:
                return folder
    return _fresh_folder()


def stored_at(folder: Path, key: str, name: str) -> Path:
    return folder / f"{key}.{name}.bin"


def source_at(folder: Path, key: str) -> Path:
    return folder / f"{key}.py"


# ---- files


def read(path: Path) -> bytes:
    """The content of a file that `write` wrote; an error if it is missing, damaged, or could be of another user."""
    with open(os.open(path, _flags(os.O_RDONLY)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or not _is_of_user(status) or status.st_mode & 0o022:
            raise PermissionError(f"not a file of the user's alone: {path}")
        data = file.read()
    size = hashlib.sha256().digest_size
    if hashlib.sha256(data[size:]).digest() != data[:size]:
        raise ValueError(f"damaged: {path}")
    if time.time() - status.st_mtime > DAY:
        with suppress(OSError):
            os.utime(path)  # it was of use: what is removed first is what was of use least recently
    return data[size:]


def write(path: Path, content: bytes) -> None:
    _replace(path, sealed(content))
    _writes[path.parent] += 1
    if _writes[path.parent] % _WRITES_BETWEEN_LOOKS == 1:
        evict(path.parent)


def write_source(path: Path, source: str) -> None:
    """For people, debuggers and profilers; nothing executes it."""
    content = source.encode()
    with suppress(OSError):
        with suppress(FileNotFoundError), open(os.open(path, _flags(os.O_RDONLY)), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.read() == content:
                return
        _replace(path, content)


def sealed(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content


def _replace(path: Path, content: bytes) -> None:
    """Other processes see the whole file or none."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(os.open(draft, _flags(os.O_WRONLY | os.O_CREAT | os.O_EXCL), 0o600), "wb") as file:
            file.write(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _flags(flags: int) -> int:
    """No link is followed, and nothing is waited for: a pipe in place of a file would hold us for ever."""
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    return flags


# ---- its size


def size_limit() -> int:
    """How many bytes a folder may hold: KLEENE_CACHE_LIMIT, in megabytes."""
    return setting("KLEENE_CACHE_LIMIT", 512) * 1_000_000


@dataclass(frozen=True, slots=True)
class Contents:
    """What a folder holds: modules of machine code, and how many bytes they have."""

    modules: int
    bytes: int


def contents(folder: Path) -> Contents:
    files = _own_files(folder)
    return Contents(len({path.name.split(".")[0] for path, _ in files}), sum(size for _, size in files))


def clear(folder: Path) -> None:
    """Remove all machine code; nothing else that may lie there."""
    for path, _ in _own_files(folder):
        with suppress(OSError):
            path.unlink()


def _own_files(folder: Path) -> list[tuple[Path, int]]:
    found = []
    for path in folder.iterdir():
        with suppress(OSError):
            status = path.lstat()
            if path.name.endswith(_OURS) and _NAME.match(path.name) and stat.S_ISREG(status.st_mode):
                found.append((path, status.st_size))
    return found


def evict(folder: Path) -> None:
    """Remove what was of use least recently, until the folder is well below its limit, and drafts of long ago.

    Other processes may do the same at the same time, and may go on using what they have loaded.
    """
    sizes: dict[str, int] = defaultdict(int)
    used: dict[str, float] = defaultdict(float)
    files: dict[str, list[str]] = defaultdict(list)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if entry.name.endswith(".tmp") and time.time() - status.st_mtime > DAY:
                    os.unlink(entry.path)
                elif entry.name.endswith(_OURS) and stat.S_ISREG(status.st_mode):
                    key = entry.name.split(".")[0]
                    sizes[key] += status.st_size
                    used[key] = max(used[key], status.st_mtime)
                    files[key].append(entry.path)
    total, limit = sum(sizes.values()), size_limit()
    if total <= limit:
        return
    for key in sorted(sizes, key=used.__getitem__):
        if total <= 0.8 * limit:
            return
        total -= sizes[key]
        for path in files[key]:
            with suppress(OSError):
                os.unlink(path)


def setting(name: str, default: int) -> int:
    """A whole number from the environment; what is not one counts for nothing, and a sentence says so."""
    told = os.environ.get(name)
    if not told:
        return default
    with suppress(ValueError):
        if int(told) >= 0:
            return int(told)
    if name not in _complained:
        _complained.add(name)
        warnings.warn(
            f"{name} is '{printable(told, 40)}', which is not a whole number, so {default} is used",
            KleeneWarning,
            stacklevel=2,
        )
    return default


# ---- places


def _user_folder() -> Path:
    if sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (caches / "kleene").resolve()


def _temporary_folder() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else getpass.getuser()
    return Path(tempfile.gettempdir()) / f"kleene-{user}"


@functools.cache
def _fresh_folder() -> Path | None:
    try:
        folder = Path(tempfile.mkdtemp(prefix="kleene-"))
    except OSError:
        return None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# ---- who may write there


def _complain(named: str, problem: str) -> None:
    if named in _complained:
        return
    _complained.add(named)
    warnings.warn(
        f"KLEENE_CACHE_DIR is not used: {printable(named, 200)} {problem}. Machine code is kept elsewhere. "
        "Name a folder of your own that nobody else can open (chmod 700), or one that does not exist yet.",
        KleeneWarning,
        stacklevel=2,
    )


def _problem_with(folder: Path) -> str | None:
    """Why the folder, which is made if need be, cannot be trusted or used."""
    try:
        if folder.is_symlink():
            return "is a link"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _problem_with_owner(folder) or _problem_with_parents(folder) or _problem_with_writing(folder)
    except OSError as error:
        return f"cannot be made or opened ({error.strerror or type(error).__name__})"


def _problem_with_owner(folder: Path) -> str | None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return "is not a folder"
    if not _is_of_user(status):
        return "belongs to another user"
    # Tightening it would be a surprise for whoever shares it for a reason, and late: others could have put files there.
    if hasattr(os, "getuid") and status.st_mode & 0o077:
        return f"is open to other users (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def _problem_with_parents(folder: Path) -> str | None:
    """Whoever can rename a folder above can put another in its place."""
    if not hasattr(os, "getuid"):
        return None
    for parent in folder.resolve().parents:
        status = parent.stat()
        if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
            return f"is below {printable(str(parent), 200)}, which other users can change"
        if status.st_uid not in (0, os.getuid()):
            return f"is below {printable(str(parent), 200)}, which belongs to another user"
    return None


def _problem_with_writing(folder: Path) -> str | None:
    tempfile.TemporaryFile(dir=folder).close()
    return None


def _is_of_user(status: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()  # Windows keeps folders by user

"""Generated Python source -> functions of machine code, kept on disk so that the next process need not compile.

What `load` returns behaves like the functions of the source and accepts only arguments of the given signatures. A
function of another module that generated source calls is marked with `helper`: it is plain Python when called from
plain Python, and compiled when called from compiled code.

Machine code lies in `cache_folder()` under a hash of everything it depends on, so that a file is either right or never
looked at. Whatever goes wrong with the folder costs time, not the answer.
"""

from __future__ import annotations

import ast
import atexit
import functools
import getpass
import hashlib
import importlib
import importlib.metadata
import linecache
import os
import pickle
import shutil
import stat
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, TypeVar

Kernels = Mapping[str, Callable[..., Any]]
Function = TypeVar("Function", bound=Callable[..., Any])

# "numpy": a float divided by zero is inf or nan, as in the columns, and costs no test in the loop. Nobody calls from C.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "boundscheck": False, "nogil": True, "no_cfunc_wrapper": True}

_loaded: dict[str, Kernels] = {}
_locks: dict[str, threading.Lock] = {}
_helper_modules: set[str] = set()
_unregistered: list[Callable[..., Any]] = []
_registering = threading.Lock()


def load(source: str, signatures: Mapping[str, str], compiled: bool = True) -> Kernels:
    """The functions of a generated module that have a signature, as machine code or as plain Python.

    >>> source = "def add(a, b):\\n    return a + b\\n"
    >>> load(source, {"add": "int64(int64, int64)"}, compiled=False)["add"](1, 2)
    3

    A function without a signature serves the others. A function stands in the source after those that it calls. Where
    the source says ALLOCATES = False, no references to arrays are counted, which in a small loop is most of the time.
    """
    key = _key(source, signatures) if compiled else _plain_key(source, signatures)
    with _locks.setdefault(key, threading.Lock()):
        if key not in _loaded:
            make = _machine_code if compiled else _plain
            _loaded[key] = MappingProxyType(make(source, signatures, key))
        return _loaded[key]


def is_cached(source: str, signatures: Mapping[str, str]) -> bool:
    """Whether machine code for the source is loaded or lies on disk, so that `load` is quick. Does not import numba."""
    key = _key(source, signatures)
    if key in _loaded:
        return True
    folder = cache_folder()
    return folder is not None and all(_stored_at(folder, key, name).is_file() for name in signatures)


def is_loaded(source: str, signatures: Mapping[str, str]) -> bool:
    """Whether machine code for the source is in this process already."""
    return _key(source, signatures) in _loaded


def helper(function: Function) -> Function:
    """Let generated source call the function, in plain Python and in machine code alike.

    Such a function may call other helpers. Its module says with absolute imports what else it depends on.
    """
    _text_of(function.__module__)  # as it is now: the file may have changed when the first query is compiled
    _helper_modules.add(function.__module__)
    _unregistered.append(function)
    return function


# ---- from source to functions


def _plain(source: str, signatures: Mapping[str, str], key: str) -> dict[str, Callable[..., Any]]:
    functions = _functions_of(_executed(source, key, f"<kleene {key}>"))
    return {name: functions[name] for name in signatures}


def _machine_code(source: str, signatures: Mapping[str, str], key: str) -> dict[str, Callable[..., Any]]:
    numba = _untyped("numba")
    if numba.config.DISABLE_JIT:
        return _plain(source, signatures, key)
    folder = cache_folder()
    path = folder / f"{key}.py" if folder else Path(f"<kleene {key}>")
    module = _executed(source, f"kleene_generated_{key}", str(path))
    sys.modules[module.__name__] = module  # numba imports it by name when it reads machine code from disk
    if folder:
        _write_source(path, source)
    _register_helpers()
    functions = _functions_of(module)
    options = _OPTIONS if vars(module).get("ALLOCATES", True) else {**_OPTIONS, "_nrt": False}
    dispatchers: dict[str, Any] = {
        # What Python cannot call takes a third less time to compile.
        name: numba.njit(
            **options | {"no_cpython_wrapper": name not in signatures, "forceinline": name not in signatures}
        )(function)
        for name, function in functions.items()
    }
    vars(module).update(dispatchers)
    for name in [name for name in functions if name in signatures]:
        if folder:
            dispatchers[name]._cache = _Stored(signatures[name], _stored_at(folder, key, name))
        dispatchers[name].compile(signatures[name])
        dispatchers[name].disable_compile()
    return {name: dispatchers[name] for name in signatures}


def _executed(source: str, name: str, filename: str) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = filename
    # For tracebacks; no time of change, so that nobody looks for the file.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec", dont_inherit=True), vars(module))
    return module


def _functions_of(module: ModuleType) -> dict[str, FunctionType]:
    """The functions that the module defines itself, in the order of its text."""
    values = vars(module).items()
    return {name: f for name, f in values if isinstance(f, FunctionType) and f.__module__ == module.__name__}


def _register_helpers() -> None:
    extending = _untyped("numba.extending")
    with _registering:
        while _unregistered:
            extending.register_jitable(**_OPTIONS)(_unregistered.pop())


def _untyped(module: str) -> Any:
    """A part of numba. Some of its versions have types, of some of its functions; none of the code here needs them."""
    return importlib.import_module(module)


# ---- what machine code depends on


def _plain_key(source: str, signatures: Mapping[str, str]) -> str:
    return "plain_" + hashlib.sha256(repr((source, sorted(signatures))).encode()).hexdigest()[:32]


def _key(source: str, signatures: Mapping[str, str]) -> str:
    return _key_of(source, tuple(sorted(signatures.items())))


@functools.lru_cache(maxsize=1024)
def _key_of(source: str, signatures: tuple[tuple[str, str], ...]) -> str:
    parts = (source, signatures, _dependencies(source), _OPTIONS, _platform())
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def _dependencies(source: str) -> list[tuple[str, str]]:
    """Names and texts of the modules that the source imports from, and of those that its helpers import from."""
    tree = ast.parse(source)
    imports: list[ast.stmt] = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, type_ignores=[]), "<imports>", "exec", dont_inherit=True), {})
    texts: dict[str, str] = {}
    waiting = list(_imported(tree))
    while waiting:
        name = waiting.pop()
        is_ours = name.partition(".")[0] not in sys.stdlib_module_names
        if is_ours and name in sys.modules and name not in texts:
            texts[name] = _text_of(name)
            if name in _helper_modules:
                waiting += _imported(ast.parse(texts[name]))
    return sorted(texts.items())


def _imported(tree: ast.Module) -> Iterator[str]:
    """Names of modules, and names that may be modules: in `from a import b`, b may be one or not.

    Only what is imported in every process counts, not what a function or a type checker may import.
    """
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@functools.cache
def _text_of(module: str) -> str:
    loader: Any = getattr(sys.modules[module], "__loader__", None)
    with suppress(ImportError, AttributeError):
        text: str | None = loader.get_source(module)
        if text is not None:
            return text
    # Typed at a prompt, or shipped without its text: no other process can know whether it has the same.
    return f"# {uuid.uuid4()}"


@functools.cache
def _platform() -> tuple[str, ...]:
    from kleene import __version__  # here, because `kleene` itself may be on its way to import this module

    llvm = _untyped("llvmlite.binding")
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM knows them only for some processors
        features = ""
    versions = [importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    machine = (llvm.get_process_triple(), llvm.get_host_cpu_name(), features)
    return (__version__, sys.version, *versions, *machine, *settings)


# ---- files of machine code


@dataclass(frozen=True, slots=True)
class _Stored:
    """Whom numba asks for a function's machine code before it compiles, and whom it tells afterwards.

    It stands in for numba's own cache, which trusts its files: a damaged one is an error at best, and wrong machine
    code at worst. Here a checksum goes before the pickle.
    """

    signature: str
    path: Path

    @property
    def cache_path(self) -> str:
        return str(self.path.parent)

    def load_overload(self, signature: object, target_context: Any) -> Any:
        if signature != self.signature:
            return None
        target_context.refresh()
        try:
            parts = pickle.loads(_unsealed(self.path.read_bytes()))
            return _untyped("numba.core.compiler").CompileResult._rebuild(target_context, *parts)
        except Exception:  # missing, damaged, made unreadable: whatever it is, compiling mends it
            return None

    def save_overload(self, signature: object, result: Any) -> None:
        if signature != self.signature or result.library.has_dynamic_globals:
            return
        with suppress(Exception):  # a full disk, a folder that is gone: the function works all the same
            _write(self.path, _sealed(_untyped("numba.core.serialize").dumps(result._reduce())))


def _stored_at(folder: Path, key: str, name: str) -> Path:
    return folder / f"{key}.{name}.bin"


def _sealed(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content


def _unsealed(data: bytes) -> bytes:
    size = hashlib.sha256().digest_size
    if hashlib.sha256(data[size:]).digest() != data[:size]:
        raise ValueError("damaged")
    return data[size:]


def _write_source(path: Path, source: str) -> None:
    """For people, debuggers and profilers; nothing reads it back."""
    content = source.encode()
    with suppress(OSError):
        if not path.exists() or path.read_bytes() != content:
            _write(path, content)


def _write(path: Path, content: bytes) -> None:
    """Other processes see the whole file or none."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


# ---- the folder


def cache_folder() -> Path | None:
    """The folder of the machine code, made if need be: KLEENE_CACHE_DIR, else the user's cache folder.

    Where that cannot be written to, a folder of the user among the temporary files; None where nothing can be written.
    Whoever can write there decides what we execute: a folder that the user has not named must be the user's alone.
    """
    named = os.environ.get("KLEENE_CACHE_DIR")
    if named:
        folder = Path(os.path.expanduser(named)).absolute()
        if _is_made(folder) and _is_writable(folder):
            return folder
    for place in [_temporary_folder] if named else [_user_folder, _temporary_folder]:
        with suppress(OSError, RuntimeError):  # there is no home, no place for temporary files
            folder = place()
            if _is_made(folder) and _is_private(folder) and _is_writable(folder):
                return folder
    return _fresh_folder()


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


def _is_made(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return True


def _is_private(folder: Path) -> bool:
    if not hasattr(os, "getuid"):
        return True  # Windows keeps temporary files by user
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022


def _is_writable(folder: Path) -> bool:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True

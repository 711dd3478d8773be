"""Generated Python source -> functions of machine code, kept on disk so that the next process need not compile.

What `load` returns behaves like the functions of the source and accepts only arguments of the given signatures. A
function of another module that generated source calls is marked with `helper`: it is plain Python when called from
plain Python, and compiled when called from compiled code.

Machine code lies in `cache_folder()` under a hash of everything it depends on, so that a file is either right or never
looked at. In memory are the modules that somebody holds, and as many as KLEENE_CODE_LIMIT says that were of use last.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.metadata
import linecache
import os
import sys
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, TypeVar

from kleene.cache import cache_folder, read, setting, source_at, stored_at, write, write_source
from kleene.engine.compiled.checked import checked
from kleene.engine.compiled.entry import Signature
from kleene.engine.compiled.machine_code import MachineCode, NativeFunction
from kleene.engine.compiled.untyped import untyped

Kernels = Mapping[str, Callable[..., Any]]
Function = TypeVar("Function", bound=Callable[..., Any])

# "numpy": a float divided by zero is inf or nan, as in the columns, and costs no test in the loop. Nobody calls numba's
# wrappers: the way in is our own, so that a process that only runs machine code need not import numba.
# KLEENE_CHECK_BOUNDS is for tests: whatever reads or writes beside an array is an IndexError, at some cost, with "1" in
# machine code, with "plain" in plain Python.
_CHECKS = os.environ.get("KLEENE_CHECK_BOUNDS")
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "boundscheck": _CHECKS == "1",
    "nogil": True,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
}

_loaded: OrderedDict[str, Kernels] = OrderedDict()  # what was of use last comes last
_received: dict[tuple[str, str], bytes] = {}
_looking = threading.Lock()
_locks = [threading.Lock() for _ in range(64)]
_helper_modules: set[str] = set()
_unregistered: list[Callable[..., Any]] = []
_registering = threading.Lock()


def load(
    source: str, signatures: Mapping[str, str], compiled: bool = True, called: Mapping[str, Any] | None = None
) -> Kernels:
    """The functions of a generated module that have a signature, as machine code or as plain Python.

    >>> source = "def add(a, b):\\n    return a + b\\n"
    >>> load(source, {"add": "int64(int64, int64)"}, compiled=False)["add"](1, 2)
    3

    A function without a signature serves the others. A function stands in the source after those that it calls. Where
    the source says ALLOCATES = False, no references to arrays are counted, which in a small loop is most of the time.

    called: what the source calls by name besides, such as functions of the user's own. Such code is not remembered
        here, nor kept on disk: nothing says whether a function in another process is the same.
    """
    if called:
        own = _machine_code if compiled else _plain
        return MappingProxyType(own(source, signatures, f"calling_{uuid.uuid4().hex}", called))
    key = _key(source, signatures) if compiled else _plain_key(source, signatures)
    with _locks[hash(key) % len(_locks)]:
        kernels = _remembered(key)
        if kernels is None:
            make = _machine_code if compiled else _plain
            kernels = MappingProxyType(make(source, signatures, key))
            _remember(key, kernels)
        return kernels


def is_cached(source: str, signatures: Mapping[str, str]) -> bool:
    """Whether machine code for the source is loaded or lies on disk, so that `load` is quick. Does not import numba."""
    if is_loaded(source, signatures):
        return True
    folder = cache_folder()
    return folder is not None and is_stored(source, signatures, folder)


def is_stored(source: str, signatures: Mapping[str, str], folder: Path) -> bool:
    """Whether machine code for the source lies in the folder, or came with the work."""
    key = _key(source, signatures)
    return all((key, name) in _received or stored_at(folder, key, name).is_file() for name in signatures)


def key_of(source: str, signatures: Mapping[str, str]) -> str:
    """What machine code for the source is kept under: a hash of all that it depends on."""
    return _key(source, signatures)


Code = Mapping[tuple[str, str], bytes]
"""Machine code as it lies on disk, by its key and the name of the function."""


def stored_code(source: str, signatures: Mapping[str, str]) -> Code:
    """The machine code for the source as it lies on disk, to be sent to another process; nothing if there is none."""
    key, folder = _key(source, signatures), cache_folder()
    try:
        return {} if folder is None else {(key, name): read(stored_at(folder, key, name)) for name in signatures}
    except (OSError, ValueError):
        return {}


def receive(code: Code) -> None:
    """Takes machine code that came with the work, in place of what came before.

    It is of use if this processor and these libraries are the same. The key says so: it is made anew here, from what
    there is here.
    """
    _received.clear()
    _received.update(code)


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


# ---- what this process remembers


def _remembered(key: str) -> Kernels | None:
    with _looking:
        if key in _loaded:
            _loaded.move_to_end(key)
        return _loaded.get(key)


def _remember(key: str, kernels: Kernels) -> None:
    """Whoever holds a function keeps it; what nobody holds is freed when others were of use more recently."""
    with _looking:
        _loaded[key] = kernels
        while len(_loaded) > max(1, setting("KLEENE_CODE_LIMIT", 128)):
            _, forgotten = _loaded.popitem(last=False)
            for function in forgotten.values():
                if isinstance(function, FunctionType):  # as plain Python
                    linecache.cache.pop(function.__code__.co_filename, None)


# ---- from source to functions


def _plain(
    source: str, signatures: Mapping[str, str], key: str, called: Mapping[str, Any] | None = None
) -> dict[str, Callable[..., Any]]:
    module = _executed(source, key, f"<kleene {key}>")
    functions = _functions_of(module)
    vars(module).update(called or {})
    if _CHECKS == "plain":
        return {name: checked(functions[name]) for name in signatures}
    return {name: functions[name] for name in signatures}


def _machine_code(
    source: str, signatures: Mapping[str, str], key: str, called: Mapping[str, Any] | None = None
) -> dict[str, Callable[..., Any]]:
    if _is_switched_off():
        return _plain(source, signatures, key, called)
    if called:
        return _compiled(source, signatures, key, None, called)
    folder = cache_folder()
    found = None if folder is None else _stored(source, signatures, key, folder)
    return found or _compiled(source, signatures, key, folder)


def _is_switched_off() -> bool:
    """Whether numba is to compile nothing; it is not imported just to be asked."""
    numba: Any = sys.modules.get("numba")
    return bool(numba.config.DISABLE_JIT) if numba else os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def _stored(source: str, signatures: Mapping[str, str], key: str, folder: Path) -> dict[str, Callable[..., Any]] | None:
    try:
        codes = {name: MachineCode.from_bytes(_content(folder, key, name)) for name in signatures}
        kernels = _callables(codes, signatures, was_stored=True)
    except Exception:  # missing, damaged, made unreadable: whatever it is, compiling mends it
        return None
    write_source(source_at(folder, key), source)
    return kernels


def _content(folder: Path, key: str, name: str) -> bytes:
    found = _received.get((key, name))
    return read(stored_at(folder, key, name)) if found is None else found


def _compiled(
    source: str,
    signatures: Mapping[str, str],
    key: str,
    folder: Path | None,
    called: Mapping[str, Any] | None = None,
) -> dict[str, Callable[..., Any]]:
    from kleene.engine.compiled.compiler import compiled

    _register_helpers()
    filename = str(source_at(folder, key)) if folder else f"<kleene {key}>"
    module = _executed(source, f"kleene_generated_{key}", filename)
    functions = _functions_of(module)
    vars(module).update(called or {})
    sys.modules[module.__name__] = module  # numba looks there for the globals of a function
    try:
        codes = compiled(module, functions, signatures, _options(module))
    finally:
        del sys.modules[module.__name__], linecache.cache[filename]
    if folder:
        write_source(source_at(folder, key), source)
        for name, code in codes.items():
            with suppress(Exception):  # a full disk, a folder that is gone: the function works all the same
                write(stored_at(folder, key, name), code.to_bytes())
    return _callables(codes, signatures, was_stored=False)


def _callables(
    codes: Mapping[str, MachineCode], signatures: Mapping[str, str], was_stored: bool
) -> dict[str, Callable[..., Any]]:
    return {name: NativeFunction(codes[name], Signature.parse(signatures[name]), was_stored) for name in signatures}


def _options(module: ModuleType) -> dict[str, Any]:
    return _OPTIONS if vars(module).get("ALLOCATES", True) else {**_OPTIONS, "_nrt": False}


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
    extending = untyped("numba.extending")
    with _registering:
        while _unregistered:
            extending.register_jitable(**_OPTIONS)(_unregistered.pop())


# ---- what machine code depends on


def _plain_key(source: str, signatures: Mapping[str, str]) -> str:
    return "plain_" + hashlib.sha256(repr((source, sorted(signatures))).encode()).hexdigest()[:32]


def _key(source: str, signatures: Mapping[str, str]) -> str:
    return _key_of(source, tuple(sorted(signatures.items())))


@functools.lru_cache(maxsize=1024)
def _key_of(source: str, signatures: tuple[tuple[str, str], ...]) -> str:
    # What a module imports stands before its functions.
    parts = (source, signatures, _dependencies(source.partition("\ndef ")[0]), _OPTIONS, _platform())
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


@functools.lru_cache(maxsize=64)
def _dependencies(head: str) -> list[tuple[str, str]]:
    """Names and texts of the modules that a source imports from, and of those that its helpers import from."""
    tree = ast.parse(head)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            importlib.import_module(node.module)
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

    llvm = untyped("llvmlite.binding")
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM knows them only for some processors
        features = ""
    versions = [importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    machine = (llvm.get_process_triple(), llvm.get_host_cpu_name(), features)
    return (__version__, sys.version, *versions, *machine, *settings)

"""Python functions -> object code, by numba; object code -> functions that Python can call.

Object code is plain: the bytes that the linker reads, the name of the symbol to call, and the names of the environments
that it looks for. It is all that a file of machine code holds, and nothing of it is unpickled.

Object code lives in an engine of its own, which goes when the function goes. Numba would put it into an engine that it
never empties: about 12 MB for each query that is compiled.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

Options = Mapping[str, Any]

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class MachineCode:
    """One function. `symbol` is what Python calls; `environments` are globals that must point to an environment.

    An environment may hold objects of Python, as where an array is returned. Such code is not kept on disk, because
    only a pickle could hold them; no kernel needs any.
    """

    symbol: str
    environments: tuple[str, ...]
    object_code: bytes
    constants: tuple[tuple[object, ...], ...] = ()  # of each environment, where there are any

    @property
    def is_plain(self) -> bool:
        return not any(self.constants)

    def to_bytes(self) -> bytes:
        """What a file holds.

        >>> code = MachineCode("f", ("e",), b"code")
        >>> MachineCode.from_bytes(code.to_bytes()) == code
        True
        """
        head = json.dumps({"symbol": self.symbol, "environments": self.environments}).encode()
        return _LENGTH.pack(len(head)) + head + self.object_code

    @classmethod
    def from_bytes(cls, data: bytes) -> MachineCode:
        (length,) = _LENGTH.unpack_from(data)
        head, object_code = data[_LENGTH.size : _LENGTH.size + length], data[_LENGTH.size + length :]
        told = json.loads(head)
        return cls(str(told["symbol"]), tuple(map(str, told["environments"])), object_code)


def compiled(
    module: ModuleType, functions: Mapping[str, FunctionType], signatures: Mapping[str, str], options: Options
) -> dict[str, MachineCode]:
    """Object code of the functions that have a signature. A function stands after those that it calls."""
    numba = untyped("numba")
    with _own_engine():
        called = vars(module).get("CALLED", ())  # not inserted where they are called: they are long
        dispatchers: dict[str, Any] = {
            # What Python cannot call takes a third less time to compile.
            name: numba.njit(
                **{
                    **options,
                    "no_cpython_wrapper": name not in signatures,
                    "forceinline": name not in signatures and name not in called,
                }
            )(function)
            for name, function in functions.items()
        }
        vars(module).update(dispatchers)
        made = {}
        for name in [name for name in functions if name in signatures]:
            dispatchers[name].compile(signatures[name])
            (result,) = dispatchers[name].overloads.values()
            made[name] = _machine_code(result)
        for dispatcher in dispatchers.values():
            _forget(dispatcher)
        return made


def callable_of(code: MachineCode, function: FunctionType, signature: str, options: Options) -> Callable[..., Any]:
    """A function that runs the object code, and refuses arguments that the signature does not allow."""
    numba = untyped("numba")
    arguments, result = untyped("numba.core.sigutils").normalize_signature(signature)
    entry_point = _linked(code, function)
    made = SimpleNamespace(
        signature=untyped("numba.core.typing").signature(result, *arguments), entry_point=entry_point, objectmode=False
    )
    dispatcher: Any = numba.njit(**options)(function)
    dispatcher.add_overload(made)
    dispatcher.disable_compile()
    return dispatcher  # type: ignore[no-any-return]


def _forget(dispatcher: Any) -> None:
    """Take the function out of numba's tables, which hold its globals, and so all functions beside it."""
    for result in dispatcher.overloads.values():
        with suppress(KeyError):
            dispatcher.targetctx.remove_user_function(result.entry_point)
    dispatcher.overloads.clear()


def untyped(module: str) -> Any:
    """A part of numba. Some of its versions have types, of some of its functions; none of the code here needs them."""
    return importlib.import_module(module)


def _machine_code(result: Any) -> MachineCode:
    library = result.library
    environments = {one.env_name: one for one in (result.environment, *result._find_referenced_environments())}
    assert not library.has_dynamic_globals  # addresses of this process
    assert not result.reload_init
    return MachineCode(
        result.fndesc.llvm_cpython_wrapper_name,
        tuple(environments),
        bytes(library._get_compiled_object()),
        tuple(tuple(environment.consts) for environment in environments.values()),
    )


def _linked(code: MachineCode, function: FunctionType) -> Any:
    untyped("numba.core.registry").cpu_target.target_context.refresh()  # registers what object code may call
    binding = untyped("llvmlite.binding")
    engine = _new_engine()
    engine.add_object_file(binding.ObjectFileRef.from_data(code.object_code))
    engine.finalize_object()
    environments = [_environment(function, constants) for constants in code.constants or [()] * len(code.environments)]
    for name, environment in zip(code.environments, environments, strict=True):
        if place := engine.get_global_value_address(name):
            ctypes.c_void_p.from_address(place).value = id(environment)
    address = engine.get_function_address(code.symbol)
    if not address:
        raise ValueError(f"no function {code.symbol}")
    module, held = ModuleType(function.__module__), (engine, *environments)
    # The first environment is that of the function itself.
    return untyped("numba._dynfunc").make_function(module, function.__name__, "", address, environments[0], held)


def _environment(function: FunctionType, constants: tuple[object, ...]) -> Any:
    environment = untyped("numba.core.environment").Environment(function.__globals__)
    environment.consts[:] = constants
    return environment


def _new_engine() -> Any:
    """An engine like numba's own."""
    binding, config = untyped("llvmlite.binding"), untyped("numba.core.config")
    codegen = untyped("numba.core.registry").cpu_target.target_context.codegen()
    module = binding.parse_assembly(str(codegen._create_empty_module("kleene")))
    options: dict[str, Any] = {"opt": config.OPT}
    codegen._customize_tm_options(options)
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(**options)
    memory = getattr(config, "USE_LLVMLITE_MEMORY_MANAGER", None)  # not all versions have it
    return binding.create_mcjit_compiler(module, machine, **({} if memory is None else {"use_lmm": memory}))


@contextmanager
def _own_engine() -> Iterator[None]:
    """Let numba compile into an engine of our own instead of the one that it keeps.

    What is compiled holds on to the engine. Helpers, which numba keeps for later, keep theirs alive; there are few.
    """
    codegen = untyped("numba.core.registry").cpu_target.target_context.codegen()
    with untyped("numba.core.compiler_lock").global_compiler_lock:
        usual = codegen._engine
        engine = untyped("numba.core.codegen").JitEngine(_new_engine())
        hooks = codegen._library_class
        engine.set_object_cache(hooks._object_compiled_hook, hooks._object_getbuffer_hook)
        add = engine.add_module

        def add_and_hold(module: Any) -> Any:
            module.engine = engine
            return add(module)

        engine.add_module = add_and_hold
        codegen._engine = engine
        try:
            yield
        finally:
            codegen._engine = usual

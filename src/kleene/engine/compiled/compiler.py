"""Python functions -> object code, by numba, which is imported for this alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FunctionType, ModuleType
from typing import Any

from kleene.engine.compiled.entry import Signature, entry_source
from kleene.engine.compiled.machine_code import MachineCode, target_machine
from kleene.engine.compiled.untyped import untyped

Options = Mapping[str, Any]


def compiled(
    module: ModuleType, functions: Mapping[str, FunctionType], signatures: Mapping[str, str], options: Options
) -> dict[str, MachineCode]:
    """Object code of the functions that have a signature. A function stands after those that it calls."""
    numba = untyped("numba")
    with _own_engine():
        called = vars(module).get("CALLED", ())  # not inserted where they are called: they are long
        dispatchers: dict[str, Any] = {
            name: numba.njit(**options, forceinline=name not in signatures and name not in called)(function)
            for name, function in functions.items()
        }
        vars(module).update(dispatchers)
        made = {}
        for name in [name for name in functions if name in signatures]:
            dispatchers[name].compile(signatures[name])
            (result,) = dispatchers[name].overloads.values()
            made[name] = _machine_code(result, Signature.parse(signatures[name]))
        for dispatcher in dispatchers.values():
            _forget(dispatcher)
        return made


def _machine_code(result: Any, signature: Signature) -> MachineCode:
    library = result.library
    assert not library.has_dynamic_globals  # addresses of this process
    assert not result.reload_init
    entry = untyped("llvmlite.binding").parse_assembly(entry_source(result.fndesc.llvm_func_name, signature))
    return MachineCode(
        bytes(library._get_compiled_object()),
        bytes(target_machine().emit_object(entry)),
        tuple(
            function.name
            for function in library._final_module.functions
            if function.is_declaration and not function.name.startswith("llvm.")
        ),
    )


def _forget(dispatcher: Any) -> None:
    """Take the function out of numba's tables, which hold its globals, and so all functions beside it."""
    for result in dispatcher.overloads.values():
        with suppress(KeyError):
            dispatcher.targetctx.remove_user_function(result.entry_point)
    dispatcher.overloads.clear()


@contextmanager
def _own_engine() -> Iterator[None]:
    """Let numba compile into an engine of our own instead of the one that it keeps.

    What is compiled holds on to the engine. Helpers, which numba keeps for later, keep theirs alive; there are few.
    """
    codegen = untyped("numba.core.registry").cpu_target.target_context.codegen()
    with untyped("numba.core.compiler_lock").global_compiler_lock:
        usual = codegen._engine
        engine = untyped("numba.core.codegen").JitEngine(_new_engine(codegen))
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


def _new_engine(codegen: Any) -> Any:
    """An engine like numba's own, for this very processor."""
    binding, config = untyped("llvmlite.binding"), untyped("numba.core.config")
    module = binding.parse_assembly(str(codegen._create_empty_module("kleene")))
    options: dict[str, Any] = {"opt": config.OPT}
    codegen._customize_tm_options(options)
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(**options)
    return binding.create_mcjit_compiler(module, machine)

"""Object code -> functions that Python can call, by llvmlite alone: numba, which made the code, need not be imported.

Object code is plain: the bytes that the linker reads, and the names that it looks for outside. It is all that a file of
machine code holds, and nothing of it is unpickled unless the code raises an exception.

Object code lives in an engine of its own, which goes when the function goes. Numba would put it into an engine that it
never empties: about 12 MB for each query that is compiled.
"""

from __future__ import annotations

import ctypes
import functools
import json
import pickle
import struct
from dataclasses import dataclass
from typing import Any, NoReturn

from kleene.engine.compiled.entry import ENTRY, Signature
from kleene.engine.compiled.untyped import untyped

_LENGTH = struct.Struct("<Q")
_ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
"""Python's lock is released while such a function runs."""
_DONE, _DONE_WITHOUT_RESULT = 0, -2


@dataclass(frozen=True, slots=True)
class MachineCode:
    """One function: its own object code, that of the way into it, and the names of what it calls outside."""

    function: bytes
    entry: bytes
    outside: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """What a file holds.

        >>> code = MachineCode(b"function", b"entry", ("exp",))
        >>> MachineCode.from_bytes(code.to_bytes()) == code
        True
        """
        head = json.dumps({"entry": len(self.entry), "outside": self.outside}).encode()
        return _LENGTH.pack(len(head)) + head + self.entry + self.function

    @classmethod
    def from_bytes(cls, data: bytes) -> MachineCode:
        (length,) = _LENGTH.unpack_from(data)
        head, code = data[_LENGTH.size : _LENGTH.size + length], data[_LENGTH.size + length :]
        told = json.loads(head)
        at = int(told["entry"])
        return cls(code[at:], code[:at], tuple(map(str, told["outside"])))


class _Raised(ctypes.Structure):
    """What machine code says of an exception; `arguments` is set if these are known only when it runs."""

    _fields_ = (
        ("pickled", ctypes.c_void_p),
        ("length", ctypes.c_int32),
        ("hash", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("count", ctypes.c_int32),
    )


class NativeFunction:
    """Runs the object code, and refuses arguments that the signature does not allow.

    `was_stored` tells that no compiler was needed.
    """

    __slots__ = ("__weakref__", "_call", "_engine", "_putters", "_result", "was_stored")

    def __init__(self, code: MachineCode, signature: Signature, was_stored: bool) -> None:
        self.was_stored = was_stored
        self._engine = _linked(code)
        address = self._engine.get_function_address(ENTRY)
        if not address:
            raise ValueError("machine code without an entry")
        self._call = _ENTRY_TYPE(address)
        self._putters = signature.putters()
        self._result = ctypes.c_double if signature.result.name == "float64" else ctypes.c_int64

    def __call__(self, *arguments: Any) -> Any:
        slots: list[int] = []
        if len(arguments) != len(self._putters):
            raise TypeError(f"{len(self._putters)} arguments are wanted, not {len(arguments)}")
        for put, argument in zip(self._putters, arguments, strict=True):
            put(argument, slots)
        result, raised = self._result(), ctypes.POINTER(_Raised)()
        given = (ctypes.c_int64 * len(slots))(*slots)
        status = self._call(given, ctypes.byref(result), ctypes.byref(raised))
        if status == _DONE_WITHOUT_RESULT:
            return None
        if status != _DONE:
            _raise(raised)
        return result.value


def _raise(raised: Any) -> NoReturn:
    told = raised.contents if raised else None
    if told is None or told.arguments:
        raise RuntimeError("machine code has failed")
    kind, arguments, _ = pickle.loads(ctypes.string_at(told.pickled, told.length))  # numba wrote it into the code
    raise kind(*(arguments or ()))


def _linked(code: MachineCode) -> Any:
    binding = untyped("llvmlite.binding")
    module = binding.parse_assembly(f'target triple = "{binding.get_process_triple()}"')
    engine = binding.create_mcjit_compiler(module, target_machine())
    if not all(map(binding.address_of_symbol, code.outside)):
        # What is missing may be numba's own. LLVM would end the process if it found nothing.
        untyped("numba.core.registry").cpu_target.target_context.refresh()
        if missing := [name for name in code.outside if not binding.address_of_symbol(name)]:
            raise ValueError(f"nothing is called {missing[0]}")
    for part in (code.function, code.entry):
        engine.add_object_file(binding.ObjectFileRef.from_data(part))
    engine.finalize_object()
    return engine


def target_machine() -> Any:
    """How code is laid out in memory, as numba has it: x86 wants fixed addresses."""
    _start_llvm()
    binding = untyped("llvmlite.binding")
    target = binding.Target.from_triple(binding.get_process_triple())
    layout = "static" if target.name.startswith("x86") else "pic" if target.name.startswith("ppc") else "default"
    return target.create_target_machine(opt=1, reloc=layout, codemodel="jitdefault", jit=True)


@functools.cache
def _start_llvm() -> None:
    binding = untyped("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()

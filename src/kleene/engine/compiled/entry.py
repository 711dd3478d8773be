"""The way from Python into machine code: arguments -> a row of 64-bit slots, which a small function of LLVM hands on.

Numba passes an array as several values: who owns it, how many items it has, how long one is, where they lie, its shape
and its strides; a tuple as its parts. The entry reads all of them from the slots and calls the function, so that Python
calls every kernel in the same way, however many arguments it has, and numba need not be imported for it.
"""

from __future__ import annotations

import ctypes
import operator
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kleene.engine.compiled.untyped import untyped

ENTRY = "kleene_entry"
"""The name of the function that Python calls: int32 (address of the slots, of the result, of what was raised)."""
_FLOAT = struct.Struct("<d")
_WHOLE = struct.Struct("<q")
_TOKEN = re.compile(r"\s*(Tuple|\w+|[(),]|\[[^\]]*\])")
_ANYTHING: Any = ctypes.c_char * 0
Put = Callable[[Any, list[int]], None]


@dataclass(frozen=True, slots=True)
class Scalar:
    """int64 or float64; what gives back nothing is void."""

    name: str

    def kinds(self) -> Iterator[str]:
        yield "double" if self.name == "float64" else "i64"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array that is contiguous, in the order of C."""

    items: str
    dimensions: int

    def kinds(self) -> Iterator[str]:
        yield from ["pointer", "pointer", "i64", "i64", "pointer", *["i64"] * (2 * self.dimensions)]


@dataclass(frozen=True, slots=True)
class TupleType:
    parts: tuple[Type, ...]

    def kinds(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.kinds()


Type = Scalar | ArrayType | TupleType


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of a function's arguments, and of what it gives back.

    >>> Signature.parse("int64(float64, Tuple((int64[::1], uint8[:,::1])))").arguments[1].parts[1]
    ArrayType(items='uint8', dimensions=2)
    """

    result: Scalar
    arguments: tuple[Type, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        tokens = [token for token in _TOKEN.split(text) if token.strip()]
        result = _type(tokens)
        assert isinstance(result, Scalar), f"a kernel gives back a number: {text}"
        arguments = _list(tokens)
        assert not tokens, f"no signature: {text}"
        return cls(result, arguments)

    def kinds(self) -> list[str]:
        return list(TupleType(self.arguments).kinds())

    def putters(self) -> list[Put]:
        """For each argument, what checks it and puts its slots behind those of the arguments before it."""
        return [_putter(type_) for type_ in self.arguments]


def _type(tokens: list[str]) -> Type:
    name = tokens.pop(0)
    if name == "Tuple":
        assert tokens.pop(0) == "("
        parts = _list(tokens)
        assert tokens.pop(0) == ")"
        return TupleType(parts)
    if tokens and tokens[0].startswith("["):
        return ArrayType(name, tokens.pop(0).count(":") - 1)
    assert name in ("int64", "float64", "void"), f"no kernel takes {name}"
    return Scalar(name)


def _list(tokens: list[str]) -> tuple[Type, ...]:
    assert tokens.pop(0) == "("
    found = []
    while tokens[0] != ")":
        found.append(_type(tokens))
        if tokens[0] == ",":
            tokens.pop(0)
    tokens.pop(0)
    return tuple(found)


# ---- arguments to slots


def _putter(type_: Type) -> Put:
    match type_:
        case Scalar(name="float64"):
            return _put_float
        case Scalar():
            return _put_whole
        case ArrayType(items=items, dimensions=dimensions):
            return _array_putter(np.dtype(items), dimensions)
        case TupleType(parts=parts):
            return _tuple_putter([_putter(part) for part in parts])


def _put_whole(value: Any, slots: list[int]) -> None:
    slots.append(operator.index(value))


def _put_float(value: Any, slots: list[int]) -> None:
    slots.append(_WHOLE.unpack(_FLOAT.pack(value))[0])


def _array_putter(items: np.dtype[Any], dimensions: int) -> Put:
    size = items.itemsize

    def put(value: Any, slots: list[int]) -> None:
        # `carray`: contiguous, aligned and writable, as machine code expects it.
        if not isinstance(value, np.ndarray) or value.dtype != items or value.ndim != dimensions:
            raise TypeError(f"an array of {items} with {dimensions} dimensions is wanted, not {_described(value)}")
        if not value.flags.carray:
            raise TypeError(f"an array that is contiguous and writable is wanted, not {_described(value)}")
        address = ctypes.addressof(_ANYTHING.from_buffer(value))  # NumPy's own ways to ask take four times as long
        slots += (0, 0, value.size, size, address, *value.shape, *value.strides)

    return put


def _tuple_putter(putters: list[Put]) -> Put:
    def put(value: Any, slots: list[int]) -> None:
        if len(value) != len(putters):
            raise TypeError(f"{len(putters)} values are wanted, not {len(value)}")
        for put_part, part in zip(putters, value, strict=True):
            put_part(part, slots)

    return put


def _described(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    return f"one of {value.dtype} with {value.ndim} dimensions ({'' if value.flags.writeable else 'not '}writable)"


# ---- slots to arguments


def entry_source(symbol: str, signature: Signature) -> str:
    """The entry to the function of this name, in the language of LLVM."""
    ir = untyped("llvmlite.ir")
    status, whole, double = ir.IntType(32), ir.IntType(64), ir.DoubleType()
    pointer, result = ir.IntType(8).as_pointer(), double if signature.result.name == "float64" else whole
    types = {"i64": whole, "double": double, "pointer": pointer}
    own = [types[kind] for kind in signature.kinds()]
    module = ir.Module(ENTRY)
    module.triple = untyped("llvmlite.binding").get_process_triple()
    raised = pointer.as_pointer()
    called = ir.Function(module, ir.FunctionType(status, [result.as_pointer(), raised, *own]), symbol)
    entry = ir.Function(module, ir.FunctionType(status, [whole.as_pointer(), result.as_pointer(), raised]), ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block())
    slots, out, failure = entry.args
    given = []
    for number, type_ in enumerate(own):
        word = builder.load(builder.gep(slots, [whole(number)]))
        if type_ is pointer:
            word = builder.inttoptr(word, pointer)
        elif type_ is double:
            word = builder.bitcast(word, double)
        given.append(word)
    builder.ret(builder.call(called, [out, failure, *given]))
    return str(module)

"""Reading and writing memory by address, in machine code: how table-driven loops reach columns of any number and type.

The addresses come from arrays that the caller holds for as long as the loop runs. Each of these functions is made when
the compiler asks for it, since numba takes long to import, and whoever has the loops already does without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kleene.engine.compiled.untyped import untyped

Intrinsic = Callable[..., Any]


def __getattr__(name: str) -> Any:
    if name not in _MAKERS:
        raise AttributeError(name)
    made = globals()[name] = untyped("numba.extending").intrinsic(_MAKERS[name](untyped("numba").types))
    return made


def _reader(bits: int, kind: str) -> Callable[[Any], Intrinsic]:
    def maker(types: Any) -> Intrinsic:
        def read(context: Any, address: Any, index: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                value = builder.load(_place(builder, arguments[0], arguments[1], bits, kind))
                return value if bits == 64 else _widened(builder, value, bits)

            return getattr(types, kind)(types.int64, types.int64), generate

        return read

    return maker


def _writer(bits: int, kind: str) -> Callable[[Any], Intrinsic]:
    def maker(types: Any) -> Intrinsic:
        def write(context: Any, address: Any, index: Any, value: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                at, index, value = arguments
                if bits < 64:
                    value = builder.trunc(value, untyped("llvmlite.ir").IntType(bits))
                builder.store(value, _place(builder, at, index, bits, kind))
                return context.get_dummy_value()

            return types.void(types.int64, types.int64, getattr(types, kind)), generate

        return write

    return maker


def _as_float(types: Any) -> Intrinsic:
    def as_float(context: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], untyped("llvmlite.ir").DoubleType())

        return types.float64(types.int64), generate

    return as_float


def _place(builder: Any, address: Any, index: Any, bits: int, kind: str) -> Any:
    """A pointer to the item of the index, counted from the address."""
    ir = untyped("llvmlite.ir")
    item = ir.DoubleType() if kind == "float64" else ir.IntType(bits)
    return builder.gep(builder.inttoptr(address, item.as_pointer()), [index])


def _widened(builder: Any, value: Any, bits: int) -> Any:
    """Bytes have no sign; other numbers do."""
    wide = untyped("llvmlite.ir").IntType(64)
    return builder.zext(value, wide) if bits == 8 else builder.sext(value, wide)


_MAKERS = {
    "read_whole": _reader(64, "int64"),
    "read_short": _reader(32, "int64"),
    "read_byte": _reader(8, "int64"),
    "read_float": _reader(64, "float64"),
    "write_whole": _writer(64, "int64"),
    "write_byte": _writer(8, "int64"),
    "write_float": _writer(64, "float64"),
    "as_float": _as_float,
}

"""Reading and writing memory by address, in machine code: how table-driven loops reach columns of any number and type.

The addresses come from arrays that the caller holds for as long as the loop runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kleene.engine.compiled.machine_code import untyped

_types = untyped("numba").types
_intrinsic = untyped("numba.extending").intrinsic
_ir = untyped("llvmlite.ir")


def _reader(bits: int, result: Any) -> Callable[..., Any]:
    def read(context: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = _place(builder, arguments[0], arguments[1], bits, result)
            value = builder.load(place)
            return value if bits == 64 else _widened(builder, value, bits)

        return result(_types.int64, _types.int64), generate

    return read


def _writer(value_type: Any) -> Callable[..., Any]:
    def write(context: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            at, index, value = arguments
            builder.store(value, _place(builder, at, index, value.type.width if _is_whole(value) else 64, value_type))
            return context.get_dummy_value()

        return _types.void(_types.int64, _types.int64, value_type), generate

    return write


def _is_whole(value: Any) -> bool:
    return isinstance(value.type, _ir.IntType)


def _place(builder: Any, address: Any, index: Any, bits: int, type_: Any) -> Any:
    """A pointer to the item of the index, counted from the address."""
    kind = _ir.DoubleType() if type_ == _types.float64 else _ir.IntType(bits)
    return builder.gep(builder.inttoptr(address, kind.as_pointer()), [index])


def _widened(builder: Any, value: Any, bits: int) -> Any:
    """Bytes have no sign; other numbers do."""
    wide = _ir.IntType(64)
    return builder.zext(value, wide) if bits == 8 else builder.sext(value, wide)


def _as_float(context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], _ir.DoubleType())

    return _types.float64(_types.int64), generate


read_whole = _intrinsic(_reader(64, _types.int64))
read_short = _intrinsic(_reader(32, _types.int64))
read_byte = _intrinsic(_reader(8, _types.int64))
read_float = _intrinsic(_reader(64, _types.float64))
write_whole = _intrinsic(_writer(_types.int64))
write_float = _intrinsic(_writer(_types.float64))
as_float = _intrinsic(_as_float)


def _write_byte(context: Any, address: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at, index, value = arguments
        builder.store(builder.trunc(value, _ir.IntType(8)), _place(builder, at, index, 8, _types.int64))
        return context.get_dummy_value()

    return _types.void(_types.int64, _types.int64, _types.int64), generate


write_byte = _intrinsic(_write_byte)

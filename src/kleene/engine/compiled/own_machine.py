"""Functions of the user's own as machine code: numba is asked whether it compiles them, and into what.

Machine code must answer what Python would, so that only functions of arithmetic and comparisons become it. Numba
computes whole numbers in 64 bits: where they may leave these, or what floats can hold, Python computes. Functions of
`math`, powers and rounding have errors and limits of their own, and what a function reads from outside may change, so
that functions with any of these are left to Python.
"""

from __future__ import annotations

import dis
import operator
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from kleene.engine.compiled.untyped import untyped
from kleene.errors import printable


class NotCompiledError(Exception):
    """There is no machine code for a function. The message is a clause about it."""


SAFE_INTEGER = 1 << 44
"""Whole numbers below it stay within what floats hold exactly, over as many sums as a function may have."""
MOST_SUMS = 8
_ALLOWED = ("abs", "max", "min")
"""What a function may call: it has no other errors than Python has, and makes no larger numbers."""
_SUMS = (operator.add, operator.sub, operator.iadd, operator.isub, operator.neg)
_HARMLESS = (
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.truediv),
    *(operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor, operator.not_),
    *(operator.itruediv, operator.ifloordiv, operator.imod, operator.pos, operator.is_, operator.is_not),
)
NUMBA_TYPES = {"f": "float64", "i": "int64", "b": "boolean", "n": "none"}
_dispatchers: WeakKeyDictionary[Callable[..., Any], Any] = WeakKeyDictionary()
_found: WeakKeyDictionary[Callable[..., Any], dict[str, Any]] = WeakKeyDictionary()


def dispatcher_of(function: Callable[..., Any]) -> Any:
    """The function, to be called from code that numba compiles. Errors are raised where Python raises them."""
    made = _dispatchers.get(function)
    if made is None:
        made = untyped("numba").njit(error_model="python")(function)
        _dispatchers[function] = made
    return made


def result_of(function: Callable[..., Any], arguments: tuple[str, ...]) -> str:
    """What machine code of the function gives: kinds f, i and b, `n` for None, `?` before a kind that may be None.

    Arguments are kinds too; (fi) is a tuple, and so may the result be. NotCompiledError says why there is none.

    >>> result_of(lambda state, x: (state[0] + x, state[1] + 1), ("(fi)", "f"))
    '(fi)'
    """
    signature = ",".join(arguments)
    try:
        found = _found.setdefault(function, {})
    except TypeError:
        raise NotCompiledError("it is a callable, but not a function") from None
    if signature not in found:
        try:
            found[signature] = _asked(function, arguments)
        except NotCompiledError as reason:
            found[signature] = reason
    known = found[signature]
    if isinstance(known, NotCompiledError):
        raise NotCompiledError(str(known))
    return str(known)


def _check_is_closed(function: Callable[..., Any]) -> None:
    """An error if the function does more than arithmetic and comparisons on its arguments."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        raise NotCompiledError("it is a callable, but not a function")
    if code.co_freevars or any(isinstance(constant, CodeType) for constant in code.co_consts):
        raise NotCompiledError("it reads variables of another function, which may change")
    own = getattr(function, "__globals__", {})
    foreign = next((name for name in code.co_names if name not in _ALLOWED or name in own), None)
    if foreign is not None:
        raise NotCompiledError(f"it reads '{printable(foreign)}' from outside, which may change or answer otherwise")
    if _has_power(code):
        raise NotCompiledError("it computes a power, which Python does in ways of its own")


def _asked(function: Callable[..., Any], arguments: tuple[str, ...]) -> str:
    _check_is_closed(function)
    numba = untyped("numba")
    types = tuple(_type_of(kinds, numba) for kinds in arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dispatcher = dispatcher_of(function)
            dispatcher.compile(types)
        made = dispatcher.overloads[types]
    except RecursionError:
        raise
    except Exception as error:  # numba has many
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise NotCompiledError(f"numba cannot compile it ({printable(first.strip().rstrip(':.'), 160)})") from None
    _check_whole_numbers(made)
    return _kind_of(made.signature.return_type, numba)


def _type_of(kinds: str, numba: Any) -> Any:
    if kinds.startswith("("):
        return numba.types.Tuple(tuple(_type_of(kind, numba) for kind in kinds[1:-1]))
    return getattr(numba.types, NUMBA_TYPES[kinds])


def _kind_of(type_: Any, numba: Any) -> str:
    types = numba.types
    if isinstance(type_, types.Optional):
        return "?" + _kind_of(type_.type, numba)
    if isinstance(type_, types.BaseTuple):
        return "(" + "".join(_kind_of(part, numba) for part in type_) + ")"
    if isinstance(type_, types.Literal):
        return _kind_of(type_.literal_type, numba)
    if isinstance(type_, types.Boolean):
        return "b"
    if isinstance(type_, types.Integer) and type_.signed and type_.bitwidth == 64:
        return "i"
    if isinstance(type_, types.Float) and type_.bitwidth == 64:
        return "f"
    if type_ == types.none:
        return "n"
    raise NotCompiledError(f"it gives {printable(str(type_), 80)}")


def _check_whole_numbers(made: Any) -> None:
    """Python's whole numbers have no end: what may leave 64 bits stays with Python."""
    types = untyped("numba").types
    annotation = made.type_annotation
    sums = 0
    for expression, signature in annotation.calltypes.items():
        is_operator = getattr(expression, "op", "") in ("binop", "inplace_binop", "unary")
        if not is_operator or signature is None or not isinstance(signature.return_type, types.Integer):
            continue
        if expression.fn in _SUMS:
            sums += 1
        elif expression.fn not in _HARMLESS:
            raise NotCompiledError("its whole numbers may grow beyond 64 bits")
    if sums > MOST_SUMS or (sums and _has_loop(annotation)):
        raise NotCompiledError("its whole numbers may grow beyond 64 bits")


def _has_loop(annotation: Any) -> bool:
    blocks = annotation.blocks
    targets = ((label, target) for label, block in blocks.items() for target in block.terminator.get_targets())
    return any(target <= label for label, target in targets)


def _has_power(code: CodeType) -> bool:
    return any("**" in (one.argrepr or "") for one in dis.get_instructions(code))

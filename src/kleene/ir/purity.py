"""Whether functions of the user's own look pure (MatchRegex 2012 §4): a function to what was found against it.

Python cannot prove it. The text of a function shows what it writes to, and a function that gives two answers for the
same arguments shows itself. What is found is a warning, since it may be harmless.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from kleene.errors import printable, shown
from kleene.ir.own import Own, OwnAggregate

SAMPLE = 3
"""So many calls of a function are made twice, to compare the answers."""
_CHANGING = frozenset(
    {
        *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft"),
        *("remove", "reverse", "setdefault", "sort", "update", "write", "writelines"),
    }
)
"""Methods that change what they are called on, whatever that is."""
_IMMUTABLE = (bool, int, float, complex, str, bytes, types.NoneType)
_calls: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def purity_notes(functions: Iterable[Own]) -> tuple[str, ...]:
    """A note for each place where a function writes to what is not its own."""
    found = []
    for own in functions:
        parts = (own.step, own.finish) if isinstance(own, OwnAggregate) else (own.function,)
        for part in parts:
            if part is not None:
                found += [_note(own, *place) for place in _writes(part)]
    return tuple(found)


def _note(own: Own, what: str, file: str, line: int) -> str:
    kind = "aggregate" if isinstance(own, OwnAggregate) else "function"
    return (
        f"the {kind} '{printable(own.name)}' does not look pure: it {what} ({printable(file, 200)}, line {line}). "
        "How often it is called, and in which order, is not defined."
    )


def _writes(function: Callable[..., Any]) -> Iterator[tuple[str, str, int]]:
    """What the function writes to, with the file and the line; nothing if its text is not at hand."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    node, first = _text_of(function, code)
    if node is None:
        return
    arguments = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
    stated = [part for part in ast.walk(node) if isinstance(part, (ast.Global, ast.Nonlocal))]
    outer = {name for part in stated for name in part.names}
    own = set(code.co_varnames[len(arguments) :]) | set(code.co_cellvars) - arguments
    for part in ast.walk(node):
        found = _written(part, arguments, outer, own, function)
        if found is not None:
            yield found, code.co_filename, first + part.lineno  # type: ignore[attr-defined]  # statements and calls


def _text_of(
    function: Callable[..., Any], code: types.CodeType
) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None, int]:
    """The function in its text, and the line before that text. A lambda is found only if its line has no other."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, ValueError, IndentationError):
        return None, 0
    kinds = (ast.Lambda,) if code.co_name == "<lambda>" else (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    named = [node for node in nodes if isinstance(node, ast.Lambda) or node.name == code.co_name]
    if not named or (code.co_name == "<lambda>" and len(named) > 1):
        return None, 0
    return named[0], max(first, 1) - 1


def _written(
    part: ast.AST, arguments: set[str], outer: set[str], own: set[str], function: Callable[..., Any]
) -> str | None:
    match part:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if name in outer:
            return f"writes to '{printable(name)}', which is not its own"
        case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
            root = _root(part)
        case ast.Call(func=ast.Attribute(attr=method) as called) if method in _CHANGING:
            root = _root(called)
            if root is not None and isinstance(_outside(function, root), types.ModuleType):
                return None  # a function of a module
        case _:
            return None
    if root is None or (root in own and root not in arguments | outer):
        return None
    return f"writes to {'its argument' if root in arguments else 'the outer variable'} '{printable(root)}'"


def _root(node: ast.AST) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _outside(function: Callable[..., Any], name: str) -> object:
    return getattr(function, "__globals__", {}).get(name)


# --- two answers -----------------------------------------------------------------------------------------------------


def second_answer_differs(function: Callable[..., Any], arguments: tuple[Any, ...], answer: Any) -> str | None:
    """What to say if the function, asked again, answers something else; only its first few calls are made twice."""
    try:
        made = _calls.get(function, 0)
        if made >= SAMPLE or not all(map(_is_immutable, (*arguments, answer))):
            return None
        _calls[function] = made + 1
    except TypeError:  # it cannot be referred to weakly
        return None
    try:
        again = function(*arguments)
    except Exception as error:
        again = error
    if _same(answer, again):
        return None
    code = getattr(function, "__code__", None)
    where = "" if code is None else f" ({printable(code.co_filename, 200)}, line {code.co_firstlineno})"
    return (
        f"answered {shown(answer)} and then {shown(again)} for the same arguments {shown(arguments)}{where}: it is not "
        "pure, so that the matches are not defined"
    )


def _is_immutable(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_immutable, value))
    return isinstance(value, _IMMUTABLE) or type(value).__module__ in ("datetime", "decimal")


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    try:
        return one is other or bool(one == other) or bool(one != one and other != other)
    except Exception:  # values that do not say whether they are equal
        return True

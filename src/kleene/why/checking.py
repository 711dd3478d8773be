"""Predicates to checks: the result, and the values that it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kleene.errors import ExecutionError
from kleene.ir import expr as ir
from kleene.ir.evaluate import Bindings, evaluate
from kleene.why.model import Check, Operand

_OPERANDS = (
    ir.Attribute,
    ir.Aggregate,
    ir.Length,
    ir.Navigation,
    ir.Classifier,
    ir.MatchNumber,
)


def operands_of(predicate: ir.Expr) -> Iterator[ir.Expr]:
    """The parts of a predicate whose values depend on events, from left to right, each once.

    What stands inside an aggregate or a navigation is no part of its own. A call of a vectorized function is one,
    because its value is known for whole columns only.
    """
    seen: set[ir.Expr] = set()
    waiting = [predicate]
    while waiting:
        node = waiting.pop()
        is_part = isinstance(node, ir.RowFunction) and node is not predicate  # else its value is the result
        if is_part or isinstance(node, _OPERANDS) or (isinstance(node, ir.PythonCall) and node.vectorized):
            if node not in seen:
                seen.add(node)
                yield node
            continue
        waiting.extend(reversed(list(ir.children(node))))


def parts_of(condition: ir.Expr) -> Iterator[ir.Expr]:
    """The conditions that an AND joins, each a predicate that can fail alone."""
    if isinstance(condition, ir.And):
        for operand in condition.operands:
            yield from parts_of(operand)
    else:
        yield condition


def decided(predicate: ir.Expr, bindings: Bindings) -> bool | ExecutionError | None:
    """What the predicate comes to: an error stands for itself, so that the caller says whether it counts."""
    try:
        value: bool | None = evaluate(predicate, bindings)
    except ExecutionError as error:
        return error
    return value


def made_check(
    predicate: ir.Expr,
    bindings: Bindings,
    result: bool | ExecutionError | None,
    row_of: Callable[[ir.Expr], int | None],
) -> Check:
    """The check with its values; `row_of` says which row a part was read from."""
    operands = tuple(Operand(part, _value(part, bindings), row_of(part)) for part in operands_of(predicate))
    if isinstance(result, ExecutionError):
        return Check(predicate, operands, None, result.message)
    return Check(predicate, operands, result)


def raise_first(results: Iterable[bool | ExecutionError | None]) -> None:
    """Raises an error that no FALSE before it hides."""
    for result in results:
        if isinstance(result, ExecutionError):
            raise result
        if result is False:
            return


def _value(part: ir.Expr, bindings: Bindings) -> Any:
    try:
        return evaluate(part, bindings)
    except ExecutionError:
        return None

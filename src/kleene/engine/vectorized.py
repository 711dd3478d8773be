"""Vectorized functions of the user's own over a table: each is called once, with whole columns, for all its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kleene.engine.column_types import attribute_type
from kleene.engine.events import plain_values
from kleene.engine.output import arrow_type, arrow_values
from kleene.engine.unencoded import unencoded
from kleene.errors import ExecutionError, printable, shown
from kleene.ir import expr as ir
from kleene.ir.evaluate import PlainValue, evaluate, vectorized_key
from kleene.schema import BOOLEAN, DecimalType, OpaqueType, Type, is_plain


@dataclass(frozen=True, slots=True)
class _Row:
    """One event, for arguments that are computed."""

    columns: Mapping[str, list[PlainValue]]
    current_row: int

    def value(self, expression: ir.Expr) -> Any:
        assert isinstance(expression, ir.Attribute), "analysis lets only values of one event through"
        return self.columns[expression.name][self.current_row]


def vectorized_columns(
    expressions: Iterable[ir.Expr], table: pa.Table, types: Mapping[str, Type]
) -> dict[str, list[PlainValue]]:
    """The values of all vectorized calls in the expressions, by the names that `evaluate` asks for."""
    found: dict[str, list[PlainValue]] = {}
    for node in (node for expression in expressions for node in ir.walk(expression)):
        if isinstance(node, ir.PythonCall) and node.vectorized and vectorized_key(node) not in found:
            column = vectorized_column(node, table, types)
            found[vectorized_key(node)] = plain_values(column, attribute_type(column.type), node.name)
    return found


def vectorized_column(call: ir.PythonCall, table: pa.Table, types: Mapping[str, Type]) -> pa.ChunkedArray:
    """What the function gives for the columns; a decimal is compared as a float is."""
    arguments = [_argument(argument, table, types) for argument in call.arguments]
    try:
        given = call.function(*arguments)
    except Exception as error:
        raise ExecutionError(
            f"the function '{printable(call.name)}' failed for a batch of {table.num_rows:,} rows: {shown(error)}",
            hint=f"It was called with arrays of type {', '.join(printable(str(one.type)) for one in arguments)}.",
        ) from error
    column = _as_column(call, given, table.num_rows)
    type_ = attribute_type(column.type)
    if isinstance(type_, DecimalType):
        return column.cast(pa.float64())
    is_wrong = call.type == BOOLEAN and type_ != BOOLEAN and not pa.types.is_null(column.type)
    if isinstance(type_, OpaqueType) or not is_plain(type_) or is_wrong:
        wanted = "a condition is an array of booleans" if call.type == BOOLEAN else "only plain values are used"
        raise ExecutionError(
            f"the function '{printable(call.name)}' returned an array of type {printable(str(column.type))}, "
            f"but {wanted}"
        )
    return column.cast(pa.bool_()) if call.type == BOOLEAN else column


def _as_column(call: ir.PythonCall, given: Any, rows: int) -> pa.ChunkedArray:
    try:
        column = given if isinstance(given, (pa.Array, pa.ChunkedArray)) else pa.array(given)
        if isinstance(column, pa.Array):
            column = pa.chunked_array([column])
    except Exception:
        raise ExecutionError(
            f"the vectorized function '{printable(call.name)}' returned {shown(given)}, but must return an Arrow array"
        ) from None
    if len(column) != rows:
        raise ExecutionError(
            f"the vectorized function '{printable(call.name)}' returned {len(column):,} values for {rows:,} rows"
        )
    return unencoded(column)


def _argument(argument: ir.Expr, table: pa.Table, types: Mapping[str, Type]) -> pa.Array:
    if isinstance(argument, ir.Attribute):
        column = unencoded(table.column(argument.name)).combine_chunks()
        return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    names = {node.name for node in ir.walk(argument) if isinstance(node, ir.Attribute)}
    columns = {name: plain_values(table.column(name), types[name], name) for name in names}
    values = [evaluate(argument, _Row(columns, row)) for row in range(table.num_rows)]
    assert argument.type is not None
    return arrow_values(values, argument.type, arrow_type(argument.type))

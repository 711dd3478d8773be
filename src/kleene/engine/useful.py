"""Which rows of a table a condition on single events may hold for, by column, as far as Arrow can tell.

What Arrow cannot tell is taken to hold: more rows may be kept than needed, never fewer.
"""

from __future__ import annotations

from functools import reduce
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kleene.engine.unencoded import unencoded_type
from kleene.ir import expr as ir
from kleene.schema import INTEGER  # noqa: F401  # for the example

Mask: TypeAlias = pa.ChunkedArray | None
"""Of each row whether the condition may hold; None where it may for all."""


def useful_rows(table: pa.Table, condition: ir.Expr | None) -> Mask:
    """The rows that are of use.

    >>> of_type = ir.In(ir.Attribute(None, "x", type=INTEGER), (ir.Literal(1, INTEGER),))
    >>> useful_rows(pa.table({"x": [1, 2, None]}), of_type).to_pylist()
    [True, False, False]
    """
    return None if condition is None else _mask(table, condition)


def only_useful(table: pa.Table, condition: ir.Expr | None) -> pa.Table:
    mask = useful_rows(table, condition)
    return table if mask is None else table.filter(mask)


def _mask(table: pa.Table, condition: ir.Expr) -> Mask:
    match condition:
        case ir.And(operands=operands):
            known = [mask for operand in operands if (mask := _mask(table, operand)) is not None]
            return reduce(pc.and_, known) if known else None
        case ir.Or(operands=operands):
            masks = [_mask(table, operand) for operand in _merged(operands)]
            return None if any(mask is None for mask in masks) else reduce(pc.or_, masks)
        case ir.In(operand=ir.Attribute(name=name), choices=choices):
            values = _values(table, name, choices)
            return None if values is None else _is_in(table.column(name), values)
        case ir.Comparison(operator="=", left=ir.Attribute(name=name), right=ir.Literal() as literal):
            values = _values(table, name, (literal,))
            return None if values is None else _is_in(table.column(name), values)
    return None


def _is_in(column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return pc.is_in(column, values)
    # Words are few: it is asked of each of them once.
    parts = [pc.is_in(chunk.dictionary, values).take(chunk.indices).fill_null(False) for chunk in column.chunks]
    return pa.chunked_array(parts, pa.bool_())


def _merged(operands: tuple[ir.Expr, ...]) -> list[ir.Expr]:
    """Tests of one attribute as one, so that its values are looked at once."""
    found: dict[str, tuple[ir.Expr, ...]] = {}
    others: list[ir.Expr] = []
    attributes: dict[str, ir.Attribute] = {}
    for operand in operands:
        if isinstance(operand, ir.In) and isinstance(operand.operand, ir.Attribute):
            name = operand.operand.name
            attributes[name] = operand.operand
            found[name] = (*found.get(name, ()), *operand.choices)
        else:
            others.append(operand)
    return [*(ir.In(attributes[name], choices) for name, choices in found.items()), *others]


def _values(table: pa.Table, name: str, choices: tuple[ir.Expr, ...]) -> pa.Array | None:
    """The values that are asked for, if they are texts or whole numbers, which compare the same everywhere."""
    if name not in table.column_names or not all(isinstance(choice, ir.Literal) for choice in choices):
        return None
    type_ = unencoded_type(table.column(name).type)
    given = [choice.value for choice in choices if isinstance(choice, ir.Literal) and choice.value is not None]
    of_texts = pa.types.is_string(type_) and all(isinstance(value, str) for value in given)
    of_numbers = pa.types.is_int64(type_) and all(type(value) is int for value in given)
    return pa.array(given, type_) if of_texts or of_numbers else None

"""A table of events, in order, to what kernels read: rows grouped by partition, columns as arrays, constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from kleene.engine.column_types import attribute_type
from kleene.engine.compiled.columns import (
    Array,
    Dictionary,
    Layout,
    MissingFrom,
    attribute_array,
    check_readable,
    computed_array,
    encoded_values,
)
from kleene.engine.compiled.loading import shared_loops
from kleene.engine.sorting import sortable
from kleene.errors import ExecutionError
from kleene.ir import expr as ir
from kleene.schema import STRING, EventSchema, Type

EMPTY = np.empty(0, np.int64)
EMPTY_FLOAT = np.empty(0, np.float64)


@dataclass(frozen=True)
class Grouped:
    """Rows of the table in the order of their partitions: `order[r]` is the position in the table of row r.

    Partition g, whose number is numbers[g], has the rows from begins[g] to begins[g + 1]. Without `given` rows stand as
    they do in the table.
    """

    given: Array | None
    begins: Array
    numbers: Array

    @property
    def is_identity(self) -> bool:
        return self.given is None

    @property
    def is_in_order(self) -> bool:
        """Whether rows stand in the order of the table, so that partitions do not mix."""
        return self.given is None or bool((self.given[1:] > self.given[:-1]).all())

    @cached_property
    def order(self) -> Array:
        return np.arange(len(self)) if self.given is None else self.given

    def __len__(self) -> int:
        return int(self.begins[-1])

    @property
    def sizes(self) -> Array:
        """How many rows each partition has."""
        sizes: Array = np.diff(self.begins)
        return sizes

    @property
    def places(self) -> Array:
        """Of each row, its place in its partition."""
        places: Array = np.arange(len(self)) - np.repeat(self.begins[:-1], self.sizes)
        return places

    def positions(self, rows: Array) -> Array:
        """Where the rows stand in the table; -1 for row -1."""
        if self.given is None:
            return rows
        found: Array = self.given[rows]  # row -1 gives some position, if there is any row at all
        found[rows < 0] = -1
        return found

    def permuted(self, values: Array) -> Array:
        if self.is_identity or not len(values):
            return values
        return values[self.order]


def group(codes: Array, count: int, jit: bool) -> Grouped:
    """Rows together by their codes; rows of code -1 are left out."""
    if not len(codes):
        return Grouped(None, np.zeros(1, np.int64), EMPTY)
    if count == 1 and int(codes.min()) == 0:
        return one_group(len(codes))
    if _stand_together(codes):
        begins = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        return Grouped(None, np.append(begins, len(codes)), codes[begins])
    counts, order = np.zeros(count + 1, np.int64), np.empty(len(codes), np.int64)
    total = shared_loops(jit)["group_rows"](codes, counts, order)
    present = np.flatnonzero(np.diff(counts))
    begins = np.append(counts[present], total).astype(np.int64)
    return Grouped(order[:total], begins, present)


FEW = 64


def _stand_together(codes: Array) -> bool:
    """Whether rows come partition by partition already, the first few of them looked at first."""
    return all(bool((own[1:] >= own[:-1]).all()) for own in (codes[:FEW], codes)) and int(codes[0]) >= 0


def one_group(rows: int) -> Grouped:
    """All rows in one partition."""
    if not rows:
        return Grouped(None, np.zeros(1, np.int64), EMPTY)
    return Grouped(None, np.array([0, rows], np.int64), np.zeros(1, np.int64))


def partition_codes(table: pa.Table, names: Sequence[str], null_is_a_key: bool) -> tuple[Array, int]:
    """For each row the number of its partition, and how many there are; -1 where a NULL or NaN leaves it in none."""
    if len(names) == 1 and (dense := _dense_codes(table.column(names[0]))) is not None:
        return dense  # none of them is outside
    codes, count = np.zeros(table.num_rows, np.int64), 1
    for name in names:
        check_readable(table.column(name), attribute_type(table.column(name).type), name)
        indices, size = _dense_codes(table.column(name)) or _value_codes(table.column(name), name, null_is_a_key)
        outside = (codes < 0) | (indices < 0)
        if count == 1:
            codes, count = indices, size
        elif count * size <= 2 * len(codes):
            codes, count = codes * size + indices, count * size
        else:
            both = codes * size + indices
            _, codes = np.unique(both, return_inverse=True)
            count = int(codes.max()) + 1 if len(codes) else 1
        if outside.any():
            codes[outside] = -1
    return codes, count


def _value_codes(column: pa.ChunkedArray, name: str, null_is_a_key: bool) -> tuple[Array, int]:
    """For each row the number of its value; -1 where a NULL or NaN is none."""
    if pa.types.is_dictionary(column.type) and column.null_count and null_is_a_key:
        column = column.cast(column.type.value_type)
    if not pa.types.is_dictionary(column.type):
        column = sortable(column, name)
    encoded = encoded_values(column, "encode" if null_is_a_key else "mask")
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    if not null_is_a_key and pa.types.is_floating(encoded.dictionary.type):
        is_nan = np.append(np.isnan(encoded.dictionary.to_numpy(zero_copy_only=False)), False)
        indices[is_nan[indices]] = -1
    return indices, max(len(encoded.dictionary), 1)


def _dense_codes(column: pa.ChunkedArray) -> tuple[Array, int] | None:
    """Whole numbers that lie close together are their own codes; None where there are NULLs, or they do not."""
    if not pa.types.is_signed_integer(column.type) or column.null_count or not len(column):
        return None
    values = column.to_numpy().astype(np.int64, copy=False)
    low, high = int(values.min()), int(values.max())
    if high - low >= 2 * len(values):
        return None
    return values - low, high - low + 1


def nullable_names(table: pa.Table) -> frozenset[str]:
    return frozenset(name for name in table.column_names if table.column(name).null_count)


class Arguments(NamedTuple):
    """What every generated function reads, as its last arguments: the tuple of columns, and the constants."""

    columns: tuple[Array, ...]
    integers: Array
    floats: Array


def arguments(
    layout: Layout, table: pa.Table, schema: EventSchema | None, grouped: Grouped, dictionary: Dictionary
) -> Arguments:
    assert schema is not None
    types, arrays = _types_of(schema), list[Array]()
    for column, has_mask in zip(layout.columns, layout.has_mask, strict=True):
        values, mask = _column(column.expression, table, schema, types, dictionary, layout.failures)
        if has_mask and len(mask) != len(values):
            mask = np.zeros(len(values), np.uint8)
        arrays += [np.ascontiguousarray(grouped.permuted(array)) for array in (values, mask)]
    integers = list(layout.integers)
    for number, text in layout.strings.items():
        integers[number] = dictionary.code(text)
    ranks = dictionary.ranks() if layout.needs_ranks else np.zeros(1, np.int64)
    return Arguments(
        (
            ranks,
            *arrays,
            *([dictionary] if layout.plain and layout.called else ()),
        ),  # which functions of the user's own read
        np.array(integers or [0], np.int64),
        np.array(layout.floats or [0.0], np.float64),
    )


def _column(
    expression: ir.Expr,
    table: pa.Table,
    schema: EventSchema,
    types: dict[str, Type],
    dictionary: Dictionary,
    failures: dict[ir.Expr, ExecutionError],
) -> tuple[Array, Array]:
    if isinstance(expression, ir.Attribute):
        return attribute_array(table, expression.name, types[expression.name], dictionary)
    if isinstance(expression, MissingFrom):
        return _missing(expression, table, schema), np.empty(0, np.uint8)
    return computed_array(expression, table, types, dictionary, failures)


def _missing(wanted: MissingFrom, table: pa.Table, schema: EventSchema) -> Array:
    assert schema.presence_column is not None
    encoded = encoded_values(table.column(schema.presence_column))
    lacks = [any(schema.lacks(kind, item) for item in wanted.attributes) for kind in encoded.dictionary.to_pylist()]
    by_type = np.array([*lacks, True], np.uint8)  # the last is that of events without a type
    return np.ascontiguousarray(by_type[encoded.indices.fill_null(len(lacks)).to_numpy(zero_copy_only=False)])


def permuted_arguments(given: Arguments, grouped: Grouped) -> Arguments:
    """The same columns in the order of the partitions."""
    ranks, *columns = given.columns
    moved = (np.ascontiguousarray(grouped.permuted(one)) if isinstance(one, np.ndarray) else one for one in columns)
    return Arguments((ranks, *moved), given.integers, given.floats)


def _types_of(schema: EventSchema) -> dict[str, Type]:
    found = dict(schema.attributes)
    if schema.type_column is not None:
        found.setdefault(schema.type_column, STRING)
    return found


def grown(array: Array, length: int) -> Array:
    """A longer array that begins with the same rows."""
    larger = np.zeros((length, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger

"""Columns on their way into DuckDB and out of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kleene.errors import ExecutionError


def plain_table(table: pa.Table) -> pa.Table:
    """The table in types that DuckDB has; categories are their texts, since it would compare them by their numbers."""
    columns = [_plain_column(column) for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _plain_column(column: Any) -> Any:
    type_ = column.type
    if isinstance(type_, pa.BaseExtensionType):
        storage = [chunk.storage for chunk in column.chunks]
        return _plain_column(pa.chunked_array(storage, type_.storage_type))
    if pa.types.is_dictionary(type_):
        return column.cast(type_.value_type)
    if pa.types.is_float16(type_):
        return column.cast(pa.float32())
    if pa.types.is_timestamp(type_) and type_.unit == "ns" and type_.tz is not None:
        return _in_microseconds(column)
    return column


def _in_microseconds(column: Any) -> Any:
    """Times with a zone, as Spark has them: DuckDB has few functions of finer ones, and pandas makes those."""
    try:
        return column.cast(pa.timestamp("us", column.type.tz))
    except pa.ArrowInvalid:  # finer values travel as they are
        return column


def result_column(column: Any, kind: str) -> Any:
    """A column of a result in the type that Spark has for it. `kind` is DuckDB's name of its type."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if kind in ("HUGEINT", "UHUGEINT"):  # what sums of whole numbers are
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise ExecutionError(
                "a whole number of the result does not fit into 64 bits", hint="Cast to DOUBLE before the sum."
            ) from None
    if kind == "INTERVAL":
        return _durations(column)
    return column


_INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])


def _durations(column: Any) -> Any:
    """Intervals as durations, as differences of times are on Spark; months have no length, and stay as they are."""
    chunks = []
    for chunk in column.chunks:
        parts = np.frombuffer(chunk.buffers()[1], _INTERVAL)[chunk.offset : chunk.offset + len(chunk)]
        valid = np.asarray(chunk.is_valid())
        if (parts["months"][valid] != 0).any():
            return column
        length = parts["days"].astype(np.int64) * 86_400_000_000 + parts["nanoseconds"] // 1000
        chunks.append(pa.array(length, pa.int64(), mask=~valid).cast(pa.duration("us")))
    return pa.chunked_array(chunks, pa.duration("us"))

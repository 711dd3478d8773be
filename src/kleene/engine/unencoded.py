"""Columns of Arrow as plain ones: the ways in which it may store values."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_))


def unencoded_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values, whatever way they are stored in."""
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return unencoded_type(type_.value_type)
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    return type_


def unencoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with its values as they are: no dictionaries, no runs, strings of one kind."""
    if pa.types.is_run_end_encoded(column.type):
        chunks = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return unencoded(pa.chunked_array(chunks, column.type.value_type))
    if pa.types.is_dictionary(column.type):
        # Arrow cannot take strings of every kind by their codes: those in the dictionary are made plain first.
        words = [_unencoded_array(chunk.dictionary) for chunk in column.chunks]
        chunks = [values.take(chunk.indices) for values, chunk in zip(words, column.chunks, strict=True)]
        return pa.chunked_array(chunks, unencoded_type(column.type))
    type_ = unencoded_type(column.type)
    return column if type_ == column.type else column.cast(type_)


def _unencoded_array(values: pa.Array) -> pa.Array:
    plain = unencoded(pa.chunked_array([values]))
    return plain.chunk(0) if plain.num_chunks == 1 else plain.combine_chunks()

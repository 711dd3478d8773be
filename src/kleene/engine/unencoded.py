"""Columns of Arrow as plain ones: the ways in which it may store values."""

from __future__ import annotations

from collections.abc import Container

import pyarrow as pa
import pyarrow.compute as pc

MOST_WORDS = 1 << 16
"""With more words than this, codes of them are not kept."""
CODES = pa.dictionary(pa.int32(), pa.string())


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


def coded_texts(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """A dictionary of texts with one set of words, each of which it has once; None if it is none, or of many words."""
    if not pa.types.is_dictionary(column.type) or unencoded_type(column.type) != pa.string() or not column.num_chunks:
        return None
    chunks = []
    for chunk in column.chunks:
        chunk.validate(full=True)
        words = _unencoded_array(chunk.dictionary)
        if words.null_count or len(words) > MOST_WORDS or len(words.unique()) < len(words):
            return None
        chunks.append(pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), words))
    whole = pa.chunked_array(chunks, CODES)
    return whole if len(chunks) == 1 else pa.chunked_array([pa.concat_arrays(whole.unify_dictionaries().chunks)])


def with_texts(table: pa.Table, coded: Container[str] = ()) -> pa.Table:
    """The table with dictionaries as plain columns, all but the columns of `coded`."""
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and field.name not in coded:
            table = table.set_column(number, field.name, table.column(number).cast(field.type.value_type))
    return table


def with_types_of_texts(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, unencoded_type(field.type)) for field in schema])

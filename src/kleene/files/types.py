"""The types that columns of files have for Kleene: the same whether Arrow reads a file or Spark."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from kleene.errors import SchemaError, printable
from kleene.files.times import instants

_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def common_type(type_: pa.DataType) -> pa.DataType:
    """The type that stands for this one: Spark knows fewer.

    >>> common_type(pa.list_(pa.timestamp("ms", "Europe/Berlin"))), common_type(pa.uint32())
    (ListType(list<element: timestamp[us, tz=UTC]>), DataType(int64))
    """
    if type_ in _UNSIGNED:
        return _UNSIGNED[type_]
    if pa.types.is_timestamp(type_):
        return pa.timestamp("ns" if type_.unit == "ns" else "us", "UTC")
    if pa.types.is_duration(type_):
        return pa.duration("ns" if type_.unit == "ns" else "us")
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_) or pa.types.is_fixed_size_binary(type_):
        return pa.binary()
    if pa.types.is_dictionary(type_):
        return common_type(type_.value_type)
    if pa.types.is_map(type_):
        return pa.map_(common_type(type_.key_type), common_type(type_.item_type))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return pa.list_(pa.field("element", common_type(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, common_type(field.type)) for field in type_])
    return type_


def common_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(field.name, common_type(field.type)) for field in schema])


def common_table(table: pa.Table, zone: str) -> pa.Table:
    """The table in common types, times without a zone taken to be of the given one."""
    check_zone_fits(table.schema, zone)
    columns = [common_column(column, zone) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def common_column(column: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_timestamp(column.type):
        return instants(column, zone)
    return column.cast(common_type(column.type))


def check_zone_fits(schema: pa.Schema, zone: str) -> None:
    for field in schema:
        if zone != "UTC" and pa.types.is_nested(field.type) and holds(field.type, _is_local):
            raise SchemaError(
                f"the column '{printable(field.name)}' holds times without a zone inside its values, "
                f"which --timezone does not apply to",
                hint="Make each time a column of its own, or store it with its zone.",
            )


def _is_local(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_)) and type_.tz is None


def is_nanosecond(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) or pa.types.is_duration(type_)) and type_.unit == "ns"


def holds(type_: pa.DataType, wanted: Callable[[pa.DataType], bool]) -> bool:
    """Whether the type, or one inside it, is wanted."""
    if wanted(type_):
        return True
    return pa.types.is_nested(type_) and any(holds(type_.field(n).type, wanted) for n in range(type_.num_fields))

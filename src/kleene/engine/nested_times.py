"""Times inside of structs, for pandas: pyarrow hands those in nanoseconds over as bare integers."""

from __future__ import annotations

import pyarrow as pa


def in_microseconds(type_: pa.DataType, is_inside: bool = False) -> pa.DataType:
    """The type, with the times inside of its structs and maps in microseconds, which become datetimes in Python.

    >>> in_microseconds(pa.struct({"at": pa.timestamp("ns"), "x": pa.int64()}))
    StructType(struct<at: timestamp[us], x: int64>)
    >>> in_microseconds(pa.timestamp("ns"))
    TimestampType(timestamp[ns])
    """
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(in_microseconds(field.type, True)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(in_microseconds(type_.key_type, True), in_microseconds(type_.item_type, True))
    if pa.types.is_list(type_):
        return pa.list_(in_microseconds(type_.value_type, is_inside))
    if is_inside and getattr(type_, "unit", None) == "ns":
        return pa.timestamp("us", type_.tz) if pa.types.is_timestamp(type_) else _without_zone(type_)
    return type_


def _without_zone(type_: pa.DataType) -> pa.DataType:
    return pa.duration("us") if pa.types.is_duration(type_) else pa.time64("us")

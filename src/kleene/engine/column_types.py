"""Arrow types to the types that Kleene computes with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from kleene.engine.unencoded import is_list
from kleene.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    MOST_DECIMAL_DIGITS,
    NULL,
    STRING,
    TIME,
    OpaqueType,
    Type,
    array,
    decimal,
    duration,
    is_plain,
    map_of,
    struct,
    timestamp,
)


def attributes_of(schema: pa.Schema) -> tuple[tuple[str, Type], ...]:
    return tuple((column.name, attribute_type(column.type)) for column in schema)


def attribute_type(type_: pa.DataType) -> Type:
    """What Kleene computes with for a column of the Arrow type."""
    if pa.types.is_dictionary(type_):
        return attribute_type(type_.value_type)
    if pa.types.is_integer(type_):
        if pa.types.is_uint64(type_):
            return decimal(0)  # it may hold what no signed integer can
        return INTEGER
    if pa.types.is_floating(type_):
        return FLOAT
    if pa.types.is_decimal(type_):
        if type_.precision > MOST_DECIMAL_DIGITS or not 0 <= type_.scale <= MOST_DECIMAL_DIGITS:
            return OpaqueType(str(type_), f"Cast it to a decimal of at most {MOST_DECIMAL_DIGITS} digits, or to float.")
        return decimal(type_.scale)
    if pa.types.is_timestamp(type_):
        return timestamp(type_.tz, "ns" if type_.unit == "ns" else "us")
    if pa.types.is_duration(type_):
        return duration("ns" if type_.unit == "ns" else "us")
    simple: tuple[tuple[Any, Type], ...] = (
        (pa.types.is_boolean, BOOLEAN),
        (pa.types.is_string, STRING),
        (pa.types.is_date, DATE),
        (pa.types.is_time, TIME),
        (pa.types.is_null, NULL),
    )
    for is_kind, found in simple:
        if is_kind(type_):
            return found
    opaque = OpaqueType(str(type_), "Cast it to a number, a string, a boolean, a date or a timestamp first.")
    return _nested_type(type_) or opaque


def _nested_type(type_: pa.DataType) -> Type | None:
    """The type of values that have parts; None if some of the parts cannot be computed with."""
    if pa.types.is_map(type_):
        parts = [attribute_type(type_.key_type), attribute_type(type_.item_type)]
        return map_of(*parts) if is_plain(parts[0]) and _is_known(parts) else None
    if is_list(type_):
        element = attribute_type(type_.value_type)
        return array(element) if _is_known([element]) else None
    if pa.types.is_struct(type_):
        fields = [(field.name, attribute_type(field.type)) for field in type_]
        return struct(fields) if fields and _is_known(inner for _, inner in fields) else None
    return None


def _is_known(types: Iterable[Type]) -> bool:
    return not any(isinstance(type_, OpaqueType) for type_ in types)

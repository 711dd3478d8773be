"""Spark types to Arrow types and back.

Spark converts between the two itself when data travels; this says beforehand what will arrive, so that the schema of
a result is known before anything runs.
"""

from __future__ import annotations

import json
from collections.abc import Container

import pyarrow as pa
from pyspark.sql import types as st

from kleene.errors import SchemaError, printable

_SPARK_FIELD = b"kleene.spark_field"
_SIMPLE: tuple[tuple[type[st.DataType], pa.DataType], ...] = (
    (st.BooleanType, pa.bool_()),
    (st.ByteType, pa.int8()),
    (st.ShortType, pa.int16()),
    (st.IntegerType, pa.int32()),
    (st.LongType, pa.int64()),
    (st.FloatType, pa.float32()),
    (st.DoubleType, pa.float64()),
    (st.StringType, pa.string()),
    (st.CharType, pa.string()),
    (st.VarcharType, pa.string()),
    (st.BinaryType, pa.binary()),
    (st.DateType, pa.date32()),
    (st.TimestampNTZType, pa.timestamp("us")),
    (st.DayTimeIntervalType, pa.duration("us")),
    (st.NullType, pa.null()),
)


def arrow_schema(schema: st.StructType, zone: str, used: Container[str] | None = None) -> pa.Schema:
    """The Arrow schema of a Spark schema, timestamps shown in the session's zone.

    Each field remembers its Spark type, since several of those have the same Arrow type. A column that cannot be handed
    over is an error if it is among the `used` ones, which without a word are all; else its type does not matter.
    """
    fields = []
    for field in schema.fields:
        try:
            fields.append(_arrow_field(field, zone, field.name))
        except SchemaError:
            if used is None or field.name in used:
                raise
            fields.append(pa.field(field.name, pa.null()))
    return pa.schema(fields)


def _arrow_field(field: st.StructField, zone: str, column: str) -> pa.Field:
    type_ = _arrow_type(field.dataType, zone, column)
    return pa.field(field.name, type_, metadata={_SPARK_FIELD: json.dumps(field.jsonValue())})


def _arrow_type(type_: st.DataType, zone: str, column: str) -> pa.DataType:
    for kind, found in _SIMPLE:
        if isinstance(type_, kind):
            return found
    match type_:
        case st.TimestampType():
            return pa.timestamp("us", zone)
        case st.DecimalType():
            return pa.decimal128(type_.precision, type_.scale)
        case st.ArrayType():
            return pa.list_(_arrow_type(type_.elementType, zone, column))
        case st.MapType():
            return pa.map_(_arrow_type(type_.keyType, zone, column), _arrow_type(type_.valueType, zone, column))
        case st.StructType():
            return pa.struct([_arrow_field(field, zone, column) for field in type_.fields])
    raise SchemaError(
        f"the column '{printable(column)}' of type {type_.simpleString()} cannot be handed from Spark to Python",
        hint="Drop it, or cast it to a string, a number, a date or a timestamp before matching.",
    )


def kept_spark_type(field: pa.Field) -> st.DataType | None:
    """The Spark type that a field remembers; a CHAR or VARCHAR, which Spark may show as a string, as what it is."""
    kept = (field.metadata or {}).get(_SPARK_FIELD)
    if kept is None:
        return None
    found = st.StructField.fromJson(json.loads(kept))
    told = str((found.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", ""))
    if told.startswith("char"):
        return st.CharType(int(told[len("char(") : -1]))
    return found.dataType


def is_collated(field: pa.Field) -> bool:
    """Whether Spark compares the strings of the column otherwise than by code points."""
    type_ = kept_spark_type(field)
    return isinstance(type_, st.StringType) and getattr(type_, "collation", _BINARY) != _BINARY


_BINARY = "UTF8_BINARY"


def has_map(type_: pa.DataType) -> bool:
    """Whether values of the type hold a map, which Spark cannot compare."""
    if pa.types.is_map(type_):
        return True
    return pa.types.is_nested(type_) and any(has_map(type_.field(n).type) for n in range(type_.num_fields))


def spark_schema(schema: pa.Schema) -> st.StructType:
    return st.StructType([_spark_field(field) for field in schema])


def _spark_field(field: pa.Field) -> st.StructField:
    kept = (field.metadata or {}).get(_SPARK_FIELD)
    type_ = spark_type(field.type) if kept is None else st.StructField.fromJson(json.loads(kept)).dataType
    return st.StructField(field.name, type_)


def spark_type(type_: pa.DataType) -> st.DataType:
    """The Spark type of an Arrow type that Kleene gives out."""
    if pa.types.is_timestamp(type_):
        return st.TimestampNTZType() if type_.tz is None else st.TimestampType()
    if pa.types.is_decimal(type_):
        return st.DecimalType(type_.precision, type_.scale)
    if pa.types.is_map(type_):
        return st.MapType(spark_type(type_.key_type), spark_type(type_.item_type))
    if pa.types.is_list(type_):
        return st.ArrayType(spark_type(type_.value_type))
    if pa.types.is_struct(type_):
        return st.StructType([_spark_field(field) for field in type_])
    found = next((kind for kind, arrow in _SIMPLE if arrow.equals(type_)), None)
    assert found is not None, f"no Spark type for {type_}"
    return found()

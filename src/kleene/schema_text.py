"""The columns of an input, told by a file of events or by a few words."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa

from kleene.engine.column_types import attributes_of
from kleene.engine.inputs import DEFAULT_TYPE_COLUMN
from kleene.engine.output import arrow_type
from kleene.errors import SchemaError, listed, printable
from kleene.files import find_files, read_arrow
from kleene.schema import BOOLEAN, DATE, DURATION, FLOAT, INTEGER, STRING, TIME, EventSchema, Type, decimal, timestamp

_TYPES: dict[str, Type] = {
    **dict.fromkeys(("int", "integer", "bigint", "long"), INTEGER),
    **dict.fromkeys(("float", "double"), FLOAT),
    "string": STRING,
    **dict.fromkeys(("bool", "boolean"), BOOLEAN),
    "date": DATE,
    "timestamp": timestamp(),
    "time": TIME,
    "duration": DURATION,
}


def parse_schema(text: str, zone: str = "UTC", type_column: str = DEFAULT_TYPE_COLUMN) -> EventSchema:
    """The schema that a path's files have, or that the text lists.

    >>> parse_schema("ts timestamp, price decimal(10, 2)").type_of("price")
    DecimalType(name='decimal', scale=2)
    """
    if os.path.exists(text):
        attributes = attributes_of(read_arrow(find_files(Path(text), zone)).schema)
    else:
        attributes = tuple(_column(item) for item in re.split(r",(?![^(]*\))", text))
    names = [name for name, _ in attributes]
    return EventSchema(attributes, type_column if type_column in names else None)


def told_types(text: str) -> tuple[tuple[str, pa.DataType], ...]:
    """The Arrow types of columns, from the same words.

    >>> told_types("ts timestamp, id string")
    (('ts', TimestampType(timestamp[us])), ('id', DataType(string)))
    """
    columns = (_column(item) for item in re.split(r",(?![^(]*\))", text))
    return tuple((name, arrow_type(type_)) for name, type_ in columns)


def _column(text: str) -> tuple[str, Type]:
    found = re.fullmatch(r"\s*(\S+?)\s*[\s:]\s*([a-z]+)\s*(?:\(\s*\d+\s*(?:,\s*(\d+)\s*)?\))?\s*", text, re.IGNORECASE)
    if found is None:
        raise SchemaError(
            f"'{printable(text.strip())}' is neither a file nor a column with its type",
            hint="Write a schema as: ts timestamp, id string, price decimal(10, 2)",
        )
    name, type_name, scale = found.groups()
    if type_name.lower() == "decimal":
        return name, decimal(int(scale or 0))
    if type_name.lower() not in _TYPES:
        raise SchemaError(f"unknown type '{type_name}'", hint=f"Types: {listed([*_TYPES, 'decimal(p, s)'])}.")
    return name, _TYPES[type_name.lower()]

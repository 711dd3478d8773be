"""Rows to the text or the bytes of a file: Parquet, Arrow, CSV or JSON lines, the same wherever they are written.

A duration is a whole number of microseconds in Parquet, and ISO 8601 text (PT1H30M) in CSV and JSON. CSV has no nested
values: structs and arrays are JSON in it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from kleene.files.found import FileKind, endings_of, output_kind
from kleene.files.replacing import check_replaceable, replaced_file


def write_arrow(table: pa.Table, path: Path) -> None:
    """The table as the file, in place of what is there."""
    kind = output_kind(path)
    with replaced_file(path, partial(check_replaceable, endings=tuple(endings_of(kind)))) as sink:
        write_rows(table.schema, table.to_batches(), kind, sink)


def write_rows(schema: pa.Schema, batches: Iterable[pa.RecordBatch], kind: FileKind, sink: BinaryIO) -> int:
    """How many rows were written."""
    count = 0
    if kind is FileKind.PARQUET:
        plain = pa.schema([(field.name, _without_durations(field.type)) for field in schema])
        with pyarrow.parquet.ParquetWriter(sink, plain) as writer:
            for batch in batches:
                writer.write_table(pa.Table.from_batches([batch]).cast(plain, safe=False))
                count += batch.num_rows
        return count
    if kind is FileKind.ARROW:
        with pa.ipc.new_file(sink, schema) as arrow:
            for batch in batches:
                arrow.write_batch(batch)
                count += batch.num_rows
        return count
    if kind is FileKind.CSV:
        sink.write(_csv_text(schema.empty_table(), with_names=True))
    for batch in batches:
        table = pa.Table.from_batches([batch])
        sink.write(_csv_text(table, with_names=False) if kind is FileKind.CSV else _json_lines(table))
        count += batch.num_rows
    return count


def _without_durations(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_duration(type_):
        return pa.int64()
    if pa.types.is_map(type_):
        return pa.map_(_without_durations(type_.key_type), _without_durations(type_.item_type))
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_without_durations(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_without_durations(field.type)) for field in type_])
    return type_


def _json_lines(table: pa.Table) -> bytes:
    rows = table.to_pylist(maps_as_pydicts="lossy")
    return "".join(json_text(row) + "\n" for row in rows).encode("utf-8")


def _csv_text(table: pa.Table, with_names: bool) -> bytes:
    for number, field in enumerate(table.schema):
        table = table.set_column(number, field.name, _flat(table.column(number)))
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(include_header=with_names))
    text: bytes = sink.getvalue().to_pybytes()
    return text


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as CSV can have it."""
    type_ = column.type
    if pa.types.is_nested(type_):
        values = column.to_pylist(maps_as_pydicts="lossy") if pa.types.is_map(type_) else column.to_pylist()
        return pa.chunked_array([[None if value is None else json_text(value) for value in values]], pa.string())
    if pa.types.is_duration(type_) or pa.types.is_binary(type_):
        texts = [None if value is None else _in_json(value) for value in column.to_pylist()]
        return pa.chunked_array([texts], pa.string())
    return column


def json_text(value: Any) -> str:
    """The value as JSON, which has no NaN and no infinity: they are null there.

    >>> json_text({"at": datetime(2024, 1, 1, 10, tzinfo=UTC), "for": timedelta(minutes=90), "x": math.inf})
    '{"at": "2024-01-01T10:00:00Z", "for": "PT1H30M", "x": null}'
    """
    return json.dumps(_finite(value), default=_in_json, ensure_ascii=False)


def _in_json(value: Any) -> str:
    match value:
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
        case date():
            return value.isoformat()
        case timedelta():
            return duration_text(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
    return str(value)


def duration_text(value: timedelta) -> str:
    """A length of time as ISO 8601 has it; one below zero with a minus before all of it.

    >>> duration_text(timedelta(days=1, minutes=5, milliseconds=250)), duration_text(-timedelta(hours=1))
    ('P1DT5M0.25S', '-PT1H')
    """
    if value < timedelta(0):
        return "-" + duration_text(-value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    exact = f"{seconds}.{value.microseconds:06}".rstrip("0").rstrip(".") if value.microseconds else str(seconds)
    parts = ((hours, f"{hours}H"), (minutes, f"{minutes}M"), (seconds or value.microseconds, f"{exact}S"))
    clock = "".join(text for number, text in parts if number)
    days = f"{value.days}D" if value.days else ""
    return f"P{days}T{clock}" if clock else f"P{days}" if days else "PT0S"


def _finite(value: Any) -> Any:
    match value:
        case dict():
            return {
                str(_finite(name)) if not isinstance(name, str) else name: _finite(item) for name, item in value.items()
            }
        case list() | tuple():
            return [_finite(item) for item in value]
        case float() if not math.isfinite(value):
            return None
    return value

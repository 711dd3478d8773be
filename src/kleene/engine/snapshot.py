"""Snapshots: what an engine holds between events, as bytes.

A snapshot begins with a mark, the number of its format and a checksum; then come named parts: arrays, tables and plain
values. Nothing in it is ever executed when it is read.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.errors import SnapshotError, shown

FORMAT = 3
_MARK = b"KLEENE\x00S"
_HEAD = struct.Struct("<8sH32s")
_LENGTH = struct.Struct("<Q")


_DTYPES = ("<i8", "<f8")
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
    pa.ArrowException,
)


def pack(parts: Mapping[str, Any]) -> bytes:
    """The parts as bytes.

    >>> unpack(pack({"rows": np.arange(3), "limit": 5}))["rows"].tolist()
    [0, 1, 2]
    """
    plain: dict[str, Any] = {}
    index: list[tuple[str, str, list[int], int]] = []  # name, type, shape, bytes
    bodies: list[bytes] = []
    for name, part in parts.items():
        if isinstance(part, np.ndarray):
            bodies.append(part.tobytes())
            index.append((name, part.dtype.str, list(part.shape), len(bodies[-1])))
        elif isinstance(part, pa.Table):
            bodies.append(_table_bytes(part))
            index.append((name, "table", [], len(bodies[-1])))
        else:
            plain[name] = part
    head = json.dumps({"index": index, "plain": plain}).encode()
    payload = b"".join([_LENGTH.pack(len(head)), head, *bodies])
    return _HEAD.pack(_MARK, FORMAT, hashlib.sha256(payload).digest()) + payload


def unpack(snapshot: bytes) -> dict[str, Any]:
    """The parts of a snapshot; an error if the bytes are damaged, or are something else."""
    if not isinstance(snapshot, (bytes, bytearray, memoryview)):
        raise SnapshotError(f"a snapshot is bytes, but {shown(snapshot)} was given")
    data = bytes(snapshot)
    if len(data) < _HEAD.size or not data.startswith(_MARK):
        raise SnapshotError(
            "these bytes are not a snapshot of Kleene", hint="Give what snapshot() returned, unchanged."
        )
    _, number, checksum = _HEAD.unpack_from(data)
    if number != FORMAT:
        raise SnapshotError(
            f"the snapshot is of format {number}, but this version reads format {FORMAT}",
            hint="Restore it with the version of Kleene that wrote it, or start anew.",
        )
    payload = data[_HEAD.size :]
    if hashlib.sha256(payload).digest() != checksum:
        raise SnapshotError("the snapshot is damaged: its checksum is wrong", hint="Use an earlier one, or start anew.")
    try:
        return _parts(payload)
    except _UNREADABLE as error:
        raise SnapshotError(f"the snapshot cannot be read: {type(error).__name__}") from None


def _parts(payload: bytes) -> dict[str, Any]:
    (length,) = _LENGTH.unpack_from(payload)
    at = _LENGTH.size + length
    told = json.loads(payload[_LENGTH.size : at])
    found: dict[str, Any] = dict(told["plain"])
    for name, kind, shape, size in told["index"]:
        if name in found or not 0 <= size <= len(payload) - at:
            raise ValueError("parts that do not fit")
        body = payload[at : at + size]
        at += size
        found[name] = _table(body) if kind == "table" else _array(body, kind, shape)
    return found


def _array(body: bytes, kind: str, shape: list[int]) -> np.ndarray[Any, Any]:
    if kind not in _DTYPES:
        raise ValueError("numbers of another kind")
    return np.frombuffer(body, kind).reshape(shape).copy()  # engines write into what they loaded


def _table(body: bytes) -> pa.Table:
    if any(map(is_compressed, _messages(body))):
        raise ValueError("a table in a form that is never written")  # a few bytes could become any number of them
    table = pa.ipc.open_stream(pa.py_buffer(body)).read_all()
    table.validate(full=True)  # offsets, dictionaries and texts: whoever reads a value relies on them
    return table


def _messages(body: bytes) -> Iterator[bytes]:
    """The heads of Arrow's messages."""
    reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(body))
    with suppress(StopIteration):
        while True:
            yield reader.read_next_message().metadata.to_pybytes()


def is_compressed(head: bytes) -> bool:
    """Whether the body of an Arrow message is compressed, which nobody can ask Arrow before it is read.

    A head is a table of FlatBuffers: where its fields are stands in another table before it.
    """
    message = _at(head, 0, "I")
    kind = head[_field(head, message, 1)]
    batch = _reference(head, _field(head, message, 2))
    if kind == _DICTIONARY_BATCH:
        batch = _reference(head, _field(head, batch, 1))
    return kind in (_DICTIONARY_BATCH, _RECORD_BATCH) and _field(head, batch, 3) != 0


_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3


def _at(data: bytes, place: int, kind: str) -> int:
    (number,) = struct.unpack_from(f"<{kind}", data, place)
    return int(number)


def _reference(data: bytes, place: int) -> int:
    return place + _at(data, place, "I")


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of the table is; 0 if it has none."""
    places = table - _at(data, table, "i")
    if 4 + 2 * number >= _at(data, places, "H"):
        return 0
    place = _at(data, places + 4 + 2 * number, "H")
    return table + place if place else 0


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())

"""Snapshots: what an engine holds between events, as bytes.

A snapshot begins with a mark, the number of its format and a checksum; then come named parts: arrays, tables and plain
values. Nothing in it is ever executed when it is read.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.errors import SnapshotError

FORMAT = 2
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
        raise SnapshotError(f"a snapshot is bytes, and a {type(snapshot).__name__} was given")
    data = bytes(snapshot)
    if len(data) < _HEAD.size or not data.startswith(_MARK):
        raise SnapshotError("these bytes are no snapshot of Kleene", hint="Give what snapshot() returned, unchanged.")
    _, number, checksum = _HEAD.unpack_from(data)
    if number != FORMAT:
        raise SnapshotError(
            f"the snapshot is of format {number}, and this version reads format {FORMAT}",
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
    table = pa.ipc.open_stream(pa.py_buffer(body)).read_all()
    table.validate(full=True)  # offsets, dictionaries and texts: whoever reads a value relies on them
    return table


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())

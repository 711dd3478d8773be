"""Snapshots: what an engine holds between events, as bytes.

A snapshot begins with a mark, the number of its format and a checksum; then come named parts: arrays, tables and plain
values. Nothing in it is ever executed when it is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.errors import SnapshotError

FORMAT = 1
_MARK = b"KLEENE\x00S"
_HEAD = struct.Struct("<8sH32s")


def pack(parts: Mapping[str, Any]) -> bytes:
    """The parts as bytes.

    >>> unpack(pack({"rows": np.arange(3), "limit": 5}))["rows"].tolist()
    [0, 1, 2]
    """
    arrays: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for name, part in parts.items():
        if isinstance(part, np.ndarray):
            arrays[f"array.{name}"] = part
        elif isinstance(part, pa.Table):
            arrays[f"table.{name}"] = np.frombuffer(_table_bytes(part), np.uint8)
        else:
            plain[name] = part
    arrays["plain"] = np.frombuffer(json.dumps(plain).encode(), np.uint8)
    body = io.BytesIO()
    np.savez(body, allow_pickle=False, **arrays)
    payload = body.getvalue()
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
    except (ValueError, EOFError, OSError, KeyError, zipfile.BadZipFile, pa.ArrowInvalid) as error:
        raise SnapshotError(f"the snapshot cannot be read: {type(error).__name__}") from None


def _parts(payload: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
        for name in arrays.files:
            kind, _, own = name.partition(".")
            if kind == "array":
                found[own] = arrays[name]
            elif kind == "table":
                found[own] = pa.ipc.open_stream(arrays[name].tobytes()).read_all()
        found |= json.loads(arrays["plain"].tobytes())
    return found


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())

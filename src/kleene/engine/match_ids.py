"""A name for each match that depends on nothing but its events: the same in every run, in process and on Spark."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kleene.engine.events import plain_values
from kleene.engine.matches import FlatMatches
from kleene.schema import OpaqueType, Schema

MATCH_ID = "match_id"
_BYTES = 16


def match_ids(events: pa.Table, matches: FlatMatches, names: Sequence[str], schema: Schema) -> pa.Array:
    """For each match 32 hexadecimal digits, made of the values of its events in these columns, by variable.

    Matches of events that do not differ in any of the columns have the same.
    """
    positions, places = np.unique(matches.positions, return_inverse=True)
    used = events.select(names).take(pa.array(positions, pa.int64()))
    columns = [_texts(used, name, schema) for name in sorted(names)]
    digests = [_digest("\x1f".join(values).encode()) for values in zip(*columns, strict=True)]
    ids = []
    for number in range(len(matches)):
        own = places[matches.offsets[number] : matches.offsets[number + 1]]
        lengths = ",".join(map(str, matches.lengths[number].tolist()))
        ids.append(_digest(b"".join([lengths.encode(), *(digests[place] for place in own.tolist())])).hex())
    return pa.array(ids, pa.string())


def _texts(table: pa.Table, name: str, schema: Schema) -> list[str]:
    type_ = schema.type_of(name) if name in schema else OpaqueType("", "")
    if isinstance(type_, OpaqueType):
        return [repr(value) for value in table.column(name).to_pylist()]
    return [repr(_normal(value)) for value in plain_values(table.column(name), type_, name)]


def _normal(value: object) -> object:
    return value + 0.0 if isinstance(value, float) else value  # -0.0 and 0.0 are one value


def _digest(said: bytes) -> bytes:
    return hashlib.blake2b(said, digest_size=_BYTES).digest()

"""Snapshots of every engine, and forgeries of them: other content under a right checksum.

A forgery must be refused with a SnapshotError, or go on as some stream would: with matches, or with another error of
Kleene's. It must not end the process, take all memory, or raise what the layers below raise.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import kleene
from flat_options import arguments
from kleene.engine import snapshot as snapshots
from kleene.engine.progress import CheckedProgress, PreparedQuery

Parts = dict[str, Any]
EXTREMES = [0, 1, -1, -2, 2, 63, 64, 1023, 1024, 2**31 - 1, 2**31, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63)]
PLAIN = [
    None,
    True,
    -1,
    0,
    1,
    2**40,
    2**70,
    1.5,
    "x",
    "t",
    [],
    ["t"],
    ["x", "x"],
    [1],
    [[0]],
    [[1], [0]],
    {},
    {"a": []},
]

SASE: dict[str, tuple[str, dict[str, Any]]] = {
    "sequence": ("PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x < c.x WITHIN 20", {}),
    "sequence, two tests": ("PATTERN SEQ(A a, B b) WHERE [id] AND a.name = b.name WITHIN 9 events", {}),
    "sequence, negation": ("PATTERN SEQ(A a, B b, !(C c)) WHERE [id] WITHIN 15", {"format": "non_overlapping"}),
    "sequence, basic": ("PATTERN SEQ(A a, B b, C c) WHERE a.x < c.x WITHIN 8", {"plan": {"scan": "basic"}}),
    "merged": ("PATTERN SEQ(A+ a[], B b) WHERE [id] AND a[i].x > a[i-1].x WITHIN 25", {"algorithm": "merge"}),
    "versions": ("PATTERN SEQ(A+ a[], B b) WHERE [id] AND a[i].x > a[i-1].x WITHIN 25", {"algorithm": "basic"}),
    "strings": ("PATTERN SEQ(A+ a[], B b) WHERE max(a[..i-1].name) <= a[i].name WITHIN 12", {}),
    "next": ("PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [id] AND sum(b[].x) < 9 }", {}),
    "each": ("PATTERN SEQ(A+ a[], B+ b[], C c) WHERE c.x >= a.x AND [id] WITHIN 12", {"algorithm": "basic"}),
    "waiting": ("PATTERN SEQ(A+ a[], B b, !(C c)) WHERE [id] WITHIN 15", {"algorithm": "merge"}),
}
ROWS = {
    "rows": "PARTITION BY id ORDER BY t MEASURES count(*) AS n PATTERN (A B+ C) DEFINE B AS x > PREV(x), C AS x < 2",
    "rows, window": "ORDER BY t MEASURES LAST(A.x) AS n PATTERN (A+ B) WITHIN 9 DEFINE A AS x > 1, B AS sum(A.x) > 7",
}
STEPS = {
    "steps": kleene.begin("a", type="A")
    .followed_by("b", type="B")
    .where("COUNT(b.*) = 0 OR x >= LAST(b.x) OR name < MAX(b.name)")
    .one_or_more(gap=6)
    .followed_by("c", type="C")
    .within(12)
    .after_match("skip_to_last", "b")
    .partition_by("id"),
    "steps, group": kleene.begin(kleene.begin("a", type="A").followed_by("b", type="B"))
    .one_or_more()
    .not_followed_by("n", type="C")
    .where("x > LAST(b.x)")
    .within(9),
}
REGEX = {"pattern": "A B* C", "predicates": {"A": "x > 2", "B": "x >= First(x)", "C": "name > Max(name)"}}


def stream(count: int, seed: int = 1) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "type": chance.choice(["A", "B", "C"], count),
            "t": np.arange(count),
            "id": chance.integers(0, 3, count),
            "x": pa.array(chance.integers(0, 5, count), mask=chance.random(count) < 0.05),
            "name": chance.choice(["u", "v", "w"], count),
        }
    )


def progresses(engine: str) -> Iterator[tuple[str, Any]]:
    """A progress of each kind, of which nothing was fed yet."""
    table = stream(10)
    for name, (text, options) in SASE.items():
        yield name, kleene.sase(text).progress(table, **arguments({"order_by": "t", "engine": engine, **options}))
    for name, clause in ROWS.items():
        yield name, kleene.match_recognize(clause).progress(table, engine=engine)
    for name, pattern in STEPS.items():
        yield name, pattern.progress(table, order_by="t", engine=engine)
    for name, output in {"regex": {"n": "Count()"}, "regex, events": {"n": "Collect(x)"}}.items():
        query = kleene.regex(**REGEX, partition_by=["id"], order_by="t", output=output)
        yield name, query.progress(table, engine=engine)


def real_snapshots(engine: str) -> list[tuple[str, PreparedQuery, bytes]]:
    found = []
    for name, progress in progresses(engine):
        for piece in (stream(60).slice(0, 25), stream(60).slice(25, 15)):
            progress.feed(piece)
            found.append((name, progress._progress._query, progress.snapshot()))
    return found


def outcome(query: PreparedQuery, snapshot: bytes) -> str:
    """What becomes of a snapshot: refused, an error of Kleene's later on, or matches."""
    try:
        progress = CheckedProgress.restore(query, snapshot)
    except kleene.SnapshotError:
        return "refused"
    try:
        for piece in (stream(60).slice(40, 10), stream(60).slice(50, 10)):
            progress.feed(piece)
            progress.held()
            progress.snapshot()
        progress.finish()
    except kleene.KleeneError:
        return "error"
    return "matches"


# ---- forging


def forged(snapshot: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.3:
        return with_other_bytes(snapshot, chance)
    parts = snapshots.unpack(snapshot)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        name = chance.choice(sorted(parts))
        change = chance.choice(_CHANGES)
        change(parts, name, chance)
    return snapshots.pack(parts)


def sealed(payload: bytes) -> bytes:
    checksum = hashlib.sha256(payload).digest()
    return snapshots._HEAD.pack(snapshots._MARK, snapshots.FORMAT, checksum) + payload


def with_other_bytes(snapshot: bytes, chance: random.Random) -> bytes:
    payload = bytearray(snapshot[snapshots._HEAD.size :])
    match chance.randrange(4):
        case 0:
            del payload[chance.randrange(len(payload)) :]
        case 1:
            payload += bytes(chance.randrange(1, 100))
        case 2:
            at = chance.randrange(len(payload))
            payload[at : at + 8] = (chance.choice(EXTREMES) % 2**64).to_bytes(8, "little")
        case _:
            for _ in range(chance.choice([1, 1, 2, 8])):
                payload[chance.randrange(len(payload))] ^= 1 << chance.randrange(8)
    return sealed(bytes(payload))


def _change_value(parts: Parts, name: str, chance: random.Random) -> None:
    part = parts[name]
    if isinstance(part, np.ndarray) and part.size:
        flat = part.reshape(-1)
        at = chance.randrange(flat.size)
        near = [flat[at] + 1, flat[at] - 1, flat[chance.randrange(flat.size)]]
        value = chance.choice([*near, *EXTREMES])
        if part.dtype == np.float64 or np.iinfo(part.dtype).min <= value <= np.iinfo(part.dtype).max:
            flat[at] = value
    elif isinstance(part, pa.Table) and part.num_rows and part.num_columns:
        _change_table(parts, name, chance)
    elif not isinstance(part, np.ndarray | pa.Table):
        parts[name] = chance.choice(PLAIN)


def _change_table(parts: Parts, name: str, chance: random.Random) -> None:
    table, column = parts[name], chance.randrange(parts[name].num_columns)
    values = table.column(column).to_pylist()
    at = chance.randrange(len(values))
    if pa.types.is_null(table.column(column).type):
        return
    is_text = pa.types.is_string(table.column(column).type)
    values[at] = chance.choice([None, "", "A", "zz"] if is_text else [None, *EXTREMES])
    parts[name] = table.set_column(column, table.field(column), pa.array(values, table.field(column).type))


def _flip_bits(parts: Parts, name: str, chance: random.Random) -> None:
    part = parts[name]
    if isinstance(part, np.ndarray) and part.size:
        data = np.frombuffer(part.tobytes(), np.uint8).copy()
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        parts[name] = np.frombuffer(data.tobytes(), part.dtype).reshape(part.shape).copy()


def _change_length(parts: Parts, name: str, chance: random.Random) -> None:
    part = parts[name]
    if isinstance(part, np.ndarray):
        longer = np.concatenate([part, part[:1]]) if part.ndim else part
        parts[name] = chance.choice([part[:-1], part[:0], part[1:], longer, part.reshape(-1), part[..., :1]])
    elif isinstance(part, pa.Table):
        columns = part.column_names
        parts[name] = chance.choice(
            [part.slice(1), part.slice(0, 0), pa.concat_tables([part, part]), part.select(columns[1:]), part.select([])]
        )
    elif isinstance(part, list):
        parts[name] = chance.choice([part[1:], [*part, *part], [*part, "zz"]])


def _change_kind(parts: Parts, name: str, chance: random.Random) -> None:
    part = parts[name]
    if isinstance(part, np.ndarray):
        kinds = [np.float64, np.int64, np.int32, np.uint8]
        parts[name] = chance.choice([*(part.astype(kind) for kind in kinds), part.tolist()])
    elif isinstance(part, pa.Table) and part.num_columns:
        column = chance.randrange(part.num_columns)
        parts[name] = part.set_column(column, part.column_names[column], pa.nulls(part.num_rows))


def _remove(parts: Parts, name: str, chance: random.Random) -> None:
    if name != "fingerprint":
        del parts[name]


def _swap(parts: Parts, name: str, chance: random.Random) -> None:
    other = chance.choice(sorted(parts))
    if "fingerprint" not in (name, other):
        parts[name], parts[other] = parts[other], parts[name]


_CHANGES: list[Callable[[Parts, str, random.Random], None]] = [
    _change_value,
    _change_value,
    _change_value,
    _flip_bits,
    _change_length,
    _change_kind,
    _remove,
    _swap,
]

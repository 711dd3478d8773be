"""Events for the benchmark on streams: made with numpy, seeded, kept as Parquet files in the system's temporary folder.

Files hold events as they arrive, which is not quite the order of their times; Spark reads a file for each micro-batch.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FORMAT = 1
"""To be raised when a generator changes, so that no files of an earlier one are read."""
SCHEMA = "type STRING, ts TIMESTAMP, id LONG, place LONG, reader STRING"
BEGIN = np.datetime64("2024-05-04T09:00", "us")
HOUR = 3_600_000_000
BETWEEN = 2 * HOUR
"""Between two events of one key, in the middle."""
LATEST = 50 * HOUR // 60
"""No event arrives later than that after it happened."""
DELAY = "1 hour"
"""How long the watermark waits."""
FLUSH = 30 * 24 * HOUR
"""The last file has one event, so much later than all others: the watermark passes them then."""

Numbers = np.ndarray[Any, Any]
TYPES = {"Shelf": 0.788, "Register": 0.2, "Exit": 0.012}
FAILURES, FAILURES_OF_ATTACKED, ATTACKED = 0.01, 0.8, 0.02
"""How many of an account's logins fail; of how many accounts it is another number."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How many events of how many keys, in how many files. Of keys that move, each lives for a tenth of the stream."""

    events: int
    keys: int
    files: int
    moving: bool = False

    @property
    def between(self) -> int:
        """Microseconds between two events."""
        return max(BETWEEN // self.keys, 1)


def readings(shape: Shape, seed: int = 7) -> pa.Table:
    """Items of a store, as in SASE 2006 §2: they lie on shelves, are paid for, or not, and leave."""
    chance = np.random.default_rng(seed)
    kinds = chance.choice(len(TYPES), shape.events, p=list(TYPES.values()))
    return _arriving(_table(shape, chance, kinds, list(TYPES), _keys(shape, chance)), chance)


def logins(shape: Shape, seed: int = 7) -> pa.Table:
    """Logins of accounts, few of which somebody tries to break into: Failure or Success."""
    chance = np.random.default_rng(seed)
    keys = _keys(shape, chance)
    share = np.where(chance.random(int(keys.max()) + 1) < ATTACKED, FAILURES_OF_ATTACKED, FAILURES)
    kinds = (chance.random(shape.events) >= share[keys]).astype(np.int64)
    return _arriving(_table(shape, chance, kinds, ["Failure", "Success"], keys), chance)


GENERATORS: dict[str, Callable[[Shape], pa.Table]] = {make.__name__: make for make in (readings, logins)}


def _keys(shape: Shape, chance: np.random.Generator) -> Numbers:
    keys: Numbers = chance.integers(0, shape.keys, shape.events)
    if shape.moving:
        keys += np.arange(shape.events) * 10 * shape.keys // shape.events
    return keys


def _table(shape: Shape, chance: np.random.Generator, kinds: Numbers, types: list[str], keys: Numbers) -> pa.Table:
    count = shape.events
    times = BEGIN + (np.arange(count) * shape.between).astype("timedelta64[us]")
    return pa.table(
        {
            "type": _named(kinds, types),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "id": keys,
            "place": chance.integers(0, 1_000, count),
            "reader": _named(chance.integers(0, 100, count), [f"reader-{number:02}" for number in range(100)]),
        }
    )


def _arriving(table: pa.Table, chance: np.random.Generator) -> pa.Table:
    times = table.column("ts").cast(pa.int64()).to_numpy()
    return table.take(pa.array(np.argsort(times + chance.integers(0, LATEST, len(times)), kind="stable")))


def _named(codes: Numbers, names: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names).cast(pa.string())


def folder_of(name: str, shape: Shape) -> Path:
    """The folder with these events, which are made if they are not there yet."""
    root = Path(tempfile.gettempdir(), f"kleene-stream-benchmark-{FORMAT}")
    kind = "moving" if shape.moving else "steady"
    folder = root / f"{name}-{shape.events}-{shape.keys}-{shape.files}-{kind}"
    if not folder.exists():
        root.mkdir(exist_ok=True)
        # Under another name until it is complete: a run that was ended half-way leaves nothing that looks right.
        unfinished = Path(tempfile.mkdtemp(dir=root))
        try:
            write(GENERATORS[name](shape), shape.files, unfinished)
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def write(table: pa.Table, files: int, folder: Path) -> None:
    """The events in files, and the event that comes long after them."""
    size = -(-table.num_rows // files)
    parts = [table.slice(begin, size) for begin in range(0, table.num_rows, size)]
    latest = table.column("ts").cast(pa.int64()).to_numpy().max(keepdims=True) + FLUSH
    ending = table.slice(0, 1).set_column(1, "ts", pa.array(latest, pa.int64()).cast(pa.timestamp("us", "UTC")))
    parts.append(ending.set_column(2, "id", pa.array([-1], pa.int64())))
    for number, part in enumerate(parts):
        path = folder / f"part-{number:05}.parquet"
        pq.write_table(part, path)
        # Spark takes the oldest files first.
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def first_files(folder: Path, files: int) -> list[str]:
    """The first files of a folder, and its last."""
    paths = sorted(map(str, folder.glob("*.parquet")))
    return [*paths[: min(files, len(paths) - 1)], paths[-1]]

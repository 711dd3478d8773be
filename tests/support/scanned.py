"""Tables as files that are cut at random, and scans of them that go every way."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import kleene
from kleene.engine import threads
from kleene.files.types import common_table
from kleene.scanning import reaching, ways

WAYS = ("in order", "reaching back", "reaching back", "over the disk", "over the disk", "one table")
"""The last is what tables go, and needs no more than a look."""


def go(way: str, monkeypatch: pytest.MonkeyPatch, rows_at_once: int = 3) -> None:
    """Makes scans of few rows go that way, where the query allows it."""
    monkeypatch.setattr(ways, "ROWS_AT_ONCE", 10**9 if way == "one table" else rows_at_once)
    monkeypatch.setattr(ways, "LEAST_AT_ONCE", rows_at_once)
    monkeypatch.setattr(ways, "MOST_OF_MEMORY", 10**12 if way == "over the disk" else 8)
    monkeypatch.setattr(ways, "MOST_AGAIN", 10**12 if way == "reaching back" else -1)
    if way == "reaching back":
        monkeypatch.setattr(reaching, "ROWS_AT_ONCE", rows_at_once)
        monkeypatch.setattr(threads, "LEAST_ROWS", 2)


def written(table: pa.Table, folder: Path, chance: random.Random) -> tuple[Path, pa.Table]:
    """A folder of files that hold the table, and the table in the types that files have for Kleene."""
    folder.mkdir(parents=True, exist_ok=True)
    is_parquet = chance.random() < 0.7 and not any(map(pa.types.is_duration, table.schema.types))
    cuts = sorted({0, table.num_rows, *(chance.randint(0, table.num_rows) for _ in range(chance.randint(0, 4)))})
    edges = list(pairwise(cuts)) or [(0, 0)]
    for number, (begin, end) in enumerate(edges):
        part, rows = table.slice(begin, end - begin), chance.randint(1, 5)
        if is_parquet:
            path, told = folder / f"part-{number:03}.parquet", chance.random() < 0.8
            pyarrow.parquet.write_table(part, path, row_group_size=rows, write_statistics=told)
        else:
            pyarrow.feather.write_feather(
                part, str(folder / f"part-{number:03}.feather"), chunksize=rows, compression="uncompressed"
            )
    return folder, common_table(table, "UTC")


def outcome(query: kleene.Query, events: Any, **options: Any) -> str:
    """The rows, or the words of the error."""
    try:
        found = query.match(events, **options)
    except kleene.KleeneError as error:
        return f"{type(error).__name__}: {error}"
    return repr(found.to_pylist())  # in which NaN is NaN

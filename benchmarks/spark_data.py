"""Events for the benchmark on Spark: made with numpy, seeded, kept as Parquet files in the system's temporary folder.

Events come in the order of time, keys mixed, as a feed would write them; a file holds up to a million of them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KEYS = 390
SYMBOLS = [f"S{number:03}" for number in range(KEYS)]
PIECE = 1_000_000
FORMAT = 1
"""To be raised when a generator changes, so that no files of an earlier one are read."""

BEGIN = np.datetime64("2024-05-04T09:00", "us")
BETWEEN_TRADES = np.timedelta64(50_000, "us")
"""Of one symbol there is a trade every 19.5 seconds, then: 10 million are a month of trading hours."""
BETWEEN_READINGS = np.timedelta64(5_000_000, "us")
"""An item is read every 32 minutes, as by shelves that are swept."""

TYPES = {"Shelf": 0.788, "Counter": 0.2, "Exit": 0.012}
MANY_TYPES = 40
STEP = 0.003
"""The standard deviation of a price's relative change from trade to trade."""

Numbers = np.ndarray[Any, Any]


def trades(count: int, seed: int = 7, keys: int = KEYS) -> Iterator[pa.Table]:
    """Trades: symbol, ts, price (in cents, a random walk by symbol), size (few above 1,000), seq and exchange."""
    chance = np.random.default_rng(seed)
    walk = np.log(chance.uniform(2_000, 20_000, keys))
    for begin, size in _pieces(count):
        codes = chance.integers(0, keys, size).astype(np.int16)
        price = np.exp(_walked(walk, codes, chance.normal(0, STEP, size))).astype(np.int64)
        yield pa.table(
            {
                "symbol": _named(codes, SYMBOLS),
                "ts": _times(begin, size),
                "price": np.maximum(price, 100),
                "size": 100 * chance.geometric(0.245, size),
                "seq": np.arange(begin, begin + size),
                "exchange": _named(chance.integers(0, 4, size), ["NYSE", "NASDAQ", "ARCA", "BATS"]),
            }
        )


def readings(count: int, seed: int = 7, keys: int = KEYS) -> Iterator[pa.Table]:
    """Items of a store, as in SASE 2006 §2: type (Shelf, Counter or Exit), ts, id, place and reader."""
    chance = np.random.default_rng(seed)
    for begin, size in _pieces(count):
        kinds = chance.choice(len(TYPES), size, p=list(TYPES.values()))
        yield pa.table(
            {
                "type": _named(kinds, list(TYPES)),
                "ts": _times(begin, size, BETWEEN_READINGS),
                "id": _named(chance.integers(0, keys, size), SYMBOLS),
                "place": chance.integers(0, 1_000, size),
                "reader": _named(chance.integers(0, 100, size), [f"reader-{number:02}" for number in range(100)]),
            }
        )


def four_types(count: int, seed: int = 7, keys: int = KEYS) -> Iterator[pa.Table]:
    """Types A, B, C and D, all of them equally frequent, with the attributes of SASE 2006 Q3."""
    return _typed(count, list("ABCD"), seed, keys)


def many_types(count: int, seed: int = 7, keys: int = KEYS) -> Iterator[pa.Table]:
    """The same with 40 types, E1 to E40."""
    return _typed(count, [f"E{number}" for number in range(1, MANY_TYPES + 1)], seed, keys)


def _typed(count: int, types: list[str], seed: int, keys: int) -> Iterator[pa.Table]:
    chance = np.random.default_rng(seed)
    for begin, size in _pieces(count):
        yield pa.table(
            {
                "type": _named(chance.integers(0, len(types), size), types),
                "ts": _times(begin, size),
                "attr1": _named(chance.integers(0, keys, size), SYMBOLS),
                "attr2": chance.integers(0, 20, size),
                "attr3": chance.integers(0, 10, size),
                "attr4": chance.integers(0, 1_000, size),
            }
        )


def one_stream(count: int, seed: int = 7) -> Iterator[pa.Table]:
    """Trades of a single symbol, in smaller files: ts, price, a random walk kept between two prices, and seq."""
    chance, place = np.random.default_rng(seed), 0.5
    for begin, size in _pieces(count, PIECE // 4):
        walk = place + np.cumsum(chance.normal(0, STEP, size))
        place = float(walk[-1])
        kept = np.abs((walk + 1) % 2 - 1)  # turned round at 0 and at 1
        price = np.exp(np.log(2_000) + kept * np.log(10)).astype(np.int64)
        yield pa.table({"ts": _times(begin, size), "price": price, "seq": np.arange(begin, begin + size)})


Generator = Callable[..., Iterator[pa.Table]]
GENERATORS: dict[str, Generator] = {
    make.__name__: make for make in (trades, readings, four_types, many_types, one_stream)
}


def parquet_folder(name: str, count: int) -> Path:
    """The folder with so many events, which are made if they are not there yet."""
    root = Path(tempfile.gettempdir(), f"kleene-benchmark-{FORMAT}")
    folder = root / f"{name}-{count}"
    if not folder.exists():
        root.mkdir(exist_ok=True)
        # Under another name until it is complete: a run that was ended half-way leaves nothing that looks right.
        unfinished = Path(tempfile.mkdtemp(dir=root))
        try:
            for number, table in enumerate(GENERATORS[name](count)):
                pq.write_table(table, unfinished / f"part-{number:05}.parquet")
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _pieces(count: int, piece: int = PIECE) -> Iterator[tuple[int, int]]:
    for begin in range(0, count, piece):
        yield begin, min(piece, count - begin)


def _times(begin: int, size: int, between: np.timedelta64 = BETWEEN_TRADES) -> pa.Array:
    return pa.array(BEGIN + np.arange(begin, begin + size) * between, pa.timestamp("us", "UTC"))


def _named(codes: Numbers, names: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), names).cast(pa.string())


def _walked(walk: Numbers, codes: Numbers, steps: Numbers) -> Numbers:
    """Where each step leads, by key; the walk goes on from there with the next piece."""
    order = np.argsort(codes, kind="stable")
    sums = np.cumsum(steps[order])
    begins = np.searchsorted(codes[order], np.arange(len(walk)))
    before = np.concatenate([[0.0], sums])[begins]
    places = np.empty(len(steps))
    places[order] = sums + (walk - before)[codes[order]]
    walk[:] += np.concatenate([[0.0], sums])[np.append(begins[1:], len(steps))] - before
    return places

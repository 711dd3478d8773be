"""Events for the benchmarks that `kleene.datasets` has not: made with numpy, since there are many. Seeded."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LOWEST, HIGHEST = 50, 150
Numbers = np.ndarray[Any, Any]


def uniform_prices(count: int, seed: int = 7) -> pa.Table:
    """Prices as RIP 2013 §5 has them, uniform in [50, 150]."""
    return _ticks(np.random.default_rng(seed).uniform(LOWEST, HIGHEST, count))


def walking_prices(count: int, seed: int = 7, grid: int = 5, farthest: int = 4) -> pa.Table:
    """A random walk from 100 on a grid, up to `farthest` places up or down at a time, reflected into [50, 150].

    Prices repeat and move in runs, as those of a market do. Steps of one place only would be too small for most of
    RIP's queries: nothing would match.
    """
    steps = np.random.default_rng(seed).integers(-farthest, farthest + 1, count) * grid
    steps[:1] = 0
    return _ticks((LOWEST + _reflected(np.cumsum(steps) + 50, HIGHEST - LOWEST)).astype(np.float64))


def _reflected(walk: Numbers, width: int) -> Numbers:
    """The walk as if there were mirrors at 0 and at the width."""
    return width - np.abs(walk % (2 * width) - width)


def _ticks(prices: Numbers) -> pa.Table:
    return pa.table({"t": np.arange(len(prices)), "price": prices})


def stock_ticks(count: int, rising: float = 0.7, seed: int = 7) -> pa.Table:
    """The stream of SASE+ 2008 §6: type, t, symbol in 1..2, price in 1..1000, volume in 1..1000.

    Each symbol's price rises by 1 with the probability `rising`, and falls by 1 or stays with half of the rest each.
    It stays in 1..1000 by going around from 850 to 250: what begins at 500 can then rise for all of a window of 500
    events, and matches get the lengths of the paper's Table 2 (p1s3 250, p2s2 4.5, p2s3 140, p3s3 250). Were it to go
    around at 1000, half of the runs, those that begin there, could never rise.
    """
    chance = np.random.default_rng(seed)
    symbols = chance.integers(1, 3, count)
    steps = chance.choice([1, -1, 0], count, p=[rising, (1 - rising) / 2, (1 - rising) / 2])
    prices = np.empty(count, np.int64)
    for symbol in (1, 2):
        own = symbols == symbol
        prices[own] = 250 + (200 + np.cumsum(steps[own])) % 601
    columns = {"t": np.arange(count), "symbol": symbols, "price": prices, "volume": chance.integers(1, 1001, count)}
    return pa.table({"type": pa.repeat(pa.scalar("Stock"), count), **columns})


def store_readings(count: int, items: int, seed: int = 7) -> pa.Table:
    """Readings of shelves, counters and exits, one a second: type, t, id, and a place in 0..999."""
    chance = np.random.default_rng(seed)
    kinds = chance.choice(3, count, p=[0.6, 0.2, 0.2]).astype(np.int32)
    types = pa.DictionaryArray.from_arrays(pa.array(kinds), ["Shelf", "Counter", "Exit"]).cast(pa.string())
    columns = {"id": chance.integers(0, items, count), "place": chance.integers(0, 1000, count)}
    return pa.table({"type": types, "t": np.arange(count), **columns})


def contamination(shipments: int, sites: int = 10, seed: int = 7) -> dict[str, pa.Table]:
    """One alert about site 0, and shipments between sites every five seconds after it."""
    chance = np.random.default_rng(seed)
    alarm = datetime(2024, 5, 4, 9, 0)
    times = [alarm + timedelta(seconds=5 * number) for number in range(1, shipments + 1)]
    sources = chance.integers(0, sites, shipments)
    targets = (sources + chance.integers(1, sites, shipments)) % sites
    return {
        "Alert": pa.table({"ts": [alarm], "kind": ["contaminated"], "site": [0]}),
        "Shipment": pa.table({"ts": times, "source": sources, "target": targets}),
    }


def contaminated_ways(shipments: pa.Table) -> int:
    """How many chains of shipments lead away from site 0, each one beginning where the one before ended."""
    ending_at: dict[int, int] = {0: 1}
    for source, target in zip(*(shipments.column(name).to_pylist() for name in ("source", "target")), strict=True):
        ending_at[target] = ending_at.get(target, 0) + ending_at.get(source, 0)
    return sum(ending_at.values()) - 1


def constant(count: int, x: int = 1) -> pa.Table:
    """Rows that are all the same but for their place."""
    return pa.table({"t": np.arange(count), "x": np.full(count, x)})


def repeated(events: pa.Table, times: int, time: str) -> pa.Table:
    """The same events several times over, one after the other, so that there is exactly so much more to do."""
    column = events.column(time)
    span = pa.scalar(column[-1].as_py() - column[0].as_py() + (column[1].as_py() - column[0].as_py()))
    place = events.column_names.index(time)
    parts = [events]
    for _ in range(times - 1):
        before = parts[-1]
        later = pc.add(before.column(time), span)
        parts.append(before.set_column(place, time, later.cast(column.type)))
    return pa.concat_tables(parts).combine_chunks()

"""The tables that the playground offers: samples of its own, and what was given on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from kleene.datasets import retail_store, trades

MOST_ROWS = 100_000
_TYPES = {"SHELF-READING": "Shelf", "COUNTER-READING": "Counter", "EXIT-READING": "Exit"}
_THEFT = """\
EVENT SEQ(Shelf a, !(Counter c), Exit b)
WHERE [id]
WITHIN 12 hours
RETURN a.id AS item, a.shelf_id AS shelf,
       b.door_id AS door, b.ts AS left_at"""
_VISITS = """\
PARTITION BY id
ORDER BY ts
MEASURES FIRST(S.shelf_id) AS first_shelf, count(S.ts) AS readings, X.ts AS left_at
PATTERN (S+ X)
DEFINE S AS type = 'Shelf', X AS type = 'Exit'"""
_RISES = """\
PATTERN SEQ(Trade+ a[])
WHERE partition_contiguity(a[]) {
  [symbol]
  AND a[i].price > a[i-1].price
  AND a.LEN >= 5
}
WITHIN 2 hours"""
_FALLS = """\
PARTITION BY symbol
ORDER BY ts
MEASURES FIRST(A.price) AS top, LAST(B.price) AS bottom, count(B.price) AS falls
PATTERN (A B{4,})
DEFINE B AS B.price < PREV(B.price)"""


@dataclass(frozen=True, slots=True)
class Offered:
    """A table under a name; `examples` are queries by language. `left_out` rows are not looked at."""

    name: str
    label: str
    events: pa.Table = field(compare=False, repr=False)
    order_by: str | None = None
    type_column: str | None = "type"
    examples: Mapping[str, str] = field(default_factory=dict)
    left_out: int = 0


def samples() -> list[Offered]:
    """The tables that Kleene makes itself."""
    floor = trades(2_000, symbols=8)
    return [
        Offered("store", "A store: readings of tags", _store(), "ts", "type", {"sase": _THEFT, "sql": _VISITS}),
        Offered("trades", "Trades of eight symbols", floor, "ts", None, {"sase": _RISES, "sql": _FALLS}),
    ]


def _store() -> pa.Table:
    """The readings of a small store in one table."""
    readings = retail_store(items=150).readings
    parts = [
        table.append_column("type", pa.array([_TYPES[name]] * table.num_rows, pa.string()))
        for name, table in readings.items()
    ]
    whole = pa.concat_tables(parts, promote_options="default").sort_by([("ts", "ascending"), ("id", "ascending")])
    return whole.select(["ts", "type", "id", "shelf_id", "counter_id", "door_id"])


def given_table(label: str, events: pa.Table, order_by: str | None, type_column: str | None) -> Offered:
    """A table of the user's, of which no more than so many rows are looked at."""
    left_out = max(0, events.num_rows - MOST_ROWS)
    return Offered("given", label, events.slice(0, MOST_ROWS), order_by, type_column, {}, left_out)

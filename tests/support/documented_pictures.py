"""The pictures of docs/pictures.md: `python tests/support/documented_pictures.py` draws them anew."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import kleene
from kleene.datasets import trades

FOLDER = Path(__file__).parent.parent.parent / "docs" / "pictures"
READINGS = pa.table(
    {
        "type": ["Shelf", "Shelf", "Shelf", "Register", "Exit", "Shelf", "Exit", "Shelf", "Register", "Exit"],
        "t": [1, 2, 3, 4, 6, 7, 9, 10, 11, 12],
        "tag": [7, 8, 9, 7, 7, 9, 8, 7, 9, 9],
        "weight": [5, 9, 4, 5, 5, 4, 9, 5, 4, 4],
    }
)
THEFT = kleene.sase("""
    PATTERN SEQ(Shelf+ a[], !(Register r), Exit b)
    WHERE skip_till_next_match(a[], r, b) { [tag] }
    WITHIN 12""")
WEIGHED = kleene.sase("EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [tag] AND b.weight < a.weight WITHIN 5")
FALLS = kleene.match_recognize("""PARTITION BY symbol ORDER BY ts
    MEASURES TOP.price AS top, LAST(DOWN.price) AS bottom
    PATTERN (TOP DOWN{3,} UP+)
    DEFINE DOWN AS DOWN.price < PREV(DOWN.price), UP AS UP.price > PREV(UP.price)""")


def pictures() -> dict[str, kleene.Picture]:
    """By the names of their files."""
    store, prices = THEFT.find(READINGS, order_by="t"), FALLS.find(trades(360, symbols=3))
    return {
        "timeline.svg": store.plot(),
        "values.svg": prices.plot("values", y="price"),
        "values_dark.svg": prices.plot("values", y="price", theme="dark", size=560),
        "near_misses.svg": WEIGHED.plot(READINGS, "near_misses", order_by="t"),
        "automaton.svg": store.plot("automaton"),
        "durations.svg": prices.plot("durations", size=(560, 280)),
        "over_time.svg": prices.plot("over_time", size=(560, 280)),
    }


if __name__ == "__main__":
    for name, picture in pictures().items():
        picture.save(FOLDER / name)

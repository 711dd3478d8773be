"""Ten years of five stocks (vega_datasets): how deep they fell, how long it took to mend, and their double bottoms.

Run it with: python examples/stocks.py. It needs pip install vega_datasets; pictures need pip install 'kleene[plot]'.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from vega_datasets import data

import kleene

FALLS = kleene.match_recognize("""
    PARTITION BY symbol
    ORDER BY date
    MEASURES TOP.date AS since, TOP.price AS price, min(BELOW.price) AS low,
        round(100 * (1 - min(BELOW.price) / TOP.price)) AS percent,
        count(BELOW.*) AS months, NEXT(LAST(BELOW.date)) AS back
    PATTERN (TOP BELOW+)
    DEFINE BELOW AS price < TOP.price
""")
"""From a price down, and until it is reached again; `back` is empty if it never was."""

DOUBLE_BOTTOMS = kleene.match_recognize("""
    PARTITION BY symbol
    ORDER BY date
    MEASURES LOW.date AS first_low, LOW.price AS price, LAST(UP.price) AS peak, LAST(DOWN.date) AS second_low
    AFTER MATCH SKIP TO NEXT ROW
    PATTERN (A LOW UP{2,} DOWN{2,} B)
    DEFINE LOW AS price < PREV(price), UP AS price > PREV(price), DOWN AS price < PREV(price),
        B AS price > PREV(price) AND abs(LAST(DOWN.price) - LOW.price) < 0.05 * LOW.price
""")
"""Two lows that differ by less than 5 %, with a rise and a fall of two months or more between."""


def main(folder: Path | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both questions; prints the answers, returns them, and draws the falls into the folder if there is one."""
    stocks = data.stocks()
    falls = FALLS.match(stocks)
    print(f"{len(stocks)} monthly prices of {stocks['symbol'].nunique()} stocks\n")
    print("The deepest falls:")
    print(falls.nlargest(6, "percent").to_string(index=False), "\n")
    bottoms = DOUBLE_BOTTOMS.match(stocks)
    print(f"{len(bottoms)} double bottoms:")
    print(bottoms.to_string(index=False))
    if folder is not None:
        picture = FALLS.plot(stocks, "values", y="price")
        print(f"\nThe falls are drawn in {picture.save(folder / 'falls.svg')}.")
    return falls, bottoms


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)

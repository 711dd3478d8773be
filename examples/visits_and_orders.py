"""A clickstream and the log of a process, both generated: what was planted in them, and what queries find.

Run it with: python examples/visits_and_orders.py
"""

from __future__ import annotations

import sys

import kleene
from kleene.datasets import clickstream, order_log

VISITS = kleene.match_recognize("""
    PARTITION BY visitor
    ORDER BY ts
    MEASURES FIRST(ts) AS since, count(*) AS clicks,
        bool_or(page = 'cart') AND NOT bool_or(page = 'pay') AS abandoned
    PATTERN (A NEAR*)
    DEFINE NEAR AS ts - PREV(ts) < INTERVAL '30' MINUTE
""")
"""Clicks of a visitor that follow one another within 30 minutes."""

NEVER_SHIPPED = kleene.sase("""
    PATTERN SEQ(Order o, !(Ship s), Pay p)
    WHERE skip_till_next_match(o, s, p) { [order_id] }
    RETURN o.order_id AS order_id, p.ts AS paid
""")
"""Orders that were paid although nothing had been shipped."""

REWORKED = (
    kleene.begin(kleene.begin("check", type="Check").next("fail", type="Fail"))
    .one_or_more()
    .consecutive()
    .next("again", type="Check")
    .after_match("skip_past_last_event")
    .partition_by("order_id")
)
"""Checks that failed, up to one that did not."""


def main(visitors: int = 2_000, orders: int = 2_000) -> bool:
    """All questions; True if each found just what was planted."""
    stream, log = clickstream(visitors), order_log(orders)
    visits = VISITS.match(stream.clicks)
    abandoned = {row["visitor"] for row in visits.to_pylist() if row["abandoned"]}
    never_shipped = set(NEVER_SHIPPED.match(log.events, order_by="ts").column("order_id").to_pylist())
    reworked = set(REWORKED.match(log.events, order_by="ts").column("order_id").to_pylist())
    print(f"{stream.clicks.num_rows:,} clicks of {visitors:,} visitors")
    print(f"{log.events.num_rows:,} events of {orders:,} orders")
    results = {
        "visits": (stream.visits, visits.num_rows),
        "visitors who left a cart": (stream.abandoned, abandoned),
        "orders paid and never shipped": (log.never_shipped, never_shipped),
        "orders checked again": (log.reworked, reworked),
    }
    for name, (planted, found) in results.items():
        size = found if isinstance(found, int) else len(found)
        print(f"  {name}: {size:,} found, {'as planted' if planted == found else 'NOT as planted'}")
    return all(planted == found for planted, found in results.values())


if __name__ == "__main__":
    sys.exit(0 if main() else 1)

"""Four questions of every day, as Kleene asks them and as experts write them by hand for DuckDB and polars.

Each answers with equal rows: `same_rows` compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import kleene

KEYS = 10_000
GAP = 3_000
"""The most time between two events of a session."""
WINDOW = 20_000
"""How far apart the events of one sequence may be."""
KINDS, CHANCES = ["view", "cart", "pay", "help"], [0.90, 0.05, 0.03, 0.02]


def events(rows: int, keys: int = KEYS, has_text_keys: bool = False) -> pa.Table:
    """Events in the order of time: a user, a time, a price and a kind."""
    chance = np.random.default_rng(11)
    users = chance.integers(0, keys, rows)
    kinds = pa.DictionaryArray.from_arrays(chance.choice(4, rows, p=CHANCES).astype(np.int32), KINDS)
    return pa.table(
        {
            "k": pa.array([f"user-{number:06}" for number in range(keys)]).take(users) if has_text_keys else users,
            "t": np.arange(rows, dtype=np.int64),
            "c": chance.random(rows),
            "type": kinds.cast(pa.string()),
        }
    )


@dataclass(frozen=True)
class Question:
    name: str
    kleene: kleene.Query
    duckdb: str
    polars: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None

    def ask_kleene(self, table: pa.Table, threads: int | None = None) -> pa.Table:
        options = kleene.EngineOptions("compiled", **({} if threads is None else {"threads": threads}))
        order = None if "ORDER BY" in repr(self.kleene) else "t"
        found: pa.Table = self.kleene.match(table, order_by=order, engine=options)
        return found

    def ask_duckdb(self, table: pa.Table) -> pa.Table:
        with duckdb.connect() as connection:
            connection.register("events", table)
            return connection.sql(self.duckdb).to_arrow_table()

    def ask_polars(self, table: pa.Table) -> pa.Table:
        assert self.polars is not None
        return self.polars(pl.from_arrow(table).lazy()).collect().to_arrow()  # type: ignore[union-attr]


def polars_falls(frame: pl.LazyFrame) -> pl.LazyFrame:
    falls = (pl.col("c") < pl.col("c").shift(1)).over("k").fill_null(False)
    return (
        frame.select("k", "t", falls.alias("falls"))
        .with_columns((~pl.col("falls")).cast(pl.Int64).cum_sum().over("k").alias("run"))
        .group_by("k", "run")
        .agg(pl.col("t").first().alias("begun"), pl.col("t").last().alias("ended"), pl.len().alias("n"))
        .filter(pl.col("n") >= 5)
        .select("k", "begun", "ended", pl.col("n").cast(pl.Int64))
    )


def polars_sessions(frame: pl.LazyFrame) -> pl.LazyFrame:
    begins = (pl.col("t") - pl.col("t").shift(1) > GAP).over("k").fill_null(True)
    return (
        frame.select("k", "t", begins.alias("begins"))
        .with_columns(pl.col("begins").cast(pl.Int64).cum_sum().over("k").alias("session"))
        .group_by("k", "session")
        .agg(pl.col("t").first().alias("begun"), pl.col("t").last().alias("ended"), pl.len().alias("n"))
        .select("k", "begun", "ended", pl.col("n").cast(pl.Int64))
    )


QUESTIONS = [
    Question(
        "falls",
        kleene.match_recognize("""PARTITION BY k ORDER BY t
            MEASURES FIRST(t) AS begun, LAST(t) AS ended, COUNT(*) AS n
            PATTERN (A B{4,}) DEFINE B AS B.c < PREV(B.c)"""),
        """WITH falling AS (SELECT k, t, c < lag(c) OVER of_user AS falls FROM events
                            WINDOW of_user AS (PARTITION BY k ORDER BY t)),
             runs AS (SELECT k, t, count(*) FILTER (WHERE falls IS NOT TRUE) OVER (PARTITION BY k ORDER BY t) AS run
                      FROM falling)
           SELECT k, min(t) AS begun, max(t) AS ended, count(*) AS n FROM runs GROUP BY k, run HAVING count(*) >= 5""",
        polars_falls,
    ),
    Question(
        "sessions",
        kleene.match_recognize(f"""PARTITION BY k ORDER BY t
            MEASURES FIRST(t) AS begun, LAST(t) AS ended, COUNT(*) AS n
            PATTERN (A B*) DEFINE B AS B.t - PREV(B.t) <= {GAP}"""),
        f"""WITH begun AS (SELECT k, t, t - lag(t) OVER (PARTITION BY k ORDER BY t) <= {GAP} AS goes_on FROM events),
             numbered AS (SELECT k, t, count(*) FILTER (WHERE goes_on IS NOT TRUE) OVER (PARTITION BY k ORDER BY t)
                          AS session FROM begun)
           SELECT k, min(t) AS begun, max(t) AS ended, count(*) AS n FROM numbered GROUP BY k, session""",
        polars_sessions,
    ),
    Question(
        "negation",
        kleene.sase(f"""EVENT SEQ(cart a, !(pay b), help c) WHERE [k] WITHIN {WINDOW}
            RETURN a.k AS k, a.t AS begun, c.t AS ended"""),
        f"""WITH few AS (SELECT k, t, type FROM events WHERE type IN ('cart', 'pay', 'help')),
             paid AS (SELECT k, t, type, max(CASE WHEN type = 'pay' THEN t END) OVER (PARTITION BY k ORDER BY t)
                      AS last_paid FROM few)
           SELECT a.k AS k, a.t AS begun, c.t AS ended FROM paid a JOIN paid c
           ON a.k = c.k AND a.t < c.t AND c.t - a.t <= {WINDOW} AND (c.last_paid IS NULL OR c.last_paid < a.t)
           WHERE a.type = 'cart' AND c.type = 'help'""",
    ),
    Question(
        "next match",
        kleene.sase(f"""PATTERN SEQ(view a, cart b, pay c) WHERE skip_till_next_match(a, b, c) {{ [k] }} WITHIN {WINDOW}
            RETURN a.k AS k, a.t AS begun, b.t AS middle, c.t AS ended"""),
        f"""WITH next_ones AS (SELECT k, t, type,
               min(CASE WHEN type = 'cart' THEN t END) OVER later AS cart,
               min(CASE WHEN type = 'pay' THEN t END) OVER later AS pay FROM events
               WINDOW later AS (PARTITION BY k ORDER BY t ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING))
           SELECT v.k AS k, v.t AS begun, v.cart AS middle, c.pay AS ended
           FROM next_ones v JOIN next_ones c ON c.k = v.k AND c.t = v.cart
           WHERE v.type = 'view' AND c.type = 'cart' AND c.pay - v.t <= {WINDOW}""",
    ),
]


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether both have the same rows, in any order."""
    keys = [(name, "ascending") for name in one.column_names]
    first, second = (table.select(one.column_names).cast(one.schema).sort_by(keys) for table in (one, other))
    return bool(first.equals(second))

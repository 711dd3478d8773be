"""The queries of the benchmark on Spark, each with the events it reads and the columns of them that it uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import kleene
from workloads import RIP, regex_arguments


@dataclass(frozen=True, slots=True)
class Subject:
    """A query, and what a plan written by hand would know about it."""

    name: str
    query: kleene.Query
    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    """What the query uses, the key and the order included."""
    grouped_by: str = ""
    """What the hand-written loop groups by, if there is one."""
    matches: str = ""
    """The columns of its matches, as Spark spells them."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `Query.match`."""
    order: str = "ts"


Q2 = (
    "EVENT SEQ(Shelf x, !(Counter y), Exit z) WHERE [id] WITHIN 12 hours RETURN x.id AS id, x.ts AS shelf, z.ts AS exit"
)
Q3 = """EVENT SEQ({} x1, {} x2, !({} x3), {} x4)
    WHERE [attr1, attr2] AND x1.attr3 = 1 AND x1.attr4 < x4.attr4
    WITHIN {} hours
    RETURN x1.attr1 AS attr1, x1.ts AS a, x2.ts AS b, x4.ts AS d"""
QUERY_1 = """PATTERN SEQ(Shelf a, ~(Counter b), Exit c)
    WHERE skip_till_next_match(a, b, c) { [id] }
    WITHIN 12 hours
    RETURN a.id AS id, a.ts AS shelf, c.ts AS exit"""
QUERY_3 = """PATTERN SEQ(Stock+ a[], Stock b)
    WHERE skip_till_next_match(a[], b)
        { [symbol] AND a[1].size > 1900 AND a[i].price > avg(a[..i-1].price) AND b.size < 80%*a[a.LEN].size }
    WITHIN 5 minutes
    RETURN b.symbol AS symbol, a[1].ts AS first, a.LEN AS count, b.ts AS last"""
SHOULDERS = """{} ORDER BY ts
    MEASURES A.seq AS first, C.price AS left_shoulder, G.price AS head, K.price AS right_shoulder,
        M.price AS reversal, M.seq AS last
    ONE ROW PER MATCH {}
    PATTERN ({}) MAXLENGTH 100
    DEFINE {}"""

TRADE = "symbol string, first long, count long"
ITEM = "id string, shelf timestamp, exit timestamp"
TYPED = "attr1 string, a timestamp, b timestamp, d timestamp"
RUN = "symbol string, first timestamp, count long, last timestamp"
SHOULDER = "symbol string, first long, left_shoulder long, head long, right_shoulder long, reversal long, last long"

NOTES = """Chosen so that there is at most about one match in 20 events: few sizes above 1,000 (finance0); few exits
and many counters (SASE Q2, SASE+ Query 1); a window of 2 hours (SASE Q3); for SASE+ Query 3 a first size above
1,900 and a window of 5 minutes, instead of 1,000 and an hour."""


def head_and_shoulders(clause_of_key: str = "", matches: str = "") -> kleene.Query:
    """RIP's Q1 by the columns of its Query 1; `matches` may be ALL MATCHES."""
    return kleene.match_recognize(SHOULDERS.format(clause_of_key, matches, *RIP["Q1"]))


def _finance(name: str, *more: str) -> Subject:
    query = kleene.regex(**regex_arguments(name))
    return Subject(name, query, "trades", ("symbol",), ("symbol", "ts", "price", "seq", *more), "symbol", TRADE)


def _sase(name: str, text: str, table: str, key: tuple[str, ...], matches: str, *more: str) -> Subject:
    columns = (*key, "ts", *more)
    # Trades have no column that tells a type: all of them are Stock.
    options = {"order_by": "ts", "type_column": "type" if "type" in more else None}
    return Subject(name, kleene.sase(text), table, key, columns, key[0], matches, options)


SUBJECTS = {
    subject.name: subject
    for subject in (
        _finance("finance0", "size"),
        _finance("finance1"),
        _finance("finance2"),
        _finance("finance5"),
        _sase("sase_q2", Q2, "readings", ("id",), ITEM, "type"),
        _sase(
            *("sase_q3", Q3.format(*"ABCD", 2), "four_types", ("attr1", "attr2"), TYPED),
            *("type", "attr3", "attr4"),
        ),
        _sase("sase_plus_query1", QUERY_1, "readings", ("id",), ITEM, "type"),
        _sase("sase_plus_query3", QUERY_3, "trades", ("symbol",), RUN, "price", "size"),
        Subject(
            "head_and_shoulders",
            head_and_shoulders("PARTITION BY symbol"),
            "trades",
            ("symbol",),
            ("symbol", "ts", "price", "seq"),
            "symbol",
            SHOULDER,
        ),
    )
}

SELECTIVE = _sase(
    *("four of 40 types", Q3.format("E1", "E2", "E3", "E4", 24), "many_types", ("attr1", "attr2"), TYPED),
    *("type", "attr3", "attr4"),
)
"""Uses a tenth of the events; a longer window makes up for the types that are rarer."""

ONE_STREAM = Subject("head and shoulders", head_and_shoulders(), "one_stream", (), ("ts", "price", "seq"), order="ts")
ONE_STREAM_ALL = Subject(
    "head and shoulders, all matches", head_and_shoulders("", "ALL MATCHES"), "one_stream", (), ("ts", "price", "seq")
)

"""The queries that the papers measured, as they are written in Kleene. Tests run them small, benchmarks large.

RIP's queries are those of the appendix of the paper of 2013, Q1 to Q12; where the print is garbled, as in Q9's stray
comma and D's condition on B, the obvious repair was made. MatchRegex's are finance0 to finance5, twitter1 and
twitter2 of Table 5 (2012), whose predicates the paper describes in words.
"""

from __future__ import annotations

import re
from typing import Any

_ZIGZAG = """
    {B} AS B.price > PREV(B.price),
    C AS C.price > PREV(C.price),
    {D} AS D.price {falls} PREV(D.price),
    E AS E.price < PREV(E.price) AND E.price > A.price,
    {F} AS F.price > PREV(F.price),
    G AS G.price > PREV(G.price) AND G.price > C.price,
    {H} AS H.price {falls} PREV(H.price),
    I AS I.price < PREV(I.price) AND I.price > A.price,
    {J} AS J.price > PREV(J.price),
    K AS K.price > PREV(K.price) AND K.price < G.price,
    {L} AS L.price {falls} PREV(L.price),
    M AS M.price {falls} PREV(M.price) AND M.price < E.price AND M.price < I.price"""


def _zigzag(falls: str) -> str:
    names = {name: name for name in "BDFHJL"}
    return _ZIGZAG.format(falls=falls, **names).strip()


def _between(names: str, low: int, high: int) -> list[str]:
    return [f"{name} AS {name}.price > {low} AND {name}.price < {high}" for name in names]


_BANDS = ",\n    ".join(
    [
        *_between("BDFHJL", 70, 130),
        *(f"{name} AS {name}.price < 70" for name in "AEIM"),
        *(f"{name} AS {name}.price > 130" for name in "CGK"),
    ]
)
_HILLS = """B AS B.price > PREV(B.price) AND B.price > A.price,
    C AS C.price < PREV(C.price) AND C.price > A.price,
    D AS D.price > PREV(D.price) AND D.price > A.price,
    E AS E.price < PREV(E.price) AND E.price > A.price,
    F AS F.price < A.price"""

# Name to pattern and definitions.
RIP: dict[str, tuple[str, str]] = {
    "Q1": ("A B* C D* E F* G H* I J* K L* M", _zigzag("<=")),
    "Q2": ("A B+ C", "A AS A.price < 70, B AS B.price > 80 AND B.price < 120, C AS C.price > 130"),
    "Q3": ("A B+ C+ D+ E+ F", _HILLS),
    "Q4": (
        "A B* C",
        "A AS A.price < 70, B AS B.price > PREV(B.price) AND B.price > A.price,"
        " C AS C.price > PREV(C.price) AND C.price > 130",
    ),
    "Q5": ("A B C D E F G H I J K L M", _zigzag("<")),
    "Q6": ("A B C D E F", _HILLS),
    "Q7": ("A B C", "A AS A.price < 70, B AS B.price > A.price, C AS C.price < B.price AND C.price < A.price"),
    "Q8": (
        "A B* C+ D+ E+ F",
        "A AS A.price < 80, B AS B.price > 80 AND B.price < 120, C AS C.price < 80,"
        " D AS D.price > 80 AND D.price < 120, E AS E.price > 120, F AS F.price > 130",
    ),
    "Q9": ("A B+ C D+ E F+ G H+ I J+ K L+ M", _BANDS),
    "Q10": (
        "A B C D E F G H I J K L M",
        "D AS D.price < 100, E AS E.price > 100, F AS F.price < 100 AND F.price > 60,"
        " G AS G.price > 100 AND G.price < 140, H AS H.price < 100 AND H.price > 70,"
        " I AS I.price > 100 AND I.price < 130, J AS J.price < 100 AND J.price > 80,"
        " K AS K.price > 100 AND K.price < 120, L AS L.price < 120 AND L.price > 80,"
        " M AS M.price > 80 AND M.price < 120",
    ),
    "Q11": (
        "A B C D E F",
        "A AS A.price < 80, B AS B.price < 90 AND B.price > 60, C AS C.price < 100 AND C.price > 70,"
        " D AS D.price < 110 AND D.price > 80, E AS E.price < 120 AND E.price > 90,"
        " F AS F.price < 130 AND F.price > 100",
    ),
    "Q12": ("A B C", "A AS A.price < 90, B AS B.price > 110, C AS C.price < 90"),
}


def rip_clause(name: str, max_length: int = 20) -> str:
    """The clause of a query of RIP: all matches, of bounded length, over a table with the columns t and price."""
    pattern, definitions = RIP[name]
    return (
        "ORDER BY t MEASURES FIRST(t) AS first, LAST(t) AS last, array_agg(CLASSIFIER()) AS path\n"
        f"ONE ROW PER MATCH ALL MATCHES PATTERN ({pattern}) MAXLENGTH {max_length}\nDEFINE {definitions}"
    )


def same_tags(left: str | None, right: str | None) -> bool:
    """Whether two tweets have the same hash tags."""
    return _tags(left) == _tags(right)


def disjoint_tags(left: str | None, right: str | None) -> bool:
    return not _tags(left) & _tags(right)


def _tags(tweet: str | None) -> set[str]:
    return set(re.findall(r"#\w+", tweet or ""))


_TRADE_OUTPUT = {"symbol": "symbol", "first": "First(seq)", "count": "Count()"}
_TWEET = {"partition_by": "author", "order_by": "ts", "output": {"author": "author", "count": "Count()"}}

# The arguments of kleene.regex. finance3 matches trades beside their volume-weighted average price (column vwap),
# finance4 minutes with the highest and lowest price in them (columns high and low): both are made by Spark first.
MATCH_REGEX: dict[str, dict[str, Any]] = {
    "finance0": {
        "pattern": "largeSize priceRise+ priceDrop",
        "predicates": {
            "largeSize": "size > 1000",
            "priceRise": "price >= Last(price)",
            "priceDrop": "price < Last(price)",
        },
    },
    "finance1": {
        "pattern": ". rise+ drop+ rise+ drop* deep",
        "predicates": {
            "rise": "price > First(price) && price >= Last(price)",
            "drop": "price >= First(price) && price < Last(price)",
            "deep": "price < First(price) && price < Last(price)",
        },
    },
    "finance2": {
        "pattern": ". rise* riseEnd flat* flatEnd",
        "predicates": {
            "rise": "price > Last(price)",
            "riseEnd": "price > Last(price) && price > 1.01 * First(price)",
            "flat": "abs(price - Last(price)) < 0.01 * price && Delta(ts) < 10 minutes",
            "flatEnd": "abs(price - Last(price)) < 0.01 * price && Delta(ts) >= 5 minutes && Delta(ts) < 10 minutes",
        },
    },
    "finance3": {"pattern": "divergence", "predicates": {"divergence": "price > 1.02 * vwap"}},
    "finance4": {
        "pattern": "hi gap* lo",
        "predicates": {"hi": "true", "gap": "low <= Max(high)", "lo": "low > Max(high)"},
        "output": {"symbol": "symbol", "count": "Count()", "high": "First(high)", "low": "low"},
        "order_by": "minute",
    },
    "finance5": {
        "pattern": ". notTooLong* largeIncrease",
        "predicates": {
            "notTooLong": "Delta(ts) < 5 minutes",
            "largeIncrease": "price > 1.03 * First(price) && Delta(ts) < 5 minutes",
        },
    },
    "twitter1": {
        "pattern": ". sameTags+ sameTags5th",
        "predicates": {
            "sameTags": "tagsEq(content, First(content))",
            "sameTags5th": "Count() == 4 && tagsEq(content, First(content))",
        },
        "functions": {"tagsEq": same_tags},
        **_TWEET,
    },
    "twitter2": {
        "pattern": ".+ disjointTags",
        "predicates": {"disjointTags": "tagsDisjoint(content, First(content))"},
        "functions": {"tagsDisjoint": disjoint_tags},
        **_TWEET,
    },
}


def regex_arguments(name: str) -> dict[str, Any]:
    return {"partition_by": "symbol", "order_by": "ts", "output": _TRADE_OUTPUT} | MATCH_REGEX[name]

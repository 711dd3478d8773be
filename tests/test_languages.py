"""The same question in all languages: one query but for options, and one answer."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import kleene
from kleene.ir.compare import QUESTION, differences


def events(seed: int) -> pa.Table:
    chance = random.Random(seed)
    count = 60
    return pa.table(
        {
            "t": list(range(count)),
            "k": [chance.choice("pqr") for _ in range(count)],
            "x": [chance.randrange(6) for _ in range(count)],
        }
    )


# Each question in SASE+ and as a row pattern with ALL MATCHES, both returning the times of the events.
ALL_MATCHES = {
    "a rise": (
        "PATTERN SEQ(E a, E b) WHERE partition_contiguity(a, b) { [k] AND b.x > a.x } RETURN a.t AS first, b.t AS last",
        "PARTITION BY k ORDER BY t MEASURES A.t AS first, B.t AS last ALL MATCHES PATTERN (A B) DEFINE B AS B.x > A.x",
    ),
    "a rise from little in a window of events": (
        "PATTERN SEQ(E a, E b, E c) WHERE partition_contiguity(a, b, c) { [k] AND a.x < 2 AND c.x > a.x }"
        " WITHIN 3 events RETURN a.t AS first, c.t AS last",
        "PARTITION BY k ORDER BY t MEASURES A.t AS first, C.t AS last ALL MATCHES PATTERN (A B C) WITHIN 3 ROWS"
        " DEFINE A AS A.x < 2, C AS C.x > A.x",
    ),
    "large ones, as many as there are, then a small one": (
        "PATTERN SEQ(E+ a[], E b) WHERE partition_contiguity(a[], b) { [k] AND a.x > 2 AND b.x < 2 }"
        " RETURN a[1].t AS first, b.t AS last",
        "PARTITION BY k ORDER BY t MEASURES FIRST(A.t) AS first, B.t AS last ALL MATCHES PATTERN (A+ B)"
        " DEFINE A AS A.x > 2, B AS B.x < 2",
    ),
    "a window of time": (
        "PATTERN SEQ(E a, E b) WHERE partition_contiguity(a, b) { [k] } WITHIN 4 RETURN a.t AS first, b.t AS last",
        "PARTITION BY k ORDER BY t MEASURES A.t AS first, B.t AS last ALL MATCHES PATTERN (A B) WITHIN 4",
    ),
}


@pytest.mark.parametrize(("sase", "clause"), ALL_MATCHES.values(), ids=ALL_MATCHES)
def test_sase_plus_and_all_matches_ask_one_question_and_get_one_answer(sase: str, clause: str) -> None:
    left, right = kleene.sase(sase), kleene.match_recognize(clause)
    assert not differences(left.definition, right.definition) & set(QUESTION)
    assert differences(left.definition, right.definition) <= {"selection", "order_by", "measures"}
    for seed in range(5):
        table = events(seed)
        found = left.match(table, order_by="t").to_pylist()
        expected = [{"first": row["first"], "last": row["last"]} for row in right.match(table).to_pylist()]
        assert sorted(map(str, found)) == sorted(map(str, expected))
        assert expected


def test_different_questions_differ_in_what_is_asked() -> None:
    one = kleene.sase("PATTERN SEQ(E a, E b) WHERE partition_contiguity(a, b) { [k] AND b.x > a.x }")
    other = kleene.match_recognize("PARTITION BY k ORDER BY t PATTERN (A B+) DEFINE B AS B.x >= A.x")
    assert {"pattern", "conditions"} <= differences(one.definition, other.definition)


# A question that all three languages can ask: non-greedy, contiguous, from nothing after each match.
THREE = {
    "two neighbours that rise": (
        "PATTERN SEQ(E a, E b) WHERE partition_contiguity(a, b) { [k] AND b.x > a.x } RETURN a.t AS first, b.t AS last",
        "PARTITION BY k ORDER BY t MEASURES A.t AS first, B.t AS last PATTERN (A B) DEFINE B AS B.x > A.x",
        {"pattern": ". rise", "predicates": {"rise": "x > First(x)"}},
    ),
    "a small one, then large ones up to a larger": (
        "PATTERN SEQ(E a, E+ b[], E c) WHERE partition_contiguity(a, b[], c) "
        "{ [k] AND a.x = 0 AND b.x BETWEEN 1 AND 3 AND c.x > 3 } RETURN a.t AS first, c.t AS last",
        "PARTITION BY k ORDER BY t MEASURES A.t AS first, C.t AS last PATTERN (A B+ C)"
        " DEFINE A AS A.x = 0, B AS B.x BETWEEN 1 AND 3, C AS C.x > 3",
        {"pattern": "a b+ c", "predicates": {"a": "x = 0", "b": "x BETWEEN 1 AND 3", "c": "x > 3"}},
    ),
}


@pytest.mark.parametrize(("sase", "clause", "regex"), THREE.values(), ids=THREE)
def test_three_languages_give_one_answer(sase: str, clause: str, regex: dict) -> None:
    by_regex = kleene.regex(**regex, partition_by="k", order_by="t", output={"first": "First(t)", "last": "Last(t)"})
    total = 0
    for seed in range(8):
        table = events(seed)
        answers = [
            kleene.sase(sase).match(table, order_by="t", format="non_overlapping"),
            kleene.match_recognize(clause).match(table).select(["first", "last"]),
            by_regex.match(table),
        ]
        rows = [sorted(map(str, answer.to_pylist())) for answer in answers]
        assert rows[0] == rows[1] == rows[2]
        total += len(rows[0])
    assert total

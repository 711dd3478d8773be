"""Compressed output piece by piece: expanded, it is the matches of the whole."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import kleene
from strategies import event_table, queries_with_events, some_examples

EXAMPLES = some_examples(queries_with_events(format="all"), lambda _: True, 30, 5)


def structures(query: kleene.Query, table: pa.Table, chance: Random, options: dict[str, Any]) -> list[dict[str, Any]]:
    progress, rows, at = query.progress(table, compressed=True, **options), [], 0
    while at < table.num_rows:
        size = chance.randint(1, 4)
        rows += progress.feed(table.slice(at, size)).to_pylist()
        at += size
        if chance.random() < 0.5:
            progress = query.progress(table, compressed=True, snapshot=progress.snapshot(), **options)
    return rows + progress.finish().to_pylist()


def expanded(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(match) for row in rows for match in kleene.expand(row["structure"]).to_pylist())


@pytest.mark.parametrize("algorithm", ["merge", "basic"])
def test_pieces_expand_to_the_matches_of_the_whole(algorithm: str) -> None:
    compared = 0
    for number, (said, events) in enumerate(EXAMPLES):
        query, table = kleene.sase(str(said)), event_table(events).sort_by([("t", "ascending"), ("n", "ascending")])
        options: dict[str, Any] = {"order_by": "t", "tie_break": "n"}
        options["engine"] = kleene.EngineOptions("generated", algorithm=algorithm)
        try:
            whole = query.compressed(table, **options).to_table().to_pylist()
            rows = structures(query, table, Random(number), options)
        except kleene.UnsupportedError:
            continue
        counted = [(row["match_end"], row["match_count"]) for row in rows]
        assert sorted(counted) == sorted((row["match_end"], row["match_count"]) for row in whole), str(said)
        matches = query.match(table, order_by="t", tie_break="n", engine="reference").to_pylist()
        assert expanded(rows) == Counter(map(repr, matches)), str(said)
        compared += bool(matches)
    assert compared > 5


def test_a_piece_has_a_row_for_each_event_that_completes_matches() -> None:
    table = pa.table({"type": ["A", "A", "B", "A", "B"], "t": [1, 2, 3, 4, 5]})
    progress = kleene.sase("PATTERN SEQ(A+ a[], B b) WITHIN 10").progress(table, order_by="t", compressed=True)
    found = [progress.feed(table.slice(at, 2)).to_pylist() for at in (0, 2, 4)]
    assert [[(row["match_end"], row["match_count"]) for row in rows] for rows in found] == [[], [(3, "3")], [(5, "7")]]


def test_a_negation_in_last_place_is_refused() -> None:
    query, table = kleene.sase("PATTERN SEQ(A a, B b, !(C c)) WITHIN 5"), pa.table({"type": ["A"], "t": [1]})
    assert len(query.compressed(table, order_by="t")) == 0
    with pytest.raises(kleene.UnsupportedError, match="become certain one after the other"):
        query.progress(table, order_by="t", compressed=True)


def test_what_has_no_match_buffer_is_refused() -> None:
    table = pa.table({"type": ["A"], "t": [1]})
    with pytest.raises(kleene.UnsupportedError, match="compressed output is for SASE queries"):
        kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A)").progress(table, compressed=True)
    options = kleene.EngineOptions(algorithm="backtrack")
    with pytest.raises(kleene.UnsupportedError, match="the backtrack algorithm"):
        kleene.sase("PATTERN SEQ(A+ a[], B b)").progress(table, order_by="t", compressed=True, engine=options)
    nothing = kleene.sase("PATTERN SEQ(A a, B b) WHERE a.t > 5 AND a.t < 3").progress(
        table, order_by="t", compressed=True
    )
    assert nothing.feed(table).num_rows == nothing.finish().num_rows == 0

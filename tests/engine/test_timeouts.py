"""Runs that left their window incomplete: cases, pieces cut at random, and a brute force that knows nothing of runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, product
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import kleene
from case_files import Case, check_rows_of_any_order, load, run_case
from flat_options import arguments
from row_strategies import random_row_case
from strategies import event_table, queries_with_events, some_examples

CASES = load("timeouts.toml")


@pytest.mark.parametrize("engine", ["reference", "generated"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_of_a_whole_table(case: Case, engine: str) -> None:
    check_rows_of_any_order(case, run_case(case, engine=engine).to_pylist())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_piece_by_piece(case: Case) -> None:
    options = arguments(case.options | {"engine": "generated"})
    for seed in range(2):
        rows = in_pieces(kleene.sase(case.query), case.inputs, Random(seed), options)
        check_rows_of_any_order(case, rows)


def in_pieces(query: kleene.Query, table: Any, chance: Random, options: dict[str, Any]) -> list[dict[str, Any]]:
    """What comes of pieces cut at random; now and then, what goes on is a snapshot."""
    progress, rows, at = query.progress(table, **options), [], 0
    while at < table.num_rows:
        size = chance.randint(1, 5)
        rows += progress.feed(table.slice(at, size)).to_pylist()
        at += size
        if chance.random() < 0.5:
            progress = query.progress(table, snapshot=progress.snapshot(), **options)
    return rows + progress.finish().to_pylist()


def is_in_time(example: tuple[Any, Any]) -> bool:
    query = example[0]
    return query.window is not None and not str(query.window).endswith("events")


@pytest.mark.parametrize("seed", [1])
def test_pieces_of_generated_queries_give_what_the_whole_gives(seed: int) -> None:
    compared = 0
    for said, events in some_examples(queries_with_events(format="all"), is_in_time, 30, seed):
        far = [{**events[0], "type": "Z", "t": 1_000}] if events else []  # by then all windows have passed
        query, table = (
            kleene.sase(str(said)),
            event_table([*events, *far]).sort_by([("t", "ascending"), ("n", "ascending")]),
        )
        options: dict[str, Any] = {"order_by": "t", "tie_break": "n", "timeouts": True, "engine": "generated"}
        try:
            found = in_pieces(query, table, Random(seed), options)
        except kleene.UnsupportedError:
            continue
        whole = query.match(table, **options).to_pylist()
        assert sorted(map(repr, found)) == sorted(map(repr, whole)), str(said)
        matches = query.match(table, **{**options, "timeouts": False}).to_pylist()
        given = [row for row in whole if not row["timed_out"]]
        assert repr(given) == repr([{**row, "timed_out": False} for row in matches])
        compared += any(row["timed_out"] for row in whole)
    assert compared


# --- SASE by brute force: every choice of events, and what a strategy leaves of them

TYPES = "ABCX"


def any_match(events: list[tuple[str, int, int]], size: int) -> Iterator[tuple[Any, ...]]:
    """SEQ(A a, B+ b[], C c), b[i].x > a.x: each choice for a, or for a and b, is a run that ignored all others."""
    end = events[-1][1]
    for first, (kind, time, x) in enumerate(events):
        if kind != "A" or time + size > end:
            continue
        yield time, None, None
        inside = [n for n in range(first + 1, len(events)) if events[n][1] < time + size]
        fitting = [n for n in inside if events[n][0] == "B" and events[n][2] > x]
        for count in range(1, len(fitting) + 1):
            for chosen in combinations(fitting, count):
                yield time, [events[n][1] for n in chosen], None


def next_match(events: list[tuple[str, int, int]], size: int) -> Iterator[tuple[Any, ...]]:
    """SEQ(A a, B b, C c), b.x > a.x: a run takes the first event that fits, and there is one run for an A."""
    end = events[-1][1]
    for first, (kind, time, x) in enumerate(events):
        if kind != "A" or time + size > end:
            continue
        bound: list[int] = []
        for other, at, value in events[first + 1 :]:
            if at < time + size and ((not bound and other == "B" and value > x) or (len(bound) == 1 and other == "C")):
                bound.append(at)
        if len(bound) < 2:
            yield (time, *bound, *[None] * (2 - len(bound)))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (any_match, "SEQ(A a, B+ b[], C c) WHERE b.x > a.x WITHIN 7 RETURN a.t AS a, collect(b[].t) AS b, c.t AS c"),
        (
            next_match,
            "SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { b.x > a.x } WITHIN 7 "
            "RETURN a.t AS a, b.t AS b, c.t AS c",
        ),
    ],
    ids=["any", "next"],
)
def test_timeouts_are_those_of_a_brute_force(expected: Any, text: str, seed: int) -> None:
    chance, time = Random(seed), 0
    events: list[tuple[str, int, int]] = []
    for _ in range(18):
        time += chance.randint(0, 3)
        events.append((chance.choice(TYPES), time, chance.randint(0, 4)))
    table = pa.table(dict(zip(("type", "t", "x"), map(list, zip(*events, strict=True)), strict=True)))
    options: dict[str, Any] = {"order_by": "t", "timeouts": True, "engine": "generated"}
    query = kleene.sase(f"PATTERN {text}")
    for rows in (query.match(table, **options).to_pylist(), in_pieces(query, table, chance, options)):
        found = [tuple(row.values())[:3] for row in rows if row["timed_out"]]
        assert sorted(map(repr, found)) == sorted(map(repr, expected(events, 7)))


# --- row patterns by brute force: the types of rows as a text, and Python's own regular expressions

PATTERNS = {"A B+ C": "AB+C", "A (B | C)* D": "A(B|C)*D", "A{2} B? C": "A{2}B?C", "A B*? D": "AB*?D"}


def starts_out_of_time(word: str, times: list[int], size: int, pattern: str, skips: bool) -> list[tuple[int, int]]:
    """First and last time of each start whose window the pattern fills and could go on from."""
    found, start = [], 0
    while start < len(word):
        end = next((n for n in range(start, len(word)) if times[n] >= times[start] + size), len(word))
        inside = word[start:end]
        match = re.match(pattern, inside)
        if match:
            start = start + match.end() if skips else start + 1
            continue
        longer = (inside + "".join(more) for count in (1, 2, 3) for more in product("ABCD", repeat=count))
        if times[start] + size <= times[-1] and any(re.fullmatch(pattern, way) for way in longer):
            found.append((times[start], times[end - 1]))
        start += 1
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("skip", ["PAST LAST ROW", "TO NEXT ROW"])
def test_starts_out_of_time_are_those_of_a_brute_force(pattern: str, skip: str, seed: int) -> None:
    chance, times = Random(seed), [0]
    word = "".join(chance.choice("AABBBCD") for _ in range(24))
    while len(times) < len(word):
        times.append(times[-1] + chance.randint(0, 3))
    query = kleene.match_recognize(
        f"""ORDER BY t MEASURES FIRST(t) AS first, LAST(t) AS last, MATCH_NUMBER() AS n AFTER MATCH SKIP {skip}
        PATTERN ({pattern}) WITHIN 4
        DEFINE {", ".join(f"{name} AS k = '{name}'" for name in "ABCD" if name in pattern)}"""
    )
    table = pa.table({"k": list(word), "t": times})
    expected = starts_out_of_time(word, times, 4, PATTERNS[pattern], skip.startswith("PAST"))
    options: dict[str, Any] = {"timeouts": True, "engine": "generated"}
    for rows in (query.match(table, **options).to_pylist(), in_pieces(query, table, chance, options)):
        found = [(row["first"], row["last"]) for row in rows if row["timed_out"]]
        assert sorted(found) == sorted(expected)
        assert all((row["n"] is None) == row["timed_out"] for row in rows)


def with_window(clause: str) -> str:
    """The clause, with one row per match, within a number of the column t."""
    clause = re.sub(r"ORDER BY .*", "ORDER BY t", re.sub(r"ALL ROWS PER .*", "ONE ROW PER MATCH", clause))
    clause = re.sub(r"^(WITHIN|MAXLENGTH) .*\n?", "", clause, flags=re.MULTILINE)
    clause = re.sub(r"^MEASURES", "MEASURES count(*) AS m,", clause, flags=re.MULTILINE)
    before, define, after = clause.partition("DEFINE")
    return f"{before.rstrip()}\nWITHIN 4\n{define}{after}"


@pytest.mark.parametrize("seed", range(2))
def test_pieces_of_generated_row_patterns_give_what_the_whole_gives(seed: int) -> None:
    chance, compared = Random(seed), 0
    for _ in range(45):
        clause, table = random_row_case(chance)
        clause, table = with_window(clause), table.sort_by("t")
        options: dict[str, Any] = {"timeouts": True, "engine": "generated"}
        try:
            query = kleene.match_recognize(clause)
            whole = query.match(table, **options).to_pylist()
            found = in_pieces(query, table, chance, options)
        except (kleene.KleeneError, OverflowError):  # Python has no lengths of time of a million years
            continue
        assert sorted(map(repr, found)) == sorted(map(repr, whole)), clause
        compared += any(row["timed_out"] for row in whole)
    assert compared > 5


def test_every_classification_is_given_where_all_matches_are() -> None:
    query = kleene.match_recognize(
        """ORDER BY t MEASURES COUNT(A.t) AS a, COUNT(B.t) AS b ALL MATCHES
        PATTERN (S (A | B)+ E) WITHIN 3 DEFINE S AS k = 's', E AS k = 'e'"""
    )
    table = pa.table({"k": ["s", "x", "x", "x"], "t": [0, 1, 2, 9]})
    rows = [tuple(row.values()) for row in query.match(table, timeouts=True).to_pylist()]
    assert sorted(rows) == [(0, 2, True), (1, 1, True), (1, 1, True), (2, 0, True)]


def test_a_way_that_has_its_most_rows_is_not_out_of_time() -> None:
    clause = "ORDER BY t MEASURES A.t AS a PATTERN (A B C) WITHIN 5 MAXLENGTH {most} DEFINE C AS FALSE"
    table = pa.table({"t": [0, 1, 20]})
    counts = []
    for most in (3, 2):
        counts.append(kleene.match_recognize(clause.format(most=most)).match(table, timeouts=True).num_rows)
    assert counts == [2, 1]  # with two rows the first start has all that it may have; the second has one


def test_conditions_that_look_ahead_wait_for_the_rows_they_see() -> None:
    query = kleene.match_recognize(
        "ORDER BY t MEASURES A.t AS a, LAST(B.t) AS b PATTERN (A B+ C) WITHIN 4 "
        "DEFINE B AS NEXT(B.x, 2) > 0, C AS C.x = 9"
    )
    table = pa.table({"t": [0, 1, 2, 5, 6, 7, 30], "x": [1, 1, 1, 0, 1, 1, 1]})
    whole = query.match(table, timeouts=True).to_pylist()
    for seed in range(6):
        found = in_pieces(query, table, Random(seed), {"timeouts": True, "engine": "generated"})
        assert sorted(map(repr, found)) == sorted(map(repr, whole))


# --- what is given out, and what is refused

EVENTS = pa.table({"type": ["A", "B", "X"], "t": [1, 2, 30], "id": [7, 7, 7]})


def test_batches_pandas_and_ids_have_the_mark() -> None:
    query = kleene.sase("EVENT SEQ(A a, B b, C c) WHERE [id] WITHIN 5")
    options: dict[str, Any] = {"order_by": "t", "timeouts": True, "match_id": True}
    whole = query.match(EVENTS, **options)
    assert whole.column_names == ["id", "a", "b", "c", "match_start", "match_end", "timed_out", "match_id"]
    assert len(set(whole["match_id"].to_pylist())) == whole.num_rows == 2
    assert query.match_batches(EVENTS, **options).read_all().equals(whole)
    assert query.match(EVENTS.to_pandas(), **options)["timed_out"].tolist() == [True, True]


def test_whole_events_that_are_not_bound_are_null() -> None:
    query = kleene.sase(
        "PATTERN SEQ(A a, B+ b[], C c) WITHIN 5 RETURN a, b, c, count(b[]) AS n, b.LEN AS long, c.t + 1 AS x"
    )
    [row, *_] = query.match(EVENTS, order_by="t", timeouts=True).to_pylist()
    assert row == {
        "a": {"type": "A", "t": 1, "id": 7},
        "b": None,
        "c": None,
        "n": 0,
        "long": 0,
        "x": None,
        "timed_out": True,
    }


def test_a_query_that_nothing_can_match_has_timeouts() -> None:
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE b.id > 5 AND b.id < 3 WITHIN 5 RETURN a.t AS a")
    assert query.match(EVENTS, order_by="t", timeouts=True).to_pylist() == [{"a": 1, "timed_out": True}]


def test_equalities_do_not_split_runs_that_are_not_complete() -> None:
    text = "EVENT SEQ(A a, B b, C c) WHERE a.id = c.id AND b.id = c.id WITHIN 5 RETURN a.id AS a, b.id AS b"
    events = pa.table({"type": ["A", "B", "X"], "t": [1, 2, 30], "id": [7, 8, 7]})
    assert "one stream" in kleene.sase(text).explain(events, order_by="t", timeouts=True)
    rows = kleene.sase(text).match(events, order_by="t", timeouts=True).to_pylist()
    assert {"a": 7, "b": 8, "timed_out": True} in rows


def test_limits_hold_for_timeouts() -> None:
    query = kleene.sase("EVENT SEQ(A a, B b) WITHIN 5")
    events = pa.table({"type": ["A"] * 10 + ["X"], "t": [*range(10), 99]})
    with pytest.raises(kleene.LimitError, match="match limit of 3"):
        query.match(events, order_by="t", timeouts=True, engine=kleene.EngineOptions(match_limit=3))


ROWS = "ORDER BY t MEASURES A.t AS a {rows} PATTERN (A B) {within} DEFINE B AS FALSE"
REFUSED = [
    (kleene.sase("EVENT SEQ(A a, B b)"), "no WITHIN in time", "WITHIN 12 hours", None),
    (kleene.sase("EVENT SEQ(A a, B b) WITHIN 5 events"), "the window counts events", "a length of time", 28),
    (kleene.match_recognize(ROWS.format(rows="", within="")), "no WITHIN in time", "WITHIN INTERVAL", None),
    (kleene.match_recognize(ROWS.format(rows="", within="WITHIN 3 ROWS")), "the window counts rows", "INTERVAL", 45),
    (
        kleene.match_recognize(ROWS.format(rows="ALL ROWS PER MATCH", within="WITHIN 3")),
        "many starts that are out of time",
        "ONE ROW PER MATCH",
        None,
    ),
    (
        kleene.regex(pattern="a b", order_by="t", predicates={"a": "t > 0", "b": "t > 0"}, output={"n": "Count()"}),
        "the regular-expression operator has no window",
        "Leave timeouts out",
        None,
    ),
    (
        kleene.pattern_window(
            "ORDER BY t MEASURES A.t AS a ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING "
            "PATTERN (A B) DEFINE B AS FALSE"
        ),
        "each row of the input once",
        "MATCH_RECOGNIZE",
        None,
    ),
    (
        kleene.sase("EVENT SEQ(A a, B b) WITHIN 5 RETURN a.t AS timed_out"),
        "the column that marks timeouts",
        "Choose another name",
        44,
    ),
]


@pytest.mark.parametrize(
    ("query", "says", "hint", "column"), REFUSED, ids=lambda own: own if isinstance(own, str) else ""
)
def test_where_nothing_can_run_out_of_time_is_an_error(
    query: kleene.Query, says: str, hint: str, column: int | None
) -> None:
    is_sase = "EVENT" in repr(query) or "SEQ" in repr(query)
    with pytest.raises(kleene.UnsupportedError) as caught:
        query.match(EVENTS, timeouts=True, **({"order_by": "t"} if is_sase else {}))
    assert says in caught.value.message
    assert hint in str(caught.value.hint)
    assert caught.value.column == column


def test_a_column_of_the_marks_name_is_an_error() -> None:
    events = pa.table({"type": ["A"], "t": [1], "timed_out": [1]})
    with pytest.raises(kleene.SchemaError, match="the result has another of that name"):
        kleene.sase("EVENT SEQ(A a, B b) WHERE [timed_out] WITHIN 5").match(events, order_by="t", timeouts=True)


def test_timeouts_of_compressed_output_and_of_totals_are_errors() -> None:
    query = kleene.sase("EVENT SEQ(A a, B b) WITHIN 5")
    with pytest.raises(kleene.UnsupportedError, match="compressed output holds matches only"):
        query.progress(EVENTS, order_by="t", timeouts=True, compressed=True)
    with pytest.raises(kleene.UnsupportedError, match="aggregates add up matches only"):
        query.progress(EVENTS, order_by="t", timeouts=True, aggregates={"n": "count(*)"})
    with pytest.raises(kleene.UnsupportedError, match="timeouts is True or False"):
        query.match(EVENTS, order_by="t", timeouts=1)


def test_pieces_cannot_tell_what_the_beginning_of_a_partition_decides() -> None:
    clause = "ORDER BY t MEASURES A.t AS a PATTERN ({start} A B) WITHIN 5 DEFINE B AS {condition}"
    for start, condition, says in (("^", "FALSE", "`^`"), ("", "MATCH_NUMBER() > 3", "MATCH_NUMBER")):
        query = kleene.match_recognize(clause.format(start=start, condition=condition))
        assert query.match(pa.table({"t": [1, 9]}), timeouts=True).num_rows
        with pytest.raises(kleene.UnsupportedError, match=re.escape(says)):
            query.progress(EVENTS, timeouts=True)

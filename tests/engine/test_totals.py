"""Aggregates over all matches, by one walk over their graph, compared with making every match."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import kleene
from strategies import event_table, queries_with_events, some_examples
from totals_oracle import aggregated, last_event, matches_of, same

VALUES: dict[str, Any] = {
    "{v}": lambda event: event,
    "{v}.x": lambda event: event["x"],
    "{v}.y": lambda event: event["y"],
    "{v}.s": lambda event: event["s"],
    "{v}.x * {v}.t": lambda event: None if event["x"] is None else event["x"] * event["t"],
}
ASKED = [
    *(("count", text) for text in VALUES),
    *((function, text) for function in ("min", "max") for text in ("{v}.x", "{v}.y", "{v}.s", "{v}.x * {v}.t")),
    *((function, text) for function in ("sum", "avg") for text in ("{v}.x", "{v}.y", "{v}.x * {v}.t")),
]
EXAMPLES = some_examples(queries_with_events(format="all", all_named=True), lambda _: True, 64, 11)


Asked = dict[str, tuple[str, str, str]]


def asked_of(variables: list[str], chance: random.Random) -> Asked:
    """A few aggregates by name: function, value and variable."""
    drawn = [(*chance.choice(ASKED), chance.choice(variables)) for _ in range(5)]
    return {f"x{number}": own for number, own in enumerate(drawn)}


def texts_of(asked: Asked) -> dict[str, str]:
    texts = {name: f"{function}({text.format(v=variable)})" for name, (function, text, variable) in asked.items()}
    return {"matches": "count(*)", **texts}


def expected(asked: Asked, matches: list[Any]) -> dict[str, Any]:
    values = {
        name: aggregated(function, VALUES[text], variable, matches)
        for name, (function, text, variable) in asked.items()
    }
    return {"matches": str(len(matches)), **values}


def assert_same(found: list[dict[str, Any]], wanted: list[dict[str, Any]], names: list[str]) -> None:
    assert len(found) == len(wanted)
    for own, other in zip(found, wanted, strict=True):
        assert {name for name in names if not same(own[name], other[name])} == set()


@pytest.mark.parametrize("engine", ["generated", "reference"])
def test_all_matches_added_up_are_the_aggregates(engine: str) -> None:
    for query, events in EXAMPLES:
        check(query, events, kleene.EngineOptions(engine))


def check(said: Any, events: list[dict[str, Any]], engine: kleene.EngineOptions) -> None:
    query, table = kleene.sase(str(said)), event_table(events)
    variables = [component.variable for component in said.positives]
    asked = asked_of(variables, random.Random(str(said)))
    texts = texts_of(asked)
    try:
        rows = query.match(table, order_by="t", engine="reference").to_pylist()
    except kleene.ExecutionError as error:
        with pytest.raises(kleene.ExecutionError) as caught:
            query.aggregate(table, texts, order_by="t", engine=engine)
        assert caught.value.message == error.message
        return
    matches = matches_of(rows, variables)

    def grouped(key: Any) -> list[dict[str, Any]]:
        ordered = sorted(matches, key=lambda match: (last_event(match)["t"], last_event(match)["n"]))
        groups: dict[Any, list[Any]] = {}
        for match in ordered:
            groups.setdefault(key(last_event(match)), []).append(match)
        return [expected(asked, own) for own in groups.values()]

    def found(per: Any) -> list[dict[str, Any]]:
        return list(query.aggregate(table, texts, per=per, order_by="t", engine=engine).to_pylist())

    names = list(texts)
    assert_same(found(None), [expected(asked, matches)], names)
    assert_same(found("event"), grouped(lambda event: event["n"]), names)
    assert_same(found(3), grouped(lambda event: event["t"] // 3), names)
    keys = [key.name for key in said.keys]

    def key_of(event: dict[str, Any]) -> str:
        return str([event[key] for key in keys])

    assert_same(found("partition"), grouped(key_of), names)
    assert_same(found(["partition", 3]), grouped(lambda event: (event["t"] // 3, key_of(event))), names)


# --- larger graphs ---

QUERIES = (
    "PATTERN SEQ(A+ a[], B b)",
    "PATTERN SEQ(A+ a[], B+ b[]) WITHIN 5",
    "PATTERN SEQ(A a, B+ b[], A c) WHERE b[i].x >= b[i-1].x WITHIN 6",
    "PATTERN SEQ(A+ a[], B b) WHERE a[1].x = b.x AND [id] WITHIN 7 events",
    "PATTERN SEQ(ANY(A, B)+ a[]) WHERE skip_till_next_match(a[]) { a[i].x != a[i-1].x } WITHIN 4",
    "PATTERN SEQ(A a, A b, B c) WITHIN 3",
    "PATTERN SEQ(A+ a[], !(C n), B b) WHERE b.x > avg(a[].x) WITHIN 6",
)


def random_events(chance: random.Random, count: int = 12) -> pa.Table:
    times = sorted(chance.randint(0, 9) for _ in range(count))
    columns = {
        "type": [chance.choice("AAABBBC") for _ in times],
        "t": times,
        "id": [chance.randint(1, 2) for _ in times],
        "x": [chance.choice([1, 2, 3, -1, None]) for _ in times],
        "y": [chance.choice([0.1, 0.2, 1e16, -3.5, None]) for _ in times],
        "s": [chance.choice(["p", "q", None]) for _ in times],
        "n": list(range(count)),
    }
    return pa.table(columns)


@pytest.mark.parametrize("engine", ["generated", "compiled"])
@pytest.mark.parametrize("text", QUERIES)
def test_graphs_of_many_matches(text: str, engine: str) -> None:
    chance, query = random.Random(text), kleene.sase(text)
    variables = [name for name in "abc" if f" {name}[]" in text or f" {name}," in text or f" {name})" in text]
    for _ in range(6):
        table, asked = random_events(chance), asked_of(variables, chance)
        rows = query.match(table, order_by="t", engine="reference").to_pylist()
        groups: dict[int, list[Any]] = {}
        for match in matches_of(rows, variables):
            groups.setdefault(last_event(match)["n"], []).append(match)
        found = query.aggregate(table, texts_of(asked), per="event", order_by="t", engine=engine).to_pylist()
        assert_same(found, [expected(asked, groups[n]) for n in sorted(groups)], list(texts_of(asked)))


# --- piece by piece ---


@pytest.mark.parametrize("per", [None, "event", "partition", 3, ["partition", 3]], ids=str)
@pytest.mark.parametrize("text", QUERIES[1:6])
def test_pieces_add_up_to_the_whole(text: str, per: Any) -> None:
    chance, query = random.Random(text), kleene.sase(text)
    options: dict[str, Any] = {"per": per, "order_by": "t", "engine": "generated"}
    asked = {"n": "count(*)", "sum": "sum(a.x)", "mean": "avg(a.y)", "least": "min(a.s)", "most": "max(a.t)"}
    for _ in range(3):
        table = random_events(chance, 16)
        whole = query.aggregate(table, asked, **options).to_pylist()
        progress, rows, at = query.progress(table, aggregates=asked, **options), [], 0
        while at < table.num_rows:
            size = chance.randint(1, 6)
            rows += progress.feed(table.slice(at, size)).to_pylist()
            at += size
            if chance.random() < 0.5:
                progress = query.progress(table, aggregates=asked, snapshot=progress.snapshot(), **options)
        rows += progress.finish().to_pylist()
        assert sorted(map(repr, rows)) == sorted(map(repr, whole))


def test_a_window_of_time_comes_once_time_has_passed_it() -> None:
    events = pa.table({"type": ["A", "B", "B", "B"], "t": [1, 2, 9, 10]})
    query = kleene.sase("PATTERN SEQ(A a, B b) WITHIN 20")
    progress = query.progress(events, aggregates={"n": "count(*)"}, per=10, order_by="t")
    assert progress.feed(events.slice(0, 3)).num_rows == 0
    assert progress.feed(events.slice(3)).to_pylist() == [{"window_start": 0, "window_end": 10, "n": "2"}]
    assert progress.finish().to_pylist() == [{"window_start": 10, "window_end": 20, "n": "1"}]


def test_pieces_of_a_query_whose_matches_must_be_made_are_refused() -> None:
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) WITHIN 5 HAVING count(a[]) > 1")
    with pytest.raises(kleene.UnsupportedError, match="since HAVING"):
        query.progress(pa.table({"type": ["A"], "t": [1]}), aggregates={"n": "count(*)"}, order_by="t")

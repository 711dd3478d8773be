"""Aggregates over all matches, by one walk over their graph, compared with making every match."""

from __future__ import annotations

import random
import tomllib
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import kleene
from all_matches import CONTAMINATION
from case_files import FOLDER, read_table, shown_value
from strategies import event_table, queries_with_events, some_examples
from streams import contaminated_ways, contamination
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
    rows = query.match(table, order_by="t", engine="reference").to_pylist()
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


@pytest.mark.parametrize(("text", "engine"), [*((text, "generated") for text in QUERIES), (QUERIES[1], "compiled")])
def test_graphs_of_many_matches(text: str, engine: str) -> None:
    chance, query = random.Random(text), kleene.sase(text)
    variables = [name for name in "abc" if f" {name}[]" in text or f" {name}," in text or f" {name})" in text]
    for _ in range(6 if engine == "generated" else 40):
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
    progress = query.progress(events, aggregates={"n": "count(*)"}, per=10, order_by="t", engine="generated")
    assert progress.feed(events.slice(0, 3)).num_rows == 0
    assert progress.feed(events.slice(3)).to_pylist() == [{"window_start": 0, "window_end": 10, "n": "2"}]
    assert progress.finish().to_pylist() == [{"window_start": 10, "window_end": 20, "n": "1"}]


def test_pieces_of_a_query_whose_matches_must_be_made_are_refused() -> None:
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) WITHIN 5 HAVING count(a[]) > 1")
    with pytest.raises(kleene.UnsupportedError, match="since HAVING"):
        query.progress(pa.table({"type": ["A"], "t": [1]}), aggregates={"n": "count(*)"}, order_by="t")


# --- cases ---

CASES = tomllib.loads((FOLDER / "totals" / "totals.toml").read_text(encoding="utf-8"))["case"]


@pytest.mark.parametrize("engine", ["generated", "reference"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_case(case: dict[str, Any], engine: str) -> None:
    table = read_table(case.get("columns", "type:string t:int"), case["events"])
    found = kleene.sase(case["query"]).aggregate(
        table,
        case["aggregates"],
        per=case.get("per"),
        order_by="t",
        tie_break="n",
        format=case.get("format", "all"),
        engine=engine,
    )
    rows = [{name: shown_value(value) for name, value in row.items()} for row in found.to_pylist()]
    assert rows == case["rows"]


@pytest.mark.parametrize(
    ("aggregates", "place", "says"),
    [
        ({"n": "count("}, (1, 6), "never closed"),
        ({"n": "a.x"}, (1, 1), "is not an aggregate"),
        ({"n": "count(*) + 1"}, (1, 1), "is not an aggregate"),
        ({"n": "sum(*)"}, (1, 5), "only count takes *"),
        ({"n": "sum(q.x)"}, (1, 5), "unknown variable 'q'"),
        ({"n": "sum(a.q)"}, (1, 7), "no attribute 'q'"),
        ({"n": "sum(c.x)"}, (1, 5), "negative component"),
        ({"n": "sum(a.x + b.x)"}, (1, 5), "events of one variable"),
        ({"n": "sum(7)"}, (1, 5), "names no event"),
        ({"n": "sum(a)"}, (1, 5), "can only be counted"),
        ({"n": "first(a.x)"}, (1, 1), "no meaning over all matches"),
        ({"n": "sum(a[1].x)"}, (1, 5), "Leave the index out"),
        ({"n": "sum(a.type)"}, (1, 5), "needs a number"),
        ({"n": "sum(sum(a.x))"}, (1, 5), "cannot contain another"),
        ("count(*) AS n,\n sum(a.x) AS n", (2, 14), "two values are called 'n'"),
        ({"match_end": "count(*)"}, None, "two columns 'match_end'"),
        ({}, None, "a dict of texts by name"),
        ({"n": 7}, None, "a text by its name"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_says_where_and_why(aggregates: Any, place: tuple[int, int] | None, says: str) -> None:
    query = kleene.sase("PATTERN SEQ(A+ a[], !(C c), B b)")
    with pytest.raises(kleene.KleeneError) as caught:
        query.aggregate(pa.table({"type": ["A"], "t": [1], "x": [1]}), aggregates, per="event", order_by="t")
    assert says in str(caught.value)
    assert place is None or (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize("per", ["evnt", "1 hour", "5 events", 0, True, ["event", "partition"], [1, 2]], ids=str)
def test_groups_that_there_are_not(per: Any) -> None:
    with pytest.raises(kleene.AnalysisError) as caught:
        kleene.sase("PATTERN A a").aggregate(pa.table({"t": [1]}), {"n": "count(*)"}, per=per, order_by="t")
    assert caught.value.hint


# --- numbers ---


def many(count: int, **columns: Any) -> pa.Table:
    return pa.table({"type": ["A"] * count + ["B"], "t": range(count + 1), **columns})


SUBSETS = kleene.sase("PATTERN SEQ(A+ a[], B b)")


def test_numbers_have_as_many_digits_as_they_need() -> None:
    [row] = SUBSETS.aggregate(many(15_000), {"n": "count(*)"}, order_by="t", engine="generated").to_pylist()
    assert len(row["n"]) == 4516
    assert int(row["n"][:4000]) == (2**15_000 - 1) // 10**516


def test_numbers_on_either_side_of_64_bits() -> None:
    for count in (60, 61, 62, 63, 64, 65):
        asked = {"n": "count(*)", "t": "sum(a.t - 30)", "k": "count(a)", "most": "max(a.t)"}
        [row] = SUBSETS.aggregate(many(count), asked, order_by="t", engine="compiled").to_pylist()
        each = 2 ** (count - 1)
        expected = (2**count - 1, each * sum(t - 30 for t in range(count)), each * count)
        assert (int(row["n"]), int(row["t"]), int(row["k"]), row["most"]) == (*expected, count - 1)


def test_events_that_no_component_can_use() -> None:
    events = pa.table({"type": ["Z", "A", "Z", "B"], "t": range(4), "x": [5, 6, 7, 8]})
    found = SUBSETS.aggregate(events, {"n": "count(*)"}, order_by="t", engine="compiled")
    assert found.to_pylist() == [{"n": "1"}]


def test_decimals_hold_38_digits_and_say_so() -> None:
    asked, options = {"n": "count(*)"}, {"order_by": "t", "numbers": "decimal", "engine": "generated"}
    found = SUBSETS.aggregate(many(120), asked, **options)
    assert found["n"].to_pylist() == [Decimal(2**120 - 1)]
    with pytest.raises(kleene.ExecutionError, match="'n' has 40 digits, but a decimal holds 38"):
        SUBSETS.aggregate(many(130), asked, **options)


def test_floats_are_the_nearest_ones() -> None:
    asked, options = {"n": "count(*)"}, {"order_by": "t", "numbers": "float", "engine": "generated"}
    assert SUBSETS.aggregate(many(100), asked, **options)["n"].to_pylist() == [float(2**100 - 1)]
    assert SUBSETS.aggregate(many(1100), asked, **options)["n"].to_pylist() == [float("inf")]


def test_sums_of_floats_are_rounded_once() -> None:
    y = [0.1] * 10 + [1e16, -1e16, 0.0]
    [row] = SUBSETS.aggregate(many(12, y=y), {"y": "sum(a.y)"}, order_by="t", engine="generated").to_pylist()
    assert row["y"] == float(2**11 * 10 * Fraction(0.1))


def test_an_attribute_of_more_than_64_bits() -> None:
    x = pa.array([Decimal(10**30)] * 3, pa.decimal128(38, 0))
    [row] = SUBSETS.aggregate(many(2, x=x), {"x": "sum(a.x)"}, order_by="t", engine="generated").to_pylist()
    assert row["x"] == str(4 * 10**30)


def test_an_expression_that_fails_is_an_error_only_where_a_match_needs_it() -> None:
    events = pa.table({"type": ["A", "A", "B", "A"], "t": range(4), "x": [1, 2, 3, 2**62]})
    asked, options = {"x": "sum(a.x * 4)"}, {"order_by": "t", "engine": "generated"}
    assert SUBSETS.aggregate(events, asked, **options)["x"].to_pylist() == ["24"]
    with pytest.raises(kleene.ExecutionError, match=r"a\.x \* 4"):
        kleene.sase("PATTERN SEQ(A+ a[])").aggregate(events, asked, **options)


# --- size ---


def test_contaminated_food_is_counted_to_83_digits() -> None:
    shipped = contamination(2_000)
    query = kleene.sase(CONTAMINATION)
    asked = {"n": "count(*)", "events": "count(b)"}
    [row] = query.aggregate(shipped, asked, order_by="ts", engine="generated").to_pylist()
    assert int(row["n"]) == contaminated_ways(shipped["Shipment"])
    assert len(row["n"]) == 83
    hours = query.aggregate(shipped, asked, per="1 hour", order_by="ts", engine="generated").to_pylist()
    assert sum(int(hour["n"]) for hour in hours) == int(row["n"])
    assert sum(int(hour["events"]) for hour in hours) == int(row["events"])


def test_explain_says_whether_matches_are_made() -> None:
    asked = {"n": "count(*)"}
    assert "none is made: one walk" in SUBSETS.explain(many(2), aggregates=asked, order_by="t")
    chosen = SUBSETS.explain(many(2), aggregates=asked, order_by="t", format="non_overlapping")
    assert "each is made, and added up, since non-overlapping" in chosen


def test_row_patterns_are_refused() -> None:
    query = kleene.match_recognize("ORDER BY t MEASURES A.t AS t PATTERN (A)")
    with pytest.raises(kleene.UnsupportedError, match="are for SASE queries"):
        query.aggregate(many(2), {"n": "count(*)"})


def test_parameters_stand_in_aggregates_too() -> None:
    asked, options = {"x": "sum(a.t * :factor)"}, {"order_by": "t", "engine": "generated"}
    assert SUBSETS.aggregate(many(2), asked, params={"factor": 10}, **options)["x"].to_pylist() == ["20"]
    with pytest.raises(kleene.AnalysisError, match="factor"):
        SUBSETS.aggregate(many(2), asked, **options)

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


@pytest.mark.parametrize("per", ["event", 10, ["partition", 10], None], ids=str)
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 20 HAVING count(a[]) > 1",
        "PATTERN SEQ(A a, !(C c), B b) WHERE [id] WITHIN 20",
        "PATTERN SEQ(A a, B b, !(C c)) WHERE [id] AND a.id = c.id WITHIN 9",
        "PATTERN SEQ(A a, B b) WHERE [id] AND a.x > 9 AND a.x < 3 WITHIN 20",
    ],
)
def test_pieces_of_matches_that_must_be_made_add_up_too(text: str, per: Any) -> None:
    query, chance, asked = (
        kleene.sase(text),
        random.Random(text),
        {"n": "count(*)", "x": "sum(a.x)", "most": "max(b.t)"},
    )
    options: dict[str, Any] = {"per": per, "order_by": "t", "engine": "generated"}
    if per == "event" and "!(C c))" in text:
        with pytest.raises(kleene.UnsupportedError, match="become certain one after the other"):
            query.progress(random_events(chance, 8), aggregates=asked, **options)
        return
    for _ in range(3):
        table = random_events(chance, 24)
        progress, rows = query.progress(table, aggregates=asked, **options), []
        for at in range(0, table.num_rows, 5):
            rows += progress.feed(table.slice(at, 5)).to_pylist()
            progress = query.progress(table, aggregates=asked, snapshot=progress.snapshot(), **options)
        rows += progress.finish().to_pylist()
        whole = query.aggregate(table, asked, **options).to_pylist()
        assert sorted(map(repr, rows)) == sorted(map(repr, whole))


# --- cases ---

CASES = [
    case
    for name in ("totals", "return_text")
    for case in tomllib.loads((FOLDER / "totals" / f"{name}.toml").read_text(encoding="utf-8"))["case"]
]


def options_of(case: dict[str, Any]) -> dict[str, Any]:
    names = ("aggregates", "per", "params", "format")
    return {"order_by": "t", "tie_break": "n", **{name: case[name] for name in names if name in case}}


def shown(found: pa.Table) -> list[dict[str, Any]]:
    return [{name: shown_value(value) for name, value in row.items()} for row in found.to_pylist()]


@pytest.mark.parametrize("engine", ["generated", "reference"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_case(case: dict[str, Any], engine: str) -> None:
    table = read_table(case.get("columns", "type:string t:int"), case["events"])
    assert shown(kleene.sase(case["query"]).aggregate(table, engine=engine, **options_of(case))) == case["rows"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_case_piece_by_piece(case: dict[str, Any]) -> None:
    query, table = kleene.sase(case["query"]), read_table(case.get("columns", "type:string t:int"), case["events"])
    chance, options = random.Random(case["name"]), {**options_of(case), "engine": "generated"}
    progress, rows, at = query.progress(table, **options), [], 0
    while at < table.num_rows:
        size = chance.randint(1, 3)
        rows += shown(progress.feed(table.slice(at, size)))
        at += size
    rows += shown(progress.finish())
    assert sorted(map(repr, rows)) == sorted(map(repr, case["rows"]))


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


# --- aggregates that the query itself returns

OVER_ALL = "PATTERN SEQ(A+ a[], B b) RETURN count(*) AS n, sum(a.x) AS total"
FOUR = pa.table({"type": ["A", "A", "B", "B"], "t": [1, 2, 3, 4], "x": [1, 2, 0, 0]})


def test_compressed_output_of_aggregates_is_a_row_for_each_event() -> None:
    rows = kleene.sase(OVER_ALL).compressed(FOUR, order_by="t").to_pylist()
    assert rows == [{"match_end": 3, "n": "3", "total": "6"}, {"match_end": 4, "n": "3", "total": "6"}]


def test_aggregates_that_are_given_stand_for_those_of_the_text() -> None:
    found = kleene.sase(OVER_ALL).aggregate(FOUR, {"most": "max(a.x)"}, order_by="t")
    assert found.to_pylist() == [{"most": 2}]
    assert kleene.sase(OVER_ALL).explain(FOUR, order_by="t", per="event").splitlines()[1:3] == [
        "RETURN count(*) AS n, sum(a.x) AS total",
        "over all matches, per event",
    ]


def test_aggregates_of_one_match_stay_what_they_are() -> None:
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) RETURN sum(a[].x) AS total, count(a[]) AS n")
    assert query.match(FOUR, order_by="t").num_rows == 6
    with pytest.raises(kleene.AnalysisError, match="returns none over all its matches"):
        query.aggregate(FOUR, order_by="t")


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("PATTERN SEQ(A a, B b) RETURN count(*) AS n, a.x", 45, "'x' is not an aggregate over all matches"),
        ("PATTERN SEQ(A a, B b) RETURN sum(a.x) / count(*) AS mean", 30, "'mean' is not an aggregate over all"),
        ("PATTERN SEQ(A a, B b) RETURN max(c.x) AS most", 34, "'c'"),
        ("PATTERN SEQ(A a, !(C c), B b) RETURN max(c.x) AS most", 42, "negative component"),
        ("PATTERN SEQ(A a, B b) RETURN first(a.x) AS x", 30, "first has no meaning over all matches"),
        ("PATTERN SEQ(A a, B b) RETURN sum(a.x * b.x) AS x", 34, "the events of two variables"),
    ],
)
def test_what_is_no_aggregate_over_all_matches_is_an_error(text: str, column: int, says: str) -> None:
    with pytest.raises(kleene.AnalysisError) as caught:
        kleene.sase(text)
    assert says in caught.value.message
    assert caught.value.column == column


def test_matches_of_a_query_of_aggregates_are_an_error() -> None:
    query = kleene.sase(OVER_ALL)
    for call in (query.match, query.match_batches):
        with pytest.raises(kleene.UnsupportedError, match="aggregates over all its matches") as caught:
            call(FOUR, order_by="t")
        assert caught.value.column == 33
    with pytest.raises(kleene.UnsupportedError, match="aggregates over all its matches"):
        kleene.program(OVER_ALL).match(FOUR, order_by="t")


def test_keys_that_differ_in_the_sign_of_zero_are_one_in_pieces_too() -> None:
    events = pa.table({"type": ["A", "A"], "t": [1, 2], "k": [-0.0, 0.0]})
    query = kleene.sase("EVENT A a WHERE [k] WITHIN 5")
    progress = query.progress(events, order_by="t", aggregates={"n": "count(*)"}, per="partition")
    pieces = [progress.feed(events.slice(0, 1)), progress.feed(events.slice(1)), progress.finish()]
    assert [row["n"] for piece in pieces for row in piece.to_pylist()] == ["2"]

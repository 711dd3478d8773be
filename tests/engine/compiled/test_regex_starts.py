"""Starts of the regular-expression operator that are tried together, or dropped for an older one."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

import kleene
from agreement import disagreement
from kleene.engine.compiled import regex_code, regex_engine

FIRST = ("x > 0", "b", "x >= 1 || b", "TRUE")
TOGETHER = (
    *(
        "x > First(x)",
        "x >= First(x) - 1",
        "x != First(x)",
        "x = First(x)",
        "x < 2 * First(x) + 3",
        "-x <= 2 - First(x)",
    ),
    *("y > 1.03 * First(y)", "y - First(y) < 1.5", "First(y) / 2 < y + 1", "y > -2 * First(y)", "NOT (y < First(y))"),
    *("Delta(t) < 9", "Delta(t) >= 3 && Delta(t) < 20", "Delta(y) < 2.5", "Delta(ts) < 12 seconds", "Count() < 7"),
    *("Count() >= 4", "Count() != 6", "Count() + First(x) < 12", "x >= Last(x)", "y < Last(y) + 1", "x >= 1", "TRUE"),
    *("Delta(t) < 8 || x > First(x)", "(x > First(x) || b) && Count() < 9", "d > First(d)", "d * 2 > First(d) + x"),
    *("First(x) + 9223372036854775800 > x || Delta(t) > 4", "x * 4611686018427387904 > First(x) - 5"),
)
APART = ("First(x) IN (1, 2)", "x <= Max(x)", "x >= Min(x) && Count() < 12", "Sum(x) < 12", "First(s) = s", "First(b)")
PATTERNS = ("{0} {1}* {2}", ". {1}+ {2}+ {3}", "{0} ({1} | {2} {1})* {3}", ". {1}* {2} {1}* {3}", "{0}+ {1}+ {2}? {3}")
OUTPUTS = {
    "first": "First(t)",
    "n": "Count()",
    "top": "Max(x)",
    "sum": "Sum(y)",
    "mean": "Average(x)",
    "last": "Last(d)",
}
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "x": (pa.int64(), [1, 2, 3, 4, 0, -1]),
    "y": (pa.float64(), [1.0, 1.5, 2.0, 3.0, -1.0, 0.0, -0.0]),
    "b": (pa.bool_(), [True, True, False]),
    "s": (pa.string(), ["p", "q"]),
    "d": (pa.decimal128(10, 2), [1, 2, 3]),
}


def events(chance: random.Random, size: int) -> pa.Table:
    strange = {"x": [None], "y": [None, math.nan, math.inf, -math.inf]} if chance.random() < 0.4 else {}
    columns = {"t": pa.array(range(size)), "ts": pa.array([1_000_000 * n for n in range(size)], pa.timestamp("us"))}
    for name, (type_, values) in VALUES.items():
        some = values * 4 + strange.get(name, [])
        columns[name] = pa.array([chance.choice(some) for _ in range(size)], type_)
    columns["g"] = pa.array([chance.choice("aaab") for _ in range(size)])
    return pa.table(columns)


def arguments(chance: random.Random) -> dict[str, Any]:
    """The arguments of kleene.regex."""
    pattern = chance.choice(PATTERNS)
    names = {"{0}": "begin", "{1}": "on", "{2}": "more", "{3}": "end"}
    for sign, name in names.items():
        pattern = pattern.replace(sign, name)
    later = TOGETHER[:-2] if chance.random() < 0.8 else TOGETHER + APART
    predicates = {
        name: chance.choice(FIRST) if name == "begin" else " || ".join(chance.choices(later, k=chance.randint(1, 3)))
        for name in names.values()
        if name in pattern
    }
    if chance.random() < 0.7:  # a match is rare, so that there are many starts
        last = pattern.split()[-1]
        predicates[last] = f"({predicates[last]}) && ({chance.choice(later)}) && t % 11 = 0 && t > 10"
    chosen = dict(chance.sample(sorted(OUTPUTS.items()), 3))
    return {"pattern": pattern, "order_by": "t", "partition_by": "g", "predicates": predicates, "output": chosen}


@pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize(("many", "leaf"), [(0, 1), (2, 1), (8, 2)])
def test_starts_together_find_what_each_start_finds(
    many: int, leaf: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex_code, "MANY", many)
    monkeypatch.setattr(regex_code, "LEAF", leaf)
    for number in range(10):
        chance = random.Random(f"{part} {many} {number}")
        said, table = arguments(chance), events(chance, chance.choice((20, 60)))
        assert disagreement("regex", said, table, chance) is None, said


@pytest.mark.parametrize(
    ("predicates", "expected"),
    [
        ({"a": "x > 0", "b": "x < Last(x)"}, "of each state, only the earliest start is kept"),
        ({"a": "x > 0", "b": "x > 1.03 * First(x) && Delta(t) < 5"}, "starts in the same states are tried together"),
        (
            {"a": "x > 0", "b": "x > Max(x) && Average(x) < 3"},
            "as much as there are starts (Max, Average is of its own)",
        ),
        ({"a": "x > 0", "b": "First(s) = s"}, "there are starts (predicates do not only compare numbers)"),
    ],
)
def test_explain_says_how_starts_are_kept(predicates: dict[str, str], expected: str) -> None:
    query = kleene.regex(pattern="a .* b", order_by="t", predicates=predicates, output={"n": "Count()"})
    assert expected in query.explain(events(random.Random(1), 5))


LARGE = 2**62
SUMS = {"pattern": "a .* b", "order_by": "t", "output": {"sum": "Sum(x)"}, "predicates": {"a": "x > 0", "b": "x = 7"}}


@pytest.mark.parametrize("engine", ["reference", "generated"])
def test_a_sum_that_goes_too_far_is_an_error_only_if_it_is_reported(engine: str) -> None:
    values = [-LARGE, 5, LARGE, LARGE - 13, LARGE]
    table = pa.table({"t": range(5), "x": pa.array(values, pa.int64())})
    query = kleene.regex(**SUMS)
    assert query.match(table, engine=engine).num_rows == 0
    with pytest.raises(kleene.ExecutionError, match="sum"):
        query.match(pa.concat_tables([table, pa.table({"t": [5], "x": [7]})]), engine=engine)


def test_a_sum_that_went_too_far_is_remembered_in_a_snapshot() -> None:
    values = [5, 2**63 - 2, 1, -LARGE, 2, 7]
    table = pa.table({"t": range(6), "x": values})
    query = kleene.regex(**SUMS)
    progress = query.progress(table, engine="generated")
    assert progress.feed(table.slice(0, 4)).num_rows == 0
    progress = query.progress(table, engine="generated", snapshot=progress.snapshot())
    assert progress.feed(table.slice(4, 1)).num_rows == 0
    with pytest.raises(kleene.ExecutionError, match="sum"):
        progress.feed(table.slice(5))


def test_many_starts_cost_few_partial_matches() -> None:
    table = pa.table({"t": range(500), "x": [n % 7 for n in range(500)]})
    options = kleene.EngineOptions("generated", run_limit=3)
    query = kleene.regex(
        pattern="a .* b", order_by="t", predicates={"a": "x > 0", "b": "x > Last(x) + 5"}, output={"n": "Count()"}
    )
    assert query.match(table, engine=options).num_rows == 0
    with pytest.raises(kleene.ExecutionError, match="more than 3 partial matches"):
        query.match(table, engine=kleene.EngineOptions("reference", run_limit=3))


def test_machine_code_for_blocks_is_made_on_the_way_and_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_engine, "WORK_AT_ONCE", 2_000)
    monkeypatch.setattr(regex_engine, "ENOUGH_TRIES", 10_000)
    made: list[bool] = []
    generate = regex_engine.generate_regex
    monkeypatch.setattr(regex_engine, "generate_regex", lambda *told: made.append(told[3]) or generate(*told))
    chance = random.Random(5)
    price = [100.0]
    for _ in range(900):
        price.append(price[-1] * (1 + chance.gauss(0, 0.004)))
    table = pa.table({"t": range(len(price)), "price": price})
    predicates = {"near": "Delta(t) < 90", "jump": "price > 1.04 * First(price) && Delta(t) < 90"}
    query = kleene.regex(
        pattern=". near* jump", order_by="t", predicates=predicates, output={"begin": "First(t)", "top": "Max(price)"}
    )
    found = query.match(table, engine="compiled")
    assert found.num_rows > 1
    assert made == [False, True]
    assert found.equals(query.match(table, engine="reference"))

"""Starts of the regular-expression operator that are tried together, or dropped for an older one."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

import kleene
from agreement import disagreement
from kleene.engine.compiled import regex_code
from kleene.engine.compiled.regex_starts import Starts, starts_of

FIRST = ("x > 0", "b", "x >= 1 || b", "TRUE")
LATER = (
    *(
        "x > First(x)",
        "x >= First(x) - 1",
        "x != First(x)",
        "x = First(x)",
        "x < 2 * First(x) + 3",
        "-x <= -First(x) + 2",
    ),
    *("y > 1.03 * First(y)", "y - First(y) < 1.5", "First(y) / 2 < y + 1", "y > -2 * First(y)", "NOT (y < First(y))"),
    *("Delta(t) < 9", "Delta(t) >= 3 && Delta(t) < 20", "Delta(y) < 2.5", "Delta(ts) < 12 seconds", "Count() < 7"),
    *("Count() >= 4", "Count() != 6", "Count() + First(x) < 12", "x >= Last(x)", "y < Last(y) + 1", "x >= 1", "TRUE"),
    *("Delta(t) < 8 || x > First(x)", "(x > First(x) || b) && Count() < 9", "d > First(d)", "d * 2 > First(d) + x"),
    *("First(x) IN (1, 2)", "x <= Max(x)", "x >= Min(x) && Count() < 12", "Sum(x) < 12", "First(s) = s", "First(b)"),
    *("x * 4611686018427387904 > First(x) - 5", "First(x) + 9223372036854775800 > x || Delta(t) > 4"),
)
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
    predicates = {
        name: chance.choice(FIRST) if name == "begin" else f"({chance.choice(LATER)}) && ({chance.choice(LATER)})"
        for name in names.values()
        if name in pattern
    }
    if chance.random() < 0.5:  # a match is rare, so that there are many starts
        last = pattern.split()[-1]
        predicates[last] = f"({predicates[last]}) && x = 4 && t % 9 = 0"
    chosen = dict(chance.sample(sorted(OUTPUTS.items()), 3))
    return {"pattern": pattern, "order_by": "t", "partition_by": "g", "predicates": predicates, "output": chosen}


@pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize(("many", "leaf"), [(0, 1), (2, 1), (8, 2)])
def test_starts_together_find_what_each_start_finds(
    many: int, leaf: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex_code, "MANY", many)
    monkeypatch.setattr(regex_code, "LEAF", leaf)
    for number in range(12):
        chance = random.Random(f"{part} {many} {number}")
        said, table = arguments(chance), events(chance, chance.choice((20, 60)))
        assert disagreement("regex", said, table, chance) is None, said

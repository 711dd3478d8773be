"""Windows with row patterns: the engines, and a plain program written from the specification, give the same."""

from __future__ import annotations

import contextlib
import itertools
import random
from dataclasses import replace

import pyarrow as pa
import pytest

import kleene
from plain_windows import RunError, Window, measured, random_rows, random_window, walk

SCHEMA = pa.schema([("p", pa.string()), ("t", pa.int64()), ("x", pa.int64()), ("n", pa.int64())])
U = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"
Rows = list[dict[str, object]]


def compared(window: Window, rows: Rows, engine: str) -> bool:
    """Whether the engine took part: what it finds is then what the plain program finds, errors included."""
    try:
        expected = {row["t"]: values for row, values in zip(rows, measured(rows, window), strict=True)}
    except RunError:
        expected = None
    query, table = kleene.pattern_window(window.text()), pa.Table.from_pylist(rows, SCHEMA)
    if expected is None:
        with pytest.raises(kleene.KleeneError):
            query.match(table, engine=engine)
        return True
    try:
        found = query.match(table, engine=engine)
    except kleene.UnsupportedError:
        return False
    names = list(window.measures)
    assert {row["t"]: {name: row[name] for name in names} for row in found.to_pylist()} == expected, window.text()
    assert found.column_names == ["p", "t", "x", "n", *names]
    return True


@pytest.mark.parametrize("engine", ["reference", "generated"])
def test_generated_windows_agree_with_the_plain_program(engine: str) -> None:
    compared_ones = 0
    for seed in range(250):
        chance = random.Random(seed)
        window, rows = random_window(chance), random_rows(chance)
        compared_ones += compared(window, rows, engine)
    assert compared_ones > 180


@pytest.mark.parametrize("seed", [3, 11])
def test_compiled_windows_agree_with_the_plain_program(seed: int) -> None:
    window = random_window(random.Random(seed))
    for again in range(40):
        compared(window, random_rows(random.Random(again)), "compiled")


def test_generated_windows_tell_skips_and_seek_apart() -> None:
    """Were they all without matches, they would show nothing."""
    differs = {"seek": 0, "skip": 0}
    for seed in range(250):
        chance = random.Random(seed)
        window, rows = random_window(chance), random_rows(chance)
        other_skip = "TO NEXT ROW" if window.skip != "TO NEXT ROW" else "PAST LAST ROW"
        for name, change in {"seek": not window.seek, "skip": other_skip}.items():
            with contextlib.suppress(RunError):
                differs[name] += walk(rows, window) != walk(rows, replace(window, **{name: change}))
    assert min(differs.values()) > 15


def steps(count: int, seed: int = 0) -> pa.Table:
    chance = random.Random(seed)
    return pa.table(
        {"t": range(count), "k": [chance.randrange(5) for _ in range(count)], "c": chance.choices(range(9), k=count)}
    )


@pytest.mark.parametrize(
    ("seeking", "skip", "end"),
    [
        ("INITIAL", "PAST LAST ROW", "UNBOUNDED"),
        ("INITIAL", "TO NEXT ROW", "7"),
        ("SEEK", "PAST LAST ROW", "7"),
        ("SEEK", "TO NEXT ROW", "UNBOUNDED"),
    ],
)
def test_larger_tables_agree(seeking: str, skip: str, end: str) -> None:
    query = kleene.pattern_window(
        f"""PARTITION BY k ORDER BY t MEASURES count(*) AS n, PREV(FIRST(c)) AS before, NEXT(LAST(DN.c), 2) AS after
            ROWS BETWEEN CURRENT ROW AND {end} FOLLOWING AFTER MATCH SKIP {skip} {seeking}
            PATTERN (A (UP | DN)+ LOW) DEFINE UP AS UP.c > PREV(UP.c, 2), DN AS DN.c < PREV(DN.c), LOW AS LOW.c < A.c"""
    )
    table = steps(3_000)
    plain = query.match(table, engine="reference")
    assert query.match(table, engine="compiled").equals(plain)
    assert sorted(plain.column("t").to_pylist()) == list(range(3_000))
    assert plain.column("n").null_count < 3_000


def test_rows_come_partition_by_partition_and_in_parts_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    from kleene.engine.compiled import row_engine

    query = kleene.pattern_window(
        f"""PARTITION BY k ORDER BY t MEASURES sum(c) AS s {U} AFTER MATCH SKIP TO NEXT ROW SEEK
            PATTERN (A+ B) DEFINE B AS c = 8"""
    )
    table = steps(20_000)
    whole = query.match(table, engine="compiled")
    groups = whole.column("k").to_pylist()
    assert sum(one != other for one, other in itertools.pairwise(groups)) == 4
    monkeypatch.setattr(row_engine, "MOST_STATES", 1 << 16)
    assert query.match(table, engine="compiled").equals(whole)


def test_seek_without_a_match_does_not_take_quadratic_time() -> None:
    """Every row would try every later row: 40 billion steps."""
    query = kleene.pattern_window(
        f"""ORDER BY t MEASURES LAST(t) AS e {U} AFTER MATCH SKIP TO NEXT ROW SEEK
            PATTERN (A B) DEFINE A AS c > PREV(c), B AS c = 99"""
    )
    found = query.match(steps(200_000), engine=kleene.EngineOptions("compiled", time_limit=60))
    assert found.column("e").null_count == 200_000


@pytest.mark.parametrize("engine", ["reference", "compiled"])
@pytest.mark.parametrize(("end", "says"), [("NULL", "NULL"), ("n - 3", "negative"), ("x", "is NULL")])
def test_an_end_that_is_none(engine: str, end: str, says: str) -> None:
    rows = pa.Table.from_pylist([{"p": "a", "t": t, "x": None, "n": t} for t in range(1, 4)], SCHEMA)
    with pytest.raises(kleene.KleeneError, match=says):
        kleene.pattern_window(f"ORDER BY t ROWS BETWEEN CURRENT ROW AND {end} FOLLOWING PATTERN (A)").match(
            rows, engine=engine
        )


def test_a_window_is_not_for_pieces() -> None:
    query = kleene.pattern_window(f"ORDER BY t MEASURES count(*) AS n {U} PATTERN (A)")
    with pytest.raises(kleene.KleeneError, match="needs a whole table"):
        query.progress(steps(3))


def test_explain_tells_the_frame() -> None:
    text = kleene.pattern_window(f"ORDER BY t MEASURES count(*) AS n {U} SEEK PATTERN (A)").explain()
    assert "frame      the row and all that follow it" in text
    assert "at the row, or at the first row of its frame" in text

"""Generated queries and tables in threads give the rows of one piece, in the same order, whatever holds the events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kleene
from case_files import near
from flat_options import call_of
from kleene.api import prepare
from kleene.engine import layouts, plain_rows, range_shares, results, row_ends, shares, threads
from kleene.engine.threads import run, why_together
from kleene.ir.options import Window, WindowUnit
from kleene.plan.plan import Plan
from row_strategies import random_row_case
from strategies import event_table, queries_with_events, some_examples

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


@pytest.fixture(autouse=True)
def _small_tables_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(threads, "LEAST_ROWS", 2)
    monkeypatch.setattr(range_shares, "MOST_COPIED", 10.0)


@pytest.fixture
def layouts_used(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    used: list[object] = []
    choose = layouts.choose_layout
    monkeypatch.setattr(threads, "choose_layout", lambda *given: used.append(found := choose(*given)) or found)
    return used


def outcome(plan: Plan, table: pa.Table) -> object:
    try:
        return near(run(plan, table).to_pylist())
    except kleene.UnsupportedError:
        raise
    except kleene.KleeneError as error:
        return str(error)


def check(plan: Plan, table: pa.Table) -> None:
    expected = outcome(replace(plan, engine="reference"), table)
    for count in (2, 3):
        assert outcome(replace(plan, threads=count), table) == expected


def test_generated_row_patterns_are_chosen_in_ranges(layouts_used: list[object]) -> None:
    random = Random(7)
    for _ in range(200):
        clause, events = random_row_case(random)
        if random.random() < 0.7 and "MEASURES" in clause:
            clause = "ORDER BY t MEASURES" + clause.split("MEASURES", 1)[1]
        try:
            definition = kleene.match_recognize(clause).definition
            if definition.window is None and definition.max_length is None:
                definition = replace(definition, max_length=random.choice([1, 2, 3, 4, 6]))
            table, plan = prepare(call_of(definition, engine="generated"), events)
            if why_together(plan, table.num_rows) is None:
                check(plan, table)
        except kleene.KleeneError:
            continue  # rows that have no order, or a query that the generated engine cannot run
    in_ranges = [used for used in layouts_used if isinstance(used, layouts.InRanges)]
    assert sum(used.chosen is not None for used in in_ranges) > 20
    assert sum(isinstance(used, layouts.InShares) for used in layouts_used) > 20


def test_generated_matches_without_overlap_are_chosen_in_ranges(layouts_used: list[object]) -> None:
    random = Random(8)
    for query, events in some_examples(queries_with_events(), lambda _: True, 50, 5):
        definition = kleene.sase(str(query)).definition
        if definition.window is None:
            definition = replace(definition, window=Window(random.choice([1, 2, 5]), WindowUnit.EVENTS))
        options = {"order_by": "t", "format": random.choice(["all", "non_overlapping"])}
        table, plan = prepare(call_of(definition, **options, engine="generated"), event_table(events))
        if why_together(plan, table.num_rows) is None:
            check(plan, table)
    in_ranges = [used for used in layouts_used if isinstance(used, layouts.InRanges)]
    assert sum(used.chosen is not None for used in in_ranges) > 5


def test_one_key_is_cut_into_ranges(layouts_used: list[object]) -> None:
    table = pa.table({"k": ["x"] * 400, "t": range(400), "v": np.random.default_rng(5).integers(0, 9, 400)})
    query = kleene.match_recognize(
        """PARTITION BY k ORDER BY t MEASURES FIRST(t) AS a, LAST(t) AS b, MATCH_NUMBER() AS m
           PATTERN (A B+) MAXLENGTH 9 DEFINE B AS B.v >= PREV(B.v)"""
    )
    found = query.match(table, engine=kleene.EngineOptions("generated", threads=3))
    assert isinstance(layouts_used[0], layouts.InRanges)
    assert found.equals(query.match(table, engine="reference"))


# --- whatever holds the events ---


def as_dictionary(table: pa.Table) -> pa.Table:
    for name in ("k", "type"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table.column(name).dictionary_encode())
    return table


def in_chunks(table: pa.Table) -> pa.Table:
    sizes = [0, 1, 100, 0, 350]
    ends = np.cumsum(sizes).tolist()
    parts = [table.slice(end - size, size) for size, end in zip(sizes, ends, strict=True)]
    return pa.concat_tables([*parts, table.slice(ends[-1])])


def as_slice(table: pa.Table) -> pa.Table:
    return (
        pa.concat_tables([table, table])
        .combine_chunks()
        .slice(table.num_rows - 7, table.num_rows)
        .drop("t")
        .append_column("t", pa.array(range(table.num_rows)))
    )


def with_nulls(name: str) -> Callable[[pa.Table], pa.Table]:
    def changed(table: pa.Table) -> pa.Table:
        values = [None if row % 11 == 0 else value for row, value in enumerate(table.column(name).to_pylist())]
        return table.set_column(
            table.schema.get_field_index(name), name, pa.array(values, table.schema.field(name).type)
        )

    return changed


def with_keys(type_: pa.DataType, scale: object) -> Callable[[pa.Table], pa.Table]:
    def changed(table: pa.Table) -> pa.Table:
        numbers = [int(text.split()[1]) for text in table.column("k").to_pylist()]
        keys = pa.array([number * scale for number in numbers]).cast(type_)
        return table.set_column(table.schema.get_field_index("k"), "k", keys)

    return changed


HELD = {
    "texts": lambda table: table,
    "dictionaries": as_dictionary,
    "chunks": in_chunks,
    "slices": as_slice,
    "NULL keys": with_nulls("k"),
    "NULL types": with_nulls("type"),
    "NULL values": with_nulls("v"),
    "small numbers": with_keys(pa.int16(), 1),
    "far numbers": with_keys(pa.int64(), 10**12),
    "unsigned numbers": with_keys(pa.uint32(), 3),
    "floats": with_keys(pa.float64(), 0.5),
    "times": with_keys(pa.timestamp("ms"), 1_000),
}
QUERIES = {
    "rows": kleene.match_recognize(
        """PARTITION BY k ORDER BY t MEASURES FIRST(t) AS a, LAST(v) AS b, count(*) AS n, MATCH_NUMBER() AS m
           PATTERN (A B*) DEFINE B AS B.v < PREV(B.v)"""
    ),
    "two keys": kleene.match_recognize(
        """PARTITION BY k, v ORDER BY t MEASURES LAST(B.type) AS b, LAST(t) AS l ALL ROWS PER MATCH
           PATTERN (A B) DEFINE B AS B.t - A.t < 60"""
    ),
    "sequence": kleene.sase("EVENT SEQ(A a, !(B b), long_type_name c) WHERE [k] AND a.v < c.v WITHIN 300"),
    "runs": kleene.sase(
        """PATTERN SEQ(A+ a[], C c) WHERE skip_till_next_match(a[], c) { [k] AND a[i].v > a[i-1].v } WITHIN 300
           RETURN c.t AS t, collect(a[].t) AS ts, c.k AS k, c.type AS kind"""
    ),
}


def some_events(rows: int = 1_200) -> pa.Table:
    chance = np.random.default_rng(9)
    types = ["A", "B", "C", "long_type_name", "long_type_n", "long_type_name_that_differs", "Ä", ""]
    return pa.table(
        {
            "k": pa.array([f"key {number}" for number in chance.integers(0, 30, rows)]),
            "t": range(rows),
            "v": chance.integers(0, 9, rows),
            "type": pa.array([types[number] for number in chance.integers(0, len(types), rows)]),
        }
    )


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("name", QUERIES)
def test_whatever_holds_the_events(name: str, held: str, layouts_used: list[object]) -> None:
    query, table = QUERIES[name], HELD[held](some_events())
    order = "t" if name in ("sequence", "runs") else None
    engine = "compiled" if name == "rows" or (name, held) == ("sequence", "texts") else "generated"
    expected = query.match(table, order_by=order, engine="reference")
    for count in (1, 3):
        found = query.match(table, order_by=order, engine=kleene.EngineOptions(engine, threads=count))
        assert found.schema == expected.schema
        assert found.to_pylist() == expected.to_pylist()
    assert all(isinstance(used, layouts.ByEnds if name == "rows" else layouts.InShares) for used in layouts_used)
    assert len(layouts_used) == 2


# --- rows that are read off the ends of matches ---


def test_rows_of_ends_are_those_of_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def plainly(*given: object) -> object:
        made.append(found := plain_rows.plain_rows(*given))
        return found

    clauses = [
        "PATTERN (A B*) DEFINE B AS B.v < PREV(B.v)",
        "PATTERN (A B?) DEFINE A AS A.v > 7",
        "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ C) DEFINE B AS B.v < 5",
        "AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ $) DEFINE B AS TRUE",
        "PATTERN (A*) DEFINE A AS A.v > 7",
    ]
    for clause in clauses:
        for partition in ("PARTITION BY k", ""):
            query = kleene.match_recognize(
                f"""{partition} ORDER BY t MEASURES FIRST(t) AS a, LAST(type) AS b, v AS c, COUNT(*) AS n,
                    MATCH_NUMBER() AS m, FINAL LAST(v) AS f {clause}"""
            )
            for rows in (40, 300):
                table = some_events(rows)
                monkeypatch.setattr(results, "plain_rows", plainly)
                found = query.match(table, engine="generated")
                monkeypatch.setattr(results, "plain_rows", lambda *_: None)
                assert found.equals(query.match(table, engine="generated")), clause
                assert found.equals(query.match(table, engine="reference")), clause
    assert sum(one is not None for one in made) > 10
    assert any(one is None for one in made)  # empty matches, and several that end at one row


@pytest.mark.parametrize("few", [0, 16])
@pytest.mark.parametrize("many_keys", [0, 1 << 15])
def test_rows_of_a_whole_table_are_made_of_the_ends_that_shares_give(
    few: int, many_keys: int, layouts_used: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(shares, "MANY_KEYS", many_keys)  # with more, shares put their keys together
    monkeypatch.setattr(row_ends, "FEW", few)  # with 0, no matches are few enough to be sorted
    monkeypatch.setattr(row_ends, "AT_ONCE", 70)
    table = with_nulls("type")(some_events(400))
    v = table.column("v")
    columns = {
        "small": v.cast(pa.int8()),
        "is_odd": pc.equal(v, 3),
        "exact": v.cast(pa.decimal128(38, 2)),
        "day": v.cast(pa.int32()).cast(pa.date32()),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    clauses = [
        "PATTERN (A B*) DEFINE B AS B.v < PREV(B.v)",
        "PATTERN (A B{3,}) WITHIN 40 DEFINE B AS B.t - FIRST(A.t) < 900",
        "PATTERN (A B) DEFINE A AS k = 'key 7' OR k = 'key 9'",
        "PATTERN (A B)",
        "PATTERN (A B) DEFINE A AS A.v > 100",
    ]
    for clause in clauses:
        query = kleene.match_recognize(
            f"""PARTITION BY k ORDER BY t MEASURES FIRST(t) AS a, LAST(type) AS b, v AS c, COUNT(*) AS n,
                MATCH_NUMBER() AS m, FIRST(small) AS s, LAST(is_odd) AS o, LAST(exact) AS e, FIRST(day) AS d {clause}"""
        )
        expected = query.match(table, engine="reference")
        for count in (1, 3):
            assert query.match(table, engine=kleene.EngineOptions("generated", threads=count)).equals(expected), clause
    assert all(isinstance(used, layouts.ByEnds) for used in layouts_used)
    assert len(layouts_used) == 2 * len(clauses)

"""Columns of types that few tables have: they work, or an error names them, and only where the query reads them."""

from __future__ import annotations

import threading
from decimal import Decimal

import pyarrow as pa
import pytest

import kleene

ENGINES = ["auto", "reference", "generated"]
PAIRS = {"pattern": "A B", "order_by": "t", "predicates": {"A": "t % 2 = 0", "B": "t % 2 = 1"}}
IN_PAIRS = "ORDER BY t MEASURES {} PATTERN (A B) DEFINE A AS t % 2 = 0"


def table(count: int = 4, **columns) -> pa.Table:
    return pa.table({"t": range(count), "type": ["A", "B"] * (count // 2), **columns})


def union(count: int = 4) -> pa.Array:
    kinds, places = pa.array([0] * count, pa.int8()), pa.array(range(count), pa.int32())
    return pa.UnionArray.from_dense(kinds, places, [pa.array([7] * count)])


def sparse_union(count: int = 4) -> pa.Array:
    return pa.UnionArray.from_sparse(pa.array([0] * count, pa.int8()), [pa.array([7] * count)])


# Older versions of Arrow have none.
NARROW_DECIMALS = [pa.decimal32(7, 2), pa.decimal64(12, 2)] if hasattr(pa, "decimal32") else []


def bool8(count: int = 4) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1] * (count // 2), pa.int8()))


# ---- columns that are all NULL


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "output", ["Sum(x)", "Max(x)", "Min(x)", "First(x)", "Last(x)", "Average(x)", "Delta(x)", "x + 1"]
)
def test_aggregates_of_a_column_that_is_all_null(output, engine):
    found = kleene.regex(**PAIRS, output={"n": output}).match(table(x=pa.nulls(4)), engine=engine)
    assert found.column("n").to_pylist() == [None, None]


@pytest.mark.parametrize("engine", ENGINES)
def test_collecting_a_column_that_is_all_null(engine):
    found = kleene.regex(**PAIRS, output={"n": "Collect(x)"}).match(table(x=pa.nulls(4)), engine=engine)
    found.validate(full=True)
    assert found.column("n").to_pylist() == [[None, None]] * 2
    text = "EVENT SEQ(A a, B+ b[]) WITHIN 2 RETURN collect(b[].x) AS n, sum(b[].x) AS s, a.x + 1 AS p"
    found = kleene.sase(text).match(table(x=pa.nulls(4)), order_by="t", engine=engine)
    assert found.to_pylist() == [{"n": [None], "s": None, "p": None}] * 2


# ---- narrow decimals


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("type_", NARROW_DECIMALS, ids=str)
def test_narrow_decimals_are_cast_to_strings(type_, engine):
    prices = table(x=pa.array([Decimal("1.25"), Decimal("2.50")] * 2, type_))
    text = "EVENT SEQ(A a, B b) WHERE cast(a.x AS string) = '1.25' WITHIN 2 RETURN cast(b.x AS string) AS s, b.x AS x"
    found = kleene.sase(text).match(prices, order_by="t", engine=engine)
    assert found.to_pylist() == [{"s": "2.50", "x": Decimal("2.50")}] * 2
    assert found.schema.field("x").type == type_


# ---- nanoseconds


@pytest.mark.parametrize("measure", ["A.x", "LAST(x)", "FIRST(B.x)", "PREV(A.x)"])
@pytest.mark.parametrize("rows", ["ONE ROW PER MATCH", "ALL ROWS PER MATCH"])
def test_nanoseconds_are_given_out_whatever_the_engine(measure, rows):
    times = table(x=pa.array([10**18 + 1001 * n for n in range(4)], pa.timestamp("ns")))
    clause = IN_PAIRS.format(f"{measure} AS n {rows}")
    found = [kleene.match_recognize(clause).match(times, engine=engine) for engine in ENGINES]
    assert found[0].schema.field("n").type == pa.timestamp("ns")
    assert all(other.equals(found[0]) for other in found)


@pytest.mark.parametrize("engine", ENGINES)
def test_nanoseconds_are_computed_with(engine):
    times = table(x=pa.array([10**18 + 1001 * n for n in range(4)], pa.timestamp("ns")))
    found = kleene.match_recognize(IN_PAIRS.format("B.x - A.x AS n")).match(times, engine=engine)
    assert set(found.column("n").cast(pa.int64()).to_pylist()) == {1001}


@pytest.mark.parametrize("engine", ENGINES)
def test_times_of_day_finer_than_microseconds_are_refused(engine):
    times = table(x=pa.array([1001, 2002, 3003, 4004], pa.time64("ns")))
    with pytest.raises(kleene.SchemaError, match="the column 'x' of type time64"):
        kleene.match_recognize(IN_PAIRS.format("B.x - A.x AS n")).match(times, engine=engine)


# ---- types that only travel


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", [union, sparse_union, bool8])
def test_columns_that_only_travel_are_given_out(make, engine):
    events = table(u=make())
    expected = events.column("u").to_pylist()[::2]
    for found in (
        kleene.sase("EVENT SEQ(A a, B b) WITHIN 2 RETURN a.u AS n").match(events, order_by="t", engine=engine),
        kleene.match_recognize(IN_PAIRS.format("A.u AS n")).match(events, engine=engine),
    ):
        assert found.column("n").to_pylist() == expected
    found = kleene.regex(**PAIRS, output={"n": "u"}).match(events, engine=engine)
    assert found.column("n").to_pylist() == events.column("u").to_pylist()[1::2]


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("make", [union, sparse_union, bool8])
def test_aggregates_of_columns_that_only_travel_name_the_column(make, engine):
    events = table(u=make())
    for query in (
        kleene.regex(**PAIRS, output={"n": "First(u)"}),
        kleene.match_recognize(IN_PAIRS.format("array_agg(u) AS n")),
    ):
        with pytest.raises(kleene.SchemaError, match="values of the column u can only be passed on"):
            query.match(events, engine=engine)
    assert kleene.regex(**PAIRS, output={"n": "Count()"}).match(events, engine=engine).num_rows == 2


def test_values_that_only_travel_travel_in_arrays_too():
    found = kleene.match_recognize(IN_PAIRS.format("array_agg(u) AS n")).match(table(u=union()), engine="generated")
    assert found.column("n").to_pylist() == [[7, 7], [7, 7]]


# ---- several threads


def test_stream_fed_by_two_threads_says_so(monkeypatch):
    progress = kleene.sase("EVENT SEQ(A a, B b) WITHIN 2").progress(table(), order_by="t", engine="generated")
    inner = progress._progress
    inside, go_on = threading.Event(), threading.Event()
    feed = inner._engine.feed

    def slow_feed(*arguments, **options):
        inside.set()
        assert go_on.wait(60)
        return feed(*arguments, **options)

    monkeypatch.setattr(inner._engine, "feed", slow_feed)
    first = threading.Thread(target=lambda: progress.feed(table()))
    first.start()
    assert inside.wait(60)
    for use in (lambda: progress.feed(table()), progress.snapshot, progress.finish):
        with pytest.raises(kleene.ExecutionError, match="being fed by another thread"):
            use()
    go_on.set()
    first.join()
    assert progress.finish().num_rows == 0

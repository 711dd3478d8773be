"""Numbers and times of every width, in every engine: nanoseconds, 38 digits, unsigned, half floats, times of day."""

from datetime import time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import kleene

ENGINES = ["reference", "generated"]
NS = 1_700_000_000_000_000_000


def match(text, engine, **columns):
    names = ["A", "B", "A", "B"][: len(next(iter(columns.values())))]
    table = pa.table({"type": names, **columns})
    if "t" not in columns:
        table = table.append_column("t", pa.array(range(len(names))))
    return kleene.sase(text).match(table, order_by="t", engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_nanoseconds_are_kept_exactly(engine, zone):
    t = pa.array([NS + 1, NS + 5_000_301, NS + 5_000_303], pa.timestamp("ns", zone))
    text = "PATTERN SEQ(A a, B b) RETURN a.t AS a, b.t - a.t AS gap, b.t AS b"
    found = match(text, engine, t=t)
    assert found.schema.field("a").type == pa.timestamp("ns", zone)
    assert found.schema.field("gap").type == pa.duration("ns")
    assert found.column("gap").cast(pa.int64()).to_pylist() == [5_000_300]
    assert found.column("a").cast(pa.int64()).to_pylist() == [NS + 1]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_window_tells_nanoseconds_apart(engine):
    """The last event comes less than the window after the first: one nanosecond decides."""
    for finer, count in ((999_999, 1), (1_000_000, 0)):
        t = pa.array([NS, NS + finer], pa.timestamp("ns"))
        assert match("PATTERN SEQ(A a, B b) WITHIN 1 millisecond RETURN a.t AS a", engine, t=t).num_rows == count


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("b.t - a.t <= 5 milliseconds", 0),
        ("b.t - a.t > 5 milliseconds", 1),
        ("a.t + 5 milliseconds < b.t", 1),
        ("a.t + 5 milliseconds >= b.u", 1),
        ("b.t > b.u", 1),
        ("b.t - b.u = 300 microseconds", 0),
        ("b.t > TIMESTAMP '2023-11-14 22:13:20.005'", 1),
        ("b.t = TIMESTAMP '2023-11-14 22:13:20.005000301'", 1),
        ("b.t > TIMESTAMP '2023-11-14 22:13:20.005000301'", 0),
        ("b.t > DATE '2023-11-14'", 1),
        ("CAST(b.t AS date) = DATE '2023-11-14'", 1),
        ("CAST(b.t AS timestamp) = TIMESTAMP '2023-11-14 22:13:20.005'", 1),
        ("(b.t - a.t) * 2 > 10 milliseconds", 1),
        ("(b.t - a.t) / 1 millisecond > 5.0", 1),
    ],
)
def test_nanoseconds_go_with_microseconds(condition, count, engine):
    t = pa.array([NS + 1, NS + 5_000_301], pa.timestamp("ns"))
    u = pa.array([NS // 1000, NS // 1000 + 5_000], pa.timestamp("us"))
    text = f"PATTERN SEQ(A a, B b) WHERE {condition} RETURN a.t AS a"
    assert match(text, engine, t=t, u=u).num_rows == count


def test_nanoseconds_in_row_patterns_and_in_the_regular_expression_operator():
    table = pa.table({"t": pa.array([NS, NS + 1, NS + 3], pa.timestamp("ns"))})
    rows = kleene.match_recognize("ORDER BY t MEASURES LAST(B.t) - A.t AS d PATTERN (A B+) DEFINE B AS B.t > PREV(B.t)")
    assert rows.match(table).column("d").cast(pa.int64()).to_pylist() == [3]
    regex = kleene.regex(pattern=". b+", order_by="t", predicates={"b": "t > Last(t)"}, output={"d": "Delta(t)"})
    assert regex.match(table).column("d").cast(pa.int64()).to_pylist() == [1]


def test_nanoseconds_as_text_and_in_explain():
    t = pa.array([NS + 1], pa.timestamp("ns"))
    assert match("EVENT A a RETURN CAST(a.t AS string) AS s", "reference", t=t).to_pylist() == [
        {"s": "2023-11-14 22:13:20.000000001"}
    ]
    text = "EVENT A a WHERE a.t > TIMESTAMP '2023-11-14 22:13:20.000000001'"
    query = kleene.sase(text)
    assert "'2023-11-14 22:13:20.000000001'" in repr(query)
    assert kleene.sase(repr(query)[len("<kleene.Query\n") : -1]) == query


WIDE = Decimal("12345678901234567890123456789.01")
WIDER = Decimal("12345678901234567890123456789.02")


@pytest.mark.parametrize("engine", ENGINES)
def test_decimals_of_38_digits_compute(engine):
    d = pa.array([WIDE, WIDER], pa.decimal128(38, 2))
    text = "PATTERN SEQ(A a, B b) WHERE b.d > a.d RETURN b.d - a.d AS gap, a.d + b.d AS total, a.d AS d"
    [row] = match(text, engine, d=d).to_pylist()
    assert row == {"gap": Decimal("0.01"), "total": Decimal("24691357802469135780246913578.03"), "d": WIDE}


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_of_decimals_may_need_more_than_64_bits(engine):
    d = pa.array([Decimal("9" * 16 + ".99")] * 4, pa.decimal128(18, 2))
    text = "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) { a.t < 1 } RETURN sum(b[].d) AS s"
    assert match(text, engine, d=d).to_pylist()[-1] == {"s": 2 * Decimal("9" * 16 + ".99")}


@pytest.mark.parametrize("engine", ENGINES)
def test_wide_decimals_are_keys(engine):
    d = pa.array([WIDE, WIDE, WIDER, WIDE], pa.decimal128(38, 2))
    assert match("PATTERN SEQ(A a, B b) WHERE [d] RETURN a.t AS a, b.t AS b", engine, d=d).to_pylist() == [
        {"a": 0, "b": 1},
        {"a": 0, "b": 3},
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_literal_of_38_digits(engine):
    d = pa.array([WIDE, WIDER], pa.decimal128(38, 2))
    assert match(f"EVENT B b WHERE b.d > {WIDE} RETURN b.t AS t", engine, d=d).num_rows == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_unsigned_integers_of_64_bits(engine):
    x = pa.array([2**64 - 1, 3, 2**63, 2**64 - 1], pa.uint64())
    text = "PATTERN SEQ(A a, B b) WHERE a.x > b.x + 1 RETURN a.x AS a, b.x AS b"
    found = match(text, engine, x=x)
    assert found.schema.field("a").type == pa.uint64()
    assert found.to_pylist() == [{"a": 2**64 - 1, "b": 3}]
    assert match("PATTERN SEQ(A a, B b) WHERE [x] RETURN b.t AS t", engine, x=x).to_pylist() == [{"t": 3}]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("type_", [pa.float16(), pa.float32()])
def test_narrow_floats(engine, type_):
    x = pa.array(np.array([1.5, 2.5], type_.to_pandas_dtype()))
    text = "PATTERN SEQ(A a, B b) WHERE b.x > a.x RETURN b.x - a.x AS d, a.x AS x"
    [row] = match(text, engine, x=x).to_pylist()
    assert row == {"d": 1.0, "x": 1.5}


@pytest.mark.parametrize("engine", ENGINES)
def test_dates_of_64_bits(engine):
    d = pa.array([0, 86_400_000], pa.date64())
    assert match("PATTERN SEQ(A a, B b) WHERE b.d > a.d AND a.d = DATE '1970-01-01'", engine, d=d).num_rows == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("type_", [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")])
def test_times_of_day(engine, type_):
    c = pa.array([time(9, 30), time(16)], type_)
    text = "PATTERN SEQ(A a, B b) WHERE a.c < TIME '10:00' AND b.c > a.c RETURN b.c - a.c AS gap, a.c AS c"
    found = match(text, engine, c=c)
    assert found.schema.field("c").type == type_
    assert found.column("gap").cast(pa.int64()).to_pylist() == [23_400_000_000]
    assert match("EVENT A a RETURN CAST(a.c AS string) AS s", engine, c=c).to_pylist() == [{"s": "09:30:00"}]
    assert "TIME '10:00:00'" in repr(kleene.sase(text))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_date_that_is_written_out_goes_with_instants(engine):
    t = pa.array([NS, NS + 1], pa.timestamp("ns", "UTC"))
    assert match("EVENT A a WHERE a.t >= DATE '2023-11-14' AND a.t < DATE '2023-11-15'", engine, t=t).num_rows == 1
    with pytest.raises(kleene.AnalysisError, match="do not go together"):
        match("EVENT A a WHERE a.t >= a.d", engine, t=t, d=pa.array([1, 2], pa.date32()))

"""The generated engine under attack: hostile names, values at the edges, broken streams, patterns too large."""

from __future__ import annotations

import itertools
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import kleene
from flat_options import arguments
from kleene.analysis.row_pattern import is_row_pattern
from kleene.automaton.compile import automaton_of
from kleene.automaton.nfa import nfa_of
from kleene.engine.choice import choose
from kleene.engine.compiled.regex_code import generate_regex
from kleene.engine.compiled.row_code import generate_rows
from kleene.engine.compiled.sase import generate
from regex_strategies import outcome, same_result

pytestmark = pytest.mark.usefixtures("in_time")
LARGEST, SMALLEST, INF, NAN = 2**63 - 1, -(2**63), float("inf"), float("nan")
ALGORITHMS = ("auto", "basic", "backtrack")


def once_wrong(*cases):  # each with what was wrong
    return [case[0] if len(case) == 2 else pytest.param(*case[:-1]) for case in cases]


def events(types="A", **columns):
    """Events of these types, in turn; without `t`, one after the other."""
    count = len(next(iter(columns.values())))
    return pa.table({"type": [types[n % len(types)] for n in range(count)], "t": range(count)} | columns)


def asked(query, table, **options):
    order = {} if is_row_pattern(query.definition) else {"order_by": "t"}
    return outcome(lambda: query.match(table, **arguments({**order, **options})))


def compressed(query, table, format="all", **options):
    given = arguments({"order_by": "t", **options})
    if format != "all":
        return outcome(lambda: query.explain(table, format=format, compressed=True, **given))
    return outcome(lambda: query.compressed(table, **given).expand())


def agree(query, table, **options):
    """The reference's outcome, which the generated code must have too."""
    query = kleene.sase(query) if isinstance(query, str) else query
    expected = asked(query, table, engine="reference", **options)
    for algorithm in ALGORITHMS[: 1 if is_row_pattern(query.definition) else 3]:
        found = asked(query, table, engine="generated", algorithm=algorithm, **options)
        if isinstance(found, kleene.UnsupportedError) and "characters of code" in found.message:
            found = asked(query, table, engine="auto", algorithm=algorithm, **options)  # it knows another way
        assert same_result(expected, found), (algorithm, expected, found)
    return expected


EVIL = ["'; import os; os.system('x') #", '"""', "\n\\", "{x}", "__class__", "columns", "ki", "def", "é😀\u202e"]


def quoted(name, mark="`"):
    return mark + name.replace(mark, 2 * mark) + mark


def sase_source(kind, column, value, out):
    first, second, name, text = quoted(kind), quoted(kind + "2"), quoted(column), quoted(value, "'")
    where = f"[id] AND a.{name} = {text} AND b.{name} IN ({text}, 'z') AND a.{name} LIKE '%' || {text}"
    query = kleene.sase(f"PATTERN SEQ({first} a, {second} b) WHERE {where} RETURN a.{name} AS {quoted(out)}")
    table = pa.table({"type": [kind, kind + "2"], "t": [1, 2], column: [value] * 2, "id": [value] * 2})
    plan = plan_of(query, table, order_by="t")
    runs = generate(plan.query, nfa_of(plan.query), frozenset(), "merge").source
    return query, table, runs + choose(plan, frozenset()).compiled.generated(frozenset()).source


def row_source(variable, column, value, out):
    one, two, name, out = (quoted(text, '"') for text in (variable, variable + "2", column, out))
    define = f"{one} AS CLASSIFIER() != 'n', {two} AS LAST({one}.{name}) IN ({quoted(value, chr(39))}, 'q')"
    clause = f"PARTITION BY {name} ORDER BY t MEASURES {name} AS {out} PATTERN ({one} {two}?) DEFINE {define}"
    query, table = kleene.match_recognize(clause), pa.table({"t": [1, 2, 3], column: [value, None, value]})
    return query, table, source_of(query, table)


def source_of(query, table, make=generate_rows):
    plan = plan_of(query, table)
    return make(plan.query, automaton_of(plan), frozenset()).source


def plan_of(query, table, **options):
    return query.progress(table, **arguments({"engine": "generated", **options}))._progress._plan


def regex_source(_, column, value, out):
    name, text = quoted(column), quoted(value, "'")
    predicates, output = {"p": f"{name} = {text}", "q": f"Last({name}) = {text}"}, {out: f"Max({name})"}
    query = kleene.regex(pattern="p q*", order_by="t", partition_by=column, predicates=predicates, output=output)
    table = pa.table({"t": [1, 2, 3], column: [value, None, value]})
    return query, table, source_of(query, table, partial(generate_regex, in_blocks=True))


@pytest.mark.parametrize("make", [sase_source, row_source, regex_source])
def test_no_text_of_the_query_is_in_the_code(make):
    plain = ["plain_p", "column_c", "value_v", "out_o"]
    source = make(*plain)[2]
    assert not any(word in source for word in plain)
    for place, text in itertools.product(range(4), EVIL):
        query, table, found = make(*plain[:place], text, *plain[place + 1 :])
        assert found == source
        assert agree(query, table).num_rows


WHOLE = pa.array([LARGEST, SMALLEST, 0, None, -1, 1, 2**53 + 1])
FLOATS = pa.array([NAN, INF, -INF, -0.0, 0.0, 1e308, 5e-324, None, 2.0**63, -(2.0**63)])
LONG = pa.array([*map(Decimal, ("999999999999999999", "-1", "0")), None], pa.decimal128(18, 0))
FINE = pa.array([*map(Decimal, ("9.99999999999999999", "-0.00000000000000001", "0")), None], pa.decimal128(18, 17))


@pytest.mark.parametrize(
    ("values", "conditions"),
    [
        (WHOLE, "v + 1 > 0; v - 1 < 0; -v > 0; abs(v) > 5; v * -1 > 0; v % -1 = 0; v / v = 1; v > 9007199254740992.0"),
        (FLOATS, "NOT v > 0; v * v > 1; v - v = 0; 1 / v > 0; v % v = 0; sqrt(v) >= 0; ln(v) > 0; floor(v) > 0"),
        (FLOATS, "CAST(v AS integer) > 0; power(v, -1) > 0; least(v, 1) < 1; CAST(v AS string) = '-0.0'"),
        (LONG, "v + 1 > 0; v * 10 > 0; v > 0.5; v = 999999999999999999; CAST(v AS decimal(3, 1)) > 0; sqrt(v) > 1"),
        (FINE, "v < 9223372036854775807; floor(v) = -1; ceil(v) = 10; CAST(v AS integer) = 9; round(v, 3) = 10"),
        (WHOLE.cast(pa.timestamp("us")), "v + 5 minutes > v; v - v = 0 seconds; CAST(v AS date) > DATE '1970-01-01'"),
    ],
)
def test_values_at_the_edges(values, conditions):
    for condition in conditions.split("; "):
        for part in (values, *(values.slice(n, 1) for n in range(len(values)))):
            agree(f"PATTERN A a WHERE {condition} RETURN t AS t", events(v=part))


@pytest.mark.parametrize("kind", [pa.float32(), pa.int8(), pa.uint32(), pa.large_string(), pa.timestamp("s")])
def test_columns_of_many_kinds_in_chunks_and_slices(kind):
    table = events("AAB", v=pa.array([1, None, 2, 1, 1, 2]).cast(kind))
    chunked = pa.concat_tables([table.slice(1, 2), table.slice(0, 0), table.slice(3, 3)])
    for part in (table, chunked, table.slice(0, 0), table.slice(4, 1)):
        agree("PATTERN SEQ(A a, B b) WHERE [v]", part)
        agree("PATTERN SEQ(A+ a[], B b) WHERE a[i].v = a[i-1].v AND count(a[].v) > 1", part)
        agree(kleene.match_recognize("PARTITION BY v ORDER BY t MEASURES LAST(v) AS x PATTERN (A B?)"), part)


MANY = "CASE " + " ".join(f"WHEN x = {n} THEN x" for n in range(300)) + " END = x"
ZEROS = "concat(s, CAST(-0.0 AS string)) = 'p-0.0' AND concat(s, CAST(0.0 AS string)) = 'p0.0'"
LISTS, FAR = events(x=pa.array([[1], None])), events("AB", t=pa.array([0, 213503982], pa.int32()).cast(pa.date32()))
ROWS = pa.table({"t": range(60), "x": [1] * 60})


def rows(pattern, define="", mode=""):
    return kleene.match_recognize(f"ORDER BY t MEASURES count(*) AS n {mode} PATTERN ({pattern}) {define}")


@pytest.mark.parametrize(
    ("query", "table"),
    [
        ("PATTERN A a WHERE " + " AND ".join(f"x != {n + 9}" for n in range(300)), events(x=[1, None])),
        (f"PATTERN SEQ(A a, B b) WHERE a.x IN (b.x, {str([*range(1000)])[1:-1]})", events("AB", x=[1, None, 3, 4])),
        ("PATTERN SEQ(A+ a[], B b) WITHIN 2.5", events("AAB", t=[-INF, 0.0, -0.0, 0.5, 0.5, 2.5, INF])),
        (rows("PERMUTE(A, B, C, D, E)", "DEFINE E AS x = 2"), ROWS),
        *once_wrong(
            (rows("(A|B)+", mode="ALL MATCHES"), ROWS, "nothing limits the matches: memory fills"),
            (rows("A ($ | ())", mode="ALL MATCHES"), ROWS, "a match is given out twice"),
            ("PATTERN A a WHERE x = -4611686018427387904", events(x=[0, -(2**62)]), "the place of a string is taken"),
            (f"PATTERN A a WHERE {ZEROS}", events(s=["p"]), "-0.0 and 0.0 are equal, so they get one column"),
            ("PATTERN A a WHERE ceil(x) > 0", events(x=[2.0**63]), "-(-2^63) does not fit"),
            ("PATTERN SEQ(A a, B b) WITHIN 1 day", FAR, "days in microseconds wrap around"),
            ("PATTERN SEQ(A a, !(B b)) WITHIN 1.2", events("AB", t=[3.4, 4.6]), "t - t0 < T is not t < t0 + T"),
            ("PATTERN SEQ(!(B b), A a) WITHIN 5.9", events("BA", t=[1.3, 7.2]), "t1 - t < T is not t > t1 - T"),
            ("PATTERN A a WITHIN 1", events(t=[INF]), "backtrack asks whether an event is in its own window"),
            ("PATTERN A a WHERE x + 1 > 0 AND x < 0", events(x=[LARGEST]), "asked in another order: no error"),
            (f"PATTERN A a WHERE {MANY}", events(x=[1, None]), "SyntaxError: too many nested parentheses"),
            ("PATTERN A a WHERE x IS NULL", LISTS, "values that only travel are made numbers"),
            ("PATTERN A a RETURN NULL AS n", events(x=[1]), "measures cast a decimal to null"),
        ),
    ],
)
def test_the_same_as_the_reference(query, table):
    agree(query, table, run_limit=1_000)


PAIR = kleene.sase("PATTERN SEQ(A a, B b) WHERE [k] RETURN a.t AS a, b.t AS b")
FOLD = [pa.scalar(n, pa.timestamp("us", "Europe/Berlin")) for n in (1729989000000000, 1729992600000000)]
LATE, EARLY = (pa.scalar(n, pa.timestamp("us")) for n in (LARGEST, 0))


def piece(types, *times, k=1, x=0):
    return events(types, t=pa.array(times), k=pa.array([k] * len(times)), x=[x] * len(times))


def opened(query=PAIR, like=None, **options):
    like = piece("A", 0) if like is None else like
    return query.progress(like, **arguments({"order_by": "t", "engine": "generated", **options}))


@pytest.mark.parametrize("text", ["SEQ(A a, B b)", "SEQ(A+ a[], B b) WHERE b.x > a[i].x", "SEQ(A a, !(A n), B b)"])
def test_every_option_agrees_or_says_what_to_do(text):
    query, table = kleene.sase(f"PATTERN {text}"), events("AABAB", x=[1, 2, 3, 4, 5])
    ways = itertools.product(["auto", "generated"], [*ALGORITHMS, "merge"], ["verbose", "compressed"])
    for (engine, algorithm, mode), format_ in itertools.product(ways, ["all", "non_overlapping"]):
        if mode == "compressed":
            found = compressed(query, table, engine=engine, algorithm=algorithm, format=format_)
        else:
            found = asked(query, table, engine=engine, algorithm=algorithm, format=format_)
        expected = asked(query, table, engine="reference", format=format_)
        assert isinstance(found, kleene.UnsupportedError) or same_result(expected, found)


@pytest.mark.parametrize("text", ["SEQ(A+ a[], B b) WHERE a[i].x > avg(a[..i-1].x)", "SEQ(A a, !(C c), B b)"])
def test_long_streams_in_pieces(text):
    chance, count = np.random.default_rng(5), 1_200
    table = events("A", x=chance.integers(0, 9, count), k=chance.integers(0, 3, count))
    table = table.set_column(0, "type", pa.array(chance.choice(["A", "B", "C"], count)))
    query = kleene.sase(f"PATTERN {text} WITHIN 15 RETURN b.t AS b")
    expected, progress, found = agree(query, table), opened(query, table), []
    for begin in range(0, count, 170):
        found += progress.feed(table.slice(begin, 170).select(["k", "x", "t", "type"])).to_pylist()
        found += progress.feed(table.slice(0, 0)).to_pylist()
        progress = opened(query, table, snapshot=progress.snapshot())
    assert found + progress.finish().to_pylist() == expected.to_pylist()


def test_snapshots():
    first = opened()
    first.feed(piece("A", 5))
    snapshot = first.snapshot()
    assert [opened(snapshot=snapshot).feed(piece("B", 6)).num_rows for _ in range(2)] == [1, 1]
    damaged = [snapshot[:n] for n in range(0, len(snapshot), 97)]
    damaged += [snapshot[:n] + bytes([snapshot[n] ^ 4]) + snapshot[n + 1 :] for n in range(0, len(snapshot), 97)]
    for wrong in [*damaged, "text", 5, snapshot + b"x"]:
        with pytest.raises(kleene.SnapshotError):
            opened(snapshot=wrong)


@pytest.mark.parametrize(
    ("before", "then", "options"),
    [
        (piece("A", 1), piece("A", 5).drop_columns(["k"]), {}),
        (piece("A", 1), piece("A", 5, k="no"), {}),
        (piece("A", 100), piece("B", 50), {}),
        (piece("A", 5, x=3), piece("B", 5, x=2), {"tie_break": "x"}),
        pytest.param(piece("A", LATE), piece("A", EARLY), {}),
    ],
)
def test_a_piece_that_does_not_follow_is_refused(before, then, options):
    first = opened(like=before, **options)
    first.feed(before)
    with pytest.raises(kleene.KleeneError):
        opened(like=before, **options, snapshot=first.snapshot()).feed(then)


@pytest.mark.parametrize("keys", once_wrong((FOLD, "equal by the clock on the wall"), ([LATE, LATE], "OverflowError")))
def test_keys_in_pieces(keys):
    parts = [piece("A", 1, k=keys[0]), piece("B", 2, k=keys[1])]
    progress = opened(like=parts[0])
    assert [progress.feed(part).num_rows for part in parts] == [0, agree(PAIR, pa.concat_tables(parts)).num_rows]


def test_after_an_error_nothing_is_given_out():
    progress = opened(run_limit=2, algorithm="basic")
    with pytest.raises(kleene.ExecutionError):
        progress.feed(piece("A", 1, 2, 3))
    with pytest.raises(kleene.KleeneError):
        progress.feed(piece("B", 4))


def test_what_is_held_is_bounded():
    progress, sizes = opened(kleene.sase("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 3"), piece("A", 0, x="x")), []
    for n in range(16):
        progress.feed(events("A", t=range(n * 99, n * 99 + 99), k=[1] * 99, x=[f"text {n} {m}" for m in range(99)]))
        sizes.append(len(progress.snapshot()))
    assert sizes[-1] < 2 * sizes[1]


NEXT, MORE = rows("A", f"DEFINE A AS NEXT(x, {LARGEST}) IS NULL"), rows("|".join(f"V{n}" for n in range(64)))
WAYS = [rows(pattern, "DEFINE C AS x = 2") for pattern in ("A? " * 30 + "C", "(A|B) " * 25 + "C")]
DEEP = kleene.regex(pattern="(" * 15 + "p" + ")+" * 15, order_by="t", predicates={"p": "x = 1"}, output={"n": "t"})
ESCAPE = kleene.sase("PATTERN SEQ(A a, B b) WHERE a.type || b.type LIKE '\x1b[31m\n'")
SOON, AB = kleene.sase("PATTERN SEQ(A a, B b) WITHIN 1"), piece("AB", 1, 2)


@pytest.mark.parametrize(
    "claim",
    once_wrong(
        (lambda: str(LARGEST) not in source_of(NEXT, ROWS), "in machine code row + 2^63-1 wraps, and is read"),
        (lambda: not any(query.match(ROWS, engine="generated").num_rows for query in WAYS), "exponentially many ways"),
        (lambda: MORE.match(ROWS).num_rows == 60, "OverflowError in make_tables, with 'auto' too"),
        (lambda: DEEP.match(ROWS).equals(DEEP.match(ROWS, engine="reference")), "too many states for 'auto'"),
        (lambda: not asked(SOON, events(t=[INF] * 1500), engine="generated").num_rows, "inf - inf: it hangs"),
        (lambda: asked(ESCAPE, AB, engine="generated").message.isprintable(), "text of the query as it is"),
        (lambda: compressed(PAIR, AB, algorithm="backtrack").hint, "half a sentence and no hint"),
        (lambda: agree(PAIR, AB, run_limit=2**63), "OverflowError"),
    ),
)
def test_it_holds(claim):
    with np.errstate(all="ignore"):
        assert claim()


SUMS = f"greatest({', '.join(f'x + {n}' for n in range(300))})"
TEXTS = "max(concat(a[].s, CAST(0.0 AS string))) = 'p0.0' AND max(concat(a[].s, CAST(-0.0 AS string))) = 'p-0.0'"
WIDE = pa.table({"t": [1, 2], "u": pa.array([7, 8], pa.uint64())})
FIRST = kleene.regex(pattern="a b", order_by="t", predicates={"a": "t > 0", "b": "t > 0"}, output={"f": "First(u)"})
ONCE_WRONG = [
    (FIRST, WIDE, "values that only travel are 0 in registers: a wrong answer"),
    (f"PATTERN A+ a[] WHERE {TEXTS}", events(s=["p"]), "-0.0 and 0.0 are equal, so they get one register"),
    (rows("X A", f"DEFINE X AS t = 1, A AS FIRST(x, {LARGEST}) IS NULL"), ROWS, "start + 2^63-1 wraps around"),
    (f"PATTERN A a RETURN {SUMS} AS v", events(x=[1, None]), "measures: SyntaxError, too many nested parentheses"),
]


@pytest.mark.parametrize("case", ONCE_WRONG, ids=lambda case: case[2])
def test_what_was_not_the_same_as_the_reference(case):
    query, table = kleene.sase(case[0]) if isinstance(case[0], str) else case[0], case[1]
    expected = asked(query, table, engine="reference")
    assert same_result(expected, asked(query, table, engine="auto"))
    found = asked(query, table, engine="generated")
    assert isinstance(found, kleene.UnsupportedError) or same_result(expected, found)


def test_a_condition_that_would_fail_is_not_asked_where_nothing_can_follow():
    query = rows("A B", "DEFINE A AS x + 1 > 0, B AS x < 0")
    assert query.match(events(x=[LARGEST, 5]), engine="generated").num_rows == 0

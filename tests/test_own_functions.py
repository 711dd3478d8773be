"""Functions and aggregates of one's own: what is refused, what is machine code, and that all engines agree."""

from __future__ import annotations

import datetime as dt
import math
import types
from collections.abc import Callable
from decimal import Decimal
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kleene
from kleene.engine.compiled.own_machine import NotCompiledError, result_of

EVENTS = pa.table(
    {"type": ["A", "A", "A", "B"], "t": [1, 2, 3, 4], "x": [1.0, 2.0, 9.0, 3.0], "s": ["p", "q", "p", "r"]}
)


def near(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return False
    return abs(left - right) < 1.5


def weighed(state: float, value: float) -> float:
    return 0.5 * state + 0.5 * value


EWMA = kleene.aggregate("ewma", 0.0, weighed)

# --- what is refused -------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[], object], str, int | None]] = {
    "the name of a built-in": (
        lambda: kleene.sase("EVENT A a", functions={"abs": near}),
        "'abs' is a word",
        None,
    ),
    "the name of an aggregate": (
        lambda: kleene.sase("EVENT A a", functions={"Sum": near}),
        "'Sum' is a word",
        None,
    ),
    "one name twice": (lambda: kleene.sase("EVENT A a", functions={"f": near, "F": near}), "two functions", None),
    "no function": (lambda: kleene.sase("EVENT A a", functions=[5]), "must be a function", None),
    "no list": (lambda: kleene.sase("EVENT A a", functions=near), "a list, or a dict by name", None),
    "a lambda in a list": (lambda: kleene.sase("EVENT A a", functions=[lambda x: x]), "has no name", None),
    "not given": (lambda: kleene.sase("EVENT A a WHERE near(a.x, 1)"), "functions=[…]", 17),
    "arguments": (
        lambda: kleene.sase("EVENT A a WHERE near(a.x)", functions=[near]),
        "1 argument is given\n    EVENT A a WHERE near(a.x)",
        17,
    ),
    "arguments of an aggregate": (
        lambda: kleene.sase("PATTERN SEQ(A+ a[], B b) WHERE ewma() > 1", functions=[EWMA]),
        "takes one argument, but none is given",
        32,
    ),
    "one event": (
        lambda: kleene.sase("PATTERN SEQ(A a, B b) WHERE ewma(a.x) > 1", functions=[EWMA]),
        "ewma is over the events of a Kleene variable",
        34,
    ),
    "an output of unknown type": (
        lambda: kleene.sase("EVENT A a RETURN f(a.x) AS y", functions={"f": lambda x: x}),
        "its type is unknown",
        18,
    ),
    "a vectorized function of two events": (
        lambda: kleene.sase(
            "PATTERN SEQ(A a, B b) WHERE big(a.x, b.x)", functions=[kleene.function(pc.greater, "big", vectorized=True)]
        ),
        "in predicates about one event",
        29,
    ),
    "a vectorized function in an output": (
        lambda: kleene.match_recognize(
            "ORDER BY t MEASURES big(A.x) AS b PATTERN (A)",
            functions=[kleene.function(pc.is_nan, "big", vectorized=True)],
        ),
        "in predicates about one event",
        21,
    ),
    "a step of one argument": (lambda: kleene.aggregate("sigma", 0, lambda state: state), "a state and a value", None),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    call, words, column = REFUSED[what]
    with pytest.raises(kleene.AnalysisError) as caught:
        call()
    assert words in str(caught.value)
    assert caught.value.column == column


def test_a_function_that_fails_is_named_with_its_arguments_and_row() -> None:
    def inverse(x: float) -> float:
        return 1 / (x - 9)

    query = kleene.sase("EVENT A a WHERE inverse(a.x) < 5", functions=[inverse])
    for engine in ("reference", "auto"):
        with pytest.raises(kleene.ExecutionError, match=r"'inverse' failed: ZeroDivisionError.*\n.*\(9.0,\) at row 3"):
            query.match(EVENTS, order_by="t", engine=engine)
    progress = query.progress(EVENTS, order_by="t", engine="generated")
    with pytest.raises(kleene.ExecutionError, match=r"'inverse' failed"):
        progress.feed(EVENTS)


# --- purity ----------------------------------------------------------------------------------------------------------


def test_writes_to_what_is_not_its_own_are_told_with_their_line() -> None:
    seen: list[float] = []
    count = 0

    def noted(x: float) -> bool:
        nonlocal count
        count += 1
        seen.append(x)
        return True

    def emptied(values: list[float]) -> bool:
        values[0] = 0.0
        own = [1]
        own.append(2)
        return True

    with pytest.warns(kleene.KleeneWarning) as found:
        kleene.sase("EVENT A a WHERE noted(a.x)", functions=[noted, emptied])
    told = [str(one.message) for one in found]
    first = noted.__code__.co_firstlineno
    assert f"'count', which is not its own ({__file__}, line {first + 2})" in told[0]
    assert f"the outer variable 'seen' ({__file__}, line {first + 3})" in told[1]
    assert f"its argument 'values' ({__file__}, line {emptied.__code__.co_firstlineno + 1})" in told[2]
    assert len(told) == 3


def test_two_answers_for_the_same_arguments_are_told() -> None:
    chance = Random(1)

    def moody(x: float) -> float:
        return x + chance.random()

    query = kleene.sase("EVENT A a WHERE moody(a.x) > 0", functions=[moody])
    with pytest.warns(kleene.KleeneWarning, match="'moody' answered .* and then .* line "):
        query.match(EVENTS, order_by="t", engine="reference")


# --- vectorized functions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["reference", "generated"])
@pytest.mark.parametrize("text", ["EVENT A a WHERE f(a.x, 1.5)", "EVENT A a WHERE g(a.x) > 3 AND f(a.x * 1, 0)"])
def test_vectorized_functions_are_called_once_for_a_batch(engine: str, text: str) -> None:
    calls = []

    def greater(left: pa.Array, right: pa.Array) -> pa.Array:
        calls.append(len(left))
        return pc.greater(left, right)

    functions = [kleene.function(greater, "f", True), kleene.function(lambda x: pc.multiply(x, 2), "g", True)]
    with pytest.warns(kleene.KleeneWarning, match="does not look pure"):
        query = kleene.sase(text, functions=functions)
    assert query.match(EVENTS, order_by="t", engine=engine).num_rows == 2
    assert calls == [4]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: pc.multiply(x, 2), "a condition is an array of booleans"),
        (lambda x: pc.greater(x[:1], 2), "1 values for 4 rows"),
        (lambda x: 5, "must return an Arrow array"),
        (lambda x: x.no, "failed for a batch of 4 rows"),
    ],
)
def test_vectorized_functions_that_go_wrong(function: Callable, words: str) -> None:
    query = kleene.sase("EVENT A a WHERE f(a.x)", functions=[kleene.function(function, "f", vectorized=True)])
    for engine in ("reference", "generated"):
        with pytest.raises(kleene.ExecutionError, match=words):
            query.match(EVENTS, order_by="t", engine=engine)


# --- what is machine code --------------------------------------------------------------------------------------------


def powers(state: int, value: int) -> int:
    return state * value


def counted(state: tuple[float, int], value: float) -> tuple[float, int]:
    return state[0] + value, state[1] + 1


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        (weighed, ("f", "f"), "f"),
        (counted, ("(fi)", "f"), "(fi)"),
        (near, ("f", "f"), "b"),
        (lambda x: None if x < 0 else abs(x) / 2, ("f",), "?f"),
    ],
)
def test_functions_of_numbers_are_compiled(function: Callable, arguments: tuple[str, ...], result: str) -> None:
    assert result_of(function, arguments) == result


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (powers, ("i", "i"), "beyond 64 bits"),
        (lambda x: [x][0] if x else {}, ("f",), "numba cannot compile it"),
        (lambda x: sum(i for i in range(x)), ("i",), "."),
    ],
)
def test_other_functions_are_not(function: Callable, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(NotCompiledError, match=words):
        result_of(function, arguments)


def engine_line(query: kleene.Query, **options: str) -> str:
    return next(line for line in query.explain(EVENTS, **options).splitlines() if line.startswith("engine"))


def test_explain_says_why_a_function_is_not_machine_code() -> None:
    pattern = "PATTERN SEQ(A+ a[], B b) WHERE ewma(a[].x) > 1 AND f(a[1].s, b.s)"
    text = kleene.sase(pattern, functions={"ewma": EWMA, "f": lambda left, right: left < right})
    assert "as plain Python, since" in engine_line(text, order_by="t")
    numbers = kleene.sase("PATTERN SEQ(A+ a[], B b) WHERE ewma(a[].x) > 1", functions=[EWMA])
    assert "machine code" in engine_line(numbers, order_by="t")


# --- all engines agree -----------------------------------------------------------------------------------------------


def mean(state: tuple[float, int]) -> float | None:
    return None if state[1] < 2 else state[0] / state[1]


def apart(left: float | None, right: float | None) -> float | None:
    return None if left is None else 1 / (left if right is None else left - right + 0.1)


def span_step(state: tuple[int, int, int], value: int) -> tuple[int, int, int]:
    low, high, count = state
    return (value, value, 1) if count == 0 else (min(low, value), max(high, value), count + 1)


def span(state: tuple[int, int, int]) -> int:
    return state[1] - state[0]


FUNCTIONS = [
    near,
    apart,
    EWMA,
    kleene.aggregate("centre", (0.0, 0), counted, mean),
    kleene.aggregate("width", (0, 0, 0), span_step, span),
]
AGREED: dict[str, tuple[Callable[[], kleene.Query], dict[str, str]]] = {
    "runs": (
        lambda: kleene.sase(
            """PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [k] AND apart(a[i].x, a[i-1].x) > 0.3
            AND ewma(a[..i-1].x) < a[i].x + 3 AND width(a[].n) < 6 AND centre(a[].x) > 1 } WITHIN 12
            RETURN a[1].t AS t, b.t AS u, count(a[]) AS n, ewma(a[].x) AS e, centre(a[].x) AS c, width(a[].n) AS w""",
            functions=FUNCTIONS,
        ),
        {"order_by": "t"},
    ),
    "all combinations": (
        lambda: kleene.sase(
            """PATTERN SEQ(A+ a[], B b) WHERE [k] AND ewma(a[..i-1].x) < a[i].x AND centre(a[].x) < b.x WITHIN 9
            HAVING width(a[].n) > 0 RETURN a[1].t AS t, b.t AS u, ewma(a[].x) AS e""",
            functions=FUNCTIONS,
        ),
        {"order_by": "t"},
    ),
    "sequences": (
        lambda: kleene.sase(
            "EVENT SEQ(A a, !(A c), B b) WHERE [k] AND apart(a.x, b.x) > 0.2 AND near(c.x, b.x) WITHIN 8 "
            "RETURN a.t AS t, b.t AS u, apart(b.x, a.x) AS d",
            functions=FUNCTIONS,
        ),
        {"order_by": "t"},
    ),
    "rows": (
        lambda: kleene.match_recognize(
            """PARTITION BY k ORDER BY t MEASURES A.t AS t, LAST(B.t) AS u, ewma(B.x) AS e, centre(x) AS c,
            width(B.n) AS w AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ C?) WITHIN 20 MAXLENGTH 9
            DEFINE B AS apart(B.x, PREV(B.x)) > 0.1 AND width(B.n) < 6, C AS ewma(B.x) < C.x""",
            functions=FUNCTIONS,
        ),
        {},
    ),
    "regex": (
        lambda: kleene.regex(
            pattern=". up+ down",
            partition_by="k",
            order_by="t",
            predicates={"up": "apart(x, Last(x)) > 0.1 and width(n) < 7", "down": "ewma(x) > x"},
            output={"t": "t", "e": "ewma(x)", "c": "centre(x)", "w": "width(n)"},
            functions=FUNCTIONS,
        ),
        {},
    ),
}


def some_events(seed: int, count: int = 60) -> pa.Table:
    chance = Random(seed)

    def value(draw: Callable[[], object]) -> object:
        return None if seed % 2 and chance.random() < 0.15 else draw()

    return pa.table(
        {
            "type": [chance.choice("AAB") for _ in range(count)],
            "t": pa.array(range(count), pa.int64()),
            "k": [chance.randrange(2) for _ in range(count)],
            "x": pa.array([value(lambda: chance.randrange(24) / 4) for _ in range(count)], pa.float64()),
            "n": pa.array([value(lambda: chance.randrange(-4, 8)) for _ in range(count)], pa.int64()),
        }
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", AGREED)
def test_generated_code_finds_what_the_interpreter_finds(kind: str, seed: int) -> None:
    make, options = AGREED[kind]
    query, events = make(), some_events(seed)
    expected = outcome(lambda: query.match(events, engine="reference", **options))
    assert outcome(lambda: query.match(events, engine="generated", **options)) == expected


@pytest.mark.parametrize("kind", ["runs", "sequences", "rows", "regex"])
def test_machine_code_finds_what_the_interpreter_finds(kind: str) -> None:
    make, options = AGREED[kind]
    query, some = make(), 0
    for seed in range(1, 17, 2):  # all with NULLs, so that code is made once
        events = some_events(seed)
        expected = outcome(lambda events=events: query.match(events, engine="reference", **options))
        assert outcome(lambda events=events: query.match(events, engine="compiled", **options)) == expected
        some += isinstance(expected, list) and len(expected) > 0
    assert some > 4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", AGREED)
def test_pieces_find_what_the_whole_finds(kind: str, seed: int) -> None:
    make, options = AGREED[kind]
    query, chance, events = make(), Random(seed), some_events(2 * seed)
    expected = sorted(map(repr, query.match(events, engine="reference", **options).to_pylist()))
    options = options | {"engine": "generated"}
    progress, found, row = query.progress(events, **options), [], 0
    while row < events.num_rows:
        size = chance.randrange(1, 15)
        found += progress.feed(events.slice(row, size)).to_pylist()
        row += size
        if chance.random() < 0.5:
            progress = query.progress(events, **options, snapshot=progress.snapshot())
    found += progress.finish().to_pylist()
    assert sorted(map(repr, found)) == expected


@pytest.mark.parametrize("engine", ["generated", "compiled"])
def test_an_error_in_machine_code_is_that_of_python(engine: str) -> None:
    def inverse(left: float, right: float) -> float:
        return 1 / (left - right)

    query = kleene.sase("EVENT SEQ(A a, B b) WHERE b.x < 5 OR inverse(a.x, b.x) > 0", functions=[inverse])
    assert query.match(EVENTS, order_by="t", engine=engine).num_rows == 3  # it need not be called
    equal = EVENTS.set_column(2, "x", pa.array([1.0, 2.0, 9.0, 9.0]))
    with pytest.raises(kleene.ExecutionError, match=r"'inverse' failed: ZeroDivisionError.*\n.*\(9.0, 9.0\) at row 4"):
        query.match(equal, order_by="t", engine=engine)


@pytest.mark.parametrize("engine", ["reference", "generated"])
def test_a_result_without_an_annotation_is_compared_with_decimals_and_fine_times(engine: str) -> None:
    events = pa.table(
        {
            "type": ["A", "B"],
            "t": [1, 2],
            "d": pa.array([Decimal("1.50"), Decimal("2.50")]),
            "u": pa.array([1_000_000_000, 2_000_000_000], pa.timestamp("ns")),
        }
    )

    def found(condition: str, function: Callable) -> int:
        query = kleene.sase(f"EVENT SEQ(A a, B b) WHERE {condition}", functions={"f": function})
        return query.match(events, order_by="t", engine=engine).num_rows

    assert [found("f(a.d, b.d) < b.d", lambda a, b, x=x: float(a) + x) for x in (0.5, 1.5)] == [1, 0]
    assert [found("f(a.u, b.u) < b.u", lambda a, b, n=n: a + dt.timedelta(seconds=n)) for n in (0, 1)] == [1, 0]


def outcome(call: Callable[[], pa.Table]) -> list[str] | str:
    try:
        return list(map(repr, call().to_pylist()))
    except kleene.ExecutionError as error:
        return error.message


# --- machine code answers what Python answers ---

LIMIT = 5.0
EDGES: dict[str, Callable[..., bool]] = {
    "rounding": lambda x, y, i, j: round(x + (y - y), 2) == 1.11,
    "the root of a negative number": lambda x, y, i, j: math.sqrt(y) > x,
    "a power that overflows": lambda x, y, i, j: (x * 1e10) ** 1000.0 > y,
    "a whole number of a large float": lambda x, y, i, j: math.floor(x * 1e30) > 0 and y < 0,
    "a whole number beside a float": lambda x, y, i, j: i > 9007199254740992.0 + (y - y),
    "a sum of whole numbers beside a float": lambda x, y, i, j: i + j > 9007199254741063.0 + (y - y),
    "bits moved out": lambda x, y, i, j: (i >> j) == 0,
    "the smaller of no number": lambda x, y, i, j: min(x - x, y * 1e308 * 10 - y * 1e308 * 10) == 0.0,
    "the larger of no number": lambda x, y, i, j: max(y * 1e308 * 10 - y * 1e308 * 10, x) == x,
    "a division by zero": lambda x, y, i, j: x / (y - y) > 0,
    "a remainder": lambda x, y, i, j: x % y == 1.115 % -4.0 and i % -j == (2**53 + 1) % -70,
    "a global": lambda x, y, i, j: x - y > LIMIT,
}


@pytest.mark.parametrize("name", EDGES)
def test_functions_at_the_edges_of_numbers(name: str) -> None:
    events = pa.table({"type": ["A", "B"], "t": [1, 2], "x": [1.115, -4.0], "i": [2**53 + 1, 70]})

    edge = types.FunctionType(EDGES[name].__code__, globals(), "edge")
    edge.__annotations__ = {"x": float, "y": float, "i": int, "j": int, "return": bool}
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE edge(a.x, b.x, a.i, b.i) RETURN a.t AS t", functions=[edge])
    found = set()
    for engine in ("reference", "generated", "compiled"):
        try:
            found.add(query.match(events, order_by="t", engine=engine).num_rows)
        except kleene.UnsupportedError:  # it is left to Python
            continue
        except kleene.ExecutionError as error:
            found.add(str(error).splitlines()[0])
    assert len(found) == 1, found


def test_a_global_that_changes_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    events = pa.table({"type": ["A", "B"], "t": [1, 2], "x": [100.0, 1.0]})

    def far(x: float, y: float) -> bool:
        return x - y > LIMIT

    query = kleene.sase("EVENT SEQ(A a, B b) WHERE far(a.x, b.x) RETURN a.t AS t", functions=[far])
    with pytest.raises(kleene.UnsupportedError, match="it reads 'LIMIT' from outside"):
        query.match(events, order_by="t", engine="compiled")
    assert query.match(events, order_by="t", engine="generated").num_rows == 1
    monkeypatch.setitem(globals(), "LIMIT", 500.0)
    assert query.match(events, order_by="t", engine="generated").num_rows == 0


def test_vectorized_functions_and_timeouts() -> None:
    events = pa.table({"type": ["A", "A", "B"], "t": [1, 2, 9], "x": [1, 3, 5]})
    large = kleene.function(lambda values: pc.greater(values, 2), "large", vectorized=True)
    query = kleene.sase("EVENT SEQ(A a, B b) WHERE large(a.x) WITHIN 1 RETURN a.t AS t", functions=[large])
    found = query.match(events, order_by="t", timeouts=True).to_pylist()
    assert found == [{"t": 2, "timed_out": True}]


def test_what_cannot_be_a_function_or_its_result_is_told() -> None:
    class Odd:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x: int) -> bool:
            return True

    events = pa.table({"type": ["A"], "t": [1], "x": [1]})
    with pytest.raises(kleene.AnalysisError, match="told apart by their hash"):
        kleene.sase("EVENT A a WHERE odd(a.x)", functions={"odd": Odd()})
    with pytest.raises(kleene.AnalysisError, match="'case' is a word"):
        kleene.sase("EVENT A a", functions={"case": abs})

    def half(x: int) -> str:
        return "\ud800"

    with pytest.raises(kleene.ExecutionError, match="returned"):
        kleene.sase("EVENT A a RETURN half(a.x) AS h", functions=[half]).match(events, order_by="t")
    exact = kleene.sase("EVENT A a WHERE exact(a.x) > 1", functions={"exact": lambda x: Decimal("1.5")})
    assert exact.match(events, order_by="t").num_rows == 1


def test_a_time_that_python_cannot_hold_is_an_error_of_the_aggregate() -> None:
    times = pa.array([2**62, 2**62], pa.timestamp("us"))
    events = pa.table({"type": ["A", "A"], "t": [1, 2], "ts": times})
    number = kleene.aggregate("number", start=0, step=lambda count, value: count + 1)
    query = kleene.sase("EVENT A+ a[] RETURN number(a[].ts) AS n", functions=[number])
    with pytest.raises(kleene.ExecutionError, match="the aggregate 'number' failed"):
        query.match(events, order_by="t")

"""Functions, notations, arrays, structs and maps in expressions, in process: what they give, and what is refused."""

from __future__ import annotations

import time
from datetime import datetime

import pyarrow as pa
import pytest

import kleene
from kleene.ir.functions import regexes

H = pa.table({"t": list(range(1, 9)), "c": [20, 24, 27, 23, 22, 25, 25, 19]})
UP = "PATTERN (S UP+) DEFINE UP AS UP.c > PREV(UP.c)"


def rows(measures: str, events: pa.Table = H, pattern: str = "PATTERN (A)") -> list[dict[str, object]]:
    return kleene.match_recognize(f"ORDER BY t MEASURES {measures} {pattern}").match(events).to_pylist()


def value(expression: str, events: pa.Table = H) -> object:
    return rows(f"{expression} AS v", events)[0]["v"]


def refused(expression: str, events: pa.Table = H) -> str:
    with pytest.raises(kleene.KleeneError) as caught:
        value(expression, events)
    return str(caught.value)


# --- what is needed is evaluated, and no more


@pytest.mark.parametrize("engine", ["reference", "generated"])
@pytest.mark.parametrize(
    "condition",
    [
        "if(c < 100, TRUE, CAST(s AS int) > 0)",
        "coalesce(c, CAST(s AS int)) > 0",
        "nvl(c, CAST(s AS int)) > 0",
        "nvl2(c, TRUE, CAST(s AS int) > 0)",
        "CASE WHEN c < 100 THEN TRUE ELSE CAST(s AS int) > 0 END",
        "c < 100 OR CAST(s AS int) > 0",
        "NOT (c > 100 AND CAST(s AS int) > 0)",
        "coalesce(c, 9223372036854775807 + c) > 0",
    ],
)
def test_an_error_in_a_branch_that_is_not_taken_is_none(engine: str, condition: str) -> None:
    query = kleene.match_recognize(f"ORDER BY t MEASURES count(*) AS n PATTERN (A+) DEFINE A AS {condition}")
    events = H.append_column("s", pa.array(["x"] * 8))
    assert query.match(events, engine=engine).to_pylist() == [{"n": 8}]


def test_functions_stand_in_every_language() -> None:
    events = H.append_column("type", pa.array(["A"] * 8)).append_column("s", pa.array(list("pqpqpqpq")))
    sase = kleene.sase(
        """EVENT SEQ(A a, A b)
        WHERE skip_till_next_match(a, b) {
            pmod(b.c - a.c, 3) = 1 AND a.s RLIKE '^p' AND concat_ws('', a.s, b.s) = 'pq' }
        RETURN if(a.c > 20, 'high', 'low') AS v, b.c::string AS w, array(a.c, b.c) AS x"""
    )
    assert sase.match(events, order_by="t").to_pylist()[0] == {"v": "low", "w": "24", "x": [20, 24]}
    regex = kleene.regex(
        pattern="a b",
        partition_by="type",
        order_by="t",
        predicates={"a": "mod(c, 2) = 0", "b": "s RLIKE 'q' AND left(s, 1) = 'q'"},
        output={"n": "Count()"},
    )
    assert regex.match(events).num_rows == 2


# --- notations


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("-1::string", "-1"),
        ("-c::string::int", -20),
        ("2 * c::string::int", 40),
        ("c::decimal(5, 2)::string", "20.00"),
        ("'7'::int + 1", 8),
        ("EXTRACT(YEAR FROM DATE '2024-05-06')", 2024),
        ("EXTRACT(SECOND FROM TIMESTAMP '2024-05-06 01:02:03.25')::string", "3.250000"),
        ("TRY_CAST('x' AS int)", None),
        ("TRY_CAST('99999999999999999999' AS int)", None),
        ("TRY_CAST(12345 AS decimal(3, 1))", None),
        ("'abc' RLIKE 'b' AND NOT 'abc' RLIKE 'x' AND 'abc' NOT RLIKE '^b'", True),
        ("ARRAY[1, 2, c]", [1, 2, 20]),
        ("ARRAY[]", []),
        ("array(1, 2.5)", [1.0, 2.5]),
        ("(array(c, 5))[1]", 5),
        ("array(c, 5)[-1]", None),
        ("array(c, 5)[t]", 5),
        ("named_struct('A', c).a", 20),
        ("named_struct('a', named_struct('b', array(c)))['a'].b[0]", 20),
        ("map('k', 1, 'l', 2).l", 2),
        ("map(1, 'x')[1.0]", "x"),
        ("struct(c, c + 1)", {"c": 20, "col2": 21}),
        ("element_at(map('a', c), 'a')", 20),
        ("concat(array(1), array(c))", [1, 20]),
        ("reverse(array(1, c))", [20, 1]),
        ("cardinality(map('a', 1))", 1),
        ("array_max(array(0.0 / 0, 1)) IS NULL", False),
        ("array_join(array('a', NULL, 'b'), '-', '?')", "a-?-b"),
        ("array_contains(array(1, NULL), 2)", None),
        ("array(1, NULL) = array(1, NULL)", True),
        ("array(1, NULL) <> array(1, 2)", True),
        ("struct(1, 'a') = named_struct('p', 1.0, 'q', 'a')", True),
        ("array(array(1)) IN (array(array(2)), array(array(1)))", True),
        ("coalesce(NULL, array(1))", [1]),
        ("nullif(array(1), array(1))", None),
        ("map_keys(map_from_arrays(array('a', 'b'), array(1, 2)))", ["a", "b"]),
    ],
)
def test_expression(expression: str, expected: object) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("-CAST(1 AS string)", "needs a number"),
        ("x -> x", "unexpected"),
        ("upper(x -> x)", "a lambda can only be an argument of a function of Spark's own"),
        ("array(1)[1", "never closed"),
        ("c.x", "no part 'x'"),
        ("(c + 1).x", "an array, a struct or a map, but this is an integer"),
        ("named_struct('a', 1).b", "no field 'b'"),
        ("named_struct('a', 1, 'a', 2)", "one field twice"),
        ("named_struct(c, 1)", "literal string"),
        ("array(1, 'a')", "do not go together"),
        ("array(1)['a']", "a whole number"),
        ("map('a', 1)[TRUE]", "keys of type string"),
        ("map(array(1), 1)", "cannot be the key of a map"),
        ("map('a', 1, 'a', 2)", "one key twice"),
        ("map(nullif(1, 1), 2)", "NULL cannot be the key"),
        ("map('a')", "a value for each key"),
        ("map('a', 1) = map('a', 1)", "cannot compare maps"),
        ("array(1) < array(2)", "needs a plain value"),
        ("greatest(array(1), array(2))", "needs a plain value"),
        ("max(array(c))", "needs a plain value"),
        ("array_agg(c ORDER BY array(c))", "needs a plain value"),
        ("CAST(array(1) AS string)", "cannot convert an array"),
        ("array(1) || 'x'", "do not go together"),
        ("element_at(array(1), 0)", "counts places from 1"),
        ("split_part('a', ',', 0)", "counts parts from 1"),
        ("lpad('a', 1000000000)", "1,000,000 are allowed"),
        ("unix_timestamp('2024-01-01 00:00:00')", "does not say in which zone"),
        ("date_part('CENTURY', DATE '2024-01-01')", "unknown part of a time"),
        ("year(5)", "needs a date or a time"),
        ("if(c, 1, 2)", "needs a condition first"),
        ("nvl(1)", "nvl takes 2 arguments, not 1"),
        ("size(c)", "an array or a map"),
    ],
)
def test_expression_is_refused(expression: str, said: str) -> None:
    assert said in refused(expression)


# --- regular expressions


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"(a)\1", r"a(?=b)", r"(?<!a)b", r"(?>a)b", "a*+", r"\bword\b", "[a[b]]", "[a&&b]", r"\p{Alpha}", "(?m)a$"),
        *("a$b", "(a$)", r"\Z", r"\Qa\E", "a**", "{2}", "(", ")", "[", "a{3,1}", "\\", "[z-a]", "(?x)a", r"\v"),
        *(r"[\d-z]", "(a{1000}){1000}"),
    ],
)
def test_pattern_that_does_not_mean_the_same_everywhere_is_refused(pattern: str) -> None:
    with pytest.raises(kleene.AnalysisError, match="the regular expression cannot be used"):
        value("'x' RLIKE '" + pattern + "'")


def test_pattern_of_a_column_is_looked_at_when_it_is_used() -> None:
    events = pa.table({"t": [1], "s": ["abc"], "p": ["(?=b)"]})
    assert "the regular expression '(?=b)' cannot be used" in refused("regexp_like(s, p)", events)


def test_hostile_pattern_takes_no_longer_than_the_text_is_long() -> None:
    start = time.perf_counter()
    assert not regexes.is_found("a" * 20_000 + "b", "^(a+)+$")
    assert not regexes.is_found("a" * 20_000 + "b", "^(a|aa|a?)*c")
    assert time.perf_counter() - start < 5


# --- times


def test_times_of_a_zone_that_nobody_knows_are_refused() -> None:
    events = pa.table({"t": [1], "z": pa.array([0], pa.timestamp("us", "Mars/Base"))})
    assert "the time zone 'Mars/Base' is not known here" in refused("hour(z)", events)


def test_times_are_read_on_the_clock_of_their_zone() -> None:
    moment = datetime.fromisoformat("2024-06-30T22:30:00+00:00")
    events = pa.table({"t": [1], "z": pa.array([moment], pa.timestamp("us", "Europe/Berlin"))})
    assert rows("day(z) AS d, hour(z) AS h, unix_timestamp(z) AS u", events) == [{"d": 1, "h": 0, "u": 1719786600}]
    offset = pa.table({"t": [1], "z": pa.array([moment], pa.timestamp("us", "+05:30"))})
    assert rows("hour(z) AS h, minute(z) AS m", offset) == [{"h": 4, "m": 0}]


def test_parts_of_times_in_nanoseconds() -> None:
    events = pa.table({"t": [1], "n": pa.array([1_719_786_615_123_456_789], pa.timestamp("ns"))})
    assert rows("second(n) AS s, unix_timestamp(n) AS u, EXTRACT(SECOND FROM n)::string AS e", events) == [
        {"s": 15, "u": 1719786615, "e": "15.123456"}
    ]


# --- arrays, structs and maps of the input

NESTED = pa.table(
    {
        "t": [1, 2, 3],
        "a": pa.array([[1, 2], None, [None, 4]], pa.list_(pa.int32())),
        "l": pa.array([["x"], [], None], pa.large_list(pa.large_string())),
        "r": pa.array([{"p": 1, "q": ["a"]}, {"p": None, "q": None}, None]),
        "m": pa.array([[("k", 1.5)], [], None], pa.map_(pa.string(), pa.float64())),
        "w": pa.array([[datetime(2024, 1, 1)], [], None], pa.list_(pa.timestamp("us"))),
    }
)


def test_nested_columns_are_values() -> None:
    found = rows(
        """size(a) AS n, array_contains(a, 4) AS c, l[0] AS l, (r).q AS q, map_keys(m) AS k,
        array_max(w) AS w, a = array(1, 2) AS e, r.p + 1 AS p""",
        NESTED,
    )
    now = datetime(2024, 1, 1)
    assert found[0] == {"n": 2, "c": False, "l": "x", "q": ["a"], "k": ["k"], "w": now, "e": True, "p": 2}
    assert found[1] == {"n": None, "c": None, "l": None, "q": None, "k": [], "w": None, "e": None, "p": None}
    assert found[2] == {"n": 2, "c": True, "l": None, "q": None, "k": None, "w": None, "e": False, "p": None}


@pytest.mark.parametrize("engine", ["reference", "generated"])
def test_nested_columns_are_given_out_as_they_came(engine: str) -> None:
    query = kleene.match_recognize("ORDER BY t MEASURES FIRST(r) AS r, LAST(m) AS m, array_agg(a) AS a PATTERN (A B C)")
    found = query.match(NESTED, engine=engine)
    assert found.schema.field("r").type == NESTED.schema.field("r").type
    assert found.schema.field("m").type == NESTED.schema.field("m").type
    assert found.to_pylist() == [{"r": {"p": 1, "q": ["a"]}, "m": None, "a": [[1, 2], None, [None, 4]]}]


@pytest.mark.parametrize(
    "condition",
    [
        *("A.a IS NULL", "size(A.a) = 2", "array_contains(A.a, 4)", "A.r.p = 1", "A.a <> array(1, 2)"),
        *("PREV(A.a) IS NULL", "nvl(size(PREV(A.a)), 0) = 2", "A.m['k'] > 1", "(A.a) IS NULL"),
    ],
)
def test_conditions_on_nested_columns_compile(condition: str) -> None:
    query = kleene.match_recognize(f"ORDER BY t MEASURES LAST(t) AS t PATTERN (A) DEFINE A AS {condition}")
    expected = query.match(NESTED, engine="reference").to_pylist()
    assert query.match(NESTED, engine="generated").to_pylist() == expected


def test_maps_with_one_key_twice_have_the_first() -> None:
    keys = pa.MapArray.from_arrays([0, 2], pa.array(["k", "k"]), pa.array([1, 2]))
    assert value("(m)['k']", pa.table({"t": [1], "m": keys})) == 1


def test_python_functions_get_nested_values() -> None:
    seen = []
    events = pa.table({"g": [1], "t": [1], "r": [{"p": 1}], "a": [[1, 2]]})
    with pytest.warns(kleene.KleeneWarning, match="outer variable 'seen'"):
        query = kleene.regex(
            pattern="x",
            partition_by="g",
            order_by="t",
            predicates={"x": "f(r, a)"},
            output={"n": "Count()"},
            functions={"f": lambda r, a: seen.append((r, a)) or True},
        )
    assert query.match(events, engine="reference").num_rows == 1
    assert seen[0] == ({"p": 1}, [1, 2])


# --- decimals


def test_sums_and_averages_of_decimals_have_the_digits_of_spark() -> None:
    found = kleene.match_recognize(
        "ORDER BY t MEASURES sum(CAST(c AS decimal(12, 2))) AS s, avg(CAST(c AS decimal(12, 2))) AS a, "
        "avg(CAST(c AS decimal(38, 36))) AS w PATTERN (A{3})"
    ).match(pa.table({"t": [1, 2, 3], "c": [0, 1, 1]}))
    assert [field.type for field in found.schema] == [pa.decimal128(22, 2), pa.decimal128(16, 6), pa.decimal128(38, 38)]
    assert list(map(str, found.to_pylist()[0].values())) == ["2.00", "0.666667", "0." + "6" * 37 + "7"]


@pytest.mark.parametrize("engine", ["reference", "generated"])
def test_averages_of_decimals_are_exact_in_conditions(engine: str) -> None:
    events = pa.table({"t": [1, 2], "d": pa.array([1, 2], pa.decimal128(20, 0))})
    query = kleene.match_recognize(
        "ORDER BY t MEASURES count(*) AS n PATTERN (A B) DEFINE B AS avg(d) = 1.5 AND avg(-d) = -1.5"
    )
    assert query.match(events, engine=engine).to_pylist() == [{"n": 2}]


# --- conditions that are compiled

LABELS = [
    "coalesce(PREV(CLASSIFIER()) = 'A', TRUE)",
    "FIRST(CLASSIFIER()) = 'A' OR count(*) = 1",
    "coalesce(LAST(CLASSIFIER(), 1) <> CLASSIFIER(), TRUE)",
    "NEXT(CLASSIFIER()) IS NULL",
    "coalesce(FIRST(CLASSIFIER(U), 1) <> 'C', TRUE)",
    "coalesce(PREV(LAST(CLASSIFIER(A)), 1) = 'B', c > 20)",
    "length(coalesce(PREV(s), '')) < 2",
    "substring(FIRST(A.s), 1, 1) = substring(s, 1, 1)",
    "date_diff(d, A.d) >= 0",
]


@pytest.mark.parametrize("condition", LABELS)
@pytest.mark.parametrize("pattern", ["(A | B | C)+", "(B | A) C* B?"])
def test_conditions_on_other_rows_have_code(condition: str, pattern: str) -> None:
    events = H.append_column("s", pa.array(["x", "y", None, "xy", "x", "", "z", "x"])).append_column(
        "d", pa.array([1, 2, 2, None, 1, 5, 6, 7], pa.int32()).cast(pa.date32())
    )
    query = kleene.match_recognize(
        f"""ORDER BY t MEASURES array_agg(t) AS ts, array_agg(CLASSIFIER()) AS k AFTER MATCH SKIP TO NEXT ROW
        PATTERN ({pattern}) SUBSET U = (B, C) DEFINE B AS {condition}, C AS c > 22 AND ({condition})"""
    )
    expected = query.match(events, engine="reference")
    assert expected.num_rows > 1
    assert query.match(events, engine="generated").equals(expected)


def test_explain_names_what_has_no_code() -> None:
    query = kleene.match_recognize(
        "ORDER BY t MEASURES count(*) AS n PATTERN (A B) DEFINE B AS concat(A.s, B.s) = 'xy'"
    )
    assert "concat over several events" in query.explain(pa.table({"t": [1, 2], "s": ["x", "y"]}))

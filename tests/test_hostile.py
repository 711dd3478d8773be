"""Bad input of any kind gets a KleeneError that can be read, within seconds; what is accepted gives a sound answer."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kleene
from flat_options import arguments
from hostile_texts import outcome
from kleene.ir.text import query_text
from quick import first_is_quick

LARGEST, SMALLEST = 2**63 - 1, -(2**63)
SURROGATE = "\ud800"


pytestmark = pytest.mark.usefixtures("in_time")


def check_message(error: kleene.KleeneError) -> str:
    text = str(error)
    text.encode()  # a terminal and a log file can take it
    assert 10 < len(text) < 3_000
    assert error.message.isprintable()
    for foreign in ("Traceback", "object has no attribute", "decimal.", "lark."):
        assert foreign not in error.message
    return text


def refused(call: Any, *says: str) -> kleene.KleeneError:
    with pytest.raises(kleene.KleeneError) as caught:
        call()
    text = check_message(caught.value)
    for fragment in says:
        assert fragment in text
    return caught.value


def answered(call: Any) -> Any:
    """What the call gives: a result, or an error in the place of one, but no other error."""
    try:
        return call()
    except kleene.KleeneError as error:
        check_message(error)
        return error


def matched(text: str, events: Any, **options: Any) -> pa.Table:
    found = kleene.sase(text).match(events, **arguments({"order_by": "t", **options}))
    found.validate(full=True)
    assert len(set(found.column_names)) == len(found.column_names)
    return found


def explained(text: str, events: Any = None, **options: Any) -> str:
    query = kleene.sase(text)
    return repr(query) + query.explain(events, **options) + query.explain(events, **options, dot=True)


EVENTS = pa.table({"type": ["A", "B", "A", "B"], "t": [1, 2, 3, 4], "x": [1, 2, 3, 4], "s": ["a", "b", "c", None]})
WHERE = "EVENT SEQ(A a, B b) WHERE "


def one_event(**columns: pa.Array) -> pa.Table:
    return pa.table({"type": ["A"], "t": [1], **columns})


def value(expression: str, **columns: pa.Array) -> Any:
    """The expression's value for one event `a` of these columns."""
    return matched(f"EVENT A a RETURN {expression} AS v", one_event(**columns)).column("v")[0].as_py()


# --- texts of great size or depth ----------------------------------------------------------------------------------


def nested(inner: str, shell: str, times: int) -> str:
    for _ in range(times):
        inner = shell.replace("@", inner)
    return inner


HUGE_REFUSED = {
    "a_megabyte_of_(": "(" * 999_999,
    "a_megabyte_of_[": "[" * 999_999,
    "a_megabyte_of_{": "{" * 999_999,
    "a_megabyte_of_)": ")" * 999_999,
    "mixed_brackets": "([{" * 300_000,
    "pairs_of_brackets": "()" * 499_000,
    "brackets_in_where": WHERE + "(" * 900_000,
    "101_brackets": WHERE + "(" * 101 + "a.x" + ")" * 101,
    "longer_than_a_megabyte": WHERE + " " * 1_000_000,
    "5000_nested_case": WHERE + "CASE WHEN " * 5_000 + "a.x=1" + " THEN TRUE END" * 5_000,
    "2000_nested_else": WHERE + "CASE WHEN a.x=1 THEN TRUE ELSE " * 2_000 + "FALSE" + " END" * 2_000,
    "unfinished_case": WHERE + "CASE WHEN " * 30_000,
    "a_sum_of_5000": WHERE + "a.x + " * 5_000 + "1 = 1",
    "a_sum_of_150_000": WHERE + "a.x + " * 150_000 + "1 = 1",
    "10_000_components": "EVENT SEQ(" + ",".join(f"T{n} v{n}" for n in range(10_000)) + ")",
    "one_name_900_times": "EVENT SEQ(" + ",".join(["A a"] * 900) + ")",
    "an_unclosed_string": WHERE + "a.x = '" + "x" * 900_000,
    "an_unclosed_comment": WHERE + "/*" * 450_000,
    "dashes": WHERE + "-" * 900_000,
    "only_semicolons": ";" * 99_999,
    "5000_digits": WHERE + "a.x = " + "9" * 5_000,
    "900_000_digits": WHERE + "a.x = " + "9" * 900_000,
    "5000_digits_of_days": WHERE + "a.x < " + "9" * 5_000 + " days",
}


@pytest.mark.parametrize("text", HUGE_REFUSED.values(), ids=HUGE_REFUSED.keys())
def test_a_huge_text_is_refused_in_time(text):
    refused(lambda: kleene.program(text))


HUGE_ANSWERED = {
    "or_of_40_ands": WHERE + " OR ".join(f"(a.x={n} AND a.y={n})" for n in range(40)),
    "or_of_40_betweens": WHERE + " OR ".join(f"a.x BETWEEN {n} AND {n + 1}" for n in range(40)),
    "not_of_40_ors": WHERE + "NOT (" + " AND ".join(f"(a.x={n} OR a.y={n})" for n in range(40)) + ")",
    "100_brackets": WHERE + "(" * 100 + "a.x" + ")" * 100,
    "nots": WHERE + "NOT " * 30_000 + "a.x = 1",
    "a_megabyte_of_not_signs": WHERE + "¬" * 900_000 + "a.x = 1",
    "minus_signs": WHERE + "- " * 30_000 + "a.x = 1",
    "98_nested_case": WHERE + "CASE WHEN " * 98 + "a.x=1" + " THEN TRUE END" * 98,
    "97_nested_casts": WHERE + "CAST(" * 97 + "a.x" + " AS int)" * 97 + "=1",
    "90_nested_coalesce": WHERE + "coalesce(" * 90 + "a.x" + ",a.x)" * 90 + "=1",
    "30_nested_between": WHERE + nested("a.x", "CASE WHEN (@) BETWEEN 1 AND 2 THEN 1 ELSE 2 END", 30) + " = 1",
    "30_nested_simple_case": WHERE + nested("a.x", "CASE @ WHEN 1 THEN 2 WHEN 2 THEN 3 END", 30) + " = 1",
    "5_000_conjuncts": WHERE + " AND ".join(f"a.x={n}" for n in range(5_000)),
    "90_000_conjuncts": WHERE + " AND ".join(["a.x=1"] * 90_000),
    "2000_conditions_of_1024_clauses": WHERE
    + " AND ".join("(" + " OR ".join(f"(a.x={n} AND a.y={m})" for n in range(10)) + ")" for m in range(2_000)),
    "10_000_choices": WHERE + "a.x IN (" + ",".join(map(str, range(10_000))) + ")",
    "a_long_name": "EVENT A " + "x" * 900_000,
    "a_long_string": WHERE + "a.x = '" + "x" * 900_000 + "'",
    "a_long_fraction": WHERE + "a.x = 0." + "9" * 900_000,
    "30_000_types": "EVENT ANY(" + ",".join(f"T{n}" for n in range(30_000)) + ") a",
    "1000_components_and_a_test": "EVENT SEQ(" + ",".join(f"T{n} v{n}" for n in range(1_000)) + ") WHERE [id]",
    "1000_strict_components_and_a_test": "EVENT SEQ("
    + ",".join(f"T{n} v{n}" for n in range(1_000))
    + f") WHERE strict_contiguity({','.join(f'v{n}' for n in range(1_000))}){{[id]}}",
    "100_000_queries": ";".join(["EVENT A"] * 100_000),
}


@pytest.mark.parametrize("text", HUGE_ANSWERED.values(), ids=HUGE_ANSWERED.keys())
def test_a_huge_text_is_answered_in_time(text):
    answered(lambda: kleene.program(text))


@pytest.mark.slow
def test_a_thousand_components_run_and_are_explained():
    names = [f"T{n}" for n in range(1_000)]
    events = pa.table({"type": names, "t": range(1_000)})
    text = f"EVENT SEQ({','.join(f'{name} v{name}' for name in names)})"
    explained(text)
    assert matched(text, events).num_rows == 1


# --- texts that are not queries ------------------------------------------------------------------------------------

NOT_QUERIES = [
    *["", " ", "\n", "-- EVENT A", "/* EVENT A */", "/* x", ";;;", "\x00", SURROGATE, "\x1b[31mEVENT A a\x1b[0m"],
    *["EVENT A a\x00", "EVENT A \u200ba", "EVENT A \u202ea", "EVENT A 😀", "\x7fELF\x02\x01\x01", "%PDF-1.4\n%âã"],
    *["EVENT", "EVENT SEQ()", "EVENT SEQ(A,)", "EVENT SEQ(,A)", "EVENT !A", "EVENT !(!(A))", "EVENT ANY() a"],
    *["EVENT A+ a", "EVENT A a[]", "EVENT A++ a[]", "EVENT SEQ(!A+ a[], B)", "EVENT 1A a", "EVENT A 1a", "EVENT A ``"],
    *["EVENT A `#1`", "EVENT A `#F`", "EVENT A+ `a[1]`[]", "EVENT SEQ(A a, B a)", "EVENT A match_start", "EVENT A- a"],
    *["EVENT A a WHERE", "EVENT A a WHERE {", "EVENT A a WHERE nope(a){}", "EVENT A a WHERE skip_till_any_match(b){}"],
    *["EVENT A a WHERE [x<1]", "EVENT A a WHERE []", "EVENT A a WHERE NOT [x]", "EVENT A a WHERE [x] OR [s]"],
    *["EVENT A a WHERE [x=-'a']", "EVENT A a WHERE a.x = 1 = 1", "EVENT A a WHERE 1", "EVENT A a WHERE a.x[] = 1"],
    *["EVENT A a WHERE a.x & 1", "EVENT A a WHERE a.x === 1", "EVENT A a WHERE @x", "EVENT A a WHERE a.x IN ()"],
    *["EVENT A a WHERE CASE END = 1", "EVENT A a WHERE nofunc(a.x) = 1", "EVENT A a WHERE abs() = 1"],
    *["EVENT A a WHERE round(1.5, a.x) = 1", "EVENT A a WHERE round(1.5, 1.5) = 1", "EVENT A a WHERE power(1) = 1"],
    *["EVENT A a WHERE CAST(a.x AS foo) = 1", "EVENT A a WHERE CAST(a.x AS decimal(39,0)) = 1"],
    *["EVENT A a WHERE CAST(a.x AS decimal(1e999999999999,0)) = 1", "EVENT A a WHERE CAST(a.x AS decimal(-1,0)) = 1"],
    *["EVENT A a WHERE CAST(a.x AS decimal(1e99999999999999999999,0)) = 1"],
    *["EVENT A a WHERE CAST(a.x AS decimal(1.5,0.5)) = 1", "EVENT A a WHERE CAST(a.x AS decimal(0,0)) = 1"],
    *["EVENT A+ a[] WHERE a[2].x = 1", "EVENT A+ a[] WHERE a[i-2].x = 1", "EVENT A+ a[] WHERE a[b.LEN].x = 1"],
    *["EVENT A+ a[] WHERE sum(sum(a[].x)) = 1", "EVENT A+ a[] WHERE sum(1) = 1", "EVENT A+ a[] WHERE count(*) = 1"],
    *["EVENT A+ a[] RETURN a[] AS v", "EVENT A+ a[] RETURN a.x AS v", "EVENT A a RETURN a.x = 1"],
    "EVENT A a RETURN * AS v",
    *["EVENT A a RETURN a.x AS v, a.t AS v", "EVENT A a RETURN a.x AS ``", "EVENT A a INTO a.b", "SELECT * FROM x"],
    *["FROM A EVENT A a INTO A", "EVENT A a WITHIN 5 WITHIN 5", "EVENT A a WITHIN 5 WHERE a.x = 1", "EVENT A a HAVING"],
    *[
        "EVENT A a WITHIN -1",
        "EVENT A a WITHIN 0",
        "EVENT A a WITHIN 5 parsecs",
        "EVENT A; EVENT B",
    ],
    *["EVENT A a WITHIN 1.5 events", "EVENT A a WITHIN 0 events", "EVENT A a WITHIN 5%", "EVENT A a WITHIN '5'"],
    *["EVENT A a WITHIN 1e999", "EVENT A a WITHIN 1e999 events", "EVENT A a WITHIN 9223372036854775808"],
    *["EVENT A a WITHIN 1e99999999999", "EVENT A a WITHIN 1e99999999999 events", "EVENT A a WITHIN 106751992 days"],
    *["EVENT A a WITHIN 1e999999999999999999999", "EVENT A a WITHIN 1e-999999999999999999999"],
    *["EVENT A a WITHIN 1e999999999999999999999 events", "EVENT A a WITHIN 0.5 microseconds"],
]


@pytest.mark.parametrize("text", NOT_QUERIES, ids=ascii)
def test_a_text_that_is_no_query_is_refused(text):
    refused(lambda: kleene.sase(text))


BAD_LITERALS = [
    *["1e999", "1e-999", "1e309", "1.8e308", "9223372036854775808", "-9223372036854775809", "0x10", "1_000", "5."],
    *["1e99999999999999999999", "1e-99999999999999999999", "1e18446744073709551616", "1..2", "9" * 400 + "%"],
    *["DATE '0000-01-01'", "DATE '10000-01-01'", "DATE '2024-02-30'", "DATE ''", "DATE 'nan'", "DATE '-2024-01-01'"],
    *["TIMESTAMP '2024-06-30 23:59:60'", "TIMESTAMP '9999-12-31 24:00:00'", "TIMESTAMP '2024-01-01T10:00:00Q'"],
    *["TIMESTAMP '2024-01-01 10:00:00+99:00'", "TIMESTAMP '2024-01-01 10:00:00 Europe/Berlin'", "106751992 days"],
    *["TIMESTAMP '9999-12-31 23:59:00-05:00'", "TIMESTAMP '0001-01-01 00:00:00+05:00'", "TIME '25:00'", "TIME ''"],
    *["9223372036854775808 microseconds", "0.5 microseconds", "INTERVAL '5'", "INTERVAL ''", "INTERVAL '1' MONTH"],
    *["INTERVAL '1 2:3' DAY", "INTERVAL '1e5' DAY", "INTERVAL '" + "9" * 5_000 + "' DAY", "'a' 'b'", "‘a’"],
]


@pytest.mark.parametrize("literal", BAD_LITERALS, ids=lambda literal: literal[:40])
def test_a_value_that_cannot_be_is_refused(literal):
    refused(lambda: kleene.sase(f"EVENT A a RETURN {literal} AS v"))


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("9223372036854775807", LARGEST),
        ("-9223372036854775808", SMALLEST),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("5e-324", 5e-324),
        ("0.0e-500", 0.0),
        ("0%", 0.0),
        ("DATE '0001-01-01'", dt.date.min),
        ("DATE '9999-12-31'", dt.date.max),
        ("TIMESTAMP '0001-01-01 00:00:00'", dt.datetime.min),
        ("TIMESTAMP '9999-12-31 23:59:59.999999'", dt.datetime.max),
    ],
)
def test_an_extreme_value_is_kept(literal, expected):
    text = f"EVENT A a RETURN {literal} AS v"
    assert value(literal) == expected
    explained(text)
    assert kleene.sase(query_text(kleene.sase(text).definition)) == kleene.sase(text)


def test_a_number_too_small_is_not_called_too_large():
    assert "larger" not in refused(lambda: kleene.sase("EVENT A a WHERE a.x = 1e-999")).message


@pytest.mark.parametrize(
    "text",
    [
        *["EVENT A a\r\nWHERE a.x = 1\r\n", "EVENT A a\rWHERE a.x = 1", "EVENT\tA\ta\tWHERE\ta.x=1", "eVeNt A a"],
        *["/**/EVENT/**/A/**/a/**/WHERE/**/a.x/*\n*/=-- y\n1", "; EVENT A a ;", "EVENT A a --", "EVENT\u00a0A\u3000a"],
        *["EVENT A שלום WHERE שלום.x=1", "EVENT A `😀` WHERE `😀`.x = 1", "EVENT A `e\u0301` WHERE `e\u0301`.x = 1"],
        *["EVENT A `a b` WHERE `a b`.x=1", "EVENT A `a\nb` WHERE `a\nb`.x=1", "EVENT A `a``b` WHERE `a``b`.x=1"],
        *["EVENT A `a.b` WHERE `a.b`.x=1", "EVENT A `a'\"\\b`", "EVENT A `-- x`", "EVENT A `/* x`", "EVENT A ````"],
        *["EVENT A a WHERE a.s = '--' OR a.s = '/*' OR a.s = 'it''s' OR a.s = 'a\nb\x00'", "EVENT A a INTO `a``b`"],
    ],
    ids=ascii,
)
def test_odd_writing_is_understood_and_written_back(text):
    query = kleene.sase(text)
    explained(text, EVENTS, order_by="t")
    matched(text, EVENTS)
    assert kleene.sase(query_text(query.definition)) == query


KEYWORDS = [
    "event",
    "pattern",
    "from",
    "into",
    "seq",
    "any",
    "where",
    "within",
    "having",
    "return",
    "or",
    "and",
    "not",
    "is",
    "in",
    "between",
    "like",
    "as",
    "case",
    "when",
    "then",
    "else",
    "end",
    "cast",
    "true",
    "false",
    "null",
    "date",
    "timestamp",
    "interval",
    "events",
    "second",
    "strict_contiguity",
    "i",
    "LEN",
]


@pytest.mark.parametrize("word", KEYWORDS)
def test_a_quoted_keyword_is_a_name_and_is_written_back_as_one(word):
    text = (
        f"FROM `{word}` EVENT SEQ(`{word}` `{word}`, B+ b[]) WHERE `{word}`.`{word}` = 1 AND b[1].`{word}` > 1 "
        f"RETURN `{word}`.`{word}` AS `{word}` INTO `{word}x`"
    )
    query = kleene.sase(text)
    assert kleene.sase(query_text(query.definition)) == query


@pytest.mark.parametrize(
    "text",
    [
        f"EVENT A `{SURROGATE}`",
        f"EVENT `{SURROGATE}` a",
        f"EVENT A a RETURN a.x AS `{SURROGATE}`",
        f"EVENT A a RETURN '{SURROGATE}' AS v",
        f"EVENT A a WHERE a.s = '{SURROGATE}'",
        f"EVENT A a WHERE a.`{SURROGATE}` = 1",
        f"EVENT A a WHERE [`{SURROGATE}`]",
    ],
    ids=ascii,
)
def test_a_lone_surrogate_does_no_harm(text):
    answered(lambda: matched(text, EVENTS))
    answered(lambda: explained(text, EVENTS, order_by="t"))


# --- arguments of the wrong kind -----------------------------------------------------------------------------------


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__


WRONG = {
    "none": None,
    "bytes": b"t",
    "integer": 5,
    "float": 1.5,
    "nan": float("nan"),
    "set": {"t", "x"},
    "dict": {"t": 1},
    "list_of_integers": [1],
    "list_of_none": [None],
    "list_of_lists": [["t"]],
    "object": object(),
    "class": str,
    "function": len,
    "true": True,
    "scalar": pa.scalar("t"),
    "array": pa.array(["t"]),
    "surrogate": SURROGATE,
    "long": "t" * 1_000_000,
    "escape": "t\x1b[31m\x00\n",
    "unspeakable": Unspeakable(),
}
FITS = {
    ("tie_break", "none"),
    ("engine", "none"),
    ("type_column", "none"),
    ("run_limit", "integer"),
    ("run_limit", "true"),
    ("order_by", "dict"),
    ("tie_break", "dict"),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("argument", ["order_by", "tie_break", "type_column", "format", "engine", "run_limit"])
def test_an_argument_of_the_wrong_kind_is_refused(argument, kind):
    query = kleene.sase("EVENT SEQ(A a, B b)")
    options = {"order_by": "t", argument: WRONG[kind]}
    if (argument, kind) in FITS:
        answered(lambda: query.match(EVENTS, **arguments(options)))
    else:
        refused(lambda: query.match(EVENTS, **arguments(options)))


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_not_text_is_no_query(kind):
    refused(lambda: kleene.sase(WRONG[kind]))
    refused(lambda: kleene.program(WRONG[kind]))


@pytest.mark.parametrize("kind", WRONG)
def test_what_holds_no_events_is_refused(kind):
    refused(lambda: kleene.sase("EVENT A a").match(WRONG[kind], order_by="t"))
    refused(lambda: kleene.program("EVENT A a").match(WRONG[kind], order_by="t"))
    answered(lambda: kleene.sase("EVENT A a").explain(WRONG[kind], order_by="t"))
    refused(lambda: kleene.sase("EVENT A a").match({"A": WRONG[kind]}, order_by="t"))


@pytest.mark.parametrize("kind", sorted(set(WRONG) - {"none"}))
def test_parameters_of_the_wrong_kind_are_refused(kind):
    refused(lambda: matched("EVENT A a WITHIN T", EVENTS, params=WRONG[kind]))


@pytest.mark.parametrize("kind", sorted(set(WRONG) - {"integer", "float"}))
def test_a_parameter_of_the_wrong_kind_is_refused(kind):
    refused(lambda: matched("EVENT A a WITHIN T", EVENTS, params={"T": WRONG[kind]}), "T")


@pytest.mark.parametrize(
    "given",
    [
        *["", "-5", "0", "T", "5;", "5; EVENT B", "5) --", "5 RETURN x", "12 hours INTO x", "5 HAVING TRUE", "5 /*"],
        *["1e999", "1e99999999999", "1e99999999999999999999", "9" * 5_000, 0, -5, 10**30, dt.timedelta(minutes=5)],
    ],
    ids=lambda given: str(given)[:20],
)
def test_a_parameter_that_is_no_window_is_refused(given):
    refused(lambda: matched("EVENT A a WITHIN T", EVENTS, params={"T": given}))


def test_an_order_key_without_an_order_is_refused():
    # The order of a set of strings differs from one run of Python to the next, and so would the result.
    events = pa.table({"type": ["A", "B"], "t": [1, 2], "u": [2, 1]})
    refused(lambda: kleene.sase("EVENT SEQ(A a, B b)").match(events, order_by={"t", "u"}))


# --- tables that are no events -------------------------------------------------------------------------------------


class Broken:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise ValueError("the stream is broken")


class Lying:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return 5


NO_EVENTS = {
    "no_columns": pa.table({}),
    "no_columns_but_rows": EVENTS.select([]),
    "a_name_twice": pa.table([["A"], [1], [2]], names=["type", "t", "t"]),
    "a_chunked_array": EVENTS.column(0),
    "an_array": EVENTS.column(1).combine_chunks(),
    "a_schema": EVENTS.schema,
    "rows_of_mixed_types": [{"type": "A", "t": 1}, {"type": "A", "t": "x"}],
    "rows_named_by_numbers": [{1: "A"}],
    "a_path_to_nothing": "no/such/file.parquet",
    "batches": EVENTS.to_batches(),
    "a_broken_stream": Broken(),
    "a_lying_stream": Lying(),
    "a_reserved_name": pa.table({"__kleene_type": ["A"], "t": [1]}),
    "pandas_with_mixed_objects": pd.DataFrame({"type": ["A", "B"], "t": [1, 2], "o": [1, "x"]}),
    "pandas_with_a_name_twice": pd.DataFrame([["A", 1, 2]], columns=["type", "t", "t"]),
    "pandas_with_complex_numbers": pd.DataFrame({"type": ["A"], "t": [1], "c": [1j]}),
    "no_inputs": {},
    "an_input_of_nothing": {"A": None, "B": EVENTS},
    "inputs_of_inputs": {"A": {"B": EVENTS}},
    "an_input_without_columns": {"A": pa.table({}), "B": EVENTS},
    "an_input_without_the_order_key": {"A": EVENTS, "B": pa.table({"u": [1]})},
    "order_keys_of_two_kinds": {"A": EVENTS, "B": pa.table({"t": ["x"]})},
    "an_attribute_of_two_kinds": {"A": EVENTS, "B": pa.table({"t": [1], "x": ["x"]})},
    "an_input_called_5": {5: EVENTS},
    "an_input_called_none": {None: EVENTS},
    "an_input_called_by_bytes": {b"A": EVENTS},
    "an_input_called_by_a_tuple": {("A", "B"): EVENTS},
    "an_input_called_surrogate": {SURROGATE: EVENTS},
    "an_input_called_otherwise": {"A\nB": EVENTS, "": EVENTS},
}


@pytest.mark.parametrize("events", NO_EVENTS.values(), ids=NO_EVENTS.keys())
def test_what_cannot_be_read_as_events_is_refused(events):
    refused(lambda: matched("EVENT SEQ(A a, B b)", events))
    refused(lambda: kleene.sase("EVENT SEQ(A a, B b)").explain(events, order_by="t"))
    refused(lambda: kleene.program("EVENT SEQ(A a, B b)").match(events, order_by="t"))


@pytest.mark.parametrize("events", [EVENTS.slice(0, 0), {"A": EVENTS.slice(0, 0), "B": EVENTS.slice(0, 0)}])
def test_no_rows_give_no_matches(events):
    for text in ("EVENT SEQ(A+ a[], B b)", "EVENT SEQ(A+ a[], B b) RETURN collect(a[].x) AS c, sum(a[].x) AS s"):
        assert matched(text, events).num_rows == 0


def test_20_000_columns_of_equal_names_are_refused_in_time():
    refused(lambda: matched("EVENT A a", pa.table([[1]] * 20_000, names=["c"] * 19_999 + ["t"])), "'c'")


@pytest.mark.slow
def test_an_unknown_attribute_among_thousands_is_refused():
    wide = pa.table({"type": ["A"], "t": [1], **{f"c{n}": [1] for n in range(5_000)}})
    refused(lambda: matched("EVENT A a WHERE a.zz = 1", wide), "zz")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([2**53 + 1]), pa.array([1.0])),
        (pa.array([1]), pa.array([2**64 - 1], pa.uint64())),
        (pa.array([1]), pa.array([Decimal("1.00")], pa.decimal128(5, 2))),
        (pa.array([10**12], pa.timestamp("s")), pa.array([1], pa.timestamp("ns"))),
        (pa.array([10**12], pa.duration("s")), pa.array([1], pa.duration("ns"))),
        (pa.array([1], pa.timestamp("us", "UTC")), pa.array([1], pa.timestamp("us"))),
        (pa.array([1], pa.timestamp("us", "UTC")), pa.array([1], pa.timestamp("us", "Asia/Tokyo"))),
        (pa.array([1]), pa.array([True])),
        (pa.array(["a"]), pa.array([b"\xff"])),
        (pa.array([Decimal(1)], pa.decimal128(18, 2)), pa.array([Decimal(1)], pa.decimal128(18, 10))),
        (pa.array([[1]]), pa.array([["a"]])),
        (pa.nulls(1), pa.array([1])),
        (pa.nulls(1), pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])),
        (pa.nulls(1), pa.array([[1]], pa.list_view(pa.int64()))),
    ],
    ids=lambda array: str(array.type),
)
def test_inputs_whose_columns_differ_in_type_are_united_or_refused(left, right):
    inputs = {"A": pa.table({"t": [1], "c": left}), "B": pa.table({"t": [2], "c": right})}
    for text in ("EVENT SEQ(A a, B b)", "EVENT SEQ(A a, B b) WHERE a.c = b.c", "EVENT SEQ(A a, B b) WHERE [c]"):
        answered(lambda text=text: matched(text, inputs))
        answered(lambda text=text: matched(text, inputs, order_by="c"))


# --- columns of every type, in every role --------------------------------------------------------------------------


class Extension(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.int64(), "kleene.test")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def every_type() -> dict[str, pa.Array]:
    numbers = [3, 1, 2, 4]
    simple = [
        *[pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()],
        *[pa.float32(), pa.float64(), pa.date32(), pa.time32("s"), pa.time32("ms"), pa.time64("us")],
        *[pa.time64("ns"), *(pa.duration(unit) for unit in ("s", "ms", "us", "ns"))],
        *[pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Berlin")],
        *[pa.timestamp("us", "+05:30"), pa.timestamp("us", "Mars/Phobos")],
    ]
    found = {str(type_): pa.array(numbers, type_) for type_ in simple}
    found["halffloat"] = pa.array(np.array(numbers, np.float16))
    texts = pa.array(["c", "a", "b", "d"])
    found |= {str(type_): texts.cast(type_) for type_ in (pa.string(), pa.large_string(), pa.string_view())}
    bytes_ = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)]
    found |= {str(type_): pa.array([b"c", b"a", b"\xff", b"d"], type_) for type_ in bytes_}
    exact = [Decimal("3.10"), Decimal(1), Decimal(2), Decimal(4)]
    decimals = [*(pa.decimal128(p, s) for p, s in ((5, 2), (18, 2), (19, 2), (38, 10)))]
    decimals += [pa.decimal256(18, 2), pa.decimal256(76, 2)]
    if hasattr(pa, "decimal32"):  # older versions of Arrow have none
        decimals += [pa.decimal32(9, 2), pa.decimal64(18, 2)]
    found |= {str(type_): pa.array(exact, type_) for type_ in decimals}
    halves = pa.array([0, 1, 0, 1])
    return found | {
        "decimal128(10, -2)": pa.array([100, 200, 300, 400]).cast(pa.decimal128(20, 0)).cast(pa.decimal128(10, -2)),
        "uint64_too_large": pa.array([2**64 - 1, 1, 2, 3], pa.uint64()),
        "integers_at_the_limits": pa.array([LARGEST, SMALLEST, -1, 0]),
        "timestamps_beyond_microseconds": pa.array([2**62, 1, 2, 3], pa.timestamp("s")),
        "timestamps_at_the_limits": pa.array([LARGEST, SMALLEST, 2, 3], pa.timestamp("us")),
        "durations_beyond_microseconds": pa.array([2**62, 1, 2, 3], pa.duration("s")),
        "dates_at_the_limits": pa.array([2**31 - 1, -(2**31), 0, 1], pa.date32()),
        "date64": pa.array([86_400_000, 0, 86_400_000, 0], pa.date64()),
        "boolean": pa.array([True, False, None, True]),
        "nan": pa.array([1.0, float("nan"), 2.0, 3.0]),
        "infinite": pa.array([float("inf"), float("-inf"), 2.0, 3.0]),
        "negative_zero": pa.array([0.0, -0.0, 0.0, -0.0]),
        "nan_of_16_bits": pa.array(np.array([1, np.nan, 2, 3], dtype=np.float16)),
        "null": pa.nulls(4),
        "nulls_of_integer": pa.nulls(4, pa.int64()),
        "nulls_of_string": pa.nulls(4, pa.string()),
        "dictionary_of_strings": texts.dictionary_encode(),
        "dictionary_of_integers": pa.array(numbers).dictionary_encode(),
        "dictionary_with_null": pa.DictionaryArray.from_arrays(halves, pa.array(["x", None])),
        "dictionary_of_lists": pa.DictionaryArray.from_arrays(halves, pa.array([[1], [2]])),
        "run_end_encoded_integers": pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array([1, 2])),
        "run_end_encoded_strings": pa.RunEndEncodedArray.from_arrays(
            pa.array([2, 4], pa.int32()), pa.array(["A", "B"])
        ),
        "month_day_nano": pa.array([(1, 2, 3)] * 4, pa.month_day_nano_interval()),
        "list": pa.array([[1], [2], None, []]),
        "large_list": pa.array([[1], [2], None, []], pa.large_list(pa.int64())),
        "fixed_size_list": pa.array([[1], [2], None, [3]], pa.list_(pa.int64(), 1)),
        "list_view": pa.array([[1], [2], None, []], pa.list_view(pa.int64())),
        "list_of_nulls": pa.array([[None], [], None, [None]], pa.list_(pa.null())),
        "struct": pa.array([{"a": 1}, {"a": 2}, None, {"a": None}]),
        "struct_of_nothing": pa.array([{}] * 4, pa.struct([])),
        "struct_of_null": pa.StructArray.from_arrays([pa.nulls(4)], ["a"]),
        "map": pa.array([[("k", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
        "sparse_union": pa.UnionArray.from_sparse(halves.cast(pa.int8()), [pa.array(numbers), texts]),
        "dense_union": pa.UnionArray.from_dense(
            halves.cast(pa.int8()), pa.array([0, 0, 1, 1], pa.int32()), [pa.array(numbers), texts]
        ),
        "extension": pa.ExtensionArray.from_storage(Extension(), pa.array(numbers)),
        "uuid": pa.array([b"0" * 16] * 4, pa.uuid()),
        "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, 1, 0], pa.int8())),
        "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(8).reshape(4, 2)),
        "strings_that_are_not_utf8": pa.Array.from_buffers(
            pa.string(), 4, [None, pa.py_buffer(np.arange(5, dtype=np.int32).tobytes()), pa.py_buffer(b"\xff\xfeab")]
        ),
    }


ROLES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "carried": [("EVENT SEQ(A a, B b)", {}), ("EVENT SEQ(A+ a[], B b)", {}), ("EVENT A a RETURN a.c AS c", {})],
    "bracketed": [
        ("EVENT SEQ(A a, B b) WHERE [c]", {}),
        ("EVENT SEQ(A+ a[], !(B n), B b) WHERE [c]", {}),
        ("EVENT SEQ(A a, B b) WHERE strict_contiguity(a, b) { [c] }", {}),
    ],
    "compared": [
        ("EVENT SEQ(A a, B b) WHERE a.c = b.c OR a.c < b.c OR a.c >= b.c", {}),
        ("EVENT A a WHERE a.c IS NULL OR a.c IS NOT NULL", {}),
        ("EVENT A a WHERE a.c IN (a.c)", {}),
        ("EVENT A a WHERE a.c = 1", {}),
        ("EVENT A a WHERE a.c = 'a'", {}),
        ("EVENT A a WHERE a.c > TIMESTAMP '1960-01-01 00:00:00'", {}),
        ("EVENT A a WHERE a.c > TIMESTAMP '0001-01-01 00:00:00'", {}),
        ("EVENT A a WHERE a.c", {}),
    ],
    "computed": [
        (f"EVENT SEQ(A a, B b) RETURN {expression} AS v", {})
        for expression in (
            *("-a.c", "a.c + b.c", "b.c - a.c", "a.c * b.c", "a.c / b.c", "a.c % b.c", "a.c || 'x'", "abs(a.c)"),
            *("floor(a.c)", "round(a.c, 2)", "sqrt(a.c)", "length(a.c)", "least(a.c, b.c)", "coalesce(a.c, b.c)"),
            *("CASE WHEN TRUE THEN a.c END", "a.c IS NULL"),
        )
    ],
    "converted": [
        (f"EVENT A a RETURN CAST(a.c AS {type_}) AS v", {})
        for type_ in ("integer", "float", "string", "boolean", "date", "timestamp", "decimal(18, 2)")
    ],
    "aggregated": [
        (f"EVENT A+ a[] RETURN {function}(a[].c) AS v", {})
        for function in ("count", "sum", "avg", "min", "max", "first", "last", "collect")
    ]
    + [
        ("EVENT A+ a[] WHERE a[i].c >= a[i-1].c AND a[i].c >= max(a[..i-1].c) HAVING first(a[].c) = last(a[].c)", {}),
        ("EVENT A+ a[] RETURN a[1].c AS c, a[a.LEN].c AS d, collect(coalesce(a[].c, a[].c)) AS e", {}),
    ],
    "order_key": [
        ("EVENT SEQ(A a, B b)", {"order_by": "c"}),
        ("EVENT SEQ(A a, B b)", {"order_by": ["t", "c"]}),
        ("EVENT SEQ(A a, B b, !(A n)) WITHIN 5", {"order_by": "c"}),
        ("EVENT SEQ(!(A n), A a, B b) WITHIN 5 seconds", {"order_by": "c"}),
    ],
    "tie_break": [("EVENT SEQ(A a, B b)", {"tie_break": "c"})],
    "type_column": [("EVENT SEQ(A a, B b)", {"type_column": "c"})],
}


@pytest.mark.parametrize("role", first_is_quick(ROLES))
@pytest.mark.parametrize("column", every_type().values(), ids=every_type().keys())
def test_a_column_of_any_type_in_any_role_gives_an_answer(column, role):
    events = pa.table({"type": ["A", "B", "A", "B"], "t": [1, 2, 3, 4], "c": column})
    for text, options in ROLES[role]:
        for table in (events, events.slice(0, 0)):
            answered(lambda text=text, table=table, options=options: matched(text, table, **options))
        order_by = options.get("order_by", "t")
        answered(lambda text=text, order_by=order_by: kleene.sase(text).explain(events, order_by=order_by))


@pytest.mark.parametrize("column", every_type().values(), ids=every_type().keys())
def test_a_column_of_any_type_passes_through_inputs_and_programs(column):
    events = pa.table({"type": ["A", "B", "A", "B"], "t": [1, 2, 3, 4], "c": column})
    answered(lambda: matched("EVENT SEQ(A a, B b)", {"A": events, "B": events.select(["t"])}))
    answered(lambda: matched("EVENT SEQ(A a, B b) WHERE [c]", {"A": events, "B": events}))
    composed = kleene.program("EVENT SEQ(A+ a[], B b) INTO X; FROM X EVENT X x RETURN x.b AS b, x.a AS a")
    answered(lambda: composed.match(events, order_by="t"))


def test_nulls_without_a_type_are_carried_by_a_kleene_variable():
    events = pa.table({"type": ["A", "A"], "t": [1, 2], "n": pa.nulls(2)})
    assert [len(a) for a in matched("EVENT A+ a[]", events).column("a").to_pylist()] == [1, 2, 1]
    assert matched("EVENT A+ a[] RETURN collect(a[].n) AS n", events).column("n").to_pylist() == [
        *[[None], [None, None], [None]]
    ]


# --- values ----------------------------------------------------------------------------------------------------------

NUMBERS = {
    "largest": pa.array([LARGEST]),
    "smallest": pa.array([SMALLEST]),
    "minus_one": pa.array([-1]),
    "zero": pa.array([0]),
    "nan": pa.array([float("nan")]),
    "infinite": pa.array([float("inf")]),
    "minus_infinite": pa.array([float("-inf")]),
    "minus_zero": pa.array([-0.0]),
    "huge": pa.array([1.7976931348623157e308]),
    "tiny": pa.array([5e-324]),
    "exact": pa.array([Decimal("9999999999999999.99")], pa.decimal128(18, 2)),
    "fraction": pa.array([Decimal("0.999999999999999999")], pa.decimal128(18, 18)),
    "nothing": pa.nulls(1, pa.int64()),
}
UNARY = ["-a.x", *(f"{name}(a.x)" for name in ("abs", "floor", "ceil", "round", "sqrt", "ln", "exp"))]
UNARY += [f"round(a.x, {n})" for n in (-LARGEST, -1_000_000_000, -400, -19, 2, 19, 400, 1_000_000, LARGEST)]
UNARY += [f"CAST(a.x AS {name})" for name in ("integer", "float", "string", "boolean", "decimal", "decimal(18, 18)")]
BINARY = [f"a.x {operator} a.y" for operator in ("+", "-", "*", "/", "%", "=", "<")]
BINARY += [f"{name}(a.x, a.y)" for name in ("power", "least", "greatest", "coalesce")]


@pytest.mark.parametrize("expression", UNARY)
@pytest.mark.parametrize("x", NUMBERS.values(), ids=NUMBERS.keys())
def test_every_function_takes_every_number(x, expression):
    answered(lambda: value(expression, x=x))


@pytest.mark.parametrize("expression", first_is_quick(BINARY))
def test_every_operator_takes_every_pair_of_numbers(expression):
    for x in NUMBERS.values():
        for y in NUMBERS.values():
            answered(lambda x=x, y=y: value(expression, x=x, y=y))


@pytest.mark.parametrize(
    "expression",
    [
        "a.x + 1",
        "-a.y",
        "a.y - 1",
        "a.x * 2",
        "a.y * -1",
        "abs(a.y)",
        "floor(a.f)",
        "CAST(a.f AS integer)",
        "a.d + a.d",
        "a.d * a.d",
        "a.x * 1 second",
        "CAST(a.i AS integer)",
    ],
)
def test_an_overflow_is_an_error_that_names_the_expression(expression):
    columns = {"x": pa.array([LARGEST]), "y": pa.array([SMALLEST]), "f": pa.array([1e19]), "i": pa.array([np.inf])}
    columns["d"] = pa.array([Decimal("9" * 36 + ".99")], pa.decimal128(38, 2))
    refused(lambda: value(expression, **columns), expression.split("(")[-1].split(" ")[0].strip("-)"))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.x / 0", None),
        ("a.x % 0", None),
        ("a.y % -1", 0),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("a.f / 0.0", None),
        ("a.n = a.n", None),
        ("a.n < 1", None),
        ("a.n IN (1.0)", None),
        ("NOT (a.n = 1)", None),
        ("least(a.n, 1.0)", 1.0),
        ("-0.0 = 0", True),
        ("round(1e28)", 1e28),
        ("round(a.f, 2)", 1.7e308),
        ("round(1.005, 400)", 1.005),
        ("round(a.x, 18)", LARGEST),
        ("round(a.x, -400)", 0),
        ("power(-0.0, -1)", float("-inf")),
        ("power(-10.0, 401)", float("-inf")),
        ("exp(1e308)", float("inf")),
        ("ln(0)", None),
    ],
)
def test_the_edges_of_arithmetic(expression, expected):
    columns = {"x": pa.array([LARGEST]), "y": pa.array([SMALLEST]), "f": pa.array([1.7e308]), "n": pa.array([np.nan])}
    assert value(expression, **columns) == expected


def test_a_decimal_can_be_compared_with_any_whole_number():
    fraction = pa.array([Decimal("0.5")], pa.decimal128(18, 18))
    assert value("a.d < 5", d=fraction) is True
    assert value("a.d < a.x", d=pa.array([Decimal("0.50")], pa.decimal128(18, 2)), x=pa.array([LARGEST])) is True


def test_a_product_of_decimals_has_a_type_that_can_be_read():
    product = " * ".join(["a.d"] * 26)
    answered(lambda: value(product, d=pa.array([Decimal("0.01")], pa.decimal128(5, 2))))


def test_a_cast_to_a_decimal_keeps_to_its_precision():
    refused(lambda: value("CAST(12345 AS decimal(2, 0))"))
    refused(lambda: value("CAST(a.d AS decimal(5, 2))", d=pa.array([Decimal("12345.67")], pa.decimal128(18, 2))))


@pytest.mark.parametrize("type_", ["integer", "float", "boolean", "date", "timestamp", "decimal", "decimal(18, 18)"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "abc",
        "0x10",
        "nan",
        "-Infinity",
        "sNaN",
        "1e999",
        "1e999999999",
        "1e-999999999",
        "1e99999999999999999999",
        "9" * 5000,
        "1." + "9" * 5000,
        "24:00",
        "0000-01-01",
        "2024-06-30 23:59:60",
        "2024-01-01T10:00:00+99:00",
        "\x00",
    ],
    ids=lambda text: ascii(text[:24]),
)
def test_any_string_is_converted_or_refused(text, type_):
    answered(lambda: value(f"CAST(a.s AS {type_})", s=pa.array([text])))


@pytest.mark.parametrize("aggregate", ["sum(a[].x)", "sum(a[].d)", "sum(a[].e)", "sum(a[].x + 1)"])
def test_an_overflow_inside_an_aggregate_is_an_error(aggregate):
    columns = {"x": [LARGEST] * 2, "d": pa.array([LARGEST] * 2, pa.duration("us"))}
    columns["e"] = pa.array([Decimal("9" * 36 + ".99")] * 2, pa.decimal128(38, 2))
    events = pa.table({"type": ["A", "A"], "t": [1, 2], **columns})
    refused(lambda: matched(f"EVENT A+ a[] RETURN {aggregate} AS v", events), "overflow")
    refused(lambda: matched(f"EVENT A+ a[] HAVING {aggregate} IS NULL", events), "overflow")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.u = a.b", True),
        ("a.u < a.b", False),
        ("a.b < a.u", False),
        ("a.b IN (a.u)", True),
        ("a.u - a.b", dt.timedelta(0)),
        ("greatest(a.u, a.b) - a.u", dt.timedelta(0)),
        ("coalesce(NULL, a.b, a.u) - a.b", dt.timedelta(0)),
    ],
)
def test_instants_in_different_zones_are_compared_as_instants(expression, expected):
    zones = {
        "u": pa.array([10**15], pa.timestamp("us", "UTC")),
        "b": pa.array([10**15], pa.timestamp("us", "Asia/Tokyo")),
    }
    assert value(expression, **zones) == expected


@pytest.mark.parametrize("zone", ["+05:30", "-00:01", "Mars/Phobos", "../etc/passwd", "/etc/passwd", "utc", "\x00"])
@pytest.mark.parametrize("moment", ["0001-01-01 00:00:00", "2024-03-31 02:30:00", "9999-12-31 23:59:59.999999"])
def test_a_literal_beside_a_column_in_any_zone(zone, moment):
    events = one_event(z=pa.array([0], pa.timestamp("us", zone)))
    answered(lambda: matched(f"EVENT A a WHERE a.z < TIMESTAMP '{moment}'", events))
    answered(lambda: explained(f"EVENT A a WHERE a.z < TIMESTAMP '{moment}'", events, order_by="t"))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("moment", ["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"])
def test_the_first_and_the_last_moment_can_be_explained(zone, moment):
    events = one_event(z=pa.array([0], pa.timestamp("us", zone)))
    explained(f"EVENT A a WHERE a.z < TIMESTAMP '{moment}'", events, order_by="t")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("%" * 12 + "z", "a" * 12, False),
        ("a%" * 12 + "z", "a" * 3_000, False),
        ("_" * 10_000, "a" * 10_000, True),
        ("\\", "\\", True),
        ("a\\", "a\\", True),
        ("\\%", "x", False),
        ("[a", "[a", True),
        ("(a+)+$", "aaaa", False),
        ("", "", True),
        ("%", "\n\x00", True),
        ("_", "😀", True),
    ],
    ids=lambda part: ascii(part)[:24],
)
def test_any_like_pattern_is_decided_in_time(pattern, text, expected):
    assert value("a.s LIKE a.p", s=pa.array([text]), p=pa.array([pattern])) is expected


@pytest.mark.parametrize(
    "times",
    [
        pa.array([SMALLEST, 0, LARGEST, LARGEST]),
        pa.array([float("-inf"), 0.0, float("inf"), float("inf")]),
        pa.array([-1.7e308, -0.0, 0.0, 1.7e308]),
        pa.array([SMALLEST, 0, LARGEST, LARGEST], pa.timestamp("us")),
        pa.array([-(2**31), 0, 2**31 - 1, 2**31 - 1], pa.date32()),
        pa.array([-128, 0, 127, 127], pa.int8()),
        pa.array([Decimal(-(10**16)) + 1, Decimal(0), Decimal(10**16) - 1, Decimal(10**16) - 1], pa.decimal128(18, 2)),
    ],
    ids=lambda times: str(times.type),
)
@pytest.mark.parametrize("pattern", ["A a, B b", "!(B n), A a, B b", "A a, B b, !(A n)", "A a, !(A n), B b"])
def test_a_window_at_the_ends_of_time(times, pattern):
    events = pa.table({"type": ["A", "B", "A", "B"], "t": times})
    for window in ("1", "1.5", "1 day", "9223372036854775807", "9223372036854775807 microseconds", "2 events"):
        answered(lambda window=window: matched(f"EVENT SEQ({pattern}) WITHIN {window}", events))


@pytest.mark.parametrize("times", [pa.array([1, None, None]), pa.array([1.0, float("nan"), None])])
def test_a_missing_order_key_names_the_column_and_counts_the_rows(times):
    refused(lambda: matched("EVENT A a", pa.table({"type": ["A"] * 3, "t": times})), "'t'", "2 rows")


# --- output ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["match_start", "match_end"])
def test_a_partition_key_called_like_a_time_of_the_match(name):
    answered(lambda: matched(f"EVENT A a WHERE [{name}]", one_event(**{name: pa.array([5])})))


def test_a_collection_that_may_be_null():
    events = pa.table({"type": ["A", "A"], "t": [1, 2]})
    text = "EVENT A+ a[] RETURN CASE WHEN a.LEN > 1 THEN collect(a[].t) END AS v"
    assert matched(text, events).column("v").to_pylist() == [None, [1, 2], None]


def test_the_run_limit_is_an_error_that_names_partition_and_limit():
    events = pa.table({"type": ["A"] * 20, "t": range(20), "k": ["x\n\x1b[31m" * 1_000] * 20})
    refused(lambda: matched("EVENT A+ a[] WHERE [k]", events, run_limit=100), "k = ", "100", "run_limit")
    refused(lambda: matched("EVENT A+ a[]", events, run_limit=100), "100", "run_limit")


def test_the_default_run_limit_is_reached_in_time():
    refused(lambda: matched("EVENT A+ a[]", pa.table({"type": ["A"] * 60, "t": range(60)}), run_limit=100_000))


@pytest.mark.parametrize("name", ['"', "\\", '\\"', "a\nb", "a -> b", "{", "<b>", "é"])
def test_the_graph_of_any_names_stays_within_its_quotes(name):
    dot = kleene.sase(f"EVENT SEQ(`{name}`+ `{name}`[], B b) WHERE b.x = '{name}'").explain(dot=True)
    for line in dot.splitlines():
        assert line.replace("\\\\", "").replace('\\"', "").count('"') % 2 == 0


def test_explain_can_be_told_the_type_column():
    events = pa.table({"kind": ["A", "B"], "t": [1, 2]})
    query = kleene.sase("EVENT SEQ(A a, B b)")
    assert query.match(events, order_by="t", type_column="kind").num_rows == 1
    assert "stacks" in query.explain(events, order_by="t", type_column="kind")


# --- programs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "FROM X EVENT X x INTO Y; FROM Y EVENT Y y INTO X",
        "FROM C EVENT C c INTO A; FROM A EVENT A a INTO B; FROM B EVENT B b INTO C",
        "EVENT A a INTO X; EVENT B b INTO X",
        "EVENT A a INTO query_2; EVENT B b",
        "EVENT A a RETURN a.x AS match_end INTO X; FROM X EVENT X x",
        "EVENT A a INTO X; FROM X EVENT A a",
        "EVENT A a INTO X; FROM X EVENT X x WHERE x.nope = 1",
        "EVENT A a INTO X; FROM X EVENT X x WHERE x.a < x.a",
        "EVENT A a INTO X; FROM X EVENT X x WHERE [a]",
        "EVENT A a INTO X; FROM X EVENT X x WHERE x.a.nope = 1",
        "EVENT A a RETURN a.x AS __kleene_type INTO X; FROM X EVENT X x",
        "FROM P EVENT A a; FROM Q EVENT A a",
        "EVENT A a RETURN a.x AS __kleene_time INTO X; FROM X, events EVENT X x",
        "EVENT A a RETURN a.x AS __kleene_order_0 INTO X; FROM X, events EVENT X x",
        "FROM X, events, X EVENT X x; EVENT A a INTO X",
        "FROM P, Q EVENT A a",
        "EVENT A a INTO X; FROM X, events, Y EVENT SEQ(X x, Y y); FROM Y, Z EVENT Y y",
        "FROM Z, Y EVENT A a INTO X; FROM events, X EVENT A a INTO Y; FROM Y EVENT Y y INTO Z",
    ],
)
def test_a_program_that_does_not_fit_together_is_refused(text):
    refused(lambda: kleene.program(text).match(EVENTS, order_by="t"))


@pytest.mark.parametrize("name", ["x y", "a``b", "a\nb", "'\"\\", "😀", "from", "-- x"], ids=ascii)
def test_a_stream_of_any_name_can_be_read(name):
    found = kleene.program(f"EVENT A a INTO `{name}`; FROM `{name}` EVENT `{name}` z")
    answered(lambda: found.match(EVENTS, order_by="t"))
    answered(lambda: repr(found) + found.explain() + found.explain(dot=True))
    together = kleene.program(f"EVENT A a INTO `{name}`; FROM events, `{name}` EVENT SEQ(A a, `{name}` z)")
    answered(lambda: together.match(EVENTS, order_by="t"))


@pytest.mark.parametrize("inputs", [{"A": EVENTS}, {1: EVENTS}, {None: EVENTS, "A": EVENTS}, {"S": {}}, {"S": None}])
def test_a_stream_that_is_not_given_is_refused(inputs):
    refused(lambda: kleene.program("FROM S EVENT A a").match(inputs, order_by="t"))
    refused(lambda: kleene.program("FROM S, A EVENT SEQ(A a, S s)").match(inputs, order_by="t"))


@pytest.mark.parametrize("name", ["match_start", "match_end"])
def test_a_query_of_a_program_can_give_out_the_times_of_what_it_reads(name):
    found = kleene.program(f"EVENT A a INTO X; FROM X EVENT X x RETURN x.{name}").match(EVENTS, order_by="t")
    assert found["query_2"].to_pylist() == [{name: 1}, {name: 3}]


def test_queries_of_a_program_that_read_one_stream_see_the_same_events():
    found = kleene.program("EVENT A a; EVENT A a")
    assert [table.num_rows for table in found.match(EVENTS, order_by="t").values()] == [2, 2]
    assert [table.num_rows for table in found.match(EVENTS.to_reader(), order_by="t").values()] == [2, 2]
    inputs = {"A": EVENTS.to_reader()}
    assert [table.num_rows for table in found.match(inputs, order_by="t").values()] == [4, 4]


def test_a_program_of_300_queries_in_the_wrong_order():
    chain = [f"FROM X{n} EVENT X{n} x RETURN x.x INTO X{n + 1}" for n in range(1, 300)]
    found = kleene.program("; ".join([*reversed(chain), "EVENT A a RETURN a.x INTO X1"]))
    assert {table.num_rows for table in found.match(EVENTS, order_by="t").values()} == {2}


def test_events_nested_in_events_thirty_deep():
    chain = [f"FROM X{n} EVENT X{n}+ x[] WITHIN 1 events INTO X{n + 1}" for n in range(1, 30)]
    found = kleene.program("; ".join(["EVENT A a INTO X1", *chain])).match(EVENTS, order_by="t")
    assert {table.num_rows for table in found.values()} == {2}


def test_hostile_texts_are_refused_or_answered() -> None:
    """Many more are tried by `make fuzz`."""
    found = {outcome(number) for number in range(600)}
    assert found == {"refused", "answered"}

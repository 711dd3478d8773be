"""Every query printed in the papers on row patterns and on the regular-expression operator, as printed."""

from __future__ import annotations

import datetime as dt
import random
import re

import pyarrow as pa
import pytest

import kleene
from kleene.ir.row_text import row_query_text
from paper_queries import HEAD_AND_SHOULDERS, M_SHAPE, NOT_TOO_LONG, RIP_APPENDIX, SAME_TAGS, TABLE_5

PEAKS = [10, 12, 14, 13, 12, 15, 18, 16, 13, 15, 16, 14, 9]


def trades(count: int = 300) -> pa.Table:
    chance = random.Random(5)
    return pa.table({"price": [chance.uniform(50, 150) for _ in range(count)]})


def test_rip_2013_query_1_runs_as_printed() -> None:
    pytest.importorskip("duckdb")
    stock = pa.table({"symbol": ["A"] * len(PEAKS), "price": [float(price) for price in PEAKS]})
    found = kleene.sql(HEAD_AND_SHOULDERS, tables={"StockTrade": stock}).to_pylist()
    tops = {"left_shoulder_top": 14.0, "head_top": 18.0, "right_shoulder_top": 16.0, "point_of_reversal": 9.0}
    assert found == [{"symbol": "A", **tops}]


def test_the_clause_of_rip_2013_query_1_stands_alone_too() -> None:
    clause = HEAD_AND_SHOULDERS[HEAD_AND_SHOULDERS.index("MATCHRECOGNIZE") :]
    query = kleene.match_recognize(clause)
    assert query.definition.max_length == 100
    assert kleene.match_recognize(row_query_text(query.definition)) == query


@pytest.mark.parametrize("pattern", RIP_APPENDIX.values(), ids=RIP_APPENDIX)
def test_rip_2013_appendix_query_runs_as_printed(pattern: str) -> None:
    clause = f"MEASURES FIRST(price) AS first, count(*) AS n ALL MATCHES {pattern} MAXLENGTH 20"
    query = kleene.match_recognize(clause)
    assert kleene.match_recognize(row_query_text(query.definition)) == query
    expected = query.match(trades(), engine="reference").to_pylist()
    assert query.match(trades(), engine="generated").to_pylist() == expected
    standard = kleene.match_recognize(f"MEASURES count(*) AS n {pattern}")
    assert standard.match(trades()).num_rows <= len(expected)


def test_rip_2013_appendix_queries_that_are_short_find_matches() -> None:
    for name in ("rip_q2", "rip_q7", "rip_q12"):
        clause = f"MEASURES count(*) AS n ALL MATCHES {RIP_APPENDIX[name]} MAXLENGTH 20"
        assert kleene.match_recognize(clause).match(trades()).num_rows > 0, name


def test_match_regex_2012_figure_1_runs_as_printed() -> None:
    prices = [10, 12, 15, 13, 14, 13, 9]
    quotes = pa.table({"symbol": ["X"] * 7, "seqNum": range(7), "price": prices})
    found = kleene.regex(**M_SHAPE, order_by="seqNum").match(quotes).to_pylist()
    assert found == [{"symbol": "X", "seqNum": 0, "count": 7, "maxPrice": 15}]


def tags_eq(one: str, two: str) -> bool:
    return sorted(re.findall(r"#\w+", one)) == sorted(re.findall(r"#\w+", two))


def test_match_regex_2012_figure_2_runs_as_printed() -> None:
    tweets = pa.table({"author": ["a"] * 7, "t": range(7), "content": [f"{n} #x" for n in range(6)] + ["#y"]})
    query = kleene.regex(**SAME_TAGS, order_by="t", functions={"tagsEq": tags_eq})
    # In a predicate, Count() counts the events before: the sixth completes the match.
    assert query.match(tweets).to_pylist() == [{"count": 6, "all": [f"{n} #x" for n in range(6)]}]


@pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
@pytest.mark.parametrize("pattern", TABLE_5.values(), ids=TABLE_5)
def test_match_regex_2012_table_5_pattern_runs_as_printed(pattern: str) -> None:
    names = sorted(set(re.findall(r"\w+", pattern)))
    predicates = {name: f"price % {len(names)} = {number}" for number, name in enumerate(names)}
    query = kleene.regex(pattern=pattern, order_by="t", predicates=predicates, output={"n": "Count()"})
    chance = random.Random(1)
    events = pa.table({"t": range(200), "price": [chance.randrange(12) for _ in range(200)]})
    expected = query.match(events, engine="reference").to_pylist()
    assert expected
    assert query.match(events).to_pylist() == expected


def test_match_regex_2012_delta_is_in_the_unit_of_a_time_that_is_a_number() -> None:
    query = kleene.regex(
        pattern=TABLE_5["finance5"],
        order_by="ts",
        predicates={"notTooLong": NOT_TOO_LONG, "largeIncrease": f"{NOT_TOO_LONG} && price > First(price) * 1.1"},
        output={"from": "First(price)", "to": "Last(price)", "took": "Delta(ts)"},
    )
    events = pa.table({"ts": [0.0, 0.2, 0.4, 1.0, 1.6], "price": [10.0, 10.5, 11.5, 10.0, 20.0]})
    assert query.match(events).to_pylist() == [{"from": 10.0, "to": 11.5, "took": 0.4}]


def test_match_regex_2012_table_2_subscripts_of_lists_and_maps() -> None:
    events = pa.table(
        {
            "t": [1, 2],
            "i": [0, 1],
            "tags": [["a", "b"], ["b", "c"]],
            "scores": pa.array([[("x", 1)], [("x", 5)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    query = kleene.regex(
        pattern="one two",
        order_by="t",
        predicates={"one": "tags[i] == 'a' && scores['x'] < 3", "two": "tags[i] == 'c' && tags[i - 1] == 'b'"},
        output={"last": "tags[i]", "first": "First(scores)['x']", "kept": "Collect(t)[1]"},
    )
    expected = [{"last": "c", "first": 1, "kept": 2}]
    assert [query.match(events, engine=engine).to_pylist() for engine in ("reference", "auto")] == [expected] * 2


def loudly(text: str) -> str:
    return text.upper()


def third(number: int) -> float:
    return number // 3


def wrong(number: int) -> int:
    return str(number)  # type: ignore[return-value]


def test_match_regex_2012_table_2_functions_in_outputs() -> None:
    query = kleene.regex(
        pattern="a",
        order_by="t",
        predicates={"a": "loudly(s) == 'X'"},
        output={"s": "loudly(s)", "u": "upper(s)", "n": "third(t) + 0.5"},
        functions={"loudly": loudly, "third": third},
    )
    found = query.match(pa.table({"t": [3, 4], "s": ["x", "y"]}))
    assert found.to_pylist() == [{"s": "X", "u": "X", "n": 1.5}]
    assert found.schema.types == [pa.string(), pa.string(), pa.float64()]


def test_a_function_that_returns_another_type_than_it_says_is_an_error() -> None:
    query = kleene.regex(
        pattern="a", order_by="t", predicates={"a": "t > 0"}, output={"n": "wrong(t)"}, functions={"wrong": wrong}
    )
    with pytest.raises(kleene.ExecutionError, match="'wrong' returned '1', but it says that it returns an int"):
        query.match(pa.table({"t": [1]}))


def test_match_regex_2012_delta_of_a_timestamp_is_a_duration() -> None:
    query = kleene.regex(
        pattern=". soon", order_by="ts", predicates={"soon": "Delta(ts) < 5 seconds"}, output={"took": "Delta(ts)"}
    )
    start = dt.datetime(2024, 1, 31)
    events = pa.table({"ts": [start, start + dt.timedelta(seconds=4)]})
    assert query.match(events).to_pylist() == [{"took": dt.timedelta(seconds=4)}]

"""Every reason that `why` gives for a row pattern or a regular expression is true, and its matches are those found."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kleene
from kleene.analysis.row_pattern import AnalyzedRowPattern, analyze_row_pattern
from kleene.engine.frames import frame_ends
from kleene.engine.inputs import open_rows
from kleene.engine.row_reference import PartitionMatcher
from kleene.engine.rows import plain_columns, row_partitions, sorted_rows, with_computed_keys
from kleene.why.answer import Why
from kleene.why.model import Kind
from kleene.why.question import ROW
from kleene.why.row_asking import with_rows
from regex_strategies import random_regex_case
from row_strategies import outcome, random_row_case
from true_reasons import assert_true, checks_of

Found = list[list[tuple[str, int]]]


def reference_matchers(query: kleene.Query, table: pa.Table) -> list[tuple[PartitionMatcher, list[int], pa.Table, Any]]:
    """The interpreter of each partition, with the rows of the input that it sees."""
    source = open_rows(table, query.definition)
    analyzed: AnalyzedRowPattern = analyze_row_pattern(query.definition, source.schema, source.schema.hidden)
    read = source.read(source.columns.names)
    ordered = sorted_rows(analyzed, with_computed_keys(analyzed, with_rows(read)))
    measured = analyzed.measured_column
    further = {} if measured is None else {measured: analyzed.time_type}
    assert analyzed.schema is not None
    columns = plain_columns([item for _, item in analyzed.conditions], analyzed.schema, ordered, further)
    found = []
    for places in row_partitions(analyzed, ordered):
        here = {name: [values[place] for place in places] for name, values in columns.items()}
        found.append((PartitionMatcher(analyzed, here, len(places), 100_000), places, ordered, analyzed))
    return found


def reference_matches(query: kleene.Query, table: pa.Table) -> Found:
    found: Found = []
    for matcher, places, ordered, analyzed in reference_matchers(query, table):
        rows = ordered.column(ROW).to_pylist()
        matches = matcher.matches()
        if analyzed.frame is not None:
            count = len(places)
            ends = frame_ends(analyzed.frame, ordered, np.array(places), np.full(count, count), query.definition.source)
            matches = (match for match in matcher.of_each_row(ends.tolist()) if match is not None)
        for match in matches:
            bound = [rows[places[match.start + number]] for number in range(len(match.variables))]
            found.append(list(zip(match.variables, bound, strict=True)))
    return found


def walked_matches(why: Why) -> Found:
    return [[(variable, event.row) for variable, events in match.bound for event in events] for match in why.found]


@pytest.mark.slow
def test_walk_finds_the_matches_of_the_interpreter_and_every_reason_is_true() -> None:
    seen: set[Kind] = set()
    for number in range(250):
        clause, table = random_row_case(Random(number))
        query = kleene.match_recognize(clause)
        expected = outcome(lambda: reference_matches(query, table))  # noqa: B023
        told = outcome(lambda: query.why(table, at=list(range(table.num_rows)), limit=10_000))  # noqa: B023
        if isinstance(expected, kleene.KleeneError):
            if not isinstance(expected, kleene.LimitError):
                assert (type(told), told.message) == (type(expected), expected.message), clause
            continue
        if told.notes:
            continue
        assert walked_matches(told) == expected, clause
        for check in checks_of(told):
            assert_true(check, None)
        assert_ends_are_true(query, table, told)
        seen |= {ending.kind for run in told.runs for ending in run.endings}
    assert seen >= {Kind.MATCH, Kind.PREDICATE, Kind.WINDOW, Kind.LENGTH, Kind.END, Kind.SKIPPED}


def assert_ends_are_true(query: kleene.Query, table: pa.Table, why: Why) -> None:
    """Each row begins a search or was skipped, and a search that ends by the window really left it."""
    is_all = all(run.endings for run in why.runs)
    assert is_all
    searched = [run for run in why.runs if run.number]
    skipped = [run for run in why.runs if not run.number]
    assert len(searched) + len(skipped) == table.num_rows
    numbers: dict[int, tuple[PartitionMatcher, int]] = {}
    for matcher, places, ordered, _ in reference_matchers(query, table):
        rows = ordered.column(ROW).to_pylist()
        numbers |= {rows[place]: (matcher, number) for number, place in enumerate(places)}
    for run in searched:
        for ending in run.endings:
            assert ending.kind is not Kind.PREDICATE or not any(check.holds for check in ending.checks)
            if ending.by is not None and run.rows and ending.kind is not Kind.MATCH:
                # What stopped the search stands where it came furthest.
                assert numbers[ending.by.row][1] == numbers[run.rows[-1]][1] + 1
            if ending.kind is Kind.WINDOW and run.rows:
                assert ending.by is not None
                matcher, first = numbers[run.rows[0]]
                assert numbers[ending.by.row][1] >= matcher.window_end(first)
    for run in skipped:
        [ending] = run.endings
        assert ending.kind is Kind.SKIPPED
        assert ending.by is not None
        assert ending.match is not None
        # What skipped it ended before, or it is in it.
        last = why.found[ending.match - 1].bound[-1][1][-1].row
        assert numbers[ending.by.row][0] is numbers[last][0]


def test_windows_of_rows_find_what_the_interpreter_finds() -> None:
    table = pa.table({"t": range(8), "price": [10, 12, 15, 9, 11, 13, 14, 1]})
    for skip in ("TO NEXT ROW", "PAST LAST ROW"):
        for frame in ("UNBOUNDED", "2"):
            for initial in ("", "SEEK"):
                query = kleene.pattern_window(
                    f"""ORDER BY t MEASURES LAST(UP.price) AS top
                    ROWS BETWEEN CURRENT ROW AND {frame} FOLLOWING AFTER MATCH SKIP {skip} {initial}
                    PATTERN (A UP+) DEFINE UP AS UP.price > PREV(UP.price)"""
                )
                why = query.why(table, at=0)
                assert walked_matches(why) == reference_matches(query, table)
                for check in checks_of(why):
                    assert_true(check, table)


def test_a_skipped_row_names_the_match_that_took_it() -> None:
    query = kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A B) DEFINE B AS B.x > A.x")
    why = query.why(pa.table({"t": [1, 2, 3], "x": [1, 2, 3]}), at=1)
    assert [(run.endings[0].kind, run.endings[0].match) for run in why.runs] == [(Kind.MATCH, 1), (Kind.SKIPPED, 1)]
    assert "skipped: AFTER MATCH goes on behind it, after match 1" in str(why)


def test_a_row_that_fails_by_one_part_of_its_definition_is_a_near_miss() -> None:
    query = kleene.match_recognize(
        "ORDER BY t MEASURES A.t AS a PATTERN (A B C) WITHIN 5 DEFINE B AS B.x > A.x AND B.y > 0, C AS C.x < A.x"
    )
    table = pa.table({"t": [0, 1, 2, 9], "x": [5, 6, 7, 1], "y": [1, 1, 0, 1]})
    told = query.why(table).near_misses.select(["run", "reason", "variable", "row", "predicate", "would_match"])
    assert [tuple(row.values()) for row in told.to_pylist()] == [
        (1, "predicate", "C", 2, "C.x < A.x", True),
        (2, "predicate", "B", 2, "B.y > 0", False),
    ]
    assert query.why(table.slice(2), at=0).endings.to_pylist() == [
        {"ending": "end of input", "runs": 1},
        {"ending": "window", "runs": 1},
    ]


def test_searches_are_bounded_and_the_answer_says_so() -> None:
    query = kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A+ A+ A+ B) DEFINE B AS B.x > 1")
    why = query.why(pa.table({"t": range(60), "x": [0] * 60}), max_runs=10)
    assert why.notes == (
        "stopped after 200 tries, 20 times max_runs: what comes later, matches too, was not looked at",
    )


# --- the regular-expression operator ---


@pytest.mark.slow
def test_regular_expressions_complete_where_the_interpreter_says_and_every_reason_is_true() -> None:
    seen: set[Kind] = set()
    for number in range(250):
        arguments, table = random_regex_case(Random(number))
        table = table.append_column("own_row", pa.array(range(table.num_rows), pa.int64()))
        query = kleene.regex(**arguments | {"output": {"rows": "Collect(own_row)"}})
        expected = outcome(lambda: query.match(table, engine="reference"))  # noqa: B023
        told = outcome(lambda: query.why(table, at=list(range(table.num_rows)), limit=10_000))  # noqa: B023
        if isinstance(expected, kleene.KleeneError):
            assert (type(told), told.message) == (type(expected), expected.message), arguments
            continue
        walked = [[row for _, row in match] for match in walked_matches(told)]
        assert sorted(walked) == sorted(expected.column("rows").to_pylist()), arguments
        for check in checks_of(told):
            assert_true(check, None)
        assert len(told.runs) == table.num_rows  # each event begins a run, be it for nothing
        for run in told.runs:
            [ending] = run.endings
            seen.add(ending.kind)
            if ending.kind in (Kind.PREDICATE, Kind.NOT_BEGUN):
                assert ending.checks
                assert not any(check.holds for check in ending.checks)
            if ending.kind is Kind.LOST:
                assert ending.match is not None
                winner = walked[ending.match - 1]
                assert run.rows[-1] == winner[-1]  # a match ends all others, complete or not
                assert set(run.rows) != set(winner)
    assert seen == {Kind.MATCH, Kind.LOST, Kind.PREDICATE, Kind.NOT_BEGUN, Kind.END}


def test_what_stops_a_regular_expression_is_told_with_its_values() -> None:
    query = kleene.regex(
        pattern=". rise+ drop",
        order_by="t",
        predicates={"rise": "price > Last(price)", "drop": "price < First(price)"},
        output={"top": "Max(price)"},
    )
    why = query.why(pa.table({"t": [1, 2, 3], "price": [10, 12, 11]}))
    [miss, *_] = why.near_misses.to_pylist()
    assert (miss["row"], miss["predicate"], miss["values"], miss["would_match"]) == (
        2,
        "price < first(price)",
        "price = 11, first(price) = 10",
        True,
    )


def test_rows_by_variable_are_refused() -> None:
    query = kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A)")
    with pytest.raises(kleene.UnsupportedError, match="rows by variable are for SASE queries"):
        query.why(pa.table({"t": [1]}), at={"A": 0})

"""What pictures are made of is what `match` finds: for every case of every language, match by match, event by event."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import kleene
from case_files import NUMBER, functions_of, load_all
from kleene.call import read_call
from kleene.ir.expr import Attribute
from kleene.plot.finding import sight_of
from row_cases import clause_of, load_rows, params_of, regex_of
from step_cases import expected, load_steps

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
EVERY = 8  # case, so that it is quick; which ones does not matter
Drawn = Counter[tuple[tuple[Any, Any], ...]]
"""For each match, the variable and the number of each of its events."""


def drawn(query: kleene.Query, events: Any, column: str, **options: Any) -> Drawn:
    given = {"order_by": None, "type_column": "type", "tie_break": None, "params": None} | options
    call = read_call(query.definition, is_over_all=True, engine=None, spark=None, stream=None, **given)
    seen = sight_of(call, events, (column,)).seen
    numbers, found = seen.table.column(column).to_pylist(), Counter()
    for match in range(len(seen.matches)):
        pairs = zip(*(part.tolist() for part in reversed(seen.matches.events_of(match))), strict=True)
        named = [(seen.matches.variables[variable], numbers[place]) for variable, place in pairs]
        found[tuple(named)] += 1
    return found


def long_matches(long: pa.Table, key: list[str], column: str) -> Drawn:
    matches: dict[Any, list[Any]] = {}
    for row in long.to_pylist():
        folded = {name.lower(): value for name, value in row.items()}
        name = tuple(repr(folded[part.lower()]) for part in ("match_id", *key))
        matches.setdefault(name, []).append((row["match_variable"], row[column]))
    return Counter(tuple(one) for one in matches.values())


def test_sase() -> None:
    count = 0
    for case in load_all()[::EVERY]:
        if case.is_program or case.functions or "params" in case.options:
            continue
        query = kleene.sase(case.query, functions=functions_of(case.functions))
        if query.definition.grouping is not None:
            continue
        long = query.match(case.inputs, long=True, **case.options)
        assert drawn(query, case.inputs, NUMBER, **case.options) == long_matches(long, [], NUMBER), case.name
        count += long.num_rows > 0
    assert count > 30


def with_numbers(table: pa.Table) -> pa.Table:
    return table.append_column("number of the row", pa.array(range(table.num_rows)))


def test_row_patterns() -> None:
    count = 0
    for case in load_rows("rows")[::EVERY]:
        query, events, params = clause_of(case), with_numbers(case.table), params_of(case)
        try:
            long = query.match(events, long=True, **params)
        except kleene.KleeneError:
            continue
        key = [part.name for part in query.definition.partition_by if isinstance(part, Attribute)]
        if len(key) < len(query.definition.partition_by):
            continue
        found = drawn(query, events, "number of the row", **params)
        assert found == long_matches(long, key, "number of the row"), case.name
        count += long.num_rows > 0
    assert count > 20


def test_regular_expressions() -> None:
    count = 0
    for case in load_rows("regex")[::EVERY]:
        query, events, params = regex_of(case), with_numbers(case.table), params_of(case)
        try:
            rows, long = query.match(events, **params), query.match(events, long=True, **params)
        except kleene.KleeneError:  # it returns what is an error here
            continue
        found = drawn(query, events, "number of the row", **params)
        assert sum(found.values()) == rows.num_rows, case.name
        assert found == long_matches(long, [], "number of the row"), case.name
        count += bool(found)
    assert count > 2


def test_patterns_in_steps() -> None:
    count = 0
    for case in load_steps()[::EVERY]:
        if case.item.keys() & {"illegal", "error", "timed_out"}:
            continue
        found = drawn(case.pattern, case.events, "id", order_by="t")
        assert sum(found.values()) == len(expected(case)), case.name
        count += bool(found)
    assert count > 20


def test_windows_draw_the_match_of_each_row_that_has_one() -> None:
    """A window that skips nothing has the matches of a clause that goes on with the next row."""
    table = with_numbers(pa.table({"k": ["x"] * 6 + ["y"] * 3, "t": range(9), "p": [5, 3, 4, 2, 1, 6, 9, 8, 7]}))
    text = "PARTITION BY k ORDER BY t {} AFTER MATCH SKIP TO NEXT ROW PATTERN (A D+) DEFINE D AS D.p < PREV(D.p)"
    window = kleene.pattern_window(text.format("ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"))
    clause = kleene.match_recognize(text.format("MEASURES A.p AS top"))
    found = drawn(window, table, "number of the row")
    assert found == drawn(clause, table, "number of the row")
    assert len(found) == 5

"""Generated programs and schemas, compared with plain evaluations on inputs by type that are made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from test_properties import reproducible

import kleene
from case_files import near
from strategies import EVENT_SCHEMA, TYPES, UNMATCHED_TYPE, Events, event_table, queries_with_events
from structured_query import StructuredQuery

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")

Example = tuple[StructuredQuery, Events]
MAKERS = {
    "C": (
        "PATTERN SEQ(A a, B b) WITHIN 4 RETURN b.x AS x, a.id AS id, a.t AS first, b.t AS last INTO C",
        """PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a, b) { } WITHIN 5
        RETURN sum(a[].x) AS x, b.s AS s, a[1].t AS first, b.t AS last INTO C""",
        "PATTERN B b WHERE b.x > 0 RETURN b.y AS y, b.id AS id, b.t AS first, b.t AS last INTO C",
    ),
    "D": (
        "PATTERN A a RETURN a.id AS id, a.x AS x, a.t AS first, a.t AS last INTO D",
        "PATTERN SEQ(A a, !(B b), A c) WHERE [id] RETURN c.x AS x, a.t AS first, c.t AS last INTO D",
        "FROM C, events PATTERN SEQ(C c, A a) WITHIN 3 RETURN a.x AS x, c.match_end AS first, a.t AS last INTO D",
    ),
}
"""Each tells the times of its ends too, so that a union can be made of what it gives out."""


@pytest.mark.slow
@settings(reproducible, max_examples=80)
@given(queries_with_events(), st.sampled_from(MAKERS["C"]), st.sampled_from(MAKERS["D"]), st.booleans())
def test_programs_are_queries_on_unions(case: Example, first: str, second: str, in_turn: bool) -> None:
    """Events of types C and D are composite, and those of all others primitive."""
    query, events = case[0], [one for one in case[1] if one["type"] not in MAKERS]
    makers, table = [first, second] if in_turn else [second, first], event_table(events)
    options = {"order_by": "t", "tie_break": "n", "engine": "reference"}
    union = by_type(events, {"A", "B", UNMATCHED_TYPE}, {})
    for place, (name, made) in enumerate(kleene.program("; ".join(makers)).match(table, **options).items(), 1):
        union[name] = composite(made, 100 * place)
    expected = outcome(
        lambda: kleene.sase(str(query)).match(union, **options | {"order_by": "time_", "tie_break": "place_"})
    )
    event("an error" if isinstance(expected, str) else f"{min(len(expected), 2)} matches or more")
    text = "; ".join([*makers, f"FROM D, events, C {query}"])
    for engine in ("reference", "generated"):
        found = outcome(
            lambda engine=engine: kleene.program(text).match(table, **options | {"engine": engine})["query_3"]
        )
        assert found == expected


@pytest.mark.slow
@settings(reproducible, max_examples=80)
@given(
    queries_with_events(),
    st.dictionaries(st.sampled_from(TYPES), st.lists(st.sampled_from(["id", "x", "y", "s"]), unique=True)),
)
def test_a_schema_says_what_inputs_by_type_say(case: Example, types: dict[str, list[str]]) -> None:
    query, events = case
    options = {"format": query.format, "engine": "reference"}
    union = by_type(events, {*TYPES, UNMATCHED_TYPE}, types)
    expected = outcome(lambda: kleene.sase(str(query)).match(union, order_by="time_", tie_break="place_", **options))
    event("an error" if isinstance(expected, str) else f"{min(len(expected), 2)} matches or more")
    options |= {"order_by": "t", "tie_break": "n", "schema": kleene.Schema(types)}
    for engine in ("reference", "generated"):
        found = outcome(
            lambda engine=engine: kleene.sase(str(query)).match(event_table(events), **options | {"engine": engine})
        )
        assert found == expected


def by_type(events: Events, types: set[str], attributes: dict[str, list[str]]) -> dict[str, pa.Table]:
    """An input for each type, with the attributes that it has: all of them, if none are given."""
    found = {}
    for name in sorted(types):
        own = ["type", "t", "n", *attributes.get(name, ["id", "x", "y", "s"])]
        table = event_table([one for one in events if one["type"] == name])
        table = table.select([column for column in EVENT_SCHEMA.names if column in own])
        found[name] = table.append_column("time_", table.column("t")).append_column("place_", table.column("n"))
    return found


def composite(made: pa.Table, place: int) -> pa.Table:
    places = pa.array(range(place, place + made.num_rows), pa.int64())
    for name, own in (("match_start", "first"), ("match_end", "last"), ("time_", "last")):
        made = made.append_column(name, made.column(own))
    return made.append_column("place_", places)


def outcome(found: Callable[[], pa.Table]) -> Any:
    """The rows, without the columns that only a union has; or what kind of error there is."""
    try:
        return near(_plain(found().to_pylist()))
    except kleene.KleeneError as error:
        return type(error).__name__


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if name not in ("time_", "place_")}
    return [_plain(item) for item in value] if isinstance(value, list) else value

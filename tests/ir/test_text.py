"""A query that is printed reads back as an equal query."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

import kleene
from kleene.ir.text import query_text
from strategies import queries
from structured_query import StructuredQuery

# Derandomized, so that a failure in CI is a failure everywhere.
reproducible = settings(deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])


@settings(reproducible, max_examples=150)
@given(queries())
def test_printed_query_reads_back_as_an_equal_query(written: StructuredQuery) -> None:
    query = kleene.sase(str(written))
    printed = query_text(query.definition)
    assert kleene.sase(printed) == query
    assert query_text(kleene.sase(printed).definition) == printed


# A bug of kleene: NOT NOT is dropped where it stands side by side, but kept where brackets part it, so that the printed
# text of the second kind reads back as another query.
@pytest.mark.parametrize(
    "condition", ["NOT (a.x IS NOT NULL)", "NOT (a.x NOT IN (1, 2))", "NOT (a.s NOT LIKE 'p')", "NOT (NOT (a.x > 1))"]
)
def test_printed_double_negation_reads_back_as_an_equal_query(condition: str) -> None:
    query = kleene.sase(f"EVENT A a WHERE {condition}")
    assert kleene.sase(query_text(query.definition)) == query

"""Queries that grow: what takes too long is left to machine code, and what makes too much code to the interpreter."""

from __future__ import annotations

import pytest

import kleene
from kleene.analysis.analyze import analyze
from kleene.engine import run
from kleene.engine.compiled.measures import generate_measures
from kleene.engine.compiled.row_engine import RowEngine
from random_events import SCHEMA, events

pytestmark = pytest.mark.usefixtures("in_time")


def test_interpreter_that_goes_around_in_circles_leaves_it_to_machine_code(monkeypatch):
    monkeypatch.setattr(run, "FEW_SECONDS", 0.01)
    start, found = RowEngine.start, []
    monkeypatch.setattr(RowEngine, "start", lambda *given: found.append(given) or start(*given))
    query = kleene.match_recognize("ORDER BY t MEASURES count(*) AS n PATTERN ((A?){20} A{40}) DEFINE A AS x >= 0")
    assert query.match(events(30)).num_rows == 0
    assert len(found) == 1


def test_code_that_would_take_long_to_compile_is_left_to_the_interpreter():
    condition = " AND ".join(f"a.x + {n} < b.y * {n + 1}" for n in range(1_000))
    explained = kleene.sase(f"EVENT SEQ(A a, B b) WHERE {condition} WITHIN 5").explain(events(10), order_by="t")
    assert "the plain interpreter, since the compiled engine has no code for conditions that make" in str(explained)


def test_thousands_of_columns_are_not_one_function():
    columns = ", ".join(f"a.x + {n} AS c{n}" for n in range(2_000))
    query = kleene.sase(f"EVENT SEQ(A a, B b) WITHIN 3 RETURN {columns}")
    found = query.match(events(30), order_by="t")
    assert found.num_columns == 2_000
    assert generate_measures(analyze(query.definition, SCHEMA, ("t",)), frozenset()).computed == ()

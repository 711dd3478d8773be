"""Which engine runs a plan: made once, with the automaton that EXPLAIN shows."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

import kleene
from flat_options import call_of
from kleene.api import prepare
from kleene.automaton.compile import automaton_of
from kleene.automaton.text import automaton_text
from kleene.engine import choice
from kleene.engine.compiled import regex_engine, row_search, run_engine, sequence_engine
from kleene.engine.progress import PreparedQuery
from kleene.engine.run import Runner

EVENTS = pa.table({"type": ["A", "B"] * 4, "t": range(8), "x": [1] * 7 + [None]})
QUERIES = {
    "runs": kleene.sase("PATTERN SEQ(A+ a[], B b) WHERE [x] AND 1 = 1 WITHIN 5"),
    "sequences": kleene.sase("PATTERN SEQ(A a, B b) WHERE [x] WITHIN 5"),
    "rows": kleene.match_recognize("ORDER BY t MEASURES A.t AS a PATTERN (A B+) DEFINE B AS B.x = 1"),
    "regex": kleene.regex(
        pattern="a b", order_by="t", predicates={"a": "x = 1", "b": "t > 1"}, output={"n": "Count()"}
    ),
}


def plan_of(name: str):
    query = QUERIES[name]
    order = {"order_by": "t"} if name in ("runs", "sequences") else {}
    return prepare(call_of(query.definition, **order, engine="generated"), EVENTS)[1]


@pytest.fixture
def made(monkeypatch) -> Counter:
    """How often source was made, by the columns with NULLs."""
    counted: Counter = Counter()
    generators = [
        (run_engine, "generate", 2),
        (sequence_engine, "generate_sequence", 2),
        (row_search, "generate_rows", 2),
        (regex_engine, "generate_regex", 2),
    ]
    for module, name, place in generators:
        generate = getattr(module, name)

        def spy(*given, generate=generate, place=place):
            counted[given[place]] += 1
            return generate(*given)

        monkeypatch.setattr(module, name, spy)
    return counted


@pytest.mark.parametrize("name", QUERIES)
def test_source_is_made_once_for_each_plan_and_columns_with_nulls(name: str, made: Counter) -> None:
    plan = plan_of(name)
    for _ in range(2):
        list(Runner(plan).batches(EVENTS))
        PreparedQuery(plan, EVENTS.schema).started()
        choice.choose(plan)
    assert made
    assert set(made.values()) == {1}


def test_engine_goes_with_its_plan() -> None:
    plan = replace(plan_of("runs"))  # its own: plans of calls are remembered
    engine = choice.choose(plan).engine
    assert choice.choose(plan).engine is engine
    key = next(known for known in choice._ENGINES if known[0] == id(plan))
    assert choice._ENGINES[key] is engine
    del plan, engine
    gc.collect()  # it may take engines of other tests along, so only this one is looked at
    assert key not in choice._ENGINES


@pytest.mark.parametrize("name", ["runs", "rows", "regex"])
def test_automaton_that_explain_prints_is_the_one_that_was_compiled(name: str) -> None:
    plan = plan_of(name)
    engine = choice.choose(plan).compiled
    assert engine.automaton == automaton_of(plan)
    order = {"order_by": "t"} if name == "runs" else {}
    shown = QUERIES[name].explain(EVENTS, **order, engine="generated").split("\nautomaton\n")[1]
    assert shown == "\n".join("  " + line for line in automaton_text(engine.automaton).splitlines())
    assert "1 = 1" not in shown


def test_sequences_have_stacks_and_no_automaton() -> None:
    shown = QUERIES["sequences"].explain(EVENTS, order_by="t")
    assert "\nstacks\n" in shown
    assert "\nautomaton\n" not in shown
    assert choice.choose(plan_of("sequences")).engine.automaton is None

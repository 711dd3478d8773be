"""Generated queries on streams, cut and shuffled at random, give what they give on tables."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="Spark's tester came after PySpark 4.0")

import kleene
from case_files import near
from flat_options import call_of
from kleene.api import prepare
from kleene.engine.progress import PreparedQuery
from kleene.engine.threads import run
from kleene.schema import INTEGER, TimestampType
from on_stream import matched_on_stream, task_of
from plan_strategies import random_plan
from row_strategies import random_row_case
from strategies import event_table, queries_with_events, some_examples

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


def outcome(find) -> list[str] | str:
    """The rows, or what the error says."""
    try:
        return sorted(map(repr, near(find().to_pylist())))
    except kleene.KleeneError as error:
        return error.message


def is_same_on_a_stream(plan, table: pa.Table, random: Random) -> bool:
    """Whether the query is one that has matches; that they are the same is checked."""
    PreparedQuery(plan, table.schema)
    if not isinstance(plan.query.time_type, TimestampType) and plan.query.time_type != INTEGER:
        return False
    task = task_of(plan, table)
    if table.column(task.reads.time_column).null_count or task.order.columns[0].descending:
        return False
    expected = outcome(lambda: run(plan, task.order.sorted_by_time(table)))
    found = outcome(lambda: matched_on_stream(plan, table, random))
    if isinstance(expected, list):
        assert found == expected
    return isinstance(expected, list) and bool(expected)


def same_sequences(seed: int, count: int) -> int:
    random, matched = Random(seed), 0
    for _ in range(count):
        case = random_plan(random, most=100)
        call = call_of(kleene.sase(str(case.query)).definition, **case.options, engine="generated")
        table, plan = prepare(call, case.events)
        matched += is_same_on_a_stream(plan, table, random)
    return matched


def same_strategies(seed: int, count: int) -> int:
    random, matched = Random(seed), 0
    for query, events in some_examples(queries_with_events(), lambda _: True, count, seed):
        definition = kleene.sase(str(query)).definition
        call = call_of(definition, order_by="t", format=query.format, engine="generated")
        table, plan = prepare(call, event_table(events))
        matched += is_same_on_a_stream(plan, table, random)
    return matched


def same_row_patterns(seed: int, count: int) -> int:
    random, matched = Random(seed), 0
    for _ in range(count):
        clause, events = random_row_case(random)
        try:
            table, plan = prepare(call_of(kleene.match_recognize(clause).definition, engine="generated"), events)
            PreparedQuery(plan, table.schema)
        except kleene.KleeneError:
            continue  # rows that have no order, or a query that the generated engine cannot run
        matched += is_same_on_a_stream(plan, table, random)
    return matched


def test_generated_sequences_on_a_stream() -> None:
    assert same_sequences(1, 40) > 10


def test_generated_queries_with_all_strategies_on_a_stream() -> None:
    assert same_strategies(3, 40) > 6


def test_generated_row_patterns_on_a_stream() -> None:
    assert same_row_patterns(5, 120) > 8

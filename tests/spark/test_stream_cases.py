"""On a stream every case gives the batch answer, however its events are cut into micro-batches, and however late."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="Spark's tester came after PySpark 4.0")

import kleene
from case_files import Case, functions_of, load_all, near
from flat_options import call_of
from kleene.api import prepare
from kleene.engine.choice import choose
from kleene.engine.threads import run
from kleene.schema import DATE, FLOAT, INTEGER, TimestampType
from on_stream import matched_on_stream, task_of
from row_cases import RowCase, clause_of, load_rows, params_of

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


def rows_of(table) -> list:
    return sorted(map(repr, near(table.to_pylist())))


@pytest.mark.parametrize("case", load_all(), ids=lambda case: case.name)
def test_case_on_a_stream(case: Case) -> None:
    if case.is_program:
        pytest.skip("a program is several queries")
    query = kleene.sase(case.query, functions=functions_of(case.functions))
    call = call_of(query.definition, **case.options, engine="generated")
    table, plan = prepare(call, case.inputs)
    check(plan, table)


@pytest.mark.parametrize("case", load_rows("rows"), ids=lambda case: case.name)
def test_row_pattern_case_on_a_stream(case: RowCase) -> None:
    definition = clause_of(case).definition
    check(*reversed(prepare(call_of(definition, engine="generated", **params_of(case)), case.table)))


def check(plan, table) -> None:
    try:
        choose(plan)
    except kleene.UnsupportedError:
        pytest.skip("only the interpreter runs it")
    if plan.query.time_type not in (INTEGER, FLOAT, DATE) and not isinstance(plan.query.time_type, TimestampType):
        pytest.skip("a stream is ordered by a time or a number")
    if any(getattr(column, "descending", False) for column in plan.query.order_by):
        pytest.skip("a stream is matched in ascending order")
    if table.column(task_of(plan, table).reads.time_column).null_count:
        pytest.skip("an event of a stream has a time")
    expected = rows_of(run(plan, task_of(plan, table).order.sorted_by_time(table)))
    for seed in range(3):
        assert rows_of(on_stream(plan, table, seed)) == expected


def on_stream(plan, table, seed: int):
    try:
        return matched_on_stream(plan, table, Random(seed))
    except kleene.ExecutionError as error:
        if "does not fit, or is out of range" not in str(error):
            raise
    pytest.skip("numbers of more than 18 digits are the interpreter's, which takes whole tables")

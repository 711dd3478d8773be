"""Matching in ranges gives what matching in one piece gives, wherever the order is cut."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

import kleene
from case_files import Case, load_all, near
from flat_options import call_of
from in_ranges import matched_in_ranges
from kleene.api import prepare
from kleene.engine.ranges import Uncut
from kleene.engine.threads import run
from kleene.ir.options import Window, WindowUnit
from row_cases import RowCase, load_rows, params_of

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


def rows_of(table) -> list:
    return sorted(map(repr, near(table.to_pylist())))


@pytest.mark.parametrize("case", load_all(), ids=lambda case: case.name)
def test_case_in_ranges(case: Case) -> None:
    if case.is_program:
        pytest.skip("a program is several queries")
    definition = kleene.sase(case.query).definition
    if (
        definition.window is None and definition.window_parameter is None
    ):  # most cases have none; bounded, they can be cut
        definition = replace(definition, window=Window(5, WindowUnit.EVENTS))
    table, plan = prepare(call_of(definition, **case.options, engine="generated"), case.inputs)
    check(plan, table)


@pytest.mark.parametrize("case", load_rows("rows"), ids=lambda case: case.name)
def test_row_pattern_case_in_ranges(case: RowCase) -> None:
    definition = kleene.match_recognize(case.item["clause"]).definition
    if definition.window is None and definition.window_parameter is None and definition.max_length is None:
        definition = replace(definition, max_length=4)
    table, plan = prepare(call_of(definition, engine="generated", **params_of(case)), case.table)
    check(plan, table)


def check(plan, table) -> None:
    try:
        expected = rows_of(run(plan, table))
    except kleene.UnsupportedError as reason:
        pytest.skip(str(reason).splitlines()[0])
    for seed in range(3):
        found = matched_in_ranges(plan, table, Random(seed))
        if isinstance(found, Uncut):
            pytest.skip(found.reason)
        assert rows_of(found) == expected

"""Runs that left their window incomplete: cases, pieces cut at random, and a brute force that knows nothing of runs."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import kleene
from case_files import Case, check_rows_of_any_order, load, run_case

CASES = load("timeouts.toml")


@pytest.mark.parametrize("engine", ["reference", "generated"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_of_a_whole_table(case: Case, engine: str) -> None:
    check_rows_of_any_order(case, run_case(case, engine=engine).to_pylist())

"""Loops that serve every query: every matching case again, and generated queries, beside the reference engine."""

from __future__ import annotations

import random

import pytest

import kleene
from agreement import CANNOT_RUN, EXAMPLES, disagreement, sase_examples
from case_files import Case, check, load_all, run_case
from row_cases import RowCase, check_rows, load_rows, params_of, regex_of

pytestmark = [pytest.mark.filterwarnings("ignore::kleene.KleeneWarning"), pytest.mark.slow]


def skip_what_tables_lack(error: kleene.UnsupportedError) -> None:
    if not error.message.startswith(CANNOT_RUN):
        raise error
    pytest.skip(error.message)


@pytest.mark.parametrize("algorithm", ["auto", "basic"])
@pytest.mark.parametrize("case", load_all(), ids=lambda case: case.name)
def test_sase_case(case: Case, algorithm: str) -> None:
    options = {} if case.is_program else {"algorithm": algorithm}
    try:
        found = run_case(case, engine="tables", **options)
    except kleene.UnsupportedError as error:
        skip_what_tables_lack(error)
        return
    check(case, found.column_names, found.to_pylist())


@pytest.mark.parametrize("case", [*load_rows("rows"), *load_rows("regex")], ids=lambda case: case.name)
def test_row_case(case: RowCase) -> None:
    query = kleene.match_recognize(case.item["clause"]) if "clause" in case.item else regex_of(case)
    try:
        found = query.match(case.table, engine="tables", **params_of(case))
    except kleene.UnsupportedError as error:
        skip_what_tables_lack(error)
        return
    check_rows(case, found)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("language", ["sase", "row pattern", "regex"])
def test_generated_queries(language: str, part: int) -> None:
    """Whole, in batches and in pieces with snapshots, with every algorithm."""
    if language == "sase":
        examples = sase_examples(20, seed=100 + part)
    else:
        examples = [EXAMPLES[language](random.Random(1000 * part + seed)) for seed in range(25)]
    chance = random.Random(part)
    for query, table in examples:
        assert disagreement(language, query, table, chance, "tables") is None, query

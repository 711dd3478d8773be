"""Every matching case again, by the generated code run as plain Python, with each algorithm it can have.

With KLEENE_CHECK_BOUNDS=plain every index is checked: `make fuzz` does that.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import kleene
from agreement import CANNOT_RUN
from case_files import Case, check, load_all, run_case
from row_cases import RowCase, check_rows, load_rows, params_of, regex_of

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


@pytest.mark.parametrize("algorithm", ["auto", "basic"])
@pytest.mark.parametrize("case", load_all(), ids=lambda case: case.name)
def test_sase_case(case: Case, algorithm: str) -> None:
    options = {} if case.is_program else {"algorithm": algorithm}
    found = run_case(case, engine="generated", **options)
    check(case, found.column_names, found.to_pylist())


@pytest.mark.parametrize("case", load_rows("rows"), ids=lambda case: case.name)
def test_row_pattern_case(case: RowCase) -> None:
    check_rows(case, generated_or_skipped(kleene.match_recognize(case.item["clause"]), case))


@pytest.mark.parametrize("case", load_rows("regex"), ids=lambda case: case.name)
def test_regex_case(case: RowCase) -> None:
    check_rows(case, generated_or_skipped(regex_of(case), case))


def generated_or_skipped(query: kleene.Query, case: RowCase) -> pa.Table:
    try:
        return query.match(case.table, engine="generated", **params_of(case))
    except kleene.UnsupportedError as error:
        if not error.message.startswith(CANNOT_RUN):
            raise
        pytest.skip(error.message)

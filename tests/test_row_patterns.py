"""Every row-pattern case by the plain engine on Arrow tables, and every error with its position and words."""

from __future__ import annotations

import pytest

import kleene
from row_cases import RowCase, check_rows, load_rows


@pytest.mark.parametrize("case", load_rows("rows"), ids=lambda case: case.name)
def test_row_pattern_case_on_arrow(case: RowCase) -> None:
    check_rows(case, kleene.match_recognize(case.item["clause"]).match(case.table, engine="reference"))


@pytest.mark.parametrize("case", load_rows("rows", errors=True), ids=lambda case: case.name)
def test_row_pattern_error(case: RowCase) -> None:
    with pytest.raises(kleene.KleeneError) as caught:
        kleene.match_recognize(case.item["clause"]).match(case.table)
    error = caught.value
    assert type(error).__name__ == case.item["error"], str(error)
    for place in ("line", "column"):
        if place in case.item:
            assert getattr(error, place) == case.item[place], str(error)
    for fragment in case.item["says"]:
        assert fragment in str(error)

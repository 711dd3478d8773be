"""Every case of pattern windows in this process, on both engines; and every error."""

from __future__ import annotations

import pytest

import kleene
from row_cases import check_rows
from window_cases import WindowCase, load_windows


@pytest.mark.parametrize("case", load_windows("process"), ids=lambda case: case.name)
def test_pattern_window_case(case: WindowCase) -> None:
    check_rows(case.as_rows, kleene.sql(case.sql, tables=case.tables, engine="reference"))


@pytest.mark.parametrize("case", load_windows("process", errors=True), ids=lambda case: case.name)
def test_pattern_window_error(case: WindowCase) -> None:
    with pytest.raises(kleene.KleeneError) as caught:
        kleene.sql(case.sql, tables=case.tables)
    error = caught.value
    assert type(error).__name__ == case.item["error"], str(error)
    for place in ("line", "column"):
        if place in case.item:
            assert getattr(error, place) == case.item[place], str(error)
    for fragment in case.item["says"]:
        assert fragment in str(error)

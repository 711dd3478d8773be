"""Every case of row patterns and of the regular-expression operator, by the plain engine; and every error."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kleene
from row_cases import RowCase, check_rows, clause_of, load_rows, params_of, regex_of


@pytest.mark.parametrize("case", load_rows("rows"), ids=lambda case: case.name)
def test_row_pattern_case_on_arrow(case: RowCase) -> None:
    check_rows(case, clause_of(case).match(case.table, engine="reference", **params_of(case)))


@pytest.mark.parametrize("case", load_rows("rows", errors=True), ids=lambda case: case.name)
def test_row_pattern_error(case: RowCase) -> None:
    with pytest.raises(kleene.KleeneError) as caught:
        clause_of(case).match(case.table, **params_of(case))
    error = caught.value
    assert type(error).__name__ == case.item["error"], str(error)
    for place in ("line", "column"):
        if place in case.item:
            assert getattr(error, place) == case.item[place], str(error)
    for fragment in case.item["says"]:
        assert fragment in str(error)


@pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
@pytest.mark.parametrize("case", load_rows("regex"), ids=lambda case: case.name)
def test_regex_case_on_arrow(case: RowCase) -> None:
    check_rows(case, regex_of(case).match(case.table, engine="reference", **params_of(case)))


@pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
@pytest.mark.parametrize("case", load_rows("regex", errors=True), ids=lambda case: case.name)
def test_regex_error(case: RowCase) -> None:
    with pytest.raises(kleene.KleeneError) as caught:
        regex_of(case).match(case.table, **params_of(case))
    assert type(caught.value).__name__ == case.item["error"], str(caught.value)
    for fragment in case.item["says"]:
        assert fragment in str(caught.value)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_of_two_errors_that_of_the_partition_that_comes_first_is_told(engine: str) -> None:
    events = pa.table({"t": [1, 2, 3, 4], "g": [1, 1, 0, 0], "k": ["A", "C", "B", "B"]})
    query = kleene.match_recognize(
        """PARTITION BY g ORDER BY t MEASURES FIRST(t) AS t AFTER MATCH SKIP TO FIRST B
           PATTERN (B B | A C) DEFINE A AS k = 'A', B AS k = 'B', C AS k = 'C'"""
    )
    with pytest.raises(kleene.KleeneError, match="the match has no such row"):
        query.match(events, engine=engine)

"""Every matching case, by the plain engine on Arrow tables; and every error, with its position and words."""

from __future__ import annotations

import pyarrow as pa
import pytest

import kleene
from case_files import Case, load, load_all, shown_matches, shown_value

CASES = load_all()
ERRORS = load("errors.toml")


def run_case(case: Case) -> pa.Table:
    if case.is_program:
        results = kleene.program(case.query).match(case.inputs, **case.options)
        return results[case.result] if case.result else list(results.values())[-1]
    return kleene.sase(case.query).match(case.inputs, **case.options)


def check(case: Case, columns: list[str], rows: list[dict]) -> None:
    if case.rows is None:
        assert shown_matches(rows, columns) == list(case.matches)
    else:
        shown = [{name: shown_value(value) for name, value in row.items()} for row in rows]
        expected = [{name: _as_written(value) for name, value in row.items()} for row in case.rows]
        assert shown == pytest.approx(expected) if False else _near(shown) == _near(expected)


def _as_written(value):
    return value


def _near(rows: list[dict]) -> list[dict]:
    """Floats rounded to the digits that a case can write; NaN made comparable."""

    def near(value):
        if isinstance(value, list):
            return [near(item) for item in value]
        if isinstance(value, float):
            return "NaN" if value != value else round(value, 9)
        return value

    return [{name: near(value) for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_on_arrow(case: Case) -> None:
    found = run_case(case)
    check(case, found.column_names, found.to_pylist())


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case.name)
def test_error(case: Case) -> None:
    with pytest.raises(kleene.KleeneError) as caught:
        run_case(case)
    error = caught.value
    assert type(error).__name__ == case.error["error"], str(error)
    for place in ("line", "column"):
        if place in case.error:
            assert getattr(error, place) == case.error[place], str(error)
    for fragment in case.error["says"]:
        assert fragment in str(error)


def test_names_are_unique() -> None:
    names = [case.name for case in [*CASES, *ERRORS]]
    assert len(set(names)) == len(names)

"""Every matching case, by the plain engine on Arrow tables; and every error, with its position and words."""

from __future__ import annotations

import pytest

import kleene
from case_files import Case, check, load, load_all, run_case

CASES = load_all()
ERRORS = [*load("errors.toml"), *load("composition_errors.toml")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_on_arrow(case: Case) -> None:
    found = run_case(case, engine="reference")
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

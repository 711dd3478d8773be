"""Every case that calls functions of one's own, by every engine, and cut into pieces; and every error."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

import kleene
from function_cases import FunctionCase, by_name, is_program, load_functions

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
CASES, ERRORS = load_functions(errors=False), load_functions(errors=True)


def found_by(case: FunctionCase, engine: str) -> pa.Table:
    if is_program(case):
        from case_files import run_case

        return run_case(case.sase, engine=engine)
    return case.query().match(case.events, **case.options, engine=engine)


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_case(case: FunctionCase) -> None:
    case.check(found_by(case, "reference"))
    case.check(found_by(case, "auto"))


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_case_in_generated_code(case: FunctionCase) -> None:
    try:
        found = found_by(case, "generated")
    except kleene.UnsupportedError as error:
        pytest.skip(error.message)
    case.check(found)


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_case_in_pieces(case: FunctionCase) -> None:
    events = case.events
    if is_program(case) or isinstance(events, dict):
        pytest.skip("a program, or several inputs")
    query, random, parts = case.query(), Random(case.name), list[pa.Table]()
    column = case.options["order_by"] if case.is_sase else query.definition.order_by[0].expression.name
    table = events.sort_by([(column, "ascending")])
    options = case.options | {"engine": "generated"}
    try:
        progress = query.progress(table, **options)
    except kleene.UnsupportedError as error:
        pytest.skip(error.message)
    for row in range(table.num_rows):
        parts.append(progress.feed(table.slice(row, 1)))
        if random.random() < 0.5:
            progress = query.progress(table, **options, snapshot=progress.snapshot())
    case.check(pa.concat_tables([*parts, progress.finish()]))


@pytest.mark.parametrize("case", ERRORS, ids=by_name)
def test_error(case: FunctionCase) -> None:
    item = case.item
    with pytest.raises(kleene.KleeneError) as caught:
        found_by(case, "auto")
    assert type(caught.value).__name__ == item["error"], str(caught.value)
    for place in ("line", "column"):
        if place in item:
            assert getattr(caught.value, place) == item[place], str(caught.value)
    for fragment in item["says"]:
        assert fragment in str(caught.value)

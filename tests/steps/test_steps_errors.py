"""Every illegal pattern is refused, at the call or at its use, with a message that names the step."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from run_checks import table
from steps_notation import stream

kleene: Any = pytest.importorskip("kleene")
CASES = tomllib.loads((Path(__file__).parent / "errors.toml").read_text(encoding="utf-8"))["case"]


@pytest.mark.skipif(not hasattr(kleene, "begin"), reason="this version has no builder")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_an_illegal_pattern_is_refused(case: dict[str, str]) -> None:
    names = {"begin": kleene.begin}
    if case["raised"] == "call":
        with pytest.raises(kleene.AnalysisError) as caught:
            eval(case["build"], names)  # the calls stand in the case file
    else:
        pattern = eval(case["build"], names)
        with pytest.raises(kleene.AnalysisError) as caught:
            pattern.match(table(stream("a1=1 b1=2 b2=3")), order_by="t")
    assert re.search(case["names"], str(caught.value))


def test_names_are_unique() -> None:
    names = [case["name"] for case in CASES]
    assert len(set(names)) == len(names)

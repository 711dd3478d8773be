"""What the doctests of plans know by name, wherever they stand."""

from __future__ import annotations

from typing import Any

import pytest

from kleene.analysis.analyze import analyze
from kleene.lang.sase import parse
from kleene.options.hints import checked_hints
from kleene.options.statistics import UNKNOWN, checked_statistics
from kleene.plan.operators import Facts, Pipeline, basic_pipeline
from kleene.schema import FLOAT, INTEGER, STRING, EventSchema

_ATTRIBUTES = {"t": INTEGER, "type": STRING, "x": INTEGER, "y": INTEGER, "name": STRING, "weight": FLOAT}


def planned(text: str, statistics: Any = None, **hints: str) -> tuple[Pipeline, Facts]:
    """The basic plan of a query, and what rewrites go by."""
    query = analyze(parse(text), EventSchema(_ATTRIBUTES, "type"), ("t",))
    return basic_pipeline(query), Facts(query, checked_hints(hints), checked_statistics(statistics) or UNKNOWN)


@pytest.fixture(autouse=True)
def _names_in_doctests(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["planned"] = planned

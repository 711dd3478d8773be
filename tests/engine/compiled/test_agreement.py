"""The generated code agrees with the reference engine on generated queries and tables, in all languages.

Run as plain Python, since compiling takes longer than answering; a few of each language are compiled as well. Many
more are tried by `make fuzz`.
"""

from __future__ import annotations

import random
from functools import cache

import pytest

from agreement import EXAMPLES, Example, disagreement, sase_examples
from quick import first_is_quick

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")
PARTS = 6


@cache
def examples(language: str) -> list[Example]:
    if language == "sase":
        return sase_examples(180, seed=4)
    return [EXAMPLES[language](random.Random(seed)) for seed in range(180)]


@pytest.mark.parametrize("part", first_is_quick(range(PARTS)))
@pytest.mark.parametrize("language", ["sase", "row pattern", "regex"])
def test_generated_code(language: str, part: int) -> None:
    chance = random.Random(part)
    for query, table in examples(language)[part::PARTS]:
        assert disagreement(language, query, table, chance) is None, query


@pytest.mark.parametrize("number", range(7))  # a few of them are left to the interpreter, and compare nothing
@pytest.mark.parametrize("language", ["sase", "row pattern", "regex"])
def test_machine_code(language: str, number: int) -> None:
    query, table = examples(language)[number]
    assert disagreement(language, query, table, random.Random(number), "compiled") is None, query

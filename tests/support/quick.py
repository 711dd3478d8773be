"""What `--quick` is: no Spark, no slow tests, and no machine code, so that it ends while one waits.

As a plugin of pytest this module has a say in all tests, also in those of docs and docstrings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import pytest

from kleene.engine.compiled import jit

REASON = "makes machine code"
refused: list[str] = []
"""The sources that were not compiled for the test that runs."""


def pytest_configure() -> None:
    # For the whole run: a fixture that outlives a test may want machine code before any test begins.
    jit._machine_code = no_machine_code


def no_machine_code(source: str, *_: object) -> NoReturn:
    refused.append(source)
    pytest.skip(REASON)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """A test that got no machine code is skipped, whatever it makes of that: a doctest may expect another error."""
    refused.clear()
    try:
        yield
    finally:
        if refused:
            pytest.skip(REASON)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if is_left_out(item)])
    items[:] = [item for item in items if not is_left_out(item)]


def is_left_out(item: pytest.Item) -> bool:
    return any(item.iter_markers("spark")) or any(item.iter_markers("slow"))


def first_is_quick(values: Iterable[Any]) -> list[Any]:
    """Values for `parametrize`: all but the first are slow."""
    first, *others = values
    return [first, *(pytest.param(value, marks=pytest.mark.slow) for value in others)]

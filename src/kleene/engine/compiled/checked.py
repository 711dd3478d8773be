"""Generated code as plain Python on arrays that refuse wrong indexes, for tests (KLEENE_CHECK_BOUNDS=plain).

NumPy itself refuses an index behind the end of an array. One before its beginning counts from the end, which no loop of
ours means.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


class CheckedArray(np.ndarray[Any, Any]):
    def __getitem__(self, index: Any) -> Any:
        _check(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _check(index)
        super().__setitem__(index, value)


def _check(index: Any) -> None:
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, (int, np.integer)) and part < 0:
            raise IndexError(f"index {part} is before the beginning of the array")


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called with its arrays as checked ones."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return function(*map(_checked, arguments))

    return call


def _checked(argument: Any) -> Any:
    if isinstance(argument, tuple):
        return tuple(map(_checked, argument))
    return argument.view(CheckedArray) if isinstance(argument, np.ndarray) else argument

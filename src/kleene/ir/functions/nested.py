"""Functions of arrays, which are lists, of structs, which are tuples, and of maps, which are dicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from kleene.errors import ExecutionError

_NAN = math.nan
"""The one that is a key of maps, since NaN is not equal to itself."""


def equal(left: Any, right: Any) -> bool:
    """Whether two values inside of others are the same: NULL is there the same as NULL, and NaN as NaN.

    >>> equal([1, None], [1, None]), equal([1], [1, 2]), equal((1, [math.nan]), (1, [math.nan]))
    (True, False, True)
    """
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(equal, left, right))
    if left is None or right is None:
        return left is right
    return bool(left == right or (left != left and right != right))


def map_key(key: Any) -> Any:
    if isinstance(key, float):
        return _NAN if key != key else key + 0.0  # -0.0 and 0.0 are one key
    return key


def map_value(entries: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """A map of the entries; of equal keys the first counts."""
    found: dict[Any, Any] = {}
    for key, value in entries:
        found.setdefault(map_key(key), value)
    return found


def map_of_arrays(keys: Sequence[Any], values: Sequence[Any]) -> dict[Any, Any]:
    if len(keys) != len(values):
        raise ExecutionError(f"a map needs as many values as keys, but has {len(keys)} keys and {len(values)} values")
    if any(key is None for key in keys):
        raise ExecutionError("NULL cannot be the key of a map")
    found = map_value(zip(keys, values, strict=True))
    if len(found) < len(keys):
        raise ExecutionError("a map has one key twice", hint="Each key of a map must be another.")
    return found


def item(value: Any, key: Any) -> Any:
    """`value[key]`: of an array the element in the place, from 0; NULL where there is none."""
    if value is None or key is None:
        return None
    if isinstance(value, dict):
        return value.get(map_key(key))
    return value[key] if 0 <= key < len(value) else None


def element_at(value: Any, key: Any) -> Any:
    """The element in the place, from 1, or from the end if it is negative; of a map, the value of the key."""
    if isinstance(value, dict):
        return value.get(map_key(key))
    if key == 0:
        raise ExecutionError(
            "element_at counts places from 1, or from the end with -1, but was asked for place 0",
            hint="The first element is element_at(x, 1) or x[0].",
        )
    place = key - 1 if key > 0 else len(value) + key
    return value[place] if 0 <= place < len(value) else None


def array_contains(values: Sequence[Any], wanted: Any) -> bool | None:
    if any(value is not None and equal(value, wanted) for value in values):
        return True
    return None if None in values else False


def array_join(values: Sequence[str | None], between: str, instead_of_null: str | None = None) -> str:
    shown = (instead_of_null if value is None else value for value in values)
    return between.join(value for value in shown if value is not None)


def array_max(values: Sequence[Any]) -> Any:
    """The largest that is known; NaN is larger than all numbers."""
    return max((value for value in values if value is not None), key=_place, default=None)


def array_min(values: Sequence[Any]) -> Any:
    return min((value for value in values if value is not None), key=_place, default=None)


def _place(value: Any) -> tuple[bool, Any]:
    return value != value, value

"""The values of an expression at many points at once, as arrays; and these as Arrow arrays, or as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.engine.compiled.columns import Array, Dictionary
from kleene.engine.output import arrow_numbers
from kleene.schema import (
    BOOLEAN,
    FLOAT,
    LARGEST_INTEGER,
    NULL,
    SMALLEST_INTEGER,
    STRING,
    UNKNOWN,
    DecimalType,
    OpaqueType,
    Type,
    is_nested,
)


class NoColumnFormError(Exception):
    """The interpreter must compute the whole measure: a value may be an error, or is one that arrays do not hold."""


_DTYPES: dict[str, Any] = {"i": np.int64, "f": np.float64, "b": np.bool_, "s": np.int64, "o": np.object_}


def kind_of(type_: Type | None) -> str:
    """How a vector holds values: i and f are 64-bit numbers, b booleans, s codes of strings, o Python's objects."""
    if type_ is None or type_ == UNKNOWN or is_nested(type_):
        return "o"
    return {FLOAT: "f", BOOLEAN: "b", STRING: "s"}.get(type_, "i")


@dataclass(frozen=True, slots=True)
class Vector:
    """Values of a type: `is_null` says where they are NULL, `is_bad` where computing them is, or may be, an error.

    Either is None where that is nowhere. Strings are codes in the dictionary that all vectors of a table share.
    """

    type: Type
    values: Array
    is_null: Array | None = None
    is_bad: Array | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def kind(self) -> str:
        return kind_of(self.type)

    @property
    def nulls(self) -> Array:
        return np.zeros(len(self), np.bool_) if self.is_null is None else self.is_null

    @property
    def is_known(self) -> Array:
        """Where there is a value that is not NULL."""
        return np.ones(len(self), np.bool_) if self.is_null is None else ~self.is_null

    @property
    def is_true(self) -> Array:
        """Of conditions: where they hold."""
        return self.values if self.is_null is None else self.values & ~self.is_null

    def at(self, places: Array) -> Vector:
        """The values at the places, NULL where the place is -1."""
        if not len(self):
            return nothing(self.type, len(places))
        is_missing = places < 0
        is_null = None if self.is_null is None else self.is_null[places]
        is_bad = None if self.is_bad is None else self.is_bad[places] & ~is_missing
        return Vector(self.type, self.values[places], either(is_null, some(is_missing)), is_bad)

    def typed(self, type_: Type) -> Vector:
        """The same values as those of another type, which holds them alike; NULLs may become those of any type."""
        if kind_of(type_) == self.kind:
            return replace(self, type=type_)
        if self.type == NULL or (self.is_null is not None and self.is_null.all()):
            return replace(nothing(type_, len(self)), is_bad=self.is_bad)
        raise NoColumnFormError


def nothing(type_: Type, size: int) -> Vector:
    """NULL at every point."""
    values: Array = np.full(size, None) if kind_of(type_) == "o" else np.zeros(size, _DTYPES[kind_of(type_)])
    return Vector(type_, values, np.ones(size, np.bool_))


def constant(value: Any, type_: Type, size: int, strings: Dictionary) -> Vector:
    """The same value at every point."""
    if value is None:
        return nothing(type_, size)
    return of_plain([value], type_, strings).at(np.zeros(size, np.int64))


def of_plain(values: Iterable[Any], type_: Type, strings: Dictionary, is_bad: Array | None = None) -> Vector:
    """Plain values as a vector; a whole number of more than 64 bits is bad."""
    own, kind = list(values), kind_of(type_)
    is_null = np.fromiter((value is None for value in own), np.bool_, len(own))
    if kind == "o":
        return Vector(type_, np.fromiter(own, np.object_, len(own)), some(is_null), is_bad)
    if kind == "i":
        is_wide = [value is not None and not SMALLEST_INTEGER <= value <= LARGEST_INTEGER for value in own]
        if any(is_wide):
            is_bad = either(is_bad, np.array(is_wide, np.bool_))
            own = [0 if wide else value for value, wide in zip(own, is_wide, strict=True)]
    as_held: Callable[[Any], Any] = strings.code if kind == "s" else _itself
    try:
        filled = (0 if value is None else as_held(value) for value in own)
        held = np.fromiter(filled, _DTYPES[kind], len(own))
    except (TypeError, ValueError, AttributeError):  # a function of the user's own gave something else
        raise NoColumnFormError from None
    return Vector(type_, held, some(is_null), is_bad)


def _itself(value: Any) -> Any:
    return value


def either(*where: Array | None) -> Array | None:
    """Where any of these is true; None is nowhere."""
    known = [one for one in where if one is not None]
    if not known:
        return None
    found = known[0]
    for other in known[1:]:
        found = found | other
    return found


def some(where: Array) -> Array | None:
    """None if it is true nowhere."""
    return where if where.any() else None


def plain_values_of(vector: Vector, strings: Dictionary) -> list[Any]:
    """As the interpreter holds them; what is bad must not be looked at."""
    if vector.kind == "o":
        return list(vector.values)
    known: list[Any]
    if vector.kind == "s":
        texts = strings.strings or [""]
        known = [texts[code] for code in vector.values.tolist()]
    else:
        known = vector.values.tolist()
    if vector.is_null is None:
        return known
    return [None if null else value for value, null in zip(known, vector.is_null.tolist(), strict=True)]


def arrow_array(vector: Vector, target: pa.DataType, strings: Dictionary) -> pa.Array:
    """The vector as an Arrow array of the target type."""
    type_, is_null = vector.type, vector.nulls
    assert vector.kind != "o"
    if type_ == STRING:
        if not strings.strings:
            return pa.nulls(len(vector), target)
        used, codes = (strings, vector.values) if len(strings.strings) <= len(vector) else strings.kept(vector.values)
        return pa.array(used.strings, pa.string()).take(pa.array(codes, pa.int64(), mask=is_null)).cast(target)
    if isinstance(type_, DecimalType):
        return _decimals(vector.values, is_null, type_.scale).cast(target)
    if isinstance(type_, OpaqueType):
        raise NoColumnFormError
    return arrow_numbers(np.asarray(vector.values), is_null, type_, target)


def _decimals(unscaled: Array, is_null: Array, scale: int) -> pa.Array:
    """Numbers without their point as decimals: each takes two words, of which the higher one repeats the sign."""
    words = np.empty((len(unscaled), 2), np.int64)
    words[:, 0], words[:, 1] = unscaled, unscaled >> 63
    validity = pa.array(~is_null, pa.bool_()).buffers()[1] if len(unscaled) else None
    buffers = [validity, pa.py_buffer(words)]
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(unscaled), buffers)

"""Arithmetic and conversions of numbers at many points at once, exact as the interpreter's.

Whole numbers are 64 bits wide. Each function gives the values and where they are not to be trusted, None if that is
nowhere: there a number is too large, which the interpreter tells from an error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kleene.engine.by_column.vectors import either, some
from kleene.engine.compiled.arithmetic import EXACT_IN_FLOAT
from kleene.engine.compiled.columns import Array
from kleene.ir import expr as ir
from kleene.ir.evaluate import MICROSECONDS_PER_DAY
from kleene.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
    DecimalType,
    DurationType,
    TimestampType,
    Type,
    per_microsecond,
)

Checked = tuple[Array, Array | None]
_SAFE_PRODUCT = float(2**62)
_MOST_EXACT_POWER = 22  # larger powers of ten are not exact as floats


def added(left: Array, right: Array) -> Checked:
    total = left + right
    return total, some(((left ^ total) & (right ^ total)) < 0)


def subtracted(left: Array, right: Array) -> Checked:
    difference = left - right
    return difference, some(((left ^ right) & (left ^ difference)) < 0)


def multiplied(left: Array, right: Array) -> Checked:
    if largest(left) * largest(right) <= LARGEST_INTEGER:
        return left * right, None
    is_large = np.abs(left.astype(np.float64) * right.astype(np.float64)) > _SAFE_PRODUCT
    return left * right, some(is_large)


def negated(values: Array) -> Checked:
    return -values, some(values == SMALLEST_INTEGER)


def remainder(left: Array, right: Array) -> Array:
    """What is left after division, with the sign of the dividend; the divisor is not 0."""
    return np.asarray(np.fmod(left, right))


_WHOLE: dict[str, Callable[[Array, Array], Checked]] = {"+": added, "-": subtracted, "*": multiplied}
_FLOAT: dict[str, Callable[[Array, Array], Array]] = {"+": np.add, "-": np.subtract, "*": np.multiply}


def arithmetic(operator: str, left: Array, right: Array) -> tuple[Array, Array | None, Array | None]:
    """The values, and where they are NULL, and bad."""
    with np.errstate(all="ignore"):
        if operator in ("/", "%"):
            is_zero = right == 0
            divisor = np.where(is_zero, right.dtype.type(1), right)
            divided = left / divisor if operator == "/" else remainder(left, divisor)
            return divided, some(is_zero), None
        if left.dtype == np.float64:
            return _FLOAT[operator](left, right), None, None
        values, is_bad = _WHOLE[operator](left, right)
        return values, None, is_bad


def largest(values: Array) -> int:
    """The largest number, whatever its sign."""
    return max(abs(int(values.max())), abs(int(values.min()))) if len(values) else 0


def floats_of(values: Array, type_: Type | None) -> Checked:
    """Numbers as floats."""
    if not isinstance(type_, DecimalType):
        return values.astype(np.float64), None
    is_inexact = np.abs(values) > EXACT_IN_FLOAT
    is_inexact |= (type_.scale > _MOST_EXACT_POWER) | (values == SMALLEST_INTEGER)
    return values / float(10**type_.scale), some(is_inexact)


def whole_of_floats(values: Array) -> Checked:
    """Floats without what stands behind the point."""
    with np.errstate(invalid="ignore"):
        truncated = np.trunc(values)
        fits = (truncated >= -(2.0**63)) & (truncated < 2.0**63)
    return np.where(fits, truncated, 0.0).astype(np.int64), some(~fits)


MOST_PLACES = 15
_SURELY_EXACT, _CLOSE = 1e11, 1e-4


def rounded_floats(values: Array, places: int) -> tuple[Array, Array]:
    """Floats with that many places, and where a value is so large, or so close to a half, that this may be wrong."""
    power = 10.0**places
    with np.errstate(all="ignore"):
        steps = np.abs(values) * power
        whole = np.floor(steps + 0.5)
        found = np.copysign(whole / power, values)
        is_close = (np.abs(steps - np.floor(steps) - 0.5) < _CLOSE) | (steps >= _SURELY_EXACT)
    found[(whole == 0) & ((values != 0) | (places == 0))] = 0.0  # only -0.0 with a place behind the point stays so
    is_other = ~np.isfinite(values)
    found[is_other] = values[is_other]
    return found, is_close & ~is_other


def scaled(values: Array, scale: int, target: int) -> Checked:
    """Decimals with another number of places, half of the last one away from zero."""
    if target >= scale:
        return _times(values, 10 ** (target - scale))
    power = 10 ** (scale - target)
    if power > _SAFE_PRODUCT:
        return values, np.ones(len(values), np.bool_)
    is_wide = np.abs(values) > _SAFE_PRODUCT
    is_wide |= values == SMALLEST_INTEGER
    whole, left = np.divmod(np.abs(values), power)
    rounded = whole + (2 * left >= power)
    return np.where(values < 0, -rounded, rounded), some(is_wide)


def truncated(values: Array, scale: int) -> Checked:
    """Decimals without what stands behind the point."""
    power = 10**scale
    if power > LARGEST_INTEGER:
        return np.zeros_like(values), None
    floors = values // power
    return floors + ((values < 0) & (floors * power != values)), None


def _times(values: Array, factor: int) -> Checked:
    if factor > LARGEST_INTEGER:
        return values, some(values != 0)
    return multiplied(values, np.full(len(values), factor, np.int64))


_NUMBERS = (INTEGER, FLOAT, BOOLEAN)


def converts(source: Type | None, target: Type | None) -> bool:
    """Whether `converted` has a rule for it."""
    match target:
        case DecimalType():
            return isinstance(source, DecimalType) or source == INTEGER
        case TimestampType():
            return isinstance(source, TimestampType) or source == DATE
        case DurationType():
            return isinstance(source, DurationType)
        case _ if target == FLOAT:
            return source in _NUMBERS or isinstance(source, (DecimalType, DurationType))
        case _ if target == INTEGER:
            return source in _NUMBERS or isinstance(source, DecimalType)
        case _ if target == BOOLEAN:
            return source == INTEGER
        case _ if target == DATE:
            return isinstance(source, TimestampType)
    return False


def converted(cast: ir.Cast, values: Array) -> Checked:
    """The values as those of the other type."""
    source, target = cast.operand.type, cast.type
    match target:
        case DecimalType(scale=scale):
            found, is_bad = scaled(values, source.scale if isinstance(source, DecimalType) else 0, scale)
            is_wide = some(np.abs(found) >= 10**cast.digits) if not cast.implicit and cast.digits < 19 else None
            return found, either(is_bad, is_wide)
        case TimestampType() if source == DATE:
            return _times(values, MICROSECONDS_PER_DAY * per_microsecond(target))
        case TimestampType() | DurationType():
            found, is_bad = _times(values, per_microsecond(target))
            return found // per_microsecond(source), is_bad
        case _ if target == FLOAT:
            return floats_of(values, source)
        case _ if target == INTEGER and source == FLOAT:
            return whole_of_floats(values)
        case _ if target == INTEGER and isinstance(source, DecimalType):
            return truncated(values, source.scale)
        case _ if target == INTEGER:
            return values.astype(np.int64), None
        case _ if target == BOOLEAN:
            return values != 0, None
    assert target == DATE
    return values // (MICROSECONDS_PER_DAY * per_microsecond(source)), None


def order_keys(values: Array) -> Array:
    """Whole numbers in the order of the values, equal where these are; there is no NaN among them."""
    if values.dtype != np.float64:
        return values.astype(np.int64, copy=False)
    bits = (values + 0.0).view(np.int64)  # -0.0 is 0.0
    return np.asarray(np.where(bits < 0, bits ^ np.int64(LARGEST_INTEGER), bits))

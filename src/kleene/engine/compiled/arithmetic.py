"""Arithmetic that says when it has gone too far; called from generated code, compiled or not.

Integers are 64 bits wide in a kernel. Each function here looks before it computes, so that nothing wraps around.
"""

from __future__ import annotations

import math

import numpy as np

from kleene.engine.compiled.jit import helper

LARGEST = 9223372036854775807
SMALLEST = -9223372036854775807 - 1
EXACT_IN_FLOAT = 9007199254740992  # 2^53
LARGEST_EXPONENT = 709.782712893384


@helper
def add(left: int, right: int) -> tuple[int, bool]:
    """The sum, and whether it does not fit."""
    if right > 0:
        if left > LARGEST - right:
            return 0, True
    elif left < SMALLEST - right:
        return 0, True
    return left + right, False


@helper
def subtract(left: int, right: int) -> tuple[int, bool]:
    if right > 0:
        if left < SMALLEST + right:
            return 0, True
    elif left > LARGEST + right:
        return 0, True
    return left - right, False


@helper
def multiply(left: int, right: int) -> tuple[int, bool]:
    if left == 0 or right == 0:
        return 0, False
    if left == SMALLEST or right == SMALLEST:
        if left == 1 or right == 1:
            return SMALLEST, False
        return 0, True
    left_size = left if left > 0 else -left
    right_size = right if right > 0 else -right
    if left_size > LARGEST // right_size:
        return 0, True
    return left * right, False


@helper
def average(total: int, count: int, factor: int) -> tuple[int, bool]:
    """The total times the factor, divided by the count, half away from zero; and whether it does not fit."""
    product, is_too_large = multiply(total, factor)
    if is_too_large or product == SMALLEST or count <= 0:
        return 0, is_too_large or product == SMALLEST
    size = product if product > 0 else -product
    whole = size // count
    if size - whole * count >= count - (size - whole * count):
        whole += 1
    return whole if product > 0 else -whole, False


@helper
def multiply_or_stop(left: int, right: int) -> int:
    """The product, or the largest number of its sign: enough to compare with numbers of 18 digits."""
    product, is_too_large = multiply(left, right)
    if is_too_large:
        return LARGEST if (left > 0) == (right > 0) else SMALLEST
    return product


@helper
def remainder(left: int, right: int) -> int:
    """What is left after division, with the sign of the dividend; of 0, 0."""
    if right == 0 or right == -1:
        return 0
    found = left % right
    if found != 0 and (left < 0) != (found < 0):
        found -= right
    return found


@helper
def float_remainder(left: float, right: float) -> float:
    if right == 0.0 or math.isinf(left) or left != left or right != right:
        return math.nan
    return float(np.fmod(left, right))


@helper
def divide(left: float, right: float) -> float:
    if right == 0.0:
        return 0.0
    return left / right


@helper
def exponential(value: float) -> float:
    return math.exp(value) if not value > LARGEST_EXPONENT else math.inf


@helper
def square_root(value: float) -> float:
    return math.sqrt(value) if value >= 0.0 else math.nan


@helper
def logarithm(value: float) -> float:
    """Of what has none, 0: the caller has said that it is NULL."""
    return math.log(value) if value > 0.0 else (math.nan if value != value else 0.0)


@helper
def whole_below(value: float) -> tuple[int, bool]:
    """The largest whole number that is not greater, and whether it does not fit."""
    if not (-9.223372036854775808e18 <= value < 9.223372036854775807e18):
        return 0, math.isfinite(value)
    return math.floor(value), False


@helper
def truncated(value: float) -> tuple[int, bool]:
    """The whole part, and whether there is none that fits."""
    if not (-9.223372036854775808e18 <= value < 9.223372036854775807e18):
        return 0, True
    return int(value), False


@helper
def hash_float(value: float) -> int:
    """A number that is the same for equal values."""
    if -1.0e12 < value < 1.0e12:
        return int(value * 4096.0)
    return 7

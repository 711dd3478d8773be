"""What is known of an aggregate over some matches: put together with that of others, and made a value in the end."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import Any, NamedTuple

from kleene.ir import expr as ir
from kleene.schema import DecimalType, Type


class Sum(NamedTuple):
    """The sum of so many values is `total` times two to the power of `exponent`, which is not above 0.

    `special` are the flags of channels.py: what values there are that are no numbers, or not finite.
    """

    total: int
    exponent: int
    values: int
    special: int


Cell = Any  # the number of a count, a Sum, or of an extreme its value or None


def no_cell(aggregate: ir.Aggregate) -> Cell:
    """The cell over no match."""
    if aggregate.function == "count":
        return 0
    return None if aggregate.function in ("min", "max") else Sum(0, 0, 0, 0)


def together(aggregate: ir.Aggregate, left: Cell, right: Cell) -> Cell:
    """The cell over the matches of both."""
    match aggregate.function:
        case "count":
            return left + right
        case "min" | "max" as function:
            known = [value for value in (left, right) if value is not None]
            return (min(known) if function == "min" else max(known)) if known else None
    exponent = min(left.exponent, right.exponent)
    totals = (cell.total << (cell.exponent - exponent) for cell in (left, right))
    return Sum(sum(totals), exponent, left.values + right.values, left.special | right.special)


def value_of_cell(aggregate: ir.Aggregate, cell: Cell) -> Any:
    """The value: a whole number of any size (of decimals, without their point), a float, or that of an event."""
    match aggregate.function:
        case "count" | "min" | "max":
            return cell
    if not cell.values:
        return None
    odd = _odd(cell.special)
    if odd is not None:
        return odd
    if aggregate.function == "sum" and not _is_float(aggregate):
        return cell.total
    divisor = cell.values * 10 ** scale_of(aggregate.argument.type) if aggregate.function == "avg" else 1
    return nearest(cell.total, divisor << -cell.exponent)


def _odd(special: int) -> float | None:
    """The sum of numbers some of which are not finite."""
    if not special:
        return None
    return math.inf if special == 2 else -math.inf if special == 4 else math.nan


def _is_float(aggregate: ir.Aggregate) -> bool:
    return aggregate.argument.type is not None and aggregate.argument.type.name == "float"


def scale_of(type_: Type | None) -> int:
    return type_.scale if isinstance(type_, DecimalType) else 0


def nearest(number: int, divisor: int) -> float:
    """The float that is nearest to a quotient; infinite beyond all floats."""
    try:
        return number / divisor
    except OverflowError:
        return math.inf if number > 0 else -math.inf


_BITS_AT_ONCE = 13_000
"""Python refuses to write out many more at a time, since that takes time that grows with their square."""


def digits_of(number: int, scale: int = 0) -> str:
    """The number in decimal digits, however many; so many of them stand behind the point.

    >>> digits_of(-1250, 2), digits_of(7, 2), len(digits_of(2**20_000))
    ('-12.50', '0.07', 6021)
    """
    digits = _written(abs(number)).rjust(scale + 1, "0")
    whole = digits if not scale else f"{digits[:-scale]}.{digits[-scale:]}"
    return f"-{whole}" if number < 0 else whole


def _written(number: int) -> str:
    if number.bit_length() <= _BITS_AT_ONCE:
        return str(number)
    half = int(number.bit_length() * 0.15)  # about half of its digits
    high, low = divmod(number, 10**half)
    return _written(high) + _written(low).rjust(half, "0")


def decimal_of(number: int, scale: int) -> Decimal:
    return Decimal(number).scaleb(-scale, Context(prec=80))

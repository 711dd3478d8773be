"""Functions and aggregates that the cases under tests/cases/functions call by name.

Plain functions are found here by their names. Aggregates and vectorized functions stand in SPECIFICATIONS, so that
this module loads without anything of kleene's: name -> ("aggregate", start, step, finish) or ("function", f, options).
"""

from datetime import datetime, timedelta
from decimal import Decimal

# ---------------------------------------------------------------- plain functions


def is_even(x: int | None) -> bool | None:
    return None if x is None else x % 2 == 0


def twice(x: int | None) -> int | None:
    return None if x is None else 2 * x


def half(x: float | None) -> float | None:
    return None if x is None else x / 2


def add_one(x: int | None) -> int:
    """One more, where nothing counts as 0: never None."""
    return (0 if x is None else x) + 1


def positive_or_none(x: int | None) -> int | None:
    return x if x is not None and x > 0 else None


def near(x: float | None, y: float | None, within: float | None) -> bool | None:
    if x is None or y is None or within is None:
        return None
    return abs(x - y) <= within


def both_missing(x: int | None, y: int | None) -> bool:
    return x is None and y is None


def gap(x: int | None, y: int | None) -> int | None:
    return None if x is None or y is None else y - x


def band(x: int | None) -> str:
    if x is None:
        return "none"
    return "low" if x < 10 else "high"


def backwards(s: str | None) -> str | None:
    return None if s is None else s[::-1]


def same_letters(s: str | None, t: str | None) -> bool | None:
    return None if s is None or t is None else sorted(s) == sorted(t)


def doubled_price(d: Decimal | None) -> Decimal | None:
    return None if d is None else d * 2


def hour_later(t: datetime | None) -> datetime | None:
    return None if t is None else t + timedelta(hours=1)


def always_seven() -> int:
    return 7


# ---------------------------------------------------------------- aggregates


def ewma_step(state: tuple[float, int], value: float) -> tuple[float, int]:
    """The mean that forgets: half of the old one and half of the new value; the first value as it is."""
    mean, count = state
    return (float(value), 1) if count == 0 else (0.5 * mean + 0.5 * value, count + 1)


def ewma_finish(state: tuple[float, int]) -> float:
    return state[0]


def product_step(state: int, value: int) -> int:
    return state * value


def spread_step(state: tuple[int, int, int], value: int) -> tuple[int, int, int]:
    low, high, count = state
    return (value, value, 1) if count == 0 else (min(low, value), max(high, value), count + 1)


def spread_finish(state: tuple[int, int, int]) -> int:
    return state[1] - state[0]


def ratio_step(state: tuple[int, int], value: int) -> tuple[int, int]:
    """How many are above 0, and how many below."""
    above, below = state
    return (above + (1 if value > 0 else 0), below + (1 if value < 0 else 0))


def ratio_finish(state: tuple[int, int]) -> float | None:
    return None if state[1] == 0 else state[0] / state[1]


def rises_start() -> tuple[int | None, int]:
    return (None, 0)


def rises_step(state: tuple[int | None, int], value: int) -> tuple[int | None, int]:
    last, count = state
    return (value, count + (1 if last is not None and value > last else 0))


def rises_finish(state: tuple[int | None, int]) -> int:
    return state[1]


def joined_step(state: str, value: str) -> str:
    return value if state == "" else state + "-" + value


def all_even_step(state: bool, value: int) -> bool:
    return state and value % 2 == 0


# ---------------------------------------------------------------- vectorized: Arrow arrays to an Arrow array


def fast_big(x):
    import pyarrow.compute as pc

    return pc.greater(x, 5)


def fast_square(x) -> int:
    import pyarrow.compute as pc

    return pc.multiply(x, x)


def fast_above(x, y):
    import pyarrow.compute as pc

    return pc.greater(x, y)


SPECIFICATIONS = {
    "ewma": ("aggregate", (0.0, 0), ewma_step, ewma_finish),
    "product": ("aggregate", 1, product_step, None),
    "spread": ("aggregate", (0, 0, 0), spread_step, spread_finish),
    "ratio": ("aggregate", (0, 0), ratio_step, ratio_finish),
    "rises": ("aggregate", rises_start, rises_step, rises_finish),
    "joined": ("aggregate", "", joined_step, None),
    "all_even": ("aggregate", True, all_even_step, None),
    "fast_big": ("function", fast_big, {"vectorized": True}),
    "fast_square": ("function", fast_square, {"vectorized": True}),
    "fast_above": ("function", fast_above, {"vectorized": True}),
}

"""Functions of dates and times, which are days and microseconds or nanoseconds since 1970.

A time with a zone is an instant, and is read on the clock of its zone.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from re import fullmatch
from zoneinfo import ZoneInfo

from kleene.errors import ExecutionError, printable
from kleene.schema import DATE, TimestampType, Type, per_microsecond

MICROSECONDS_PER_DAY = 86_400_000_000
_EPOCH = date(1970, 1, 1)
_MOMENT = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_MOST_DAYS = 2**31

FIELDS: dict[str, str] = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    "yearofweek": "yearofweek",
    **dict.fromkeys(("quarter", "qtr"), "quarter"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso"), "dayofweek_iso"),
    "doy": "dayofyear",
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
    **dict.fromkeys(("second", "s", "sec", "seconds", "secs"), "second_exact"),
}
"""What EXTRACT and date_part can be asked for, by its names, in small letters."""

_OF_DATE: dict[str, Callable[[date], int]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "dayofmonth": lambda day: day.day,
    "dayofyear": lambda day: day.timetuple().tm_yday,
    "dayofweek": lambda day: day.isoweekday() % 7 + 1,
    "dayofweek_iso": lambda day: day.isoweekday(),
    "weekofyear": lambda day: day.isocalendar().week,
    "yearofweek": lambda day: day.isocalendar().year,
}
CLOCK_PARTS: dict[str, tuple[int, int]] = {
    "hour": (3_600_000_000, 24),
    "minute": (60_000_000, 60),
    "second": (1_000_000, 60),
    "second_exact": (1, 60_000_000),
}
"""How many microseconds each has, and how many of it make one of what is above."""
OF_DATE, OF_CLOCK = frozenset(_OF_DATE), frozenset(CLOCK_PARTS)
_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
    **dict.fromkeys(("day", "dd"), "day"),
}
_CLOCK_UNITS = {"hour": 3_600_000_000, "minute": 60_000_000}
_FINE_UNITS = {"second": 1_000_000, "millisecond": 1_000, "microsecond": 1}


def part(name: str, value: int, type_: Type | None) -> int:
    """The year, the hour and so on of a date or a time; `second_exact` is in microseconds.

    >>> part("year", 19_723, DATE), part("dayofweek", 19_723, DATE)
    (2024, 2)
    """
    if name in _OF_DATE:
        return _OF_DATE[name](_day(days_of(value, type_)))
    size, many = CLOCK_PARTS[name]
    return _on_clock(value, type_) // size % many


def days_of(value: int, type_: Type | None) -> int:
    """The day of a time, on its own clock."""
    return value if type_ == DATE else _on_clock(value, type_) // MICROSECONDS_PER_DAY


def days_later(days: int, more: int) -> int:
    found = days + more
    if not -_MOST_DAYS <= found < _MOST_DAYS:
        raise ExecutionError("overflow: a date so many days away does not fit a date")
    return found


def seconds_since_1970(value: int, type_: Type | None) -> int:
    """Whole seconds, counted towards 1970, as Spark does; a time without a zone is one of UTC."""
    if type_ == DATE:
        return value * 86_400
    size = 1_000_000 * per_microsecond(type_)
    return -(-value // size) if value < 0 else value // size


def truncated(unit: str, value: int, type_: Type | None) -> int | None:
    """The time at which the unit began; NULL of a unit that there is not."""
    unit, finer = unit.lower(), per_microsecond(type_)
    if unit in _FINE_UNITS:
        size = _FINE_UNITS[unit] * finer
        return value // size * size
    if unit in _CLOCK_UNITS:
        here = _on_clock(value, type_)
        return value - here % _CLOCK_UNITS[unit] * finer - value % finer
    if unit not in _UNITS:
        return None
    first = _first_day(_UNITS[unit], _day(days_of(value, type_)))
    return _at_midnight((first - _EPOCH).days, type_) * finer


def _first_day(unit: str, day: date) -> date:
    match unit:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - timedelta(days=day.weekday())
    return day


def _day(days: int) -> date:
    try:
        return _EPOCH + timedelta(days=days)
    except OverflowError:
        raise ExecutionError("the date is outside of the years 1 to 9999, of which parts are known") from None


def _on_clock(value: int, type_: Type | None) -> int:
    """What the clock of the time's zone shows, in microseconds since 1970."""
    if type_ == DATE:
        return value * MICROSECONDS_PER_DAY
    assert isinstance(type_, TimestampType)
    whole = value // per_microsecond(type_)
    if type_.zone is None or type_.zone == "UTC":
        return whole
    try:
        there = (_MOMENT + whole * _MICROSECOND).replace(tzinfo=UTC).astimezone(zone_of(type_.zone))
    except OverflowError:
        raise ExecutionError("the time is outside of the years 1 to 9999, of which parts are known") from None
    return (there.replace(tzinfo=None) - _MOMENT) // _MICROSECOND


def _at_midnight(days: int, type_: Type | None) -> int:
    """When the day begins in the zone of the type, in microseconds."""
    zone = type_.zone if isinstance(type_, TimestampType) else None
    if zone is None or zone == "UTC":
        return days * MICROSECONDS_PER_DAY
    midnight = (_MOMENT + timedelta(days=days)).replace(tzinfo=zone_of(zone))
    return (midnight.astimezone(UTC).replace(tzinfo=None) - _MOMENT) // _MICROSECOND


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo:
    """The zone of that name, or with that distance from UTC."""
    offset = fullmatch(r"(?:UTC|GMT)?([+-])([0-9]{1,2}):?([0-9]{2})?", name)
    if offset is not None and int(offset[2]) < 24:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return timezone(timedelta(minutes=-minutes if offset[1] == "-" else minutes))
    try:
        return UTC if name in ("Z", "GMT") else ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise ExecutionError(
            f"the time zone '{printable(name)}' is not known here, so that no date or hour can be told in it",
            hint="Give the times in UTC, or without a zone.",
        ) from None

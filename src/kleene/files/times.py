"""Times of input files become instants in UTC: those without a zone are of the zone that the caller names."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa
import pyarrow.compute as pc

from kleene.errors import SchemaError, did_you_mean, printable


def checked_zone(name: str) -> str:
    """The name of a time zone; an error if there is none of it."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise SchemaError(
            f"there is no time zone '{printable(name)}'",
            hint=f"Name one as Europe/Berlin or UTC.{did_you_mean(name, available_timezones())}",
        ) from None
    return name


def instants(column: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    """The times as instants in UTC.

    A time that the clock of the zone skips is moved on by as much as the clock was; of a time that comes twice, the
    first is meant. Java, and so Spark, has the same rule.

    >>> local = pa.chunked_array([pa.array([datetime(2024, 3, 31, 2, 30)], pa.timestamp("us"))])
    >>> instants(local, "Europe/Berlin")[0].as_py().isoformat()
    '2024-03-31T01:30:00+00:00'
    """
    unit = "ns" if column.type.unit == "ns" else "us"
    target = pa.timestamp(unit, "UTC")
    if column.type.tz is not None or zone == "UTC":
        return column.cast(target)
    column = column.cast(pa.timestamp(unit))
    first = pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="earliest").cast(target)
    last = pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="latest").cast(target)
    is_skipped = pc.fill_null(pc.not_equal(first, last), False).combine_chunks()
    if not pc.any(is_skipped).as_py():
        return first
    skipped = column.filter(is_skipped)
    offsets = [_offset_before(time, zone) for time in skipped.cast(pa.timestamp("us"), safe=False).to_pylist()]
    moved = pc.subtract(skipped.cast(target), pa.array(offsets, pa.duration("s")).cast(pa.duration(unit)))
    replaced = pc.replace_with_mask(first.combine_chunks(), is_skipped, moved.combine_chunks())
    return pa.chunked_array([replaced])


def _offset_before(time: datetime, zone: str) -> timedelta | None:
    # With fold=0, Python reads a skipped time by the offset before the jump.
    return time.replace(tzinfo=ZoneInfo(zone), fold=0).utcoffset()

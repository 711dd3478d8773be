"""The clock of a stream: a watermark that Kleene sets itself, so that no event from the future can move it.

Spark's watermark follows the latest time that it has seen. One event with a wrong date makes all others late. What is
too far ahead of the machine's clock must be taken out before Spark sees it, and Spark allows one watermark in a row:
where the user has set one already, it is too late.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.types import TimestampType

from kleene.engine.inputs import OrderKey
from kleene.errors import UnsupportedError, printable
from kleene.ir import expr as ir
from kleene.ir.query import QueryDefinition
from kleene.options.stream import length_of_time
from kleene.spark.names import quoted, quoted_column
from kleene.wording import said

AHEAD = "kleene_ahead_"
"""How the names begin under which Spark's progress tells how many events were set aside."""
WATERMARK = "spark.watermarkDelayMs"
"""What Spark notes at a column that has a watermark."""

Events = DataFrame | Mapping[str, DataFrame]


def with_clock(
    events: Events, definition: QueryDefinition, order: OrderKey, watermark: str | None, max_ahead: str | None
) -> Events:
    """The streams with a watermark, and without the events that are too far ahead, as far as they are asked for."""
    if watermark is None and max_ahead is None:
        return events
    delay = None if watermark is None else length_of_time("watermark", watermark, "10 minutes")
    most = None if max_ahead is None else length_of_time("max_ahead", max_ahead, "1 hour")

    def changed(frame: DataFrame) -> DataFrame:
        name = _time_column(frame, definition, order)
        # What is amiss without the column is told when all columns are looked at.
        return frame if name is None else _with_clock(frame, name, delay, most)

    return {name: changed(frame) for name, frame in events.items()} if isinstance(events, Mapping) else changed(events)


def _both() -> str:
    return said(python="watermark and max_ahead", shell="--watermark and --max-ahead")


def _with_clock(frame: DataFrame, name: str, delay: dt.timedelta | None, most: dt.timedelta | None) -> DataFrame:
    field = frame.schema[name]
    if not isinstance(field.dataType, TimestampType):
        raise UnsupportedError(
            f"{_both()} are for points in time, but '{printable(name)}' is {field.dataType.simpleString()}",
            hint=said(
                python="Order by a timestamp; .cast('timestamp') makes a time without a zone a point in time.",
                shell=f"Order by a timestamp, or read the column as one: --cast {printable(name)}=timestamp.",
            ),
        )
    if WATERMARK in field.metadata:
        given = "max_ahead" if most is not None else "watermark"
        raise UnsupportedError(
            f"{given} was given, but the stream has a watermark already, which follows every event it has seen",
            hint="Leave .withWatermark out, and give its delay to match instead: "
            'stream=kleene.StreamOptions(watermark="10 minutes", max_ahead="1 hour").',
        )
    if most is not None:
        ahead = _is_ahead(name, most)
        frame = frame.observe(f"{AHEAD}{secrets.token_hex(4)}", F.count_if(ahead).alias("ahead")).where(~ahead)
    if delay is None:
        return frame
    return frame.withWatermark(quoted(name), f"{delay // dt.timedelta(milliseconds=1)} milliseconds")


def _is_ahead(name: str, most: dt.timedelta) -> Column:
    """Whether the event is too far ahead of the clock, which Spark stops for each micro-batch, also if done again."""
    return F.coalesce(quoted_column(name) > F.current_timestamp() + F.lit(most), F.lit(False))


def _time_column(frame: DataFrame, definition: QueryDefinition, order: OrderKey) -> str | None:
    """The column of the event time as the frame spells it."""
    if order.columns:
        name, is_exact = order.columns[0], True
    else:
        key = definition.order_by[0].expression if definition.order_by else None
        if not isinstance(key, ir.Attribute):
            raise UnsupportedError(
                f"{_both()} need a column to order by, but the query computes its order",
                hint="Compute the column before matching.",
            )
        name, is_exact = key.name, key.exact
    alike = [one for one in frame.columns if one == name or (not is_exact and one.lower() == name.lower())]
    return name if name in alike else next(iter(alike), None)

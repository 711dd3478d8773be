"""What a job on a stream can be told."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from kleene.errors import UnsupportedError, printable, shown
from kleene.ir.options import MICROSECONDS
from kleene.options.checks import checked_count, checked_pair
from kleene.wording import said

BUCKETS = 16
"""Groups that the keys of a stream are put together in, if nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """How a stream is put in order, and what it may hold.

    >>> StreamOptions(watermark="ten minutes")
    Traceback (most recent call last):
    ...
    kleene.errors.UnsupportedError: 'ten minutes' is not a length of time
    Write: watermark="10 minutes".

    order: "time" lets events wait until the watermark has passed them; "arrival" trusts the order in which they arrive,
        and matches them at once.
    unbounded_state: "allow" accepts a query whose state may grow without end; "refuse" does not.
    buckets: how many groups the keys are put together in, each with a state of its own. Each costs time in every
        micro-batch, and no more tasks than that can work at once.
    watermark: how long to wait for events that are late, such as "10 minutes": Kleene sets Spark's watermark itself.
        Leave it out if the stream has one.
    max_ahead: how far the time of an event may be ahead of the machine's clock, such as "1 hour". Events beyond that
        are set aside and counted, and never move the watermark. With order="time" it needs `watermark`.
    """

    order: str = "time"
    unbounded_state: str = "refuse"
    buckets: int = BUCKETS
    watermark: str | None = None
    max_ahead: str | None = None

    def __post_init__(self) -> None:
        checked_pair("order", self.order, ("time", "arrival"))
        checked_pair("unbounded_state", self.unbounded_state, ("refuse", "allow"))
        object.__setattr__(self, "buckets", checked_count("buckets", self.buckets, "number"))
        if self.watermark is not None:
            length_of_time("watermark", self.watermark, "10 minutes")
        if self.max_ahead is not None:
            length_of_time("max_ahead", self.max_ahead, "1 hour")
            if self.watermark is None and self.order == "time":
                ahead = printable(self.max_ahead)
                example = said(
                    python=f'StreamOptions(watermark="10 minutes", max_ahead="{ahead}")',
                    shell=f'--watermark "10 minutes" --max-ahead "{ahead}"',
                )
                raise UnsupportedError(
                    f"{_called('max_ahead')} was given without {_called('watermark')}: it can only protect a watermark "
                    "that Kleene sets itself",
                    hint=f"Say how long to wait for late events: {example}.",
                )


def _called(argument: str) -> str:
    return said(python=argument, shell=f"--{argument.replace('_', '-')}")


def length_of_time(argument: str, text: object, example: str) -> dt.timedelta:
    """A length of time, such as '1 hour' or '1 hour 30 minutes'."""
    part = r"(\d+(?:\.\d+)?)\s*([a-z]+)\s*"
    found = re.findall(part, text.lower()) if isinstance(text, str) and len(text) <= 100 else []
    is_whole = isinstance(text, str) and re.fullmatch(rf"\s*(?:{part})+", text.lower()) is not None
    if not found or not is_whole or any(unit not in MICROSECONDS for _, unit in found):
        written = said(python=f'{argument}="{example}"', shell=f'{_called(argument)} "{example}"')
        raise UnsupportedError(f"{shown(text)} is not a length of time", hint=f"Write: {written}.")
    try:
        length = sum(
            (dt.timedelta(microseconds=float(number) * MICROSECONDS[unit]) for number, unit in found), dt.timedelta()
        )
    except OverflowError:
        length = dt.timedelta.max
    if length > dt.timedelta(days=36_525):
        raise UnsupportedError(f"{_called(argument)} is at most a hundred years, but {shown(text)} was given")
    return length


def stream_options(given: StreamOptions | None) -> StreamOptions | None:
    """The options that the argument `stream` says; None is not given."""
    if given is None or isinstance(given, StreamOptions):
        return given
    raise UnsupportedError(
        f"stream is a kleene.StreamOptions, but {shown(given)} was given",
        hint="Write: stream=kleene.StreamOptions(watermark='10 minutes').",
    )

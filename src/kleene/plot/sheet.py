"""A sheet to draw on: places are in pixels from the upper left corner, and colours are those of a theme."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from kleene.markup.themes import Theme
from kleene.plot.seen import Array, Clock, short_text

MARKERS = ("o", "s", "^", "D", "v", "P", "p", "*")
LETTER, LINE = 7.0, 17.0
"""How wide a letter of 12 pixels is, rather too much than too little, and how high a line."""
MARGIN, LEGEND_ROW = 18.0, 24.0
WIDTH, LEAST, MOST = 900, 160, 4_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the legend: a marker and what it means."""

    text: str
    color: str
    marker: str
    size: float = 7.0
    is_hollow: bool = False


def text_width(text: str) -> float:
    return LETTER * sum(2 if east_asian_width(one) in "WF" else 1.25 if one.isupper() else 1 for one in text)


def caption_lines(caption: str, width: float) -> list[str]:
    return textwrap.wrap(caption, max(int((width - 2 * MARGIN) / LETTER * 1.08), 20)) or [""]


def look_of(number: int, theme: Theme) -> tuple[str, str]:
    """The colour and the marker of a variable."""
    colors = theme.variables
    return colors[number % len(colors)], MARKERS[number % len(MARKERS)]


def mark_size(size: float, count: int) -> float:
    """Many marks are smaller, so that they do not cover one another."""
    return max(size * min(1.0, sqrt(90 / max(count, 1))), 2.2)


class Sheet:
    """A figure with one layer for texts, and axes where they are put."""

    def __init__(self, figure: Any, size: tuple[int, int], theme: Theme) -> None:
        self.figure, self.theme = figure, theme
        self.width, self.height = size
        figure.set_facecolor(theme.paper)
        figure.patch.set_gid("paper")
        self.layer = figure.add_axes((0, 0, 1, 1), zorder=0)
        self.layer.set_gid("texts")
        self.layer.set_xlim(0, self.width)
        self.layer.set_ylim(self.height, 0)
        self.layer.axis("off")

    def write(self, x: float, y: float, text: str, **how: Any) -> None:
        how = {"color": self.theme.ink, "va": "center", "ha": "left", **how}
        self.layer.text(x, y, text, **how)

    def axes(self, left: float, top: float, width: float, height: float, gid: str = "panel") -> Any:
        bounds = (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        made = self.figure.add_axes(bounds, zorder=1)
        made.set_gid(gid)
        made.patch.set_visible(False)
        for side, spine in made.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(self.theme.faint)
        made.tick_params(colors=self.theme.pale, labelcolor=self.theme.pale, length=3, labelsize="small")
        return made

    def legend(self, entries: Sequence[Entry], top: float) -> None:
        for entry, x, row in placed(entries, self.width):
            y = top + LEGEND_ROW * (row + 0.5)
            how = {"markerfacecolor": self.theme.paper} if entry.is_hollow else {}
            size = entry.size * 0.75
            self.layer.plot([x + 5], [y], entry.marker, color=entry.color, markersize=size, gid="legend", **how)
            self.write(x + 16, y, entry.text)

    def caption(self, lines: Sequence[str]) -> None:
        for number, line in enumerate(lines):
            y = self.height - MARGIN * 0.6 - LINE * (len(lines) - number - 0.5)
            self.write(MARGIN, y, line, color=self.theme.pale, gid="caption")


def placed(entries: Sequence[Entry], width: float) -> list[tuple[Entry, float, int]]:
    """The entries from left to right, in as many rows as they need."""
    found, x, row = [], MARGIN, 0
    for entry in entries:
        own = 16 + text_width(entry.text) + 14
        if x > MARGIN and x + own > width - MARGIN:
            x, row = MARGIN, row + 1
        found.append((entry, x, row))
        x += own
    return found


def legend_height(entries: Sequence[Entry], width: float) -> float:
    rows = placed(entries, width)
    return LEGEND_ROW * (rows[-1][2] + 1) if rows else 0.0


def set_time_axis(axes: Any, clock: Clock, low: float, high: float, labels: bool = True) -> None:
    """The axis of the times that are drawn; `labels` says whether its ticks have texts."""
    if not low <= high:  # nothing is drawn
        low, high = 0.0, 1.0
    pad = (high - low) * 0.02 or (1 / 1440 if clock.is_calendar else 0.5)
    shift = epoch_shift(clock)
    axes.set_xlim(low - pad + shift, high + pad + shift)
    if clock.is_calendar:
        from matplotlib import dates

        locator = dates.AutoDateLocator(minticks=3, maxticks=8)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    else:
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(8, integer=clock.is_whole))
    if not labels:
        axes.tick_params(labelbottom=False)
        axes.xaxis.get_offset_text().set_visible(False)
    axes.xaxis.get_offset_text().set_size("small")


def number_text(value: float) -> str:
    """A tick as a reader writes numbers."""
    return f"{value:,.10g}" if abs(value) < 1e9 else f"{value:.3g}"


def value_ticks(low: float, high: float) -> list[float]:
    """A few round numbers from the lowest value to the highest."""
    from matplotlib.ticker import MaxNLocator

    if not low <= high:
        return []
    pad = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    ticks = [float(tick) for tick in MaxNLocator(4).tick_values(low - pad, high + pad)]
    return [tick for tick in ticks if low - pad <= tick <= high + pad]


def epoch_shift(clock: Clock) -> float:
    """What Matplotlib counts days from may have been changed."""
    if not clock.is_calendar:
        return 0.0
    from matplotlib.dates import date2num

    return float(date2num(np.datetime64("1970-01-01")))


def range_of(values: Array) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (1.0, 0.0)


def clock_label(clock: Clock) -> str:
    name = short_text(clock.name, 40)
    if clock.is_calendar:
        return f"{name} ({short_text(clock.zone)})" if clock.zone else name
    return f"{name}, seconds" if clock.unit == "seconds" else name

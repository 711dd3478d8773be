"""How long matches are, how long they take, and when they end: bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kleene.markup.themes import Theme
from kleene.plot.drawing import Drawing, Size, counted
from kleene.plot.seen import Array, Clock
from kleene.plot.sheet import (
    LINE,
    MARGIN,
    Sheet,
    caption_lines,
    clock_label,
    epoch_shift,
    range_of,
    set_time_axis,
)
from kleene.plot.sight import Sight
from kleene.plot.thinning import sentence

_HEIGHT, _AXIS, _TICKS, _MOST_BARS = 320, 44.0, 56.0, 40
_UNITS = (("seconds", 1.0), ("minutes", 60.0), ("hours", 3_600.0), ("days", 86_400.0))


@dataclass(frozen=True, slots=True, eq=False)
class _Bars:
    """Edges of the bars and their heights; `clock` where the axis is one of times."""

    edges: Array
    heights: Array
    label: str
    clock: Clock | None = None
    is_whole: bool = False


def lengths_of(sight: Sight, size: Size) -> Drawing:
    lengths = sight.seen.matches.lengths
    note = _middle(lengths, "events", 1.0) if len(lengths) else None
    return _drawing(sight, _whole_bars(lengths), note, size)


def durations_of(sight: Sight, size: Size) -> Drawing:
    matches, clock = sight.seen.matches, sight.seen.clock
    spans = clock.values[matches.last] - clock.values[matches.first] if len(matches) else np.empty(0)
    spans = spans[np.isfinite(spans)]
    name, factor = _unit(spans, clock)
    note = _middle(spans / factor, name, factor) if len(spans) else None
    if clock.unit == "place":
        return _drawing(
            sight, _whole_bars(spans.astype(np.int64), f"from the first event to the last, in {name}"), note, size
        )
    return _drawing(sight, _bars(spans / factor, f"from the first event to the last, in {name}"), note, size)


def over_time_of(sight: Sight, size: Size) -> Drawing:
    matches, clock = sight.seen.matches, sight.seen.clock
    ends = clock.values[matches.last] if len(matches) else np.empty(0)
    ends = ends[np.isfinite(ends)]
    low, high = range_of(clock.values)
    edges = np.linspace(low, high, _MOST_BARS + 1) if low < high else np.array([low - 0.5, low + 0.5])
    heights, edges = np.histogram(ends, edges)
    bars = _Bars(edges, heights, f"{clock_label(clock)} of the last event", clock)
    return _drawing(sight, bars, None, size)


def _unit(spans: Array, clock: Clock) -> tuple[str, float]:
    """The unit in which most of the spans are numbers that one can read."""
    if clock.unit == "place":
        return "places", 1.0
    if clock.unit == "number":
        return f"units of {clock_label(clock)}", 1.0
    in_seconds = 86_400.0 if clock.is_calendar else 1.0
    longest = float(spans.max()) * in_seconds if len(spans) else 0.0
    name, factor = next(((name, one) for name, one in reversed(_UNITS) if longest >= 2 * one), _UNITS[0])
    return name, factor / in_seconds


def _middle(values: Array, unit: str, _: float) -> str:
    half, most = float(np.median(values)), float(values.max())
    return f"median {half:.4g}, longest {most:.4g} {unit}"


def _whole_bars(values: Array, label: str = "events of a match") -> _Bars:
    """A bar for each whole number, or for several where there are many."""
    if not len(values):
        return _Bars(np.array([0.5, 1.5]), np.zeros(1), label, is_whole=True)
    low, high = int(values.min()), int(values.max())
    step = max(1, -(-(high - low + 1) // _MOST_BARS))
    edges = np.arange(low, high + step + 1, step) - 0.5
    heights, edges = np.histogram(values, edges)
    return _Bars(edges, heights, label, is_whole=True)


def _bars(values: Array, label: str) -> _Bars:
    if not len(values):
        return _Bars(np.array([0.0, 1.0]), np.zeros(1), label)
    high = float(values.max())
    count = int(min(_MOST_BARS, max(6, np.sqrt(len(values)) * 1.5)))
    heights, edges = np.histogram(values, np.linspace(0.0, high or 1.0, count + 1))
    return _Bars(edges, heights, label)


def _drawing(sight: Sight, bars: _Bars, note: str | None, size: Size) -> Drawing:
    width, height = size
    caption = sentence([counted(sight), note])
    lines = caption_lines(caption, width)
    whole = (width, height or _HEIGHT)

    def draw(figure: Any, theme: Theme) -> None:
        sheet = Sheet(figure, whole, theme)
        room = whole[1] - 2 * MARGIN - _AXIS - LINE * len(lines)
        axes = sheet.axes(MARGIN + _TICKS, MARGIN, width - 2 * MARGIN - _TICKS, max(room, 20.0))
        _draw_bars(axes, bars, theme)
        sheet.caption(lines)

    return Drawing(whole, caption, draw)


def _draw_bars(axes: Any, bars: _Bars, theme: Theme) -> None:
    from matplotlib.ticker import MaxNLocator

    shift = 0.0 if bars.clock is None else epoch_shift(bars.clock)
    edges = bars.edges + shift
    if bars.clock is not None:
        set_time_axis(axes, bars.clock, float(bars.edges[0]), float(bars.edges[-1]))
    else:
        axes.set_xlim(edges[0], edges[-1])
        axes.xaxis.set_major_locator(MaxNLocator(10, integer=bars.is_whole))
    wide = np.diff(edges)
    for left, width, height in zip(edges[:-1], wide, bars.heights, strict=True):
        if height:
            axes.bar(left + width / 2, height, width * 0.86, color=theme.variable_1, gid="bar")[0].set_gid("bar")
    axes.set_ylim(0, max(float(bars.heights.max(initial=0)) * 1.08, 1.0))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(axis="y", color=theme.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel(bars.label, color=theme.pale)
    axes.set_ylabel("matches", color=theme.pale)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_offset_text().set_color(theme.pale)

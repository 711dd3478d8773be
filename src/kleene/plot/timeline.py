"""Matches on a timeline: a band for each key, with its events on a strip, and its matches in lanes below."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from kleene.markup.themes import LIGHT, Theme
from kleene.plot.drawing import Drawing, Size, counted, left_out, variable_entries
from kleene.plot.forbidden import Forbidden, Stopped
from kleene.plot.seen import Array, short_text
from kleene.plot.sheet import (
    LINE,
    MARGIN,
    Entry,
    Sheet,
    caption_lines,
    clock_label,
    epoch_shift,
    legend_height,
    look_of,
    mark_size,
    range_of,
    set_time_axis,
    text_width,
)
from kleene.plot.sight import Sight
from kleene.plot.thinning import MOST_LANES, Lanes, lanes_of, plural, selected_places, sentence, thinned

_STRIP, _LANE, _GAP = 24.0, 17.0, 10.0  # heights in pixels, where nothing else is asked for
_AXIS = 44.0  # of the axis below, with its label
_LEAST_LANES, _MOST_STOPPED = 2, 2


@dataclass(frozen=True, slots=True, eq=False)
class _Band:
    """A key: its label, the places of the events on its strip, which of them are forbidden, and its matches."""

    label: str
    events: Array
    forbidden: Forbidden
    lanes: Lanes
    hidden: int  # events of the key that are not drawn
    most_stopped: int = _MOST_STOPPED

    @property
    def stopped(self) -> tuple[Stopped, ...]:
        return self.forbidden.stopped[: self.most_stopped]

    @property
    def height(self) -> float:
        return _STRIP + _LANE * (self.lanes.count + len(self.stopped)) + _GAP


def timeline_of(sight: Sight, keys: list[int], note: str | None, forbidden: list[Forbidden], size: Size) -> Drawing:
    """The drawing of these keys; `forbidden` are the events of negations, by key."""
    seen = sight.seen
    width, height = size
    most = _lanes_that_fit(len(keys), height)
    bands = []
    for key, own in zip(keys, forbidden, strict=True):
        places = np.flatnonzero(seen.keys.of_event == key)
        kept = np.isin(places, own.places)
        picked = places[thinned(seen.clock.values[places], None, kept)]
        lanes = lanes_of(seen, key, most, len(keys))
        stopped = _MOST_STOPPED if height is None else 1
        bands.append(_Band(_label(sight, key), picked, own, lanes, len(places) - len(picked), stopped))
    hidden, close = sum(band.lanes.overlapping for band in bands), sum(band.hidden for band in bands)
    skipped = sum(band.lanes.skipped for band in bands)
    unshown = sum(len(band.forbidden.stopped) - len(band.stopped) for band in bands)
    missing = left_out(
        [
            (hidden, f"{plural(hidden, 'match', 'matches')} where more than {most} overlap"),
            (skipped, f"{plural(skipped, 'match', 'matches')} so that others can be told apart"),
            (unshown, f"{plural(unshown, 'run')} that a negation stopped"),
            (close, f"{plural(close, 'event')} that stand close to others"),
        ]
    )
    caption = sentence([counted(sight), note, missing, _untimed(sight)])
    return _Timeline(sight, bands, caption, width, height).drawing()


def _lanes_that_fit(keys: int, height: int | None) -> int:
    """How many lanes each key may have."""
    if height is None:
        return max(_LEAST_LANES, MOST_LANES // max(keys, 1))
    room = (height - 140) / max(keys, 1) - _STRIP - _GAP
    return max(_LEAST_LANES, int(room / 9))


def _label(sight: Sight, key: int) -> str:
    return sight.seen.keys.text(sight.seen.table, key) if sight.seen.keys.names else ""


def _untimed(sight: Sight) -> str | None:
    count = int((~np.isfinite(sight.seen.clock.values)).sum())
    return f"{plural(count, 'event')} without a time that could be drawn" if count else None


@dataclass(frozen=True, slots=True, eq=False)
class _Timeline:
    sight: Sight
    bands: list[_Band]
    caption: str
    width: int
    height: int | None

    def drawing(self) -> Drawing:
        body = sum(band.height for band in self.bands) or _STRIP
        lines = caption_lines(self.caption, self.width)
        entries = self._entries(LIGHT)
        around = 2 * MARGIN + legend_height(entries, self.width) + _AXIS + LINE * len(lines)
        height = int(self.height or min(around + body, 4000))
        scale = max((height - around) / body, 0.1)
        return Drawing(
            (self.width, height), self.caption, lambda figure, theme: self._draw(figure, theme, height, scale)
        )

    def _entries(self, theme: Theme) -> list[Entry]:
        entries = [*variable_entries(self.sight, theme), Entry("other events", theme.faint, "|", 10)]
        names = dict.fromkeys(name for band in self.bands for name in band.forbidden.names)
        entries += [Entry(short_text(f"!{name}, forbidden", 40), theme.forbidden, "x") for name in names]
        if any(band.stopped for band in self.bands):
            entries.append(Entry("no match, for that reason", theme.faint, "o", 6, is_hollow=True))
        return entries

    def _draw(self, figure: Any, theme: Theme, height: int, scale: float) -> None:
        sheet = Sheet(figure, (self.width, height), theme)
        entries = self._entries(theme)
        top = MARGIN * 0.7
        sheet.legend(entries, top)
        top += legend_height(entries, self.width) + MARGIN * 0.3
        widest = max((text_width(band.label) for band in self.bands), default=0)
        left = MARGIN + (min(widest, self.width / 3) + 10 if widest else 0)
        body = sum(band.height for band in self.bands) * scale or _STRIP
        axes = sheet.axes(left, top, self.width - left - MARGIN, body, "timeline")
        axes.set_ylim(body, 0)
        axes.set_yticks([])
        clock = self.sight.seen.clock
        set_time_axis(axes, clock, *range_of(clock.values[self._shown()]))
        axes.grid(axis="x", color=theme.grid, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_xlabel(clock_label(clock), color=theme.pale)
        axes.xaxis.get_offset_text().set_color(theme.pale)
        at = 0.0
        for band in self.bands:
            self._draw_band(sheet, axes, band, at, scale)
            sheet.write(left - 10, top + at + _STRIP * scale / 2, band.label, ha="right", gid="key")
            at += band.height * scale
            if band is not self.bands[-1]:
                axes.axhline(at - _GAP * scale / 2, color=theme.grid, linewidth=0.8)
        sheet.caption(caption_lines(self.caption, self.width))

    def _shown(self) -> Array:
        parts = [band.events for band in self.bands]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _draw_band(self, sheet: Sheet, axes: Any, band: _Band, top: float, scale: float) -> None:
        times = self.sight.seen.clock.values + epoch_shift(self.sight.seen.clock)
        lanes = top + (_STRIP + _LANE * (np.arange(band.lanes.count + len(band.stopped)) + 0.5)) * scale
        small = min(max(scale, 0.6), 1.0)
        self._draw_strip(axes, sheet.theme, band, times, top + _STRIP * scale / 2, small)
        self._draw_matches(axes, sheet.theme, band, times, lanes, small)
        _draw_stopped(axes, sheet.theme, band, times, lanes[band.lanes.count :], small)

    def _draw_strip(self, axes: Any, theme: Theme, band: _Band, times: Array, y: float, small: float) -> None:
        """The events that no match has that is drawn, and those that are forbidden."""
        forbidden = band.forbidden.places
        taken = selected_places(self.sight.seen, band.lanes.matches)[band.events]
        others = band.events[~taken & ~np.isin(band.events, forbidden)]
        axes.plot(times[others], np.full(len(others), y), "|", color=theme.faint, markersize=7 * small, gid="event")
        how = {"color": theme.forbidden, "markersize": 6 * small}
        axes.plot(times[forbidden], np.full(len(forbidden), y), "x", gid="forbidden", **how)

    def _draw_matches(self, axes: Any, theme: Theme, band: _Band, times: Array, lanes: Array, small: float) -> None:
        marks, how = Marks(), {"color": theme.pale, "linewidth": 2.0 * small, "solid_capstyle": "round"}
        for match, lane in zip(band.lanes.matches.tolist(), band.lanes.lane.tolist(), strict=True):
            events, variable = self.sight.seen.matches.events_of(match)
            axes.plot(times[[events[0], events[-1]]], [lanes[lane]] * 2, "-", gid="match", **how)
            marks.add(times[events], lanes[lane], variable)
        marks.draw(axes, theme, mark_size(7 * small, marks.most_in_a_lane), "selected")


def _draw_stopped(axes: Any, theme: Theme, band: _Band, times: Array, lanes: Array, small: float) -> None:
    """Runs that a negation stopped, and the events that did it."""
    marks, how = Marks(), {"color": theme.forbidden, "markersize": 7 * small, "markeredgewidth": 1.6 * small}
    for run, y in zip(band.stopped, lanes.tolist(), strict=True):
        ends = times[[min(run.places), max(run.places)]]
        axes.plot(ends, [y, y], "--", color=theme.faint, linewidth=1.0, gid="stopped")
        axes.plot(times[[run.by]], [y], "x", gid="stopping", **how)
        marks.add(times[list(run.places)], y, np.array(run.variable))
    marks.draw(axes, theme, 5 * small, "nearly", is_hollow=True)


class Marks:
    """Marks of events, gathered by variable, so that each variable is drawn at once."""

    def __init__(self) -> None:
        self.by_variable: dict[int, tuple[list[float], list[float]]] = {}

    def add(self, xs: Array, y: float, variable: Array) -> None:
        for x, number in zip(xs.tolist(), variable.tolist(), strict=True):
            own = self.by_variable.setdefault(number, ([], []))
            own[0].append(x)
            own[1].append(y)

    @property
    def most_in_a_lane(self) -> int:
        return max(Counter(y for _, ys in self.by_variable.values() for y in ys).values(), default=0)

    def draw(self, axes: Any, theme: Theme, size: float, gid: str, is_hollow: bool = False) -> None:
        for number, (xs, ys) in sorted(self.by_variable.items()):
            color, marker = look_of(number, theme)
            inner, border = (theme.paper, color) if is_hollow else (color, theme.paper)
            axes.plot(
                xs,
                ys,
                marker,
                markerfacecolor=inner,
                markersize=size,
                markeredgecolor=border,
                markeredgewidth=1.2 if is_hollow else 0.8,
                gid=f"{gid} variable-{number + 1}",
                clip_on=False,
            )

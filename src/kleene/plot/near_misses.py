"""Near misses on a timeline: of each run that failed by one thing, what it had bound, and the event that stopped it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kleene.markup.themes import LIGHT, Theme
from kleene.plot.drawing import Drawing, Size
from kleene.plot.forbidden import places_of_rows
from kleene.plot.seen import Array, short_text
from kleene.plot.sheet import (
    LETTER,
    LINE,
    MARGIN,
    Entry,
    Sheet,
    caption_lines,
    clock_label,
    epoch_shift,
    legend_height,
    look_of,
    range_of,
    set_time_axis,
)
from kleene.plot.sight import Sight
from kleene.plot.thinning import plural, sentence
from kleene.plot.timeline import Marks
from kleene.why.answer import Why
from kleene.why.model import Kind, NearMiss
from kleene.why.text import miss_text

_TEXT, _LANE, _AXIS = 20.0, 18.0, 44.0  # heights in pixels
_MOST = 24
"""Near misses that are drawn; those that would have been matches come first."""


@dataclass(frozen=True, slots=True, eq=False)
class _Lane:
    """A near miss: what is said of it, the places and variables of its events, and the place of what stopped it."""

    text: str
    places: Array
    variable: Array
    by: int | None


def near_misses_of(sight: Sight, why: Why, size: Size) -> Drawing:
    """The drawing; a height that is given says how many of them there is room for."""
    width, height = size
    place_of = places_of_rows(sight)
    names = _variables(sight, why)
    number = {name: at for at, name in enumerate(names)}
    room = _MOST if height is None else max(int((height - 150) / (_TEXT + _LANE)), 1)
    lanes = [_lane(miss, place_of, number) for miss in why.misses[: min(room, _MOST)]]
    count, shown = len(why.misses), len(lanes)
    told = plural(count, "near miss", "near misses")
    what = f"{shown} of {told}" if shown < count else told
    looked = f"{plural(why.runs_followed, 'run')} followed among {plural(why.events, 'event')}"
    return _NearMisses(sight, names, lanes, sentence([f"{what}; {looked}", *why.notes]), width, height).drawing()


def _variables(sight: Sight, why: Why) -> list[str]:
    """Those of matches, and those that only near misses have, if they have names."""
    matched = [name for name in sight.seen.matches.variables if name is not None]
    return list(dict.fromkeys([*matched, *(name for miss in why.misses for name, _ in miss.bound)]))


def _lane(miss: NearMiss, place_of: Array, number: dict[str, int]) -> _Lane:
    bound = [(int(place_of[event.row]), number[name]) for name, events in miss.bound for event in events]
    key = ", ".join(f"{name} = {value}" for name, value in miss.key)
    # Of a window that has passed, the event that came too late says more than the first one behind the window.
    by = miss.event or miss.by if miss.kind is Kind.WINDOW else miss.by or miss.event
    return _Lane(
        ": ".join(filter(None, (key, miss_text(miss)))),
        np.array([place for place, _ in bound], np.int64),
        np.array([variable for _, variable in bound], np.int64),
        None if by is None else int(place_of[by.row]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _NearMisses:
    sight: Sight
    names: list[str]
    lanes: list[_Lane]
    caption: str
    width: int
    height: int | None

    def drawing(self) -> Drawing:
        lines = caption_lines(self.caption, self.width)
        legend = legend_height(self._entries(LIGHT), self.width)
        body = (_TEXT + _LANE) * max(len(self.lanes), 1)
        height = int(self.height or 2 * MARGIN + legend + body + _AXIS + LINE * len(lines))
        return Drawing((self.width, height), self.caption, lambda figure, theme: self._draw(figure, theme, height))

    def _entries(self, theme: Theme) -> list[Entry]:
        looks = [(name, *look_of(number, theme)) for number, name in enumerate(self.names)]
        bound = [Entry(short_text(name, 40), color, marker, is_hollow=True) for name, color, marker in looks]
        return [*bound, Entry("what stopped the run", theme.forbidden, "x")]

    def _draw(self, figure: Any, theme: Theme, height: int) -> None:
        sheet = Sheet(figure, (self.width, height), theme)
        entries, clock = self._entries(theme), self.sight.seen.clock
        sheet.legend(entries, MARGIN * 0.7)
        top = MARGIN + legend_height(entries, self.width)
        lines = caption_lines(self.caption, self.width)
        body = height - top - MARGIN - _AXIS - LINE * len(lines)
        axes = sheet.axes(MARGIN, top, self.width - 2 * MARGIN, body, "near misses")
        axes.set_ylim(body, 0)
        axes.set_yticks([])
        set_time_axis(axes, clock, *range_of(clock.values[self._shown()]))
        axes.set_xlabel(clock_label(clock), color=theme.pale)
        each = body / max(len(self.lanes), 1)
        for at, lane in enumerate(self.lanes):
            text = short_text(lane.text, int((self.width - 2 * MARGIN) / LETTER))
            sheet.write(MARGIN, top + each * at + min(_TEXT, each) / 2, text, gid="reason")
            self._draw_lane(axes, theme, lane, each * (at + 1) - min(_LANE, each) / 2)
        sheet.caption(lines)

    def _shown(self) -> Array:
        own = [[*lane.places.tolist(), *([] if lane.by is None else [lane.by])] for lane in self.lanes]
        return np.array([place for places in own for place in places], np.int64)

    def _draw_lane(self, axes: Any, theme: Theme, lane: _Lane, y: float) -> None:
        times = self.sight.seen.clock.values + epoch_shift(self.sight.seen.clock)
        every = [*lane.places.tolist(), *([] if lane.by is None else [lane.by])]
        ends = times[[min(every), max(every)]] if every else times[:0]
        axes.plot(ends, np.full(len(ends), y), "--", color=theme.faint, linewidth=1.0, gid="near miss")
        axes.axhline(y, color=theme.grid, linewidth=0.8, zorder=0)
        marks = Marks()
        marks.add(times[lane.places], y, lane.variable)
        marks.draw(axes, theme, 6.0, "bound", is_hollow=True)
        if lane.by is not None:
            how = {"color": theme.forbidden, "markersize": 7, "markeredgewidth": 1.6}
            axes.plot(times[[lane.by]], [y], "x", gid="stopping", clip_on=False, **how)

"""An attribute over time: a panel for each key, with selected events marked by variable and matches shaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kleene.markup.themes import LIGHT, Theme
from kleene.plot.drawing import Drawing, Size, counted, left_out, variable_entries
from kleene.plot.forbidden import Forbidden
from kleene.plot.seen import Array, numbers_of, short_text
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
    number_text,
    range_of,
    set_time_axis,
    text_width,
    value_ticks,
)
from kleene.plot.sight import Sight
from kleene.plot.thinning import drawn_matches, plural, selected_places, sentence, spread, thinned

_PANEL, _TITLE, _AXIS, _TICKS, _BETWEEN = 150.0, 24.0, 44.0, 40.0, 16.0
_NARROW, _MOST_SHADED = 280.0, 40
"""A panel is at least so wide, and has at most so many shaded spans."""


@dataclass(frozen=True, slots=True, eq=False)
class _Panel:
    label: str
    points: Array  # the places that are drawn, in order
    spans: Array  # first and last place of each match that is shaded
    forbidden: Forbidden
    matches: Array  # those whose events are marked
    hidden: int
    unshaded: int
    skipped: int


def series_of(
    sight: Sight, y: str, keys: list[int], note: str | None, forbidden: list[Forbidden], size: Size
) -> Drawing:
    values = numbers_of(sight.seen.table, y, sight.columns)
    panels = [_panel(sight, values, key, own, len(keys)) for key, own in zip(keys, forbidden, strict=True)]
    hidden, unshaded = sum(one.hidden for one in panels), sum(one.unshaded for one in panels)
    skipped = sum(one.skipped for one in panels)
    caption = sentence(
        [
            f"{short_text(y)}: {counted(sight)}",
            note,
            left_out(
                [
                    (hidden, f"{plural(hidden, 'event')} between the lowest and the highest of a moment"),
                    (skipped, f"{plural(skipped, 'match', 'matches')} so that others can be told apart"),
                    (unshaded, f"the spans of {plural(unshaded, 'match', 'matches')}"),
                ]
            ),
        ]
    )
    return _Series(sight, y, values, panels, caption, *size).drawing()


def _panel(sight: Sight, values: Array, key: int, forbidden: Forbidden, share: int) -> _Panel:
    seen = sight.seen
    places = np.flatnonzero(seen.keys.of_event == key)
    matches, skipped = drawn_matches(seen, key, share)
    is_selected = selected_places(seen, matches)[places]
    picked = places[thinned(seen.clock.values[places], values[places], is_selected | np.isin(places, forbidden.places))]
    shaded = spread(matches, _MOST_SHADED)
    spans = np.column_stack([seen.matches.first[shaded], seen.matches.last[shaded]])
    label = seen.keys.text(seen.table, key) if seen.keys.names else ""
    hidden, unshaded = len(places) - len(picked), len(matches) - len(shaded)
    return _Panel(label, picked, spans, forbidden, matches, hidden, unshaded, skipped)


@dataclass(frozen=True, slots=True, eq=False)
class _Series:
    sight: Sight
    y: str
    values: Array
    panels: list[_Panel]
    caption: str
    width: int
    height: int | None

    @property
    def columns(self) -> int:
        wanted = 1 if len(self.panels) <= 3 else 2 if len(self.panels) <= 8 else 3
        return max(1, min(wanted, int(self.width / _NARROW)))

    @property
    def rows(self) -> int:
        return -(-max(len(self.panels), 1) // self.columns)

    def drawing(self) -> Drawing:
        lines = caption_lines(self.caption, self.width)
        around = 2 * MARGIN + legend_height(self._entries(LIGHT), self.width) + _AXIS + LINE * len(lines)
        panel = _PANEL * (1.6 if len(self.panels) == 1 else 1.0)
        height = int(self.height or min(around + self.rows * (panel + self._title), 4000))
        room = max((height - around) / self.rows - self._title, 20.0)
        return Drawing(
            (self.width, height), self.caption, lambda figure, theme: self._draw(figure, theme, height, room)
        )

    @property
    def _title(self) -> float:
        return _TITLE if any(panel.label for panel in self.panels) else _BETWEEN * 0.5

    def _entries(self, theme: Theme) -> list[Entry]:
        entries = [*variable_entries(self.sight, theme), Entry("other events", theme.line, ".", 6)]
        names = dict.fromkeys(name for panel in self.panels for name in panel.forbidden.names)
        entries += [Entry(short_text(f"!{name}, forbidden", 40), theme.forbidden, "x") for name in names]
        return entries

    def _draw(self, figure: Any, theme: Theme, height: int, room: float) -> None:
        sheet = Sheet(figure, (self.width, height), theme)
        entries = self._entries(theme)
        sheet.legend(entries, MARGIN * 0.7)
        top = MARGIN + legend_height(entries, self.width)
        clock = self.sight.seen.clock
        shown = np.concatenate([panel.points for panel in self.panels] or [np.empty(0, np.int64)])
        low, high = range_of(clock.values[shown])
        labels = [number_text(tick) for panel in self.panels for tick in self._ticks(panel)]
        left = max([_TICKS, *(text_width(label) + 8 for label in labels)])
        wide = (self.width - 2 * MARGIN - _BETWEEN * (self.columns - 1)) / self.columns
        for number, panel in enumerate(self.panels):
            row, column = divmod(number, self.columns)
            x = MARGIN + column * (wide + _BETWEEN)
            y = top + row * (room + self._title)
            is_lowest = number + self.columns >= len(self.panels)
            if panel.label:
                sheet.write(x + left, y + self._title / 2, panel.label, weight="bold", gid="key")
            axes = sheet.axes(x + left, y + self._title, wide - left, room - _BETWEEN * 0.6)
            set_time_axis(axes, clock, low, high, labels=is_lowest)
            self._draw_panel(axes, theme, panel)
            if is_lowest:
                axes.set_xlabel(clock_label(clock), color=theme.pale)
        sheet.caption(caption_lines(self.caption, self.width))

    def _ticks(self, panel: _Panel) -> list[float]:
        return value_ticks(*range_of(self.values[panel.points]))

    def _draw_panel(self, axes: Any, theme: Theme, panel: _Panel) -> None:
        seen, values = self.sight.seen, self.values
        times = seen.clock.values + epoch_shift(seen.clock)
        axes.grid(axis="y", color=theme.grid, linewidth=0.8)
        axes.set_axisbelow(True)
        ticks = self._ticks(panel)
        axes.set_yticks(ticks, [number_text(tick) for tick in ticks])
        axes.xaxis.get_offset_text().set_color(theme.pale)
        for first, last in panel.spans.tolist():
            axes.axvspan(times[first], times[last], color=theme.variable_1, alpha=0.09, linewidth=0, gid="span")
        axes.plot(times[panel.points], values[panel.points], "-", color=theme.line, linewidth=1.1, gid="series")
        others = panel.points[~selected_places(seen, panel.matches)[panel.points]]
        dots = 0.0 if panel.hidden else 3.0  # what is thinned is a line alone
        axes.plot(times[others], values[others], ".", color=theme.line, markersize=dots, gid="event")
        places = panel.forbidden.places
        axes.plot(times[places], values[places], "x", color=theme.forbidden, markersize=6, gid="forbidden")
        marked: dict[int, dict[int, None]] = {}
        for match in panel.matches.tolist():
            for place, number in zip(*(part.tolist() for part in seen.matches.events_of(match)), strict=True):
                marked.setdefault(number, {})[place] = None
        size = mark_size(6.0, sum(map(len, marked.values())))
        for number, places_ in sorted(marked.items()):
            color, marker = look_of(number, theme)
            at = np.array(list(places_), np.int64)
            how = {"color": color, "markersize": size, "markeredgecolor": theme.paper, "markeredgewidth": size / 9}
            axes.plot(times[at], values[at], marker, gid=f"selected variable-{number + 1}", clip_on=False, **how)

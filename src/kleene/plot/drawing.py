"""What all kinds of pictures share: a drawing knows its size and its caption, and how to be drawn in a theme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.errors import UnsupportedError, shown
from kleene.markup.themes import Theme, theme_of
from kleene.plot.figures import png_of, svg_of
from kleene.plot.picture import Picture
from kleene.plot.seen import short_text
from kleene.plot.sheet import LEAST, MOST, Entry, look_of
from kleene.plot.sight import Sight
from kleene.plot.thinning import plural

Size = tuple[int, int | None]
"""A width, and a height where it is given."""


@dataclass(frozen=True, slots=True)
class Drawing:
    size: tuple[int, int]
    caption: str
    draw: Callable[[Any, Theme], None]

    def picture(self, kind: str, theme: str) -> Picture:
        colors = theme_of(theme)

        def drawn(scale: float) -> bytes:
            return png_of(self.size, scale, lambda figure: self.draw(figure, colors))

        svg = svg_of(self.size, f"{kind}: {self.caption}", lambda figure: self.draw(figure, colors))
        return Picture(kind, self.caption, theme, self.size, svg, drawn)


def checked_size(given: object, width: int) -> Size:
    """A width, or a width and a height, in pixels."""
    match given:
        case None:
            return width, None
        case int() if not isinstance(given, bool) and LEAST <= given <= MOST:
            return given, None
        case (int() as wide, int() as high) if LEAST <= wide <= MOST and LEAST <= high <= MOST:
            return wide, high
    raise UnsupportedError(
        f"size is a width, or a width and a height, in pixels from {LEAST} to {MOST:,}, but {shown(given)} was given",
        hint="Write: size=1200, or size=(1200, 600).",
    )


def variable_entries(sight: Sight, theme: Theme) -> list[Entry]:
    """The legend of the variables, with the types of their events where they have some."""
    found = []
    types = {one.name: one.types for one in sight.query.components} if isinstance(sight.query, AnalyzedQuery) else {}
    for number, name in enumerate(sight.seen.matches.variables):
        color, marker = look_of(number, theme)
        own = " | ".join(types.get(name or "", ()))
        text = "an event of a match" if name is None else f"{name} ({own})" if own and own != name else name
        found.append(Entry(short_text(text, 40), color, marker))
    return found


def counted(sight: Sight) -> str:
    """How much there is in all."""
    seen = sight.seen
    matches = plural(len(seen.matches), "match", "matches")
    if seen.matches.is_cut:
        matches = f"more matches than are looked at, of which {matches} are,"
    keys = f" in {plural(len(seen.keys), 'key')}" if seen.keys.names else ""
    return f"{matches} among {plural(len(seen), 'event')}{keys}"


def left_out(parts: Sequence[tuple[int, str]]) -> str | None:
    """What was not drawn, where it is something."""
    said = [text for count, text in parts if count]
    return "not drawn: " + ", ".join(said) if said else None

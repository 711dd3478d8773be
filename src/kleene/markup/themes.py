"""The colours of pictures, by the part that they play. No two parts of a theme share a colour.

So a picture that was drawn in one theme can be told to follow another: each colour stands for its part.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields

THEMES = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Theme:
    """Variables have six colours, which also differ for those who cannot tell red from green, and markers besides."""

    paper: str
    ink: str
    pale: str  # text of less weight, and axes
    faint: str  # events that no match has
    line: str  # a series of values
    grid: str
    box: str  # states of an automaton
    forbidden: str  # events of negations
    variable_1: str
    variable_2: str
    variable_3: str
    variable_4: str
    variable_5: str
    variable_6: str

    @property
    def variables(self) -> tuple[str, ...]:
        return (
            self.variable_1,
            self.variable_2,
            self.variable_3,
            self.variable_4,
            self.variable_5,
            self.variable_6,
        )


LIGHT = Theme(
    paper="#ffffff",
    ink="#24292f",
    pale="#57606a",
    faint="#9aa4af",
    line="#848f9b",
    grid="#e4e8ec",
    box="#f6f8fa",
    forbidden="#cf222e",
    variable_1="#0969da",
    variable_2="#bc4c00",
    variable_3="#1a7f37",
    variable_4="#8250df",
    variable_5="#0b7285",
    variable_6="#bf3989",
)
DARK = Theme(
    paper="#0d1117",
    ink="#e6edf3",
    pale="#9ea7b3",
    faint="#6b7480",
    line="#7d8590",
    grid="#262c34",
    box="#161b22",
    forbidden="#ff7b72",
    variable_1="#58a6ff",
    variable_2="#f0883e",
    variable_3="#3fb950",
    variable_4="#bc8cff",
    variable_5="#39c5cf",
    variable_6="#f778ba",
)
_BY_NAME = {"light": LIGHT, "dark": DARK}
_TAG, _COLOR = re.compile(r"<[A-Za-z][^<>]*>"), re.compile(r"#[0-9a-f]{6}\b")
_PAINT = re.compile(r'\b(?:style|fill|stroke)="[^"]*"')


def theme_of(name: str) -> Theme:
    return _BY_NAME[name]


def colors_css(theme: Theme) -> str:
    """The colours of the theme as variables of CSS, by their parts."""
    return "".join(f"--kleene-{part(one.name)}:{getattr(theme, one.name)};" for one in fields(Theme))


def variables_css() -> str:
    """Style rules that give each part its colour, light or dark as the reader's system is."""
    dark = f"@media (prefers-color-scheme:dark){{:root{{{colors_css(DARK)}}}}}"
    return f":root{{color-scheme:light dark;{colors_css(LIGHT)}}}{dark}"


def part(field: str) -> str:
    return field.replace("_", "-")


def following(svg: str, name: str) -> str:
    """The picture, which was drawn in the theme, with colours that follow the rules of `variables_css`."""
    parts = {getattr(theme_of(name), one.name): part(one.name) for one in fields(Theme)}
    return _repainted(svg, lambda color: f"var(--kleene-{parts[color]},{color})" if color in parts else color)


def recolored(svg: str, name: str) -> str:
    """A drawing in the colours of the light theme, in those of another."""
    return _repainted(svg, lambda color: color_in(color, name))


def color_in(color: str, name: str) -> str:
    """A colour of the light theme as it is in another."""
    parts = {getattr(LIGHT, one.name): one.name for one in fields(Theme)}
    return str(getattr(theme_of(name), parts[color])) if color in parts else color


def _repainted(svg: str, paint: Callable[[str], str]) -> str:
    def of_tag(tag: str) -> str:
        return _PAINT.sub(lambda found: _COLOR.sub(lambda color: paint(color.group()), found.group()), tag)

    return in_tags(svg, of_tag)


def in_tags(svg: str, change: Callable[[str], str]) -> str:
    """The picture with its tags changed. A text that looks like something in a tag stays as it is."""
    return _TAG.sub(lambda tag: change(tag.group()), svg)

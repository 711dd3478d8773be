"""The colours of pictures, by the part that they play. No two parts of a theme share a colour.

So a picture that was drawn in one theme can be told to follow another: each colour stands for its part.
"""

from __future__ import annotations

import re
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
_TAG, _STYLE, _COLOR = re.compile(r"<[A-Za-z][^<>]*>"), re.compile(r'\bstyle="[^"]*"'), re.compile(r"#[0-9a-f]{6}\b")


def theme_of(name: str) -> Theme:
    return _BY_NAME[name]


def variables_css() -> str:
    """Style rules that give each part its colour, light or dark as the reader's system is."""

    def colors(theme: Theme) -> str:
        return "".join(f"--kleene-{part(one.name)}:{getattr(theme, one.name)};" for one in fields(Theme))

    return (
        f":root{{color-scheme:light dark;{colors(LIGHT)}}}@media (prefers-color-scheme:dark){{:root{{{colors(DARK)}}}}}"
    )


def part(field: str) -> str:
    return field.replace("_", "-")


def following(svg: str, name: str) -> str:
    """The picture, which was drawn in the theme, with colours that follow the rules of `variables_css`.

    Only styles of tags are changed: a text that looks like a colour stays as it is.
    """
    parts = {getattr(theme_of(name), one.name): part(one.name) for one in fields(Theme)}

    def as_variable(found: re.Match[str]) -> str:
        color = found.group()
        return f"var(--kleene-{parts[color]},{color})" if color in parts else color

    def of_style(style: re.Match[str]) -> str:
        return _COLOR.sub(as_variable, style.group())

    return _TAG.sub(lambda tag: _STYLE.sub(of_style, tag.group()), svg)

"""A picture: a value that knows how to be SVG, PNG and a page of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from kleene.errors import UnsupportedError, printable, shown
from kleene.markup.themes import following, variables_css

ENDINGS = (".svg", ".png", ".html")
_PAGE = (
    "body{margin:0;background:var(--kleene-paper);color:var(--kleene-ink);"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}"
    "figure{margin:0 auto;padding:16px;max-width:1200px}svg{display:block;width:100%;height:auto}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a query, its events and its matches. `Query.plot` and `Found.plot` make it.

    In a notebook it shows itself. `caption` says what is drawn, and what was left out. Pictures that look the same are
    equal.
    """

    kind: str
    caption: str
    theme: str
    size: tuple[int, int]
    _svg: str = field(repr=False)
    _drawn: Callable[[float], bytes] = field(repr=False, compare=False)

    def svg(self) -> str:
        """The picture as SVG, whole in itself. Text in it is text."""
        return self._svg

    def png(self, scale: float = 2.0) -> bytes:
        """The picture as PNG; `scale` is how many dots a pixel has on each side."""
        if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not 0.25 <= scale <= 8:
            raise UnsupportedError(f"scale is a number from 0.25 to 8, but {shown(scale)} was given")
        return self._drawn(float(scale))

    def html(self) -> str:
        """A page that holds the picture, and needs nothing else. It is light or dark as the reader's system is."""
        title = escape(f"{self.kind}: {self.caption}"[:120])
        return (
            "<!DOCTYPE html>\n"
            f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{variables_css()}{_PAGE}</style></head>\n"
            f"<body><main><figure>{self.inline()}</figure></main></body></html>\n"
        )

    def inline(self) -> str:
        """The SVG for a page that has the rules of `kleene.markup.themes.variables_css`: it follows light and dark."""
        return following(self._svg, self.theme)

    def save(self, path: Any) -> Path:
        """Writes the picture to a file whose name ends in .svg, .png or .html; an old file stays until it is whole."""
        target = Path(path)
        match target.suffix.lower():
            case ".svg":
                content = ('<?xml version="1.0" encoding="utf-8"?>\n' + self._svg).encode()
            case ".png":
                content = self.png()
            case ".html":
                content = self.html().encode()
            case _:
                raise unknown_ending(target)
        from kleene.files.replacing import replaced_file

        with replaced_file(target) as file:
            file.write(content)
        return target

    def _repr_svg_(self) -> str:
        return self._svg


def unknown_ending(path: Path) -> UnsupportedError:
    return UnsupportedError(
        f"a picture cannot be written to '{printable(str(path))}'",
        hint=f"The name of the file says what to write: it ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.",
    )

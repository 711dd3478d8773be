"""Pictures of the site: the code of a page runs while the site is built, and what it draws stands below it.

A page says `>>> picture = query.plot(…)`; the tests run the same line. Nothing that is drawn is kept in the project.
"""

from __future__ import annotations

import contextlib
import doctest
import html
import io
import warnings
from dataclasses import fields
from typing import Any

from kleene.markup.themes import DARK, LIGHT, Theme

_NAME = "picture"
_LINE = f">>> {_NAME} = "


def pictures_css() -> str:
    """The colours of pictures in the two schemes of the site."""

    def colors(theme: Theme) -> str:
        return "".join(f"--kleene-{one.name.replace('_', '-')}:{getattr(theme, one.name)};" for one in fields(Theme))

    return (
        f'[data-md-color-scheme="default"]{{{colors(LIGHT)}}}\n[data-md-color-scheme="slate"]{{{colors(DARK)}}}\n'
        "@media print{:root{" + colors(LIGHT) + "}}\n"
    )


def with_places(markdown: str) -> tuple[str, list[str]]:
    """The text with a place below each block that draws, and what stands in each place."""
    if _LINE not in markdown:
        return markdown, []
    drawn = _drawn(markdown)
    lines: list[str] = []
    number, is_code, has_picture = 0, False, False
    for line in markdown.split("\n"):
        lines.append(line)
        has_picture = has_picture or line.lstrip().startswith(_LINE)
        if line.lstrip().startswith("```"):
            is_code = not is_code
            if not is_code and has_picture:
                lines += ["", _place(number), ""]
                number, has_picture = number + 1, False
    if number != len(drawn):
        raise ValueError(f"{number} blocks of the page draw a picture, but {len(drawn)} pictures were drawn")
    return "\n".join(lines), drawn


def with_pictures(page: str, drawn: list[str]) -> str:
    """The page as HTML, with a figure in each place."""
    for number, figure in enumerate(drawn):
        page = page.replace(_place(number), figure, 1)
    return page


def _place(number: int) -> str:
    return f'<div data-picture="{number}"></div>'


def _drawn(markdown: str) -> list[str]:
    names: dict[str, Any] = {"__name__": "__main__"}
    drawn = []
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for example in doctest.DocTestParser().get_examples(markdown):
            if example.exc_msg is None:
                exec(compile(example.source, "<page>", "single"), names)
            if example.source.startswith(f"{_NAME} = "):
                drawn.append(_figure(names[_NAME]))
    return drawn


def _figure(picture: Any) -> str:
    return (
        f'<figure class="kleene-picture" role="img" aria-label="{html.escape(picture.caption)}">'
        f"{picture.inline()}</figure>"
    )

"""A report's parts to one page, which needs nothing else: no server, no network, and no script but its own."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

from kleene.markup.notebook import FOLDING, SYNTAX
from kleene.markup.tables import cell_html, is_number
from kleene.markup.themes import variables_css
from kleene.show import value_text
from kleene.visible import visible

_NUMBER, _LONG, _MOST_LETTERS = ' class="number"', 48, 400


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: its name in addresses, its heading, and HTML that is safe already."""

    name: str
    heading: str
    html: str


@dataclass(frozen=True, slots=True)
class Rows:
    """A table to filter and to sort."""

    label: str
    names: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def html(self) -> str:
        numeric = [any(is_number(row[at]) for row in self.rows) for at in range(len(self.names))]
        heads = "".join(
            f'<th scope="col" aria-sort="none"{_NUMBER * numeric[at]}><button type="button">{escape(visible(name))}'
            "</button></th>"
            for at, name in enumerate(self.names)
        )
        body = "".join(f"<tr>{''.join(_cells(row, numeric))}</tr>" for row in self.rows)
        label = escape(visible(self.label))
        return (
            f'<div data-table><div class="filter"><label>Filter <input type="search" aria-label="Filter {label}">'
            '</label><span role="status" class="pale"></span></div>'
            + region_html(self.label, f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>", "wide")
            + "</div>"
        )


def _cells(row: Sequence[Any], numeric: Sequence[bool]) -> Iterator[str]:
    for value, is_numeric in zip(row, numeric, strict=True):
        sort_by = f' data-value="{float(value)!r}"' if is_number(value) and value == value else ""
        look = _NUMBER if is_numeric else ' class="long"' if len(value_text(value)) > _LONG else ""
        yield f"<td{look}{sort_by}{cell_html(value, _MOST_LETTERS)}"


def region_html(label: str, html: str, kind: str = "scroll") -> str:
    """What may be wider than the screen, to be scrolled with the keyboard too."""
    return f'<div class="{kind}" role="region" tabindex="0" aria-label="{escape(visible(label))}">{html}</div>'


def counts_html(counts: Sequence[tuple[str, str]]) -> str:
    cards = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in counts)
    return f'<dl class="counts">{cards}</dl>'


def page_html(title: str, lead: str, counts: Sequence[tuple[str, str]], sections: Sequence[Section]) -> str:
    """The whole page. Its policy forbids the network, and every script but the one that stands in it."""
    style = variables_css() + SYNTAX + FOLDING + _resource("page.css")
    script = _resource("page.js")
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    links = "".join(f'<li><a href="#{one.name}">{escape(one.heading)}</a></li>' for one in sections)
    shown = escape(visible(title))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{shown}</title>\n<style>{style}</style></head>\n"
        '<body class="kleene"><a class="skip" href="#main">Skip to the content</a>\n'
        f'<header><h1>{shown}</h1><p class="pale">{escape(visible(lead))}</p>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>\n'
        f'<main id="main" tabindex="-1">{counts_html(counts)}\n'
        + "\n".join(_section_html(one) for one in sections)
        + "</main>\n<footer>Made by Kleene. This page is whole in itself.</footer>\n"
        + f"<script>{script}</script></body></html>\n"
    )


def _section_html(section: Section) -> str:
    heading = f'<h2 id="{section.name}-heading">{escape(section.heading)}</h2>'
    return f'<section id="{section.name}" aria-labelledby="{section.name}-heading">{heading}{section.html}</section>'


def _resource(name: str) -> str:
    return files("kleene.report").joinpath(name).read_text(encoding="utf-8")

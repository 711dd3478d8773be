"""Matches as a table that a person can read in a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kleene.visible import visible

_MOST_SHOWN = 3
_MOST_BATCHES = 6
_BETWEEN = 2  # blanks between columns
_LEFT_OUT_FIRST = ("read/s", "kept", "seconds", "state", "runs", "read")


def match_table(columns: list[str], rows: list[dict[str, Any]], title: str | None = None) -> Table:
    shown_title = None if title is None else Text(visible(title))
    table = Table(title=shown_title, title_justify="left", header_style="bold", show_lines=False)
    for name in columns:
        table.add_column(Text(visible(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(value_text(row[name])) for name in columns))
    return table


def stream_view(
    title: str,
    headings: Sequence[str],
    batches: Sequence[Sequence[str]],
    notes: Iterable[str],
    matches: Table | None,
    width: int,
) -> Group:
    """A stream at a glance: its last micro-batches, and the newest matches."""
    shown = batches[-_MOST_BATCHES:]
    columns = _fitting(list(zip(headings, *shown, strict=True)), width)
    table = Table(box=SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False, padding=(0, _BETWEEN, 0, 0))
    for heading, *_ in columns:
        style = {"matches": "bold green", "late": "yellow"}.get(heading)
        table.add_column(heading, justify="right", style=style, no_wrap=True)
    for cells in zip(*(cells for _, *cells in columns), strict=True):
        table.add_row(*cells)
    parts: list[RenderableType] = [Text(visible(title), style="bold"), Text(), table]
    parts += [Text(visible(note), style="dim") for note in notes]
    if matches is not None:
        parts += [Text(), matches]
    return Group(*parts)


def _fitting(columns: list[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    """The columns for which there is room; those that tell least are left out first."""
    for name in _LEFT_OUT_FIRST:
        if sum(max(map(len, column)) + _BETWEEN + 1 for column in columns) <= width:
            break
        columns = [column for column in columns if column[0] != name]
    return columns


def value_text(value: Any) -> str:
    """A value in few words: an event as its attributes, many events as the first and the last.

    >>> value_text({"t": 3, "id": "x"}), value_text([1, 2, 3, 4])
    ('t=3 id=x', '4: 1 · 2 · … · 4')
    """
    match value:
        case None:
            return "NULL"
        case dict():
            return " ".join(f"{visible(name)}={value_text(item)}" for name, item in value.items())
        case list() if len(value) > _MOST_SHOWN:
            return f"{len(value)}: {value_text(value[0])} · {value_text(value[1])} · … · {value_text(value[-1])}"
        case list():
            return f"{len(value)}: " + " · ".join(map(value_text, value))
        case float():
            return f"{value:.6g}"
        case datetime():
            return value.isoformat(" ", "seconds" if value.microsecond == 0 else "auto")
        case date():
            return value.isoformat()
    return visible(str(value))


_STYLES = (
    (re.compile(r"^(PATTERN|EVENT|WHERE|WITHIN|HAVING|RETURN|INTO|FROM|  AND)\b"), "bold"),
    (re.compile(r"^(plan|run|automaton)$"), "bold magenta"),
    (re.compile(r"^warning .*"), "yellow"),
    (re.compile(r"^[a-z]+ +(?=\S)"), "cyan"),
    (re.compile(r"[│└─]+"), "dim"),
    (re.compile(r"(TF|NG|WD|σ|SC←|SS→|NFA\^b|∅) [a-z]+( [a-z]+)?$|row-pattern search$"), "bold green"),
    (re.compile(r"→ [\d,]+ .*"), "yellow"),
)


def explanation(text: str) -> Text:
    """EXPLAIN's text with colours: the same letters, so that nothing is lost where there are none."""
    shown = Text(text)
    at = 0
    for line in text.splitlines(keepends=True):
        for pattern, style in _STYLES:
            found = pattern.search(line.rstrip("\n"))
            if found is not None:
                shown.stylize(style, at + found.start(), at + found.end())
        at += len(line)
    return shown

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
_WIDEST = 32
_BETWEEN = 2  # blanks between columns
_LEFT_OUT_FIRST = ("read/s", "kept", "seconds", "state", "runs", "read")


def match_table(
    columns: list[str], rows: list[dict[str, Any]], title: str | None = None, width: int | None = None
) -> Table:
    """The rows, whole events as columns of their attributes; of those columns, as many as there is room for."""
    flat = [flattened(row, columns) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row)) or columns
    cells = {name: [value_text(row.get(name)) for row in flat] for name in names}
    kept = names if width is None else _as_wide_as(names, cells, width)
    shown_title = None if title is None else Text(visible(title))
    left_out = len(names) - len(kept)
    caption = f"{left_out} more column{'' if left_out == 1 else 's'} not shown" if left_out else None
    table = Table(title=shown_title, title_justify="left", header_style="bold", caption=caption, caption_justify="left")
    for name in kept:
        is_number = any(isinstance(row.get(name), (int, float)) and row[name] is not True for row in flat)
        table.add_column(Text(visible(name)), overflow="fold", justify="right" if is_number else "left")
    for row_cells in zip(*(cells[name] for name in kept), strict=True):
        table.add_row(*map(Text, row_cells))
    return table


def flattened(row: dict[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    """The row with an event's attributes in the place of the event, and those of many events as lists.

    >>> flattened({"id": 7, "a": {"t": 1}, "b": [{"t": 2}, {"t": 3}]}, ["id", "a", "b"])
    {'id': 7, 'a.t': 1, 'b[].t': [2, 3]}
    """
    flat: dict[str, Any] = {}
    for column in columns:
        match row[column]:
            case {**attributes} if attributes:
                flat |= {f"{column}.{name}": value for name, value in attributes.items()}
            case [{**first}, *_] as events if first:
                flat |= {f"{column}[].{name}": [event and event[name] for event in events] for name in first}
            case value:
                flat[column] = value
    return flat


def _as_wide_as(names: list[str], cells: dict[str, list[str]], width: int) -> list[str]:
    """The columns that fit. Those that tell least go first: keys told again by an event, and one value throughout."""

    def is_told_again(name: str) -> bool:
        key = name.rpartition(".")[2]
        return key != name and cells.get(key) == cells[name]

    def is_constant(name: str) -> bool:
        return "." in name and len(cells[name]) > 1 and len(set(cells[name])) == 1

    for tells_little in (is_told_again, is_constant):
        if _room_left(names, cells, width) < 0:
            names = [name for name in names if not tells_little(name)]
    while len(names) > 1 and _room_left(names, cells, width) < 0:
        names = names[:-1]
    return names


def _room_left(names: list[str], cells: dict[str, list[str]], width: int) -> int:
    """A column takes part of a line at most, and its cells are folded then."""
    return width - 1 - sum(min(max(map(len, [name, *cells[name]])), _WIDEST) + 3 for name in names)


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

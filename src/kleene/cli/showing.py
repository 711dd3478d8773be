"""Results on the screen: a table for a person, JSON lines for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.text import Text

from kleene.cli.console import note, output, say, shown
from kleene.errors import printable
from kleene.files import FileKind, write_rows
from kleene.show import match_table

_FRAME = 8
"""Lines of a terminal that are not rows of the table."""
_FEW = 10
"""Rows that are shown where there is no terminal to be filled."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a query gave: how many rows, and those to be shown. `noun` says what a row is, and what several are."""

    name: str
    schema: pa.Schema
    count: int
    rows: pa.Table
    noun: tuple[str, str] = ("match", "matches")


@dataclass(frozen=True, slots=True)
class Screen:
    """How results are shown: as a table or as JSON lines, and how many rows; None is all of them."""

    is_json: bool
    limit: int | None

    def first_of(self, table: pa.Table) -> pa.Table:
        return table if self.limit is None else table.slice(0, self.limit)

    def show(self, result: Result, names: Sequence[str], paths: dict[str, Path]) -> None:
        title = result.name if len(names) > 1 else None
        if self.is_json:
            if not paths:
                _write_lines(result, title)
            note(_summary(result, title, 0 if paths else result.rows.num_rows).plain)
        else:
            if result.rows.num_rows:
                say(match_table(result.schema.names, result.rows.to_pylist(), title, output.width))
            say(_summary(result, None if result.rows.num_rows else title, result.rows.num_rows))
        if result.name in paths:
            written = f"written to {printable(str(paths[result.name]), 300)}"
            if self.is_json:
                note(written)
            else:
                say(shown(written), soft_wrap=True)


def make_screen(style: str | None, limit: int | None, to_standard_output: bool) -> Screen:
    """A terminal gets a table of a screenful, everything else every row as JSON, unless the options say otherwise."""
    is_json = to_standard_output or (style == "json" if style else not output.is_terminal)
    if limit is None and not is_json:
        limit = max(3, output.height - _FRAME) if output.is_terminal else _FEW
    return Screen(is_json, limit)


def _summary(result: Result, title: str | None, rows: int) -> Text:
    more = f", the first {rows:,} shown" if 0 < rows < result.count else ""
    line = Text(f"{result.count:,} {result.noun[result.count != 1]}", style="bold") + Text(more)
    return line if title is None else shown(f"{printable(title)}: ") + line


def _write_lines(result: Result, title: str | None) -> None:
    """The rows to the letter, since no person reads them; of several queries, each row says whose it is."""
    table: Any = result.rows
    if title is not None:
        names = pa.array([title] * table.num_rows, pa.string())
        table = table.add_column(0, "query" if "query" not in table.column_names else "_query", names)
    sys.stdout.flush()
    write_rows(table.schema, table.to_batches(), FileKind.JSON, sys.stdout.buffer)
    sys.stdout.buffer.flush()

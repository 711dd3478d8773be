"""Reads the cases of pattern windows: whole SQL texts over small tables."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from case_files import FOLDER, read_table
from row_cases import RowCase

PLACES = FOLDER / "pattern_windows"
_TEXTS = {
    "H": "t:int c:int\n1 20\n2 24\n3 27\n4 23\n5 22\n6 25\n7 25\n8 19",
    "Z": "t:int c:int\n1 5\n2 7\n3 6\n4 4\n5 8\n6 9\n7 3",
    "G": "site:string t:int c:int\nn 1 3\nn 2 9\nn 3 1\nn 4 2\ns 1 9\ns 2 5\ns 3 7\ns 4 6",
    "N": "t:int v:int\n1 NULL\n2 4\n3 NULL\n4 6\n5 NULL",
}


@dataclass(frozen=True)
class WindowCase:
    name: str
    item: dict[str, Any]
    own_tables: dict[str, pa.Table]

    @property
    def sql(self) -> str:
        return self.item["sql"]

    @property
    def tables(self) -> dict[str, pa.Table]:
        return {**TABLES, **self.own_tables}

    @property
    def as_rows(self) -> RowCase:
        """What it expects, as the cases of row patterns say it."""
        return RowCase(self.name, self.item, pa.table({}))


def load_windows(place: str, errors: bool = False, leaving_out: Sequence[str] = ()) -> list[WindowCase]:
    """The cases that are for the place, `process` or `spark`."""
    paths = sorted(path for path in PLACES.glob("*.toml") if (path.name == "errors.toml") == errors)
    wanted = [path for path in paths if path.name not in leaving_out]
    items = [item for path in wanted for item in tomllib.loads(path.read_text(encoding="utf-8"))["case"]]
    return [_case(item) for item in items if item.get("only", place) == place]


def _case(item: dict[str, Any]) -> WindowCase:
    return WindowCase(item["name"], item, {name: _table(text) for name, text in item.get("tables", {}).items()})


def _table(text: str) -> pa.Table:
    columns, *rows = (line for line in text.splitlines() if line.strip())
    return read_table(columns, "\n".join(rows), bare=True)


TABLES = {name: _table(text) for name, text in _TEXTS.items()}
"""Those that every case may use."""

"""Reads the row-pattern and regular-expression cases, and compares results as multisets of rows."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import kleene
from case_files import FOLDER, near, read_table, shown_value


@dataclass(frozen=True)
class RowCase:
    name: str
    item: dict[str, Any]
    table: pa.Table

    @property
    def error(self) -> dict[str, Any]:
        return self.item


def load_rows(folder: str, errors: bool = False) -> list[RowCase]:
    paths = sorted(path for path in (FOLDER / folder).glob("*.toml") if (path.name == "errors.toml") == errors)
    return [_case(item) for path in paths for item in _items(path)]


def _items(path: Path) -> list[dict[str, Any]]:
    return tomllib.loads(path.read_text(encoding="utf-8"))["case"]


def _case(item: dict[str, Any]) -> RowCase:
    return RowCase(
        item["name"], item, read_table(item.get("columns", "id:string t:int x:int"), item.get("events", ""), bare=True)
    )


def regex_of(case: RowCase) -> kleene.Query:
    item = case.item
    return kleene.regex(
        pattern=item["pattern"],
        partition_by=item.get("partition_by", []),
        order_by=item.get("order_by", "t"),
        predicates=item.get("predicates", {}),
        output=item["output"],
    )


def expected_rows(case: RowCase) -> tuple[list[str], list[list[str]]]:
    header, *lines = (line for line in case.item["result"].splitlines() if line.strip())
    return header.split(), [_fields(line) for line in lines]


def _fields(line: str) -> list[str]:
    """The fields of a line, split at blanks outside of quotes; the quotes of a whole field are taken off."""
    import shlex

    lexer = shlex.shlex(line, posix=False)
    lexer.whitespace_split = True
    lexer.quotes = "'"
    lexer.commenters = ""
    return [field[1:-1] if field.startswith("'") else field for field in lexer]


def check_rows(case: RowCase, found: pa.Table) -> None:
    names, rows = expected_rows(case)
    assert found.column_names == names
    shown = [[written(value) for value in row.values()] for row in found.to_pylist()]
    assert sorted(shown) == sorted([normal(field) for field in row] for row in rows)


def written(value: Any) -> str:
    """A value as the case files write it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(written(item) for item in value) + "]"
    return normal(str(near(shown_value(value))))


def normal(field: str) -> str:
    """Numbers in one spelling: 2 and 2.0 are told apart by the column's type elsewhere."""
    if field.startswith("["):
        return "[" + ",".join(normal(item) for item in field[1:-1].split(",") if item) + "]"
    try:
        number = float(field)
    except ValueError:
        return field
    exact = "." not in field and len(field) > 15
    return field if number != number or exact else repr(round(number, 9))

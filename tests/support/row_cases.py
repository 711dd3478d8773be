"""Reads the row-pattern and regular-expression cases, and compares results as multisets of rows."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import kleene
from case_files import FOLDER, functions_of, near, read_params, read_table, shown_value


@dataclass(frozen=True)
class RowCase:
    name: str
    item: dict[str, Any]
    table: pa.Table

    @property
    def error(self) -> dict[str, Any]:
        return self.item


def load_rows(folder: str, errors: bool = False, where: str | None = "process") -> list[RowCase]:
    """The cases of a folder, or its errors, that hold in process or on Spark (`where`), or in either (None)."""
    paths = sorted(path for path in (FOLDER / folder).glob("*.toml") if path.name.startswith("errors") == errors)
    cases = [row_case_of(item) for path in paths for item in _items(path)]
    return [case for case in cases if where is None or case.item.get("only", where) == where]


def _items(path: Path) -> list[dict[str, Any]]:
    return tomllib.loads(path.read_text(encoding="utf-8"))["case"]


def row_case_of(item: dict[str, Any]) -> RowCase:
    return RowCase(
        item["name"], item, read_table(item.get("columns", "id:string t:int x:int"), item.get("events", ""), bare=True)
    )


def params_of(case: RowCase) -> dict[str, Any]:
    """The argument `params` of the call, where the case gives values."""
    return {"params": read_params(case.item["params"])} if "params" in case.item else {}


def regex_of(case: RowCase) -> kleene.Query:
    item = case.item
    return kleene.regex(
        pattern=item["pattern"],
        partition_by=item.get("partition_by", []),
        order_by=item.get("order_by", "t"),
        predicates=item.get("predicates", {}),
        output=item["output"],
        functions=functions_of(item.get("functions", ())),
    )


def clause_of(case: RowCase) -> kleene.Query:
    return kleene.match_recognize(case.item["clause"], functions=functions_of(case.item.get("functions", ())))


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
    assert sorted(shown_rows(found)) == sorted([normal(field) for field in row] for row in rows)


def shown_rows(found: pa.Table) -> list[list[str]]:
    """The rows of a table as the case files write them; by position, since a name may stand twice."""
    columns = [[written(value, column.type) for value in column.to_pylist()] for column in found.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def written(value: Any, type_: pa.DataType) -> str:
    """A value as the case files write it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if pa.types.is_map(type_):
        entries = dict(value).items()
        return _braced((written(key, type_.key_type), written(item, type_.item_type)) for key, item in entries)
    if pa.types.is_struct(type_):
        return _braced((field.name, written(value[field.name], field.type)) for field in type_)
    if isinstance(value, list):
        return "[" + ",".join(written(item, type_.value_type) for item in value) + "]"
    return normal(str(near(shown_value(value))))


def _braced(entries: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{name}:{value}" for name, value in entries) + "}"


def normal(field: str) -> str:
    """Numbers in one spelling: 2 and 2.0 are told apart by the column's type elsewhere."""
    if field.startswith("[") and field.endswith("]"):
        return "[" + ",".join(normal(item) for item in _parts(field[1:-1])) + "]"
    if field.startswith("{") and field.endswith("}"):
        entries = (item.partition(":") for item in _parts(field[1:-1]))
        return _braced((normal(name), normal(value)) for name, _, value in entries)
    try:
        number = float(field)
    except ValueError:
        return field
    exact = "." not in field and len(field) > 15
    return field if number != number or exact else repr(round(number, 9))


def _parts(text: str) -> list[str]:
    """The parts between the commas that stand outside of brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "[{") - (sign in "]}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part for part in parts if part]

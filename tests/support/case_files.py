"""Reads the matching cases of tests/cases, and compares what an engine found with what they expect."""

from __future__ import annotations

import datetime as dt
import importlib
import re
import shlex
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import kleene
from flat_options import arguments

FOLDER = Path(__file__).parent.parent / "cases"
NUMBER = "n"
APART = ("composition_errors.toml", "errors.toml", "timeouts.toml")
"""Cases that have runners of their own."""


@dataclass(frozen=True)
class Case:
    name: str
    query: str
    inputs: dict[str, pa.Table] | pa.Table
    options: dict[str, Any]
    matches: tuple[str, ...] | None
    rows: tuple[dict[str, Any], ...] | None
    result: str | None
    error: dict[str, Any] | None = None
    has_streams: bool = False  # whether inputs have names of streams, and not of event types
    functions: tuple[str, ...] = ()

    @property
    def is_program(self) -> bool:
        reads_several = re.match(r"\s*FROM\s+[^\s,]+\s*,", self.query, re.IGNORECASE) is not None
        return self.has_streams or reads_several or ";" in self.query.strip().rstrip(";")


def load(file_name: str) -> list[Case]:
    text = (FOLDER / file_name).read_text(encoding="utf-8")
    return [case_of(item) for item in tomllib.loads(text)["case"]]


def load_all() -> list[Case]:
    names = sorted(path.name for path in FOLDER.glob("*.toml") if path.name not in APART)
    return [case for name in names for case in load(name)]


def case_of(item: dict[str, Any]) -> Case:
    order_by = item.get("order_by", "t")
    type_column = item.get("type_column", "type") or None
    options = {"order_by": order_by, "type_column": type_column, "format": item.get("format", "all")}
    if item.get("timeouts"):
        options["timeouts"] = True
    if "params" in item:
        options["params"] = read_params(item["params"])
    if "schema" in item:
        # That of an error may be wrong, which is to be seen when the case runs.
        options["schema"] = item["schema"] if "error" in item else kleene.Schema(item["schema"])
    is_error = "error" in item
    has_streams = False
    if "inputs" in item:
        inputs: Any = {}
        counted = 0
        for part in item["inputs"]:
            has_streams = has_streams or "stream" in part
            name = part["stream"] if "stream" in part else part["type"]
            inputs[name] = read_table(part["columns"], part.get("events", ""), counted, is_error)
            counted += inputs[name].num_rows
    else:
        inputs = read_table(item.get("columns", "type:string t:int"), item.get("events", ""), 0, is_error)
    if not is_error:
        options["tie_break"] = [NUMBER]
    return Case(
        item["name"],
        item["query"],
        inputs,
        options,
        tuple(item["matches"]) if "matches" in item else None,
        tuple(item["rows"]) if "rows" in item else None,
        item.get("result"),
        {key: item[key] for key in ("error", "line", "column", "says") if key in item} if is_error else None,
        has_streams,
        tuple(item.get("functions", ())),
    )


def functions_of(names: Iterable[str]) -> list[Any]:
    """The functions and aggregates that a case may call, by their names in tests/support/case_functions.py.

    Aggregates and vectorized functions are written there without anything of kleene's.
    """
    return [_function_of(name, importlib.import_module("case_functions")) for name in names]


def _function_of(name: str, module: Any) -> Any:
    match module.SPECIFICATIONS.get(name):
        case ("aggregate", start, step, finish):
            return kleene.aggregate(name, start, step, finish)
        case ("function", function, options):
            return kleene.function(function, name, **options)
    return getattr(module, name)


def read_params(given: dict[str, Any]) -> dict[str, Any]:
    """Values of parameters; what TOML has no value for is written as a table with one entry."""
    return {name: _param(value) for name, value in given.items()}


def _param(value: Any) -> Any:
    match value:
        case {"decimal": text}:
            return Decimal(text)
        case {"microseconds": number}:
            return dt.timedelta(microseconds=number)
        case {"null": True}:
            return None
    return value


def read_table(columns: str, events: str, counted: int = 0, bare: bool = False) -> pa.Table:
    names, types = zip(*(column.rsplit(":", 1) for column in columns.split()), strict=True)
    rows = [_fields(line) for line in events.splitlines() if line.strip()]
    for row in rows:
        assert len(row) == len(names), f"{row} does not fit {names}"
    arrays = [
        pa.array([_value(row[number], type_) for row in rows], arrow_type(type_)) for number, type_ in enumerate(types)
    ]
    table = pa.table(arrays, names=list(names))
    return (
        table
        if bare
        else table.append_column(NUMBER, pa.array(range(counted + 1, counted + 1 + len(rows)), pa.int64()))
    )


def _fields(line: str) -> list[str | None]:
    """The fields of a line; NULL without quotes is NULL, with quotes it is a word."""
    lexer = shlex.shlex(line, posix=False)
    lexer.whitespace_split = True
    lexer.quotes = "'"
    lexer.commenters = ""
    return [None if field == "NULL" else field[1:-1] if field.startswith("'") else field for field in lexer]


def arrow_type(name: str) -> pa.DataType:
    if name.startswith("decimal"):
        precision, scale = name[len("decimal(") : -1].split(",")
        return (pa.decimal128 if int(precision) <= 38 else pa.decimal256)(int(precision), int(scale))
    return {
        "int": pa.int64(),
        "float": pa.float64(),
        "string": pa.string(),
        "bool": pa.bool_(),
        "timestamp": pa.timestamp("us"),
        "date": pa.date32(),
        "duration": pa.duration("us"),
    }[name]


def _value(field: str | None, type_: str) -> Any:
    if field is None:
        return None
    match type_:
        case "int" | "duration":
            return int(field)
        case "float":
            return float(field)
        case "bool":
            return {"true": True, "false": False}[field]
        case "timestamp":
            return dt.datetime.fromisoformat(field)
        case "date":
            return dt.date.fromisoformat(field)
        case "string":
            return field
    return Decimal(field)


def run_case(case: Case, **options: Any) -> pa.Table:
    """What an engine finds on Arrow tables."""
    options = arguments(case.options | options)
    if isinstance(options.get("schema"), dict):
        options["schema"] = kleene.Schema(options["schema"])
    if case.is_program:
        results = kleene.program(case.query, functions=functions_of(case.functions)).match(case.inputs, **options)
        return results[case.result] if case.result else list(results.values())[-1]
    return kleene.sase(case.query, functions=functions_of(case.functions)).match(case.inputs, **options)


def check(case: Case, columns: list[str], rows: list[dict[str, Any]]) -> None:
    """The rows are those that the case expects, in its order."""
    if case.rows is None:
        assert shown_matches(rows, columns) == list(case.matches)
    else:
        shown = [{name: shown_value(value) for name, value in row.items()} for row in rows]
        assert near(shown) == near(case.rows)


def check_rows_of_any_order(case: Case, rows: list[dict[str, Any]]) -> None:
    shown = [{name: shown_value(value) for name, value in row.items()} for row in rows]
    assert sorted(map(repr, near(shown))) == sorted(map(repr, near(case.rows)))


def near(value: Any) -> Any:
    """Floats rounded to the digits that a case can write, and NaN made equal to itself."""
    if isinstance(value, dict):
        return {name: near(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [near(item) for item in value]
    if isinstance(value, float):
        return "NaN" if value != value else round(value, 9)
    return value


def shown_matches(rows: list[dict[str, Any]], query_columns: list[str]) -> list[str]:
    """Rows without RETURN as the case files write them: a=1 b=3,4."""
    shown = []
    for row in rows:
        parts = []
        for name in query_columns:
            value = row[name]
            if isinstance(value, dict):
                parts.append(f"{name}={value[NUMBER]}")
            elif isinstance(value, list):
                parts.append(f"{name}={','.join(str(event[NUMBER]) for event in value)}")
        shown.append(" ".join(parts))
    return shown


def shown_value(value: Any) -> Any:
    """A value of RETURN as the case files write it."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return [shown_value(item) for item in value]
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    if isinstance(value, dt.datetime | dt.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value

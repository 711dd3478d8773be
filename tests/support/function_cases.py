"""Reads the cases that call functions of one's own, in all three languages: a case to a query and its events."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import kleene
from case_files import FOLDER, Case, case_of, check, functions_of
from row_cases import RowCase, check_rows, clause_of, params_of, regex_of, row_case_of


@dataclass(frozen=True)
class FunctionCase:
    name: str
    item: dict[str, Any]

    @property
    def is_sase(self) -> bool:
        return "query" in self.item

    @property
    def sase(self) -> Case:
        return case_of(self.item)

    @property
    def rows(self) -> RowCase:
        return row_case_of(self.item)

    def query(self) -> kleene.Query:
        if self.is_sase:
            return kleene.sase(self.sase.query, functions=functions_of(self.sase.functions))
        return clause_of(self.rows) if "clause" in self.item else regex_of(self.rows)

    @property
    def events(self) -> Any:
        return self.sase.inputs if self.is_sase else self.rows.table

    @property
    def options(self) -> dict[str, Any]:
        return self.sase.options if self.is_sase else params_of(self.rows)

    def check(self, found: pa.Table) -> None:
        if self.is_sase:
            check(self.sase, found.column_names, found.to_pylist())
        else:
            check_rows(self.rows, found)


def load_functions(errors: bool) -> list[FunctionCase]:
    paths = sorted((FOLDER / "functions").glob("*.toml"))
    items = [item for path in paths for item in tomllib.loads(path.read_text(encoding="utf-8"))["case"]]
    return [FunctionCase(item["name"], item) for item in items if ("error" in item) is errors]


def is_program(case: FunctionCase) -> bool:
    return case.is_sase and case.sase.is_program


def by_name(case: FunctionCase) -> str:
    return case.name

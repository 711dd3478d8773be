from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import kleene
from kleene.found import Found

THEFT = "EVENT SEQ(Shelf a, !(Register r), Exit b)\nWHERE [tag] WITHIN 12"
FALLS = "ORDER BY t MEASURES A.t AS begun PATTERN (A B+) DEFINE B AS B.tag < PREV(B.tag)"


@pytest.fixture
def shell() -> Iterator[Any]:
    shell = InteractiveShell()
    shell.extension_manager.load_extension("kleene")
    shell.user_ns["readings"] = pa.table(
        {"type": ["Shelf", "Shelf", "Register", "Exit", "Exit"], "t": [1, 2, 3, 4, 5], "tag": [7, 9, 7, 7, 9]}
    )
    yield shell
    InteractiveShell.clear_instance()


def test_a_query_in_a_cell(shell):
    found = shell.run_cell_magic("kleene", "readings --order-by t", THEFT)
    assert isinstance(found, Found)
    assert [row["b"]["tag"] for row in found.table.to_pylist()] == [9]
    assert "<table" in found._repr_html_()


def test_a_clause_in_a_cell(shell):
    found = shell.run_cell_magic("kleene", "readings", FALLS)
    assert found.table.to_pylist() == [{"begun": 2}]


def test_a_sql_query_finds_its_tables(shell):
    shell.user_ns["tag"] = "not a table"
    found = shell.run_cell_magic("kleene", "", f"SELECT begun + 1 AS n FROM readings MATCH_RECOGNIZE ({FALLS})")
    assert isinstance(found, pd.DataFrame)
    assert found["n"].to_list() == [3]


def test_the_result_is_kept(shell):
    shell.run_cell_magic("kleene", "readings -b t --into thefts", THEFT)
    assert len(shell.user_ns["thefts"]) == 1


def test_values_and_functions_come_from_variables(shell):
    shell.user_ns |= {"values": {"least": 8}, "own": {"twice": lambda x: 2 * x}}
    text = "EVENT SEQ(Shelf a, Exit b) WHERE [tag] AND a.tag > :least AND twice(a.tag) = 18"
    found = shell.run_cell_magic("kleene", "readings -b t --params values --functions own", text)
    assert len(found) == 1


def test_an_error_shows_where_it_is_without_a_traceback(shell):
    with pytest.raises(UsageError, match=r"line 2, column 13[\s\S]*\^"):
        shell.run_cell_magic("kleene", "readings -b t", "EVENT SEQ(Shelf a, Exit b)\nWHERE a.x < c.x")


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        ("readins -b t", THEFT, "has no such variable\nVariables that hold events: readings"),
        ("", THEFT, "does not say where the events are"),
        ("readings -b t --into 1x", THEFT, "'1x' is none"),
        ("__import__('os') -b t", THEFT, "has no such variable"),
        ("", f"SELECT * FROM nowhere MATCH_RECOGNIZE ({FALLS})", "nowhere"),
        ("readings -b", THEFT, "expected one argument"),
    ],
)
def test_errors_name_the_way_out(shell, line, text, said):
    with pytest.raises(UsageError) as caught:
        shell.run_cell_magic("kleene", line, text)
    assert said in str(caught.value)


def test_a_scan_comes_back_as_a_table(shell, tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(shell.user_ns["readings"], tmp_path / "a.parquet")
    shell.user_ns["files"] = kleene.scan(str(tmp_path / "*.parquet"))
    assert shell.run_cell_magic("kleene", "files -b t", THEFT).num_rows == 1

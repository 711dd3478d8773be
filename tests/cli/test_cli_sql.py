"""`kleene sql`: a text over files, here and on Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from kleene.cli import app

TRADES = pa.table({"symbol": ["x"] * 4 + ["y"] * 4, "t": [1, 2, 3, 4] * 2, "price": [10, 8, 7, 9, 5, 4, 6, 1]})
FALLS = """SELECT symbol, top, bottom FROM trades MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY t MEASURES A.price AS top, LAST(B.price) AS bottom
    PATTERN (A B+) DEFINE B AS B.price < PREV(B.price)) ORDER BY symbol, top"""
FOUND = [
    {"symbol": "x", "top": 10, "bottom": 7},
    {"symbol": "y", "top": 5, "bottom": 4},
    {"symbol": "y", "top": 6, "bottom": 1},
]
TABLE = ("--table", "trades=trades.parquet")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    pq.write_table(TRADES, "trades.parquet")
    Path("names.csv").write_text("symbol;name\nx;Xylo\ny;NA\n")
    Path("falls.sql").write_text(FALLS)
    return tmp_path


def sql(*arguments: str, input: str | None = None):
    return CliRunner().invoke(app, ["sql", *arguments], input=input)


def lines(result) -> list[dict]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_text_file_and_standard_input() -> None:
    for found in (sql(FALLS, *TABLE), sql("falls.sql", *TABLE), sql("-", *TABLE, input=FALLS)):
        assert lines(found) == FOUND
        assert "3 rows" in found.stderr


def test_table_for_a_person() -> None:
    found = sql(FALLS, *TABLE, "--show", "table", "--limit", "1")
    assert found.exit_code == 0
    assert "symbol" in found.stdout
    assert "3 rows, the first 1 shown" in found.stdout
    assert "1 row" in sql("SELECT 1 AS a", "--show", "table").stdout


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_output(ending: str) -> None:
    found = sql("falls.sql", *TABLE, "-o", f"out.{ending}")
    assert found.exit_code == 0, found.stderr
    back = sql("SELECT * FROM a ORDER BY symbol, top", "-t", f"a=out.{ending}")
    assert lines(back) == FOUND
    again = sql("falls.sql", *TABLE, "-o", f"out.{ending}")
    assert again.exit_code == 4
    assert "exists" in again.stderr
    assert sql("falls.sql", *TABLE, "-o", f"out.{ending}", "--overwrite").exit_code == 0


def test_output_may_not_be_a_table_or_the_text() -> None:
    assert sql("falls.sql", *TABLE, "-o", "trades.parquet", "--overwrite").exit_code == 4
    Path("out.csv").symlink_to("falls.sql")
    assert sql("falls.sql", *TABLE, "-o", "out.csv", "--overwrite").exit_code == 4


def test_forms_of_files() -> None:
    text = "SELECT t.symbol, name, count(*) AS n FROM trades t JOIN names USING (symbol) GROUP BY 1, 2 ORDER BY 1"
    found = sql(text, *TABLE, "-t", "Names=names.csv", "--delimiter", ";", "--null", "NA")
    assert lines(found) == [{"symbol": "x", "name": "Xylo", "n": 4}, {"symbol": "y", "name": None, "n": 4}]
    Path("a.csv").write_text("id,n\n1,01\n")
    Path("b.csv").write_text("id\n1\n")
    found = sql("SELECT n FROM a JOIN b ON a.id = b.id", "-t", "a=a.csv", "-t", "b=b.csv", "--cast", "a.n=string")
    assert lines(found) == [{"n": "01"}]
    found = sql("SELECT * FROM a", "-t", "a=-", input="n\n1\n2\n")
    assert lines(found) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["SELECT * FROM trade", *TABLE], 3, "there is no table 'trade'"),
        (["SELECT prize FROM trades", *TABLE], 3, '"prize" not found'),
        (["SELECT (", *TABLE], 3, "not SQL here"),
        (["nothing.sql", *TABLE], 4, "cannot read the query file 'nothing.sql'"),
        ([FALLS, "-t", "trades"], 4, "does not say the name of a table"),
        ([FALLS, "-t", "trades=a.parquet"], 4, "there is no file or folder 'a.parquet'"),
        ([FALLS, *TABLE, "-t", "TRADES=trades.parquet"], 4, "is given twice"),
        (["SELECT price / 0 FROM trades", *TABLE], 5, "division by zero"),
        (["DROP TABLE trades", *TABLE], 5, "one SELECT"),
        (["SELECT * FROM read_csv('names.csv')"], 5, "the function 'read_csv' is not known"),
        (["SELECT * FROM `names.csv`"], 3, "there is no table 'names.csv'"),
        ([FALLS, *TABLE, "--show", "xml"], 2, "table or json"),
        (["SELECT 1 AS a WHERE false", "--fail-if-none"], 1, "0 rows"),
    ],
)
def test_errors_and_exit_codes(arguments: list[str], code: int, words: str) -> None:
    found = sql(*arguments)
    assert found.exit_code == code, found.stderr
    assert words in found.stderr + found.stdout
    assert "Traceback" not in found.stderr


def test_on_spark(spark, monkeypatch) -> None:
    monkeypatch.setattr(spark, "stop", lambda: None)  # the session of all tests goes on
    assert lines(sql("falls.sql", *TABLE, "--spark")) == FOUND
    text = "SELECT soundex(name) AS s FROM `my names` ORDER BY symbol LIMIT 1"
    assert lines(sql(text, "-t", "my names=names.csv", "--delimiter", ";", "--spark")) == [{"s": "X400"}]
    assert sql("falls.sql", *TABLE, "--spark", "-o", "out.parquet").exit_code == 0
    assert pq.read_table("out.parquet").num_rows == 3
    wrong = sql("SELECT prize FROM trades", *TABLE, "--spark")
    assert wrong.exit_code == 3
    assert "Spark refuses the text" in wrong.stderr
    assert "JVM" not in wrong.stderr

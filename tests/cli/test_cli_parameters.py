"""--param: values for the parameters of a query, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kleene.cli.console import ExitCode
from kleene.cli.verbs import app

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "e.csv").write_text("type,t,x,zip\nA,1,5,007\nB,2,6,08\nA,3,9,007\n")
    (tmp_path / "q.sase").write_text("EVENT A a WHERE a.zip = :zip AND a.x > :least RETURN a.t AS t")
    return tmp_path


def run(folder: Path, *words: str) -> tuple[int, str, str]:
    found = RUNNER.invoke(app, [word.replace("@", f"{folder}/") for word in words])
    return found.exit_code, found.stdout, found.stderr


MATCH = ("match", "@q.sase", "-i", "@e.csv", "-b", "t", "--schema", "zip string")


def test_match_takes_values_of_the_types_of_their_use(folder: Path) -> None:
    code, out, _ = run(folder, *MATCH, "--param", "zip=007", "--param", "least=5")
    assert (code, [json.loads(line) for line in out.splitlines()]) == (0, [{"t": 3}])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--param", "zip=007"), "the parameter ':least' has no value"),
        (("--param", "zip=007", "--param", "least=x"), "':least' is a string, beside integer"),
        (("--param", "zip=007", "--param", "least=1", "--param", "lest=1"), "Did you mean 'least'?"),
        (("--param", "zip"), "Write NAME=VALUE"),
        (("--param", "zip=1", "--param", "zip=2"), "is given twice"),
    ],
)
def test_match_says_what_is_wrong_with_a_value(folder: Path, words: tuple[str, ...], says: str) -> None:
    code, _, told = run(folder, *MATCH, *words)
    assert code == ExitCode.QUERY_WRONG, told
    assert says in told.replace("\n", " ")


def test_check_and_explain_take_values(folder: Path) -> None:
    schema = ("check", "@q.sase", "--schema", "type string, t int, x int, zip string")
    assert run(folder, *schema)[0] == 0
    assert run(folder, *schema, "--param", "zip=007", "--param", "least=5")[0] == 0
    assert run(folder, *schema, "--param", "zip=007", "--param", "least=x")[0] == ExitCode.QUERY_WRONG
    code, out, _ = run(folder, "explain", "@q.sase", "--param", "zip=u", "--param", "least=5")
    assert code == 0
    assert "a.x > 5" in out


def test_sql_takes_values_in_clauses_and_around_them(folder: Path) -> None:
    pytest.importorskip("duckdb")
    text = """SELECT * FROM e MATCH_RECOGNIZE (ORDER BY t MEASURES A.t AS a PATTERN (A) DEFINE A AS A.x > :least)
              WHERE a < :most"""
    code, out, _ = run(folder, "sql", text, "-t", "e=@e.csv", "--param", "least=5", "--param", "most=3")
    assert (code, json.loads(out)) == (0, {"a": 2})

"""`kleene why`, as a person meets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kleene.cli import app

QUERY = "EVENT SEQ(Shelf a, Exit b) WHERE [tag] AND b.weight < a.weight WITHIN 10\n"
EVENTS = "type,t,tag,weight\nShelf,1,7,5\nExit,5,7,6\nExit,50,8,6\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("theft.sase").write_text(QUERY)
    Path("readings.csv").write_text(EVENTS)


def why(*arguments: str, query: str = "theft.sase"):
    return CliRunner().invoke(app, ["why", query, "-i", "readings.csv", "-b", "t", *arguments])


def test_a_condition_chooses_the_runs_that_are_told() -> None:
    result = why("--where", "tag = 7")
    assert result.exit_code == 0, result.stderr
    refused = "row 1 Exit at 5 is not b: b.weight < a.weight is FALSE (b.weight = 6, a.weight = 5)"
    assert refused in result.stdout.partition("runs, step by step")[2]
    assert why("--row", "0").stdout == result.stdout
    assert "runs, step by step" not in why().stdout


def test_wrong_conditions_and_rows_are_errors_with_a_way_out() -> None:
    unknown = why("--where", "tagg = 7")
    assert unknown.exit_code == 3
    assert "Did you mean 'tag'?" in unknown.stderr
    assert why("--row", "9").exit_code == 4
    assert why("--row", "1", "--where", "tag = 7").exit_code == 2


def test_a_program_is_refused() -> None:
    Path("two.sase").write_text(QUERY + ";\n" + QUERY)
    result = why(query="two.sase")
    assert result.exit_code == 5
    assert "why is about one query" in result.stderr

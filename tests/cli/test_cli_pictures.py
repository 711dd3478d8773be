"""`kleene plot` and `kleene report`, as a person meets them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kleene.cli import app
from pictured import groups, texts

QUERY = "EVENT SEQ(Shelf a, Exit b) WHERE [tag] AND b.weight < :most WITHIN 10\n"
EVENTS = "type,t,tag,weight\nShelf,1,7,5\nExit,5,7,6\nShelf,40,8,6\nExit,50,8,6\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("theft.sase").write_text(QUERY)
    Path("readings.csv").write_text(EVENTS)


def run(verb: str, *arguments: str, query: str = "theft.sase"):
    given = [verb, query, "-i", "readings.csv", "-b", "t", "--param", "most=9", *arguments]
    return CliRunner().invoke(app, given)


def test_the_ending_says_what_is_written() -> None:
    for name, first in (("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("a.html", b"<!DOCTYPE")):
        result = run("plot", "-o", name)
        assert result.exit_code == 0, result.stderr
        assert Path(name).read_bytes().startswith(first)
        assert result.stderr.strip() == "1 match among 4 events in 2 keys"
        assert result.stdout == ""
    assert groups(Path("a.svg").read_text())["match"] == 1


def test_kind_size_theme_and_attribute_are_options() -> None:
    result = run("plot", "-o", "v.svg", "--kind", "values", "--y", "weight", "--theme", "dark", "--width", "500")
    assert result.exit_code == 0, result.stderr
    svg = Path("v.svg").read_text()
    assert groups(svg)["panel"] == 2
    assert 'width="375pt"' in svg
    assert "#0d1117" in svg


def test_files_that_exist_stay_unless_told_otherwise() -> None:
    Path("a.svg").write_text("mine")
    result = run("plot", "-o", "a.svg")
    assert result.exit_code == 4
    assert "exists" in result.stderr
    assert Path("a.svg").read_text() == "mine"
    assert run("plot", "-o", "a.svg", "--overwrite").exit_code == 0
    assert run("plot", "-o", "readings.csv", "--overwrite").exit_code == 5
    assert run("report", "-o", "readings.csv", "--overwrite").exit_code == 4
    assert Path("readings.csv").read_text() == EVENTS


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["-o", "a.pdf"], 5, "it ends in .svg, .png or .html"),
        (["-o", "a.svg", "--kind", "pie"], 5, "kind cannot be 'pie'"),
        (["-o", "a.svg", "--kind", "values"], 4, "needs the attribute to draw"),
        (["-o", "a.svg", "--height", "300"], 2, "a height needs a width"),
        (["-o", "no/such\x1b[31m/\x00.svg"], None, ""),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], code: int | None, says: str) -> None:
    result = run("plot", *arguments)
    assert result.exit_code != 0
    assert code is None or result.exit_code == code
    assert says in result.stderr
    assert "\x1b[31m" not in result.stderr


def test_a_report_is_one_page() -> None:
    result = run("report", "-o", "r.html", "--y", "weight")
    assert result.exit_code == 0, result.stderr
    page = Path("r.html").read_text()
    assert "<h1>theft.sase</h1>" in page
    assert "<dt>matches</dt><dd>1</dd>" in page
    assert 'id="values"' in page
    assert "the report is in r.html" in result.stderr
    assert run("report", "-o", "r.pdf").exit_code == 5


def test_a_program_is_refused() -> None:
    Path("two.sase").write_text("EVENT A a;\nEVENT B b")
    for verb, what in (("plot", "a picture"), ("report", "a report")):
        result = CliRunner().invoke(app, [verb, "two.sase", "-i", "readings.csv", "-b", "t", "-o", "x.html"])
        assert result.exit_code == 5
        assert f"{what} is about one query" in result.stderr


def test_row_patterns_need_no_order() -> None:
    Path("falls.sql").write_text("ORDER BY t MEASURES A.t AS a PATTERN (A B) DEFINE B AS B.weight < 9")
    result = CliRunner().invoke(app, ["plot", "falls.sql", "-i", "readings.csv", "-o", "f.svg"])
    assert result.exit_code == 0, result.stderr
    assert {"A", "B"} <= set(texts(Path("f.svg").read_text()))

"""The command line in pipes: standard input and output, every language, and what a terminal is shown."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from kleene.cli import app, matching
from kleene.cli.console import ExitCode

EVENTS = pa.table({"type": ["A", "B", "A", "B"], "t": [1, 2, 3, 4], "x": [10, 8, 7, 9]})
LINES = "".join(json.dumps(row) + "\n" for row in EVENTS.to_pylist())
CSV = "type;t;x\nA;1;10\nB;2;NA\nA;3;7\nB;4;9\n"
SASE = "EVENT SEQ(A a, B b) RETURN a.x AS a, b.x AS b"
SQL = "ORDER BY t MEASURES A.x AS top, LAST(B.x) AS bottom PATTERN (A B+) DEFINE B AS B.x < PREV(B.x)"
REGEX = """
pattern = ". fall+"
order_by = "t"
predicates = { fall = "x < Last(x)" }
output = { bottom = "Min(x)" }
"""
DOCS = Path(__file__).parents[2] / "docs" / "command_line.md"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(EVENTS, "events.parquet")
    for name, text in {"q.sase": SASE, "q.sql": SQL, "q.regex": REGEX, "events.csv": CSV}.items():
        Path(name).write_text(text)
    return tmp_path


def kleene(*arguments: str, input: str | bytes | None = None):
    return CliRunner().invoke(app, list(arguments), input=input)


def rows(result) -> list[dict]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("given", [LINES, EVENTS.to_pandas().to_csv(index=False), Path("events.parquet")], ids=str)
def test_events_come_by_standard_input_in_any_format(given):
    given = given.read_bytes() if isinstance(given, Path) else given
    found = rows(kleene("match", "q.sase", "-i", "-", "-b", "t", input=given))
    assert found == [{"a": 10, "b": 8}, {"a": 10, "b": 9}, {"a": 7, "b": 9}]


def test_a_pipe_gets_every_row_as_json_and_nothing_else():
    wide = pa.table({"type": ["A"] * 40, "t": range(40)})
    pq.write_table(wide, "many.parquet")
    Path("one.sase").write_text("EVENT A a RETURN a.t AS t")
    assert [row["t"] for row in rows(kleene("match", "one.sase", "-i", "many.parquet", "-b", "t"))] == list(range(40))
    result = kleene("match", "one.sase", "-i", "many.parquet", "-b", "t", "--limit", "3", "-o", "-")
    assert len(rows(result)) == 3
    assert "40 matches, the first 3 shown" in result.stderr


def test_rows_of_several_queries_say_whose_they_are():
    Path("two.sase").write_text("EVENT A a RETURN a.t AS t INTO First; EVENT B b RETURN b.t AS t")
    found = rows(kleene("match", "two.sase", "-i", "events.parquet", "-b", "t"))
    assert found[0] == {"query": "First", "t": 1}
    assert found[-1] == {"query": "query_2", "t": 4}


@pytest.mark.parametrize(
    ("query", "order", "expected"),
    [
        ("q.sase", ["-b", "t"], {"a": 10, "b": 8}),
        ("q.sql", [], {"top": 10, "bottom": 7}),
        ("q.regex", [], {"bottom": 8}),
    ],
)
def test_every_language_is_matched_checked_and_explained(query, order, expected):
    assert rows(kleene("match", query, "-i", "events.parquet", *order))[0] == expected
    for verb in ("check", "explain"):
        result = kleene(verb, query, "-i", "events.parquet", *order)
        assert result.exit_code == 0, result.stderr
    named = kleene("match", "-", "--language", query[2:], "-i", "events.parquet", *order, input=Path(query).read_text())
    assert rows(named)[0] == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [("pattern =", "is not TOML"), ("pattern = 'a'", "has no 'order_by'"), (REGEX + "\nlimit = 3", "'limit'")],
)
def test_a_regex_file_that_is_wrong_is_told_of(text, words):
    Path("q.regex").write_text(text)
    result = kleene("match", "q.regex", "-i", "events.parquet")
    assert result.exit_code == 3
    assert words in result.stderr


def test_a_whole_sql_query_is_told_where_to_go():
    Path("q.sql").write_text(f"SELECT * FROM trades MATCH_RECOGNIZE ({SQL})")
    result = kleene("match", "q.sql", "-i", "events.parquet")
    assert "run the whole query with kleene sql" in result.stderr


def test_delimiter_null_and_types_are_told():
    csv = ("-i", "events.csv", "--delimiter", ";", "--null", "NA")
    assert rows(kleene("match", "q.sase", *csv, "-b", "t"))[0] == {"a": 10, "b": None}
    text = rows(kleene("match", "q.sase", *csv, "-b", "t", "--cast", "x=string"))
    assert text[1] == {"a": "10", "b": "9"}
    text = rows(kleene("match", "q.sase", *csv, "-b", "t", "--schema", "x float, type string"))
    assert str(text[1]["b"]) == "9.0"
    wrong = kleene("match", "q.sase", *csv, "-b", "t", "--cast", "type=integer")
    assert wrong.exit_code == 4
    assert "has 'A', which is not of type int64" in wrong.stderr
    missing = kleene("match", "q.sase", *csv, "-b", "t", "--cast", "y=integer")
    assert "has no column 'y'" in missing.stderr


def test_parquet_is_converted_too():
    found = rows(kleene("match", "q.sase", "-i", "events.parquet", "-b", "t", "--cast", "x=string"))
    assert found[0] == {"a": "10", "b": "8"}


def test_a_sase_query_without_an_order_is_a_wrong_use():
    result = kleene("match", "q.sase", "-i", "events.parquet")
    assert result.exit_code == 2
    assert "--order-by" in result.stderr


@pytest.mark.parametrize(
    ("size", "flags", "is_on_spark"),
    [
        (1_000, (False, False), False),
        (300 << 20, (False, False), True),
        (1_000, (True, False), True),
        (300 << 20, (False, True), False),
    ],
)
def test_small_inputs_are_matched_here_and_large_ones_on_spark(size, flags, is_on_spark, monkeypatch):
    monkeypatch.setattr(matching, "size_of", lambda files: size)
    chosen, why = matching.choose_place(None, *flags)
    assert chosen is is_on_spark
    assert "MB" in why or "kB" in why


def test_a_table_shows_events_as_columns_and_fits_its_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    Path("whole.sase").write_text("EVENT SEQ(A a, B+ b[])")
    wide = EVENTS.append_column("note", pa.array(["a long text that goes on and on"] * 4))
    pq.write_table(wide, "wide.parquet")
    result = kleene("match", "whole.sase", "-i", "wide.parquet", "-b", "t", "--show", "table")
    assert result.exit_code == 0
    assert "a.t" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 60
    assert "more columns not shown" in result.stdout


def test_every_verb_has_examples_and_the_help_has_the_exit_codes():
    for verb in ("match", "stream", "check", "explain"):
        assert f"kleene {verb}" in kleene(verb, "--help").stdout.split("Examples")[1]
    shown = " ".join(kleene("--help").stdout.split())
    for code in ExitCode:
        assert f"{code.value} {code.meaning.split(':')[0].split(',')[0]}" in shown


def test_the_docs_have_the_same_exit_codes():
    table = re.findall(r"^\| (\d+) \| (.*?) \|$", DOCS.read_text(), re.MULTILINE)
    assert [(int(number), meaning) for number, meaning in table] == [(code.value, code.meaning) for code in ExitCode]


@pytest.mark.slow
def test_a_closed_pipe_is_not_a_missing_match():
    Path("one.sase").write_text("EVENT A a RETURN a.t AS t")
    pq.write_table(pa.table({"type": ["A"] * 200_000, "t": range(200_000)}), "many.parquet")
    command = f"set -o pipefail; {sys.executable} -m kleene match one.sase -i many.parquet -b t | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=os.environ)
    assert (done.stdout, done.returncode) == ('{"t": 0}\n', 141)

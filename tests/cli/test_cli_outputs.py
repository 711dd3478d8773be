"""What the command line writes and shows: nothing lost, nothing obeyed that stands in data."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from kleene.cli import app

EVIL = "\x1b[31m[red]x[/red]\u202e\x9b\x7f"
SHOWN = "\\x1b[31m[red]x[/red]\\u202e\\x9b\\x7f"
EVENTS = pa.table({"type": ["A", "B"], "t": [1, 2], "id": [EVIL, EVIL]})
QUERY = "EVENT SEQ(A a, B b) WHERE [id]"
PROGRAM = "EVENT A a INTO `{}`; EVENT B b INTO `{}`"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    pq.write_table(EVENTS, "events.parquet")
    Path("query.sase").write_text(QUERY)
    return tmp_path


def kleene(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def match(*arguments: str, source: str = "events.parquet", query: str = "query.sase"):
    return kleene("match", query, "--input", source, "--order-by", "t", "--in-process", "--show", "table", *arguments)


def in_shell(redirection: str, command: str = "match query.sase -i events.parquet -b t --in-process"):
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m kleene.cli {command} {redirection}"],
        capture_output=True,
        text=True,
        check=False,
    )


class TestNothingIsLost:
    @pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
    def test_full_disk_leaves_the_old_output(self, ending: str) -> None:
        Path(f"found.{ending}").write_text("old")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
        try:
            result = match("--output", f"found.{ending}", "--overwrite")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert result.exit_code == 5
        assert f"'found.{ending}' cannot be written: File too large" in result.stderr
        assert Path(f"found.{ending}").read_text() == "old"
        assert not list(Path().glob(".*"))

    @pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
    def test_full_device_is_a_sentence_and_not_no_match(self, ending: str) -> None:
        Path(f"full.{ending}").symlink_to("/dev/full")
        result = match("--output", f"full.{ending}", "--fail-if-none")
        assert result.exit_code == 5
        assert f"'full.{ending}' cannot be written: No space left on device" in result.stderr
        assert Path("/dev/full").is_char_device()

    @pytest.mark.parametrize("link", ["hard", "symbolic", "relative"])
    def test_output_that_is_the_input_under_another_name_is_refused(self, link: str) -> None:
        before = Path("events.parquet").read_bytes()
        target = "other.parquet"
        if link == "hard":
            os.link("events.parquet", target)
        elif link == "symbolic":
            Path(target).symlink_to("events.parquet")
        else:
            Path("sub").mkdir()
            target = "sub/../events.parquet"
        result = match("--output", target, "--overwrite")
        assert result.exit_code == 4
        assert "is an input" in result.stderr
        assert Path("events.parquet").read_bytes() == before

    def test_output_that_is_a_file_of_an_input_folder_is_refused(self) -> None:
        Path("many").mkdir()
        pq.write_table(EVENTS, "many/1.parquet")
        os.link("many/1.parquet", "other.parquet")
        result = match("--output", "other.parquet", "--overwrite", source="many")
        assert (result.exit_code, "is an input under another name" in result.stderr) == (4, True)

    def test_output_that_is_the_query_is_refused(self) -> None:
        Path("query.csv").write_text(QUERY)
        result = match("--output", "query.csv", "--overwrite", query="query.csv")
        assert (result.exit_code, "is the file of the query" in result.stderr) == (4, True)
        assert Path("query.csv").read_text() == QUERY

    def test_folder_with_other_things_is_not_replaced(self) -> None:
        Path("mine.csv").mkdir()
        Path("mine.csv/thesis.txt").write_text("years")
        result = match("--output", "mine.csv", "--overwrite")
        assert (result.exit_code, "that holds other things: 'thesis.txt'" in result.stderr) == (4, True)
        assert Path("mine.csv/thesis.txt").read_text() == "years"

    @pytest.mark.parametrize(
        ("target", "words"),
        [
            ("s3://bucket/found.csv", "writes to local files only"),
            ("query.sase/found.csv", "is not a folder"),
            ("/dev/full", "cannot tell the format of"),
            ("x" * 300 + ".csv", "cannot be written: File name too long"),
        ],
    )
    def test_places_that_cannot_be_written_are_told_before_the_work(self, target: str, words: str) -> None:
        result = match("--output", target)
        assert (result.exit_code, words in result.stderr) == (4, True), result.stderr

    @pytest.mark.slow
    def test_standard_output_that_is_full(self) -> None:
        result = in_shell("> /dev/full")
        assert result.returncode == 5
        assert result.stderr.splitlines() == ["error: standard output cannot be written: No space left on device"]

    @pytest.mark.slow
    @pytest.mark.parametrize("command", ["--help", "--version", "explain query.sase --svg"])
    def test_standard_output_that_is_full_whatever_is_said(self, command: str) -> None:
        result = in_shell("> /dev/full", command)
        assert (result.returncode, len(result.stderr.splitlines())) == (5, 1)

    def test_output_that_is_a_link_to_itself(self) -> None:
        Path("loop.csv").symlink_to("loop.csv")
        assert match("--output", "loop.csv").exit_code == 0

    @pytest.mark.slow
    def test_standard_error_that_is_full_changes_no_exit_code(self) -> None:
        Path("wrong.sase").write_text("EVENT")
        assert in_shell("2> /dev/full", "check wrong.sase").returncode == 3

    @pytest.mark.slow
    def test_reader_that_goes_away_ends_it_quietly(self) -> None:
        result = in_shell("| true", "explain query.sase")
        assert (result.returncode, result.stderr) == (141, "")


class TestNamesOfStreams:
    def write(self, first: str, second: str = "B"):
        Path("query.sase").write_text(PROGRAM.format(first, second))
        return match("--output", "out/found.csv")

    @pytest.mark.parametrize(
        ("name", "file"),
        [
            ("x/y", "found.x%2Fy.csv"),
            ("../../up", "found.%2E%2E%2F%2E%2E%2Fup.csv"),
            ("a%2Fb", "found.a%252Fb.csv"),
            ("Kühl-Alarm", "found.Kühl-Alarm.csv"),
        ],
    )
    def test_no_name_leaves_the_folder(self, name: str, file: str) -> None:
        result = self.write(name)
        assert result.exit_code == 0, result.stderr
        assert sorted(os.listdir("out")) == sorted([file, "found.B.csv"])

    @pytest.mark.parametrize(("first", "second"), [("Alarm", "alarm"), ("Straße", "STRASSE")])
    def test_names_that_one_file_would_have_are_refused(self, first: str, second: str) -> None:
        result = self.write(first, second)
        assert (result.exit_code, "would be written to one file" in result.stderr) == (4, True), result.stderr
        assert not Path("out").exists()

    def test_name_that_is_too_long_for_a_file_is_refused(self) -> None:
        result = self.write("x" * 300)
        assert (result.exit_code, "has a name that is too long for a file" in result.stderr) == (4, True)


class TestValuesOnATerminal:
    def is_clean(self, *texts: str) -> bool:
        return not any(letter in text for text in texts for letter in "\x1b\u202e\x9b\x7f")

    def test_in_the_table_of_matches(self) -> None:
        result = match()
        assert SHOWN in result.stdout
        assert self.is_clean(result.stdout, result.stderr)

    def test_in_names_of_columns_streams_and_files(self) -> None:
        pq.write_table(EVENTS.rename_columns(["type", "t", EVIL]), f"{EVIL.replace('/', '')}.parquet")
        Path("query.sase").write_text(f"EVENT SEQ(A a, B b) RETURN a.`{EVIL}` AS `{EVIL}` INTO `{EVIL}`; EVENT A a")
        result = match("--output", "found.json", source=f"{EVIL.replace('/', '')}.parquet")
        assert result.exit_code == 0, result.stderr
        assert SHOWN in result.stdout
        assert self.is_clean(result.stdout, result.stderr)
        assert '"\\u001b[31m' in next(Path().glob("found.%1B*")).read_text()

    @pytest.mark.parametrize(
        "query", [f"EVENT A a WHERE a.id = '{EVIL}' AND a.nothing = 1", f"EVENT A a WHERE {EVIL}", f"EVENT `{EVIL}` a"]
    )
    def test_in_errors_and_notes(self, query: str) -> None:
        Path("query.sase").write_text(query)
        result = match()
        assert result.stderr
        assert self.is_clean(result.stdout, result.stderr)

    def test_in_names_of_files_that_are_not_there(self) -> None:
        result = match(source=f"{EVIL}.parquet")
        assert (result.exit_code, SHOWN in result.stderr) == (4, True)

    def test_in_explain(self) -> None:
        Path("query.sase").write_text(f"EVENT A a WHERE a.id = '{EVIL}'")
        result = kleene("explain", "query.sase")
        assert SHOWN in result.stdout
        assert self.is_clean(result.stdout)

    def test_data_in_files_stays_exact(self) -> None:
        Path("query.sase").write_text(QUERY + " RETURN a.id AS id")
        assert match("--output", "found.csv").exit_code == 0
        assert EVIL in Path("found.csv").read_text()


class TestTimeouts:
    @pytest.fixture(autouse=True)
    def late(self) -> None:
        pq.write_table(pa.table({"type": ["A", "B", "A", "X"], "t": [1, 2, 10, 30]}), "late.parquet")
        Path("late.sase").write_text(
            "EVENT SEQ(A a, B b) WHERE skip_till_next_match(a, b) { } WITHIN 5 RETURN a.t AS a, b.t AS b"
        )
        Path("late.sql").write_text("ORDER BY t MEASURES A.t AS a PATTERN (A B) WITHIN 5 DEFINE A AS t > 1, B AS FALSE")

    def test_runs_that_left_their_window_are_shown_and_written(self) -> None:
        result = match("--timeouts", "--output", "found.parquet", source="late.parquet", query="late.sase")
        assert result.exit_code == 0, result.output
        assert pq.read_table("found.parquet").to_pylist() == [
            {"a": 1, "b": 2, "timed_out": False},
            {"a": 10, "b": None, "timed_out": True},
        ]

    def test_row_patterns_have_them_too(self) -> None:
        result = kleene("match", "late.sql", "-i", "late.parquet", "--in-process", "--show", "json", "--timeouts")
        assert result.stdout.splitlines() == ['{"a": 2, "timed_out": true}', '{"a": 10, "timed_out": true}']

    def test_a_program_has_none(self) -> None:
        Path("late.sase").write_text("EVENT SEQ(A a, B b) WITHIN 5 INTO x; EVENT A a WITHIN 5 INTO y")
        result = match("--timeouts", source="late.parquet", query="late.sase")
        assert "--timeouts is for one query that reads the input itself" in result.output

    def test_aggregates_over_all_matches_are_no_matches(self) -> None:
        Path("late.sase").write_text("EVENT SEQ(A a, B b) WITHIN 5 RETURN count(*) AS n")
        result = match(source="late.parquet", query="late.sase")
        assert "line 1, column 37: the query returns aggregates over all its matches" in result.output
        assert "Add them up in Python, with aggregate(events, per=…)" in result.output
        assert kleene("explain", "late.sase").exit_code == 0


def test_clause_in_a_file_of_another_ending_is_told_what_to_do(tmp_path: Path) -> None:
    query, events = tmp_path / "falls.mr", tmp_path / "events.csv"
    query.write_text("PARTITION BY id ORDER BY t PATTERN (A)")
    events.write_text("t,id\n1,7\n")
    result = kleene("match", str(query), "-i", str(events))
    assert result.exit_code != 0
    assert "keep a clause alone in a file whose name ends in .sql" in " ".join(result.stderr.split())

"""The command line, as a person meets it."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from kleene.cli import app
from kleene.files import EventFiles, FileKind

EVENTS = pa.table({"type": ["Shelf", "Shelf", "Exit", "Exit"], "t": [1, 2, 5, 6], "id": ["x", "y", "x", "z"]})
QUERY = "EVENT SEQ(Shelf a, !(Register r), Exit b)\nWHERE [id]\nWITHIN 10\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    pq.write_table(EVENTS, "events.parquet")
    Path("query.sase").write_text(QUERY)
    return tmp_path


def kleene(*arguments: str, input: str | None = None):
    return CliRunner().invoke(app, list(arguments), input=input)


def match(*arguments: str):
    return kleene("match", "query.sase", "--order-by", "t", "--in-process", "--show", "table", *arguments)


@pytest.mark.usefixtures("folder")
class TestMatch:
    def test_shows_a_table_and_a_count(self) -> None:
        result = match("--input", "events.parquet")
        assert result.exit_code == 0
        assert "1 match" in result.stdout
        assert "a.type │ a.t │ a.id" in result.stdout.replace("┃", "│")
        assert "Shelf  │   1 │ x" in result.stdout

    @pytest.mark.parametrize("ending", ["csv", "jsonl"])
    def test_reads_csv_and_json_lines(self, ending: str) -> None:
        if ending == "csv":
            pyarrow.csv.write_csv(EVENTS, "events.csv")
        else:
            Path("events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in EVENTS.to_pylist()))
        result = match("--input", f"events.{ending}")
        assert result.exit_code == 0, result.stderr
        assert "1 match" in result.stdout

    def test_reads_a_folder_of_files(self) -> None:
        Path("many").mkdir()
        pq.write_table(EVENTS.slice(0, 2), "many/1.parquet")
        pq.write_table(EVENTS.slice(2), "many/2.parquet")
        Path("many/_SUCCESS").touch()
        assert "1 match" in match("--input", "many").stdout

    def test_reads_one_input_per_event_type(self) -> None:
        pq.write_table(EVENTS.slice(0, 2).drop(["type"]), "shelf.parquet")
        pq.write_table(EVENTS.slice(2).drop(["type"]), "exit.parquet")
        pq.write_table(EVENTS.slice(0, 0).drop(["type"]), "register.parquet")
        inputs = (
            "--input",
            "Shelf=shelf.parquet",
            "--input",
            "Exit=exit.parquet",
            "--input",
            "Register=register.parquet",
        )
        assert "1 match" in match(*inputs).stdout

    @pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
    def test_writes_the_matches(self, ending: str) -> None:
        result = match("--input", "events.parquet", "--output", f"found.{ending}")
        assert result.exit_code == 0, result.stderr
        assert f"written to found.{ending}" in result.stdout
        if ending == "parquet":
            assert pq.read_table("found.parquet").column_names == ["id", "a", "b", "match_start", "match_end"]
        else:
            assert '"x"' in Path(f"found.{ending}").read_text()

    def test_does_not_overwrite_unless_told(self) -> None:
        Path("found.parquet").touch()
        refused = match("--input", "events.parquet", "--output", "found.parquet")
        assert refused.exit_code == 4
        assert "--overwrite" in refused.stderr
        assert Path("found.parquet").stat().st_size == 0
        assert match("--input", "events.parquet", "--output", "found.parquet", "--overwrite").exit_code == 0

    @pytest.mark.parametrize("target", ["events.parquet", "many/found.parquet"])
    def test_output_that_is_an_input_is_refused(self, target: str) -> None:
        Path("many").mkdir()
        pq.write_table(EVENTS, "many/1.parquet")
        source = "events.parquet" if target == "events.parquet" else "many"
        result = match("--input", source, "--output", target, "--overwrite")
        assert result.exit_code == 4
        assert "is an input" in result.stderr
        assert pq.read_table(source).num_rows == 4

    def test_file_replaces_the_folder_of_an_earlier_run_when_told(self) -> None:
        Path("found.csv").mkdir()
        assert match("--input", "events.parquet", "--output", "found.csv", "--overwrite").exit_code == 0
        assert Path("found.csv").is_file()

    def test_event_type_that_no_event_has_is_noted_when_nothing_is_found(self) -> None:
        Path("query.sase").write_text("EVENT SEQ(Shelff a, Exit b)")
        result = match("--input", "events.parquet")
        assert result.exit_code == 0
        assert "no event is of type 'Shelff'; types in the input: Exit, Shelf. Did you mean 'Shelf'?" in result.stderr

    def test_sql_is_told_where_to_go(self) -> None:
        Path("query.sase").write_text("SELECT * FROM events")
        assert "run a whole query with kleene sql" in match("--input", "events.parquet").stderr

    def test_exit_code_tells_that_nothing_was_found_when_asked(self) -> None:
        Path("query.sase").write_text("EVENT Nothing n")
        assert match("--input", "events.parquet").exit_code == 0
        assert match("--input", "events.parquet", "--fail-if-none").exit_code == 1

    def test_error_in_the_query_is_drawn_without_a_traceback(self) -> None:
        Path("query.sase").write_text("EVENT Shelf a\nWHERE a.idd = 'x'")
        result = match("--input", "events.parquet")
        assert result.exit_code == 3
        assert "line 2, column 9: event type Shelf has no attribute 'idd'" in result.stderr
        assert "            ^^^" in result.stderr
        assert "Did you mean 'id'?" in result.stderr
        assert "Traceback" not in result.stderr

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["--input", "nowhere.parquet"], 4, "no file or folder 'nowhere.parquet'"),
            (["--input", "events.parquet", "--input", "events.parquet"], 4, "TYPE=PATH"),
            (["--input", "query.sase"], 4, "nothing that can be read as events"),
            (["--input", "events.parquet", "--output", "found.xls"], 4, ".parquet, .csv, .json or .arrow"),
            (["--input", "events.parquet", "--tie-break", "nothing"], 4, "no column 'nothing' to order by"),
            (["--input", "events.parquet", "--format", "some"], 5, "It can be: all, non_overlapping"),
        ],
    )
    def test_bad_arguments_say_what_to_do(self, arguments: list[str], code: int, words: str) -> None:
        result = match(*arguments)
        assert result.exit_code == code
        assert words in result.stderr

    def test_damaged_file_is_an_error_that_names_it(self) -> None:
        Path("damaged.parquet").write_bytes(b"PAR1 this is not Parquet")
        result = match("--input", "damaged.parquet")
        assert result.exit_code == 4
        assert "'damaged.parquet' cannot be read as parquet" in result.stderr

    def test_program_shows_and_writes_every_result(self) -> None:
        Path("query.sase").write_text(
            "EVENT Shelf s INTO Seen; FROM Seen EVENT SEQ(Seen p, Seen q) RETURN p.match_end AS t"
        )
        result = match("--input", "events.parquet", "--output", "found.json")
        assert result.exit_code == 0, result.stderr
        assert sorted(path.name for path in Path().glob("found*")) == ["found.Seen.json", "found.query_2.json"]

    def test_attributes_of_types(self) -> None:
        Path("query.sase").write_text("EVENT ANY(Shelf, Exit) v WHERE v.id = 'z' RETURN v.t AS t")
        inline = match("--input", "events.parquet", "--types", '{"Shelf": []}', "--show", "json")
        assert [json.loads(line)["t"] for line in inline.stdout.splitlines()] == [1, 2, 6]
        Path("types.json").write_text('{"Shelf": ["id"], "Exit": []}')
        from_file = match("--input", "events.parquet", "--types", "types.json", "--show", "json")
        assert [json.loads(line)["t"] for line in from_file.stdout.splitlines()] == [5, 6]
        checked = kleene(
            "check", "query.sase", "--schema", "type string, t int, id string", "--types", '{"Exit": ["x"]}'
        )
        assert "the schema gives 'Exit' the attribute 'x'" in checked.stderr

    @pytest.mark.parametrize(
        ("types", "words"),
        [
            ('{"Shelf": ["id"], "Shelf": []}', "the event type 'Shelf' is given twice"),
            ('{"Shelf": ', "is not JSON"),
            ("nowhere.json", "cannot read the file of types 'nowhere.json'"),
            ("events.parquet", "is not text"),
            ('{"Shelf": {"id": 1}}', "are a list of names"),
            ('{"Shelf": ["ie"]}', "Columns: type, t, id."),
        ],
    )
    def test_attributes_of_types_that_make_no_sense(self, types: str, words: str) -> None:
        result = match("--input", "events.parquet", "--types", types)
        assert result.exit_code != 0
        assert words in result.stderr

    def test_streams_by_name(self) -> None:
        Path("query.sase").write_text("FROM doors, goods EVENT SEQ(goods a, doors b) RETURN a.t AS a, b.t AS b")
        pq.write_table(EVENTS.filter(pa.compute.equal(EVENTS["type"], "Exit")).drop_columns(["type"]), "doors.parquet")
        pq.write_table(EVENTS.slice(0, 2).drop_columns(["type"]), "goods.parquet")
        result = match("--input", "doors=doors.parquet", "--input", "goods=goods.parquet", "--show", "json")
        assert next(json.loads(line) for line in result.stdout.splitlines()) == {"a": 1, "b": 5}

    def test_on_spark(self, spark, monkeypatch) -> None:
        monkeypatch.setattr(spark, "stop", lambda: None)  # the session of all tests goes on
        command = ("match", "query.sase", "-i", "events.parquet", "-b", "t", "-o", "found.parquet", "--spark")
        done = kleene(*command, "--show", "table")
        assert done.exit_code == 0, done.stderr
        assert "1 match" in done.stdout
        assert pq.read_table("found.parquet").num_rows == 1
        Path("events.jsonl").write_text('{"type": "Shelf", "ts": "2024-01-01T10:00:00", "id": 1}\n')
        Path("one.sase").write_text("EVENT Shelf a WITHIN 1 hour")
        one = kleene("match", "one.sase", "-i", "events.jsonl", "-b", "ts", "--spark")
        assert [json.loads(line)["a"]["id"] for line in one.stdout.splitlines()] == [1]
        Path("damaged.parquet").write_bytes(b"PAR1 this is not Parquet")
        damaged = kleene("match", "query.sase", "-i", "damaged.parquet", "-b", "t", "--spark")
        assert damaged.exit_code in (4, 5)
        assert len(damaged.stderr.strip().splitlines()) < 5
        Path("query.sase").write_text("EVENT SEQ(Shelf a, Exit b) WHERE a.t + 9223372036854775807 > b.t")
        failed = kleene(*command, "--overwrite")
        assert failed.exit_code == 5
        assert "overflow: a.t + 9223372036854775807" in failed.stderr
        assert "Traceback" not in failed.stderr


SPRING = """\
type,ts,id,took
A,2024-03-31 01:15:00,,1
B,2024-03-31 03:30:00,x,2.5
A,2024-06-01 10:00:00,,
B,2024-06-01 11:00:00,"",3
"""


@pytest.mark.usefixtures("folder")
class TestOneAnswer:
    """The same command in process and on Spark."""

    @pytest.fixture(autouse=True)
    def events(self, folder: Path, classic_spark, monkeypatch) -> None:
        monkeypatch.setattr(classic_spark, "stop", lambda: None)  # the session of all tests goes on
        Path("events.csv").write_text(SPRING)
        Path("query.sase").write_text(
            "EVENT SEQ(A a, B b) WITHIN 90 minutes "
            "RETURN a.ts AS seen, b.ts - a.ts AS later, a.id AS id, b.took AS took"
        )

    def both(self, *arguments: str) -> list[str]:
        """What is written in process, which is what Spark writes."""
        command = ("match", "query.sase", "-i", "events.csv", "-b", "ts", *arguments)
        for place, where in (("here", ["--in-process"]), ("spark", ["--spark"])):
            result = kleene(*command, *where, "-o", f"{place}.json")
            assert result.exit_code == 0, result.stderr
        parts = sorted(Path("spark.json").glob("part-*"))
        here = sorted(Path("here.json").read_text().splitlines())
        assert sorted(line for part in parts for line in part.read_text().splitlines()) == here
        return here

    def test_times_without_a_zone_are_utc_whatever_the_zone_of_the_session(self, classic_spark) -> None:
        classic_spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        try:
            assert self.both() == ['{"seen": "2024-06-01T10:00:00Z", "later": "PT1H", "id": null, "took": 3.0}']
        finally:
            classic_spark.conf.set("spark.sql.session.timeZone", "UTC")

    def test_zone_that_is_given_knows_of_daylight_saving(self) -> None:
        assert self.both("--timezone", "Europe/Berlin") == [
            '{"seen": "2024-03-31T00:15:00Z", "later": "PT1H15M", "id": null, "took": 2.5}',
            '{"seen": "2024-06-01T08:00:00Z", "later": "PT1H", "id": null, "took": 3.0}',
        ]

    def test_stream_reads_as_match_does(self) -> None:
        Path("readings").mkdir()
        Path("events.csv").rename("readings/1.csv")
        arguments = ("--arrival", "--once", "--timezone", "Europe/Berlin", "--output", "found", "--buckets", "1")
        result = kleene("stream", "query.sase", "-i", "readings", "-b", "ts", *arguments)
        assert result.exit_code == 0, result.stderr
        assert result.stdout.splitlines() == [
            '{"seen": "2024-03-31T00:15:00Z", "later": "PT1H15M", "id": null, "took": 2.5}',
            '{"seen": "2024-06-01T08:00:00Z", "later": "PT1H", "id": null, "took": 3.0}',
        ]
        assert "2 matches among 4 events in this run" in result.stderr

    def test_ties_are_told_after_the_rows(self) -> None:
        Path("events.csv").write_text("type,ts,id,took\nA,2024-01-01 10:00:00,x,1\nB,2024-01-01 10:00:00,y,2\n")
        for where, decides in (
            (["--in-process", "--show", "table"], "the order of the input"),
            (["--spark", "--show", "table"], "the order of their other values"),
        ):
            result = kleene("match", "query.sase", "-i", "events.csv", "-b", "ts", *where)
            assert result.exit_code == 0, result.stderr
            assert result.stderr.strip() == (
                f"warning: 2 events have the same ts as another event, and {decides} decides which comes first: in "
                "process and on Spark the results may differ. Use --tie-break to name a column that decides."
            )
            decided = kleene("match", "query.sase", "-i", "events.csv", "-b", "ts", "--tie-break", "took", *where)
            assert (decided.exit_code, decided.stderr.strip()) == (0, "")

    def test_unknown_zone_is_an_error(self) -> None:
        result = kleene("match", "query.sase", "-i", "events.csv", "-b", "ts", "--timezone", "Europe/Berlln")
        assert (result.exit_code, "Did you mean 'Europe/Berlin'?" in result.stderr) == (4, True)

    def test_stream_tells_which_value_of_a_later_file_does_not_fit(self, monkeypatch) -> None:
        Path("readings").mkdir()
        Path("readings/1.csv").write_text(SPRING)
        Path("readings/2.csv").write_text("type,ts,id,took\nA,2024-07-01 10:00:00,x,long\n")
        at_start = EventFiles(Path("readings"), FileKind.CSV, (Path("readings/1.csv"),))
        monkeypatch.setattr("kleene.cli.reading.find_files", lambda path, zone, form: at_start)
        arguments = ("--arrival", "--once", "--buckets", "1")
        result = kleene("stream", "query.sase", "-i", "readings", "-b", "ts", *arguments)
        assert result.exit_code == 4, result.stderr
        assert "the column 'took' of" in result.stderr
        assert "has 'long', which is not of type double" in result.stderr
        assert "Traceback" not in result.stderr


def at(minute: int) -> datetime:
    return datetime(2024, 1, 1, 10) + timedelta(minutes=minute)


def put(name: str, events: list[tuple[str, int, str]], changed: int = 0) -> None:
    """A file of events (type, minute, id); Spark takes files by the second of their last change."""
    types, minutes, ids = zip(*events, strict=True)
    path = Path("readings", name)
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"type": types, "ts": [at(minute) for minute in minutes], "id": ids}), path)
    os.utime(path, (1_700_000_000 + changed,) * 2)


def stream(*arguments: str, query: str = "stream.sase"):
    return kleene("stream", query, "--input", "readings", "--order-by", "ts", *arguments)


@pytest.mark.usefixtures("folder")
class TestStream:
    @pytest.fixture(autouse=True)
    def readings(self, folder: Path) -> None:
        Path("stream.sase").write_text(
            "EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 1 hour RETURN a.id AS id, a.ts AS seen, b.ts AS gone"
        )
        put("1.parquet", [("Shelf", 0, "x"), ("Noise", 1, "x"), ("Exit", 5, "x"), ("Shelf", 60, "x")], 1)
        put("2.parquet", [("Shelf", 65, "x")], 2)
        put("3.parquet", [("Exit", 4, "x"), ("Shelf", 120, "x"), ("Exit", 121, "x")], 3)

    @pytest.fixture
    def session(self, classic_spark, monkeypatch) -> None:
        monkeypatch.setattr(classic_spark, "stop", lambda: None)  # the session of all tests goes on

    def test_shows_matches_and_micro_batches_and_goes_on_where_it_ended(self, session) -> None:
        first = stream("--watermark", "10 minutes", "--once", "--max-files", "1", "--output", "found")
        assert first.exit_code == 0, first.stderr
        seen = {"id": "x", "seen": "2024-01-01T10:00:00Z", "gone": "2024-01-01T10:05:00Z"}
        assert [json.loads(line) for line in first.stdout.splitlines()] == [seen]
        title, headings, *lines = first.stderr.splitlines()
        assert lines[4:] == [
            "1 match among 8 events in this run",
            "1 event came too late and took no part; a longer --watermark waits for them",
            "still waiting: 2 events for the watermark, 2 open runs",
            "matches     found",
            "checkpoint  found/_checkpoint; the same command goes on from here",
        ]
        assert title == "readings → found, by ts, events may be 10 minutes late"
        assert headings.split()[:5] == ["batch", "read", "events", "late", "matches"]
        assert [line.split()[:6] for line in lines[:4]] == [
            ["0", "4", "3", "0", "0", "3"],
            ["1", "1", "1", "0", "1", "2"],
            ["2", "3", "3", "1", "0", "4"],
            ["3", "0", "0", "0", "0", "2"],
        ]
        written = [path for path in Path("found").glob("*.parquet") if pq.read_table(path).num_rows]
        assert [pq.read_table(path).column("id").to_pylist() for path in written] == [["x"]]
        again = stream("--watermark", "10 minutes", "--once", "--max-files", "1", "--output", "found")
        assert (again.exit_code, again.stdout) == (0, ""), again.stderr
        assert "0 matches among 0 events in this run" in again.stderr
        Path("other.sase").write_text("EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 2 hours")
        put("4.parquet", [("Exit", 125, "x")], 4)
        other = stream("--watermark", "10 minutes", "--once", "--output", "found", query="other.sase")
        assert other.exit_code == 5
        assert other.stderr.splitlines()[-2:] == [
            "error: the checkpoint was written by another query, by other options, or for other columns",
            "Go on with the query, options and columns that it was written with, "
            "or start over with a new checkpoint and a new output.",
        ]
        assert "Traceback" not in other.stderr

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["--watermark", "10 minutes", "--order-by", "tss"], 4, "no column 'tss' to order by"),
            (["--watermark", "ten"], 5, "'ten' is not a length of time"),
            (["--watermark", "1 hour", "--max-ahead", "soon"], 5, 'Write: --max-ahead "1 hour"'),
            (["--watermark", "10 minutes", "--type-column", "kind"], 4, "'kind'"),
        ],
    )
    def test_what_does_not_fit_is_told_before_it_starts(self, session, arguments, code, words) -> None:
        columns = [] if "--order-by" in arguments else ["--order-by", "ts"]
        result = kleene("stream", "stream.sase", "--input", "readings", "--once", *columns, *arguments)
        assert result.exit_code == code, result.output
        assert words in result.stderr
        assert "Traceback" not in result.stderr

    def test_unbounded_query_is_told_in_words_of_the_command_line(self, session) -> None:
        Path("stream.sase").write_text("EVENT SEQ(Shelf a, Exit b) WHERE [id]")
        result = stream("--watermark", "1 hour", "--once")
        assert result.exit_code == 5
        assert "or accept that state grows: --unbounded-state." in result.stderr

    def test_without_a_watermark_it_asks_for_one(self) -> None:
        result = stream("--once")
        assert result.exit_code == 2
        assert "--watermark" in result.stderr
        assert "--arrival" in result.stderr

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--input", "nothing"], "'nothing' holds nothing that can be read as events"),
            (["--input", "nowhere"], "no file or folder 'nowhere'"),
            (["--input", "events.parquet"], "'events.parquet' is a file, but a stream reads a folder"),
            (["--input", "readings", "--output", "readings/found"], "the output 'readings/found' is an input"),
            (["--input", "readings", "--output", "found.csv"], "a stream writes Parquet"),
            (["--input", "readings", "--output", "full"], "the output 'full' exists, but no stream wrote it"),
            (["--input", "readings", "--output", "old"], "a stream whose checkpoint is not at 'old/_checkpoint'"),
            (
                ["--input", "readings", "--output", "new", "--checkpoint", "begun"],
                "writes to another output than 'new'",
            ),
        ],
    )
    def test_folders_that_do_not_fit(self, arguments: list[str], words: str) -> None:
        for path in ("nothing", "full", "old/_spark_metadata", "begun/commits"):
            Path(path).mkdir(parents=True)
        Path("full/mine.txt").touch()
        Path("begun/commits/0").touch()
        result = kleene("stream", "stream.sase", "-b", "ts", "-w", "1 hour", "--once", *arguments)
        assert result.exit_code == 4
        assert words in result.stderr

    def test_one_query_at_a_time(self) -> None:
        Path("stream.sase").write_text("EVENT Shelf a; EVENT Exit b")
        result = stream("--watermark", "1 hour")
        assert result.exit_code == 5
        assert "one query, but the file has 2" in result.stderr


@pytest.mark.usefixtures("folder")
class TestCheck:
    def test_well_formed(self) -> None:
        result = kleene("check", "query.sase")
        assert result.exit_code == 0
        assert "well formed" in result.stdout

    def test_against_a_file(self) -> None:
        assert kleene("check", "query.sase", "--schema", "events.parquet", "--order-by", "t").exit_code == 0

    def test_against_columns_in_words(self) -> None:
        result = kleene("check", "query.sase", "--schema", "type string, t timestamp, id string", "--order-by", "t")
        assert result.exit_code == 3
        assert "WITHIN 10 seconds" in result.stderr

    def test_unknown_order_column(self) -> None:
        result = kleene("check", "query.sase", "--schema", "events.parquet", "--order-by", "tt")
        assert result.exit_code == 4
        assert "Did you mean 't'?" in result.stderr

    def test_unknown_type_in_the_schema(self) -> None:
        result = kleene("check", "query.sase", "--schema", "t timestmap")
        assert result.exit_code == 4
        assert "unknown type 'timestmap'" in result.stderr

    def test_reads_standard_input(self) -> None:
        result = kleene("check", "-", input="EVENT SEQ(A a, B b) WHERE c.x = 1")
        assert result.exit_code == 3
        assert "unknown variable 'c'" in result.stderr

    def test_file_that_is_not_text(self) -> None:
        Path("binary.sase").write_bytes(b"EVENT \xff\xfe A")
        result = kleene("check", "binary.sase")
        assert result.exit_code == 3
        assert "not UTF-8" in result.stderr

    def test_missing_query_file(self) -> None:
        result = kleene("check", "nothing.sase")
        assert result.exit_code == 4
        assert "cannot read the query file 'nothing.sase'" in result.stderr


@pytest.mark.usefixtures("folder")
class TestExplain:
    def test_shows_what_runs(self) -> None:
        result = kleene("explain", "query.sase")
        assert result.exit_code == 0
        assert "b  Exit; each points to the top of the stack of a" in result.stdout
        runs = kleene("explain", "query.sase", "--plan", "operators=nfa")
        assert "b  begin    → F  Exit AND b.id = a.id AND b.time < a.time + 10" in runs.stdout

    def test_gives_dot_on_request(self) -> None:
        assert kleene("explain", "query.sase", "--dot").stdout.startswith("digraph")


def test_version() -> None:
    assert kleene("--version").stdout.startswith("kleene 0.")


def test_help_lists_the_commands() -> None:
    result = kleene("--help")
    assert all(command in result.stdout for command in ("match", "stream", "check", "explain"))

"""Files of events and of matches, read and written in process."""

from __future__ import annotations

import json
import os
import pickle
import resource
import stat
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import kleene
from kleene.errors import ExecutionError, SchemaError
from kleene.files import (
    FileKind,
    check_replaceable,
    csv_files,
    find_files,
    json_files,
    read_arrow,
    replaced_file,
    replaced_folder,
    write_arrow,
)
from kleene.files.reading import file_batches, file_schema

INSTANT = pa.timestamp("us", "UTC")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(name: str, text: str | None = None, zone: str = "UTC") -> pa.Table:
    if text is not None:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    return read_arrow(find_files(Path(name), zone))


def only(table: pa.Table) -> list[object]:
    return table.column(0).to_pylist()


class TestCsv:
    def test_empty_fields_are_null_quoted_or_not(self) -> None:
        table = read("e.csv", 'name,number\n"",1\nx,\n,""\n')
        assert table.column("name").to_pylist() == [None, "x", None]
        assert table.column("number").to_pylist() == [1, None, None]

    def test_only_empty_fields_are_null(self) -> None:
        assert only(read("e.csv", "name\nNA\nnull\nNULL\n")) == ["NA", "null", "NULL"]

    @pytest.mark.parametrize(
        ("values", "type_"),
        [
            (["1", "-2"], pa.int64()),
            (["1", "2.5", "NaN"], pa.float64()),
            (["true", "FALSE"], pa.bool_()),
            (["2024-01-01", "2024-12-31"], pa.date32()),
            (["2024-01-01 10:00:00", "2024-01-01", "2024-01-01T10:00:00.5"], INSTANT),
            (["2024-01-01T10:00:00Z", "2024-01-01T10:00:00.25+02:00"], INSTANT),
            (["2024-01-01 10:00:00.123456789"], pa.timestamp("ns", "UTC")),
            (["10:00:00"], pa.string()),
            (["2024-01-01T10:00:00Z", "2024-01-01T10:00:00"], pa.string()),
            (["1", "2024-01-01"], pa.string()),
            (["", ""], pa.null()),
        ],
    )
    def test_types(self, values: list[str], type_: pa.DataType) -> None:
        assert read("e.csv", "x,y\n" + "".join(f"{value},0\n" for value in values)).schema.field("x").type == type_

    @pytest.mark.parametrize(
        ("first", "last", "type_"),
        [
            ("1", "2.5", pa.float64()),
            ("", "7", pa.int64()),
            ("", "2024-01-01T10:00:00", INSTANT),
            ("2024-01-01", "2024-01-01 10:00:00", INSTANT),
            ("1", "x", pa.string()),
        ],
    )
    def test_type_of_a_column_fits_values_far_down_the_file(self, first, last, type_, monkeypatch) -> None:
        monkeypatch.setattr(csv_files, "_BLOCK", 1_000)
        table = read("e.csv", "n,x\n" + f"1,{first}\n" * 2_000 + f"1,{last}\n")
        assert table.schema.field("x").type == type_
        assert table.num_rows == 2_001

    def test_files_of_a_folder_agree_on_types_and_columns_go_by_name(self) -> None:
        Path("many").mkdir()
        Path("many/1.csv").write_text("a,b\n1,x\n")
        Path("many/2.csv").write_text("b,c,a\ny,true,2.5\n")
        assert read("many").to_pylist() == [{"a": 1.0, "b": "x", "c": None}, {"a": 2.5, "b": "y", "c": True}]

    def test_file_with_nothing_but_names_has_columns_that_fit_any_query(self) -> None:
        table = read("e.csv", "type,ts,id\n")
        query = kleene.sase("EVENT SEQ(A a, B b) WHERE [id] WITHIN 5 minutes")
        assert query.match(table, order_by="ts").num_rows == 0

    def test_line_breaks_in_quotes(self) -> None:
        assert only(read("e.csv", 'x,y\n"a\nb",1\n')) == ["a\nb"]

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"a,a\n1,2\n", "the column 'a' occurs twice"),
            (b"a,b\n1\n", "Expected 2 columns, got 1"),
            (b"", "cannot be read as csv: Empty CSV file"),
            (b"a\n\xff\n", "the column 'a' of 'e.csv' has a value that is not UTF-8"),
        ],
    )
    def test_what_cannot_be_read(self, content: bytes, words: str) -> None:
        Path("e.csv").write_bytes(content)
        with pytest.raises(SchemaError, match=words):
            read("e.csv")


class TestJson:
    @pytest.mark.parametrize(
        ("values", "type_"),
        [
            ([1, 2], pa.int64()),
            ([1, 2.5], pa.float64()),
            ([True], pa.bool_()),
            (["2024-01-01"], pa.date32()),
            (["2024-01-01", "2024-01-01T10:00:00"], INSTANT),
            (["2024-01-01T10:00:00", None, "2024-01-01 10:00:00.5"], INSTANT),
            (["2024-01-01T10:00:00Z"], INSTANT),
            (["2024-01-01T10:00:00Z", "2024-01-01T10:00:00"], pa.string()),
            (["2024-01-01T10:00:00", "soon"], pa.string()),
            ([None], pa.null()),
            ([{"at": "2024-01-01T10:00:00"}], pa.struct([("at", pa.string())])),
        ],
    )
    @pytest.mark.parametrize("block", [8 << 20, 1])
    def test_types_whatever_is_read_at_a_time(self, values, type_, block: int, monkeypatch) -> None:
        monkeypatch.setattr(json_files, "_BLOCK", block)
        table = read("e.jsonl", "".join(json.dumps({"x": value}) + "\n" for value in values))
        assert table.schema.field("x").type == type_
        assert table.num_rows == len(values)

    def test_zone_of_the_text_counts(self) -> None:
        assert only(read("e.jsonl", '{"x": "2024-01-01T10:00:00+02:00"}\n')) == [datetime(2024, 1, 1, 8, tzinfo=UTC)]

    def test_kinds_that_do_not_fit_together_are_an_error(self) -> None:
        with pytest.raises(SchemaError, match=r"cannot be read as json: .*changed from number to string"):
            read("e.jsonl", '{"x": 1}\n{"x": "a"}\n')
        Path("many").mkdir()
        Path("many/1.json").write_text('{"x": 1}')
        Path("many/2.json").write_text('{"x": "a"}')
        with pytest.raises(SchemaError, match=r"'many/2.json' has values of another kind"):
            read("many")

    def test_empty_file_beside_others_is_no_matter_and_alone_is_an_error(self) -> None:
        Path("many").mkdir()
        Path("many/1.json").write_text('{"x": 1}')
        Path("many/2.json").write_text("")
        assert only(read("many")) == [1]
        with pytest.raises(SchemaError, match="so its columns are unknown"):
            read("e.json", "\n")

    def test_text_that_is_not_utf8(self) -> None:
        Path("e.json").write_bytes(b'{"x": "\xff"}\n')
        with pytest.raises(SchemaError, match="not UTF-8"):
            read("e.json")

    def test_values_nested_too_deep_are_an_error_that_names_the_line(self) -> None:
        for deep in ("[" * 5_000 + "]" * 5_000, '{"a":' * 50_000 + "1" + "}" * 50_000, "[\n" * 60 + "]" * 60):
            with pytest.raises(SchemaError, match=r"line (2|51) of 'e.json' has values nested more than 50 deep"):
                read("e.json", '{"x": 1}\n{"x": ' + deep + "}\n")

    def test_line_of_a_deep_value_counts_from_the_start_of_the_file(self, monkeypatch) -> None:
        monkeypatch.setattr(json_files, "_BLOCK", 100)
        with pytest.raises(SchemaError, match="line 1,001 of"):
            read("e.json", '{"x": 1}\n' * 1_000 + '{"y": ' + "[" * 60 + "]" * 60 + "}\n")

    def test_brackets_in_texts_are_not_nested_values(self) -> None:
        text = '\\"' + "[{" * 100 + "\\"
        nested = [[[[text]]]]
        assert read("e.json", json.dumps({"x": text, "y": nested}) + "\n").to_pylist() == [{"x": text, "y": nested}]

    @pytest.mark.slow
    @pytest.mark.usefixtures("in_time")
    def test_long_line_is_copied_once(self, monkeypatch) -> None:
        monkeypatch.setattr(json_files, "_BLOCK", 64)
        text = "a" * 16_000_000
        assert only(read("e.json", json.dumps({"x": text}) + "\n"))[0] == text


class TestLargeWholeNumbers:
    """Numbers that differ stay different: a float would round them."""

    def texts(self, ending: str, *values: str) -> list[object]:
        lines = {"csv": "y,x\n" + "".join(f"1,{value}\n" for value in values)}
        lines["json"] = "".join(f'{{"y": 1, "x": {value or "null"}}}\n' for value in values)
        table = read(f"e.{ending}", lines[ending])
        assert table.schema.field("x").type == pa.string()
        assert table.column("y").to_pylist() == [1] * len(values)
        return table.column("x").to_pylist()

    @pytest.mark.parametrize("block", [8 << 20, 64])
    @pytest.mark.parametrize("ending", ["csv", "json"])
    @pytest.mark.parametrize(
        "values",
        [
            ("12345678901234567890", "12345678901234567891"),
            ("1", "", "9223372036854775808"),
            ("-9223372036854775809", "1", "1"),
            ("9007199254740993", "9007199254740992", "1.5"),
            ("1.5", "1.5", "1.5", "1.5", "1.5", "1.5", "-9007199254740993"),
            ("1" * 50, "1" * 49 + "2"),
        ],
    )
    def test_they_are_texts_as_written(self, ending: str, values: tuple[str, ...], block: int, monkeypatch) -> None:
        for module in (csv_files, json_files):
            monkeypatch.setattr(module, "_BLOCK", block)
        assert self.texts(ending, *values) == [value or None for value in values]

    @pytest.mark.parametrize("ending", ["csv", "json"])
    @pytest.mark.parametrize(
        "values", [["1e300", "-2.5"], ["9007199254740993.0", "1"], ["0.12345678901234567890", "7"]]
    )
    def test_floats_are_floats(self, ending: str, values: list[str]) -> None:
        text = "x,y\n" + "".join(f"{value},1\n" for value in values)
        if ending == "json":
            text = "".join(f'{{"x": {value}}}\n' for value in values)
        assert only(read(f"e.{ending}", text)) == [float(value) for value in values]

    @pytest.mark.parametrize("ending", ["csv", "json"])
    def test_those_of_64_bits_are_integers(self, ending: str) -> None:
        text = "x,y\n-9223372036854775808,1.5\n" if ending == "csv" else '{"x": -9223372036854775808, "y": 1.5}\n'
        assert only(read(f"e.{ending}", text)) == [-(1 << 63)]

    @pytest.mark.parametrize("ending", ["csv", "json"])
    def test_files_of_a_folder_agree(self, ending: str) -> None:
        Path("many").mkdir()
        for number, value in enumerate(["9007199254740993", "1.5"]):
            text = f"x,y\n{value},1\n" if ending == "csv" else f'{{"x": {value}}}\n'
            Path(f"many/{number}.{ending}").write_text(text)
        assert only(read("many")) == ["9007199254740993", "1.5"]

    @pytest.mark.parametrize("value", ['{"a": [1.5, %s]}', "[%s, 1]"])
    def test_those_inside_values_are_refused(self, value: str) -> None:
        with pytest.raises(
            SchemaError, match=r"'x' of 'e.json' has 12345678901234567890, which is too large to be exact"
        ):
            read("e.json", f'{{"x": {value % "12345678901234567890"}}}\n')

    @pytest.mark.parametrize("kind", [FileKind.CSV, FileKind.JSON])
    def test_file_that_comes_later_is_refused_where_the_column_is_of_floats(self, kind: FileKind) -> None:
        number = "12345678901234567890"
        Path("e").write_text(f"x\n{number}\n" if kind is FileKind.CSV else f'{{"x": {number}}}\n')
        with pytest.raises(SchemaError, match=f"{number}.*too large to be exact"):
            list(file_batches(Path("e"), kind, pa.schema([("x", pa.float64())])))

    @pytest.mark.parametrize("ending", ["csv", "json"])
    def test_tasks_elsewhere_read_them_alike(self, ending: str) -> None:
        Path("e.csv").write_text("x,y\n12345678901234567890,1\n1.5,2\n")
        Path("e.json").write_text('{"x": 12345678901234567890, "y": 1}\n{"x": 1.5, "y": 2}\n')
        found = find_files(Path(f"e.{ending}"))
        schema = pickle.loads(pickle.dumps(file_schema(found)))
        rows = [row for batch in file_batches(found.path, found.kind, schema) for row in batch.to_pylist()]
        assert rows == read(f"e.{ending}").to_pylist() == [{"x": "12345678901234567890", "y": 1}, {"x": "1.5", "y": 2}]

    def test_ids_that_differ_do_not_match(self) -> None:
        table = read("e.csv", "type,ts,id\nA,1,12345678901234567890\nB,2,12345678901234567891\n")
        assert kleene.sase("EVENT SEQ(A a, B b) WHERE [id]").match(table, order_by="ts").num_rows == 0


class TestParquet:
    def test_types_that_spark_lacks_become_those_it_has(self) -> None:
        table = pa.table(
            {
                "local": pa.array([datetime(2024, 1, 1)], pa.timestamp("ms")),
                "far": pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", "Asia/Tokyo")),
                "unsigned": pa.array([2**64 - 1], pa.uint64()),
                "word": pa.array(["x"]).dictionary_encode(),
                "large": pa.array(["x"], pa.large_string()),
                "took": pa.array([timedelta(seconds=1)], pa.duration("ms")),
            }
        )
        pq.write_table(table, "e.parquet")
        assert read("e.parquet").schema == pa.schema(
            {
                "local": INSTANT,
                "far": INSTANT,
                "unsigned": pa.decimal128(20, 0),
                "word": pa.string(),
                "large": pa.string(),
                "took": pa.duration("us"),
            }
        )

    def test_times_of_96_bits_are_instants_of_microseconds_whatever_the_zone(self) -> None:
        table = pa.table({"x": pa.array([datetime(2024, 1, 1)], pa.timestamp("us"))})
        pq.write_table(table, "e.parquet", use_deprecated_int96_timestamps=True)
        found = read("e.parquet", zone="Europe/Berlin")
        assert (found.schema.field("x").type, only(found)) == (INSTANT, [datetime(2024, 1, 1, tzinfo=UTC)])

    def test_files_of_a_folder_may_have_different_columns(self) -> None:
        Path("many").mkdir()
        pq.write_table(pa.table({"a": [1]}), "many/1.parquet")
        pq.write_table(pa.table({"b": ["x"], "a": [2]}), "many/2.parquet")
        assert read("many").to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]


class TestZone:
    @pytest.mark.parametrize(
        ("local", "utc"),
        [
            ("2024-01-01T10:00:00", datetime(2024, 1, 1, 9)),
            ("2024-07-01T10:00:00", datetime(2024, 7, 1, 8)),
            ("2024-03-31T02:30:00.25", datetime(2024, 3, 31, 1, 30, 0, 250_000)),
            ("2024-10-27T02:30:00", datetime(2024, 10, 27, 0, 30)),
        ],
        ids=["winter", "summer", "skipped", "twice"],
    )
    @pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
    def test_times_without_a_zone_are_of_the_one_given(self, local: str, utc: datetime, ending: str) -> None:
        if ending == "parquet":
            pq.write_table(pa.table({"x": [datetime.fromisoformat(local)]}), "e.parquet")
        text = {"csv": f"x,y\n{local},1\n,2\n", "json": json.dumps({"x": local}), "parquet": None}[ending]
        assert only(read(f"e.{ending}", text, "Europe/Berlin"))[0] == utc.replace(tzinfo=UTC)

    def test_times_inside_values_are_refused(self) -> None:
        pq.write_table(pa.table({"x": [{"at": datetime(2024, 1, 1)}]}), "e.parquet")
        with pytest.raises(SchemaError, match="times without a zone inside"):
            read("e.parquet", zone="Europe/Berlin")


ROWS = pa.table(
    {
        "at": pa.array([datetime(2024, 1, 1, 10, tzinfo=UTC), None], INSTANT),
        "took": pa.array([timedelta(hours=1, minutes=30), None], pa.duration("us")),
        "day": pa.array([date(2024, 1, 1), None]),
        "name": ['a "b"\nc', None],
        "price": pa.array([Decimal("1.50"), None]),
        "ratio": [float("nan"), 0.1],
        "event": pa.array(
            [{"took": timedelta(seconds=1), "at": datetime(2024, 1, 1)}, None],
            pa.struct({"took": pa.duration("us"), "at": pa.timestamp("us")}),
        ),
    }
)


class TestWriting:
    def test_json(self) -> None:
        write_arrow(ROWS, Path("found.json"))
        first, second = map(json.loads, Path("found.json").read_text().splitlines())
        assert first == {
            "at": "2024-01-01T10:00:00Z",
            "took": "PT1H30M",
            "day": "2024-01-01",
            "name": 'a "b"\nc',
            "price": "1.50",
            "ratio": None,
            "event": {"took": "PT1S", "at": "2024-01-01T00:00:00"},
        }
        assert set(second.values()) == {None, 0.1}

    def test_csv(self) -> None:
        write_arrow(ROWS, Path("found.csv"))
        assert Path("found.csv").read_text() == (
            '"at","took","day","name","price","ratio","event"\n'
            '2024-01-01 10:00:00.000000Z,"PT1H30M",2024-01-01,"a ""b""\nc",1.50,nan,'
            '"{""took"": ""PT1S"", ""at"": ""2024-01-01T00:00:00""}"\n'
            ",,,,,0.1,\n"
        )

    def test_parquet_has_durations_as_microseconds(self) -> None:
        write_arrow(ROWS, Path("found.parquet"))
        found = pq.read_table("found.parquet")
        assert found.column("took").to_pylist() == [5_400_000_000, None]
        assert found.column("event").to_pylist()[0]["took"] == 1_000_000
        assert found.schema.field("at").type == INSTANT

    def test_nothing_found_is_a_file_all_the_same(self) -> None:
        for ending in ("csv", "json", "parquet"):
            write_arrow(ROWS.slice(0, 0), Path(f"found.{ending}"))
        assert Path("found.csv").read_text() == '"at","took","day","name","price","ratio","event"\n'
        assert Path("found.json").read_text() == ""
        assert pq.read_table("found.parquet").num_rows == 0


def fill(path: Path, content: bytes = b"new") -> None:
    with replaced_file(path) as file:
        file.write(content)


class TestReplacing:
    def test_what_fails_half_way_leaves_the_old_file_and_no_draft(self) -> None:
        Path("out").write_text("old")
        with pytest.raises(TypeError), replaced_file(Path("out")) as file:
            file.writelines([b"half", "not bytes"])
        assert Path("out").read_text() == "old"
        assert os.listdir() == ["out"]

    def test_full_disk_leaves_the_old_file_and_no_draft(self) -> None:
        Path("out").write_text("old")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
        try:
            with pytest.raises(ExecutionError, match="'out' cannot be written: File too large") as raised:
                fill(Path("out"), b"x" * 100_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert raised.value.hint == "What was there before is unchanged."
        assert Path("out").read_text() == "old"
        assert os.listdir() == ["out"]

    def test_file_keeps_its_mode_and_a_new_one_has_the_usual(self) -> None:
        Path("usual").touch()
        fill(Path("new"))
        assert Path("new").stat().st_mode == Path("usual").stat().st_mode
        Path("new").chmod(0o640)
        fill(Path("new"))
        assert stat.S_IMODE(Path("new").stat().st_mode) == 0o640

    def test_link_stays_and_what_it_leads_to_is_replaced(self) -> None:
        Path("other").mkdir()
        Path("other/file").write_text("old")
        Path("link").symlink_to("other/file")
        Path("to_come").symlink_to("other/not_yet")
        for name in ("link", "to_come"):
            fill(Path(name))
            assert Path(name).is_symlink()
        assert Path("other/file").read_text() == Path("other/not_yet").read_text() == "new"

    def test_devices_and_pipes_are_written_to(self) -> None:
        os.mkfifo("pipe")
        reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
        fill(Path("pipe"))
        assert os.read(reader, 10) == b"new"
        os.close(reader)
        fill(Path("/dev/null"))
        with pytest.raises(ExecutionError, match="'/dev/full' cannot be written: No space left on device"):
            fill(Path("/dev/full"))
        assert Path("/dev/full").exists()

    @pytest.mark.slow
    def test_standard_output_that_is_a_file_is_written_to_and_not_replaced(self) -> None:
        Path("out.csv").symlink_to("/dev/stdout")
        code = (
            "import pathlib, kleene.files as f\nwith f.replaced_file(pathlib.Path('out.csv')) as out: out.write(b'new')"
        )
        with Path("redirected").open("wb") as file:
            before = os.fstat(file.fileno()).st_ino
            subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
        assert (Path("redirected").read_text(), Path("redirected").stat().st_ino) == ("new", before)
        assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout == b"new"

    def test_folder_is_replaced_as_a_whole_or_not_at_all(self) -> None:
        for content in ("old", "new"):
            with replaced_folder(Path("out")) as draft:
                (draft / content).touch()
        assert os.listdir("out") == ["new"]
        with pytest.raises(TypeError), replaced_folder(Path("out")) as draft:
            (draft / "half").write_bytes("not bytes")
        assert (os.listdir("out"), os.listdir()) == (["new"], ["out"])

    def test_file_and_folder_replace_each_other(self) -> None:
        fill(Path("out"))
        with replaced_folder(Path("out")) as draft:
            (draft / "part").touch()
        assert os.listdir("out") == ["part"]
        fill(Path("out"))
        assert (Path("out").read_text(), os.listdir()) == ("new", ["out"])

    def test_draft_is_its_users_alone_until_it_is_whole(self) -> None:
        for mode in (0o600, 0o644, None):
            if mode is not None:
                Path("out").touch()
                Path("out").chmod(mode)
            with replaced_file(Path("out")):
                assert [stat.S_IMODE(draft.stat().st_mode) for draft in Path().glob(".kleene-*")] == [0o600]
            Path("out").unlink()
        with replaced_folder(Path("folder")) as draft:
            assert stat.S_IMODE(draft.stat().st_mode) == 0o700

    def test_folder_keeps_its_mode_and_a_new_one_has_the_usual(self) -> None:
        Path("usual").mkdir()
        with replaced_folder(Path("new")):
            pass
        assert Path("new").stat().st_mode == Path("usual").stat().st_mode
        Path("new").chmod(0o750)
        with replaced_folder(Path("new")):
            pass
        assert stat.S_IMODE(Path("new").stat().st_mode) == 0o750

    def test_bits_that_lend_rights_are_not_copied(self) -> None:
        Path("out").touch()
        Path("out").chmod(0o6755)
        fill(Path("out"))
        assert stat.S_IMODE(Path("out").stat().st_mode) == 0o755
        Path("folder").mkdir()
        Path("folder").chmod(0o3755)
        with replaced_folder(Path("folder")):
            pass
        assert stat.S_IMODE(Path("folder").stat().st_mode) == 0o755

    def test_interrupt_between_the_renames_puts_the_old_folder_back(self, monkeypatch) -> None:
        Path("out").mkdir()
        Path("out/old").touch()

        def interrupted(*_) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt), replaced_folder(Path("out")):
            pass
        assert (os.listdir("out"), os.listdir()) == (["old"], ["out"])

    @pytest.mark.parametrize("what", ["file", "folder"])
    def test_thing_put_into_the_old_folder_meanwhile_is_kept_and_named(self, what: str) -> None:
        Path("out.csv").mkdir()
        Path("out.csv/part-0.csv").touch()
        check = partial(check_replaceable, endings=(".csv",))
        replaced = (
            replaced_folder(Path("out.csv"), check) if what == "folder" else replaced_file(Path("out.csv"), check)
        )
        with pytest.raises(ExecutionError, match="other things were put into the folder") as raised, replaced:
            Path("out.csv/thesis.txt").write_text("years")
        (kept,) = Path().glob(".kleene-*")
        assert (kept / "thesis.txt").read_text() == "years"
        assert raised.value.hint is not None
        assert kept.name in raised.value.hint
        assert Path("out.csv").is_dir() == (what == "folder")

    @pytest.mark.parametrize(
        ("name", "is_own"),
        [
            ("part-00000.csv", True),
            ("part-00000-1a2b.CSV.gz", True),
            ("_SUCCESS", True),
            ("._SUCCESS.crc", True),
            (".part-00000.csv.crc", True),
            ("_spark_metadata/0", True),
            ("_spark_metadata/.9.compact.crc", True),
            ("_spark_metadata/notes.txt", False),
            (".env", False),
            (".part-1.crc/mine.crc", False),
            ("_notes", False),
            ("customers.csv", False),
            ("part-1.txt", False),
            ("part-1.csv/part-1.csv", False),
        ],
    )
    def test_what_counts_as_an_earlier_output(self, name: str, is_own: bool) -> None:
        Path("out", name).parent.mkdir(parents=True)
        Path("out", name).touch()
        if is_own:
            check_replaceable(Path("out"), (".csv", ".csv.gz"))
            return
        with pytest.raises(SchemaError, match="that holds other things"):
            check_replaceable(Path("out"), (".csv", ".csv.gz"))

    def test_name_that_is_too_long_is_named(self) -> None:
        with pytest.raises(ExecutionError, match=r"'xxx.*' cannot be written: File name too long"):
            fill(Path("x" * 300))


def test_names_of_columns_that_are_not_utf_8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_bytes(b"type,\xff\nA,1\n")
    with pytest.raises(kleene.SchemaError, match="names the columns, is not UTF-8"):
        read_arrow(find_files(tmp_path / "events.csv"))


class TestArrowFiles:
    def test_written_and_read_again(self, tmp_path: Path) -> None:
        table = pa.table(
            {"t": [1, 2], "s": ["a", None], "d": pa.array([timedelta(seconds=1), None], pa.duration("us"))}
        )
        write_arrow(table, tmp_path / "found.arrow")
        assert read_arrow(find_files(tmp_path / "found.arrow")).equals(table)

    def test_files_of_different_columns_and_dictionaries(self, tmp_path: Path) -> None:
        for name, words in (("a", ["x", "y"]), ("b", ["z", "x"])):
            column = pa.array(words).dictionary_encode()
            with pa.ipc.new_file(
                str(tmp_path / f"{name}.feather"), pa.schema([("s", column.type), (name, pa.int8())])
            ) as to:
                to.write_table(pa.table({"s": column, name: pa.array([1, 2], pa.int8())}))
        found = read_arrow(find_files(tmp_path))
        assert found.to_pydict() == {"s": ["x", "y", "z", "x"], "a": [1, 2, None, None], "b": [None, None, 1, 2]}
        assert found.schema.field("s").type == pa.string()

    def test_what_is_no_arrow_file_is_an_error_that_names_it(self, tmp_path: Path) -> None:
        (tmp_path / "bad.arrow").write_bytes(b"ARROW1 not at all")
        with pytest.raises(SchemaError, match="cannot be read as arrow: Not an Arrow file"):
            read_arrow(find_files(tmp_path / "bad.arrow"))

"""A command gives one answer: files read and written on Spark are as they are in process."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kleene.errors import ExecutionError, SchemaError
from kleene.files import EventFiles, FileKind, find_files, read_arrow, write_arrow
from kleene.spark.files import _write_part, read_spark, session_in_utc, write_spark

CSV = """\
type,ts,at,name,n,ratio,ok,day,clock,late.r,none
A,2024-03-31 01:30:00,2024-03-31T01:30:00Z,,1,1,true,2024-01-01,10:00:00,1,
B,2024-03-31 03:00:00.5,2024-03-31T03:00:00.123456+02:00,"",,NaN,,2024-01-02,,2.5,
C,,,"x,
y",3,,FALSE,,,,
"""
TABLE = pa.table(
    {
        "local": pa.array([datetime(2024, 3, 31, 2, 30), datetime(2024, 10, 27, 2, 30), None], pa.timestamp("us")),
        "zoned": pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("ms", "Asia/Tokyo")),
        "took": pa.array([timedelta(hours=1), timedelta(milliseconds=-1), None], pa.duration("ms")),
        "small": pa.array([1, 255, None], pa.uint8()),
        "large": pa.array([1, 2**64 - 1, None], pa.uint64()),
        "word": pa.array(["x", "", None]).dictionary_encode(),
        "event": [{"n": 1, "tags": ["a"]}, {"n": 2, "tags": []}, None],
    }
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def session(classic_spark, monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    classic_spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield session_in_utc(classic_spark)
    classic_spark.conf.set("spark.sql.session.timeZone", "UTC")


def both(session, found: EventFiles) -> tuple[pa.Table, pa.Table]:
    first, second = read_arrow(found), read_spark(session, found).toArrow()
    by = [(second.column_names[0], "ascending")]
    return first.sort_by(by), second.sort_by(by)


def same(first: pa.Table, second: pa.Table) -> bool:
    plain = first.replace_schema_metadata(None).cast(second.schema)
    kinds = [(field.name, field.type) for field in first.schema] == [
        (field.name, field.type) for field in second.schema
    ]
    return kinds and repr(plain.to_pylist()) == repr(second.to_pylist())


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_same_rows_and_types_in_process_and_on_spark(session, kind: str, zone: str) -> None:
    path = Path(f"odd [name] {{1}}.{kind}")
    if kind == "csv":
        path.write_text(CSV)
    elif kind == "json":
        lines = [{"n": 1, "ts": "2024-03-31T02:30:00", "event": {"at": "2024-01-01T00:00:00", "x": 1}}]
        lines += [
            {"n": 2.5, "ts": "2024-03-31T02:30:00.5", "event": {"x": 2.5}, "tags": ["a"]},
            {"n": 3, "event": None},
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        pq.write_table(TABLE, path)
    first, second = both(session, find_files(path, zone))
    assert same(first, second), (first.to_pylist(), second.to_pylist())


def test_nanoseconds_are_refused_on_spark(session) -> None:
    Path("e.csv").write_text("t,x\n2024-01-01T00:00:00.123456789,1\n")
    with pytest.raises(SchemaError, match="the column 't' has nanoseconds"):
        read_spark(session, find_files(Path("e.csv")))


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_written_on_spark_is_as_written_in_process(session, ending: str) -> None:
    pq.write_table(TABLE.append_column("a.b`c", pa.array([b"\xff", b"", None])), "e.parquet")
    found = find_files(Path("e.parquet"))
    write_arrow(read_arrow(found), Path(f"one.{ending}"))
    write_spark(read_spark(session, found).coalesce(1), Path(f"many.{ending}"))
    parts = list(Path(f"many.{ending}").glob("part-*"))
    assert len(parts) == 1
    if ending == "parquet":
        assert same(pq.read_table(f"one.{ending}"), pq.read_table(parts[0]))
    else:
        assert Path(f"one.{ending}").read_text() == parts[0].read_text()


def test_nothing_found_on_spark_has_its_columns_all_the_same(session) -> None:
    pq.write_table(TABLE.slice(0, 0), "e.parquet")
    write_spark(read_spark(session, find_files(Path("e.parquet"))), Path("found.csv"))
    assert read_arrow(find_files(Path("found.csv"))).column_names == TABLE.column_names


def test_spark_job_that_fails_leaves_the_old_output(session) -> None:
    Path("e.csv").write_text("n\n1\n0\n")
    good = read_spark(session, find_files(Path("e.csv")))
    write_spark(good, Path("found.csv"))
    before = sorted(path.name for path in Path("found.csv").iterdir())
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        write_spark(good.selectExpr("1 / n AS n"), Path("found.csv"))
    assert sorted(path.name for path in Path("found.csv").iterdir()) == before
    assert sorted(path.name for path in Path().iterdir()) == ["e.csv", "found.csv"]


def test_full_disk_of_a_task_is_a_sentence_that_names_the_output() -> None:
    with pytest.raises(ExecutionError, match=r"'found.csv' cannot be written: No space left on device"):
        _write_part(Path("/dev/full"), "found.csv", FileKind.CSV, TABLE.schema, ())

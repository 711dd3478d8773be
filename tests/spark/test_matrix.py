"""One set of queries over one set of events, through every way in and out: all answers are the same.

Inputs are Arrow, pandas, polars, DuckDB, CSV, JSON lines and Parquet; places are this process, Spark and Spark Connect,
by the API and by the command line; each in two time zones and under settings of Spark that change how texts are read.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import kleene
from kleene.cli import app

SASE = {
    "cheaper": """
        PATTERN SEQ(View a, !(Pay p), Cart b) WHERE [id] AND b.price < a.price AND p.price > 8.5
        WITHIN 90 minutes RETURN a.ts AS seen, b.ts - a.ts AS later, b.id AS id, a.price - b.price AS less, b.day AS day
        INTO cheaper""",
    "rising": """
        PATTERN SEQ(View+ a[], Cart b) WHERE skip_till_next_match(a[], b) { [id] AND a[i].n > a[i-1].n }
        WITHIN 2 hours HAVING count(a[]) > 1
        RETURN b.n AS n, count(a[]) AS views, avg(a[].price) AS mean, max(a[].note) AS note, b.gone AS gone
        INTO rising""",
}
OTHERS = {
    "rows": kleene.match_recognize(r"""
        PARTITION BY id ORDER BY ts, n
        MEASURES FIRST(A.ts) AS first, LAST(B.n) AS n, COUNT(B.*) AS many, A.note AS note, LAST(B.price) AS price
        PATTERN (A B{2,}) WITHIN INTERVAL '3' HOUR DEFINE B AS B.price > PREV(B.price) OR B.note = 'a\d''b'"""),
    "regex": kleene.regex(
        pattern="view . cart",
        partition_by="id",
        order_by=["ts", "n"],
        predicates={"view": "type = 'View'", "cart": "type = 'Cart' AND price > First(price)"},
        output={"id": "id", "n": "n", "sum": "Sum(price)", "took": "Delta(ts)"},
    ),
}
ZONES = ["UTC", "America/New_York"]
SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.caseSensitive": "true",
}


@cache
def events() -> pa.Table:
    """A day and a half around a change of the clocks in New York, with NULLs, quotes and letters of many scripts."""
    chance = random.Random(7)
    start, count = dt.datetime(2024, 3, 9, 20, tzinfo=dt.UTC), 300
    minutes = sorted(chance.choices(range(36 * 60), k=count))
    return pa.table(
        {
            "type": chance.choices(["View", "Cart", "Pay"], [5, 3, 1], k=count),
            "ts": pa.array([start + dt.timedelta(minutes=minute) for minute in minutes], pa.timestamp("us", "UTC")),
            "n": pa.array(range(count), pa.int64()),
            "id": chance.choices(['o"1', "z,ü", "Ω'2"], k=count),
            "price": pa.array([chance.choice([None, 0.5, 8.25, 9.0, 10.75]) for _ in range(count)], pa.float64()),
            "note": pa.array([chance.choice([None, "a\\d'b", "{x}", "-"]) for _ in range(count)], pa.string()),
            "day": pa.array([start.date() + dt.timedelta(days=n % 3) for n in range(count)], pa.date32()),
            "gone": pa.array([chance.choice([None, True, False]) for _ in range(count)], pa.bool_()),
        }
    )


def normal(value: Any) -> Any:
    """A value as every way can give it."""
    match value:
        case dt.datetime():
            return value.replace(tzinfo=value.tzinfo or dt.UTC).astimezone(dt.UTC).isoformat()
        case dt.timedelta():
            return value.total_seconds()
        case float() if math.isnan(value):
            return None
        case float():
            return round(value, 9)
    return value


def answer(rows: Any) -> list[str]:
    return sorted(repr({name: normal(value) for name, value in row.items()}) for row in rows)


@cache
def expected(name: str) -> list[str]:
    if name in SASE:
        found = kleene.sase(SASE[name]).match(events(), order_by="ts", tie_break="n", engine="reference")
    else:
        found = OTHERS[name].match(events(), engine="reference")
    assert found.num_rows > 5, name
    return answer(found.to_pylist())


def check(events: Any, rows_of: Any) -> None:
    for name, text in SASE.items():
        assert answer(rows_of(kleene.sase(text).match(events, order_by="ts", tie_break="n"))) == expected(name), name
    for name, query in OTHERS.items():
        assert answer(rows_of(query.match(events))) == expected(name), name


@contextmanager
def machine_in(zone: str, patch: pytest.MonkeyPatch) -> Iterator[None]:
    patch.setenv("TZ", zone)
    time.tzset()
    try:
        yield
    finally:
        patch.undo()
        time.tzset()


@pytest.fixture(params=ZONES)
def zone(request: pytest.FixtureRequest, monkeypatch) -> Iterator[str]:
    with machine_in(request.param, monkeypatch):
        yield request.param


# ---- the API


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "duckdb", "parquet"])
def test_in_process(kind: str, zone: str, tmp_path: Path) -> None:
    table = events()
    pq.write_table(table, tmp_path / "events.parquet")
    inputs = {
        "arrow": lambda: table,
        "pandas": lambda: table.to_pandas(),
        "polars": lambda: polars.from_arrow(table),
        "duckdb": lambda: duckdb.from_arrow(table),
        "parquet": lambda: pq.read_table(tmp_path / "events.parquet"),
    }
    as_arrow = {
        "pandas": lambda found: pa.Table.from_pandas(found, preserve_index=False),
        "polars": lambda found: found.to_arrow(),
    }.get(kind, lambda found: found)
    check(inputs[kind](), lambda found: as_arrow(found).to_pylist())


def rows_of_frame(frame: Any) -> list[dict[str, Any]]:
    return frame.toArrow().to_pylist()


@contextmanager
def session_with(session: Any, **settings: str) -> Iterator[None]:
    before = {name: session.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


@pytest.mark.filterwarnings("ignore:The SQL config 'spark.sql.parser.escapedStringLiterals'")
@pytest.mark.parametrize("setting", [None, *SETTINGS])
def test_on_spark(either_spark, setting: str | None) -> None:
    zone = ZONES[1] if setting is None else ZONES[0]
    given = {"spark.sql.session.timeZone": zone} | ({} if setting is None else {setting: SETTINGS[setting]})
    with session_with(either_spark, **given), machine_in(zone, pytest.MonkeyPatch()):
        check(either_spark.createDataFrame(events()), rows_of_frame)


# ---- the command line


def write_events(ending: str) -> None:
    """The events in a file, their times without a zone, as people write them."""
    naive = events().set_column(1, "ts", events().column("ts").cast(pa.timestamp("us")))
    if ending == "parquet":
        pq.write_table(naive, "events.parquet")
    elif ending == "csv":
        pyarrow.csv.write_csv(naive, "events.csv")
    else:
        lines = [json.dumps(row, default=lambda value: value.isoformat()) for row in naive.to_pylist()]
        Path("events.jsonl").write_text("\n".join(lines) + "\n")


def read_rows(name: str, ending: str) -> list[dict[str, Any]]:
    """What was written, with the types that the format does not say."""
    path = Path(f"found.{name}.{ending}")
    files = [file for file in ([path] if path.is_file() else sorted(path.glob("part-*"))) if file.stat().st_size]
    if ending == "parquet":
        rows = pa.concat_tables(pq.read_table(file) for file in files).to_pylist()
        # Durations are microseconds in Parquet.
        return [row | ({"later": row["later"] / 1e6} if "later" in row else {}) for row in rows]
    if ending == "csv":
        whole = pa.concat_tables(pyarrow.csv.read_csv(file) for file in files if file.read_text().count("\n") > 1)
        return [{key: typed(value) for key, value in row.items()} for row in whole.to_pylist()]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [{key: typed(value) for key, value in row.items()} for row in rows]


def typed(value: Any) -> Any:
    if isinstance(value, str):
        if value.startswith("PT"):
            return dt.timedelta(seconds=seconds_of(value))
        if value[:4].isdigit():
            return dt.datetime.fromisoformat(value) if len(value) > 10 else dt.date.fromisoformat(value)
    return value if value != "" else None


def seconds_of(duration: str) -> float:
    """ISO 8601, as far as these durations go.

    >>> seconds_of("PT1H15M")
    4500.0
    """
    units, total, number = {"H": 3600, "M": 60, "S": 1}, 0.0, ""
    for letter in duration.removeprefix("PT"):
        if letter in units:
            total += float(number) * units[letter]
            number = ""
        else:
            number += letter
    return total


@pytest.mark.parametrize("place", ["in process", "on Spark"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_command_line(classic_spark, ending: str, place: str, zone: str, tmp_path: Path, monkeypatch) -> None:
    if place == "on Spark" and zone == "UTC" and ending != "csv":
        pytest.skip("one format in this zone shows it")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(classic_spark, "stop", lambda: None)  # the session of all tests goes on
    write_events(ending)
    Path("query.sase").write_text(";\n".join(SASE.values()))
    written = "json" if ending == "jsonl" else ending
    command = f"match query.sase -i events.{ending} -b ts --tie-break n -o found.{written}".split()
    with session_with(classic_spark, **{"spark.sql.session.timeZone": zone}):
        done = CliRunner().invoke(app, [*command, *(["--in-process"] if place == "in process" else [])])
    assert done.exit_code == 0, done.stderr
    for name in SASE:
        assert answer(read_rows(name, written)) == expected(name), name

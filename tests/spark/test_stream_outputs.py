"""On streams, timeouts, compressed output and aggregates over all matches are those of tables."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="Spark's tester came after PySpark 4.0")

from test_stream import rows_of, run, some_events, stream_of, streaming, write_files

import kleene
from case_files import Case, check_rows_of_any_order, load, near
from flat_options import call_of
from kleene.api import prepare
from on_stream import Stream, buckets_of, matched_on_stream, task_of

__all__ = ["streaming"]

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")


@pytest.mark.parametrize("case", load("timeouts.toml"), ids=lambda case: case.name)
def test_timeouts_of_a_case(case: Case) -> None:
    call = call_of(kleene.sase(case.query).definition, **case.options, engine="generated")
    table, plan = prepare(call, case.inputs)
    stream, random, at = Stream(task_of(plan, table)), Random(case.name), 0
    buckets = buckets_of(plan, table)
    times = stream.task.times(table)
    while at < table.num_rows:
        end = at + random.randint(1, 4)
        stream.feed(table.slice(at, end - at), buckets[at:end])
        stream.watermark(stream.task.milliseconds(times[at:end].max().item()))
        at = end
    check_rows_of_any_order(case, near(stream.result().to_pylist()))


def test_timeouts_of_a_row_pattern_come_when_its_window_has_passed() -> None:
    clause = """PARTITION BY id ORDER BY t MEASURES A.t AS a, LAST(B.t) AS b, C.t AS c PATTERN (A B+ C) WITHIN 10
        DEFINE A AS type = 'A', B AS type = 'B', C AS type = 'C'"""
    call = call_of(kleene.match_recognize(clause).definition, timeouts=True, engine="generated")
    table = pa.table({"type": ["A", "B", "A", "B", "C"], "t": [1, 2, 3, 4, 5], "id": [7, 7, 8, 8, 8]})
    rows, plan = prepare(call, table)
    stream = Stream(task_of(plan, rows))
    stream.feed(rows)
    stream.watermark(10)
    assert [row["c"] for row in stream.result().to_pylist()] == [5]
    stream.watermark(11)
    assert stream.result().to_pylist()[1:] == [{"id": 7, "a": 1, "b": 2, "c": None, "timed_out": True}]


def random_events(random: Random, count: int) -> pa.Table:
    times = sorted(random.sample(range(70), count))
    kinds, ids = [random.choice("AABC") for _ in times], [random.randrange(3) for _ in times]
    values = [random.choice([1, 2, 3, None]) for _ in times]
    return pa.table({"type": kinds, "t": times, "id": ids, "x": pa.array(values, "int64"), "n": list(range(count))})


TEXTS = [
    "PATTERN SEQ(A+ a[], B b) WHERE [id] WITHIN 12",
    "PATTERN SEQ(A a, !(C c), B b) WHERE [id] WITHIN 12",
    "PATTERN SEQ(A+ a[], B b) WITHIN 7 HAVING count(a[]) > 1",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("per", ["event", 10, ["partition", 10]], ids=str)
def test_aggregates_are_those_of_the_whole(text: str, per: Any) -> None:
    query, random = kleene.sase(text), Random(text)
    asked = {"n": "count(*)", "total": "sum(a.x)", "most": "max(b.t)"}
    for _ in range(3):
        table = random_events(random, 30)
        options: dict[str, Any] = {"order_by": "t", "tie_break": "n"}
        call = call_of(query.definition, **options, aggregates=asked, per=per, engine="generated")
        rows, plan = prepare(call, table)
        plain = per != 10  # what all keys know of a window is added up in one bucket
        found = matched_on_stream(plan, rows, random) if plain else in_one_bucket(plan, rows, random)
        expected = query.aggregate(table, asked, per=per, **options)
        assert rows_of(found) == rows_of(expected)


def in_one_bucket(plan: Any, table: pa.Table, random: Random) -> pa.Table:
    stream, at = Stream(task_of(plan, table)), 0
    while at < table.num_rows:
        end = at + random.randint(1, 9)
        stream.feed(table.slice(at, end - at))
        stream.watermark(max(int(stream.task.times(table)[at:end].max()) - 1, 1))
        at = end
    return stream.end()


def test_a_window_comes_once_the_watermark_has_passed_it() -> None:
    call = call_of(
        kleene.sase("PATTERN SEQ(A a, B b) WITHIN 20 RETURN count(*) AS n").definition,
        order_by="t",
        per=10,
        is_over_all=True,
        engine="generated",
    )
    table, plan = prepare(call, pa.table({"type": ["A", "B", "B"], "t": [1, 2, 9]}))
    stream = Stream(task_of(plan, table))
    stream.feed(table)
    stream.watermark(9)
    assert stream.result().num_rows == 0
    stream.watermark(10)  # nothing comes but time
    assert stream.result().to_pylist() == [{"window_start": 0, "window_end": 10, "n": "2"}]


@pytest.mark.parametrize("text", TEXTS)
def test_compressed_output_expands_to_the_matches(text: str) -> None:
    query, random = kleene.sase(text), Random(text)
    table = random_events(random, 30)
    options: dict[str, Any] = {"order_by": "t", "tie_break": "n"}
    rows, plan = prepare(call_of(query.definition, **options, is_compressed=True, engine="generated"), table)
    found = matched_on_stream(plan, rows, random).to_pylist()
    assert expanded(found) == Counter(map(repr, query.match(table, **options).to_pylist()))
    assert len(found) == len(query.compressed(table, **options))


def expanded(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(match) for row in rows for match in kleene.expand(row["structure"]).to_pylist())


# --- on Spark itself


def test_all_of_them_on_spark(streaming: SparkSession, tmp_path: Path) -> None:
    events = some_events(count=80)
    write_files(events, tmp_path / "in", 1)
    stream, asked = stream_of(streaming, tmp_path / "in"), "count(*) AS n, sum(a.price) AS total"
    shelves = "PATTERN SEQ(Shelf+ a[], Exit b) WHERE skip_till_next_match(a[], b) { [id] } WITHIN 60 seconds"
    query, totals = kleene.sase(shelves), kleene.sase(f"{shelves} RETURN {asked}")
    found = run(
        {
            "windows": totals.aggregate(stream, per="1 minute", order_by="ts", engine="generated"),
            "compressed": query.compressed(stream, order_by="ts", engine="generated").drop("structure"),
            "timeouts": query.match(stream, order_by="ts", timeouts=True, match_id=True, engine="generated").selectExpr(
                "a[0].ts AS since", "b.ts AS until", "timed_out", "match_id"
            ),
        },
        tmp_path,
    )
    assert found["windows"] == rows_of(totals.aggregate(events, per="1 minute", order_by="ts"))
    compressed = query.compressed(events, order_by="ts").to_table()
    assert found["compressed"] == rows_of(compressed.drop_columns(["structure"]))
    closed = pa.concat_tables([events, far(events)])  # the file that ends the stream closes all windows
    rows = query.match(closed, order_by="ts", timeouts=True, match_id=True).to_pylist()
    assert found["timeouts"] == rows_of(
        pa.Table.from_pylist(
            [
                {
                    "since": row["a"][0]["ts"],
                    "until": row["b"] and row["b"]["ts"],
                    "timed_out": row["timed_out"],
                    "match_id": row["match_id"],
                }
                for row in rows
            ]
        )
    )


def far(events: pa.Table) -> pa.Table:
    last = events.slice(events.num_rows - 1).to_pylist()[0]
    late = {**last, "type": "Closing", "ts": last["ts"].replace(year=2030)}
    return pa.Table.from_pylist([late], schema=events.schema)


@pytest.mark.parametrize(("per", "words"), [(None, "aggregates over all matches"), ("partition", "over a key")])
def test_groups_that_never_end_are_refused(streaming: SparkSession, tmp_path: Path, per: Any, words: str) -> None:
    stream = stream_of(streaming, tmp_path)
    query = kleene.sase("PATTERN SEQ(Shelf a, Exit b) WHERE [id] WITHIN 60 seconds RETURN count(*) AS n")
    with pytest.raises(kleene.UnsupportedError, match=words) as caught:
        query.aggregate(stream, per=per, order_by="ts")
    assert "a stream has no end" in caught.value.message
    assert "per='1 hour'" in str(caught.value.hint)
    assert "windows of time have matches of all keys" in query.explain(stream, per="1 minute", order_by="ts")

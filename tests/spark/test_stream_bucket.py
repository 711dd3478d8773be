"""What a bucket of a stream holds, when it gives it out, and what it refuses; in Spark's tester, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="Spark's tester came after PySpark 4.0")

import kleene
from flat_options import call_of
from kleene.api import prepare
from kleene.spark.streaming.bucket import END_OF_TIME
from on_stream import Stream, matched_on_stream, task_of

PLAIN = {"engine": "generated"}


def events(*rows: tuple[str, int, int]) -> pa.Table:
    types, times, ids = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table({"type": pa.array(types, pa.string()), "t": pa.array(times, "int64"), "id": pa.array(ids, "int64")})


def sase_stream(text: str, timeouts: bool = False, in_arrival_order: bool = False, **options: object) -> Stream:
    call = call_of(kleene.sase(text).definition, order_by="t", timeouts=timeouts, **PLAIN, **options)
    table, plan = prepare(call, events())
    return Stream(task_of(plan, table, in_arrival_order))


def row_stream(clause: str) -> Stream:
    table, plan = prepare(call_of(kleene.match_recognize(clause).definition, **PLAIN), events())
    return Stream(task_of(plan, table))


def given_out(stream: Stream) -> list[tuple]:
    """What has come since the last time this was asked."""
    rows = [tuple(row.values()) for row in stream.result().to_pylist()]
    stream.rows = stream.rows[:1]
    return rows


UNPAID = "EVENT SEQ(Shelf a, !(Register r)) WHERE [id] WITHIN 100 RETURN a.id AS id, a.t AS t"
PAIR = "EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 100 RETURN a.t AS a, b.t AS b"


class TestEventTime:
    def test_events_wait_for_the_watermark_and_are_put_in_order(self) -> None:
        stream = sase_stream(PAIR)
        stream.feed(events(("Exit", 30, 1), ("Shelf", 10, 1)))
        assert given_out(stream) == []
        stream.watermark(29)
        assert given_out(stream) == []
        stream.watermark(30)
        assert given_out(stream) == [(10, 30)]

    def test_what_comes_behind_the_watermark_is_counted_and_left_out(self) -> None:
        stream = sase_stream(PAIR)
        stream.feed(events(("Shelf", 10, 1)))
        stream.watermark(20)
        stream.feed(events(("Shelf", 20, 1), ("Shelf", 21, 1), ("Exit", 40, 1)))
        stream.watermark(50)
        assert given_out(stream) == [(10, 40), (21, 40)]
        assert sum(told["late"] for told in stream.told) == 1

    def test_equal_times_are_decided_as_on_tables(self) -> None:
        stream = sase_stream("EVENT SEQ(Shelf a, Exit b) WITHIN 100 RETURN a.id AS a, b.id AS b")
        stream.feed(events(("Shelf", 10, 2), ("Exit", 10, 1)))
        # By type, the column behind the time: Exit, then Shelf.
        assert stream.end().num_rows == 0

    def test_times_before_1970_wait_for_a_watermark_like_all_others(self) -> None:
        stream = sase_stream(PAIR)
        stream.feed(events(("Exit", -10, 1)))
        stream.feed(events(("Shelf", -30, 1)))
        assert stream.end().to_pylist() == [{"a": -30, "b": -10}]


class TestSilence:
    def test_a_negation_at_the_end_is_reported_by_time_alone(self) -> None:
        stream = sase_stream(UNPAID)
        stream.feed(events(("Shelf", 10, 1), ("Shelf", 20, 2), ("Register", 50, 2)))
        stream.watermark(109)
        assert given_out(stream) == []
        stream.watermark(110)
        assert given_out(stream) == [(1, 10)]
        stream.watermark(1000)
        assert given_out(stream) == []

    def test_a_row_pattern_is_reported_when_its_window_has_closed(self) -> None:
        stream = row_stream(
            "PARTITION BY id ORDER BY t MEASURES COUNT(*) AS n PATTERN (A B*) WITHIN 100 DEFINE B AS type = 'Exit'"
        )
        stream.feed(events(("Shelf", 10, 1), ("Exit", 20, 1), ("Exit", 30, 1)))
        stream.watermark(109)
        assert given_out(stream) == []
        stream.watermark(110)
        assert given_out(stream) == [(1, 3)]

    def test_a_row_pattern_of_its_greatest_length_waits_for_nothing(self) -> None:
        stream = row_stream("ORDER BY t MEASURES COUNT(*) AS n PATTERN (A+) MAXLENGTH 2 DEFINE A AS type = 'Shelf'")
        stream.feed(events(("Shelf", 10, 1), ("Shelf", 20, 1)))
        stream.watermark(20)
        assert given_out(stream) == [(2,)]

    def test_next_waits_for_the_row_that_it_looks_at(self) -> None:
        stream = row_stream("ORDER BY t MEASURES A.t AS t PATTERN (A) DEFINE A AS NEXT(A.id) = 2")
        stream.feed(events(("Shelf", 10, 1)))
        stream.watermark(500)
        assert given_out(stream) == []
        stream.feed(events(("Shelf", 600, 2)))
        stream.watermark(600)
        assert given_out(stream) == [(10,)]


class TestState:
    def stands(self, stream: Stream) -> dict:
        return {name: stream.told[-1][name] for name in ("waiting", "runs", "kept", "bytes")}

    @pytest.mark.parametrize("text", [PAIR, UNPAID, PAIR.replace("Shelf a", "Shelf+ a[]").replace("a.t", "a[1].t")])
    def test_it_is_freed_when_windows_have_passed(self, text: str) -> None:
        stream = sase_stream(text)
        stream.feed(events(*(("Shelf", n, n) for n in range(1, 50))))
        stream.watermark(60)
        assert self.stands(stream)["bytes"] > 0
        stream.watermark(1000)
        assert self.stands(stream) == {"waiting": 0, "runs": 0, "kept": 0, "bytes": 0}
        assert stream.tester.peekValueState("engine", 0) is None

    def test_rows_of_a_key_are_freed(self) -> None:
        stream = row_stream("PARTITION BY id ORDER BY t MEASURES A.t AS t PATTERN (A B) DEFINE B AS B.t > A.t + 5")
        stream.feed(events(*(("Shelf", n, n % 7) for n in range(1, 50)), *(("Exit", 100, n) for n in range(7))))
        stream.watermark(99)
        assert self.stands(stream)["kept"] == 7
        stream.watermark(100)
        assert self.stands(stream)["bytes"] == 0

    @pytest.mark.parametrize("text", [PAIR, UNPAID])
    def test_it_does_not_grow_with_the_stream(self, text: str) -> None:
        stream, random, sizes = sase_stream(text), Random(3), []
        for step in range(40):
            kinds = [random.choice(["Shelf", "Exit", "Register", "Other"]) for _ in range(50)]
            stream.feed(
                events(*((kind, 50 * step + n, 1000 * step + random.randrange(9)) for n, kind in enumerate(kinds)))
            )
            stream.watermark(50 * step + 40)
            sizes.append(self.stands(stream)["bytes"])
        assert max(sizes[20:]) < 2 * max(sizes[5:20])

    def test_events_that_wait_do_not_rewrite_the_engine(self) -> None:
        stream = sase_stream(PAIR)
        stream.feed(events(("Shelf", 10, 1)))
        stream.watermark(20)
        before = stream.tester.peekValueState("engine", 0)
        stream.feed(events(("Shelf", 50, 2)))
        assert stream.tester.peekValueState("engine", 0) is before

    def test_few_events_do_not_rewrite_the_engine(self) -> None:
        """Keys of which nothing is heard are written anew only now and then."""
        stream = sase_stream("EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 100000 RETURN a.id AS id, b.t AS t")
        stream.feed(events(*(("Shelf", n, n) for n in range(1, 2000))))
        stream.watermark(2000)
        snapshots = []
        for time in range(2001, 2031):
            stream.feed(events(("Exit", time, time - 1500)))
            stream.watermark(time)
            snapshots.append(stream.tester.peekValueState("engine", 0)[0])
        assert given_out(stream) == [(time - 1500, time) for time in range(2001, 2031)]
        assert len({id(snapshot) for snapshot in snapshots}) in range(2, 6)

    def test_a_checkpoint_of_another_query_is_refused(self) -> None:
        stream = sase_stream(PAIR)
        stream.feed(events(("Shelf", 10, 1)))
        stream.task = replace(stream.task, fingerprint="another")
        stream.tester.processor._task = stream.task
        with pytest.raises(kleene.SnapshotError, match="written by another query, by other options") as error:
            stream.feed(events(("Shelf", 20, 1)))
        assert "start over with a new checkpoint and a new output" in str(error.value)

    def test_a_checkpoint_of_another_format_is_refused(self) -> None:
        stream = sase_stream(PAIR)
        stream.feed(events(("Shelf", 10, 1)))
        head = json.loads(stream.tester.peekValueState("head", 0)[0])
        stream.tester.updateValueState("head", 0, (json.dumps(head | {"format": 0}).encode(),))
        with pytest.raises(kleene.SnapshotError, match="written in format 0 of Kleene's state"):
            stream.feed(events(("Shelf", 20, 1)))


class TestArrival:
    def test_matches_come_at_once(self) -> None:
        stream = sase_stream(PAIR, in_arrival_order=True)
        stream.feed(events(("Shelf", 10, 1)))
        stream.feed(events(("Exit", 20, 1)))
        assert given_out(stream) == [(10, 20)]

    def test_an_event_that_comes_too_late_is_an_error(self) -> None:
        stream = sase_stream(PAIR, in_arrival_order=True)
        stream.feed(events(("Shelf", 10, 1)))
        with pytest.raises(kleene.ExecutionError, match="an event with t = 5 came after events of a later t") as error:
            stream.feed(events(("Exit", 5, 1)))
        assert "Use a watermark instead of the order of arrival" in str(error.value)


class TestTimeouts:
    def test_what_was_bound_is_given_out_when_the_window_has_passed(self) -> None:
        stream = sase_stream("EVENT SEQ(Shelf a, Register r, Exit b) WHERE [id] WITHIN 100", timeouts=True)
        stream.feed(
            events(("Shelf", 10, 1), ("Register", 20, 1), ("Shelf", 30, 2), ("Register", 40, 2), ("Exit", 50, 2))
        )
        stream.watermark(109)
        assert [row["timed_out"] for row in stream.result().to_pylist()] == [False]
        given_out(stream)
        stream.watermark(110)
        partial = stream.result().to_pylist()
        assert [(row["a"]["t"], row["r"] and row["r"]["t"], row["b"]) for row in partial] == [
            (10, None, None),
            (10, 20, None),
        ]
        assert [(row["match_start"], row["match_end"], row["timed_out"]) for row in partial] == [
            (10, 10, True),
            (10, 20, True),
        ]

    def test_values_of_variables_that_are_not_bound_are_null(self) -> None:
        text = """PATTERN SEQ(Shelf+ a[], Exit b) WHERE skip_till_next_match(a[], b) { [id] } WITHIN 100
            RETURN count(a[]) AS n, a[1].t AS since, b.t AS until"""
        stream = sase_stream(text, timeouts=True)
        stream.feed(events(("Shelf", 10, 1), ("Shelf", 20, 1), ("Shelf", 150, 1), ("Exit", 200, 1)))
        rows = [tuple(row.values()) for row in stream.end().to_pylist()]
        assert sorted(rows, key=str) == [
            (1, 150, 200, False),
            (1, 150, None, True),  # a run of a Kleene variable goes on beside the one that proceeds
            (1, 20, None, True),
            (2, 10, None, True),
        ]

    @pytest.mark.parametrize("seed", range(5))
    def test_they_are_the_same_however_the_stream_is_cut(self, seed: int) -> None:
        random = Random(seed)
        rows = [(random.choice(["A", "B", "C", "X"]), 3 * n, random.randrange(2)) for n in range(40)]
        text = "EVENT SEQ(A a, B b, C c) WHERE [id] WITHIN 30 RETURN a.t AS a, b.t AS b"
        found = []
        for cut in (40, 7, 3):
            stream = sase_stream(text, timeouts=True)
            for begin in range(0, 40, cut):
                stream.feed(events(*rows[begin : begin + cut]))
                stream.watermark(rows[min(begin + cut, 40) - 1][1])
            found.append(sorted(map(str, stream.end().to_pylist())))
        assert found[0]
        assert found[0] == found[1] == found[2]


def test_a_stream_is_over_in_the_year_9999() -> None:
    table = events(("Shelf", 10, 1), ("Shelf", 20, 1))
    query = kleene.match_recognize("ORDER BY t MEASURES COUNT(*) AS n PATTERN (A+) DEFINE A AS TRUE")
    _, plan = prepare(call_of(query.definition, **PLAIN), table)
    stream = Stream(task_of(plan, table))
    stream.feed(table)
    stream.watermark(END_OF_TIME - 1)
    assert given_out(stream) == []
    assert stream.end().to_pylist() == [{"n": 2}]
    assert matched_on_stream(plan, table, Random(0)).to_pylist() == [{"n": 2}]


def test_match_limit_is_that_of_a_micro_batch() -> None:
    stream = sase_stream(PAIR, match_limit=2)
    stream.feed(events(("Shelf", 1, 1), ("Exit", 2, 1), ("Exit", 3, 1)))
    stream.watermark(3)
    assert given_out(stream) == [(1, 2), (1, 3)]
    stream.feed(events(("Exit", 4, 1), ("Exit", 5, 1)))
    stream.watermark(5)
    assert given_out(stream) == [(1, 4), (1, 5)]
    stream.feed(events(("Exit", 6, 1), ("Exit", 7, 1), ("Exit", 8, 1)))
    with pytest.raises(kleene.LimitError, match="match limit of 2"):
        stream.watermark(8)

"""Streams in pieces: what is held is bounded, what is saved can be restored, and what is not ours is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kleene
from agreement import outcome, same_result, sase_examples
from flat_options import arguments, call_of
from kleene.api import prepare
from kleene.engine.compiled import buffer, run_engine
from kleene.engine.run import Runner

PAIR = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10 RETURN a.n AS a, b.n AS b"


def stream(count: int, keys: int = 3, seed: int = 1) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "type": chance.choice(["A", "B", "C"], count),
            "t": np.arange(count),
            "id": chance.integers(0, keys, count),
            "x": chance.integers(0, 5, count),
            "n": np.arange(count),
        }
    )


def pieces(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(begin, size) for begin in range(0, table.num_rows, size)]


@pytest.mark.parametrize(
    "text",
    [
        PAIR,
        "PATTERN SEQ(A a, !(C c), B b) WHERE skip_till_next_match(a, b) { [id] } WITHIN 20",
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) { [id] AND a[i].x > a[i-1].x } WITHIN 25",
        "PATTERN SEQ(A a, B b, !(C c)) WHERE [id] WITHIN 15",
    ],
)
@pytest.mark.parametrize("algorithm", ["basic", "merge"])
def test_what_is_held_does_not_grow_with_the_input(text: str, algorithm: str) -> None:
    table = stream(3_000)
    query = kleene.sase(text)
    progress = query.progress(table, order_by="t", engine=kleene.EngineOptions("generated", algorithm=algorithm))
    held, rows = [], 0
    for piece in pieces(table, 100):
        rows += progress.feed(piece).num_rows
        engine = progress._progress._engine
        held.append(len(engine.kept) + engine.runs + int(engine.buffer.counts[3]))
    assert max(held[15:]) <= 2 * max(held[:15])
    assert rows + progress.finish().num_rows == query.match(table, order_by="t", engine="reference").num_rows


def test_partitions_that_have_nothing_open_are_forgotten() -> None:
    table = stream(2_000, keys=1_000_000)
    progress = kleene.sase(PAIR).progress(table, order_by="t", engine="generated")
    for piece in pieces(table, 200):
        progress.feed(piece)
    assert len(progress._progress._engine.partitions) < 20


@pytest.mark.parametrize("room", [2, 3, 8])
@pytest.mark.parametrize("algorithm", ["basic", "merge"])
def test_freed_places_of_the_buffer_are_used_again(monkeypatch: pytest.MonkeyPatch, room: int, algorithm: str) -> None:
    monkeypatch.setattr(run_engine, "ROOM", room)
    monkeypatch.setattr(buffer, "ROOM", room)
    table = stream(400, keys=2)
    text = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [id] AND a[i].x >= a[i-1].x } WITHIN 30"
    query = kleene.sase(text)
    found = query.match(table, order_by="t", engine=kleene.EngineOptions("generated", algorithm=algorithm))
    assert found.equals(query.match(table, order_by="t", engine="reference"))
    assert found.num_rows > 100


@pytest.mark.parametrize("algorithm", ["basic", "backtrack"])
def test_too_many_runs_are_an_error_that_names_the_partition(algorithm: str) -> None:
    table = pa.table({"type": ["A"] * 50, "t": range(50), "id": [7] * 50})
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) { [id] }")
    with pytest.raises(kleene.ExecutionError, match="id = 7 has more than 100 partial matches"):
        query.match(table, order_by="t", engine=kleene.EngineOptions("generated", algorithm=algorithm, run_limit=100))


def test_merged_runs_that_complete_too_many_matches_are_an_error_too() -> None:
    table = pa.table({"type": ["A"] * 50 + ["B"], "t": range(51), "id": [7] * 51})
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) { [id] }")
    with pytest.raises(kleene.ExecutionError, match="id = 7 completes more than 100 matches"):
        query.match(table, order_by="t", engine=kleene.EngineOptions("generated", run_limit=100))
    assert (
        query.compressed(table, order_by="t", engine=kleene.EngineOptions("generated", run_limit=100)).count()
        == 2**50 - 1
    )


def test_a_limit_that_only_the_interpreter_meets_is_no_error() -> None:
    few = pa.table({"type": ["A"] * 40, "t": range(40)})
    assert (
        kleene.sase("PATTERN SEQ(A+ a[], B b)")
        .match(few, order_by="t", engine=kleene.EngineOptions(run_limit=1_000))
        .num_rows
        == 0
    )
    clause = "ORDER BY t MEASURES count(*) AS n PATTERN ((A | A A)* B) DEFINE A AS t >= 0, B AS t < 0"
    assert (
        kleene.match_recognize(clause)
        .match(few.drop_columns(["type"]), engine=kleene.EngineOptions(run_limit=1_000))
        .num_rows
        == 0
    )


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["auto", "basic"])
def test_a_large_table_goes_through_in_pieces(monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    monkeypatch.setattr(run_engine, "PIECE", 2)
    for (text, options), table in sase_examples(60, seed=91):
        query = kleene.sase(text)
        expected = outcome(lambda query=query, table=table, options=options: query.match(table, **options))
        ways = {"engine": "generated", "algorithm": algorithm, **options}
        assert same_result(
            expected, outcome(lambda query=query, table=table, ways=ways: query.match(table, **arguments(ways)))
        )


def test_a_large_table_of_keys_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    # As Spark's tasks have them. The times of the first key are no reason to drop runs of the second.
    monkeypatch.setattr(run_engine, "PIECE", 4)
    table = pa.table({"type": ["A", "B"] * 8, "k": [1] * 9 + [2] * 7, "t": [*range(9), *range(7)]})
    definition = kleene.sase("EVENT SEQ(A a, B b) WHERE [k] WITHIN 4").definition
    _, plan = prepare(call_of(definition, order_by="t", engine="generated", plan={"operators": "nfa"}), table)
    found = Runner(plan).find(table)
    firsts, lasts = (rows.tolist() for rows in (found.first, found.last))
    pairs = [(a, b) for a in range(0, 16, 2) for b in (a + 1, a + 3) if b < 16 and (a < 9) == (b < 9)]
    assert sorted(zip(firsts, lasts, strict=True)) == pairs


class TestSnapshots:
    @pytest.fixture
    def snapshot(self) -> bytes:
        progress = kleene.sase(PAIR).progress(stream(40), order_by="t", engine="generated")
        progress.feed(stream(40))
        return progress.snapshot()

    def restored(self, snapshot: object, text: str = PAIR, **options: object) -> kleene.Progress:
        options = {"order_by": "t", "engine": "generated"} | options
        return kleene.sase(text).progress(stream(40), snapshot=snapshot, **arguments(options))

    def test_it_goes_on_where_it_was(self, snapshot: bytes) -> None:
        later = pa.table({"type": ["B"], "t": [41], "id": [0], "x": [0], "n": [41]})
        whole = kleene.sase(PAIR).match(pa.concat_tables([stream(40), later]), order_by="t").to_pylist()
        expected = [row for row in whole if row["b"] == 41]
        assert expected
        assert self.restored(snapshot).feed(later).to_pylist() == expected

    @pytest.mark.parametrize("end", [0, 5, 20, 60, -1])
    def test_truncated(self, snapshot: bytes, end: int) -> None:
        with pytest.raises(kleene.SnapshotError):
            self.restored(snapshot[:end])

    @pytest.mark.parametrize("at", [0, 8, 9, 30, 100, -50])
    def test_a_flipped_bit(self, snapshot: bytes, at: int) -> None:
        damaged = bytearray(snapshot)
        damaged[at] ^= 1
        with pytest.raises(kleene.SnapshotError):
            self.restored(bytes(damaged))

    def test_another_format(self, snapshot: bytes) -> None:
        with pytest.raises(kleene.SnapshotError, match="format 258, but this version reads format 3"):
            self.restored(snapshot[:8] + b"\x02\x01" + snapshot[10:])

    def test_another_query(self, snapshot: bytes) -> None:
        with pytest.raises(kleene.SnapshotError, match="belongs to another query"):
            self.restored(snapshot, PAIR.replace("WITHIN 10", "WITHIN 11"))

    def test_other_options(self, snapshot: bytes) -> None:
        with pytest.raises(kleene.SnapshotError, match="or other options"):
            self.restored(snapshot, format="non_overlapping")

    def test_not_bytes(self) -> None:
        with pytest.raises(kleene.SnapshotError, match="a snapshot is bytes"):
            self.restored("KLEENE")


def test_nothing_is_fed_after_the_end() -> None:
    progress = kleene.sase(PAIR).progress(stream(3), order_by="t", engine="generated")
    progress.finish()
    with pytest.raises(kleene.UnsupportedError, match="the stream has ended"):
        progress.feed(stream(3))


def test_an_event_from_before_the_last_piece_is_refused() -> None:
    progress = kleene.sase(PAIR).progress(stream(3), order_by="t", engine="generated")
    progress.feed(stream(10).slice(5))
    with pytest.raises(kleene.ExecutionError, match="an event is earlier, by the column 't', than events of"):
        progress.feed(stream(10).slice(0, 3))


def test_a_row_pattern_waits_for_the_rows_that_may_change_it() -> None:
    query = kleene.match_recognize("ORDER BY t MEASURES FIRST(t) AS a, LAST(t) AS b PATTERN (A+) DEFINE A AS x > 0")
    rows = pa.table({"t": [1, 2, 3, 4], "x": [1, 1, 0, 1]})
    progress = query.progress(rows, engine="generated")
    given = [progress.feed(rows.slice(n, 1)).to_pylist() for n in range(4)]
    assert given == [[], [], [{"a": 1, "b": 2}], []]
    assert progress.finish().to_pylist() == [{"a": 4, "b": 4}]


def test_strings_that_are_all_null_so_far_are_no_error() -> None:
    table = pa.table({"t": [1, 2, 3], "s": pa.array([None, None, "x"], pa.string())})
    query = kleene.regex(pattern="a a a", order_by="t", predicates={"a": "t > 0"}, output={"s": "Max(s)"})
    progress = query.progress(table, engine="generated")
    parts = [progress.feed(table.slice(at, 1)) for at in range(3)]
    assert pa.concat_tables([*parts, progress.finish()]).to_pylist() == [{"s": "x"}]

"""Limits of memory, matches and time; and results that leave in batches."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import kleene
from agreement import tiny_blocks
from flat_options import arguments
from kleene.engine import budget, spilling
from kleene.engine.budget import Budget
from kleene.engine.compiled import programs, run_engine
from kleene.engine.compiled.failures import GaveUpError
from kleene.engine.matches import FlatMatches, whole_events
from kleene.engine.spilling import PLACE, ByPlace, Sorter
from kleene.ir import expr as ir
from kleene.options.limits import Limits
from kleene.schema import INTEGER

KLEENE = kleene.sase("PATTERN SEQ(A+ a[], B b) RETURN count(a[]) AS n, b.t AS t")
PAIRS = kleene.sase("PATTERN SEQ(A a, A b) RETURN a.t AS a, b.t AS b")
ROWS = kleene.match_recognize("ORDER BY t MEASURES COUNT(*) AS n, LAST(A.t) AS last ALL MATCHES PATTERN (A+)")
REGEX = kleene.regex(pattern="a b", order_by="t", predicates={"a": "t >= 0", "b": "t > 0"}, output={"n": "Count()"})


def events(count: int, last: str = "A") -> pa.Table:
    return pa.table({"type": ["A"] * (count - 1) + [last], "t": range(count)})


QUERIES = {
    "runs": (KLEENE, events(12, "B"), {"order_by": "t"}),
    "sequences": (PAIRS, events(60), {"order_by": "t"}),
    "rows": (ROWS, events(40), {}),
    "regex": (REGEX, events(40), {}),
}


@pytest.mark.parametrize("engine", ["generated", "reference"])
@pytest.mark.parametrize("name", QUERIES)
def test_match_limit_names_itself_and_how_far_the_call_came(name: str, engine: str) -> None:
    query, table, options = QUERIES[name]
    with pytest.raises(kleene.LimitError, match=r"the match limit of 3; it had reached event [\d,]+ of "):
        query.match(table, engine=kleene.EngineOptions(engine, match_limit=3), **options)
    found = query.match(table, engine=engine, **options).num_rows
    assert query.match(table, engine=kleene.EngineOptions(engine, match_limit=found), **options).num_rows == found


@pytest.mark.parametrize("engine", ["generated", "reference"])
@pytest.mark.parametrize("name", QUERIES)
def test_time_limit_ends_the_call(name: str, engine: str) -> None:
    query, table, options = QUERIES[name]
    with pytest.raises(kleene.LimitError, match="longer than its time limit of 1e-07 seconds"):
        query.match(table, engine=kleene.EngineOptions(engine, time_limit=1e-7), **options)


@pytest.mark.parametrize("name", ["runs", "sequences", "rows"])
def test_memory_limit_says_what_grew(name: str) -> None:
    query, table, options = QUERIES[name]
    table = events(17, "B") if name == "runs" else events(400)
    with pytest.raises(
        kleene.LimitError, match=r"memory limit of 1\.\d MB: .* would take \d+\.\d MB; it had reached event"
    ):
        query.match(table, engine=kleene.EngineOptions("generated", memory_limit=1 << 20), **options)


def test_result_counts_towards_the_memory_limit(monkeypatch) -> None:
    monkeypatch.setattr(budget, "_LEAST_AT_ONCE", 1 << 12)
    with pytest.raises(kleene.LimitError, match="its result alone would take"):
        PAIRS.match(events(500), order_by="t", engine=kleene.EngineOptions("generated", memory_limit="1.5 MB"))
    rows = sum(
        part.num_rows
        for part in PAIRS.match_batches(
            events(500), order_by="t", engine=kleene.EngineOptions("generated", memory_limit="1.5 MB")
        )
    )
    assert rows == 500 * 499 // 2


def test_matches_that_end_at_one_event_are_counted_before_they_are_made(monkeypatch) -> None:
    made = []
    monkeypatch.setattr(run_engine, "judged", lambda piece, found, *more: made.append(len(found)))
    with pytest.raises(kleene.LimitError, match="completes more than 20,000 matches"):
        KLEENE.match(events(60, "B"), order_by="t", engine=kleene.EngineOptions("generated", run_limit=20_000))
    assert sum(made) == 0


def test_matches_of_one_event_that_do_not_fit_are_not_made() -> None:
    with pytest.raises(kleene.LimitError, match=r"all matches that end at one event alone would take 21\.0 MB"):
        KLEENE.match(events(19, "B"), order_by="t", engine=kleene.EngineOptions("generated", memory_limit="9 MB"))


def test_making_machine_code_is_within_the_time_limit(monkeypatch) -> None:
    monkeypatch.setattr(programs, "load", lambda *_: time.sleep(2))
    query = kleene.sase("PATTERN SEQ(A a, B b, C c) WHERE a.t + 17 < c.t")
    with pytest.raises(kleene.LimitError, match=r"time limit of 0\.01 seconds while machine code was being made"):
        query.match(events(20), order_by="t", engine=kleene.EngineOptions("compiled", time_limit=0.01))


def test_a_limit_on_a_stream_is_that_of_a_piece() -> None:
    progress = PAIRS.progress(events(1), order_by="t", engine=kleene.EngineOptions("generated", match_limit=10))
    assert progress.feed(events(5)).num_rows == 10
    with pytest.raises(kleene.LimitError, match="match limit of 10"):
        progress.feed(pa.table({"type": ["A"] * 3, "t": [5, 6, 7]}))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"memory_limit": "2 XB"}, "memory_limit is a number of bytes"),
        ({"memory_limit": 12}, "from 1,000,000 up"),
        ({"memory_limit": True}, "True was given"),
        ({"match_limit": 0}, "match_limit is a whole number from 1 up"),
        ({"match_limit": 2.5}, "2.5 was given"),
        ({"time_limit": -1}, "time_limit is a number of seconds above 0"),
        ({"time_limit": float("nan")}, "nan was given"),
        ({"time_limit": "1s"}, "'1s' was given"),
    ],
)
def test_wrong_limits_are_refused(given: dict[str, object], says: str) -> None:
    with pytest.raises(kleene.UnsupportedError, match=says):
        PAIRS.match(events(3), **arguments({"order_by": "t", **given}))


def test_memory_that_the_process_may_use_follows_its_limits(monkeypatch) -> None:
    whole = budget.available_memory()
    assert whole > 1 << 28
    monkeypatch.setattr(budget, "_of_control_group", lambda: [1 << 27])
    assert Budget(Limits()).memory == 1 << 26


# ---- batches


def test_batches_are_the_rows_of_match_in_their_order() -> None:
    chance = random.Random(5)
    table = pa.table(
        {"type": chance.choices("AAB", k=40), "t": range(40), "id": chance.choices(range(3), k=40)},
    )
    query = kleene.sase("PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) { [id] } WITHIN 25")
    whole = query.match(table, order_by="t", match_id=True)
    assert whole.num_rows > 200
    with tiny_blocks():
        for engine in ("generated", "reference"):
            found = query.match_batches(table, order_by="t", match_id=True, engine=engine)
            assert found.schema == whole.schema
            assert found.read_all().to_pylist() == whole.to_pylist()


def test_batches_of_no_rows_have_a_schema() -> None:
    found = PAIRS.match_batches(events(1), order_by="t")
    assert found.schema.names == ["a", "b"]
    assert found.read_all().num_rows == 0


def test_an_error_reaches_whoever_reads_the_batches() -> None:
    with pytest.raises(kleene.LimitError, match="match limit of 2"):
        PAIRS.match_batches(events(9), order_by="t", engine=kleene.EngineOptions(match_limit=2)).read_all()


def test_batches_are_for_events_in_this_process() -> None:
    with pytest.raises(kleene.SchemaError, match="sets its own order"):
        ROWS.match_batches(events(3), order_by="t")


def test_what_the_interpreter_must_decide_late_is_not_given_out_twice(monkeypatch) -> None:
    expected = KLEENE.match(events(6, "B"), order_by="t", engine="reference")
    table = pa.concat_tables([events(6, "B"), events(6, "B")]).set_column(1, "t", pa.array(range(12)))
    whole = KLEENE.match(table, order_by="t", engine="reference")
    judged, calls = run_engine.judged, []

    def gives_up(piece, found, *more):
        calls.append(len(found))
        if len(calls) == 2:
            raise GaveUpError(ir.Literal(1, INTEGER))
        return judged(piece, found, *more)

    monkeypatch.setattr(run_engine, "judged", gives_up)
    with tiny_blocks():
        assert KLEENE.match_batches(table, order_by="t", engine="generated").read_all().equals(whole)
    assert calls[0] == expected.num_rows


# ---- parts


def test_matches_of_an_event_stay_together_however_they_are_cut() -> None:
    chance = random.Random(3)
    ends = sorted(chance.choices(range(8), k=60))
    whole = FlatMatches(np.arange(61) * 2, np.ones((60, 2), np.int64), np.array([[0, end] for end in ends]).ravel())
    cuts = [0, *sorted(chance.choices(range(61), k=12)), 60]
    cut = [(whole[a:b], np.arange(a, b)) for a, b in pairwise(cuts)]
    parts = list(whole_events(cut))
    assert np.concatenate([values for _, values in parts]).tolist() == list(range(60))
    assert [end for part, _ in parts for end in part.last.tolist()] == ends
    seen = [set(part.last.tolist()) for part, _ in parts]
    assert all(not one & other for one, other in pairwise(seen))


@pytest.mark.parametrize("most_bytes", [1, 200, 1 << 20])
def test_sorter_keeps_equal_rows_as_they_came(monkeypatch, most_bytes: int) -> None:
    monkeypatch.setattr(spilling, "MOST_RUNS", 4)
    chance, sorter, expected = random.Random(most_bytes), Sorter(ByPlace(), most_bytes), []
    for part in range(30):
        numbers = sorted(chance.choices(range(12), k=chance.randrange(9)))
        rows = [f"{part}-{place}" for place in range(len(numbers))]
        expected += zip(numbers, rows, strict=True)
        sorter.add(pa.table({"row": pa.array(rows, pa.string()), PLACE: pa.array(numbers, pa.int64())}))
    found = [row for table in sorter.tables() for row in table.column("row").to_pylist()]
    assert found == [row for _, row in sorted(expected, key=lambda item: item[0])]
    assert sorter.is_empty


def test_a_full_disk_is_a_sentence(monkeypatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spilling.tempfile, "TemporaryFile", full)
    sorter = Sorter(ByPlace(), 1)
    with pytest.raises(kleene.ExecutionError, match=r"cannot be written to disk: .*No space left"):
        sorter.add(pa.table({"x": [1], PLACE: [1]}))


def test_sorter_holds_a_part_of_what_lies_on_disk() -> None:
    sorter = Sorter(ByPlace(), 1 << 16)
    for part in range(40):
        sorter.add(pa.table({"text": ["x" * 500] * 150, PLACE: np.arange(150) * 40 + part}))
        assert len(sorter._runs) < spilling.MOST_RUNS
        assert all(run.table is None for run in sorter._runs)
    sizes = [table.nbytes for table in sorter.tables()]
    assert sum(sizes) >= 40 * 150 * 500
    assert max(sizes) < 1 << 18


# ---- what a limit must see


@pytest.mark.parametrize("engine", ["generated", "reference"])
def test_time_limit_holds_while_rows_are_made(engine: str) -> None:
    query = kleene.match_recognize("ORDER BY t MEASURES median(t + 1) AS z ALL ROWS PER MATCH PATTERN (A+)")
    with pytest.raises(kleene.LimitError, match=r"time limit of 0\.5 seconds"):
        query.match(events(1_500), engine=kleene.EngineOptions(engine, time_limit=0.5))


@pytest.mark.slow
def test_time_limit_holds_while_matches_are_judged() -> None:
    table = pa.table({"type": ["A"] * 200 + ["N"] * 800 + ["B"] * 200, "t": range(1200), "x": [1] * 1200})
    query = kleene.sase("PATTERN SEQ(A a, !(N n), B b) WHERE n.x = a.x + b.x + 100")
    with pytest.raises(kleene.LimitError, match=r"time limit of 0\.3 seconds"):
        query.match(table, order_by="t", engine=kleene.EngineOptions("generated", time_limit=0.3))


TOGETHER = {"order_by": "t", "engine": "generated", "memory_limit": "1 MB"}


def test_matches_to_choose_from_count_towards_the_memory_limit() -> None:
    options = {"algorithm": "backtrack", "format": "non_overlapping", "run_limit": 10**9}
    with pytest.raises(kleene.LimitError, match="memory limit"):
        KLEENE.match(events(16, "B"), **arguments({**TOGETHER, **options}))


def test_matches_that_wait_count_towards_the_memory_limit() -> None:
    query = kleene.sase("PATTERN SEQ(A+ a[], B b, !(C c)) WITHIN 100")
    progress = query.progress(events(1), **arguments(TOGETHER))
    with pytest.raises(kleene.LimitError, match="memory limit"):
        progress.feed(events(16, "B"))


def test_large_values_make_small_batches() -> None:
    table = pa.table({"type": ["A"] * 60, "t": range(60), "s": ["x" * 50_000] * 60})
    query = kleene.sase("PATTERN SEQ(A a, A b) RETURN a.s || b.s AS s")
    sizes = [batch.num_rows for batch in query.match_batches(table, order_by="t", engine="generated")]
    assert sum(sizes) == 60 * 59 // 2
    assert max(sizes[1:]) < 400


@pytest.mark.parametrize("engine", ["generated", "compiled"])
def test_negation_at_the_end_in_pieces(engine: str) -> None:
    table = pa.table({"type": list("BCBC"), "t": [1, 2, 3, 9], "k": [1, 1, 2, 2], "n": [0, 1, 2, 3]})
    query = kleene.sase("""
        PATTERN SEQ(B a, C b, !(B y)) WHERE skip_till_next_match(a, b) { [k] } WITHIN 3 RETURN a.n AS n""")
    progress = query.progress(table, order_by="t", engine=engine)
    parts = [progress.feed(table.slice(0, 2)), progress.feed(table.slice(2, 2)), progress.finish()]
    assert pa.concat_tables(parts).to_pylist() == query.match(table, order_by="t", engine="reference").to_pylist()

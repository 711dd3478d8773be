"""The shared versioned buffer, merged runs, compressed output, and what failed starts share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import kleene
from agreement import as_set, same_result, sase_examples
from kleene.analysis.analyze import analyze
from kleene.engine.compiled import row_search
from kleene.engine.compiled.arrays.versions import VERSION_DIGIT, VERSION_PREFIX
from kleene.engine.compiled.run_engine import RunEngine, RunProgress
from kleene.engine.inputs import OrderKey, read_events

# Query 3 of SASE+ 2008 on the events of its Figure 3, as far as they can be read from it.
QUERY_3 = """PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) { [symbol] AND a[1].volume > 1000
AND a[i].price > avg(a[..i-1].price) AND b.volume < 80%*a[a.LEN].volume } WITHIN 1 hour"""


def version_text(label, version):
    """A version as the Dewey number that it is: 3.0.2."""
    digits = []
    while label >= 0:
        digits.append(str(int(version[label, VERSION_DIGIT])))
        label = int(version[label, VERSION_PREFIX])
    return ".".join(reversed(digits))


def stocks(prices: list[int], volumes: list[int]) -> pa.Table:
    times = pa.array([60_000_000 * number for number in range(len(prices))], pa.timestamp("us"))
    return pa.table({"symbol": ["G"] * len(prices), "t": times, "price": prices, "volume": volumes})


def progress_of(text: str, table: pa.Table, algorithm: str) -> tuple[RunProgress, pa.Table]:
    whole, schema = read_events(table, OrderKey(("t",)), "type")
    engine = RunEngine(analyze(kleene.sase(text).definition, schema, ("t",)), algorithm, jit=False, run_limit=1000)
    return engine.start(), whole


def test_one_node_for_an_event_in_a_state_whatever_runs_select_it() -> None:
    table = stocks([100, 120, 120, 121, 120, 125, 120], [1010, 990, 1005, 999, 999, 750, 950])
    progress, whole = progress_of(QUERY_3, table, "basic")
    list(progress.feed(whole))
    buffer = progress.buffer
    nodes = [(int(row), int(component)) for row, component in buffer.node[: buffer.counts[3], :2]]
    assert len(set(nodes)) == len(nodes)
    assert buffer.counts[4] > buffer.counts[3], "several runs share nodes, each by an edge of its own"


def test_versions_are_dewey_numbers_that_tell_runs_apart() -> None:
    table = pa.table({"type": list("AABB"), "t": range(4), "x": [1, 2, 3, 4]})
    progress, whole = progress_of("PATTERN SEQ(A a, B+ b[], C c)", table, "basic")
    list(progress.feed(whole))
    runs = progress.runs
    versions = [version_text(int(label), progress.buffer.version) for label in progress.buffer.stored.i[:runs, 2]]
    assert len(set(versions)) == runs == 8
    assert {len(version.split(".")) for version in versions} == {1, 2}, "a digit for each state that was entered"


@pytest.mark.parametrize(
    ("predicate", "runs"),
    [
        ("", 2),  # all runs of a state are equal
        ("AND a[i].x > a[i-1].x", 4),  # as many as there are last values, here 3
        ("AND a[i].x > min(a[..i-1].x)", 4),
        ("AND b.x > a[1].x", 4),
    ],
)
def test_runs_merge_when_they_agree_in_what_is_still_read(predicate: str, runs: int) -> None:
    table = pa.table({"type": ["A"] * 30, "t": range(30), "x": [0, 1, 2] * 10})
    text = f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) {{ a[1].x >= 0 {predicate} }}"
    progress, whole = progress_of(text, table, "merge")
    list(progress.feed(whole))
    assert progress.runs <= runs


class TestCompressed:
    @pytest.mark.slow
    @pytest.mark.parametrize("algorithm", ["auto", "basic"])
    def test_it_holds_the_matches_of_verbose_mode(self, algorithm: str) -> None:
        seen = 0
        for (text, options), table in sase_examples(60, seed=11):
            if options["format"] != "all":
                continue
            query = kleene.sase(text)
            verbose = query.match(table, engine="generated", **options)
            found = query.compressed(table, engine=kleene.EngineOptions("generated", algorithm=algorithm), order_by="t")
            assert found.count() == sum(found.counts()) == verbose.num_rows
            assert same_result(found.expand(), verbose)
            assert sorted(map(repr, found.matches())) == as_set(verbose)
            rows = found.to_table().to_pylist()
            structures = [kleene.expand(row["structure"]) for row in rows]
            assert [part.num_rows for part in structures] == found.counts() == [int(r["match_count"]) for r in rows]
            assert sorted(repr(row) for part in structures for row in part.to_pylist()) == as_set(verbose)
            seen += len(found)
        assert seen > 30

    def test_counts_beyond_64_bits_are_exact(self) -> None:
        table = pa.table({"type": ["A"] * 200 + ["B"], "t": range(201)})
        query = kleene.sase("PATTERN SEQ(A+ a[], B b)")
        found = query.compressed(table, order_by="t", engine="generated")
        assert found.count() == 2**200 - 1
        assert len(found) == 1
        assert int(found.to_table().column("match_count")[0].as_py()) == 2**200 - 1

    def test_large_counts_within_a_window_leave_out_what_has_left_it(self) -> None:
        table = pa.table({"type": ["A"] * 100 + ["B"], "t": range(101)})
        found = kleene.sase("PATTERN SEQ(A+ a[], B b) WITHIN 71").compressed(table, order_by="t", engine="generated")
        assert found.count() == 2**70 - 1

    def test_matches_are_made_as_they_are_asked_for(self) -> None:
        table = pa.table({"type": ["A"] * 500 + ["B"], "t": range(501)})
        found = kleene.sase("PATTERN SEQ(A+ a[], B b)").compressed(table, order_by="t", engine="generated")
        matches = found[0].matches()
        assert len({repr(next(matches)) for _ in range(20)}) == 20

    def test_what_it_cannot_hold_is_refused(self) -> None:
        table = pa.table({"type": ["A"], "t": [1]})
        with pytest.raises(kleene.UnsupportedError, match="all matches of an event together"):
            kleene.sase("EVENT A a").explain(table, order_by="t", format="non_overlapping", compressed=True)
        with pytest.raises(kleene.UnsupportedError, match="for SASE queries"):
            kleene.match_recognize("ORDER BY t MEASURES t AS t PATTERN (A)").compressed(table)
        with pytest.raises(kleene.SnapshotError):
            kleene.expand(b"nothing")


class _Counted:
    """An array that counts how often it is read."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.reads = array, 0

    def __getitem__(self, index: int) -> int:
        self.reads += 1
        return self.array[index]


@pytest.mark.parametrize("pattern", ["A+ B+", "A* B* C* D* E* Z", "A+? B", "(A | A A)* Z"])
def test_a_state_that_failed_at_a_row_is_not_tried_there_again(monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    """The steps grow with the rows, not with their square, though every row is a start."""
    last = pattern.strip("+")[-1]
    clause = f"ORDER BY t MEASURES count(*) AS n PATTERN ({pattern}) DEFINE A AS x = 1, {last} AS x = 2"
    query = kleene.match_recognize(clause)
    counted: list[_Counted] = []

    def make_tables(automaton: object) -> object:
        tables = row_code_tables(automaton)
        counted.append(_Counted(tables.edge_target))
        return tables.__class__(tables.edge_begin, counted[-1], *_rest(tables))

    from kleene.engine.compiled import row_code

    row_code_tables = row_code.make_tables
    monkeypatch.setattr(row_code, "make_tables", make_tables)
    reads = []
    for rows in (100, 1_000):
        table = pa.table({"t": range(rows), "x": [1] * rows})
        assert query.match(table, engine="generated").num_rows == 0
        reads.append(sum(item.reads for item in counted))
        counted.clear()
    assert reads[1] <= 12 * reads[0]
    assert row_search.ROOM < 10_000


def _rest(tables: object) -> list[object]:
    names = [name for name in tables.__slots__ if name not in ("edge_begin", "edge_target")]
    return [getattr(tables, name) for name in names]

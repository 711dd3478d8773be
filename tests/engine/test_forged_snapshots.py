from __future__ import annotations

import random
import warnings
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import kleene
from flat_options import arguments
from forged_snapshots import forged, outcome, real_snapshots, sealed, stream
from kleene.engine import snapshot as snapshots
from kleene.engine.progress import CheckedProgress

pytestmark = pytest.mark.usefixtures("in_time")


@pytest.fixture(scope="module")
def real():
    return real_snapshots("generated")


def test_what_was_saved_is_accepted(real):
    assert Counter(outcome(query, snapshot) for _, query, snapshot in real) == {"matches": len(real)}


def test_forged_snapshots_are_refused_or_go_on(real):
    found: Counter[str] = Counter()
    for number in range(200):
        chance = random.Random(number)
        name, query, snapshot = real[number % len(real)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[outcome(query, forged(snapshot, chance))] += 1
            except BaseException as error:
                raise AssertionError(f"forgery {number} of {name}") from error
    assert found["refused"] > 100


def of_kind(real, kind):
    return next((query, snapshot) for name, query, snapshot in reversed(real) if name == kind)


def refused(real, kind, part, change):
    query, snapshot = of_kind(real, kind)
    parts = snapshots.unpack(snapshot)
    parts[part] = change(parts[part])
    with pytest.raises(kleene.SnapshotError) as refusal:
        CheckedProgress.restore(query, snapshots.pack(parts))
    return refusal.value.message


def put(value, *place):
    def change(array):
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("kind", "part", "change"),
    [
        ("sequence", "heads", put(2**31, 0, 0, 0)),
        ("sequence", "top", put(2**31, 0)),
        ("sequence", "stack", lambda stack: np.full_like(stack, 2**31)),
        ("sequence", "stack", lambda stack: stack[:, :-1]),
        ("sequence, basic", "node", lambda node: np.full_like(node, 2**31)),
        ("sequence, negation", "pending", lambda pending: pending + 10**6),
        ("merged", "node", put(0, 0, 2)),
        ("merged", "node", put(2**31, -1, 6)),
        ("merged", "node", put(2**31, -1, 0)),
        ("merged", "stored_i", put(2**31, 0, 1)),
        ("merged", "stored_i", put(63, 0, 0)),
        ("merged", "run_counts", put(2**40, 0)),
        ("versions", "edge", put(10**6, 0, 1)),
        ("versions", "version", put(10**6, 0, 0)),
        ("strings", "stored_i", lambda runs: np.full_like(runs, 2)),
        ("strings", "strings", lambda strings: strings[:0]),
        ("waiting", "pending_offsets", put(5, 0)),
        ("steps", "steps_runs", put(2**31, 0, 1)),
        ("steps", "steps_runs", put(-3, 0, 1)),
        ("steps", "steps_runs", put(9, 0, 0)),
        ("steps", "steps_bound", put(2**31, 0, 1)),
        ("steps", "steps_bound", put(3, 0, 0)),
        ("steps, group", "steps_counts", lambda counts: np.append(counts, 1)),
        ("rows", "decided", put(2**31, 0)),
        ("rows", "kept_numbers", put(9, 0)),
        ("regex", "stored_i", put(-1, 0, 1)),
        ("regex, events", "stored_i", put(2**31, 0, 0)),
        ("rows", "kept_table", lambda table: table.drop_columns(["x"])),
        ("rows", "nullable", lambda names: ["nothing"]),
    ],
)
def test_each_part_is_held_against_the_others(real, kind, part, change):
    assert "does not fit the rest" in refused(real, kind, part, change)


def test_event_that_no_component_selects_any_more_is_refused(real):
    query, snapshot = of_kind(real, "merged")
    parts = snapshots.unpack(snapshot)
    table = parts["kept_table"]
    parts["kept_table"] = table.set_column(0, "type", pa.array(["none"] * table.num_rows))
    progress = CheckedProgress.restore(query, snapshots.pack(parts))
    with pytest.raises(kleene.SnapshotError, match="'kept_table' does not fit"):
        progress.feed(stream(60).slice(40))


@pytest.mark.parametrize(
    "head",
    [
        b'{"plain": {}, "index": [["a", "<i8", [1099511627776], 8]]}',
        b'{"plain": {}, "index": [["a", "<i8", [1], 1099511627776]]}',
        b'{"plain": {}, "index": [["a", "|O", [1], 8]]}',
        b'{"plain": {}, "index": [["a", "<i8", [-1], 8], ["a", "<i8", [1], 8]]}',
        b'{"plain": ' + b"[" * 100_000 + b"]" * 100_000 + b', "index": []}',
        b'{"plain": {}, "index": [["a", "table", [], 8]]}',
        b"[]",
        b"\xff",
    ],
)
def test_index_that_lies_is_refused(head):
    payload = snapshots._LENGTH.pack(len(head)) + head + bytes(16)
    with pytest.raises(kleene.SnapshotError):
        snapshots.unpack(sealed(payload))


def test_table_whose_offsets_lie_is_refused():
    table = pa.table({"s": ["some", "texts", "of", "some", "length"]})
    packed = snapshots.pack({"t": table})
    offsets = np.array([0, 4, 9, 11, 15, 21], np.int32).tobytes()
    forgery = packed[snapshots._HEAD.size :].replace(offsets, np.array([0, 4, 9, 2**30, 15, 21], np.int32).tobytes())
    with pytest.raises(kleene.SnapshotError):
        snapshots.unpack(sealed(forgery))


def test_version_that_no_run_has_does_not_go_round_for_ever(real):
    query, snapshot = of_kind(real, "versions")
    parts = snapshots.unpack(snapshot)
    parts["version"][:, 0] = -1
    progress = CheckedProgress.restore(query, snapshots.pack(parts))
    with pytest.raises(kleene.SnapshotError, match="'version' does not fit"):
        progress.feed(stream(60).slice(40))


def forged_parts(query, engine_options, fed, change):
    """A restored progress of the parts of a real snapshot, changed."""
    like = fed.slice(0, 1)
    progress = query.progress(like, **arguments(engine_options))
    progress.feed(fed)
    parts = snapshots.unpack(progress.snapshot())
    change(parts)
    return query.progress(like, snapshot=snapshots.pack(parts), **arguments(engine_options))


def test_lists_that_nothing_leads_out_of_do_not_go_round_for_ever() -> None:
    def change(parts) -> None:
        kept = parts["kept_table"]
        times = pa.array([-1000, -999, -998, 3])
        parts["kept_table"] = kept.set_column(kept.column_names.index("t"), "t", times)
        parts["stored_i"][:, 4] = 3
        parts["node"][:-1, 4:6] = 0
        parts["node"][-1, 4] = 3
        parts["node"][5, 4:6] = 3

    query = kleene.sase("PATTERN SEQ(A+ a[], B b) WITHIN 10 RETURN count(a[]) AS n")
    options = {"order_by": "t", "engine": "generated", "algorithm": "merge"}
    fed = pa.table({"type": ["A"] * 4, "t": range(4)})
    with pytest.raises(kleene.SnapshotError, match="'node' does not fit"):
        forged_parts(query, options, fed, change).feed(pa.table({"type": ["A", "B"], "t": [4, 5]}))


def test_rows_that_were_never_seen_cannot_be_matched() -> None:
    def change(parts) -> None:
        parts["covered"][0] = parts["dropped"][0] + 50_000_000

    query = kleene.match_recognize("""ORDER BY t MEASURES COUNT(*) AS n ALL ROWS PER MATCH WITH UNMATCHED ROWS
        PATTERN (A B) DEFINE A AS x > 0, B AS x > 100""")
    fed = pa.table({"t": range(3), "x": [1, 2, 3]})
    with pytest.raises(kleene.SnapshotError, match="'covered' does not fit"):
        forged_parts(query, {"engine": "generated"}, fed, change)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compressed_tables_are_refused_before_they_are_read(codec: str) -> None:
    sink = pa.BufferOutputStream()
    table = pa.table({"t": [0] * 100_000, "s": pa.array(["x"] * 100_000).dictionary_encode()})
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    heads = list(snapshots._messages(sink.getvalue().to_pybytes()))
    assert any(map(snapshots.is_compressed, heads))
    plain = list(snapshots._messages(snapshots._table_bytes(table)))
    assert len(plain) == 3
    assert not any(map(snapshots.is_compressed, plain))
    with pytest.raises(ValueError, match="never written"):
        snapshots._table(sink.getvalue().to_pybytes())

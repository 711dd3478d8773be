"""What a scan reads: which files, which blocks, which columns; and what it says when files are not what they were."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import kleene
from flat_options import call_of
from kleene.scanning import sweep, ways
from kleene.scanning.blocks import Block
from kleene.scanning.calls import ScanCall
from kleene.scanning.order import TimedBlock, steps_of
from kleene.scanning.shares import KeyShares
from scanned import go

PAIRS = kleene.sase("EVENT SEQ(A a, B b) WHERE [id] WITHIN 10 RETURN a.id AS id, a.t AS a, b.t AS b")
ROWS = kleene.match_recognize(
    "PARTITION BY id ORDER BY t MEASURES FIRST(t) AS a, LAST(t) AS b PATTERN (X Y+) DEFINE Y AS Y.x > PREV(Y.x)"
)


def events(rows: int = 200, first: int = 0, seed: int = 1) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "type": pa.array(["A", "B", "C"]).take(pa.array(chance.integers(0, 3, rows))),
            "t": np.arange(first, first + rows),
            "id": chance.integers(0, 5, rows),
            "x": chance.random(rows),
        }
    )


def write(table: pa.Table, folder: Path, files: int, **options: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = -(-table.num_rows // files)
    for number in range(files):
        pq.write_table(table.slice(number * rows, rows), folder / f"part-{number}.parquet", **options)
    return folder


class TestFiles:
    def test_pattern_folder_list_and_file_mean_the_same(self, tmp_path: Path) -> None:
        table = events()
        folder = write(table, tmp_path / "e", 4)
        (folder / "_SUCCESS").touch()
        (folder / ".hidden.parquet").write_text("no")
        expected = PAIRS.match(table, order_by="t")
        paths = sorted(folder.glob("p*.parquet"))
        for source in (
            folder,
            f"{folder}/*.parquet",
            f"{tmp_path}/**/part-?.parquet",
            paths,
            [str(path) for path in paths],
        ):
            assert PAIRS.match(kleene.scan(source), order_by="t").equals(expected)

    def test_a_list_may_name_a_file_twice_and_in_any_order(self, tmp_path: Path) -> None:
        folder = write(events(), tmp_path, 2)
        paths = [folder / "part-1.parquet", folder / "part-0.parquet", folder / "part-1.parquet"]
        assert [file.path for file in kleene.scan(paths).found.files] == sorted(map(str, paths[:2]))
        addresses = [f"file://{path}" for path in paths]
        assert kleene.scan(addresses).rows == 200

    def test_columns_of_one_common_type_fit_together(self, tmp_path: Path) -> None:
        zones = [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Berlin")]
        for number, type_ in enumerate(zones):
            words = pa.array(["A", "B"]) if number else pa.array(["A", "B"]).dictionary_encode()
            times = pa.array([10 * number, 10 * number + 1], pa.int64()).cast(pa.timestamp("s")).cast(type_)
            pq.write_table(pa.table({"type": words, "t": times, "id": [1, 1]}), tmp_path / f"{number}.parquet")
        query = kleene.sase("EVENT SEQ(A a, B b) WHERE [id] WITHIN 5 seconds")
        assert query.match(kleene.scan(tmp_path), order_by="t").num_rows == 3

    def test_a_name_with_signs_of_patterns_is_taken_as_it_is(self, tmp_path: Path) -> None:
        folder = write(events(), tmp_path / "e[1]", 2)
        assert kleene.scan(folder).rows == 200

    def test_folders_are_columns(self, tmp_path: Path) -> None:
        table = events()
        for number in range(5):
            own = table.filter(pa.compute.equal(table["id"], number)).drop_columns(["id"])
            write(own, tmp_path / f"id={number}", 1)
        found = PAIRS.match(kleene.scan(tmp_path), order_by="t")
        assert found.equals(PAIRS.match(table, order_by="t"))
        with pytest.raises(kleene.KleeneError, match="no event type has the attribute 'id'"):
            PAIRS.match(kleene.scan(tmp_path, partitioning=None), order_by="t")

    def test_folders_of_texts_and_of_missing_values(self, tmp_path: Path) -> None:
        for name in ("a%2Fb", "__HIVE_DEFAULT_PARTITION__"):
            write(events(), tmp_path / f"site={name}", 1)
        scan = kleene.scan(tmp_path)
        assert scan.columns.field("site").type == pa.string()
        assert set(scan.source().read(["site"])["site"].to_pylist()) == {"a/b", None}

    def test_a_column_of_the_files_wins_over_a_folder_of_its_name(self, tmp_path: Path) -> None:
        for place, part in (("elsewhere", events().slice(0, 100)), ("here", events().slice(100))):
            write(part, tmp_path / f"id={place}", 1)
        assert not kleene.scan(tmp_path).found.folders.names
        assert PAIRS.match(kleene.scan(tmp_path), order_by="t").equals(PAIRS.match(events(), order_by="t"))

    def test_a_dataset_of_files(self, tmp_path: Path) -> None:
        table = events()
        by_id = pyarrow.dataset.partitioning(pa.schema([("id", pa.int64())]), flavor="hive")
        pyarrow.dataset.write_dataset(table, tmp_path, format="parquet", partitioning=by_id)
        dataset = pyarrow.dataset.dataset(tmp_path, format="parquet", partitioning="hive")
        found = PAIRS.match(kleene.scan(dataset), order_by="t")
        assert sorted(found.to_pylist(), key=str) == sorted(PAIRS.match(table, order_by="t").to_pylist(), key=str)
        arrow = tmp_path / "arrow"
        pyarrow.dataset.write_dataset(table, arrow, format="arrow")
        assert kleene.scan(pyarrow.dataset.dataset(arrow, format="arrow")).rows == 200
        narrow = pyarrow.dataset.dataset(
            arrow, format="arrow", schema=pa.schema([("type", pa.string()), ("t", pa.int64())])
        )
        assert kleene.scan(narrow).columns.names == ["type", "t"]
        with pytest.raises(kleene.UnsupportedError, match="has a filter"):
            kleene.scan(dataset.filter(pyarrow.dataset.field("x") > 0.5))

    @pytest.mark.parametrize("kind", ["feather", "csv", "json"])
    def test_other_formats(self, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = events()
        for number in range(3):
            part = table.slice(number * 70, 70)
            match kind:
                case "feather":
                    pyarrow.feather.write_feather(part, str(tmp_path / f"{number}.feather"), compression="lz4")
                case "csv":
                    pyarrow.csv.write_csv(part, tmp_path / f"{number}.csv")
                case _:
                    lines = part.to_pandas().to_json(orient="records", lines=True)
                    (tmp_path / f"{number}.jsonl").write_text(lines)
        expected = PAIRS.match(table, order_by="t")
        assert PAIRS.match(kleene.scan(tmp_path), order_by="t").equals(expected)
        go("over the disk", monkeypatch)
        monkeypatch.setattr(ways, "memory", lambda plan: 4096)
        assert PAIRS.match(kleene.scan(tmp_path), order_by="t").equals(expected)

    @pytest.mark.parametrize("kind", ["parquet", "csv"])
    def test_another_filesystem(self, kind: str, tmp_path: Path) -> None:
        table = events()
        (tmp_path / "e").mkdir()
        pq.write_table(table, tmp_path / "e" / "a.parquet")
        pyarrow.csv.write_csv(table, tmp_path / "e" / "a.csv")
        elsewhere = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
        scan = kleene.scan(f"e/*.{kind}", filesystem=elsewhere)
        assert PAIRS.match(scan, order_by="t").equals(PAIRS.match(table, order_by="t"))
        by_address = kleene.scan(f"file://{tmp_path}/e/*.{kind}")
        assert PAIRS.match(by_address, order_by="t").num_rows

    def test_columns_that_some_files_lack_are_null_there(self, tmp_path: Path) -> None:
        pq.write_table(events(50), tmp_path / "a.parquet")
        pq.write_table(events(50, 50).drop_columns(["x"]), tmp_path / "b.parquet")
        query = kleene.sase("PATTERN SEQ(A a) RETURN a.t AS t, a.x AS x")
        found = query.match(kleene.scan(tmp_path), order_by="t")
        assert found["x"].null_count == sum(row["t"] >= 50 for row in found.to_pylist()) > 0


class TestErrors:
    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(kleene.SchemaError, match="there is no file or folder"):
            kleene.scan(tmp_path / "none")
        with pytest.raises(kleene.SchemaError, match="there are no files of events in"):
            kleene.scan(f"{tmp_path}/*.parquet")
        write(events(), tmp_path / "readings", 1)
        with pytest.raises(kleene.SchemaError, match="Did you mean 'readings'"):
            kleene.scan(tmp_path / "reading")

    def test_what_is_no_path(self) -> None:
        with pytest.raises(kleene.SchemaError, match="a scan reads paths, but 5 was given"):
            kleene.scan(5)

    def test_kinds_that_mix_or_are_unknown(self, tmp_path: Path) -> None:
        pq.write_table(events(), tmp_path / "a.parquet")
        (tmp_path / "b.csv").write_text("t\n1\n")
        with pytest.raises(kleene.SchemaError, match="several kinds: parquet, csv"):
            kleene.scan(tmp_path)
        os.rename(tmp_path / "a.parquet", tmp_path / "a.data")
        with pytest.raises(kleene.SchemaError, match="nothing tells the format"):
            kleene.scan(tmp_path / "a.data")
        assert kleene.scan(tmp_path / "a.data", format="parquet").rows == 200

    def test_a_file_that_is_cut_off(self, tmp_path: Path) -> None:
        folder = write(events(), tmp_path, 2)
        whole = (folder / "part-1.parquet").read_bytes()
        (folder / "part-1.parquet").write_bytes(whole[:-20])
        with pytest.raises(kleene.SchemaError, match=r"part-1.parquet' cannot be read as parquet.*\nIs the file whole"):
            kleene.scan(folder)

    def test_a_file_that_is_gone_or_has_changed(self, tmp_path: Path) -> None:
        folder = write(events(), tmp_path, 2)
        scan = kleene.scan(folder)
        pq.write_table(events(7), folder / "part-1.parquet")
        with pytest.raises(kleene.SchemaError, match=r"part-1\.parquet' has changed since the scan was made"):
            PAIRS.match(scan, order_by="t")
        (folder / "part-1.parquet").unlink()
        with pytest.raises(kleene.SchemaError, match=r"part-1\.parquet' is gone"):
            PAIRS.match(scan, order_by="t")

    def test_another_schema(self, tmp_path: Path) -> None:
        folder = write(events(), tmp_path, 1)
        other = events().set_column(3, "x", pa.array(["text"] * 200))
        pq.write_table(other, folder / "part-2.parquet")
        with pytest.raises(kleene.SchemaError, match=r"part-2\.parquet' has 'x' as string; .* has it as double"):
            kleene.scan(folder)

    def test_a_missing_order_key_is_counted_in_all_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = events()
        holes = pa.array([None if n % 50 == 0 else n for n in range(200)], pa.int64())
        folder = write(table.set_column(1, "t", holes), tmp_path, 4)
        go("in order", monkeypatch)
        with pytest.raises(kleene.ExecutionError, match="4 rows have no order key"):
            PAIRS.match(kleene.scan(folder), order_by="t")

    @pytest.mark.parametrize("missing", [None, float("nan"), -float("nan")])
    def test_a_missing_order_key_over_the_disk(
        self, missing: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        times = pa.array([missing if n % 50 == 0 else float((7 * n) % 200) for n in range(200)], pa.float64())
        table = events().set_column(1, "t", times)
        folder = write(table, tmp_path, 4, write_statistics=False)
        go("over the disk", monkeypatch)
        with pytest.raises(kleene.ExecutionError, match="4 rows have no order key"):
            PAIRS.match(kleene.scan(folder), order_by="t")

    def test_a_missing_order_key_in_a_block_that_is_skipped(self, tmp_path: Path) -> None:
        table = pa.table({"type": ["C"] * 5 + ["A", "B"] * 5, "t": [1, None, *range(3, 16)], "id": [1] * 15})
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=5)
        with pytest.raises(kleene.ExecutionError, match="1 row has no order key"):
            PAIRS.match(kleene.scan(tmp_path), order_by="t")

    def test_no_key_at_all_over_the_disk_is_no_match(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = events().set_column(2, "id", pa.nulls(200, pa.int64()))
        folder = write(table.take(pa.array(np.random.default_rng(2).permutation(200))), tmp_path, 4)
        go("over the disk", monkeypatch)
        assert PAIRS.match(kleene.scan(folder), order_by="t").num_rows == 0

    def test_names_that_files_have_twice(self, tmp_path: Path) -> None:
        column = pa.array([1])
        pq.write_table(pa.Table.from_arrays([column, column], names=["t", "t"]), tmp_path / "a.parquet")
        with pytest.raises(kleene.SchemaError, match="has two columns 't'"):
            kleene.scan(tmp_path)

    def test_a_pattern_that_is_none(self, tmp_path: Path) -> None:
        with pytest.raises(kleene.SchemaError, match="is not a pattern of paths"):
            kleene.scan(f"{tmp_path}/[z-a].parquet")

    def test_a_file_out_of_order_in_itself_gives_the_right_answer(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = events().take(pa.array(np.random.default_rng(2).permutation(200)))
        folder = write(table, tmp_path, 3, row_group_size=20)
        go("in order", monkeypatch)
        assert PAIRS.match(kleene.scan(folder), order_by="t").equals(PAIRS.match(table, order_by="t"))


class TestWhatIsRead:
    def test_blocks_that_no_event_of_use_can_be_in_are_skipped(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = events(1_000)
        folder = write(table, tmp_path, 10)
        query = kleene.sase("EVENT SEQ(A a, B b) WHERE [id] AND a.t >= 700 AND b.t >= 700 AND b.t < 790 AND a.t < 790")
        go("in order", monkeypatch)
        scan = kleene.scan(folder)
        assert "skipped    9 blocks: by their bounds" in query.explain(scan, order_by="t")
        read: list[Block] = []
        of_file = type(scan)._of_file
        monkeypatch.setattr(type(scan), "_of_file", lambda *given: read.extend(given[2]) or of_file(*given))
        assert query.match(scan, order_by="t").equals(query.match(table, order_by="t"))
        assert {block.file for block in read} == {7}

    def test_only_columns_of_the_query_are_read(self, tmp_path: Path) -> None:
        scan = kleene.scan(write(events(), tmp_path, 1))
        assert "columns    3 of 4 are read" in PAIRS.explain(scan, order_by="t")

    def test_explain_says_why_files_are_matched_in_place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = write(events(), tmp_path, 4)
        go("in order", monkeypatch)
        said = PAIRS.explain(kleene.scan(folder), order_by="t", engine=kleene.EngineOptions(threads=2))
        assert "files      4 files of parquet, 4 blocks, 200 events" in said
        assert "way        in place, because 4 files follow one another in time" in said
        assert "pieces     4 pieces; the next is read while one is matched, the keys of each in 2 threads" in said
        descending = kleene.match_recognize("ORDER BY t DESC MEASURES t AS t PATTERN (X)")
        assert "one table: the order descends" in descending.explain(kleene.scan(folder))

    def test_explain_names_the_detour(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = events().take(pa.array(np.random.default_rng(2).permutation(200)))
        folder = write(table, tmp_path, 4)
        go("over the disk", monkeypatch)
        assert "over the disk, by id: 3 of 4 blocks overlap in time" in PAIRS.explain(kleene.scan(folder), order_by="t")

    def test_folders_of_keys_are_matched_one_after_the_other(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = events()
        for number in range(5):
            own = table.filter(pa.compute.equal(table["id"], number)).drop_columns(["id"])
            write(own, tmp_path / f"id={number}", 2)
        scan = kleene.scan(tmp_path)
        go("in order", monkeypatch)
        monkeypatch.setattr(ways, "most_rows", lambda plan, columns: 100)
        assert (
            "folder by folder: 9 of 10 blocks overlap in time, and 5 folders have keys of their own"
            in PAIRS.explain(scan, order_by="t")
        )
        for query, order in ((PAIRS, "t"), (ROWS, None)):
            expected = query.match(table, order_by=order)
            assert query.match(scan, order_by=order).equals(expected)
            assert query.match_batches(scan, order_by=order).read_all().equals(expected)


class TestCalls:
    @pytest.mark.parametrize("way", ["in order", "over the disk", "one table"])
    def test_batches_are_the_rows_of_match(self, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = events().take(pa.array(np.random.default_rng(2).permutation(200)))
        folder = write(table, tmp_path, 4)
        go(way, monkeypatch)
        for query, order in ((PAIRS, "t"), (ROWS, None)):
            reader = query.match_batches(kleene.scan(folder), order_by=order)
            assert reader.read_all().equals(query.match(table, order_by=order))

    @pytest.mark.slow  # it makes machine code in another thread, where --quick cannot skip it
    def test_batches_may_be_read_in_another_thread_and_left_half_way(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = set(threading.enumerate())  # a test of Spark may have left one that watches its jobs
        folder = write(events(), tmp_path, 4)
        go("in order", monkeypatch)
        scan = kleene.scan(folder, on_progress=lambda *_: None)
        found: list[pa.Table] = []
        reader = PAIRS.match_batches(scan, order_by="t")
        thread = threading.Thread(target=lambda: found.append(reader.read_all()))
        thread.start()
        thread.join()
        assert found[0].equals(PAIRS.match(events(), order_by="t"))
        batches = ScanCall.of(call_of(PAIRS.definition, order_by="t"), scan).batches()
        next(batches)
        batches.close()
        assert not set(threading.enumerate()) - before

    def test_other_verbs_take_scans_too(self, tmp_path: Path) -> None:
        table = events()
        scan = kleene.scan(write(table, tmp_path, 2))
        assert PAIRS.aggregate(scan, {"n": "count(*)"}, order_by="t").equals(
            PAIRS.aggregate(table, {"n": "count(*)"}, order_by="t")
        )
        assert PAIRS.compressed(scan, order_by="t").count() == PAIRS.compressed(table, order_by="t").count()
        apart = {"A": kleene.scan(tmp_path), "B": table}
        query = kleene.sase("EVENT SEQ(A a, B b) WITHIN 3 RETURN a.t AS a, b.t AS b")
        assert query.match(apart, order_by="t").equals(query.match({"A": table, "B": table}, order_by="t"))

    def test_the_result_can_be_of_another_kind(self, tmp_path: Path) -> None:
        scan = kleene.scan(write(events(), tmp_path, 2))
        assert type(PAIRS.match(scan, order_by="t", as_="pandas")).__module__.startswith("pandas")

    def test_match_ids_are_those_of_the_table(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = events()
        folder = write(table, tmp_path, 4)
        go("in order", monkeypatch)
        found = PAIRS.match(kleene.scan(folder), order_by="t", match_id=True)
        assert found.equals(PAIRS.match(table, order_by="t", match_id=True))

    def test_progress_is_reported(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        told: list[tuple[int, int, str]] = []
        folder = write(events(), tmp_path, 4)
        go("in order", monkeypatch)
        scan = kleene.scan(folder, on_progress=lambda *said: told.append(said))
        PAIRS.match(scan, order_by="t", engine="generated")
        assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
        assert told[-1][0] == told[-1][1] == 200

    def test_ties_and_unknown_types_are_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = pa.table({"type": ["A", "B"] * 40, "t": [n // 4 for n in range(80)], "id": [1] * 80})
        folder = write(table, tmp_path, 4)
        go("in order", monkeypatch)
        with pytest.warns(kleene.KleeneWarning, match="80 events have the same t as another event of their id"):
            PAIRS.match(kleene.scan(folder), order_by="t")
        with pytest.warns(kleene.KleeneWarning, match="no event is of type 'AA'; types in the input: A, B"):
            kleene.sase("EVENT SEQ(AA a, B b) WITHIN 10").match(kleene.scan(folder), order_by="t")

    def test_limits_count_all_pieces(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = write(events(), tmp_path, 4)
        go("in order", monkeypatch)
        with pytest.raises(kleene.LimitError, match="more matches than the match limit of 5; it had reached event"):
            PAIRS.match(kleene.scan(folder), order_by="t", engine=kleene.EngineOptions("generated", match_limit=5))

    def test_an_error_ends_all_threads(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        before = set(threading.enumerate())
        folder = write(events(), tmp_path, 8)
        go("in order", monkeypatch)
        scan = kleene.scan(folder)
        (folder / "part-6.parquet").unlink()
        with pytest.raises(kleene.SchemaError, match=r"part-6\.parquet' is gone"):
            PAIRS.match(scan, order_by="t", engine=kleene.EngineOptions("generated", threads=3))
        assert not set(threading.enumerate()) - before

    def test_an_overflow_is_told_as_for_a_table(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = events().set_column(2, "id", pa.array([2**62] * 200))
        query = kleene.sase("EVENT SEQ(A a, B b) WHERE a.id + b.id > 0 WITHIN 5")
        folder = write(table, tmp_path, 4)
        go("in order", monkeypatch)
        with pytest.raises(kleene.ExecutionError) as of_table:
            query.match(table, order_by="t")
        with pytest.raises(kleene.ExecutionError) as of_scan:
            query.match(kleene.scan(folder), order_by="t", engine="generated")
        assert str(of_scan.value) == str(of_table.value)


def test_a_missing_key_in_one_piece_leaves_other_keys_where_they_are() -> None:
    shares = KeyShares(["k"], null_is_a_key=True, count=3)
    for dtype in (pa.int64(), pa.float64(), pa.string()):
        values = [str(n) if dtype == pa.string() else n for n in range(20)]
        plain = shares.split(pa.table({"k": pa.array(values, dtype)}))
        with_null = shares.split(pa.table({"k": pa.array([None, *values], dtype)}))
        for one, other in zip(plain, with_null, strict=True):
            assert one["k"].to_pylist() == [value for value in other["k"].to_pylist() if value is not None]


INTERRUPTED = """
import sys, threading, time
import kleene
from kleene.engine.compiled.sequence_engine import SequenceProgress
from kleene.scanning import ways

ways.ROWS_AT_ONCE = ways.LEAST_AT_ONCE = 10
ways.MOST_AGAIN = int(sys.argv[2])

def feed(progress, *_, **__):
    sys.stdout.write("running\\n")
    sys.stdout.flush()
    while True:
        time.sleep(0.001)
        progress.budget.check_time()

SequenceProgress.feed = feed
query = kleene.sase("EVENT SEQ(A a, B b) WHERE [id] WITHIN 10")
try:
    query.match(kleene.scan(sys.argv[1]), order_by="t", engine=kleene.EngineOptions("generated", threads=2))
except KeyboardInterrupt:
    ends = time.monotonic() + 20  # a thread that was just being made ends by itself
    while threading.active_count() > 1 and time.monotonic() < ends:
        time.sleep(0.01)
    print("interrupted", threading.active_count(), flush=True)
"""


@pytest.mark.parametrize("most_again", [-1, 10**9], ids=["runs go on", "pieces reach back"])
def test_ctrl_c_ends_all_threads(tmp_path: Path, most_again: int) -> None:
    folder = write(events(), tmp_path, 8)
    command = [sys.executable, "-c", INTERRUPTED, str(folder), str(most_again)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "running" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[0].split("\n")
    assert "interrupted 1" in said


def test_pieces_hold_no_more_than_overlaps() -> None:
    """Whatever the blocks, events come out in order, and all of them."""
    chance = random.Random(8)
    for _ in range(200):
        times = [
            sorted(chance.randint(0, 30) for _ in range(chance.randint(1, 6))) for _ in range(chance.randint(1, 8))
        ]
        blocks, first = [], 0
        for number, own in enumerate(times):
            blocks.append(Block(number, 0, first, len(own)))
            first += len(own)
        timed = sorted(
            (TimedBlock(block, times[block.file][0], times[block.file][-1]) for block in blocks),
            key=lambda one: (one.low, one.block.first),
        )
        steps = steps_of(timed, chance.randint(1, 10))

        def read(chosen: tuple[Block, ...], times: list[list[int]] = times) -> pa.Table:
            in_input = sorted(chosen, key=lambda block: block.first)
            rows = [(t, block.first + n) for block in in_input for n, t in enumerate(times[block.file])]
            return pa.table({"t": [t for t, _ in rows], "n": [n for _, n in rows]})

        reading = sweep.Reading(read, lambda table: table.sort_by("t"), lambda table: table["t"].to_numpy(), True)
        found = [row for piece in sweep.pieces(steps, reading) for row in piece.to_pylist()]
        assert found == sorted(found, key=lambda row: (row["t"], row["n"]))
        assert len(found) == first

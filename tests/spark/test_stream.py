"""Streams on Spark: the batch answer, errors that say what to do, restarts."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import kleene
from case_files import near
from flat_options import arguments
from kleene.spark.layouts.stream import PROVIDER, ROCKSDB

pytestmark = pytest.mark.filterwarnings("ignore::kleene.KleeneWarning")

BEGIN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
CLOSING = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)
SCHEMA = "type STRING, ts TIMESTAMP, id LONG, price DOUBLE"
DELAY = 20


@pytest.fixture(scope="module")
def streaming(classic_spark: SparkSession) -> Iterator[SparkSession]:
    classic_spark.conf.set(PROVIDER, ROCKSDB)
    partitions = classic_spark.conf.get("spark.sql.shuffle.partitions")
    classic_spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield classic_spark
    classic_spark.conf.unset(PROVIDER)
    classic_spark.conf.set("spark.sql.shuffle.partitions", partitions)


def table_of(rows: list[tuple[str, float, int, float]]) -> pa.Table:
    types, seconds, ids, prices = zip(*rows, strict=True)
    times = [BEGIN + dt.timedelta(seconds=second) for second in seconds]
    return pa.table(
        {
            "type": types,
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "id": ids,
            "price": pa.array(prices, "double"),
        }
    )


def some_events(seed: int = 0, count: int = 160) -> pa.Table:
    random = Random(seed)
    kinds = ("Shelf", "Register", "Exit", "Stock")
    return table_of([(random.choice(kinds), 2.0 * n, random.randrange(5), random.randrange(20)) for n in range(count)])


def write_files(events: pa.Table, folder: Path, files: int = 3, closing: bool = True) -> None:
    """The events in files, each up to the watermark's delay behind later ones; the last file closes the stream."""
    folder.mkdir(parents=True, exist_ok=True)
    random, seconds = Random(7), [time.timestamp() for time in events.column("ts").to_pylist()]
    arrival = sorted(range(len(seconds)), key=lambda n: seconds[n] + random.uniform(0, DELAY - 1))
    size = -(-len(arrival) // files)
    for number in range(files):
        write(events.take(arrival[number * size : (number + 1) * size]), folder, number)
    if closing:
        write(
            table_of([("Closing", 0, -1, 0)]).set_column(1, "ts", pa.array([CLOSING], pa.timestamp("us", "UTC"))),
            folder,
            99,
        )


def write(events: pa.Table, folder: Path, number: int) -> None:
    path = folder / f"{number:02}.parquet"
    pq.write_table(events, path)
    # Spark reads files in the order of their times.
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def stream_of(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder)).withWatermark("ts", f"{DELAY} seconds")


def run(found: dict[str, DataFrame], folder: Path) -> dict[str, list]:
    """The rows of each stream, in no order, to the end of what there is."""
    for name, frame in found.items():  # one after the other: Spark waits ten seconds for a new Python, and no longer
        start(frame, folder / name).awaitTermination()
    spark = next(iter(found.values())).sparkSession
    return {name: rows_of(spark.read.parquet(str(folder / name / "out")).toArrow()) for name in found}


def start(frame: DataFrame, folder: Path):
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(folder / "out"))


def rows_of(table: pa.Table) -> list:
    return sorted(map(repr, near(table.to_pylist())))


QUERIES: dict[str, Callable[[object], object]] = {
    "sequence": lambda events: kleene.sase(
        "EVENT SEQ(Shelf a, !(Register r), Exit b) WHERE [id] WITHIN 60 seconds"
    ).match(events, order_by="ts"),
    "negation_at_the_end": lambda events: kleene.sase(
        "EVENT SEQ(Shelf a, !(Register r)) WHERE [id] WITHIN 40 seconds RETURN a.id AS id, a.ts AS since"
    ).match(events, order_by="ts", match_id=True, engine="generated"),
    "kleene_plus": lambda events: kleene.sase(
        """PATTERN SEQ(Stock+ a[], Exit b) WHERE skip_till_next_match(a[], b) { [id] AND a[i].price > a[i-1].price }
        WITHIN 2 minutes RETURN b.id AS id, count(a[]) AS n, sum(a[].price) AS total, b.ts AS ts"""
    ).match(events, order_by="ts"),
    "non_overlapping": lambda events: kleene.sase(
        "PATTERN SEQ(Shelf a, Exit b) WHERE skip_till_any_match(a, b) { [id] } WITHIN 60 seconds"
    ).match(events, order_by="ts", format="non_overlapping", engine="generated"),
    "row_pattern": lambda events: kleene.match_recognize(
        """PARTITION BY id ORDER BY ts MEASURES FIRST(A.ts) AS began, LAST(B.price) AS low, COUNT(*) AS n
        AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+) WITHIN INTERVAL '60' SECOND
        DEFINE B AS B.price < PREV(B.price)"""
    ).match(events, engine="generated"),
    "all_rows": lambda events: kleene.match_recognize(
        """PARTITION BY id ORDER BY ts MEASURES CLASSIFIER() AS label, MATCH_NUMBER() AS number
        ALL ROWS PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A B{1,2}) DEFINE B AS B.price > PREV(B.price)"""
    ).match(events),
    "regex": lambda events: kleene.regex(
        pattern=". up up",
        partition_by="id",
        order_by="ts",
        predicates={"up": "price > Last(price)"},
        output={"id": "Last(id)", "n": "Count()", "top": "Max(price)"},
    ).match(events),
    "steps": lambda events: (
        kleene.begin("a", type="Shelf")
        .followed_by("s", type="Stock")
        .where("price > LAST(s.price) OR COUNT(s.*) = 0")
        .one_or_more()
        .not_followed_by("r", type="Register")
        .within("40 seconds")
        .after_match("skip_to_next")
        .partition_by("id")
        .match(events, order_by="ts", timeouts=True)
    ),
    "one_bucket": lambda events: kleene.sase(
        "PATTERN SEQ(Shelf a, Exit b) WHERE strict_contiguity(a, b) { a.id = b.id }"
    ).match(events, order_by="ts"),
    "program": lambda events: kleene.program(
        """EVENT SEQ(Shelf a, !(Register r)) WHERE [id] WITHIN 40 seconds RETURN a.id AS id INTO Unpaid;
        FROM Unpaid EVENT SEQ(Unpaid x, Unpaid y) WHERE x.id = y.id WITHIN 1 minute RETURN x.id AS id"""
    ).match(events, order_by="ts")["query_2"],
    "composed": lambda events: kleene.program(
        """EVENT SEQ(Shelf a, !(Register r)) WHERE [id] WITHIN 40 seconds
        RETURN a.id AS id, a.price AS price INTO Unpaid;
        FROM Unpaid, events EVENT SEQ(Unpaid x, ANY(Unpaid, Exit) y, Stock s)
        WHERE strict_contiguity(x, y, s) { y.price < 15 } WITHIN 1 minute
        RETURN x.id AS id, y.price AS price, s.ts AS ts"""
    ).match(events, order_by="ts", engine="generated", schema=kleene.Schema({"Exit": ["id"]}))["query_2"],
}


@pytest.mark.parametrize("kind", QUERIES)
def test_a_stream_gives_the_batch_answer(streaming: SparkSession, tmp_path: Path, kind: str) -> None:
    events = some_events()
    write_files(events, tmp_path / "in")
    expected = rows_of(QUERIES[kind](events))
    assert expected
    assert run({kind: QUERIES[kind](stream_of(streaming, tmp_path / "in"))}, tmp_path)[kind] == expected


class TestSilence:
    """An item that leaves the shelf and never comes back is reported, though nothing more is heard of it."""

    def test_time_alone_reports(self, streaming: SparkSession, tmp_path: Path) -> None:
        query = kleene.sase("EVENT SEQ(Shelf a, !(Exit b)) WHERE [id] WITHIN 60 seconds RETURN a.id AS id")
        events = [("Shelf", 0, 1, 0), ("Shelf", 5, 2, 0), ("Exit", 30, 2, 0), ("Other", 200, 99, 0)]
        write_files(table_of(events), tmp_path / "in", 2, closing=False)
        found = run({"silent": query.match(stream_of(streaming, tmp_path / "in"), order_by="ts")}, tmp_path)
        assert found["silent"] == ["{'id': 1}"]


SEQUENCE = kleene.sase("EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 60 seconds")


class TestRefused:
    """Nothing runs here: a plan that cannot work is an error before it starts."""

    @pytest.fixture
    def unmarked(self, streaming: SparkSession, tmp_path: Path) -> DataFrame:
        return streaming.readStream.schema(SCHEMA).parquet(str(tmp_path))

    @pytest.fixture
    def stream(self, unmarked: DataFrame) -> DataFrame:
        return unmarked.withWatermark("ts", "10 seconds")

    def refused(self, query: kleene.Query, stream: object, *words: str, **options: object) -> None:
        with pytest.raises(kleene.KleeneError) as error:
            query.match(stream, **arguments(options))
        for part in words:
            assert part in str(error.value)

    def test_no_watermark(self, unmarked: DataFrame) -> None:
        words = ("the stream has no watermark on 'ts'", 'Add .withWatermark("ts", "10 minutes")', "order='arrival'")
        self.refused(SEQUENCE, unmarked, *words, order_by="ts")

    def test_a_time_without_a_zone(self, unmarked: DataFrame) -> None:
        stream = unmarked.selectExpr("type", "id", "CAST(ts AS TIMESTAMP_NTZ) AS ts")
        self.refused(SEQUENCE, stream, "a timestamp without a time zone", '.cast("timestamp")', order_by="ts")

    def test_no_rocksdb(self, streaming: SparkSession, stream: DataFrame) -> None:
        streaming.conf.unset(PROVIDER)
        try:
            words = ("needs Spark's RocksDB state store", f'spark.conf.set("{PROVIDER}", "{ROCKSDB}")')
            self.refused(SEQUENCE, stream, *words, order_by="ts")
        finally:
            streaming.conf.set(PROVIDER, ROCKSDB)

    def test_an_order_that_is_no_time(self, stream: DataFrame) -> None:
        query = kleene.sase("EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 60")
        self.refused(query, stream, "which is a timestamp, but 'price' is double", "order='arrival'", order_by="price")

    @pytest.mark.parametrize(
        ("query", "reason"),
        [
            (kleene.sase("EVENT SEQ(Shelf a, Exit b) WHERE [id]"), "no WITHIN says when a run is over"),
            (
                kleene.match_recognize("ORDER BY ts MEASURES 1 AS x PATTERN (A B+) DEFINE B AS B.price > A.price"),
                "neither WITHIN nor MAXLENGTH says when a match is over",
            ),
            (
                kleene.match_recognize("ORDER BY ts MEASURES 1 AS x PATTERN (A $) DEFINE A AS A.price > 1"),
                "`$` is the end of a partition, and on a stream a partition has none",
            ),
            (
                kleene.regex(pattern="up+ .", order_by="ts", predicates={"up": "price > 3"}, output={"n": "Count()"}),
                "the regular-expression operator has no window",
            ),
        ],
        ids=["sase", "rows", "anchor", "regex"],
    )
    def test_no_bound(self, stream: DataFrame, query: kleene.Query, reason: str) -> None:
        options = {} if "PATTERN SEQ" not in repr(query) else {"order_by": "ts"}
        self.refused(query, stream, reason, "unbounded_state='allow'", **options)
        assert query.match(stream, stream=kleene.StreamOptions(unbounded_state="allow"), **options).isStreaming

    def test_descending_order(self, stream: DataFrame) -> None:
        query = kleene.match_recognize("ORDER BY ts DESC MEASURES 1 AS x PATTERN (A) DEFINE A AS A.price > 1")
        self.refused(query, stream, "ascending order", "'ts' is descending")

    def test_a_stream_beside_a_table(self, streaming: SparkSession, stream: DataFrame) -> None:
        table = streaming.createDataFrame(table_of([("Exit", 0, 1, 0)]), SCHEMA)
        self.refused(SEQUENCE, {"Shelf": stream, "Exit": table}, "some inputs are streams", order_by="ts")

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"match_order": True}, "match_order is for tables"),
            ({"layout": "presorted"}, "layout='presorted' is for tables"),
            ({"order": "random"}, "order is 'time' or 'arrival', but 'random' was given"),
            ({"unbounded_state": "maybe"}, "unbounded_state is 'refuse' or 'allow'"),
            ({"buckets": 0}, "buckets is a number from 1 up"),
            ({"engine": "reference"}, "only the compiled engine takes events piece by piece"),
        ],
    )
    def test_options_that_make_no_sense(self, stream: DataFrame, options: dict, words: str) -> None:
        self.refused(SEQUENCE, stream, words, order_by="ts", **options)

    def test_compressed_output_of_a_negation_at_the_end(self, stream: DataFrame) -> None:
        query = kleene.sase("EVENT SEQ(Shelf a, !(Register r)) WHERE [id] WITHIN 40 seconds")
        with pytest.raises(kleene.UnsupportedError, match="become certain one after the other"):
            query.compressed(stream, order_by="ts")

    def test_a_query_on_the_matches_of_another(self, stream: DataFrame) -> None:
        matches = SEQUENCE.match(stream, order_by="ts")
        again = kleene.sase("EVENT SEQ(M x, M y) WITHIN 1 minute")
        words = ("matches that another query finds", "smaller of two watermarks", "kleene.program", "as a new stream")
        self.refused(again, {"M": matches}, *words, order_by="match_end")
        self.refused(again, {"M": matches.withWatermark("match_end", "1 second")}, *words, order_by="match_end")
        computed = matches.selectExpr("a.ts + INTERVAL 1 SECOND AS at", "1 AS one").withWatermark("at", "1 second")
        self.refused(again, {"M": computed.union(computed)}, *words, order_by="at")
        with pytest.raises(kleene.UnsupportedError, match="matches that another query finds"):
            kleene.program("FROM m EVENT SEQ(M x, M y) WITHIN 1 minute").match({"m": {"M": computed}}, order_by="at")
        other = stream.selectExpr("ts AS at", "id")
        with pytest.raises(kleene.UnsupportedError, match="matches that another query finds"):
            kleene.program("FROM r, m EVENT SEQ(r x, m y) WITHIN 1 minute").match(
                {"m": computed, "r": other}, order_by="at"
            )

    def test_a_stream_without_a_watermark_beside_composite_events(self, unmarked: DataFrame) -> None:
        program = kleene.program(
            """FROM Readings EVENT SEQ(Shelf a, Exit b) WITHIN 40 seconds INTO Pair;
            FROM Pair, Stocks EVENT SEQ(Pair p, Stock s) WITHIN 1 minute"""
        )
        inputs = {"Readings": unmarked.withWatermark("ts", "10 seconds"), "Stocks": unmarked}
        with pytest.raises(kleene.UnsupportedError, match="the stream has no watermark on 'ts'"):
            program.match(inputs, order_by="ts")

    def test_a_program_in_arrival_order_reads_composite_events_beside_primitive_ones(self, stream: DataFrame) -> None:
        program = kleene.program(
            """EVENT SEQ(Shelf a, Exit b) WITHIN 40 seconds INTO Pair;
            FROM Pair, events EVENT SEQ(Pair p, Stock s) WITHIN 1 minute"""
        )
        found = program.match(stream, order_by="ts", stream=kleene.StreamOptions(order="arrival"))
        assert found["query_2"].isStreaming

    def test_timeouts_without_a_window_in_time(self, stream: DataFrame) -> None:
        query = kleene.sase("EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 5 events")
        self.refused(query, stream, "the window counts events", order_by="ts", timeouts=True)

    @pytest.mark.parametrize("option", [{"order": "arrival"}])
    def test_options_of_streams_on_tables(self, streaming: SparkSession, option: dict) -> None:
        table = streaming.createDataFrame(table_of([("Exit", 0, 1, 0)]), SCHEMA)
        self.refused(SEQUENCE, table, "is for streams, but the input is a table", order_by="ts", **option)

    def test_a_program_in_arrival_order_behind_a_negation_at_the_end(self, stream: DataFrame) -> None:
        program = kleene.program(
            """EVENT SEQ(Shelf a, !(Register r)) WHERE [id] WITHIN 40 seconds RETURN a.id AS id INTO Unpaid;
            FROM Unpaid EVENT SEQ(Unpaid x, Unpaid y) WITHIN 1 minute RETURN x.id AS id"""
        )
        with pytest.raises(kleene.UnsupportedError, match="out of order"):
            program.match(stream, order_by="ts", stream=kleene.StreamOptions(order="arrival"))

    def test_explain_says_what_it_does(self, stream: DataFrame) -> None:
        said = SEQUENCE.explain(stream, order_by="ts")
        assert "by a hash of id, to 16 buckets" in said
        assert "by ts, up to the watermark" in said
        assert "bounded for each key" in said


def test_the_clause_inside_spark_sql_gives_a_stream(streaming: SparkSession, tmp_path: Path) -> None:
    streaming.readStream.schema(SCHEMA).parquet(str(tmp_path)).withWatermark("ts", "10 seconds").createTempView(
        "readings"
    )
    found = kleene.sql(
        streaming,
        """SELECT id, low FROM readings MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES LAST(B.price) AS low
        PATTERN (A B+) WITHIN INTERVAL '60' SECOND DEFINE B AS B.price < PREV(B.price)) WHERE low > 3""",
    )
    streaming.catalog.dropTempView("readings")
    assert found.isStreaming
    assert found.columns == ["id", "low"]


class TestRestart:
    def test_another_query_under_an_old_checkpoint_is_refused(self, streaming: SparkSession, tmp_path: Path) -> None:
        write_files(some_events(count=20), tmp_path / "in", 2, closing=False)
        stream = stream_of(streaming, tmp_path / "in")
        start(SEQUENCE.match(stream, order_by="ts", engine="generated"), tmp_path).awaitTermination()
        write(some_events(1, 20), tmp_path / "in", 50)
        other = kleene.sase("EVENT SEQ(Shelf a, Exit b) WHERE [id] WITHIN 90 seconds")
        with pytest.raises(StreamingQueryException, match="written by another query, by other options"):
            start(other.match(stream, order_by="ts", engine="generated"), tmp_path).awaitTermination()

    def test_late_events_are_told(self, streaming: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        write(table_of([("Shelf", 0, 1, 0), ("Shelf", 500, 1, 0)]), tmp_path / "in", 0)
        write(table_of([("Shelf", 600, 1, 0)]), tmp_path / "in", 1)
        write(table_of([("Exit", 10, 1, 0), ("Exit", 610, 1, 0)]), tmp_path / "in", 2)
        query = start(SEQUENCE.match(stream_of(streaming, tmp_path / "in"), order_by="ts"), tmp_path)
        query.awaitTermination()
        told = [row for progress in query.recentProgress for row in progress["observedMetrics"].values()]
        assert sum(row.late or 0 for row in told) == 1


def test_on_spark_connect(
    streaming: SparkSession, remote_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    remote_spark.conf.set(PROVIDER, ROCKSDB)
    remote_spark.conf.set("spark.sql.shuffle.partitions", "2")
    events = some_events(count=60)
    write_files(events, tmp_path / "in", 2)
    frame = stream_of(remote_spark, tmp_path / "in")
    if not hasattr(frame.groupBy("id"), "transformWithStateInPandas"):  # PySpark 4.0
        with pytest.raises(kleene.UnsupportedError, match="no stateful operator for streams with Spark Connect"):
            SEQUENCE.match(frame, order_by="ts")
        return
    found = SEQUENCE.match(frame, order_by="ts", engine="generated")
    with pytest.raises(kleene.UnsupportedError, match="matches that another query finds"):
        SEQUENCE.match(
            found.selectExpr("'Exit' AS type", "id", "match_end").withWatermark("match_end", "1 second"),
            order_by="match_end",
        )
    expected = rows_of(SEQUENCE.match(events, order_by="ts"))
    assert expected
    assert run({"connect": found}, tmp_path)["connect"] == expected

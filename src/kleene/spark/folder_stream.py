"""A folder that files of events are put into, matched as a stream, for the command line: Parquet files come out."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere
from pyspark.sql.streaming.query import StreamingQuery

from kleene.api import Query
from kleene.errors import SchemaError
from kleene.files import EventFiles
from kleene.spark.files import read_stream
from kleene.spark.layouts.stream import PROVIDER, ROCKSDB
from kleene.spark.monitor import HEADINGS, READ, BatchMetrics, StreamMetrics, stream_metrics
from kleene.spark.schema import arrow_schema

SINK_LOG = "_spark_metadata"
"""Where Spark notes, for each micro-batch, which files of the output it has written."""
SETTINGS = {
    PROVIDER: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A time without a zone shall look the same in the input, in the watermark and in the matches.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


@dataclass(frozen=True, slots=True)
class FolderStream:
    """What is to be read, in which way, and where to put what is found."""

    query: Query
    inputs: EventFiles | Mapping[str, EventFiles]
    options: Mapping[str, Any]
    output: Path
    checkpoint: Path
    most_files: int | None = None
    every: str | None = None  # None: only what is there now
    keep: bool = True  # else matches are removed when they have been looked at

    def check_places(self) -> None:
        """An error if the output and the checkpoint are not of one stream: matches would be lost, or written twice."""
        has_log = (self.output / SINK_LOG).is_dir()
        has_begun = any(self.checkpoint.glob("commits/[0-9]*"))
        if has_log and not has_begun:
            raise SchemaError(
                f"the output '{self.output}' was written by a stream whose checkpoint is not at '{self.checkpoint}'",
                hint="Name its checkpoint with --checkpoint to go on, or choose another output to begin anew.",
            )
        if has_begun and not has_log:
            raise SchemaError(
                f"the checkpoint '{self.checkpoint}' is of a stream that writes to another output than '{self.output}'",
                hint="Name that output to go on, or choose another checkpoint to begin anew.",
            )
        if self.output.exists() and not has_log and any(_is_foreign(path) for path in self.output.glob("*")):
            raise SchemaError(
                f"the output '{self.output}' exists, but no stream wrote it", hint="Choose another name for the output."
            )

    def start(self, session: SparkSession, most_shown: int) -> RunningStream:
        own = session.newSession()
        for name, value in SETTINGS.items():
            own.conf.set(name, value)
        if isinstance(self.inputs, EventFiles):
            events: Any = self._events(own, self.inputs, 0)
        else:
            events = {name: self._events(own, part, n) for n, (name, part) in enumerate(self.inputs.items())}
        found = self.query.match(events, **self.options)
        log = SinkLog(self.output)
        writer = found.writeStream.format("parquet").option("checkpointLocation", str(self.checkpoint.resolve()))
        writer = writer.trigger(availableNow=True) if self.every is None else writer.trigger(processingTime=self.every)
        columns = arrow_schema(found.schema, "UTC")
        return RunningStream(writer.start(str(self.output.resolve())), columns, log, most_shown, self.keep)

    def _events(self, session: SparkSession, part: EventFiles, number: int) -> DataFrame:
        frame = read_stream(session, part, self.most_files)
        return frame.observe(f"{READ}{number}", F.count(F.lit(1)).alias("read"))


def _is_foreign(path: Path) -> bool:
    return not path.name.startswith(("_", "."))


@dataclass(slots=True)
class SinkLog:
    """What Spark's file sink notes of the micro-batches it has finished."""

    folder: Path
    _known: int = 0  # files noted so far

    def __post_init__(self) -> None:
        numbers = [int(path.name.split(".")[0]) for path in (self.folder / SINK_LOG).glob("[0-9]*")]
        last_whole = max((number for number in numbers if self._place(number, ".compact").exists()), default=0)
        self._known = sum(len(self._noted(number)) for number in sorted(set(numbers)) if number >= last_whole)

    def files_of(self, batch: int) -> list[Path]:
        """The files of a micro-batch; to be asked for each one, in order."""
        noted = self._noted(batch)
        if self._place(batch, ".compact").exists():  # now and then a note repeats all there were
            noted = noted[self._known :]
        self._known += len(noted)
        return noted

    def _noted(self, batch: int) -> list[Path]:
        place = self._place(batch, ".compact")
        place = place if place.exists() else self._place(batch)
        lines = place.read_text(encoding="utf-8").splitlines()[1:] if place.exists() else []
        return [self.folder / unquote(json.loads(line)["path"]).rpartition("/")[2] for line in lines]

    def _place(self, batch: int, ending: str = "") -> Path:
        return self.folder / SINK_LOG / f"{batch}{ending}"


@dataclass(slots=True)
class RunningStream:
    """A stream on its way: `look` says what is new."""

    query: StreamingQuery
    schema: pa.Schema
    log: SinkLog
    most_shown: int
    keep: bool
    metrics: StreamMetrics = field(default_factory=StreamMetrics)
    newest: deque[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.newest = deque(maxlen=self.most_shown)

    @property
    def columns(self) -> list[str]:
        names: list[str] = self.schema.names
        return names

    @property
    def headings(self) -> tuple[str, ...]:
        return HEADINGS

    @property
    def is_active(self) -> bool:
        return self.query.isActive

    def look(self) -> list[tuple[BatchMetrics, list[dict[str, Any]]]]:
        """The micro-batches that ended since the last look, each with some of its matches."""
        before = self.metrics.last.batch if self.metrics.last else -1
        self.metrics = stream_metrics(self.query, self.metrics)
        found = []
        for batch in self.metrics.batches:
            if batch.batch > before:
                rows = self._rows(batch)
                self.newest.extend(rows)
                found.append((batch, rows))
        return found

    def _rows(self, batch: BatchMetrics) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for path in self.log.files_of(batch.batch):
            missing = self.most_shown - len(rows)
            if missing > 0 and path.exists():
                with pyarrow.parquet.ParquetFile(path) as file:
                    part = next(file.iter_batches(batch_size=missing), None)
                rows += [] if part is None else pa.Table.from_batches([part]).cast(self.schema).to_pylist()
            if not self.keep:
                path.unlink(missing_ok=True)
        return rows

    def stop(self) -> None:
        """Ends it at once; a micro-batch that was not finished is done again by who goes on."""
        self.query.stop()

    def failure(self) -> Exception | None:
        return self.query.exception()

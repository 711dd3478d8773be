"""A scan on Spark: its files as a DataFrame whose tasks read them with Arrow, and a DataFrame of files as a scan."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from kleene.errors import SchemaError, UnsupportedError, printable
from kleene.files.types import holds, is_nanosecond
from kleene.scanning.blocks import Block, Footer
from kleene.scanning.scan import NO_NAMES, Scan, scan
from kleene.spark.names import plain_schema
from kleene.spark.schema import spark_schema

ROWS_OF_A_TASK, MOST_ROWS = 1 << 19, 1 << 21
"""A task reads about so many events at least, and at most where there are enough tasks: its start takes a while."""
BATCH_ROWS = 1 << 16


Group = tuple[Block, ...]
"""Blocks that are read together."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """What is shipped to tasks: the files, and the blocks that each of them reads, some of them together.

    Columns of `coded`, texts, are read as codes of their words.
    """

    scan: Scan
    tasks: tuple[tuple[Group, ...], ...]
    coded: frozenset[str] = NO_NAMES

    @classmethod
    def of(cls, whole: Scan, tasks: tuple[tuple[Group, ...], ...], coded: frozenset[str] = NO_NAMES) -> FileReader:
        # Footers are large; a task reads those of its own files again.
        footers = tuple(Footer(footer.schema, footer.rows) for footer in whole.footers)
        return cls(replace(whole, footers=footers, blocks=(), session=None, on_progress=None), tasks, coded)

    def tables(self, task: int, names: list[str]) -> Iterator[pa.Table]:
        """The columns of the task's events, a group at a time."""
        if self.scan.is_text:
            found = replace(self.scan.found, files=(self.scan.found.files[task],))
            yield from replace(self.scan, found=found).text_tables(names)
            return
        for group in self.tasks[task]:
            yield self.table(group, names)

    def table(self, group: Group, names: list[str]) -> pa.Table:
        return self.scan.table(group, names, self.coded)

    def first_rows(self, block: Block, names: list[str], rows: int) -> pa.Table:
        return self.scan.first_rows(block, names, rows, self.coded)


def reading_frame(session: SparkSession, reader: FileReader, task: Any, schema: pa.Schema) -> DataFrame:
    """What the task, a function from numbers of tasks to batches, makes of each of them."""
    count = max(len(reader.tasks), 1)
    return session.range(0, count, 1, count).mapInArrow(task, spark_schema(schema))


def frame_of(whole: Scan) -> DataFrame:
    """The events of the scan, all columns of them."""
    fine = next((field.name for field in whole.columns if holds(field.type, is_nanosecond)), None)
    if fine is not None:
        raise SchemaError(
            f"the column '{printable(fine)}' has nanoseconds, but Spark's times end at microseconds",
            hint="Match the scan in this process, or round the column to microseconds.",
        )
    reader = FileReader.of(whole, tasks_of_blocks(whole))
    target = plain_schema(whole.columns)
    names = whole.columns.names

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in numbers for number in batch.column(0).to_pylist()):
            for table in reader.tables(number, names):
                yield from table.rename_columns(target.names).cast(target).to_batches(max_chunksize=BATCH_ROWS)

    return reading_frame(whole.session, reader, read, target).toDF(*names)


def tasks_of_blocks(whole: Scan) -> tuple[tuple[Group, ...], ...]:
    """The blocks of each task, as they lie; of text files, a task for each."""
    if whole.is_text:
        return ((),) * len(whole.found.files)
    return dealt([(block,) for block in whole.blocks], rows_of_a_task(whole))


def rows_of_a_task(whole: Scan) -> int:
    """As many as leave a task for each Spark partition that the session shuffles to, or as many rounds of them as need
    be: a last round of fewer would leave cores idle.
    """
    partitions = int(whole.session.conf.get("spark.sql.shuffle.partitions") or 200)
    rounds = max(-(-whole.rows // (MOST_ROWS * partitions)), 1)
    return max(-(-whole.rows // (rounds * partitions)), ROWS_OF_A_TASK)


def dealt(groups: Sequence[Group], rows: int) -> tuple[tuple[Group, ...], ...]:
    """The groups in their order, about so many rows for each task.

    >>> blocks = [(Block(0, number, 10 * number, 10),) for number in range(7)]
    >>> [len(task) for task in dealt(blocks, 24)]
    [2, 3, 2]
    """
    tasks: list[tuple[Group, ...]] = []
    taken: list[Group] = []
    done = 0
    for group in groups:
        size = sum(block.rows for block in group)
        if taken and done + size / 2 > (len(tasks) + 1) * rows:
            tasks.append(tuple(taken))
            taken = []
        taken.append(group)
        done += size
    return (*tasks, tuple(taken)) if taken else tuple(tasks)


def scan_of_frame(frame: DataFrame) -> Scan:
    """The files that a DataFrame is; an error if it is anything but files as they are."""
    why_not = _why_no_plain_scan(frame)
    paths = [] if why_not else [_path(path) for path in frame.inputFiles()]
    if why_not or not paths:
        raise UnsupportedError(
            "layout='files' is for a DataFrame that is read from files and nothing else, but "
            f"{why_not or 'it has none'}",
            hint="Use spark.read.parquet(…) as it is, and put conditions into the query; or kleene.scan(…).",
        )
    found = replace(scan(paths), session=frame.sparkSession)
    if not _are_alike(spark_schema(found.columns), frame.schema):
        raise UnsupportedError(
            "layout='files' is for a DataFrame with the columns of its files, but it has others",
            hint="Use spark.read.parquet(…) as it is, or kleene.scan(…).",
        )
    return found


def _why_no_plain_scan(frame: DataFrame) -> str | None:
    """Why the DataFrame is more than files, by the plan that Spark tells; None if it is no more."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        frame.explain(extended=True)
    found = re.search(r"== Analyzed Logical Plan ==\n.*?\n(.*?)\n== Optimized", said.getvalue(), re.DOTALL)
    steps = [line for line in (found[1] if found else "").splitlines() if line.strip()]
    if len(steps) == 1 and re.match(r"Relation\s*\[.*\]\s*parquet\s*$", steps[0]):
        return None
    return "Spark does not tell what it is" if not steps else f"its plan begins with {printable(steps[0].split()[0])}"


def _are_alike(own: st.StructType, given: st.StructType) -> bool:
    """Whether both have the same columns; times without a zone are in UTC, so that either kind of them will do."""
    both = [[(field.name, field.dataType.simpleString()) for field in schema.fields] for schema in (own, given)]
    plain = [[(name, type_.replace("timestamp_ntz", "timestamp")) for name, type_ in fields] for fields in both]
    return plain[0] == plain[1]


def _path(address: str) -> str:
    """A path as Spark tells it: in a local file's, signs such as spaces are written by their numbers."""
    if not address.startswith("file:"):
        return address
    return unquote(re.sub(r"^file:(//)?", "", address))

"""Matching a whole input, in process or on an embedded Spark, and showing what was found."""

from __future__ import annotations

import errno
import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from kleene.analysis.row_pattern import is_row_pattern
from kleene.api import Query, last_notes
from kleene.cli.console import note_warning, notes
from kleene.cli.reading import Inputs, read_tables, scan_of, size_of
from kleene.cli.showing import Result, Screen
from kleene.engine.event_types import missing_types
from kleene.errors import (
    ExecutionError,
    KleeneError,
    SchemaError,
    UnsupportedError,
)
from kleene.files import write_arrow
from kleene.ir.pattern import variables_in
from kleene.programs import Program
from kleene.watching import show_progress

IN_PROCESS_BELOW = 256 << 20
"""Bytes of input up to which Spark takes longer to start than this process to match."""


def choose_place(files: Inputs, on_spark: bool, in_process: bool) -> tuple[bool, str]:
    """Whether to match on Spark, and why."""
    size = size_of(files)
    told = f"{size / 1e6:,.1f} MB of input" if size >= 10**5 else f"{size / 1e3:,.1f} kB of input"
    if in_process or on_spark:
        return on_spark, f"{told}, as --{'spark' if on_spark else 'in-process'} says"
    if size < IN_PROCESS_BELOW:
        return False, f"{told}, less than {IN_PROCESS_BELOW >> 20} MB; --spark matches on Spark"
    if importlib.util.find_spec("pyspark") is None:
        return False, f"{told}; Spark, which large inputs are for, is not installed: pip install 'kleene[spark]'"
    return True, f"{told}, {IN_PROCESS_BELOW >> 20} MB or more; --in-process matches without Spark"


def match_in_process(
    queries: Program, files: Inputs, options: dict[str, Any], paths: dict[str, Path], screen: Screen
) -> int:
    total = 0
    with show_progress(notes.is_terminal):
        results = _local_results(queries, files, options)
    for name, table in results.items():
        if name in paths:
            write_arrow(table, paths[name])
        result = Result(name, table.schema, table.num_rows, screen.first_of(table))
        screen.show(result, queries.names, paths)
        total += table.num_rows
    return total


def _local_results(queries: Program, files: Inputs, options: dict[str, Any]) -> dict[str, Any]:
    [query, *others] = queries.queries
    is_alone = not others and not query.definition.from_streams
    scanned = scan_of(files) if is_alone else None
    if scanned is not None:
        return {queries.names[0]: query.match(scanned, **options)}
    if "timeouts" not in options:
        return queries.match(read_tables(files), **options)
    return {queries.names[0]: _single(queries).match(read_tables(files), **options)}


def _single(queries: Program) -> Query:
    """The one query, whose runs may be asked for."""
    [query, *others] = queries.queries
    if others or query.definition.from_streams:
        raise UnsupportedError(
            "--timeouts is for one query that reads the input itself, but the file is a program",
            hint="Put the query into a file of its own.",
        )
    return query


def match_on_spark(
    queries: Program, files: Inputs, options: dict[str, Any], paths: dict[str, Path], screen: Screen
) -> int:
    results: list[Result] = []
    types: set[str | None] | None = None
    told: dict[str, None] = {}
    with on_spark() as own:
        from kleene.spark.files import read_spark, write_spark

        events = (
            {name: read_spark(own, part) for name, part in files.items()}
            if isinstance(files, dict)
            else read_spark(own, files)
        )
        for name, matches in _spark_results(queries, events, options).items():
            frame = matches.persist()
            in_order = frame.orderBy("match_order") if "match_order" in frame.columns else frame
            if screen.limit is not None:
                in_order = in_order.limit(screen.limit)
            rows = in_order.drop("match_order").toArrow()
            frame = frame.drop("match_order")
            if name in paths:
                write_spark(frame, paths[name])
            results.append(Result(name, rows.schema, frame.count(), rows))
            told |= dict.fromkeys(last_notes(matches))
        if not any(result.count for result in results) and not isinstance(events, dict):
            types = _types_in(events, options["type_column"])
    for result in results:
        screen.show(result, queries.names, paths)
    for text in told:
        note_warning(text)
    if types is not None:
        _note_missing_types(queries, types)
    return sum(result.count for result in results)


@contextmanager
def on_spark() -> Iterator[Any]:
    """A session of an embedded Spark, which ends with the block; what goes wrong in it is an error of ours."""
    try:
        from kleene.spark import session as embedded
        from kleene.spark.files import session_in_utc
        from kleene.spark.session import TaskCounter
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"matching on Spark needs the package '{error.name}'",
            hint="Install it with pip install 'kleene[spark]', or match in this process, without --spark.",
        ) from None
    with _progress() as report:
        session = embedded.embedded_session()
        own = session_in_utc(session)
        try:
            with TaskCounter(own, report):
                yield own
        except Exception as error:
            raise embedded.kleene_error(error) or spark_failure(error) from None
        finally:
            session.stop()


def _spark_results(queries: Program, events: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The results by name; that of a single query with what restores its order."""
    query = _single(queries) if "timeouts" in options else queries.queries[0]
    if is_row_pattern(query.definition):
        names = {*events.columns, *(measure.name for measure in query.definition.measures or ())}
        return {queries.names[0]: query.match(events, **options, match_order="match_order" not in names)}
    if len(queries.queries) == 1 and not query.definition.from_streams:
        return {queries.names[0]: query.match(events, **options, match_order=True)}
    return queries.match(events, **options)


def _types_in(events: Any, type_column: str) -> set[str | None] | None:
    if type_column not in events.columns:
        return None
    from kleene.spark.names import quoted_column

    return {row[0] for row in events.select(quoted_column(type_column)).distinct().limit(1_000).collect()}


def _note_missing_types(queries: Program, types: set[str | None]) -> None:
    """When nothing was found, an event type that no event has is the likely reason."""
    for query in queries.queries:
        if not set(query.definition.from_streams).intersection(queries.names):
            variables = variables_in(query.definition.pattern)
            wanted = dict.fromkeys(name for variable in variables for name in variable.types if name not in types)
            for text in missing_types(list(wanted), list(types), is_empty=True):
                note_warning(text)


def spark_failure(error: Exception) -> Exception:
    """What Spark raised, as an error of ours; what the terminal or the pipe raised stays what it is."""
    if isinstance(error, KleeneError) or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EPIPE)):
        return error
    text = re.sub(r"^\[STREAM_FAILED\].*?terminated with exception: ", "", str(error), flags=re.DOTALL)
    lines = [line for line in text.splitlines() if line.strip()] or [type(error).__name__]
    first = next((line for line in lines if re.match(r"\w[\w.]*(Error|Exception): ", line)), lines[0])
    if "FAILED_READ_FILE" in first or "CANNOT_READ" in first:
        return SchemaError(f"the input cannot be read: {first}")
    return ExecutionError(f"Spark could not finish: {first}")


@contextmanager
def _progress() -> Iterator[Any]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes, transient=True) as progress:
        task = progress.add_task("Starting Spark", total=None)

        def report(done: int, total: int) -> None:
            if total:
                progress.update(task, description=f"Matching, {done} of {total} tasks", completed=done, total=total)

        yield report

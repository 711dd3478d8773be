"""Matching a whole input, in process or on an embedded Spark, and showing what was found."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from kleene.api import last_notes
from kleene.cli.console import note, note_warning, notes, say, shown
from kleene.cli.reading import Inputs, read_tables
from kleene.errors import (
    ExecutionError,
    KleeneError,
    SchemaError,
    UnsupportedError,
    did_you_mean,
    listed,
    printable,
)
from kleene.files import write_arrow
from kleene.ir.pattern import variables_in
from kleene.program import Program
from kleene.show import match_table


def match_in_process(
    queries: Program, files: Inputs, options: dict[str, Any], paths: dict[str, Path], limit: int
) -> int:
    events = read_tables(files)
    total = 0
    for name, table in queries.match(events, **options).items():
        if name in paths:
            write_arrow(table, paths[name])
        _show(name, queries, table.column_names, table.slice(0, limit).to_pylist(), table.num_rows, paths)
        total += table.num_rows
    if not total and not isinstance(events, dict) and options["type_column"] in events.column_names:
        _note_missing_types(queries, set(events.column(options["type_column"]).unique().to_pylist()))
    return total


def match_on_spark(queries: Program, files: Inputs, options: dict[str, Any], paths: dict[str, Path], limit: int) -> int:
    try:
        from kleene.spark import session as embedded
        from kleene.spark.files import read_spark, session_in_utc, write_spark
        from kleene.spark.session import TaskCounter
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"matching on Spark needs the package '{error.name}'",
            hint="Install it with pip install 'pyspark[sql]>=4,<5', or match in this process with --in-process.",
        ) from None
    with _progress() as report:
        session = embedded.embedded_session()
        own = session_in_utc(session)
        results: list[tuple[str, list[str], list[dict[str, Any]], int]] = []
        types: set[str | None] | None = None
        told: dict[str, None] = {}
        try:
            with TaskCounter(own, report):
                events = (
                    {name: read_spark(own, part) for name, part in files.items()}
                    if isinstance(files, dict)
                    else read_spark(own, files)
                )
                for name, matches in _spark_results(queries, events, options).items():
                    frame = matches.persist()
                    in_order = frame.orderBy("match_order") if "match_order" in frame.columns else frame
                    rows = in_order.limit(limit).drop("match_order").toArrow().to_pylist()
                    frame = frame.drop("match_order")
                    if name in paths:
                        write_spark(frame, paths[name])
                    results.append((name, frame.columns, rows, frame.count()))
                    told |= dict.fromkeys(last_notes(matches))
                if not any(count for *_, count in results) and not isinstance(events, dict):
                    types = _types_in(events, options["type_column"])
        except Exception as error:
            raise embedded.kleene_error(error) or spark_failure(error) from None
        finally:
            session.stop()
    for name, columns, rows, count in results:
        _show(name, queries, columns, rows, count, paths)
    for text in told:
        note_warning(text)
    if types is not None:
        _note_missing_types(queries, types)
    return sum(count for *_, count in results)


def _spark_results(queries: Program, events: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The results by name; that of a single query with what restores its order."""
    query = queries.queries[0]
    if len(queries.queries) == 1 and query.definition.from_stream is None:
        return {queries.names[0]: query.match(events, **options, match_order=True)}
    return queries.match(events, **options)


def _types_in(events: Any, type_column: str) -> set[str | None] | None:
    if type_column not in events.columns:
        return None
    from kleene.spark.names import quoted_column

    return {row[0] for row in events.select(quoted_column(type_column)).distinct().limit(1_000).collect()}


def _note_missing_types(queries: Program, types: set[str | None]) -> None:
    """When nothing was found, an event type that no event has is the likely reason."""
    known = sorted(name for name in types if name is not None)
    for query in queries.queries:
        if query.definition.from_stream in queries.names:
            continue
        for variable in variables_in(query.definition.pattern):
            for name in variable.types:
                if name not in types:
                    hint = f"types in the input: {listed(known)}.{did_you_mean(name, known)}"
                    note(f"note: no event is of type '{printable(name)}'; {hint}", "yellow")


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


def _show(
    name: str, queries: Program, columns: list[str], rows: list[dict[str, Any]], count: int, paths: dict[str, Path]
) -> None:
    title = name if len(queries.names) > 1 else None
    if rows:
        say(match_table(columns, rows, title))
    more = f", the first {len(rows)} shown" if 0 < len(rows) < count else ""
    line = Text(f"{count:,} match{'' if count == 1 else 'es'}", style="bold") + Text(more)
    if title and not rows:
        line = shown(f"{printable(title)}: ") + line
    say(line)
    if name in paths:
        say(shown(f"written to {printable(str(paths[name]), 300)}"), soft_wrap=True)

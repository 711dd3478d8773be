"""A folder as a stream: starting it, showing how it goes, ending it."""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.live import Live

from kleene.api import Query
from kleene.cli.console import note, notes, output, say
from kleene.cli.matching import spark_failure
from kleene.cli.reading import Inputs, parts_of
from kleene.cli.showing import Screen
from kleene.errors import SchemaError, UnsupportedError, printable
from kleene.files.writing import json_text
from kleene.programs import Program
from kleene.show import match_table, stream_view
from kleene.visible import visible

ALL, NEWEST = 1 << 40, 5
"""How many matches of a micro-batch are shown: to a pipe, and to a terminal."""


def single(queries: Program) -> Query:
    if len(queries.queries) > 1:
        raise UnsupportedError(
            f"a stream is matched with one query, but the file has {len(queries.queries)}",
            hint="Put each into a file of its own, and start a stream for it.",
        )
    names = queries.queries[0].definition.from_streams
    if len(names) > 1:
        raise UnsupportedError(
            f"kleene stream reads the input of a query, but FROM names {len(names)} streams",
            hint="Use Python, where streams have names: kleene.program(text).match({'name': frame, …}, order_by=…).",
        )
    return queries.queries[0]


def check_folders(files: Inputs) -> None:
    for part in parts_of(files):
        if not part.path.is_dir():
            raise SchemaError(
                f"'{printable(str(part.path))}' is a file, but a stream reads a folder that files are put into",
                hint="Name its folder, or find the matches of the file with kleene match.",
            )


@contextmanager
def stream_places(output_path: Path | None, checkpoint: Path | None) -> Iterator[tuple[Path, Path]]:
    """Where matches and the checkpoint go: together, so that one is not taken for another's; or nowhere for long."""
    if output_path is not None:
        if output_path.suffix.lower() in (".csv", ".json"):
            raise SchemaError(
                f"a stream writes Parquet, but the output is '{printable(str(output_path))}'",
                hint="Choose another name.",
            )
        yield output_path, output_path / "_checkpoint" if checkpoint is None else checkpoint
        return
    with tempfile.TemporaryDirectory(prefix="kleene-stream-", ignore_cleanup_errors=True) as folder:
        yield Path(folder, "matches"), Path(folder, "checkpoint")


def match_stream(
    query: Query,
    files: Inputs,
    options: dict[str, Any],
    target: Path,
    checkpoint: Path,
    settings: dict[str, Any],
    screen: Screen,
    is_kept: bool,
) -> None:
    try:
        from kleene.spark import session as embedded
        from kleene.spark.folder_stream import FolderStream
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"a stream needs the package '{error.name}'",
            hint="Install it with pip install 'pyspark[sql]>=4,<5' 'pandas>=2.2,<3'.",
        ) from None
    wanted = FolderStream(query, files, options, target, checkpoint, **settings, keep=is_kept)
    wanted.check_places()
    with notes.status("Starting Spark"):
        session = embedded.embedded_session()
    try:
        with notes.status("Starting the stream"):
            running = wanted.start(session, screen.limit or 0)
        title = _stream_title(files, options, target if is_kept else None)
        was_stopped = _watch(running, title, screen)
        failure = None if was_stopped else running.failure()
        if failure is not None:
            raise failure
    except Exception as error:
        raise embedded.kleene_error(error) or spark_failure(error) from None
    finally:
        session.stop()
    tell = note if screen.is_json else partial(say, soft_wrap=True)
    for line in _summary(running.metrics, was_stopped, target if is_kept else None, checkpoint):
        tell(line)


def _stream_title(files: Inputs, options: dict[str, Any], target: Path | None) -> str:
    title = f"{', '.join(str(part.path) for part in parts_of(files))} → {target or 'shown only'}"
    stream = options["stream"]
    how = "as they arrive" if stream.order == "arrival" else f"events may be {stream.watermark} late"
    return f"{title}, by {options['order_by'][0]}, {how}"


def _watch(running: Any, title: str, screen: Screen) -> bool:
    """Shows how the stream goes until it ends; whether it was ended from outside."""
    with _interrupts() as stopped:
        if not screen.is_json:
            hint = f"{title}; Ctrl-C ends it"
            with Live(console=output, transient=True, refresh_per_second=4, vertical_overflow="ellipsis") as live:
                _until_end(running, stopped, lambda _: live.update(_view(running, hint)))
            say(_view(running, title))
        else:
            note(title)
            note(_line(running.headings))
            _until_end(running, stopped, _print_batches)
        return stopped.is_set()


def _line(cells: Any) -> str:
    from kleene.spark.monitor import WIDTHS, aligned

    return aligned([cells], WIDTHS)[0]


def _until_end(running: Any, stopped: threading.Event, show: Callable[[Any], None]) -> None:
    show(())
    while True:
        is_over = stopped.wait(0.5) or not running.is_active
        if is_over:
            running.stop()
        show(running.look())
        if is_over:
            return


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """While open, Ctrl-C and a request to end are noted; Spark's own way is to let what runs fail."""
    stopped = threading.Event()
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = {kind: signal.signal(kind, lambda *_: stopped.set()) for kind in kinds}
    try:
        yield stopped
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _view(running: Any, title: str) -> Any:
    metrics, newest = running.metrics, list(running.newest)
    matches = match_table(running.columns, newest, "newest matches") if newest else None
    cells = [batch.cells() for batch in metrics.batches]
    lines = metrics.notes() or ["waiting for the first micro-batch, which takes longest"]
    return stream_view(title, running.headings, cells, lines, matches, output.width)


def _print_batches(found: Any) -> None:
    """The matches to the letter, since no person reads them; what there is to say of them, to a person."""
    for batch, rows in found:
        note(_line(batch.cells()))
        if rows:
            sys.stdout.write("".join(json_text(row) + "\n" for row in rows))
            sys.stdout.flush()
        if 0 < len(rows) < batch.matches:
            note(f"… and {batch.matches - len(rows):,} more")


def _summary(metrics: Any, was_stopped: bool, target: Path | None, checkpoint: Path) -> Iterator[str]:
    def counted(number: int, thing: str, things: str | None = None) -> str:
        return f"{number:,} {thing if number == 1 else things or thing + 's'}"

    ended = "stopped; " if was_stopped else ""
    found = counted(metrics.matches, "match", "matches")
    yield f"{ended}{found} among {counted(metrics.read, 'event')} in this run"
    if metrics.late:
        yield f"{counted(metrics.late, 'event')} came too late and took no part; a longer --watermark waits for them"
    if metrics.ahead:
        yield f"{counted(metrics.ahead, 'event')} set aside: further ahead of the clock than --max-ahead allows"
    if metrics.waiting or metrics.runs:
        least = "" if metrics.is_whole else "at least "
        waiting = f"{counted(metrics.waiting, 'event')} for the watermark, {counted(metrics.runs, 'open run')}"
        yield f"still waiting: {least}{waiting}"
    if target is None:
        yield "nothing was written; with --output matches are written, and the next run goes on where this one ended"
    else:
        yield visible(f"matches     {target}")
        yield visible(f"checkpoint  {checkpoint}; the same command goes on from here")

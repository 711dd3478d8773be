"""The command line: `kleene match`, `kleene stream`, `kleene check`, `kleene explain`.

Exit codes: 0 done, 1 no match where --fail-if-none asked for one, 2 the command was used wrongly, 3 the query is
wrong, 4 the input does not fit, 5 matching failed.
"""

from __future__ import annotations

import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from kleene import __version__
from kleene.api import BUCKETS, Query
from kleene.api import check as check_query
from kleene.errors import (
    AnalysisError,
    ExecutionError,
    KleeneError,
    QuerySyntaxError,
    SchemaError,
    UnsupportedError,
    did_you_mean,
    listed,
    printable,
)
from kleene.files import EventFiles, find_files, output_kind, read_arrow, write_arrow
from kleene.ir.pattern import variables_in
from kleene.program import Program, program
from kleene.schema_text import parse_schema
from kleene.show import explanation, match_table, stream_view, value_text

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Find patterns in event data: sequences, repetitions and absences of events that belong together.",
)
# Results go to standard output, everything about the work to standard error.
output = Console()
notes = Console(stderr=True)

NO_MATCH, QUERY_WRONG, INPUT_WRONG, FAILED = 1, 3, 4, 5

QueryFile = Annotated[Path, typer.Argument(help="A file with one or more queries, or - for standard input.")]
OrderBy = Annotated[
    list[str], typer.Option("--order-by", "-b", help="The column that orders the events; repeat for more.")
]


@app.command("match")
def match_command(
    query: QueryFile,
    inputs: Annotated[
        list[str],
        typer.Option(
            "--input",
            "-i",
            help="A Parquet, CSV or JSON-lines file, or a folder of them; TYPE=PATH for one input per event type.",
        ),
    ],
    order_by: OrderBy,
    tie_break: Annotated[
        list[str] | None, typer.Option(help="A column that decides between events of equal order; repeat for more.")
    ] = None,
    type_column: Annotated[str, typer.Option(help="The column that tells the type of an event.")] = "type",
    format: Annotated[str, typer.Option(help="all, or non_overlapping.")] = "all",
    output_path: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write: a name ending in .parquet, .csv or .json (a folder; a file with --in-process).",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an output that exists.")] = False,
    limit: Annotated[int, typer.Option(help="How many matches to show.", min=0)] = 10,
    in_process: Annotated[
        bool,
        typer.Option("--in-process", help="Match on Arrow in this process, without Spark: quick for small inputs."),
    ] = False,
    fail_if_none: Annotated[
        bool, typer.Option("--fail-if-none", help="Exit with code 1 when there is no match.")
    ] = False,
) -> None:
    """Find the matches of a query among events."""
    with _errors():
        queries = _read_program(query)
        files = _read_inputs(inputs)
        paths = _output_paths(queries, output_path, overwrite, files)
        options = {
            "order_by": order_by,
            "tie_break": tie_break,
            "type_column": type_column,
            "format": format,
        }
        runner = _match_in_process if in_process else _match_on_spark
        found = runner(queries, files, options, paths, limit, overwrite)
        if fail_if_none and not found:
            raise typer.Exit(NO_MATCH)


@app.command()
def stream(
    query: QueryFile,
    inputs: Annotated[
        list[str],
        typer.Option(
            "--input",
            "-i",
            help="A folder that Parquet, CSV or JSON-lines files are put into; TYPE=FOLDER for one per event type.",
        ),
    ],
    order_by: OrderBy,
    watermark: Annotated[
        str | None, typer.Option("--watermark", "-w", help="How long to wait for events that are late: '10 minutes'.")
    ] = None,
    max_ahead: Annotated[
        str | None,
        typer.Option(help="Set events aside whose time is further ahead of the clock than this: '1 hour'."),
    ] = None,
    arrival: Annotated[
        bool, typer.Option("--arrival", help="Trust that events arrive in order, and match them at once.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once/--follow", help="End when all that is there now has been read, or go on.")
    ] = False,
    output_path: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder to write matches to, as Parquet files.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="The folder that remembers how far the stream is; by default _checkpoint in the output."),
    ] = None,
    type_column: Annotated[str, typer.Option(help="The column that tells the type of an event.")] = "type",
    tie_break: Annotated[
        list[str] | None, typer.Option(help="A column that decides between events of equal order; repeat for more.")
    ] = None,
    format: Annotated[str, typer.Option(help="all, or non_overlapping.")] = "all",
    every: Annotated[str, typer.Option(help="How often to look for new files.")] = "1 second",
    max_files: Annotated[int | None, typer.Option(help="The most files in a micro-batch.", min=1)] = None,
    buckets: Annotated[int, typer.Option(help="Groups that keys are put together in.", min=1)] = BUCKETS,
    unbounded_state: Annotated[
        bool, typer.Option("--unbounded-state", help="Accept a query that may hold ever more.")
    ] = False,
    limit: Annotated[int, typer.Option(help="How many of the newest matches to show.", min=0)] = 5,
) -> None:
    """Find matches in files as they come into a folder, and show how it goes; Ctrl-C ends it."""
    if watermark is None and not arrival:
        raise typer.BadParameter(
            'say how long to wait for events that are late: --watermark "10 minutes"; '
            "or trust that events arrive in order: --arrival",
            param_hint="--watermark",
        )
    if checkpoint is not None and output_path is None:
        raise typer.BadParameter(
            "a checkpoint says which matches have been written: say where to, with --output", param_hint="--checkpoint"
        )
    with _errors():
        one = _single(_read_program(query))
        files = _read_inputs(inputs)
        _check_folders(files)
        options = {
            "order_by": order_by,
            "tie_break": tie_break,
            "type_column": type_column,
            "format": format,
            "order": "arrival" if arrival else "time",
            "buckets": buckets,
            "unbounded_state": "allow" if unbounded_state else "refuse",
        }
        with _stream_places(output_path, checkpoint) as (target, place):
            for folder in (target, place):
                _check_apart(folder, files, "output" if folder is target else "checkpoint")
            settings = {"watermark": watermark, "max_ahead": max_ahead, "most_files": max_files}
            settings["every"] = None if once else every
            _match_stream(one, files, options, target, place, settings, limit, is_kept=output_path is not None)


@app.command()
def check(
    query: QueryFile,
    schema: Annotated[
        str | None,
        typer.Option(help="The columns of the input: a file of events, or text such as 'ts timestamp, id string'."),
    ] = None,
    order_by: Annotated[
        list[str] | None, typer.Option("--order-by", "-b", help="The order key, to check WITHIN.")
    ] = None,
) -> None:
    """Check a query, on its own or against the columns of an input."""
    with _errors():
        queries = _read_program(query)
        if schema is not None:
            known = parse_schema(schema)
            for one in queries.queries:
                if one.definition.from_stream not in queries.names:
                    for warning in check_query(one, known, order_by or ()):
                        notes.print(Text(f"warning: {warning}", style="yellow"))
        count = len(queries.queries)
        output.print(
            Text("✓ ", style="bold green")
            + Text("the query is" if count == 1 else f"{count} queries are")
            + Text(" well formed")
            + Text("" if schema is None else f" and {'fits' if count == 1 else 'fit'} the schema")
        )


@app.command()
def explain(
    query: QueryFile,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", help="Events, as for match: checks columns, and measures statistics."),
    ] = None,
    order_by: Annotated[
        list[str] | None, typer.Option("--order-by", "-b", help="The column that orders the events.")
    ] = None,
    type_column: Annotated[str, typer.Option(help="The column that tells the type of an event.")] = "type",
    hints: Annotated[
        list[str] | None,
        typer.Option("--plan", "-p", help="A hint, such as scan=ais or operators=nfa; repeat for more."),
    ] = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run the query on the input; show counts and times of each operator.")
    ] = False,
    code: Annotated[bool, typer.Option("--code", help="The code that is compiled for the query.")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="The automaton in the language of Graphviz.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="The automaton as a picture.")] = False,
) -> None:
    """Show how a query is understood and will be run: its plan and the reasons for it, its window, its automaton."""
    with _errors():
        queries = _read_program(query)
        options: dict[str, Any] = {"plan": _hints(hints or []), "analyze": analyze}
        options |= {"code": code, "dot": dot, "svg": svg}
        events = None
        if inputs:
            files = _read_inputs(inputs)
            events = (
                {name: read_arrow(part) for name, part in files.items()}
                if isinstance(files, dict)
                else read_arrow(files)
            )
            options |= {"order_by": order_by or (), "type_column": type_column}
        if events is None and (analyze or code):
            raise UnsupportedError(
                f"--{'analyze' if analyze else 'code'} needs events", hint="Name them with --input, and --order-by."
            )
        if svg and len(queries.queries) > 1:
            raise UnsupportedError("one picture shows one query", hint="Put the query into a file of its own.")
        text = queries.explain(events, **options)
        if dot or svg or code:
            print(text)  # not through rich: it must survive a pipe as it is
        else:
            output.print(explanation(text), soft_wrap=True)


def _hints(given: list[str]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for item in given:
        name, separator, value = item.partition("=")
        if not separator:
            raise UnsupportedError(
                f"the hint '{printable(item)}' has no value", hint="Write NAME=VALUE: --plan scan=ais"
            )
        found[name.strip()] = value.strip()
    return found or None


def _version(wanted: bool) -> None:
    if wanted:
        print(f"kleene {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    app()


# --- reading ---------------------------------------------------------------------------------------------------------


def _read_program(path: Path) -> Program:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise QuerySyntaxError(f"'{path}' is not text: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise SchemaError(f"cannot read the query file '{path}': {error.strerror}") from None
    return program(text.removeprefix("\ufeff"))


def _read_inputs(inputs: list[str]) -> EventFiles | dict[str, EventFiles]:
    """One input, or several by event type."""
    if len(inputs) == 1 and ("=" not in inputs[0] or Path(inputs[0]).exists()):
        return find_files(Path(inputs[0]))
    found: dict[str, EventFiles] = {}
    for item in inputs:
        name, separator, path = item.partition("=")
        if not separator:
            raise SchemaError(
                f"several inputs are given, and '{item}' does not say which event type it holds",
                hint="Write each as TYPE=PATH: --input Shelf=shelf.parquet --input Exit=exit.parquet",
            )
        if name in found:
            raise SchemaError(f"two inputs are given for the event type '{name}'", hint="Put them into one folder.")
        found[name] = find_files(Path(path))
    return found


def _output_paths(
    queries: Program, path: Path | None, overwrite: bool, files: EventFiles | dict[str, EventFiles]
) -> dict[str, Path]:
    """Where each query's matches go: of several queries, each to a name of its own."""
    if path is None:
        return {}
    output_kind(path)
    names = queries.names
    paths = {name: path if len(names) == 1 else path.with_name(f"{path.stem}.{name}{path.suffix}") for name in names}
    for target in paths.values():
        _check_apart(target, files, "output")
        if target.exists() and not overwrite:
            raise SchemaError(f"the output '{target}' exists", hint="Choose another name, or add --overwrite.")
    return paths


def _check_apart(target: Path, files: EventFiles | dict[str, EventFiles], what: str) -> None:
    place = target.resolve()
    inputs = [part.path.resolve() for part in (files.values() if isinstance(files, dict) else [files])]
    if any(place == item or item in place.parents or place in item.parents for item in inputs):
        raise SchemaError(f"the {what} '{target}' is an input, or lies in one", hint="Choose another name.")


# --- matching --------------------------------------------------------------------------------------------------------


def _match_in_process(
    queries: Program, files: Any, options: dict[str, Any], paths: dict[str, Path], limit: int, overwrite: bool
) -> int:
    events = {name: read_arrow(part) for name, part in files.items()} if isinstance(files, dict) else read_arrow(files)
    total = 0
    for name, table in queries.match(events, **options).items():
        if name in paths:
            write_arrow(table, paths[name])
        _show(name, queries, table.column_names, table.slice(0, limit).to_pylist(), table.num_rows, paths)
        total += table.num_rows
    if not total and not isinstance(events, dict) and options["type_column"] in events.column_names:
        _note_missing_types(queries, set(events.column(options["type_column"]).unique().to_pylist()))
    return total


def _match_on_spark(
    queries: Program, files: Any, options: dict[str, Any], paths: dict[str, Path], limit: int, overwrite: bool
) -> int:
    try:
        from kleene.spark import session as embedded
        from kleene.spark.files import read_spark, write_spark
        from kleene.spark.progress import Progress as SparkProgress
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"matching on Spark needs the package '{error.name}'",
            hint="Install it with pip install 'pyspark[sql]>=4,<5', or match in this process with --in-process.",
        ) from None
    with _progress() as report:
        session = embedded.embedded_session()
        shown: list[tuple[str, list[str], list[dict[str, Any]], int]] = []
        types: set[str | None] | None = None
        try:
            with SparkProgress(session, report):
                events = (
                    {name: read_spark(session, part) for name, part in files.items()}
                    if isinstance(files, dict)
                    else read_spark(session, files)
                )
                for name, frame in _spark_results(queries, events, options).items():
                    frame = frame.persist()
                    in_order = frame.orderBy("match_order") if "match_order" in frame.columns else frame
                    rows = in_order.limit(limit).drop("match_order").toArrow().to_pylist()
                    frame = frame.drop("match_order")
                    if name in paths:
                        write_spark(frame, paths[name], overwrite)
                    shown.append((name, frame.columns, rows, frame.count()))
                if not any(count for *_, count in shown) and not isinstance(events, dict):
                    types = _types_in(events, options["type_column"])
        except Exception as error:
            raise embedded.kleene_error(error) or _spark_failure(error) from None
        finally:
            session.stop()
    for name, columns, rows, count in shown:
        _show(name, queries, columns, rows, count, paths)
    if types is not None:
        _note_missing_types(queries, types)
    return sum(count for *_, count in shown)


def _spark_results(queries: Program, events: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The results by name; that of a single query with what restores its order."""
    query = queries.queries[0]
    if len(queries.queries) == 1 and query.definition.from_stream is None:
        return {queries.names[0]: query.match(events, **options, match_order=True)}
    return queries.match(events, **options)


def _types_in(events: Any, type_column: str) -> set[str | None] | None:
    if type_column not in events.columns:
        return None
    return {row[0] for row in events.select(f"`{type_column}`").distinct().limit(1_000).collect()}


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
                    notes.print(Text(f"note: no event is of type '{printable(name)}'; {hint}", style="yellow"))


def _spark_failure(error: Exception) -> KleeneError:
    if isinstance(error, KleeneError):
        return error
    text = re.sub(r"^\[STREAM_FAILED\].*?terminated with exception: ", "", str(error), flags=re.DOTALL)
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
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
        output.print(match_table(columns, rows, title))
    more = f", the first {len(rows)} shown" if 0 < len(rows) < count else ""
    line = Text(f"{count:,} match{'' if count == 1 else 'es'}", style="bold") + Text(more)
    if title and not rows:
        line = Text(f"{title}: ") + line
    output.print(line)
    if name in paths:
        output.print(Text(f"written to {paths[name]}"))


# --- streams ---------------------------------------------------------------------------------------------------------


def _single(queries: Program) -> Query:
    if len(queries.queries) > 1:
        raise UnsupportedError(
            f"a stream is matched with one query, and the file has {len(queries.queries)}",
            hint="Put each into a file of its own, and start a stream for it.",
        )
    return queries.queries[0]


def _check_folders(files: EventFiles | dict[str, EventFiles]) -> None:
    for part in files.values() if isinstance(files, dict) else [files]:
        if not part.path.is_dir():
            raise SchemaError(
                f"'{part.path}' is a file, and a stream reads a folder that files are put into",
                hint="Name its folder; or find the matches of the file with kleene match.",
            )


@contextmanager
def _stream_places(output_path: Path | None, checkpoint: Path | None) -> Iterator[tuple[Path, Path]]:
    """Where matches and the checkpoint go: together, so that one is not taken for another's; or nowhere for long."""
    if output_path is not None:
        if output_path.suffix.lower() in (".csv", ".json"):
            raise SchemaError(
                f"a stream writes Parquet, and the output is '{output_path}'", hint="Choose another name."
            )
        yield output_path, output_path / "_checkpoint" if checkpoint is None else checkpoint
        return
    with tempfile.TemporaryDirectory(prefix="kleene-stream-", ignore_cleanup_errors=True) as folder:
        yield Path(folder, "matches"), Path(folder, "checkpoint")


def _match_stream(
    query: Query,
    files: Any,
    options: dict[str, Any],
    target: Path,
    checkpoint: Path,
    settings: dict[str, Any],
    limit: int,
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
            running = wanted.start(session, limit)
        title = _stream_title(files, options, settings, target if is_kept else None)
        was_stopped = _watch(running, title)
        failure = None if was_stopped else running.failure()
        if failure is not None:
            raise failure
    except Exception as error:
        raise _in_options(embedded.kleene_error(error) or _spark_failure(error)) from None
    finally:
        session.stop()
    _summarize(running.metrics, was_stopped, target if is_kept else None, checkpoint)


_IN_OPTIONS = (
    (r"df\.withWatermark\('.*?', '(.*?)'\) and order='time'", r'--watermark "\1" in place of --arrival'),
    (r"Add \.withWatermark\(.*?, \"(.*?)\"\) to the stream, right before match", r'Add --watermark "\1"'),
    (r"order='arrival'", "--arrival"),
    (r'watermark="(.*?)"', r'--watermark "\1"'),
    (r'max_ahead="(.*?)"', r'--max-ahead "\1"'),
    (r"unbounded_state='allow'", "--unbounded-state"),
    (r"another checkpointLocation", "another --output"),
)


def _in_options(error: KleeneError) -> KleeneError:
    """The error as it is said here: what the arguments of `match` are called on the command line."""
    for words, option in _IN_OPTIONS:
        error.message = re.sub(words, option, error.message)
        error.hint = error.hint and re.sub(words, option, error.hint)
    return error


def _stream_title(files: Any, options: dict[str, Any], settings: dict[str, Any], target: Path | None) -> str:
    parts = files.values() if isinstance(files, dict) else [files]
    title = f"{', '.join(str(part.path) for part in parts)} → {target or 'shown only'}"
    how = "as they arrive" if options["order"] == "arrival" else f"events may be {settings['watermark']} late"
    return f"{title}, by {options['order_by'][0]}, {how}"


def _watch(running: Any, title: str) -> bool:
    """Shows how the stream goes until it ends; whether it was ended from outside."""
    with _interrupts() as stopped:
        if output.is_terminal:
            hint = f"{title}; Ctrl-C ends it"
            with Live(console=output, transient=True, refresh_per_second=4, vertical_overflow="ellipsis") as live:
                _until_end(running, stopped, lambda _: live.update(_view(running, hint)))
            output.print(_view(running, title))
        else:
            notes.print(Text(title))
            notes.print(Text(_line(running.headings)), soft_wrap=True)
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
    for batch, rows in found:
        notes.print(Text(_line(batch.cells())), soft_wrap=True)
        for row in rows:
            output.print(Text(value_text(row)), soft_wrap=True)
        if 0 < len(rows) < batch.matches:
            output.print(Text(f"… and {batch.matches - len(rows):,} more"))


def _summarize(metrics: Any, was_stopped: bool, target: Path | None, checkpoint: Path) -> None:
    def counted(number: int, thing: str, things: str | None = None) -> str:
        return f"{number:,} {thing if number == 1 else things or thing + 's'}"

    ended = "stopped; " if was_stopped else ""
    found = Text(ended) + Text(counted(metrics.matches, "match", "matches"), style="bold")
    output.print(found + Text(f" among {counted(metrics.read, 'event')} in this run"))
    if metrics.late:
        late = f"{counted(metrics.late, 'event')} came too late and took no part; a longer --watermark waits for them"
        output.print(Text(late, style="yellow"), soft_wrap=True)
    if metrics.ahead:
        ahead = f"{counted(metrics.ahead, 'event')} set aside: further ahead of the clock than --max-ahead allows"
        output.print(Text(ahead, style="yellow"), soft_wrap=True)
    if metrics.waiting or metrics.runs:
        least = "" if metrics.is_whole else "at least "
        waiting = f"{counted(metrics.waiting, 'event')} for the watermark, {counted(metrics.runs, 'open run')}"
        output.print(Text(f"still waiting: {least}{waiting}"))
    if target is None:
        hint = "nothing was written; with --output the matches are, and the next run goes on where this one ended"
        output.print(Text(hint), soft_wrap=True)
    else:
        output.print(Text(f"matches     {target}"), soft_wrap=True)
        output.print(Text(f"checkpoint  {checkpoint}; the same command goes on from here"), soft_wrap=True)


# --- errors ----------------------------------------------------------------------------------------------------------


@contextmanager
def _errors() -> Iterator[None]:
    """Errors of Kleene as text and an exit code; anything else is a bug, and shows its traceback."""
    try:
        yield
    except KleeneError as error:
        _fail(error)


def _fail(error: KleeneError) -> NoReturn:
    codes = ((QuerySyntaxError, QUERY_WRONG), (AnalysisError, QUERY_WRONG), (SchemaError, INPUT_WRONG))
    code = next((code for kind, code in codes if isinstance(error, kind)), FAILED)
    notes.print(Text("error: ", style="bold red") + Text(str(error)), soft_wrap=True)
    raise typer.Exit(code)


if __name__ == "__main__":
    main()

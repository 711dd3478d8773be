"""The verbs: what each takes, and the steps it is made of."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from kleene import __version__
from kleene.api import check as check_query
from kleene.cli.console import NO_MATCH, errors, lost_output, note_warning, say, say_plainly
from kleene.cli.matching import match_in_process, match_on_spark
from kleene.cli.reading import read_hints, read_inputs, read_program, read_tables
from kleene.cli.streaming import check_folders, match_stream, single, stream_places
from kleene.cli.writing import check_apart, output_paths
from kleene.errors import UnsupportedError
from kleene.files import checked_zone
from kleene.options import EngineOptions, StreamOptions
from kleene.options.stream import BUCKETS
from kleene.schema_text import parse_schema
from kleene.show import explanation
from kleene.visible import visible

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Find patterns in event data: sequences, repetitions and absences of events that belong together.",
)

QueryFile = Annotated[Path, typer.Argument(help="A file with one or more queries, or - for standard input.")]
OrderBy = Annotated[
    list[str], typer.Option("--order-by", "-b", help="The column that orders the events; repeat for more.")
]
Timezone = Annotated[str, typer.Option(help="The zone of times that have none, such as Europe/Berlin.")]


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
    timezone: Timezone = "UTC",
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
    with errors():
        queries = read_program(query)
        files = read_inputs(inputs, checked_zone(timezone))
        paths = output_paths(queries, query, output_path, overwrite, files)
        options = {
            "order_by": order_by,
            "tie_break": tie_break,
            "type_column": type_column,
            "format": format,
        }
        runner = match_in_process if in_process else match_on_spark
        found = runner(queries, files, options, paths, limit)
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
    timezone: Timezone = "UTC",
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
    with errors():
        one = single(read_program(query))
        files = read_inputs(inputs, checked_zone(timezone))
        check_folders(files)
        options = {
            "order_by": order_by,
            "tie_break": tie_break,
            "type_column": type_column,
            "format": format,
            "stream": StreamOptions(
                order="arrival" if arrival else "time",
                buckets=buckets,
                unbounded_state="allow" if unbounded_state else "refuse",
                watermark=watermark,
                max_ahead=max_ahead,
            ),
        }
        with stream_places(output_path, checkpoint) as (target, place):
            for folder in (target, place):
                check_apart(folder, files, query, "output" if folder is target else "checkpoint")
            settings = {"most_files": max_files, "every": None if once else every}
            match_stream(one, files, options, target, place, settings, limit, is_kept=output_path is not None)


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
    timezone: Timezone = "UTC",
) -> None:
    """Check a query, on its own or against the columns of an input."""
    with errors():
        queries = read_program(query)
        if schema is not None:
            known = parse_schema(schema, checked_zone(timezone))
            for one in queries.queries:
                if one.definition.from_stream not in queries.names:
                    for warning in check_query(one, known, order_by or ()):
                        note_warning(warning)
        count = len(queries.queries)
        say(
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
    timezone: Timezone = "UTC",
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
    with errors():
        queries = read_program(query)
        options: dict[str, Any] = {"engine": EngineOptions(plan=read_hints(hints or []))}
        options |= {"analyze": analyze, "code": code, "dot": dot, "svg": svg}
        events = None
        if inputs:
            files = read_inputs(inputs, checked_zone(timezone))
            events = read_tables(files)
            options |= {"order_by": order_by or (), "type_column": type_column}
        if events is None and (analyze or code):
            raise UnsupportedError(
                f"--{'analyze' if analyze else 'code'} needs events", hint="Name them with --input, and --order-by."
            )
        if svg and len(queries.queries) > 1:
            raise UnsupportedError("one picture shows one query", hint="Put the query into a file of its own.")
        text = queries.explain(events, **options)
        if dot or svg or code:
            say_plainly(text)
        else:
            say(explanation(visible(text, keep="\n")), soft_wrap=True)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"kleene {__version__}", flush=True)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    try:
        app()
    except OSError as error:  # of help and of the version, which are no verbs
        sys.exit(lost_output(error))

"""The verbs: what each takes, and the steps it is made of."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from kleene import __version__
from kleene.analysis.row_pattern import is_row_pattern
from kleene.api import check as check_query
from kleene.cli import code_cache, editor
from kleene.cli.console import ExitCode, errors, lost_output, note, note_warning, notes, output, say, say_plainly
from kleene.cli.matching import choose_place, match_in_process, match_on_spark
from kleene.cli.reading import (
    Language,
    only_query,
    read_form,
    read_hints,
    read_inputs,
    read_named,
    read_params,
    read_program,
    read_tables,
    read_text,
    read_types,
    sql_file,
    with_params,
)
from kleene.cli.showing import Screen, make_screen
from kleene.cli.sql import NAME as SQL_RESULT
from kleene.cli.sql import sql_in_process, sql_on_spark
from kleene.cli.streaming import ALL, NEWEST, check_folders, match_stream, single, stream_places
from kleene.cli.writing import check_apart, output_paths
from kleene.engine.attributes_by_type import with_types
from kleene.errors import UnsupportedError
from kleene.files import checked_zone
from kleene.options import EngineOptions, StreamOptions
from kleene.options.stream import BUCKETS
from kleene.programs import Program
from kleene.schema_text import parse_schema
from kleene.show import explanation
from kleene.visible import visible

_CODES = "Exit codes: " + "; ".join(f"{code.value} {code.meaning}" for code in ExitCode) + "."

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Find patterns in event data: sequences, repetitions and absences of events that belong together.",
    epilog=_CODES,
)


def _examples(*lines: str) -> str:
    return "\n\n".join(["[bold]Examples[/bold]", *(line.replace("[", "\\[") for line in lines)])


QueryFile = Annotated[
    Path,
    typer.Argument(
        help="A file with a query, or - for standard input. Its ending says the language: .sase (one or more SASE "
        "queries), .sql (a MATCH_RECOGNIZE clause), .regex (the regular-expression operator, as TOML)."
    ),
]
LanguageOption = Annotated[Language | None, typer.Option(help="The language, where the ending does not say it.")]
InputOption = Annotated[
    list[str],
    typer.Option(
        "--input",
        "-i",
        help="A Parquet, CSV or JSON-lines file, a folder of them, or - for standard input; TYPE=PATH for one input "
        "per event type.",
    ),
]
OrderBy = Annotated[
    list[str] | None,
    typer.Option("--order-by", "-b", help="The column that orders the events of a SASE query; repeat for more."),
]
TieBreak = Annotated[
    list[str] | None, typer.Option(help="A column that decides between events of equal order; repeat for more.")
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        help="NAME=VALUE for :NAME in the query; repeat for more. A value is of the type that its use needs, or looks "
        "like: a number, true or false, an ISO date or time, else text.",
    ),
]
TypeColumn = Annotated[str, typer.Option(help="The column that tells the type of an event.")]
Types = Annotated[
    str | None,
    typer.Option(
        "--types",
        help='The attributes of each event type in one table, as JSON or a file of it: \'{"Shelf": ["id"]}\'. A '
        "comparison on an attribute that the type of an event lacks is true.",
    ),
]
Selected = Annotated[str, typer.Option(help="all, or non_overlapping.")]
Timezone = Annotated[str, typer.Option(help="The zone of times that have none, such as Europe/Berlin.")]
SchemaOption = Annotated[
    str | None, typer.Option(help="Types of columns that are not to be guessed: 'ts timestamp, id string'.")
]
Cast = Annotated[list[str] | None, typer.Option(help="The type of one column: ts=timestamp; repeat for more.")]
Delimiter = Annotated[str, typer.Option(help="What stands between the fields of CSV files.")]
Null = Annotated[list[str] | None, typer.Option(help="A text that is NULL in CSV files; repeat for more.")]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Where to write: a name ending in .parquet, .csv, .json or .arrow (a folder, where Spark writes it), or - "
        "for JSON lines to standard output.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an output that exists.")]
Show = Annotated[
    str | None,
    typer.Option("--show", help="table or json; by default a table to a terminal, and JSON lines to a pipe."),
]


TimeoutsOption = Annotated[
    bool,
    typer.Option(
        "--timeouts",
        help="Also give out runs that left their window incomplete; the column timed_out tells them from matches.",
    ),
]


@app.command(
    "match",
    epilog=_examples(
        "kleene match theft.sase -i readings.parquet -b ts",
        "kleene match falls.sql -i trades.csv -o falls.parquet",
        "cat clicks.jsonl | kleene match funnel.sase -i - -b ts | jq .user",
        "kleene match theft.sase -i Shelf=shelf.csv -i Exit=exit.csv -b ts --spark",
    ),
)
def match_command(
    query: QueryFile,
    inputs: InputOption,
    order_by: OrderBy = None,
    language: LanguageOption = None,
    tie_break: TieBreak = None,
    type_column: TypeColumn = "type",
    types: Types = None,
    format: Selected = "all",
    timeouts: TimeoutsOption = False,
    timezone: Timezone = "UTC",
    schema: SchemaOption = None,
    cast: Cast = None,
    delimiter: Delimiter = ",",
    null: Null = None,
    param: Params = None,
    output_path: OutputOption = None,
    overwrite: Overwrite = False,
    style: Show = None,
    limit: Annotated[
        int | None, typer.Option(help="How many matches to show; by default a screenful, and all to a pipe.", min=0)
    ] = None,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Match in this process, however large the input is.")
    ] = False,
    on_spark: Annotated[bool, typer.Option("--spark", help="Match on Spark, however small the input is.")] = False,
    fail_if_none: Annotated[
        bool, typer.Option("--fail-if-none", help="Exit with code 1 when there is no match.")
    ] = False,
) -> None:
    """Find the matches of a query among events. Small inputs are matched in this process, large ones on Spark."""
    _check_one(in_process, on_spark)
    _check_style(style)
    with errors():
        queries = read_program(query, language)
        files = read_inputs(inputs, checked_zone(timezone), read_form(delimiter, null, schema, cast))
        is_piped = output_path is not None and str(output_path) == "-"
        paths = output_paths(queries.names, query, None if is_piped else output_path, overwrite, files)
        options = _match_options(queries, order_by, tie_break, type_column, types, format, param, timeouts)
        is_on_spark, why = choose_place(files, on_spark, in_process)
        if notes.is_terminal:
            note(f"matching {'on Spark' if is_on_spark else 'in this process'}: {why}", "dim")
        runner = match_on_spark if is_on_spark else match_in_process
        found = runner(queries, files, options, paths, make_screen(style, limit, is_piped))
        if fail_if_none and not found:
            raise typer.Exit(ExitCode.NO_MATCH)


def _check_one(in_process: bool, on_spark: bool) -> None:
    if in_process and on_spark:
        raise typer.BadParameter("either in this process or on Spark", param_hint="--in-process, --spark")


def _check_style(style: str | None) -> None:
    if style not in (None, "table", "json"):
        raise typer.BadParameter("it is table or json", param_hint="--show")


@app.command(
    "sql",
    epilog=_examples(
        "kleene sql 'SELECT * FROM trades WHERE price > 10' --table trades=trades.csv",
        "kleene sql falls.sql -t trades=trades.parquet -t names=names.csv -o falls.parquet",
        "cat falls.sql | kleene sql - -t trades=trades.parquet | jq .symbol",
        "kleene sql falls.sql -t trades=trades --spark",
    ),
)
def sql_command(
    text: Annotated[
        str,
        typer.Argument(
            help="A SELECT in Spark's dialect, in which tables may carry MATCH_RECOGNIZE; a file that holds one, with "
            "the ending .sql; or - for standard input."
        ),
    ],
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            "-t",
            help="NAME=PATH: a Parquet, CSV or JSON-lines file, a folder of them, or - for standard input; repeat for "
            "more.",
        ),
    ] = None,
    timezone: Timezone = "UTC",
    schema: SchemaOption = None,
    cast: Annotated[
        list[str] | None,
        typer.Option(help="The type of one column: ts=timestamp, or trades.ts=timestamp; repeat for more."),
    ] = None,
    delimiter: Delimiter = ",",
    null: Null = None,
    param: Params = None,
    output_path: OutputOption = None,
    overwrite: Overwrite = False,
    style: Show = None,
    limit: Annotated[
        int | None, typer.Option(help="How many rows to show; by default a screenful, and all to a pipe.", min=0)
    ] = None,
    on_spark: Annotated[bool, typer.Option("--spark", help="Run the text on Spark, not in this process.")] = False,
    fail_if_none: Annotated[
        bool, typer.Option("--fail-if-none", help="Exit with code 1 when there is no row.")
    ] = False,
) -> None:
    """Run a SQL query over files, in this process or on Spark."""
    _check_style(style)
    with errors():
        file = sql_file(text)
        query = text if file is None else read_text(file)
        files = read_named(tables or [], checked_zone(timezone), delimiter, null, cast, schema)
        is_piped = output_path is not None and str(output_path) == "-"
        paths = output_paths([SQL_RESULT], file, None if is_piped else output_path, overwrite, files)
        runner = sql_on_spark if on_spark else sql_in_process
        found = runner(query, read_params(param), files, paths, make_screen(style, limit, is_piped))
        if fail_if_none and not found:
            raise typer.Exit(ExitCode.NO_MATCH)


def _match_options(
    queries: Program,
    order_by: list[str] | None,
    tie_break: list[str] | None,
    type_column: str,
    types: str | None,
    format: str,
    param: list[str] | None,
    timeouts: bool = False,
) -> dict[str, Any]:
    """The arguments of `match`; what a row pattern says itself must not be given."""
    options: dict[str, Any] = {"order_by": order_by, "tie_break": tie_break, "type_column": type_column}
    options |= {"format": format, "params": read_params(param), "schema": read_types(types)}
    options |= {"timeouts": True} if timeouts else {}
    needs_order = any(not is_row_pattern(query.definition) for query in queries.queries)
    if needs_order and not order_by:
        raise typer.BadParameter("name the column that orders the events, such as -b ts", param_hint="--order-by")
    return options


@app.command(
    epilog=_examples(
        "kleene stream theft.sase -i readings -b ts -w '10 minutes' -o thefts",
        "kleene stream theft.sase -i readings -b ts --arrival --once",
    )
)
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
    order_by: OrderBy = None,
    language: LanguageOption = None,
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
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The folder to write matches to, as Parquet files, or - for JSON lines to standard output.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="The folder that remembers how far the stream is; by default _checkpoint in the output."),
    ] = None,
    type_column: TypeColumn = "type",
    types: Types = None,
    tie_break: TieBreak = None,
    format: Selected = "all",
    timeouts: TimeoutsOption = False,
    timezone: Timezone = "UTC",
    schema: SchemaOption = None,
    cast: Cast = None,
    delimiter: Delimiter = ",",
    null: Null = None,
    param: Params = None,
    every: Annotated[str, typer.Option(help="How often to look for new files.")] = "1 second",
    max_files: Annotated[int | None, typer.Option(help="The most files in a micro-batch.", min=1)] = None,
    buckets: Annotated[int, typer.Option(help="Groups that keys are put together in.", min=1)] = BUCKETS,
    unbounded_state: Annotated[
        bool, typer.Option("--unbounded-state", help="Accept a query that may hold ever more.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(help="How many of the newest matches to show; by default 5, and all to a pipe.", min=0),
    ] = None,
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
        queries = read_program(query, language)
        one = single(queries)
        files = read_inputs(inputs, checked_zone(timezone), read_form(delimiter, null, schema, cast))
        check_folders(files)
        options = {
            **_match_options(queries, order_by, tie_break, type_column, types, format, param, timeouts),
            "stream": StreamOptions(
                order="arrival" if arrival else "time",
                buckets=buckets,
                unbounded_state="allow" if unbounded_state else "refuse",
                watermark=watermark,
                max_ahead=max_ahead,
            ),
        }
        is_piped = output_path is not None and str(output_path) == "-"
        if is_piped:
            output_path = None
        with stream_places(output_path, checkpoint) as (target, place):
            for folder in (target, place):
                check_apart(folder, files, query, "output" if folder is target else "checkpoint")
            settings = {"most_files": max_files, "every": None if once else every}
            is_json = is_piped or not output.is_terminal
            screen = Screen(is_json, limit if limit is not None else ALL if is_json else NEWEST)
            match_stream(one, files, options, target, place, settings, screen, is_kept=output_path is not None)


@app.command(
    epilog=_examples(
        "kleene check theft.sase",
        "kleene check theft.sase --schema 'ts timestamp, type string, tag string' -b ts",
        "kleene check theft.sase -i readings.parquet -b ts",
    )
)
def check(
    query: QueryFile,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", help="Events, as for match; their columns are checked.")
    ] = None,
    order_by: OrderBy = None,
    language: LanguageOption = None,
    tie_break: TieBreak = None,
    type_column: TypeColumn = "type",
    types: Types = None,
    format: Selected = "all",
    timezone: Timezone = "UTC",
    schema: Annotated[
        str | None,
        typer.Option(help="The columns of the input: a file of events, or text such as 'ts timestamp, id string'."),
    ] = None,
    cast: Cast = None,
    delimiter: Delimiter = ",",
    null: Null = None,
    param: Params = None,
) -> None:
    """Check a query, on its own or against the columns of an input; nothing is matched."""
    with errors():
        queries = read_program(query, language)
        if inputs:
            columns = None if schema is None or os.path.exists(schema) else schema
            files = read_inputs(inputs, checked_zone(timezone), read_form(delimiter, null, columns, cast))
            options = _match_options(queries, order_by, tie_break, type_column, types, format, param)
            queries.explain(read_tables(files), **options)
        else:
            queries = with_params(queries, param)
        if schema is not None and not inputs:
            known = with_types(
                parse_schema(schema, checked_zone(timezone), type_column), order_by or (), read_types(types)
            )
            for one in queries.queries:
                if not set(one.definition.from_streams).intersection(queries.names):
                    for warning in check_query(one, known, order_by or ()):
                        note_warning(warning)
        count = len(queries.queries)
        fits = "" if schema is None and not inputs else f" and {'fits' if count == 1 else 'fit'} the "
        say(
            Text("✓ ", style="bold green")
            + Text("the query is" if count == 1 else f"{count} queries are")
            + Text(" well formed")
            + Text(fits and fits + ("input" if inputs else "schema"))
        )


@app.command(
    epilog=_examples(
        "kleene explain theft.sase",
        "kleene explain theft.sase -i readings.parquet -b ts --analyze",
        "kleene explain theft.sase --svg > theft.svg",
    )
)
def explain(
    query: QueryFile,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", help="Events, as for match: checks columns, and measures statistics."),
    ] = None,
    order_by: OrderBy = None,
    language: LanguageOption = None,
    tie_break: TieBreak = None,
    type_column: TypeColumn = "type",
    types: Types = None,
    format: Selected = "all",
    timezone: Timezone = "UTC",
    schema: SchemaOption = None,
    cast: Cast = None,
    delimiter: Delimiter = ",",
    null: Null = None,
    param: Params = None,
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
        queries = read_program(query, language)
        options: dict[str, Any] = {"engine": EngineOptions(plan=read_hints(hints or []))}
        options |= {"analyze": analyze, "code": code, "dot": dot, "svg": svg, "params": read_params(param)}
        events = None
        if inputs:
            files = read_inputs(inputs, checked_zone(timezone), read_form(delimiter, null, schema, cast))
            events = read_tables(files)
            options |= _match_options(queries, order_by, tie_break, type_column, types, format, param)
        if events is None and (analyze or code):
            raise UnsupportedError(
                f"--{'analyze' if analyze else 'code'} needs events", hint="Name them with --input, and --order-by."
            )
        if svg and len(queries.queries) > 1:
            raise UnsupportedError("a picture shows only one query", hint="Put the query into a file of its own.")
        text = queries.explain(events, **options)
        if dot or svg or code:
            say_plainly(text)
        else:
            say(explanation(visible(text, keep="\n")), soft_wrap=True)


@app.command(
    epilog=_examples(
        "kleene why theft.sase -i readings.parquet -b ts",
        "kleene why theft.sase -i readings.parquet -b ts --where 'tag = 7'",
        "kleene why falls.sql -i trades.csv --row 12",
    )
)
def why(
    query: QueryFile,
    inputs: InputOption,
    order_by: OrderBy = None,
    where: Annotated[
        str | None,
        typer.Option(help='The events whose runs are told step by step, by a condition: "tag = 7 AND ts > 100".'),
    ] = None,
    row: Annotated[list[int] | None, typer.Option(help="A row of the input, counted from 0; repeat for more.")] = None,
    language: LanguageOption = None,
    tie_break: TieBreak = None,
    type_column: TypeColumn = "type",
    types: Types = None,
    format: Selected = "all",
    timezone: Timezone = "UTC",
    schema: SchemaOption = None,
    cast: Cast = None,
    delimiter: Delimiter = ",",
    null: Null = None,
    param: Params = None,
    max_events: Annotated[int, typer.Option(help="How many events are looked at.", min=1)] = 20_000,
    max_runs: Annotated[int, typer.Option(help="How many runs are followed.", min=1)] = 20_000,
    limit: Annotated[int, typer.Option(help="How many runs and near misses are told.", min=1)] = 100,
) -> None:
    """Show why events match and why they do not: what passed, what nearly matched, and runs step by step."""
    if where is not None and row:
        raise typer.BadParameter("choose events by a condition or by rows", param_hint="--where, --row")
    with errors():
        queries = read_program(query, language)
        files = read_inputs(inputs, checked_zone(timezone), read_form(delimiter, null, schema, cast))
        options = _match_options(queries, order_by, tie_break, type_column, types, format, param)
        found = only_query(queries).why(
            read_tables(files),
            at=row or where,
            max_events=max_events,
            max_runs=max_runs,
            limit=limit,
            **options,
        )
        say(Text(str(found)), soft_wrap=True)


code_cache.add_to(app)
editor.add_to(app)


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

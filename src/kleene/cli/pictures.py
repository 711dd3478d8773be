"""The verbs that make something to look at: `kleene plot` and `kleene report`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kleene.cli.console import errors, note
from kleene.cli.reading import Inputs, only_query, read_form, read_inputs, read_program, read_tables
from kleene.cli.verbs import (
    Cast,
    Delimiter,
    InputOption,
    LanguageOption,
    Null,
    OrderBy,
    Overwrite,
    Params,
    QueryFile,
    SchemaOption,
    Selected,
    TieBreak,
    Timezone,
    TypeColumn,
    Types,
    _examples,
    _match_options,
    app,
)
from kleene.cli.writing import check_apart
from kleene.errors import SchemaError, printable
from kleene.files import checked_zone
from kleene.plot.picture import ENDINGS, unknown_ending

Theme = Annotated[str, typer.Option(help="light or dark; a page follows the reader's system.")]


@app.command(
    epilog=_examples(
        "kleene plot theft.sase -i readings.parquet -b ts -o theft.svg",
        "kleene plot falls.sql -i trades.csv --kind values --y price -o falls.png",
        "kleene plot theft.sase -i readings.parquet -b ts --kind automaton -o theft.html",
    )
)
def plot(
    query: QueryFile,
    inputs: InputOption,
    output_path: Annotated[
        Path, typer.Option("--output", "-o", help="The picture: a name ending in .svg, .png or .html.")
    ],
    kind: Annotated[
        str, typer.Option(help="timeline, values, near_misses, automaton, lengths, durations or over_time.")
    ] = "timeline",
    y: Annotated[str | None, typer.Option(help="The attribute that a picture of values draws.")] = None,
    limit: Annotated[int, typer.Option(help="How many keys are drawn.", min=1)] = 12,
    theme: Theme = "light",
    width: Annotated[int | None, typer.Option(help="The width, in pixels.")] = None,
    height: Annotated[int | None, typer.Option(help="The height, in pixels; by default what is needed.")] = None,
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
    overwrite: Overwrite = False,
) -> None:
    """Draw the matches of a query: on a timeline, as values over time, as an automaton, or as counts."""
    if height is not None and width is None:
        raise typer.BadParameter("a height needs a width", param_hint="--height")
    with errors():
        queries = read_program(query, language)
        files = read_inputs(inputs, checked_zone(timezone), read_form(delimiter, null, schema, cast))
        if output_path.suffix.lower() not in ENDINGS:
            raise unknown_ending(output_path)
        check_output(output_path, files, query, overwrite)
        options = _match_options(queries, order_by, tie_break, type_column, types, format, param)
        size = None if width is None else width if height is None else (width, height)
        picture = only_query(queries, "a picture").plot(
            read_tables(files), kind, y=y, limit=limit, theme=theme, size=size, **options
        )
        picture.save(output_path)
        note(picture.caption)


@app.command(
    epilog=_examples(
        "kleene report theft.sase -i readings.parquet -b ts -o theft.html",
        "kleene report falls.sql -i trades.csv --y price -o falls.html",
    )
)
def report(
    query: QueryFile,
    inputs: InputOption,
    output_path: Annotated[Path, typer.Option("--output", "-o", help="The page: a name ending in .html.")],
    title: Annotated[str | None, typer.Option(help="The heading; by default the name of the query file.")] = None,
    y: Annotated[str | None, typer.Option(help="An attribute to draw over time besides.")] = None,
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
    overwrite: Overwrite = False,
) -> None:
    """Write one page about a query: its matches, what nearly matched, pictures, and the plan. It needs no server."""
    with errors():
        queries = read_program(query, language)
        files = read_inputs(inputs, checked_zone(timezone), read_form(delimiter, null, schema, cast))
        check_output(output_path, files, query, overwrite)
        options = _match_options(queries, order_by, tie_break, type_column, types, format, param)
        found = only_query(queries, "a report").find(read_tables(files), **options)
        found.report(output_path, title=title or ("Report" if str(query) == "-" else query.name), y=y)
        note(f"{len(found):,} {'match' if len(found) == 1 else 'matches'}; the report is in {output_path}")


def check_output(path: Path, files: Inputs, query: Path, overwrite: bool) -> None:
    """An error if the file may not be written there."""
    check_apart(path, files, query, "output")
    if os.path.isdir(path) or (os.path.exists(path) and os.path.isfile(path) and not overwrite):
        what = "is a folder" if os.path.isdir(path) else "exists"
        raise SchemaError(
            f"the output '{printable(str(path))}' {what}",
            hint="Choose another name, or add --overwrite to replace a file.",
        )

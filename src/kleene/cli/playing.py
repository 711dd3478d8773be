"""The verb that opens the playground: `kleene play`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from kleene.cli.console import errors, note, say_plainly
from kleene.cli.reading import Language, read_form, read_inputs, read_tables, read_text
from kleene.cli.verbs import (
    Cast,
    Delimiter,
    LanguageOption,
    Null,
    SchemaOption,
    Timezone,
    TypeColumn,
    _examples,
    app,
)
from kleene.errors import UnsupportedError
from kleene.files import checked_zone
from kleene.play.serving import serve
from kleene.play.tables import given_table, samples
from kleene.visible import visible


@app.command(
    epilog=_examples(
        "kleene play",
        "kleene play -i readings.parquet -b ts",
        "kleene play theft.sase -i readings.csv -b ts --no-open",
    )
)
def play(
    query: Annotated[Path | None, typer.Argument(help="A query to begin with: a file ending in .sase or .sql.")] = None,
    input_path: Annotated[
        str | None, typer.Option("--input", "-i", help="Events, as for match; without it, samples are offered.")
    ] = None,
    order_by: Annotated[
        str | None, typer.Option("--order-by", "-b", help="The column that orders the events of a SASE query.")
    ] = None,
    language: LanguageOption = None,
    type_column: TypeColumn = "type",
    port: Annotated[int, typer.Option(help="The port; by default any that is free.", min=0, max=65535)] = 0,
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    timezone: Timezone = "UTC",
    schema: SchemaOption = None,
    cast: Cast = None,
    delimiter: Delimiter = ",",
    null: Null = None,
) -> None:
    """Open a page on this machine where a query shows what it does as you type it. Stop it with Ctrl-C."""
    with errors():
        tables = samples()
        if input_path is not None:
            files = read_inputs([input_path], checked_zone(timezone), read_form(delimiter, null, schema, cast))
            events = read_tables(files)
            assert isinstance(events, pa.Table)
            has_types = type_column in events.column_names
            given = given_table(input_path, events, order_by, type_column if has_types else None)
            tables = [given, *tables]
        start = None if query is None else (_language(query, language), read_text(query))
        note("The playground is open until you stop it with Ctrl-C:")
        serve(tables, lambda address: say_plainly(visible(address)), port, start, opens)


def _language(path: Path, language: Language | None) -> str:
    found = language or (Language.SQL if path.suffix.lower() == ".sql" else Language.SASE)
    if found is Language.REGEX or path.suffix.lower() == ".regex":
        raise UnsupportedError(
            "the playground takes SASE and MATCH_RECOGNIZE", hint="Use kleene match for .regex files."
        )
    return found.value

"""The verb for editors: `kleene language-server`."""

from __future__ import annotations

from typing import Annotated

import typer

from kleene import __version__
from kleene.cli.console import errors
from kleene.errors import UnsupportedError
from kleene.files import checked_zone
from kleene.schema_text import parse_schema


def language_server(
    schema: Annotated[
        str | None,
        typer.Option(help="The columns of the input: a file of events, or text such as 'ts timestamp, id string'."),
    ] = None,
    type_column: Annotated[str, typer.Option(help="The column that tells the type of an event.")] = "type",
) -> None:
    """Serve an editor over standard input and output: errors as you type, completion, and what words mean."""
    with errors():
        known = None if schema is None else parse_schema(schema, checked_zone("UTC"), type_column)
        try:
            from kleene.editor.server import make_server
        except ImportError:
            raise UnsupportedError(
                "the language server needs pygls", hint="Install it: pip install 'kleene[editor]'"
            ) from None
        make_server(__version__, known).start_io()


def add_to(app: typer.Typer) -> None:
    app.command("language-server")(language_server)

"""The verbs about machine code: `kleene warm`, which makes it ahead of time, and `kleene cache`, which shows it."""

from __future__ import annotations

from typing import Annotated

import typer

from kleene.cli.console import errors, note, say_plainly
from kleene.engine.compiled.code_folder import cache_folder, clear, contents, size_limit
from kleene.engine.compiled.warming import warm


def warm_command() -> None:
    """Compile what every query needs, once for this machine, so that new queries answer at once. Takes a minute."""
    with errors():
        made, total = warm(lambda name, number, total: note(f"{number + 1} of {total}: {name}"))
        note(f"{made} of {total} loops were compiled, and lie in {cache_folder()}" if made else "all is there already")


def cache_command(
    clears: Annotated[bool, typer.Option("--clear", help="Remove all of it; it is made again when needed.")] = False,
) -> None:
    """Show where machine code is kept, how much there is and how much there may be; or remove it."""
    with errors():
        folder = cache_folder()
        if folder is None:
            say_plainly("no folder can be written to, so that no machine code is kept")
            return
        if clears:
            clear(folder)
        found = contents(folder)
        say_plainly(f"folder    {folder}")
        say_plainly(f"modules   {found.modules}, which take {found.bytes / 1e6:.1f} MB")
        say_plainly(f"limit     {size_limit() / 1e6:.0f} MB (KLEENE_CACHE_LIMIT); what was not used is removed first")


def add_to(app: typer.Typer) -> None:
    app.command("warm")(warm_command)
    app.command("cache")(cache_command)

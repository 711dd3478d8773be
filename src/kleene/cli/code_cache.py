"""The verbs about machine code: `kleene warm`, which makes it ahead of time, and `kleene cache`, which shows it."""

from __future__ import annotations

from typing import Annotated

import typer

from kleene.api import match_recognize, pattern_window, regex, sase
from kleene.cache import cache_folder, clear, contents, size_limit
from kleene.cli.console import errors, note, say_plainly
from kleene.engine.compiled.warming import warm


def warm_command() -> None:
    """Compile what every query needs, once for this machine, so that new queries answer at once. Takes a minute."""
    with errors():
        keep_parsers()
        made, total = warm(lambda name, number, total: note(f"{number + 1} of {total}: {name}"))
        note(f"{made} of {total} loops were compiled, and lie in {cache_folder()}" if made else "all is there already")


def keep_parsers() -> None:
    """The parser of each language is kept once it was used."""
    sase("EVENT A a")
    match_recognize("ORDER BY t PATTERN (A) DEFINE A AS TRUE")
    pattern_window("ORDER BY t ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING PATTERN (A) DEFINE A AS TRUE")
    regex(pattern="a", order_by="t", predicates={"a": "x > 1"}, output={"n": "Count()"})


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

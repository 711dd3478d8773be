"""What is said, where, and how the command ends. Nothing of an input or a query reaches a terminal unescaped."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from kleene.errors import AnalysisError, KleeneError, KleeneWarning, QuerySyntaxError, SchemaError
from kleene.visible import visible


class _Output(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would end with the exit code 1, which says that there is no match


# Results go to standard output, everything about the work to standard error.
output = _Output()
notes = Console(stderr=True)

NO_MATCH, QUERY_WRONG, INPUT_WRONG, FAILED, INTERRUPTED, NOT_READ = 1, 3, 4, 5, 130, 141


def shown(text: str, style: str = "") -> Text:
    """Text of any origin, as it may be shown; lines stay lines."""
    return Text(visible(text, keep="\n"), style=style)


def say(what: RenderableType, **options: Any) -> None:
    output.print(what, **options)


def note(text: str, style: str = "") -> None:
    """Told beside the results; where nobody can be told, that is no reason to fail."""
    with suppress(OSError):
        notes.print(shown(text, style), soft_wrap=True)


def note_warning(text: str) -> None:
    """A warning, with what is an argument in Python said as an option."""
    note(f"warning: {text}".replace("with tie_break", "with --tie-break"), "yellow")


def say_plainly(text: str) -> None:
    """Not through rich: a pipe or a file gets it to the letter; a terminal, what it may be shown."""
    print(visible(text, keep="\n\t") if sys.stdout.isatty() else text, flush=True)


@contextmanager
def errors() -> Iterator[None]:
    """What goes wrong as text and an exit code; only a bug shows its traceback."""
    try:
        with _warnings_as_notes():
            yield
    except KleeneError as error:
        _fail(error)
    except BrokenPipeError:
        _drop(sys.stdout)
        raise typer.Exit(NOT_READ) from None
    except OSError as error:
        _drop(sys.stdout)
        note(f"error: standard output cannot be written: {error.strerror or error}", "bold red")
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception:
        note(traceback.format_exc() + "This is a bug in Kleene.", "red")
        raise typer.Exit(FAILED) from None


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Warnings of Kleene are told when all is done, after the results."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", KleeneWarning)
        before, kept = warnings.showwarning, dict[str, None]()

        def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if isinstance(message, KleeneWarning):
                kept[str(message)] = None
            else:
                before(message, category, *rest, **more)

        warnings.showwarning = show
        try:
            yield
        finally:
            for text in kept:
                note_warning(text)


def _fail(error: KleeneError) -> NoReturn:
    codes = ((QuerySyntaxError, QUERY_WRONG), (AnalysisError, QUERY_WRONG), (SchemaError, INPUT_WRONG))
    code = next((code for kind, code in codes if isinstance(error, kind)), FAILED)
    with suppress(OSError):
        notes.print(Text("error: ", style="bold red") + shown(str(error)), soft_wrap=True)
    raise typer.Exit(code)


def _drop(stream: TextIO) -> None:
    """What is left to be written goes nowhere: Python would try again at its end, and change the exit code."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)

"""What is said, where, and how the command ends. Nothing of an input or a query reaches a terminal unescaped."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import Any, NoReturn, TextIO

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from kleene.errors import AnalysisError, KleeneError, KleeneWarning, QuerySyntaxError, SchemaError
from kleene.visible import visible
from kleene.wording import speaking_to_shell


class _Output(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would end with the exit code 1, which says that there is no match


# Results go to standard output, everything about the work to standard error.
output = _Output()
notes = Console(stderr=True)


class ExitCode(IntEnum):
    """How a command ends; `meaning` is what its help and its page in the docs say."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> ExitCode:
        member = int.__new__(cls, number)
        member._value_, member.meaning = number, meaning
        return member

    DONE = 0, "done, with matches or without"
    NO_MATCH = 1, "no match, where --fail-if-none asks for one"
    MISUSED = 2, "the command was used wrongly"
    QUERY_WRONG = 3, "the query is wrong"
    INPUT_WRONG = 4, "the input does not fit, or the output may not be written there"
    FAILED = 5, "matching or writing failed, as on a full disk"
    INTERRUPTED = 130, "stopped by Ctrl-C"
    NOT_READ = 141, "the reader of the output went away: a closed pipe"


NO_MATCH, QUERY_WRONG, INPUT_WRONG = ExitCode.NO_MATCH, ExitCode.QUERY_WRONG, ExitCode.INPUT_WRONG
FAILED, INTERRUPTED, NOT_READ = ExitCode.FAILED, ExitCode.INTERRUPTED, ExitCode.NOT_READ


def shown(text: str, style: str = "") -> Text:
    """Text of any origin, as it may be shown; lines stay lines."""
    return Text(visible(text, keep="\n"), style=style)


def say(what: RenderableType, **options: Any) -> None:
    output.print(what, **options)


def note(text: str, style: str = "") -> None:
    """Told beside the results; where nobody can be told, that is no reason to fail."""
    _tell(shown(text, style))


def _tell(what: RenderableType) -> None:
    try:
        notes.print(what, soft_wrap=True)
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)


def note_warning(text: str) -> None:
    note(f"warning: {text}", "yellow")


def say_plainly(text: str) -> None:
    """Not through rich: a pipe or a file gets it to the letter; a terminal, what it may be shown."""
    print(visible(text, keep="\n\t") if sys.stdout.isatty() else text, flush=True)


@contextmanager
def errors() -> Iterator[None]:
    """What goes wrong as text and an exit code; only a bug shows its traceback."""
    try:
        with speaking_to_shell(), _warnings_as_notes():
            yield
    except KleeneError as error:
        _fail(error)
    except OSError as error:
        raise typer.Exit(lost_output(error)) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception:
        note(traceback.format_exc() + "This is a bug in Kleene.", "red")
        raise typer.Exit(FAILED) from None


def lost_output(error: OSError) -> int:
    """The exit code where standard output cannot be written; if nobody reads it, there is nobody to be told."""
    _drop(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return NOT_READ
    note(f"error: standard output cannot be written: {error.strerror or error}", "bold red")
    return FAILED


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
    _tell(Text("error: ", style="bold red") + shown(str(error)))
    raise typer.Exit(code)


def _drop(stream: TextIO) -> None:
    """What is left to be written goes nowhere: Python would try again at its end, and change the exit code."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)

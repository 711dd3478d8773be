"""Arguments to queries and inputs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, TypeAlias

from kleene.errors import QuerySyntaxError, SchemaError, UnsupportedError, printable
from kleene.files import EventFiles, find_files, read_arrow
from kleene.program import Program, program

Inputs: TypeAlias = EventFiles | dict[str, EventFiles]


def read_program(path: Path) -> Program:
    shown = printable(str(path))
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise QuerySyntaxError(f"'{shown}' is not text: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise SchemaError(f"cannot read the query file '{shown}': {error.strerror}") from None
    return program(text.removeprefix("\ufeff"))


def read_inputs(inputs: list[str], zone: str) -> Inputs:
    """One input, or several by event type."""
    if len(inputs) == 1 and ("=" not in inputs[0] or os.path.exists(inputs[0])):
        return find_files(Path(inputs[0]), zone)
    found: dict[str, EventFiles] = {}
    for item in inputs:
        name, separator, path = item.partition("=")
        if not separator:
            raise SchemaError(
                f"several inputs are given, and '{printable(item)}' does not say which event type it holds",
                hint="Write each as TYPE=PATH: --input Shelf=shelf.parquet --input Exit=exit.parquet",
            )
        if name in found:
            raise SchemaError(
                f"two inputs are given for the event type '{printable(name)}'", hint="Put them into one folder."
            )
        found[name] = find_files(Path(path), zone)
    return found


def parts_of(files: Inputs) -> list[EventFiles]:
    return list(files.values()) if isinstance(files, dict) else [files]


def read_tables(files: Inputs) -> Any:
    """The events as Arrow tables: one, or one for each event type."""
    if isinstance(files, dict):
        return {name: read_arrow(part) for name, part in files.items()}
    return read_arrow(files)


def read_hints(given: list[str]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for item in given:
        name, separator, value = item.partition("=")
        if not separator:
            raise UnsupportedError(
                f"the hint '{printable(item)}' has no value", hint="Write NAME=VALUE: --plan scan=ais"
            )
        found[name.strip()] = value.strip()
    return found or None

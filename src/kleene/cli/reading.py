"""Arguments to queries and inputs."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Container
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from kleene.api import Query, match_recognize, regex, scan
from kleene.errors import AnalysisError, QuerySyntaxError, SchemaError, UnsupportedError, listed, printable
from kleene.files import EventFiles, Form, find_files, read_arrow
from kleene.files.found import is_text
from kleene.ir.written import Written
from kleene.options.schema import Schema, schema_of_pairs
from kleene.programs import Program, program, with_values
from kleene.schema_text import told_types

Inputs: TypeAlias = EventFiles | dict[str, EventFiles]
PLAIN = Form()


class Language(StrEnum):
    """The languages of query files; each is also the ending of its files."""

    SASE = "sase"
    SQL = "sql"
    REGEX = "regex"


def read_program(path: Path, language: Language | None = None) -> Program:
    """The queries of the file, in the language that was named or that the file's ending names."""
    text = read_text(path)
    if language is None:
        ending = path.suffix.lower().lstrip(".")
        language = next((one for one in Language if one.value == ending), Language.SASE)
    match language:
        case Language.SQL:
            return Program((match_recognize(_clause_in(text)),))
        case Language.REGEX:
            return Program((_regex_query(text, printable(str(path))),))
    return program(text)


def only_query(queries: Program, what: str = "why") -> Query:
    """The one query of a file that is asked about."""
    [query, *others] = queries.queries
    if others or query.definition.from_streams:
        raise UnsupportedError(
            f"{what} is about one query that reads the input itself, but the file is a program",
            hint="Put the query into a file of its own.",
        )
    return query


def read_text(path: Path, what: str = "query file") -> str:
    """The text of a file; - is standard input."""
    shown = printable(str(path))
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise QuerySyntaxError(f"'{shown}' is not text: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise SchemaError(f"cannot read the {what} '{shown}': {error.strerror}") from None
    return text.removeprefix("\ufeff")


def sql_file(argument: str) -> Path | None:
    """The file that the argument names, if it is not a text itself: one that ends in .sql, or - for standard input."""
    is_file = argument == "-" or (argument.lower().endswith(".sql") and "\n" not in argument)
    return Path(argument) if is_file else None


def _clause_in(text: str) -> str:
    """The text, which is a clause; a whole SELECT is for another command."""
    if re.match(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(SELECT|WITH)\b", text, re.IGNORECASE | re.DOTALL):
        raise UnsupportedError(
            "the file has a whole SQL query, but this command takes a MATCH_RECOGNIZE clause alone",
            hint="Write what stands inside MATCH_RECOGNIZE ( … ), or run the whole query with kleene sql.",
        )
    return text


def _regex_query(text: str, shown: str) -> Query:
    """The regular-expression operator's arguments, as TOML."""
    example = "Write TOML: pattern = '. rise+', order_by = 'ts', and the tables [predicates] and [output]."
    try:
        arguments = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise QuerySyntaxError(f"'{shown}' is not TOML: {printable(str(error), 200)}", hint=example) from None
    wanted = {"pattern", "order_by", "predicates", "output"}
    known = {*wanted, "partition_by"}
    odd = next((name for name in arguments if name not in known), None)
    missing = next((name for name in sorted(wanted) if name not in arguments), None)
    if odd is not None or missing is not None:
        what = f"has no '{missing}'" if odd is None else f"has '{printable(odd)}', which is not a setting"
        raise QuerySyntaxError(f"'{shown}' {what}", hint=f"It may have: {listed(sorted(known))}. {example}")
    return regex(**arguments)


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON, in which a name may stand twice."""


def read_types(given: str | None) -> Schema | None:
    """The attributes of each event type, as JSON or in a file of it."""
    if given is None:
        return None
    is_text = given.lstrip().startswith("{")
    text = given if is_text else read_text(Path(given), "file of types")
    try:
        found = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        what = "the text" if is_text else f"'{printable(given)}'"
        raise SchemaError(f"{what} of --types is not JSON: {printable(str(error), 200)}", hint=_TYPES) from None
    if not isinstance(found, _Pairs):
        raise SchemaError("--types takes an object of JSON: lists of attributes by event type", hint=_TYPES)
    return schema_of_pairs(found)


_TYPES = """Write: --types '{"Shelf": ["id", "size"], "Exit": ["id"]}', or the name of a file that holds this."""


def read_inputs(inputs: list[str], zone: str, form: Form = PLAIN) -> Inputs:
    """One input, or several by event type; - is standard input."""
    if len(inputs) == 1 and ("=" not in inputs[0] or os.path.exists(inputs[0])):
        return find_files(_path_of(inputs[0]), zone, form)
    found: dict[str, EventFiles] = {}
    for item in inputs:
        name, separator, path = item.partition("=")
        if not separator:
            raise SchemaError(
                f"several inputs are given, but '{printable(item)}' does not say which event type it holds",
                hint="Write each as TYPE=PATH: --input Shelf=shelf.parquet --input Exit=exit.parquet",
            )
        if name in found:
            raise SchemaError(
                f"two inputs are given for the event type '{printable(name)}'", hint="Put them into one folder."
            )
        found[name] = find_files(_path_of(path), zone, form)
    return found


def read_named(
    tables: list[str], zone: str, delimiter: str, nulls: list[str] | None, casts: list[str] | None, schema: str | None
) -> dict[str, EventFiles]:
    """Tables of SQL by name, in small letters. A type that is told for NAME.COLUMN is for that table alone."""
    pairs: dict[str, str] = {}
    for item in tables:
        name, separator, path = item.partition("=")
        if not (separator and name and path):
            raise SchemaError(
                f"'{printable(item)}' does not say the name of a table and where it is",
                hint="Write: --table trades=trades.parquet",
            )
        if name.lower() in pairs:
            raise SchemaError(f"the table '{printable(name)}' is given twice", hint="Put both into one folder.")
        pairs[name.lower()] = path
    if list(pairs.values()).count("-") > 1:
        raise SchemaError("standard input can be only one table")
    found = {}
    for name, path in pairs.items():
        own = [item for item in (_of_table(cast, name, pairs) for cast in casts or ()) if item is not None]
        found[name] = find_files(_path_of(path), zone, read_form(delimiter, nulls, schema, own))
    return found


def _of_table(cast: str, table: str, tables: Container[str]) -> str | None:
    """The cast for the table; None if it is for another one."""
    before, dot, _ = cast.partition("=")[0].partition(".")
    if not dot or before.lower() not in tables:
        return cast
    return cast[len(before) + 1 :] if before.lower() == table else None


def _path_of(text: str) -> Path:
    """The path; what comes from standard input is put into a file first, since it may have to be read twice."""
    if text != "-":
        return Path(text)
    first = sys.stdin.buffer.read(1 << 20)
    folder = tempfile.mkdtemp(prefix="kleene-input-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    kind = "parquet" if first.startswith(b"PAR1") else "jsonl" if first.lstrip().startswith(b"{") else "csv"
    path = Path(folder, f"standard_input.{kind}")
    with path.open("wb") as file:
        file.write(first)
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def read_form(delimiter: str, nulls: list[str] | None, schema: str | None, casts: list[str] | None) -> Form:
    """What the options say about how files are written."""
    if len(delimiter.replace("\\t", "\t")) != 1:
        raise SchemaError(f"a delimiter is one character, but '{printable(delimiter)}' was given")
    types = {} if schema is None else dict(told_types(schema))
    for item in casts or ():
        name, separator, type_ = item.partition("=")
        if not separator:
            raise SchemaError(f"'{printable(item)}' does not say a type", hint="Write: --cast ts=timestamp")
        types |= dict(told_types(f"{name} {type_}"))
    return Form(delimiter.replace("\\t", "\t"), ("", *(nulls or ())), tuple(types.items()))


def size_of(files: Inputs) -> int:
    return sum(file.stat().st_size for part in parts_of(files) for file in part.files)


def parts_of(files: Inputs) -> list[EventFiles]:
    return list(files.values()) if isinstance(files, dict) else [files]


def read_tables(files: Inputs) -> Any:
    """The events as Arrow tables: one, or one for each event type."""
    if isinstance(files, dict):
        return {name: read_arrow(part) for name, part in files.items()}
    return read_arrow(files)


def scan_of(files: Inputs) -> Any:
    """The files as a scan, which reads them piece by piece; None where something about them was told."""
    if isinstance(files, dict) or is_text(files.kind) or files.zone != "UTC" or files.form != PLAIN:
        return None
    return scan([str(file) for file in files.files], format=files.kind.value, partitioning=None)


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


def read_params(given: list[str] | None) -> dict[str, Written] | None:
    """Values of parameters, as they are written: how they are used tells their types."""
    found: dict[str, Written] = {}
    for item in given or ():
        name, separator, value = item.partition("=")
        name = name.strip().removeprefix(":")
        if not separator or not name:
            raise AnalysisError(
                f"the parameter '{printable(item)}' has no value", hint="Write NAME=VALUE: --param least=100"
            )
        if name in found:
            raise AnalysisError(f"the parameter '{printable(name)}' is given twice", hint="Leave one of them out.")
        found[name] = Written(value)
    return found or None


def with_params(queries: Program, given: list[str] | None) -> Program:
    """The queries with values for their parameters, if some are given; else the parameters stay open."""
    params = read_params(given)
    return queries if params is None else with_values(queries, params)

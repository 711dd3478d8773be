"""What DuckDB says about a text, in Kleene's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from kleene.errors import AnalysisError, ExecutionError, KleeneError, LimitError, printable
from kleene.local_sql.database import Database
from kleene.source import Location
from kleene.sqltext.statement import Excerpt
from kleene.sqltext.subqueries import too_many_rows
from kleene.sqltext.tokens import tokens_of

_WRONG_TEXT = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException, duckdb.SyntaxException)


@contextmanager
def told(excerpt: Excerpt, database: Database) -> Iterator[None]:
    """Errors of DuckDB as errors of Kleene."""
    try:
        yield
    except duckdb.Error as error:
        raise _error(excerpt, database, error) from None


def _error(excerpt: Excerpt, database: Database, error: duckdb.Error) -> KleeneError:
    lines = [re.sub(r"kleene_(?=[a-z])|kleene_\d+_[0-9a-f]{16}", "", line) for line in str(error).strip().splitlines()]
    words = re.sub(r"^[\w ]+ Error: ", "", lines[0] if lines else type(error).__name__).strip()
    words = printable(words, 300).rstrip("!. ")
    if isinstance(error, duckdb.InterruptException):
        if database.is_over_time():
            return LimitError("the time limit of the call was reached", hint="Raise time_limit in EngineOptions.")
        raise KeyboardInterrupt
    if isinstance(error, duckdb.OutOfMemoryException):
        return LimitError(
            f"the memory limit of the call was reached: {words}", hint="Raise memory_limit in EngineOptions."
        )
    if isinstance(error, _WRONG_TEXT):
        candidates = next((line for line in lines[1:] if line.startswith(("Candidate", "Did you mean"))), None)
        return AnalysisError(f"the text does not fit its tables: {words}", _place(excerpt, words), candidates)
    if words.startswith("More than one row returned by a subquery"):
        return too_many_rows()
    return ExecutionError(f"the text cannot be run: {words}")


def _place(excerpt: Excerpt, words: str) -> Location | None:
    """Where the first name that the complaint quotes stands in the text."""
    quoted = re.search(r"[\"'`]([^\"'`]+)[\"'`]|name (\w+)", words)
    if quoted is None:
        return None
    name = (quoted[1] or quoted[2]).rpartition(".")[2].lower()
    for token in tokens_of(excerpt.text):
        if token.name == name and (place := excerpt.locate(token.start, token.end)) is not None:
            return place
    return None

"""SQL texts in this process: DuckDB runs what is plain SQL, and the engines of Kleene find the matches."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kleene.api import Query
from kleene.call import like_events
from kleene.engine.sources import Source, make_source
from kleene.errors import AnalysisError, SchemaError, printable, shown
from kleene.ir.own import NO_FUNCTIONS, Own
from kleene.ir.query import QueryDefinition
from kleene.local_sql.complaints import told
from kleene.local_sql.database import Database, closed_database
from kleene.local_sql.translate import Translated, translated
from kleene.options import EngineOptions
from kleene.source import Location, SourceText
from kleene.sqltext.plain import plain_statement
from kleene.sqltext.statement import Args, Excerpt
from kleene.sqltext.tokens import Token, tokens_of


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    rows: Any  # whatever a source can be made of


def sql(
    text: str,
    args: Args,
    tables: Mapping[str, Any],
    kind: str | None,
    engine: EngineOptions,
    functions: Mapping[str, Own] = NO_FUNCTIONS,
) -> Any:
    """The rows that the text gives, as the kind of table that was asked for, or that all tables are."""
    given = _by_name(tables)
    with closed_database(engine) as database:
        backend = LocalBackend(database, engine, given)
        found = backend.rows(plain_statement(text, args, backend, functions).whole())
    return like_events(found, tables, kind)


def _by_name(tables: Mapping[str, Any]) -> dict[str, _Table]:
    """The tables by their names in small letters, since SQL does not tell them from others."""
    found: dict[str, _Table] = {}
    for name, rows in tables.items():
        if not isinstance(name, str) or not name:
            raise SchemaError(f"the name of a table is text, but {shown(name)} was given")
        if name.lower() in found:
            raise SchemaError(
                f"the tables '{printable(found[name.lower()].name)}' and '{printable(name)}' have the same name in SQL",
                hint="Rename one of them.",
            )
        found[name.lower()] = _Table(name, rows)
    return found


@dataclass(slots=True)
class LocalBackend:
    """Runs a text in a DuckDB of its own. The frames it makes are sources of rows; those of matches are tables."""

    database: Database
    engine: EngineOptions
    tables: dict[str, _Table]
    registered: set[str] = field(default_factory=set)
    shown_names: dict[str, str] = field(default_factory=dict)  # of columns whose names matches have twice

    def check(self, text: str, tokens: list[Token], original: SourceText, construct: str | None) -> None:
        """Nothing: what is run is checked when it is translated."""

    def table(self, excerpt: Excerpt) -> Source:
        """The rows of a SELECT, of which matching reads only the columns that it needs."""
        query = self._translated(excerpt)
        with told(excerpt, self.database):
            columns = self.database.columns(query.text, query.parameters)

        def read(names: Sequence[str]) -> pa.Table:
            with told(excerpt, self.database):
                return self.database.rows(query.text, query.parameters, names)

        return Source(columns, read)

    def columns(self, frame: Any) -> list[str]:
        return list((frame.columns if isinstance(frame, Source) else frame.schema).names)

    def count_columns(self, excerpt: Excerpt, location: Location | None, hint: str) -> int:
        try:
            return len(self.table(excerpt).columns)
        except AnalysisError as error:
            raise AnalysisError(error.message, error.location or location, error.hint or hint) from None

    def order_of(self, frame: Any) -> list[str]:
        return []

    def matches(self, definition: QueryDefinition, frame: Source, location: Location | None) -> Any:
        found = Query(definition).match(frame, engine=self.engine)
        return self._distinctly_named(found)

    def _distinctly_named(self, table: pa.Table) -> pa.Table:
        """The table with a name of its own for each column, since DuckDB would make up some."""
        names = list(table.column_names)
        for number, name in enumerate(names):
            if name in names[:number]:
                names[number] = f"kleene_again{len(self.shown_names)}_{secrets.token_hex(8)}"
                self.shown_names[names[number]] = self.shown_names.get(name, name)
        return table.rename_columns(names)

    def rows(self, excerpt: Excerpt) -> pa.Table:
        query = self._translated(excerpt)
        with told(excerpt, self.database):
            found = self.database.rows(query.text, query.parameters)
        names = query.names
        if names is None or len(names) != found.num_columns:
            names = found.column_names
        return found.rename_columns([self.shown_names.get(name, name) for name in names])

    def _translated(self, excerpt: Excerpt) -> Translated:
        found = translated(excerpt, {name: table.name for name, table in self.tables.items()})
        mentioned = {token.name for token in tokens_of(excerpt.text)}
        for name in sorted({*self.tables, *excerpt.frames} & mentioned - self.registered):
            rows = excerpt.frames[name] if name in excerpt.frames else _read(self.tables[name])
            if isinstance(rows, Source):
                rows = rows.read(rows.columns.names)
            self.database.register(name, rows)
            self.registered.add(name)
        return found


def _read(table: _Table) -> pa.Table:
    what = f"the table '{printable(table.name)}'"
    source = make_source(table.rows, what, None)
    names = source.columns.names
    if not names:
        raise SchemaError(f"{what} has no columns")
    folded: dict[str, str] = {}
    for name in names:
        if name.lower() in folded:
            raise SchemaError(
                f"{what} has columns '{printable(folded[name.lower()])}' and '{printable(name)}', which are the same "
                "name in SQL",
                hint="Rename one of them.",
            )
        folded[name.lower()] = name
    return source.read(names)

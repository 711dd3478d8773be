"""A DuckDB of one call, in memory, that can reach nothing but the tables it is given.

It reads and writes no file, loads no extension, sees no variable of Python, and its settings cannot be changed.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from kleene.local_sql.columns import plain_table, result_column
from kleene.local_sql.meaning import MACROS
from kleene.options import EngineOptions

_CLOSED = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
Parameters = list[Any] | dict[str, Any] | None


@dataclass(slots=True)
class Database:
    connection: Any
    deadline: float | None

    def register(self, name: str, table: pa.Table) -> None:
        self.connection.register(name, plain_table(table))

    def columns(self, text: str, parameters: Parameters = None) -> pa.Schema:
        """The columns that a SELECT gives, which may share names."""
        with self._in_time():
            names = self._relation(text, parameters).columns
            table = _arrow(self._relation(f"SELECT * FROM ({text}) LIMIT 0", parameters))
        return pa.schema([(name, field.type) for name, field in zip(names, table.schema, strict=True)])

    def rows(self, text: str, parameters: Parameters = None, names: Sequence[str] | None = None) -> pa.Table:
        """The rows of a SELECT, or only the named columns of them."""
        if names is not None:
            text = f"SELECT {', '.join(map(_quoted, names)) or '1'} FROM ({text})"
        with self._in_time():
            return _arrow(self._relation(text, parameters))

    def _relation(self, text: str, parameters: Parameters) -> Any:
        statements = self.connection.extract_statements(text)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise AssertionError("only a SELECT gets here")
        return self.connection.sql(text, params=parameters)

    def is_over_time(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Stops what DuckDB does when the time of the call is over."""
        if self.deadline is None:
            yield
            return
        timer = threading.Timer(max(0.0, self.deadline - time.monotonic()), self.connection.interrupt)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@contextmanager
def closed_database(engine: EngineOptions) -> Iterator[Database]:
    # What does not fit into memory goes to a folder of the call's own, and not into the current one.
    folder = tempfile.mkdtemp(prefix="kleene-sql-")
    limits = {} if engine.memory_limit is None else {"memory_limit": f"{int(engine.memory_limit)}B"}
    connection = duckdb.connect(":memory:", config={**_CLOSED, **limits, "temp_directory": folder})
    try:
        for macro in MACROS:
            connection.execute(macro)
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET lock_configuration = true")
        limit = engine.time_limit
        yield Database(connection, None if limit is None else time.monotonic() + limit)
    finally:
        connection.close()
        shutil.rmtree(folder, ignore_errors=True)


def _arrow(relation: Any) -> pa.Table:
    fetch = getattr(relation, "to_arrow_table", None) or relation.fetch_arrow_table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it advises another way to the same table
        found = fetch()
    kinds = [str(kind) for kind in relation.types]
    columns = [result_column(column, kind) for column, kind in zip(found.columns, kinds, strict=True)]
    return pa.Table.from_arrays(columns, names=found.column_names)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

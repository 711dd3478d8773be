"""The cell magic `%%kleene`: a cell of a notebook that is a query. `%load_ext kleene` makes it known.

Names in the line behind `%%kleene` are those of the notebook's variables. Nothing there is evaluated as code.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from kleene.api import Query, match_recognize, sase, sql
from kleene.call import is_scan, is_spark
from kleene.errors import AnalysisError, KleeneError, listed, printable
from kleene.lang.kinds import language_of
from kleene.sqltext.tokens import tokens_of


def load(shell: Any) -> None:
    shell.register_magics(QueryMagics)


@magics_class
class QueryMagics(Magics):
    """What a notebook can write."""

    @magic_arguments()
    @argument("events", nargs="?", help="the variable that holds the events; a SQL query names its tables itself")
    @argument("-b", "--order-by", action="append", metavar="COLUMN", help="a column that orders the events")
    @argument("--type-column", default="type", metavar="COLUMN", help="the column that tells the type of an event")
    @argument("--tie-break", action="append", metavar="COLUMN", help="a column that decides where the order does not")
    @argument("--format", default="all", help="all or non_overlapping")
    @argument("--params", metavar="NAME", help="a variable that holds a dict of values for :name")
    @argument("--functions", metavar="NAME", help="a variable that holds functions of your own")
    @argument("--spark", metavar="NAME", help="for a SQL query: the variable that holds a session of Spark")
    @argument("--into", metavar="NAME", help="the variable that the result is kept in")
    @cell_magic("kleene")
    def kleene(self, line: str, cell: str) -> Any:
        """A query in SASE, a MATCH_RECOGNIZE clause, or a SQL query with such clauses.

            %%kleene readings --order-by t --into found
            EVENT SEQ(Shelf a, !(Register r), Exit b)
            WHERE [tag] WITHIN 12

        The result is shown, and kept in the variable that `--into` names.
        """
        given = parse_argstring(self.kleene, line)
        try:
            found = self._result(given, cell)
        except KleeneError as error:
            raise UsageError(str(error)) from None
        if given.into is not None:
            if not given.into.isidentifier():
                raise UsageError(f"--into takes the name of a variable, but '{printable(given.into)}' is none")
            self.shell.user_ns[given.into] = found
        return found

    def _result(self, given: Any, text: str) -> Any:
        functions = None if given.functions is None else self._variable(given.functions, "--functions")
        params = None if given.params is None else self._variable(given.params, "--params")
        if language_of(text) == "sql":
            return self._of_sql(given, text, params, functions)
        if given.events is None:
            raise AnalysisError(
                "the line does not say where the events are",
                hint="Name a variable that holds them: %%kleene readings --order-by t",
            )
        events = self._variable(given.events, "the line")
        make = match_recognize if language_of(text) == "match_recognize" else sase
        query: Query = make(text, functions=functions)
        options: dict[str, Any] = {"order_by": given.order_by, "tie_break": given.tie_break, "params": params}
        if make is sase:
            options |= {"type_column": given.type_column, "format": given.format}
        # What is too large for this process comes back as the table that it is.
        return (query.match if is_spark(events) or is_scan(events) else query.find)(events, **options)

    def _of_sql(self, given: Any, text: str, params: Any, functions: Any) -> Any:
        if given.spark is not None:
            return sql(self._variable(given.spark, "--spark"), text, params, functions=functions)
        names = [given.events] if given.events is not None else self._tables_in(text)
        tables = {name: self._variable(name, "the line") for name in names}
        return sql(text, tables=tables, args=params, as_="pandas" if find_spec("pandas") else None, functions=functions)

    def _tables_in(self, text: str) -> list[str]:
        """Variables of the notebook that the query names where a table stands."""
        tokens = tokens_of(text)
        behind = {token.text for before, token in pairwise(tokens) if before.word in _BEFORE_TABLES}
        return [name for name in behind if _is_table(self.shell.user_ns.get(name))]

    def _variable(self, name: str, where: str) -> Any:
        known: Mapping[str, Any] = self.shell.user_ns
        if name not in known:
            tables = [one for one, value in known.items() if not one.startswith("_") and _is_table(value)]
            raise AnalysisError(
                f"{where} names '{printable(name)}', but the notebook has no such variable",
                hint=f"Variables that hold events: {listed(tables)}.",
            )
        return known[name]


_BEFORE_TABLES = ("FROM", "JOIN", ",")


def _is_table(value: Any) -> bool:
    """Whether it may be events: a table of any library, or a list of dicts."""
    is_rows = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    return is_rows or any(hasattr(value, name) for name in ("__arrow_c_stream__", "to_arrow_table", "scanner"))

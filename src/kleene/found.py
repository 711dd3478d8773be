"""Matches together with the events that they are among: what `Query.find` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kleene.analysis.row_pattern import is_row_pattern
from kleene.call import Call, is_scan, is_spark, read_call
from kleene.engine.timeouts import TIMED_OUT
from kleene.errors import UnsupportedError
from kleene.ir.options import RowsPerMatch, Selection
from kleene.markup.notebook import in_notebook
from kleene.markup.tables import cells_of, first_rows, table_html
from kleene.visible import visible

if TYPE_CHECKING:
    from kleene.api import Query
    from kleene.plot.picture import Picture
    from kleene.plot.seen import Seen
    from kleene.plot.sight import Sight
    from kleene.why.answer import Why

_SHOWN = 10
_FOR_MATCH = ("match_id", "timeouts", "as_")


def found_of(query: Query, events: Any, **arguments: Any) -> Found:
    """The matches of the query; `arguments` are those of `match`."""
    if is_spark(events) or is_scan(events):
        raise UnsupportedError(
            "find holds events and matches in this process",
            hint='Use match, or give it the events in question: df.where("tag = 7").toArrow(), or a file.',
        )
    if isinstance(events, pa.RecordBatchReader):
        events = events.read_all()  # it can be read once, and pictures read it again
    return Found(query, events, arguments, query.match(events, **arguments))


class Found:
    """The matches of a query together with the events that they are among. `Query.find` makes it.

    `table` is what `Query.match` returns. `len` tells how many matches there are.
    """

    __slots__ = ("_arguments", "_long", "_sights", "events", "query", "table")

    def __init__(self, query: Query, events: Any, arguments: Mapping[str, Any], table: Any) -> None:
        self.query, self.events, self.table = query, events, table
        self._arguments = dict(arguments)
        self._long: Any = None
        self._sights: dict[tuple[str, ...], Sight] = {}

    @property
    def long(self) -> Any:
        """The long form: a row for each selected event, with the id of its match, its variable and its place."""
        if self._long is None:
            given = {name: value for name, value in self._arguments.items() if name not in ("match_id", "timeouts")}
            self._long = self.query.match(self.events, long=True, **given)
        return self._long

    def plot(
        self,
        kind: str = "timeline",
        *,
        y: str | None = None,
        keys: Any = None,
        limit: int = 12,
        theme: str = "light",
        size: int | tuple[int, int] | None = None,
    ) -> Picture:
        """A picture of the matches; the arguments are those of `Query.plot`."""
        from kleene.plot.plotting import plot_of

        return plot_of(self.call(), self.events, kind, y, keys, limit, theme, size, self._see)

    def report(self, path: Any, *, title: str | None = None, y: str | None = None) -> Path:
        """Writes one page about the query, its matches, its near misses and its plan; it needs nothing else.

        path: where to; the name ends in .html. An old file stays until the page is whole.
        title: the heading. y: an attribute to draw over time besides.
        """
        from kleene.report.contents import write_report

        return write_report(self, path, title, y)

    def why(self, *, at: Any = None, keys: Any = None) -> Why:
        """Why events match, and why they do not; the arguments are those of `Query.why`."""
        given = {name: value for name, value in self._arguments.items() if name not in (*_FOR_MATCH, "engine")}
        return self.query.why(self.events, at=at, keys=keys, **given)

    def explain(self) -> str:
        """How the query ran: EXPLAIN, with what each operator did."""
        given = {name: value for name, value in self._arguments.items() if name != "as_"}
        return self.query.explain(self.events, analyze=True, **given)

    def __len__(self) -> int:
        if _gives_a_row_each(self.query):
            return _matches_in(self.table)
        return len(self.seen().matches)

    def __bool__(self) -> bool:
        return True  # what holds no match is still an answer

    def __repr__(self) -> str:
        head, _, _ = repr(self.query).removeprefix("<kleene.Query\n").rstrip(">").partition("\n")
        return visible(f"<kleene.Found: {_count(len(self))} of {head[:100]}>")

    def _repr_html_(self) -> str:
        first = first_rows(self.table, _SHOWN)
        total, shown = rows_in(self.table), first.num_rows
        which = "all of them" if shown == total else f"the first {shown} of {total:,} rows"
        head = f"<p>{_count(len(self))}{f'; {which}' if total else ''}</p>"
        return in_notebook(f"{head}{table_html(*cells_of(first)) if total else ''}")

    def call(self) -> Call:
        """The call that its pictures are of."""
        given = {name: value for name, value in self._arguments.items() if name not in _FOR_MATCH}
        return read_call(self.query.definition, is_over_all=True, spark=None, stream=None, **given)

    def seen(self) -> Seen:
        """The events in their order, and the matches among them, as pictures show them."""
        return self._see(self.call(), self.events, ()).seen

    def _see(self, call: Call, events: Any, further: Sequence[str]) -> Sight:
        """What pictures are made of, found once."""
        from kleene.plot.finding import sight_of

        key = tuple(further)
        if key not in self._sights:
            self._sights[key] = sight_of(call, events, further)
        return self._sights[key]


def _gives_a_row_each(query: Query) -> bool:
    """Whether the rows of the table are matches."""
    definition = query.definition
    is_one = definition.rows_per_match is RowsPerMatch.ONE or definition.selection is Selection.FIRST_COMPLETED
    return not is_row_pattern(definition) or (is_one and definition.frame is None)


def _matches_in(table: Any) -> int:
    """The rows that are matches, and not runs that were out of time."""
    if TIMED_OUT not in (table.column_names if isinstance(table, pa.Table) else list(table.columns)):
        return rows_in(table)
    marks = table.column(TIMED_OUT).to_pylist() if isinstance(table, pa.Table) else table[TIMED_OUT].to_list()
    return sum(not one for one in marks)


def rows_in(table: Any) -> int:
    return int(table.num_rows if isinstance(table, pa.Table) else len(table))


def _count(matches: int) -> str:
    return f"{matches:,} {'match' if matches == 1 else 'matches'}"

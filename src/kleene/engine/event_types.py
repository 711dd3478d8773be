"""Event types that a query names and no event has: most often they are misspelt."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.events import TYPE_OF_EVENT
from kleene.engine.unencoded import unencoded_type
from kleene.errors import did_you_mean, listed, printable
from kleene.plan.plan import Plan
from kleene.wording import said

MOST_TYPES = 1_000


def type_notes(plan: Plan, table: pa.Table, is_empty: bool) -> Iterator[str]:
    """What to tell about event types that do not occur.

    A type may well be absent. So something is told where the result `is_empty`, or where another type is nearly
    called so.
    """
    missing = MissingTypes(plan)
    missing.look_at(table)
    return missing.notes(is_empty)


class MissingTypes:
    """Looks for the event types of a query in tables that come one after the other."""

    def __init__(self, plan: Plan) -> None:
        self._column: str | None = None
        self._wanted, self._missing = list[str](), list[str]()
        self._known: dict[str | None, None] = {}
        query = plan.query
        if isinstance(query, AnalyzedQuery) and query.schema is not None and query.schema.event_types is None:
            self._column = query.schema.type_column  # else analysis has looked
            parts = [part.types for part in query.components] + [part.types for part in query.negations]
            self._wanted = list(dict.fromkeys(type_ for types in parts for type_ in types))
        self._missing = list(self._wanted)

    @property
    def column(self) -> str | None:
        """The column to look at, as long as a type is missing."""
        return self._column if self._missing else None

    def look_at(self, table: pa.Table) -> None:
        if self._column is None or not self._missing or not table.num_rows:
            return
        column = table.column(self._column)
        if unencoded_type(column.type) != pa.string():
            self._missing = []
            return
        # Looking for one type ends where it is found, which costs nothing as a rule.
        self._missing = [type_ for type_ in self._missing if not any(_occurs(type_, chunk) for chunk in column.chunks)]
        if self._missing and len(self._known) < MOST_TYPES:
            types = (chunk.unique().slice(0, MOST_TYPES).to_pylist() for chunk in column.chunks)
            self._known |= dict.fromkeys(type_ for own in types for type_ in own)

    def notes(self, is_empty: bool) -> Iterator[str]:
        if not self._missing or not self._known or self._column is None:
            return
        way_out = said(python="type_column=None", shell="--type-column with another column")
        is_alone = f" If the column '{printable(self._column)}' does not tell the type of an event, use {way_out}."
        is_asked = len(self._wanted) == 1 and self._column != TYPE_OF_EVENT
        for note in missing_types(self._missing, list(self._known), is_empty):
            yield note + (is_alone if is_asked else "")


def _occurs(type_: str, types: pa.Array) -> bool:
    if not pa.types.is_dictionary(types.type):
        return bool(pc.index(types, pa.scalar(type_)).as_py() >= 0)
    code = pc.index(types.dictionary, pa.scalar(type_)).as_py()  # some words may not occur
    return code >= 0 and bool(pc.index(types.indices, pa.scalar(code, types.indices.type)).as_py() >= 0)


def missing_types(missing: list[str], types: list[str | None], is_empty: bool) -> Iterator[str]:
    known = sorted(type_ for type_ in types if type_ is not None)
    for type_ in missing:
        similar = did_you_mean(type_, known)
        if is_empty or similar:
            yield f"no event is of type '{printable(type_)}'; types in the input: {listed(known)}.{similar}"

"""Event types that a query names and no event has: most often they are misspelt."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.engine.events import TYPE_OF_EVENT
from kleene.errors import did_you_mean, listed, printable
from kleene.plan.plan import Plan
from kleene.wording import said

MOST_TYPES = 1_000


def type_notes(plan: Plan, table: pa.Table, is_empty: bool) -> Iterator[str]:
    """What to tell about event types that do not occur.

    A type may well be absent. So something is told where the result `is_empty`, or where another type is nearly
    called so.
    """
    query = plan.query
    if not isinstance(query, AnalyzedQuery) or query.schema is None or not table.num_rows:
        return
    name = query.schema.type_column
    is_known = query.schema.event_types is not None  # then analysis has looked
    if name is None or is_known or not pa.types.is_string(table.column(name).type):
        return
    column = table.column(name)
    parts = [part.types for part in query.components] + [part.types for part in query.negations]
    wanted = dict.fromkeys(type_ for types in parts for type_ in types)
    # Looking for one type ends where it is found, which costs nothing as a rule.
    missing = [type_ for type_ in wanted if pc.index(column, pa.scalar(type_)).as_py() < 0]
    if missing:
        notes = missing_types(missing, column.unique().slice(0, MOST_TYPES).to_pylist(), is_empty)
        way_out = said(python="type_column=None", shell="--type-column with another column")
        is_alone = f" If the column '{printable(name)}' does not tell the type of an event, use {way_out}."
        is_asked = len(wanted) == 1 and name != TYPE_OF_EVENT
        yield from (note + (is_alone if is_asked else "") for note in notes)


def missing_types(missing: list[str], types: list[str | None], is_empty: bool) -> Iterator[str]:
    known = sorted(type_ for type_ in types if type_ is not None)
    for type_ in missing:
        similar = did_you_mean(type_, known)
        if is_empty or similar:
            yield f"no event is of type '{printable(type_)}'; types in the input: {listed(known)}.{similar}"

"""What was seen, and how: the value that pictures are made of, and what its makers share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.inputs import EventSource
from kleene.plan.plan import Plan
from kleene.plot.seen import Array, Matches, Seen

MOST_MATCHES, MOST_SELECTED = 1_000_000, 5_000_000
"""Matches that are looked at, and events in them: a query may have more than anyone can hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """What was seen, the plan by which it was, and the columns that the input has."""

    seen: Seen
    plan: Plan
    columns: pa.Schema

    @property
    def query(self) -> AnalyzedQuery | AnalyzedRowPattern:
        return self.plan.query


def visible_columns(source: EventSource) -> pa.Schema:
    """The columns that a user knows of."""
    known = set(source.schema)
    return pa.schema([column for column in source.columns if column.name in known])


def offsets_of(lengths: Array) -> Array:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def matches_in_order(
    offsets: Array, places: Array, variable: Array, variables: tuple[str | None, ...], is_cut: bool
) -> Matches:
    """Matches by their first event, then by their last; of each match, events by their places."""
    count = len(offsets) - 1
    match = np.repeat(np.arange(count), np.diff(offsets))
    order = np.lexsort((places, match))
    places, variable = places[order], variable[order]
    matches = Matches(offsets, places, variable, variables, is_cut)
    if not count:
        return matches
    by_time = np.lexsort((matches.last, matches.first))
    lengths = np.diff(offsets)[by_time]
    starts = offsets[:-1][by_time]
    taken = np.repeat(starts - offsets_of(lengths)[:-1], lengths) + np.arange(len(places))
    return Matches(offsets_of(lengths), places[taken], variable[taken], variables, is_cut)

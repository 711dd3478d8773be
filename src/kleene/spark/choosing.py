"""The pass that chooses matches among the candidates of ranges, in a Spark task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn
from kleene.engine.ranges import Candidates, MatchChooser, RowChooser
from kleene.engine.results import ResultBatch
from kleene.ir import expr as ir

CHOICE = tuple(f"__kleene_chosen_{name}" for name in ("key", "first", "first_row", "then", "then_row"))
"""Of a candidate: its key, as a number or a digest, the place where it begins, and the one where matching goes on or,
for SASE, where it ends."""


def choice_order(query: AnalyzedQuery | AnalyzedRowPattern) -> tuple[SortColumn, ...]:
    """The order in which the candidates of a key are looked at."""
    _, *places = CHOICE
    first, then = places[:2], places[2:]
    if isinstance(query, AnalyzedRowPattern):
        return tuple(SortColumn(name, False, None) for name in first)
    return tuple(SortColumn(name, name in first, None) for name in (*then, *first))


def choice_fields(by_digest: bool) -> list[pa.Field]:
    key = pa.field(CHOICE[0], pa.binary() if by_digest else pa.int64())
    return [key, *(pa.field(name, pa.int64()) for name in CHOICE[1:])]


def choice_columns(part: ResultBatch | Candidates, keys: pa.Array | None) -> list[pa.Array]:
    if isinstance(part, ResultBatch):  # of a key that was not cut: these are matches
        return [pa.nulls(part.table.num_rows, pa.int64()) for _ in CHOICE]
    return [keys, *(pa.array(column) for place in (part.first, part.then) for column in place.T)]


@dataclass(frozen=True, slots=True)
class Chooser:
    """A function from candidates in order to matches, for a Spark task. Rows without a key are matches already."""

    query: AnalyzedQuery | AnalyzedRowPattern
    result: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        key: int | bytes | None = None
        chooser: RowChooser | MatchChooser | None = None
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns([*self.result.names, *CHOICE])
            numbers = np.zeros(table.num_rows, np.int64)
            places = zip(*(table.column(name).to_pylist() for name in CHOICE), strict=True)
            for row, (own, first, first_row, then, then_row) in enumerate(places):
                if own is None:
                    numbers[row] = -1
                    continue
                if chooser is None or own != key:
                    key, chooser = own, self._chooser()
                numbers[row] = chooser.choose((first, first_row), (then, then_row))
            chosen = table.select(self.result.names).filter(pa.array(numbers != 0))
            yield from self._numbered(chosen, numbers[numbers != 0]).cast(self.result).to_batches()

    def _chooser(self) -> RowChooser | MatchChooser:
        return RowChooser(self.query) if isinstance(self.query, AnalyzedRowPattern) else MatchChooser()

    def _numbered(self, rows: pa.Table, numbers: np.ndarray[Any, Any]) -> pa.Table:
        """MATCH_NUMBER() is known only now; where a key was not cut it was known before."""
        if isinstance(self.query, AnalyzedQuery):
            return rows
        for measure in self.query.measures:
            if isinstance(measure.expression, ir.MatchNumber):
                at = rows.column_names.index(measure.name)
                own = np.where(numbers < 0, rows.column(at).to_numpy(), numbers)
                rows = rows.set_column(at, rows.schema.field(at), pa.array(own, pa.int64()))
        return rows

"""The pass that chooses matches among the candidates of ranges, in a Spark task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern
from kleene.engine.ranges import Candidates, MatchChooser, RowChooser
from kleene.engine.run import ResultBatch
from kleene.ir import expr as ir

CHOICE = ("__kleene_chosen_key", "__kleene_chosen_first", "__kleene_chosen_then")
"""Of a candidate: the number of its key, where it begins, and where matching goes on, or for SASE where it ends."""


def choice_columns(part: ResultBatch | Candidates) -> list[pa.Array]:
    if isinstance(part, ResultBatch):  # of a key that was not cut: these are matches
        return [pa.nulls(part.table.num_rows, pa.int64()) for _ in CHOICE]
    return [pa.array(np.full(len(part.first), part.key)), pa.array(part.first), pa.array(part.then)]


@dataclass(frozen=True, slots=True)
class Chooser:
    """A function from candidates in order to matches, for a Spark task. Rows without a key are matches already."""

    query: AnalyzedQuery | AnalyzedRowPattern
    result: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        key: int | None = None
        chooser: RowChooser | MatchChooser | None = None
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns([*self.result.names, *CHOICE])
            numbers = np.zeros(table.num_rows, np.int64)
            places = zip(*(table.column(name).to_pylist() for name in CHOICE), strict=True)
            for row, (own, first, then) in enumerate(places):
                if own is None:
                    numbers[row] = -1
                    continue
                if chooser is None or own != key:
                    key, chooser = own, self._chooser()
                numbers[row] = chooser.choose(first, then)
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

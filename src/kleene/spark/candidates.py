"""Candidates, which ranges find, to matches: one pass over them in the order of each key, which looks at no event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from kleene.analysis.analyzed import AnalyzedQuery
from kleene.analysis.row_pattern import AnalyzedRowPattern, SortColumn
from kleene.engine.matches import Array
from kleene.engine.output import as_schema
from kleene.engine.ranges import Candidates, MatchChooser, RangeEvents, RangeMatcher, Reach, RowChooser, is_choosing
from kleene.engine.results import ResultBatch
from kleene.ir import expr as ir
from kleene.plan.plan import Plan
from kleene.spark.hashing import key_digests, key_hash
from kleene.spark.names import plain_names, quoted_column
from kleene.spark.schema import spark_schema
from kleene.spark.tasks.task import Task

CHOICE = tuple(f"__kleene_chosen_{name}" for name in ("key", "first", "first_row", "then", "then_row"))
"""Of a candidate: a digest of its key, the place where it begins, and the one where matching goes on or, for SASE,
where it ends."""


def candidate_schema(plan: Plan, result: pa.Schema) -> pa.Schema:
    """What tasks give out: the result and, where matches are still to be chosen, what that needs to know."""
    if not is_choosing(plan):
        return result
    fields = [pa.field(name, pa.int64()) for name in CHOICE[1:]]
    return pa.schema([*result, pa.field(CHOICE[0], pa.binary()), *fields])


class CandidateFinder:
    """Finds the candidates of ranges, as the pass that chooses reads them."""

    def __init__(self, task: Task, reach: Reach) -> None:
        self._task, self._ranges = task, RangeMatcher(task.plan, reach)
        self._schema, self._is_choosing = candidate_schema(task.plan, task.output.result), is_choosing(task.plan)

    def found(self, part: RangeEvents) -> Iterator[pa.Table]:
        output = self._task.output
        for candidates in self._ranges.batches(part, output.with_times, output.row_order):
            choice: list[pa.Array] = []
            if self._is_choosing:
                places = [pa.array(column) for place in (candidates.first, candidates.then) for column in place.T]
                choice = [key_digests(part.table, candidates.starts, self._task.reads.key), *places]
            yield self._rows(candidates, choice)

    def of_matches(self, part: ResultBatch) -> pa.Table:
        """Of a key that was not cut: these are matches already."""
        types = self._schema.types[len(self._task.output.result) :]
        return self._rows(part, [pa.nulls(part.table.num_rows, type_) for type_ in types])

    def _rows(self, part: ResultBatch | Candidates, choice: list[pa.Array]) -> pa.Table:
        rows = self._task.output.rows(part, self._task.plan)
        for name, column in zip(CHOICE, choice, strict=False):
            rows = rows.append_column(name, column)
        return as_schema(rows.columns, self._schema)


def choice_order(query: AnalyzedQuery | AnalyzedRowPattern) -> tuple[SortColumn, ...]:
    """The order in which the candidates of a key are looked at."""
    _, *places = CHOICE
    first, then = places[:2], places[2:]
    if isinstance(query, AnalyzedRowPattern):
        return tuple(SortColumn(name, False, None) for name in first)
    return tuple(SortColumn(name, name in first, None) for name in (*then, *first))


def chosen_matches(candidates: DataFrame, plan: Plan, result: pa.Schema) -> DataFrame:
    """Of the candidates those that are matches; all of them, where nothing is to be chosen."""
    if not is_choosing(plan):
        return candidates
    key = quoted_column(CHOICE[0])
    by = [(quoted_column(column.name), column.descending) for column in choice_order(plan.query)]
    order = (column.desc() if is_descending else column.asc() for column, is_descending in by)
    place = F.when(key.isNull(), F.spark_partition_id().cast("long")).otherwise(key_hash([key]))
    in_order = candidates.repartition(place).sortWithinPartitions(key.asc(), *order)
    in_order = in_order.toDF(*plain_names(result.names), *CHOICE)
    return in_order.mapInArrow(Chooser(plan.query, result), spark_schema(result))


@dataclass(frozen=True, slots=True)
class Chooser:
    """A function from candidates in order to matches, for a Spark task. Rows without a key are matches already."""

    query: AnalyzedQuery | AnalyzedRowPattern
    result: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        query, key = self.query, None
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
                    key, chooser = own, RowChooser(query) if isinstance(query, AnalyzedRowPattern) else MatchChooser()
                numbers[row] = chooser.choose((first, first_row), (then, then_row))
            chosen = table.select(self.result.names).filter(pa.array(numbers != 0))
            yield from self._numbered(chosen, numbers[numbers != 0]).cast(self.result).to_batches()

    def _numbered(self, rows: pa.Table, numbers: Array) -> pa.Table:
        """MATCH_NUMBER() is known only now; where a key was not cut it was known before."""
        if isinstance(self.query, AnalyzedQuery):
            return rows
        for measure in self.query.measures:
            if isinstance(measure.expression, ir.MatchNumber):
                at = rows.column_names.index(measure.name)
                own = np.where(numbers < 0, rows.column(at).to_numpy(), numbers)
                rows = rows.set_column(at, rows.schema.field(at), pa.array(own, pa.int64()))
        return rows

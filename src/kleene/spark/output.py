"""What a job on Spark gives out: the columns of the result, and those that come with them if they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from kleene.analysis.row_pattern import SortColumn
from kleene.engine.match_order import RowOrder, event_keys, event_type
from kleene.engine.matches import FlatMatches
from kleene.engine.ranges import Candidates
from kleene.engine.results import MATCH_ID, ResultBatch, with_match_ids
from kleene.engine.ties import TieRule
from kleene.engine.timeouts import mark_fields
from kleene.errors import SchemaError
from kleene.plan.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The columns of the result, and what those are made of that the query itself does not know."""

    result: pa.Schema
    with_times: bool = False
    id_columns: tuple[str, ...] | None = None  # of events, for ids of matches
    carried: tuple[str, ...] | None = None  # of events, for a match's place in the output
    row_order: RowOrder | None = None  # of a row pattern, for the same
    ties: TieRule | None = None  # what tasks that sort count, if they do
    shown_names: Mapping[str, str] = field(default_factory=dict)  # of columns whose names stand there twice

    def with_ids(self, columns: Sequence[str]) -> Output:
        return replace(self, result=self.result.append(pa.field(MATCH_ID, pa.string())), id_columns=tuple(columns))

    def with_order(self, name: str, columns: pa.Schema, carried: Sequence[str]) -> Output:
        column = pa.field(name, _match_order_type(columns, carried))
        return replace(self, result=self.result.append(column), carried=tuple(carried))

    def with_row_order(self, order: RowOrder, columns: pa.Schema) -> Output:
        if order.name in (name.lower() for name in self.result.names):
            raise SchemaError(
                f"match_order adds a column of that name, but the result has one called '{order.name}'",
                hint="Rename the measure or the column of the input.",
            )
        return replace(self, result=self.result.append(order.field(columns)), row_order=order)

    def with_marks(self, plan: Plan) -> Output:
        """With the columns that tell matches from runs that are out of time, if there may be any."""
        return replace(self, result=pa.schema([*self.result, *mark_fields(plan)]))

    def rows(self, part: ResultBatch | Candidates, plan: Plan) -> pa.Table:
        """The rows of matches with all columns of the result."""
        rows = part.table
        if self.id_columns is not None:
            rows = with_match_ids(rows, part.events, part.matches, plan, self.id_columns)
        if self.carried is not None:
            assert part.matches is not None
            column = self.result.field(rows.num_columns)
            order = _match_order_column(part.events, part.matches, self.carried)
            rows = rows.append_column(column, order.cast(column.type))
        return rows


MATCH_ORDER = "__kleene_match_order"
"""The column's name while it travels from one query of a program to the next."""


def _match_order_type(columns: pa.Schema, sort_columns: Sequence[str]) -> pa.DataType:
    event = event_type(columns, _ascending(sort_columns))
    return pa.struct(
        [("last", event), ("first", event), ("events", pa.list_(event)), ("longer_first", pa.list_(pa.int64()))]
    )


def _match_order_column(table: pa.Table, matches: FlatMatches, sort_columns: Sequence[str]) -> pa.Array:
    components, order = matches.lengths.shape[1], _ascending(sort_columns)
    lengths = pa.array(-matches.lengths.reshape(-1), pa.int64())
    ends = pa.array(range(0, len(lengths) + 1, components), pa.int32())
    return pa.StructArray.from_arrays(
        [
            event_keys(table, matches.last, order),
            event_keys(table, matches.first, order),
            pa.ListArray.from_arrays(
                pa.array(matches.offsets, pa.int32()), event_keys(table, matches.positions_in_order, order)
            ),
            pa.ListArray.from_arrays(ends, lengths),
        ],
        names=["last", "first", "events", "longer_first"],
    )


def _ascending(names: Sequence[str]) -> list[SortColumn]:
    return [SortColumn(name, False, None) for name in names]
